"""Spark's JDBC source and catalog, unmodified, against the embedded Oracle."""

from __future__ import annotations

import pytest

from cdc_core.errors import PreflightError
from tests.oracle.embedded import OWNER, PASSWORDS, running_oracle
from tests.peers.jdbc import DRIVERS, driver_jar
from tests.peers.spark_jdbc import CHECKS, run_checks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("driver", DRIVERS)
def test_spark_reads_and_writes_through_jdbc(driver: str) -> None:
    """Read, read in partitions, push down, write: each row is compared with what python-oracledb reads."""
    try:
        jar = driver_jar(driver)
    except PreflightError as error:
        pytest.skip(f"the driver cannot be fetched: {error}")
    with running_oracle() as oracle:
        results = run_checks(jar, oracle.server.dsn, PASSWORDS[OWNER])
    assert {name: result for name, result in results.items() if result != "ok"} == {}
    assert set(results) == CHECKS
