"""What was written before a column was renamed is read under the name that it has now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import LoggedChanges, of_window
from cdc_core.stage.layout import change_schema
from cdc_core.stage.snapshot import ChunkRows
from tests.stage.landed import orders_schema

OLD = orders_schema()
WINDOW = 9


@pytest.fixture
def new() -> TableSchema:
    """NAME is TITLE, after it was HEADING for a while."""
    columns = tuple(
        replace(column, name="TITLE") if column.name == "NAME" else column for column in OLD.columns
    )
    renamed = (("NAME", "HEADING"), ("HEADING", "TITLE"))
    return replace(OLD, scn_from=Scn(OLD.scn_from + 5), columns=columns, renamed=renamed)


def changes_file(path: Path, schema: TableSchema, rows: list[dict[str, object]]) -> str:
    """A file of the change log with one update per row."""
    facts = {"_cdc_op": "u", "_cdc_window": WINDOW, "_cdc_commit_scn": 5, "_cdc_absent": []}
    written = [facts | {"_cdc_ordinal": at} | row for at, row in enumerate(rows)]
    target = change_schema(schema)
    pq.write_table(pa.Table.from_pylist(written, schema=target), path)
    return str(path)


def test_changes_from_before_a_rename_are_read_under_the_new_names(
    tmp_path: Path, new: TableSchema
) -> None:
    """A window that was in the change log already when the columns got their names, and one of both times."""
    old_rows: list[dict[str, object]] = [
        {"before": {"ID": 1}, "after": {"ID": 1, "NAME": "old"}},
        {"before": {"ID": 2}, "after": {"ID": 2}, "_cdc_absent": ["NAME"]},
    ]
    new_rows: list[dict[str, object]] = [
        {"before": {"ID": 3}, "after": {"ID": 3, "TITLE": "new"}},
        {"before": {"ID": 4}, "after": {"ID": 4}, "_cdc_absent": ["TITLE"]},
    ]
    paths = [
        changes_file(tmp_path / "old.parquet", OLD, old_rows),
        changes_file(tmp_path / "new.parquet", new, new_rows),
    ]
    changes = LoggedChanges(pafs.LocalFileSystem(), paths, new, of_window(WINDOW))
    facts = changes.facts()
    assert (facts.changes, facts.absent) == (4, ("TITLE",))
    light = changes.light()
    assert light.lacking("TITLE").tolist() == [False, True, False, True]
    taken = changes.take("after", "TITLE", np.array([2, 0, -1, 1]))
    assert taken.to_pylist() == ["new", "old", None, None]
    changes.close()


def test_a_chunk_from_before_a_rename_has_its_values(tmp_path: Path, new: TableSchema) -> None:
    path = tmp_path / "chunk.parquet"
    pq.write_table(pa.table({"ID": [1], "NAME": ["one"], "AMOUNT": ["1.00"], "NOTE": ["n"]}), path)
    [batch] = ChunkRows([str(path)], OLD, new).batches(["ID", "TITLE"])
    assert batch.to_pylist() == [{"ID": 1, "TITLE": "one"}]
