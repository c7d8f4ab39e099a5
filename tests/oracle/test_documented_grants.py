"""The scripts in deploy/oracle make a capture user that can capture, and a grant that is missing is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import oracledb
import pytest

from cdc_core.capture.logs import cover, read_logs, read_threads
from cdc_core.capture.mining import mined_batches, mining
from cdc_core.capture.positions import read_start, upper_bound
from cdc_core.capture.reading_position import Reading
from cdc_core.config import SourceConfig
from cdc_core.errors import PreflightError
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.preflight import Finding, check_source
from cdc_core.oracle.session import connect
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.types import select_expression
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import PASSWORDS, Oracle, running_oracle, wait_until

SCRIPTS = Path(__file__).resolve().parents[2] / "deploy" / "oracle"
USER, PASSWORD = "C##DOCUMENTED", "secret"
_SQLPLUS = ("WHENEVER", "SET ", "ACCEPT", "--", "PROMPT", "EXIT")


def statements(script: str, **words: str) -> list[str]:
    """The SQL statements of a script, its substitution variables replaced."""
    lines = (SCRIPTS / script).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith(_SQLPLUS))
    for name, value in words.items():
        text = text.replace(name, value)
    for name, value in {"&1": "DEMO", "&2": "T", "&3": USER, "&capture_password": PASSWORD}.items():
        text = text.replace(name, value)
    text = text.replace("C##REDOLAKE", USER)
    return [statement.strip() for statement in text.split(";") if statement.strip()]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        with administrator(oracle) as connection:
            for statement in statements("user_cdb.sql"):
                connection.cursor().execute(statement)
            connection.cursor().execute("ALTER SESSION SET CONTAINER = ORCLPDB1")
            for statement in statements("table.sql"):
                connection.cursor().execute(statement)
        yield oracle


def administrator(oracle: Oracle) -> oracledb.Connection:
    return oracledb.connect(user=ADMIN, password=PASSWORDS[ADMIN], dsn=oracle.server.dsn)


def config(oracle: Oracle, path: Path) -> SourceConfig:
    return oracle.config(
        path, "T", oracle={"dsn": oracle.server.dsn, "user": USER, "password": PASSWORD}
    )


def problems(oracle: Oracle, path: Path) -> list[Finding]:
    source = config(oracle, path)
    with connect(source.oracle) as session:
        return [finding for finding in check_source(session, source) if finding.is_problem]


def read_everything(oracle: Oracle, path: Path, low: Scn) -> list[tuple[str, int]]:
    """Read and mine the table as capture does: the number of its rows, and of INSERTs in the redo above ``low``."""
    source = config(oracle, path)
    with connect(source.oracle) as session:
        start = read_start(session)
        schema = read_table_schema(session, source.tables[0])
        rows = session.fetch_all(
            f"SELECT {select_expression(schema.columns[0])} FROM {schema.table.sql} AS OF SCN :scn",
            {"scn": start.snapshot_scn},
        )
        high = Scn(wait_until(start.snapshot_scn, lambda: upper_bound(session, "online")))
        with session.in_root():
            logs = cover(read_logs(session, low), read_threads(session), low, high)
            with mining(session, logs, low, high):
                reading = Reading(low, None, {})
                batches = list(mined_batches(session, [schema], reading, high, rows=1000))
    mined = [row for batch in batches for row in batch.to_pylist()]
    inserts = sum(row["operation_code"] == Operation.INSERT for row in mined)
    return [("rows", len(rows)), ("inserts", inserts)]


def test_the_documented_grants_are_enough(oracle: Oracle, tmp_path: Path) -> None:
    assert problems(oracle, tmp_path) == []
    with connect(config(oracle, tmp_path).oracle) as session:
        before = current_scn(session)
    oracle.run("INSERT INTO T VALUES (2)")
    assert read_everything(oracle, tmp_path, before) == [("rows", 2), ("inserts", 1)]


_NOT_MISSED = {
    "SYS.UTL_RAW": "PUBLIC has it, unless that was revoked",
    "SYS.GV_$TRANSACTION": "read where several instances are open",
    "SYS.V_$PARAMETER": "read for information alone",
}


def grants() -> Iterator[tuple[str, str]]:
    """Every privilege of the scripts that capture cannot do without, one at a time, with the object that it is on."""
    for statement in [*statements("user_cdb.sql"), *statements("table.sql")]:
        found = re.match(r"GRANT (.+?)(?: ON (\S+))? TO ", statement)
        if found and found[2] not in _NOT_MISSED:
            yield from ((one.strip(), found[2] or "") for one in found[1].split(","))


@pytest.mark.parametrize(("privilege", "target"), grants())
def test_each_missing_grant_is_named(
    oracle: Oracle, tmp_path: Path, privilege: str, target: str
) -> None:
    on = f" ON {target}" if target else ""
    with administrator(oracle) as connection:
        connection.cursor().execute(f"REVOKE {privilege}{on} FROM {USER}")
        try:
            said = told(oracle, tmp_path)
        finally:
            connection.cursor().execute(f"GRANT {privilege}{on} TO {USER}")
    assert any(privilege in remedy and target in remedy for remedy in said)


def told(oracle: Oracle, path: Path) -> list[str]:
    """What mends the problems that preflight finds, or what keeps it from looking."""
    try:
        return [finding.remedy for finding in problems(oracle, path)]
    except PreflightError as error:
        return [error.hint]
