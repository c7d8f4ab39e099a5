"""A chunk that is read ahead of the windows, behind a column that was dropped and added again: nothing in the dictionary tells the two apart."""

from __future__ import annotations

import pytest

from cdc_core.errors import TableStoppedError, WindowFirstError
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

T = table_id("T")

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, C NUMBER(9,1))",
    "INSERT INTO T VALUES (1, 1.5)",
    "INSERT INTO T VALUES (2, 2.5)",
)
"""T's last column is the one that goes and comes, so that its place is the same."""
source = capturing("T")


@pytest.mark.parametrize("is_captured", [True, False], ids=["captured", "ahead"])
def test_its_values_are_those_of_the_new_column_or_the_table_stops(
    oracle: Oracle, source: Source, is_captured: bool
) -> None:
    """With the window captured, the new column is known for another one. Ahead of it the table stops, and a new snapshot reads its values."""
    oracle.run("ALTER TABLE T DROP COLUMN C", "ALTER TABLE T ADD (C NUMBER(9,1))")
    oracle.run("UPDATE T SET C = 77 WHERE ID = 2")
    if is_captured:
        source.capture()
    _snapshot(source)
    source.run()
    assert (source.record("T").state == "failed") is not is_captured
    if not is_captured:
        assert "took the name of another one" in (source.record("T").reason or "")
        source.pipeline.resnapshot_tables([T])
        source.run()
    source.check_current("T")
    rows = {key[0]: values.get("C") for key, (values, _, _) in source.lake.tables[T].rows.items()}
    assert rows == {1: None, 2: 77}


def test_a_chunk_behind_the_captured_window_does_not_hide_one_ahead_of_it(
    oracle: Oracle, source: Source
) -> None:
    """The second chunk knows the new column for another one; the first did not, and was applied."""
    oracle.run("ALTER TABLE T DROP COLUMN C", "ALTER TABLE T ADD (C NUMBER(9,1))")
    oracle.run("UPDATE T SET C = 77 WHERE ID = 2")
    _snapshot(source)
    source.capture()
    with pytest.raises(TableStoppedError, match="took the name of another one"):
        _snapshot(source)


@pytest.mark.parametrize("is_captured", [True, False], ids=["captured", "ahead"])
def test_columns_that_swap_their_names_keep_their_values(
    oracle: Oracle, source: Source, is_captured: bool
) -> None:
    """Ahead of the window the chunk waits for it: of columns of one type, the dictionary behind a swap shows another order."""
    oracle.run("ALTER TABLE T ADD (D NUMBER(9,1))", "UPDATE T SET D = -C")
    source.windows()
    for old, new in (("C", "X"), ("D", "C"), ("X", "D")):
        oracle.run(f"ALTER TABLE T RENAME COLUMN {old} TO {new}")
    oracle.run("UPDATE T SET C = 77 WHERE ID = 2")
    if is_captured:
        source.capture()
        _snapshot(source)
    else:
        with pytest.raises(WindowFirstError):
            _snapshot(source)
    source.run()
    assert source.record("T").state == "ready"
    source.check_current("T")
    rows = {key[0]: (one["C"], one["D"]) for key, (one, _, _) in source.lake.tables[T].rows.items()}
    assert {key: tuple(map(float, one)) for key, one in rows.items()} == {
        1: (-1.5, 1.5),
        2: (77, 2.5),
    }


def test_a_policy_brings_the_table_back(oracle: Oracle, source: Source) -> None:
    source.more["policies"] = {"on_unsupported_ddl": "resnapshot"}
    source.configure("T")
    oracle.run("ALTER TABLE T DROP COLUMN C", "ALTER TABLE T ADD (C NUMBER(9,1))")
    oracle.run("UPDATE T SET C = 77 WHERE ID = 2")
    _snapshot(source)
    source.run()
    source.check_current("T")
    assert source.record("T").state == "ready"
    rows = {key[0]: values.get("C") for key, (values, _, _) in source.lake.tables[T].rows.items()}
    assert rows == {1: None, 2: 77}


def _snapshot(source: Source) -> None:
    source.pipeline.start_snapshot([T])
    for key in source.pipeline.pending_chunks():
        source.pipeline.snapshot_chunk(key)
        source.pipeline.apply_chunk(key)
