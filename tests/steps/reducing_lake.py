"""A lake in memory that merges as the lake does without Spark: one row per key and window by ``stage.reduction``, what changes of key carry along by
``stage.carried_columns``, and the mirror's rows by ``stage.merge``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.schema.table import TableSchema
from cdc_core.stage.carried_columns import NOTHING_CARRIED, carry_columns
from cdc_core.stage.changes import LoggedChanges, of_window
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, change_schema, mirror_schema
from cdc_core.stage.merge import WindowMerge
from cdc_core.stage.reduction import merge_sources
from tests.steps.memory_lake import MemoryLake, MemoryTable


class ReducingLake(MemoryLake):
    """As strict as MERGE: an insert meets no row of its key, and a change without all columns finds its row."""

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
        if not changes:
            return
        path = self._folder / f"{schema.table.name}.parquet"
        pq.write_table(pa.Table.from_pylist(list(changes), change_schema(schema)), path)
        own = of_window(changes[0]["_cdc_window"])
        staged = LoggedChanges(pafs.LocalFileSystem(), [str(path)], schema, own)
        facts, mirror = staged.facts(), _mirror(found, schema)
        carried = NOTHING_CARRIED
        if facts.moved_absent:
            followed = carry_columns(staged, schema, facts.absent, has_gaps=has_gaps)
            carried = followed.values(mirror, schema)
        for rows in merge_sources(staged, schema, facts.absent, has_gaps=has_gaps, carried=carried):
            merge = WindowMerge(
                rows, schema, facts.absent, covered_scn=covered_scn, read_scn=read_scn
            )
            merged = merge.merged(mirror, merge.effects(mirror))
            mirror = pa.concat_tables([merged, merge.inserted()])
            for row in rows.to_pylist():
                key = tuple(row[name] for name in schema.key)
                found.touched[key] = max(found.touched.get(key, -1), row[COMMIT_SCN])
        found.rows.clear()
        for row in mirror.to_pylist():
            values = {name: row[name] for name in schema.column_names}
            key = tuple(row[name] for name in schema.key)
            found.rows[key] = (values, row[COMMIT_SCN], row[ORDINAL])


def _mirror(found: MemoryTable, schema: TableSchema) -> pa.Table:
    rows = [
        {**values, COMMIT_SCN: scn, ORDINAL: ordinal}
        for values, scn, ordinal in found.rows.values()
    ]
    return pa.Table.from_pylist(rows, mirror_schema(schema))
