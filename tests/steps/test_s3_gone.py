"""S3 fails in the middle of a step, at the nth request: the step says so, and the next run finishes the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdc_core.errors import StoreUnavailableError
from tests.landing.fault_proxy import FaultProxy
from tests.landing.s3_server import running_s3
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

BUCKET = "faults-of-steps"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with running_s3() as found:
        boto3.client("s3", endpoint_url=found).create_bucket(Bucket=BUCKET)
        yield found


oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO ONE SELECT LEVEL, 'a' FROM DUAL CONNECT BY LEVEL <= 50",
)


@pytest.fixture
def proxy(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    with FaultProxy(endpoint) as opened:
        yield opened


@pytest.fixture
def source(oracle: Oracle, proxy: FaultProxy, tmp_path: Path) -> Iterator[Source]:
    landing = {
        "type": "s3", "bucket": BUCKET, "prefix": tmp_path.name, "endpoint_url": proxy.endpoint, "cache": str(tmp_path / "cache"),
    }  # fmt: skip
    with source_of(oracle, tmp_path, "ONE", landing=landing) as opened:
        yield opened


def met(oracle: Oracle, source: Source, proxy: FaultProxy, nth: int, fault: dict[str, Any]) -> bool:
    """A window whose nth request to S3 fails, and all later ones, until S3 is well again; False if it makes fewer."""
    oracle.run(f"UPDATE ONE SET V = 'b{nth}' WHERE ID <= 5", f"INSERT INTO ONE VALUES ({100 + nth}, 'new')")  # fmt: skip
    proxy.fail(**fault, from_request=nth)
    try:
        source.run()
    except StoreUnavailableError as error:
        assert "S3" in error.message  # noqa: PT017
    else:
        assert not proxy.was_met
        return False
    finally:
        proxy.heal()
    source.close()
    tables = source.pipeline.store.tables.all()
    assert [one for one in tables if one.state == "failed"] == [], "S3 is about no table"
    source.close()
    source.run()
    source.check_current("ONE")
    changes = source.lake.tables[table_id("ONE")].changes
    assert len({one["_cdc_ordinal"] for one in changes}) == len(changes)
    return True


SLOW_DOWN = {"error": (503, "SlowDown")}
EXPIRED = {"error": (400, "ExpiredToken")}
FAULTS = [
    pytest.param(SLOW_DOWN, 6, id="it-is-busy"),
    pytest.param(EXPIRED, 9, id="the-credentials-expire"),
    pytest.param({"refuse": True}, 4, id="it-refuses", marks=pytest.mark.slow),
    pytest.param({"request": 700}, 5, id="a-file-is-half-written", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("fault", "nth"), FAULTS)
def test_s3_that_fails_in_the_middle_of_a_step_loses_nothing(
    oracle: Oracle, source: Source, proxy: FaultProxy, fault: dict[str, Any], nth: int
) -> None:
    source.run()
    assert met(oracle, source, proxy, nth, fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [SLOW_DOWN, EXPIRED, {"refuse": True}])
def test_s3_may_fail_at_every_request_of_a_run(
    oracle: Oracle, source: Source, proxy: FaultProxy, fault: dict[str, Any]
) -> None:
    """From the first snapshot on; windows come after it."""
    nth = 1
    while met(oracle, source, proxy, nth, fault):
        nth += 1
    assert nth > 5
