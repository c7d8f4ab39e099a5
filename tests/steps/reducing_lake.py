"""A lake in memory that merges as the lake does: one row per key and window, found by ``stage.reducing``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.errors import DuplicateKeyError
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import LoggedChanges, of_window
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, change_schema
from cdc_core.stage.reducing import merge_sources
from tests.steps.memory_lake import MemoryLake, MemoryTable


class ReducingLake(MemoryLake):
    """As strict as MERGE: an insert meets no row of its key."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def merge(
        self,
        found: MemoryTable,
        schema: TableSchema,
        changes: Sequence[dict[str, Any]],
        covered_scn: int,
        read_scn: int,
        *,
        has_gaps: bool,
    ) -> None:
        del read_scn  # what a chunk has read ahead is not looked at here
        if not changes:
            return
        path = self._folder / f"{schema.table.name}.parquet"
        pq.write_table(pa.Table.from_pylist(list(changes), change_schema(schema)), path)
        window = changes[0]["_cdc_window"]
        staged = LoggedChanges(pafs.LocalFileSystem(), [str(path)], schema, of_window(window))
        for source in merge_sources(staged, schema, staged.facts().absent, has_gaps=has_gaps):
            for row in source.to_pylist():
                self._merge_row(found, schema, row, covered_scn)

    def _merge_row(
        self, found: MemoryTable, schema: TableSchema, row: dict[str, Any], covered_scn: int
    ) -> None:
        key = tuple(row[name] for name in schema.key)
        place = row[COMMIT_SCN], row[ORDINAL]
        found.touched[key] = max(found.touched.get(key, -1), place[0])
        old, *at = found.rows.get(key, ({}, -1, -1))
        if place <= tuple(at) or (not old and place[0] <= covered_scn):
            return
        if row["_cdc_new"] and old:
            raise DuplicateKeyError("an insert meets a row of its key", table=schema.table)
        found.rows.pop(key, None)
        if row["_cdc_kind"] == "del":
            return
        values = {
            name: old[name] if name in row["_cdc_missing"] else row[name]
            for name in schema.column_names
        }
        found.rows[key] = (values, *place)
