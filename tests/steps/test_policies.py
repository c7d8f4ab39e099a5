"""What Redolake does by itself with a table that met what cannot be followed, as the configuration says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.config import MatchedTable, PolicyConfig, SourceConfig, TableConfig
from cdc_core.errors import ConfigError, DecodeError
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import FoundTable
from cdc_core.model.scn import Scn
from cdc_core.model.streams import ReadAgain, Trouble
from cdc_core.steps.pattern_matching import with_matches
from cdc_core.steps.policies import answer_to
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

ONE, TWO = table_id("ONE"), table_id("TWO")
STOPPED = datetime(2026, 5, 4, 12, tzinfo=UTC)

oracle = oracle_with(
    *(
        f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), W NUMBER(9))"
        for name in ("ONE", "TWO")
    ),
    *(f"INSERT INTO {name} VALUES (1, 'first', 1)" for name in ("ONE", "TWO")),
)


source = capturing(
    "ONE",
    "TWO",
    policies={
        "on_truncate": "resnapshot",
        "on_drop": "remove",
        "on_unsupported_ddl": "resnapshot",
        "on_undecodable": "resnapshot",
    },
)
"""ONE and TWO, snapshotted, with one window; every trouble has the policy that brings its table back."""


@pytest.mark.parametrize(
    ("statements", "policy"),
    [
        pytest.param(["TRUNCATE TABLE ONE"], "on_truncate", id="truncated"),
        pytest.param(
            ["ALTER TABLE ONE ADD (X DATE DEFAULT SYSDATE)"],
            "on_unsupported_ddl",
            id="a-value-without-redo",
        ),
        pytest.param(
            ["ALTER TABLE ONE DROP PRIMARY KEY", "ALTER TABLE ONE ADD PRIMARY KEY (ID, W)"],
            "on_unsupported_ddl",
            id="another-key",
        ),
    ],
)
def test_a_table_comes_back_by_itself(
    oracle: Oracle, source: Source, statements: list[str], policy: str
) -> None:
    """One round: the window with the trouble, the new snapshot, the windows that followed."""
    oracle.run("INSERT INTO ONE VALUES (2, 'before', 2)", "INSERT INTO TWO VALUES (2, 'x', 2)")
    for statement in statements:
        oracle.run(statement)
    oracle.run("INSERT INTO ONE (ID, V, W) VALUES (3, 'after', 3)")
    reports = source.run()
    source.check_current("ONE", "TWO")
    assert [end.table.name for report in reports for end in report.stopped] == ["ONE"]
    status = source.status("ONE")
    assert (status.state, status.reason) == ("ready", None)
    [answer] = status.read_again
    assert (answer.policy, "cannot be followed" in answer.reason) == (policy, True)
    oracle.run("INSERT INTO ONE (ID, V, W) VALUES (4, 'and on', 4)")
    source.run()
    source.check_current("ONE", "TWO")


def test_what_committed_before_the_trouble_is_in_the_change_log(
    oracle: Oracle, source: Source
) -> None:
    """The windows of the old stream are applied before the table joins again, whoever plans first."""
    oracle.run("INSERT INTO ONE VALUES (2, 'before', 2)")
    oracle.run("TRUNCATE TABLE ONE")
    source.capture()
    assert source.pipeline.follow_policies() == []
    source.pipeline.plan_windows()
    assert source.record("ONE").state == "failed"
    source.run()
    source.check_current("ONE", "TWO")
    changes = source.lake.tables[ONE].changes
    assert [change["after"]["ID"] for change in changes if change["_cdc_op"] == "c"] == [2]


def test_a_dropped_table_goes_quietly(oracle: Oracle, source: Source) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'last', 2)", "INSERT INTO TWO VALUES (2, 'x', 2)")
    oracle.run("DROP TABLE ONE PURGE")
    source.run()
    one = source.record("ONE")
    assert (one.state, one.asked_by, one.mirror_scn) == ("removed", "policy", one.stopped_scn)
    assert "redolake table add DEMO.ONE" in (one.way_out or "")
    assert source.lake.image(ONE) == [(1, "first", 1), (2, "last", 2)]
    oracle.run("CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO ONE VALUES (7)")
    source.run()
    assert source.record("ONE").state == "removed"
    source.check_current("TWO")
    source.pipeline.add_tables([ONE])
    source.run()
    source.check_current("ONE", "TWO")
    assert source.lake.image(ONE) == [(7,)]


def test_a_table_that_the_dictionary_hides_is_not_dropped(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have lost its grants; quietly removing it would lose its rows."""

    def hidden(*_args: object, **_options: object) -> None:
        raise ConfigError("there is no such table, or the capture user may not read it")

    oracle.run("ALTER TABLE ONE ADD (X NUMBER(9))")
    monkeypatch.setattr("cdc_core.capture.stream_ends.ddl_rows.read_table_schema", hidden)
    source.windows()
    assert (source.record("ONE").state, source.record("ONE").trouble) == (
        "failed",
        "unsupported_ddl",
    )
    source.check_current("TWO")


