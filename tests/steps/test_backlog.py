"""What happened to a table later says nothing of the windows that wait."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.model.scn import SLACK_SECONDS
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of


@pytest.fixture(params=[True, False], ids=["past-is-shown", "past-is-not-shown"])
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    with running_oracle(logging=False) as running:
        running.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)
        for name in ("ONE", "TWO"):
            running.run(
                f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
                f"ALTER TABLE {name} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
                f"INSERT INTO {name} VALUES (1, 'first')",
            )
        if not request.param:
            running.server.faults.arm(
                Fault(FaultKind.ORA_ERROR, sql_contains="DBA_OBJECTS AS OF", code=1031, times=0)
            )
        yield running


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    """Three windows wait, with a row each."""
    with source_of(oracle, tmp_path, "ONE", "TWO") as opened:
        opened.run()
        for number in (2, 3, 4):
            oracle.run(f"INSERT INTO ONE VALUES ({number}, 'waits')")
            oracle.clock.ahead += 3 * SLACK_SECONDS
            opened.pipeline.plan_windows()
        yield opened


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "not-planned-yet"])
@pytest.mark.parametrize(
    ("statement", "trouble"),
    [
        ("DROP TABLE ONE", "drop"),
        ("DROP TABLE ONE PURGE", "drop"),
        ("ALTER TABLE ONE RENAME TO OTHER", "drop"),
        ("RENAME ONE TO OTHER", "drop"),
        ("ALTER TABLE ONE DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS", None),
    ],
)
def test_a_table_has_all_windows_up_to_the_ddl_that_came_later(
    oracle: Oracle, source: Source, statement: str, trouble: str | None, *, planned: bool
) -> None:
    last = source.pipeline.records.windows(newest_first=True, limit=1)[0].window
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run(statement)
    oracle.clock.ahead += 3 * SLACK_SECONDS
    if planned:
        source.pipeline.plan_windows()
    for window in source.pipeline.pending_windows():
        if window.scn_high > last.scn_high:
            break
        source.pipeline.capture_window(window)
        source.pipeline.apply_window(window)
    assert source.record("ONE").mirror_scn == last.scn_high, source.record("ONE").reason
    assert [row["ID"] for row in source.lake.rows_by_name(source.record("ONE").table)] == [1, 2, 3, 4]  # fmt: skip
    source.run()
    one = source.record("ONE")
    assert (one.state, one.trouble) == ("failed", trouble), one.reason
    assert "redefined online" not in (one.reason or "")
    source.check_current("TWO")
