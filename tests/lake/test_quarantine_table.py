"""The quarantine's Delta table by itself: what repeating a step does to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.delta.history import read_log
from cdc_core.errors import LakeError
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.model.identifiers import TableId
from cdc_core.stage.quarantine import QUARANTINE_SCHEMA


def no_session() -> Any:
    raise AssertionError("the quarantine needs no Spark")


@pytest.fixture
def table(tmp_path: Path) -> QuarantineTable:
    work = TableWork(str(tmp_path), "shop", TableId("SHOP", "T"), 1, lambda: None, no_session)
    return QuarantineTable(work)


def rows(window: int, *ordinals: int) -> pa.Table:
    """Rows of a window; the first ordinal's address is not known."""
    found = [
        {
            "_cdc_window": window, "_cdc_ordinal": one, "_cdc_commit_scn": window - 1, "operation": "INSERT",
            "_cdc_row_id": f"AAASuZROW{place}" if place else None, "reason": "unreadable", "sql_redo": "insert …",
        }
        for place, one in enumerate(ordinals)
    ]  # fmt: skip
    return pa.Table.from_pylist(found, QUARANTINE_SCHEMA)


def version(table: QuarantineTable) -> int:
    log = read_log(table.path)
    assert log is not None
    return log.version


def test_the_same_rows_are_put_once_and_stay_resolved(table: QuarantineTable) -> None:
    """A rebuild from landing puts the rows of old windows once more."""
    table.put(rows(10, 1, 2), 10)
    table.put(rows(20, 5), 20)
    table.resolve(15)
    before = version(table)
    table.put(rows(10, 1, 2), 10)
    table.put(QUARANTINE_SCHEMA.empty_table(), 30)
    assert version(table) == before
    assert (table.count_unresolved(), table.counts()) == (1, {10: 2, 20: 1})
    assert table.suspects().is_any


def test_what_is_lost_is_missed(table: QuarantineTable) -> None:
    table.require(0)
    with pytest.raises(LakeError, match="the quarantine, which records"):
        table.require(2)
    table.put(rows(10, 1, 2), 10)
    table.require(2)


def test_another_attempt_puts_its_own_rows_in_their_place(table: QuarantineTable) -> None:
    table.put(rows(10, 1, 2), 10)
    table.put(rows(20, 5), 20)
    table.put(rows(10, 2), 10)
    assert table.counts() == {10: 1, 20: 1}
    table.put(QUARANTINE_SCHEMA.empty_table(), 10)
    assert table.counts() == {20: 1}


def test_there_is_no_table_before_the_first_row(table: QuarantineTable) -> None:
    table.put(QUARANTINE_SCHEMA.empty_table(), 10)
    table.resolve(10)
    assert (table.exists, read_log(table.path)) == (False, None)
    assert (table.count_unresolved(), table.counts(), bool(table.suspects())) == (0, {}, False)
    assert (table.reasons(), table.forget_text()) == ({}, False)
