"""A lake in memory that merges and derives as the lake does without Spark, by the same functions on values: one row per key by
``stage.reduction``, what changes of key carry along by ``stage.carried_columns``, and the mirror's rows by ``stage.merge``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa

from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.carried_columns import NOTHING_CARRIED, carry_columns
from cdc_core.stage.changes import LIGHT, NONE_ADDED, HeldChanges, LightChanges, LoggedChanges
from cdc_core.stage.layout import CHANGE_FIELDS, COMMIT_SCN, ORDINAL, mirror_schema
from cdc_core.stage.merge import WindowMerge
from cdc_core.stage.reduction import merge_source, reduce_changes
from tests.steps.memory_lake import MemoryLake, MemoryTable


class ReducingLake(MemoryLake):
    """As strict as MERGE: an insert meets no row of its key, and a change without all columns finds its row."""

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
        held, mirror = _Changes(changes, schema), _mirror(found, schema)
        light = held.light()
        named, moved_absent = light.kinds(schema.column_names)
        absent = [name for name in schema.column_names if name in named]
        carried = NOTHING_CARRIED
        if moved_absent:
            followed = carry_columns(cast("LoggedChanges", held), schema, absent, has_gaps=has_gaps)
            carried = followed.values(mirror, schema)
        reduced = reduce_changes(light, schema, absent, has_gaps=has_gaps, carried=carried)
        rows = merge_source(held, reduced, schema, carried)
        merge = WindowMerge(rows, schema, absent, covered_scn=covered_scn, read_scn=read_scn)
        merged = merge.merged(mirror, merge.effects(mirror))
        for row in rows.select([*schema.key, COMMIT_SCN]).to_pylist():
            key = tuple(row[name] for name in schema.key)
            found.touched[key] = max(found.touched.get(key, -1), row[COMMIT_SCN])
        found.rows.clear()
        for row in pa.concat_tables([merged, merge.inserted()]).to_pylist():
            values = {name: row[name] for name in schema.column_names}
            key = tuple(row[name] for name in schema.key)
            found.rows[key] = (values, row[COMMIT_SCN], row[ORDINAL])

    def take_in_order(
        self,
        found: MemoryTable,
        schema: TableSchema,
        changes: Sequence[dict[str, Any]],
        read_scn: int,
    ) -> None:
        self.merge(found, schema, changes, -1, read_scn, has_gaps=bool(found.quarantine))


class _Changes(HeldChanges):
    """Changes of a lake in memory, as a task of Spark has those of its keys."""

    def __init__(self, changes: Sequence[dict[str, Any]], schema: TableSchema) -> None:
        columns = arrow_schema(schema)
        kinds = {name: kind for name, kind in CHANGE_FIELDS if name in LIGHT}
        kinds["before"] = pa.struct([columns.field(name) for name in schema.key])
        kinds["after"] = pa.struct(list(columns))
        arrays = {
            name: pa.array([one.get(name) for one in changes], kind) for name, kind in kinds.items()
        }
        sides = {"is_old": arrays["before"].is_valid(), "is_new": arrays["after"].is_valid()}
        super().__init__(pa.table({**arrays, **sides}), schema, NONE_ADDED)

    def light_of_moves(self) -> LightChanges:
        """All of them."""
        return self.light()


def _mirror(found: MemoryTable, schema: TableSchema) -> pa.Table:
    rows = [
        {**values, COMMIT_SCN: scn, ORDINAL: ordinal}
        for values, scn, ordinal in found.rows.values()
    ]
    return pa.Table.from_pylist(rows, mirror_schema(schema))
