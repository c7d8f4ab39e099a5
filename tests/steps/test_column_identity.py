"""A chunk that is read ahead of the windows, and what a pattern protects, where columns take the names
of others (tests/steps/test_ddl_stories.py tells what becomes of the columns)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import TableStoppedError, WindowFirstError
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.ddl_story import T
from tests.steps.harness import Source, capturing, source_of


def swapped(one: str, other: str) -> tuple[str, ...]:
    return tuple(
        f"RENAME COLUMN {old} TO {new}" for old, new in ((one, "X"), (other, one), ("X", other))
    )


@pytest.mark.parametrize("gone", ["ALTER TABLE P DROP COLUMN B", ""])
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"columns_mask": {"B": "stars(3)"}}, "names that columns_mask names"),
        ({"columns_exclude": ["B"]}, "became virtual or excluded: B"),
    ],
)
def test_a_pattern_s_protection_does_not_come_behind_the_values(
    tmp_path: Path, entry: dict[str, Any], reason: str, gone: str
) -> None:
    """A column that is renamed to a protected name has values in the lake that are not."""
    with running_oracle() as oracle, source_of(oracle, tmp_path, "P") as source:
        oracle.run("CREATE TABLE P (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20))")
        if gone:
            oracle.run("ALTER TABLE P ADD (B VARCHAR2(20))")
        oracle.run("INSERT INTO P (ID, A) VALUES (1, 'open')")
        source.configure({"name": "P*", **entry})
        source.run()
        oracle.run(*filter(None, [gone]), "ALTER TABLE P RENAME COLUMN A TO B")
        oracle.run("INSERT INTO P VALUES (2, 'shut')")
        source.windows()
        record = source.record("P")
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert reason in str(record.reason)


# -- a chunk that is read ahead of the windows: nothing in the dictionary tells a column from the
# one that had its name and its place ----------

AGAIN = ("ALTER TABLE T DROP COLUMN C", "ALTER TABLE T ADD (C NUMBER(9,1))", "UPDATE T SET C = 77 WHERE ID = 2")  # fmt: skip


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, C NUMBER(9,1))",
    "INSERT INTO T VALUES (1, 1.5)",
    "INSERT INTO T VALUES (2, 2.5)",
)
"""T's last column is the one that goes and comes, so that its place is the same."""


source = capturing("T")


def values(source: Source, *names: str) -> dict[int, tuple[float | None, ...]]:
    rows = source.lake.rows_by_name(T)
    return {
        row["ID"]: tuple(None if row.get(one) is None else float(row[one]) for one in names)
        for row in rows
    }


def capture(source: Source) -> None:
    for window in source.pipeline.plan_windows():
        source.pipeline.capture_window(window)


def snapshot(source: Source) -> None:
    source.pipeline.start_snapshot([T])
    for key in source.pipeline.pending_chunks():
        source.pipeline.snapshot_chunk(key)
        source.pipeline.apply_chunk(key)


@pytest.mark.parametrize("also", [(), ("ALTER TABLE T ADD (N NUMBER(9))",)], ids=["", "with-more"])
@pytest.mark.parametrize("is_captured", [True, False], ids=["captured", "ahead"])
def test_a_chunk_has_the_values_of_the_new_column_or_the_table_stops(
    oracle: Oracle, source: Source, is_captured: bool, also: tuple[str, ...]
) -> None:
    """With the window captured, the new column is known for another one. Ahead of it the table
    stops, and a new snapshot reads its values."""
    oracle.run(*AGAIN, *also)
    if is_captured:
        capture(source)
    snapshot(source)
    source.run()
    assert (source.record("T").state == "failed") is not is_captured
    if not is_captured:
        assert "took the name of another one" in (source.record("T").reason or "")
        source.pipeline.resnapshot_tables([T])
        source.run()
    if not also:  # the lake got C behind N, Oracle N behind C
        source.check_current("T")
    assert values(source, "C") == {1: (None,), 2: (77,)}


def test_a_chunk_behind_the_captured_window_does_not_hide_one_ahead_of_it(
    oracle: Oracle, source: Source
) -> None:
    """The second chunk knows the new column for another one; the first did not, and was applied."""
    oracle.run(*AGAIN)
    snapshot(source)
    capture(source)
    with pytest.raises(TableStoppedError, match="took the name of another one"):
        snapshot(source)


@pytest.mark.parametrize("is_captured", [True, False], ids=["captured", "ahead"])
def test_of_swapped_columns_a_chunk_waits_for_the_window(
    oracle: Oracle, source: Source, is_captured: bool
) -> None:
    """Of columns of one type, the dictionary behind a swap shows another order."""
    oracle.run("ALTER TABLE T ADD (D NUMBER(9,1))", "UPDATE T SET D = -C")
    source.windows()
    oracle.run(*(f"ALTER TABLE T {clause}" for clause in swapped("C", "D")))
    oracle.run("UPDATE T SET C = 77 WHERE ID = 2")
    if is_captured:
        capture(source)
        snapshot(source)
    else:
        with pytest.raises(WindowFirstError):
            snapshot(source)
    source.run()
    assert source.record("T").state == "ready"
    source.check_current("T")
    assert values(source, "C", "D") == {1: (-1.5, 1.5), 2: (77, 2.5)}


def test_a_policy_brings_the_table_back(oracle: Oracle, source: Source) -> None:
    source.more["policies"] = {"on_unsupported_ddl": "resnapshot"}
    source.configure("T")
    oracle.run(*AGAIN)
    snapshot(source)
    source.run()
    source.check_current("T")
    assert source.record("T").state == "ready"
    assert values(source, "C") == {1: (None,), 2: (77,)}
