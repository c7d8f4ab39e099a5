"""A row belongs to the object that it was written to, whatever name LogMiner shows it under."""

from __future__ import annotations

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

oracle = oracle_with(
    *(
        f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))"
        for name in ("ONE", "TWO", "OTHER")
    ),
    *(f"INSERT INTO {name} VALUES (1, 'first')" for name in ("ONE", "TWO")),
)
source = capturing("ONE", "TWO")
"""ONE and TWO, snapshotted, with one window."""


def rename(oracle: Oracle, *names: tuple[str, str]) -> None:
    oracle.run(*(f"ALTER TABLE {old} RENAME TO {new}" for old, new in names))


def test_rows_of_a_table_that_was_put_in_place_are_not_taken(
    oracle: Oracle, source: Source
) -> None:
    """What is called ONE when redo is mined was OTHER when these rows were written; the rows of ONE are shown as ONE_OLD."""
    oracle.run('INSERT INTO ONE VALUES (2, \'of "DEMO"."ONE_OLD"\')')
    oracle.run("INSERT INTO OTHER VALUES (50, 'another')", "UPDATE ONE SET V = 'x' WHERE ID = 1")
    rename(oracle, ("ONE", "ONE_OLD"), ("OTHER", "ONE"))
    oracle.run("INSERT INTO ONE VALUES (51, 'after')", "INSERT INTO TWO VALUES (2, 'x')")
    source.windows()
    one = source.record("ONE")
    assert (one.state, one.mirror_scn) == ("failed", one.stopped_scn)
    assert source.lake.image(table_id("ONE")) == [(1, "x"), (2, 'of "DEMO"."ONE_OLD"')]
    source.check_current("TWO")


def test_two_captured_tables_may_change_places(oracle: Oracle, source: Source) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'of one')", "INSERT INTO TWO VALUES (3, 'of two')")
    rename(oracle, ("ONE", "OTHER_ONE"), ("TWO", "ONE"), ("OTHER_ONE", "TWO"))
    source.windows()
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "of one")]
    assert source.lake.image(table_id("TWO")) == [(1, "first"), (3, "of two")]
    assert [source.record(name).state for name in ("ONE", "TWO")] == ["failed", "failed"]


def test_a_rename_behind_the_window_changes_nothing_in_it(oracle: Oracle, source: Source) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'of one')", "INSERT INTO OTHER VALUES (50, 'another')")
    [*_, window] = source.pipeline.plan_windows()
    rename(oracle, ("ONE", "ONE_OLD"), ("OTHER", "ONE"))
    source.pipeline.capture_window(window)
    source.pipeline.apply_window(window)
    one = source.record("ONE")
    assert (one.state, one.mirror_scn) == ("ready", window.scn_high)
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "of one")]


def test_a_table_that_was_dropped_and_created_again_is_another_one(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'of one')")
    oracle.run("DROP TABLE ONE PURGE")
    oracle.run("CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))")
    oracle.run("INSERT INTO ONE VALUES (51, 'after')", "INSERT INTO TWO VALUES (2, 'x')")
    source.windows()
    one = source.record("ONE")
    assert (one.state, one.mirror_scn) == ("failed", one.stopped_scn)
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "of one")]
    source.check_current("TWO")
