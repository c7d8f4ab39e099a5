"""Columns that get other types in Delta while changes are captured (MODIFY), through the driver: rows of both definitions, before, inside and
after a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

T = table_id("T")
BIG = 12345678901234567890

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(5) PRIMARY KEY, N NUMBER(9), D NUMBER(10,2), A VARCHAR2(20))",
    *(f"INSERT INTO T VALUES ({key}, {key}0, {key}.50, 'a{key}')" for key in range(1, 6)),
    warts=[Wart.UNNAMED_COLUMNS],
)
"""T has columns of each kind; rows from before a DDL have no names."""
source = capturing("T")


def before(oracle: Oracle) -> None:
    oracle.run(
        "INSERT INTO T VALUES (6, 60, -6.25, 'a6')",
        "UPDATE T SET N = 11, D = 1 WHERE ID = 1",
        "UPDATE T SET ID = 20 WHERE ID = 2",
        "DELETE FROM T WHERE ID = 3",
    )


def after(oracle: Oracle, big: object, small: object) -> None:
    oracle.run(
        f"INSERT INTO T VALUES (7, {big}, {small}, 'a7')",
        f"UPDATE T SET N = {big} WHERE ID = 1",
        "UPDATE T SET ID = 60, A = 'moved' WHERE ID = 6",
        "DELETE FROM T WHERE ID = 5",
    )


def values(source: Source, column: str) -> dict[int, Any]:
    """The mirror's values of a column by key."""
    return {int(row["ID"]): row.get(column) for row in source.lake.rows_by_name(T)}


WIDER = "ALTER TABLE T MODIFY (N NUMBER(20), D NUMBER(14,4))"


def test_a_definition_that_gets_narrower_leaves_the_lake_as_it_is(
    oracle: Oracle, source: Source
) -> None:
    """Oracle takes digits away from empty columns alone, of which the change log has values; later rows are read as what they are."""
    oracle.run(WIDER, f"INSERT INTO T VALUES (8, {BIG}, 8, 'a8')")
    oracle.run("UPDATE T SET N = NULL", "ALTER TABLE T MODIFY N NUMBER(5)")
    after(oracle, 77777, 1)
    source.windows()
    source.check_current("T")
    oracle.run("UPDATE T SET N = NULL", "ALTER TABLE T MODIFY N NUMBER(5,3)")
    oracle.run("UPDATE T SET N = 1.125 WHERE ID = 1")
    source.windows()
    source.check_current("T")
    assert source.record("T").generation == 1
    schema = source.lake.tables[T].schema
    assert schema is not None
    assert (schema.column("N").precision, schema.column("N").scale) == (23, 3)


def test_a_chunk_that_was_read_before_the_ddl(oracle: Oracle, source: Source) -> None:
    key = source.read_chunk(T)
    oracle.run(WIDER)
    after(oracle, BIG, "0.1234")
    source.windows()
    source.pipeline.apply_chunk(key)
    source.run()
    source.check_current("T")
    assert values(source, "N")[7] == BIG
    oracle.run("UPDATE T SET N = N - 1")
    source.pipeline.resnapshot_tables([T])
    source.run()
    assert source.record("T").generation == 1
    source.check_current("T")


@pytest.mark.parametrize(
    ("policy", "state", "generation"), [("stop", "failed", 1), ("resnapshot", "ready", 2)]
)
def test_a_policy_may_leave_the_tables_as_they_are(
    oracle: Oracle, source: Source, policy: str, state: str, generation: int
) -> None:
    """A type that Delta has already is followed under each policy."""
    source.configure({"name": "T", "on_widened_column": policy})
    oracle.run("ALTER TABLE T MODIFY N NUMBER(18)")
    before(oracle)
    source.windows()
    assert source.record("T").state == "ready"
    oracle.run(WIDER)
    after(oracle, BIG, "0.1234")
    source.windows()
    record = source.record("T")
    assert (record.state, record.trouble) == ("failed", "widened_column")
    assert "types that Delta's do not hold: N, D" in (record.reason or "")
    source.run()
    source.run()
    record = source.record("T")
    assert (record.state, record.generation) == (state, generation)
    if policy == "stop":
        source.pipeline.resnapshot_tables([T])
        source.run()
    source.check_current("T")
    assert source.record("T").generation == 2


@pytest.mark.slow
def test_a_truncate_behind_the_ddl_in_one_window(oracle: Oracle, tmp_path: Path) -> None:
    """The window is taken in two pieces, whose rows have two definitions."""
    with source_of(oracle, tmp_path, "T", policies={"on_truncate": "follow"}) as source:
        source.begin()
        before(oracle)
        oracle.run(WIDER, f"INSERT INTO T VALUES (8, {BIG}, 8, 'a8')")
        oracle.run("TRUNCATE TABLE T", f"INSERT INTO T VALUES (9, {BIG}, 0.0001, 'a9')")
        source.windows()
        source.check_current("T")
        assert values(source, "N") == {9: BIG}
        oracle.run("ALTER TABLE T MODIFY N NUMBER", "UPDATE T SET N = 1E30")
        source.windows()
        source.check_current("T")


@pytest.mark.slow
def test_rows_that_their_rowid_identifies_and_a_store_that_is_lost(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run("CREATE TABLE LOOSE (N NUMBER(9))", "INSERT INTO LOOSE VALUES (1)")
    with source_of(oracle, tmp_path) as source:
        source.configure("T", {"name": "LOOSE", "identity": "rowid"})
        source.run()
        before(oracle)
        oracle.run(WIDER, "ALTER TABLE LOOSE MODIFY N NUMBER(25)")
        oracle.run("UPDATE LOOSE SET N = N + 12345678901234567890")
        source.windows()
        oracle.run("UPDATE T SET N = NULL", "ALTER TABLE T MODIFY N NUMBER(4)")
        source.windows()
        source.close()
        (tmp_path / "state.db").unlink()
        source.pipeline.rebuild_state()
        after(oracle, 4444, 1)
        source.windows()
        source.check_current("T", "LOOSE")
        [row] = source.lake.image(table_id("LOOSE"))
        assert row[1] == 12345678901234567891
