"""What a window costs the side tables does not grow with the windows before it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from cdc_core.delta.appending import (
    CommitInfo,
    FileChanges,
    commit_files,
    create_table,
    write_file,
)
from cdc_core.lake.side_tables.source_tables import DeltaSideTable, count_events
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema
from cdc_core.stage.layout import change_schema
from tests.stage.landed import number

SCHEMA = TableSchema(TableId("SHOP", "T"), Scn(1), (number("ID", 10, 0),), ("ID",))
COLUMNS = change_schema(SCHEMA)


@pytest.fixture
def work(tmp_path: Path) -> TableWork:
    """A table with an empty change log."""
    work = TableWork(str(tmp_path), "shop", SCHEMA.table, 0, no_fence, lambda: None)
    create_table(work.changelog, COLUMNS, {}, doing="creating", facts={})
    return work


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often files of rows were opened, and whole logs read."""
    found: Counter[str] = Counter()

    def counting(module: Any, name: str) -> None:
        first: Callable[..., Any] = getattr(module, name)

        class Counted(first):  # type: ignore[misc,valid-type]
            def __init__(self, *given: Any, **named: Any) -> None:
                found[name] += 1
                super().__init__(*given, **named)

        monkeypatch.setattr(module, name, Counted)

    counting(pq, "ParquetFile")
    counting(deltalake, "DeltaTable")
    return found


def take_window(work: TableWork, scn_high: int, changes: int = 1) -> None:
    """Let the change log take a window of one transaction."""
    rows = [
        {
            "_cdc_op": "c", "_cdc_commit_scn": scn_high, "_cdc_ordinal": scn_high * 100 + one, "_cdc_xid": "0A",
            "_cdc_window": scn_high, "_cdc_columns": 1, "_cdc_absent": [], "_cdc_before_absent": [], "after": {"ID": one},
        }
        for one in range(changes)
    ]  # fmt: skip
    batch = pa.RecordBatch.from_pylist(rows, COLUMNS)
    file = write_file(work.changelog, COLUMNS, [batch], ["_cdc_window"])
    assert file is not None
    metadata = work.metadata("window", scn_high)
    info = CommitInfo(doing="appending", metadata=metadata, txn=(work.window_app, scn_high))
    commit_files(work.changelog, FileChanges(added=[file]), info, fence=lambda: None)


def counted(work: TableWork, scn_low: int, scn_high: int) -> list[Any]:
    return count_events(work, scn_low, scn_high).to_pylist()


def test_the_newest_window_is_counted_in_its_own_files(
    work: TableWork, opened: Counter[str]
) -> None:
    for scn in range(10, 400, 10):
        take_window(work, scn, changes=2)
        opened.clear()
        assert counted(work, scn - 10, scn) == [{"xid": "0A", "commit_scn": scn, "events": 2}]
        assert opened == {"ParquetFile": 1}
    assert sum(one["events"] for one in counted(work, 0, 400)) == 2 * 39


def test_files_that_were_put_together_are_counted_too(work: TableWork) -> None:
    for scn in (10, 20, 30):
        take_window(work, scn)
    DeltaTable(work.changelog).optimize.compact()
    assert counted(work, 20, 30) == [{"xid": "0A", "commit_scn": 30, "events": 1}]
    take_window(work, 40)
    assert counted(work, 20, 30) == [{"xid": "0A", "commit_scn": 30, "events": 1}]
    assert counted(work, 30, 40) == [{"xid": "0A", "commit_scn": 40, "events": 1}]


def test_a_new_window_is_put_without_reading_the_others(
    tmp_path: Path, opened: Counter[str]
) -> None:
    beside = DeltaSideTable(str(tmp_path), "shop", "transactions", no_fence)

    def rows(window: int) -> pa.Table:
        row = dict.fromkeys(beside.schema.names) | {"id": "0A", "scn_high": window}
        return pa.Table.from_pylist([row], beside.schema)

    beside.put(rows(10), 10)
    for window in range(20, 400, 10):
        opened.clear()
        beside.put(rows(window), window)
        assert not opened
    beside.put(rows(390), 390)
    table = DeltaTable(beside.path)
    assert table.version() == 39
    assert beside.position() == 390
    assert table.to_pyarrow_table()["scn_high"].to_pylist() == [*range(390, 0, -10)]
    [said] = {json.loads(one["userMetadata"])["kind"] for one in table.history(2)}
    assert said == "transactions"