def test_a_row_that_cannot_be_decoded_brings_a_new_snapshot_once(
    oracle: Oracle, source: Source
) -> None:
    """The same again within the table's new life stops it, until somebody brings it back."""
    for number in (2, 3):
        oracle.run(f"INSERT INTO ONE VALUES ({number}, 'a', 1)")
        source.lake.fail(ONE, DecodeError("a row is not understood", hint="Report it."))
        source.run()
        source.check_current("TWO")
    one = source.record("ONE")
    assert (one.state, one.asked_by) == ("failed", None)
    assert "only once" in (one.reason or "")
    assert "redolake table resnapshot DEMO.ONE" in (one.way_out or "")
    for _ in range(2):
        source.run()
        assert source.record("ONE") == one
    source.pipeline.resnapshot_tables([ONE])
    source.run()
    source.check_current("ONE", "TWO")


def test_a_later_life_has_a_new_snapshot_of_its_own(oracle: Oracle, tmp_path: Path) -> None:
    """A table that is truncated and filled every night is read again every night."""
    policies = {"on_truncate": "resnapshot", "resnapshot_hours_min": 1e-9}
    with source_of(oracle, tmp_path, "ONE", "TWO", policies=policies) as source:
        source.begin()
        for number in (2, 3, 4):
            oracle.run("TRUNCATE TABLE ONE")
            oracle.run(f"INSERT INTO ONE VALUES ({number}, 'new', 1)")
            source.run()
            source.check_current("ONE", "TWO")
        assert len(source.record("ONE").read_again) == 1


def test_a_table_has_policies_of_its_own(oracle: Oracle, source: Source) -> None:
    source.configure({"name": "ONE", "on_truncate": "stop"}, "TWO")
    oracle.run("TRUNCATE TABLE ONE")
    oracle.run("TRUNCATE TABLE TWO")
    source.run()
    source.check_current("TWO")
    assert (source.record("ONE").state, source.record("ONE").asked_by) == ("failed", None)
    source.configure("ONE", "TWO")
    source.run()
    source.check_current("ONE", "TWO")


def test_a_policy_that_is_taken_back_does_nothing(oracle: Oracle, source: Source) -> None:
    oracle.run("TRUNCATE TABLE ONE")
    for window in source.pipeline.plan_windows():
        source.pipeline.capture_window(window)
        source.pipeline.apply_window(window)
    assert source.record("ONE").asked_by == "policy"
    source.configure({"name": "ONE", "on_truncate": "stop"}, "TWO")
    source.run()
    one = source.record("ONE")
    assert (one.state, one.asked_by) == ("failed", None)
    assert "redolake table resnapshot DEMO.ONE" in (one.way_out or "")


def test_windows_do_not_wait_for_a_snapshot_that_is_planned_elsewhere(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("TRUNCATE TABLE ONE")
    source.windows()
    oracle.run("INSERT INTO TWO VALUES (2, 'x', 2)")
    with source.pipeline.lease("snapshot-plan", of_process=True):
        source.windows()
        source.check_current("TWO")
        assert source.record("ONE").state == "failed"
    source.run()
    source.check_current("ONE", "TWO")


def test_a_table_of_a_pattern_has_its_patterns_policies() -> None:
    given: dict[str, Any] = {
        "tables": (TableConfig(name="SHOP.*", on_drop="remove"),),
        "policies": PolicyConfig(),
    }
    config = SourceConfig.model_construct(**given)
    found = with_matches(config, [FoundTable(TableId("SHOP", "A*B"))])
    [table] = found.tables
    assert isinstance(table, MatchedTable)
    assert table.on_drop == "remove"
    assert all(map(table.omits, ("LONG", "JSON", "SDO_GEOMETRY", "MY_TYPE")))
    assert found.policy(TableId("SHOP", "A*B"), "drop") == "remove"
    assert found.policy(TableId("SHOP", "A*B"), "truncate") == "stop"


@pytest.mark.parametrize(
    "policies", [{"on_drop": "ignore"}, {"on_truncate": "remove"}, {"on_undecodable": "drop"}]
)
def test_a_policy_without_sense_is_refused(policies: dict[str, Any]) -> None:
    for model in (PolicyConfig, TableConfig):
        with pytest.raises(
            ValidationError, match=r"Input should be 'stop'(,| or) '(remove|resnapshot)'"
        ):
            model(**{**policies, **({"name": "A.B"} if model is TableConfig else {})})


def _record(*again: Trouble, mirror: int | None = 10, after: timedelta) -> TableRecord:
    before = tuple(ReadAgain(trouble, STOPPED - after, "why") for trouble in again)
    return TableRecord(
        source="src", table=ONE, state="failed", trouble="truncate", since=STOPPED,
        mirror_scn=None if mirror is None else Scn(mirror), read_again=before,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("record", "answer"),
    [
        pytest.param(_record(after=timedelta(0)), "resnapshot", id="the-first-time"),
        pytest.param(
            _record("truncate", after=timedelta(hours=11)), "stop for good", id="too-soon"
        ),
        pytest.param(_record("truncate", after=timedelta(hours=12)), "resnapshot", id="a-new-life"),
        pytest.param(
            _record("truncate", mirror=None, after=timedelta(days=2)),
            "stop for good",
            id="before-its-snapshot-is-complete",
        ),
        pytest.param(
            _record("undecodable", after=timedelta(hours=1)), "resnapshot", id="another-trouble"
        ),
    ],
)
def test_a_policy_reads_a_table_again_once_in_its_life(record: TableRecord, answer: str) -> None:
    assert answer_to(record, "resnapshot", life=timedelta(hours=12)) == answer
    assert answer_to(record, "stop", life=timedelta(hours=12)) == "stop"
    assert answer_to(replace(record, trouble="drop"), "remove", life=timedelta(1)) == "remove"
