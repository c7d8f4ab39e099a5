"""An unmodified JDBC driver of Oracle against the embedded Oracle, in both lines that are maintained; and a pool, Flyway, Liquibase,
Hibernate and jOOQ through it."""

from __future__ import annotations

import os

import pytest

from cdc_core.errors import PreflightError
from oracle_embedded.database import open_database
from oracle_embedded.server import EmbeddedServer
from tests.peers.java_programs import run_program
from tests.peers.jdbc import DRIVERS, driver_jar, has_java_compiler, run_client, xml_jars

pytestmark = pytest.mark.slow

CHECKS = {
    "log in", "wrong password", "ddl", "insert", "query", "query again with other values", "batch", "batch with an error",
    "roll back", "savepoints", "autocommit", "errors", "times", "long text", "fetch size", "scroll", "updatable rows",
    "lobs with all prefetch sizes", "lob writes", "out binds", "ref cursor", "returning", "generated rowid", "generated keys by name",
    "columns of a query", "database metadata", "client info", "query timeout", "documents",
}  # fmt: skip


@pytest.mark.parametrize("driver", DRIVERS)
def test_programs_work_through_jdbc(driver: str) -> None:
    if not has_java_compiler():
        pytest.skip("there is no JDK (java and javac) on the path")
    try:
        path = os.pathsep.join(map(str, (driver_jar(driver), *xml_jars())))
    except PreflightError as error:
        pytest.skip(f"the driver cannot be fetched: {error}")
    database = open_database()
    try:
        with EmbeddedServer(database.engine, faults=database.faults) as server:
            address = f"127.0.0.1:{server.port}/ORCLPDB1"
            results = run_client(path, address, database.password("DEMO"))
    finally:
        database.close()
    assert {name: result for name, result in results.items() if result != "ok"} == {}
    assert set(results) == CHECKS


@pytest.mark.parametrize(
    ("program", "checks"),
    [
        ("PoolClient.java", 18),
        ("FlywayClient.java", 10),
        ("LiquibaseClient.java", 12),
        ("HibernateClient.java", 24),
        ("JooqClient.java", 15),
    ],
)
def test_programs_of_others_work(program: str, checks: int) -> None:
    if not has_java_compiler():
        pytest.skip("there is no JDK (java and javac) on the path")
    try:
        results = run_program(program)
    except PreflightError as error:
        pytest.skip(f"a jar cannot be fetched: {error}")
    assert {name: result for name, result in results.items() if result != "ok"} == {}
    assert len(results) == checks
