"""Modes of snapshots through a pipeline on an embedded Oracle, with a lake in memory."""

from __future__ import annotations

import pytest

from cdc_core.errors import ConfigError
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

oracle = oracle_with(
    *(f"CREATE TABLE {one} (ID NUMBER(9) PRIMARY KEY, N NUMBER(9))" for one in ("A", "B")),
    *(f"INSERT INTO {one} VALUES ({n}, {n})" for one in ("A", "B") for n in (1, 2)),
)


source = capturing("A", "B", runs=False)


def start(source: Source, **snapshot: object) -> str:
    """A start under other options; what it decided."""
    source.close()
    source.more = {"snapshot": snapshot}
    made = source.pipeline.begin()
    source.run()
    return f"{made.work} {made.rows} {made.streams}"


def ids(source: Source, name: str) -> set[int]:
    return {int(row[0]) for row in source.lake.image(table_id(name), of_oracle=True)}


def test_no_data_takes_tables_in_without_rows_and_then_their_changes(source: Source) -> None:
    assert start(source, mode="no_data") == "snapshot False True"
    assert ids(source, "A") == set()
    assert source.status("A").is_partial
    source.oracle.run("INSERT INTO A VALUES (3, 3)", "UPDATE A SET N = 20 WHERE ID = 2")
    source.run()
    assert ids(source, "A") == {2, 3}
    assert start(source, mode="no_data") == "stream False True", "nothing is read at a later start"
    list(source.pipeline.run_snapshot([table_id("A")]))
    source.oracle.run("DELETE FROM A WHERE ID = 1")
    source.run()
    source.check_current("A")
    assert not source.status("A").is_partial
    assert source.status("B").is_partial


def test_a_table_without_rows_is_read_when_somebody_asks(source: Source) -> None:
    start(source, mode="no_data")
    source.pipeline.resnapshot_tables([table_id("B")])
    source.run()
    source.oracle.run("INSERT INTO B VALUES (9, 9)")
    source.run()
    source.check_current("B")
    assert not source.status("B").is_partial


def test_initial_only_captures_no_changes(source: Source) -> None:
    assert start(source, mode="initial_only") == "snapshot True False"
    source.oracle.run("INSERT INTO A VALUES (3, 3)")
    assert start(source, mode="initial_only") == "nothing False False"
    assert ids(source, "A") == {1, 2}
    assert source.pipeline.records.windows() == []
    assert start(source, mode="initial") == "stream False True"
    source.check_current("A", "B")


def test_always_reads_all_tables_at_each_start(source: Source) -> None:
    start(source, mode="always")
    first = {one.snapshot_id for one in source.pipeline.records.chunks()}
    assert start(source, mode="always") == "again True True"
    assert len({one.snapshot_id for one in source.pipeline.records.chunks()} - first) == 2
    source.oracle.run("INSERT INTO A VALUES (3, 3)")
    source.run()
    source.check_current("A", "B")


def test_include_names_the_tables_whose_rows_are_read(source: Source) -> None:
    assert start(source, include=["*.B"]) == "snapshot True True"
    assert (ids(source, "A"), ids(source, "B")) == (set(), {1, 2})
    assert source.status("A").is_partial
    assert not source.status("B").is_partial
    source.check_exact("B")


def test_recovery_needs_a_source_that_has_begun(source: Source) -> None:
    with pytest.raises(ConfigError, match="has begun"):
        start(source, mode="recovery")
    start(source, mode="initial")
    source.oracle.run("INSERT INTO A VALUES (3, 3)")
    assert start(source, mode="recovery") == "definitions False True"
    source.check_current("A", "B")


def test_when_needed_reads_again_behind_a_gap_unless_a_policy_says_otherwise(
    source: Source,
) -> None:
    start(source, mode="when_needed")
    config = source.pipeline.config
    assert config.policy(table_id("A"), "redo_gone") == "resnapshot"
    source.close()
    source.more = {"snapshot": {"mode": "when_needed"}, "policies": {"on_redo_gone": "stop"}}
    assert source.pipeline.config.policy(table_id("A"), "redo_gone") == "stop"


def test_status_says_what_a_start_would_do(source: Source) -> None:
    start(source, mode="initial_only")
    found = source.pipeline.status(ask_oracle=False).snapshot_decision
    assert "capture no changes" in found
    assert "mode initial_only" in found
