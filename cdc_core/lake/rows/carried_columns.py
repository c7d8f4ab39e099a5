"""How do changes of key get what they carry along in Spark?

Which value it is says :mod:`cdc_core.stage.carried_columns`. Its result is joined to the
changes, and to the rows as they were before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.lake.definitions.defaults import sql_literal
from cdc_core.lake.rows.staging import ddl_of
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import quote_name, string_literal
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.carried_columns import CarriedPlaces
from cdc_core.stage.changes import AddedColumns
from cdc_core.stage.layout import CHUNK_ORDINAL_MIN, COMMIT_SCN, ORDINAL


@dataclass(frozen=True, slots=True)
class CarriedView:
    """A view of what changes of key carry along. ``is_conditional``: some of it counts only if
    there was no row of a key."""

    name: str
    is_conditional: bool


def carried_view(
    work: TableWork, session: Any, carried: CarriedPlaces, *, has_mirror: bool
) -> CarriedView:
    """The view for :func:`carried_sql`, one per table. ``has_mirror``: the mirror's rows count, and
    not those alone that chunks brought."""
    rows = carried_rows(carried, has_mirror=has_mirror)
    name = f"carried_{sha256(work.mirror.encode()).hexdigest()[:16]}"
    with translated("handing rows to Spark", **work.facts()):
        session.createDataFrame(rows, ddl_of(rows.schema)).createOrReplaceTempView(name)
    return CarriedView(name, bool(pc.any(rows["u0"].is_valid()).as_py()))


def carried_rows(carried: CarriedPlaces, *, has_mirror: bool) -> pa.Table:
    """What is carried, by positions and keys: a row per change of key (``cs``, ``o``) and column
    (``at``), from the change at (``src_cs``, ``src_o``), else from the row of a key (``k0`` …) that
    was there before, with a position from ``least`` to ``most``; if no row of a key (``u0`` …) was
    there. And a row for each change whose ROW_ID (``rid``) is known."""
    light = carried.light
    scn, ordinal = (light.table[one].to_numpy() for one in (COMMIT_SCN, ORDINAL))
    is_before = carried.source < 0
    is_chunks = ~is_before & (ordinal[carried.source] >= CHUNK_ORDINAL_MIN)
    kept = np.flatnonzero(has_mirror | ~is_before)
    entries, lines = len(kept), len(carried.lines)
    count = entries + lines
    nobody = np.full(lines, -1)
    change = np.concatenate([carried.change[kept], carried.lines])
    source = np.concatenate([np.where(is_before | is_chunks, -1, carried.source)[kept], nobody])
    origin = np.concatenate([carried.origin[kept], nobody])
    read = np.concatenate([np.where(is_chunks, carried.source, -1)[kept], nobody])
    unless = np.concatenate([carried.unless[kept], carried.line_unless])
    left = np.concatenate([carried.left_scn[kept], nobody])
    row_ids = whole(light.table["_cdc_row_id"])
    columns = {
        "cs": pa.array(scn[change]),
        "o": pa.array(ordinal[change]),
        "at": pa.array(np.concatenate([carried.column[kept], nobody])),
        "src_cs": _taken(pa.array(scn), source),
        "src_o": _taken(pa.array(ordinal), source),
        "least": pa.array(np.where(read >= 0, scn[read], 0) if count else nobody),
        "most": pa.array(np.where(read >= 0, scn[read], left - 1) if count else nobody),
        "rid": _taken(row_ids, np.concatenate([np.full(entries, -1), carried.line_of])),
    }
    for place, (before, after) in enumerate(zip(light.before, light.after, strict=True)):
        columns[f"k{place}"] = pc.coalesce(_taken(before, origin), _taken(after, read))
        columns[f"u{place}"] = _taken(before, unless)
    return pa.table(columns)


def _taken(values: pa.Array, places: Any) -> pa.Array:
    """The values at these places, NULL for -1."""
    return values.take(pa.array(places, mask=places < 0))


def carried_sql(
    changes: str,
    schema: TableSchema,
    absent: Sequence[str],
    added: AddedColumns,
    origin: str,
    carried: CarriedView,
) -> str:
    """SELECT of the change log's columns, in which changes of key have what they carry along, and
    changes the ROW_IDs that are known.

    Args:
        changes: A relation of SQL with the change log's columns.
        schema: The table.
        absent: Columns that some change lacks.
        added: Columns that were added to it.
        origin: SELECT of ``key0…, o0…`` (structs with the field ``v``) and ``origin_scn``: rows as
            they were before.
        carried: By :func:`carried_view`.
    """
    values = ", ".join(
        f"FIRST(CASE WHEN p.at = {i} THEN IF(p.src_o IS NULL, g.o{i}, {_carried('s', column, added)}) END, TRUE) AS f{i}"
        for i, column in enumerate(absent)
    )
    keys = range(len(schema.key))
    same_origin = " AND ".join(f"g.key{i} = p.k{i}" for i in keys)
    same_unless = " AND ".join(f"u.key{i} = p.u{i}" for i in keys)
    rows = carried.name
    if carried.is_conditional:
        rows = f"(SELECT p.* FROM {rows} p LEFT ANTI JOIN ({origin}) u ON {same_unless})"
    return f"""
WITH filled AS (
  SELECT p.cs, p.o, FIRST(p.rid, TRUE) AS rid, {values}
  FROM {rows} p
  LEFT JOIN {changes} s ON s._cdc_commit_scn = p.src_cs AND s._cdc_ordinal = p.src_o
  LEFT JOIN ({origin}) g ON {same_origin} AND g.origin_scn BETWEEN p.least AND p.most
  GROUP BY p.cs, p.o
)
SELECT {_rewritten(schema, absent)}
FROM {changes} c LEFT JOIN filled f
  ON c._cdc_commit_scn = f.cs AND c._cdc_ordinal = f.o AND c._cdc_op IN ('c', 'u', 'd')
"""


def _carried(change: str, column: str, added: AddedColumns) -> str:
    """The column of a change's new image, as a struct. A row from before the column was added has
    its default."""
    value = f"{change}.after.{quote_name(column)}"
    if column in added:
        own = added[column]
        default = sql_literal(own.default.as_py(), own.default.type)
        value = f"IF({change}._cdc_columns <= {own.place}, {default}, {value})"
    return f"NAMED_STRUCT('v', {value})"


def _rewritten(schema: TableSchema, absent: Sequence[str]) -> str:
    """The change log's columns, with ``after`` and ``_cdc_absent`` rewritten where something was
    found."""
    slots = {column: f"f.f{i}" for i, column in enumerate(absent)}
    fields = ", ".join(
        f"{string_literal(column)}, "
        + (
            f"IF({_fills(column, slots[column])}, {slots[column]}.v, c.after.{quote_name(column)})"
            if column in slots
            else f"c.after.{quote_name(column)}"
        )
        for column in schema.column_names
    )
    still = " AND ".join(
        f"NOT (a = {string_literal(column)} AND {slot} IS NOT NULL)"
        for column, slot in slots.items()
    )
    kept = (
        "c._cdc_op, c._cdc_commit_scn, c._cdc_ordinal, c._cdc_xid, c._cdc_snapshot, c._cdc_columns"
    )
    return (
        f"{kept}, COALESCE(c._cdc_row_id, f.rid) AS _cdc_row_id, "
        f"FILTER(c._cdc_absent, a -> {still}) AS _cdc_absent, c.before, "
        f"IF(c.after IS NULL, NULL, NAMED_STRUCT({fields})) AS after"
    )


def _fills(column: str, slot: str) -> str:
    return f"ARRAY_CONTAINS(c._cdc_absent, {string_literal(column)}) AND {slot} IS NOT NULL"


def mirror_origin(mirror: str, schema: TableSchema, absent: Sequence[str]) -> str:
    """Origin for a window: the mirror's rows. ``mirror`` is a relation of SQL."""
    keys = ", ".join(f"{quote_name(key)} AS key{i}" for i, key in enumerate(schema.key))
    values = ", ".join(
        f"NAMED_STRUCT('v', {quote_name(column)}) AS o{i}" for i, column in enumerate(absent)
    )
    return f"SELECT {keys}, {values}, {COMMIT_SCN} AS origin_scn FROM {mirror}"


def history_origin(
    history: str, schema: TableSchema, absent: Sequence[str], added: AddedColumns
) -> str:
    """Origin for a derivation from the change log alone: the rows that chunks brought."""
    keys = ", ".join(f"after.{quote_name(key)} AS key{i}" for i, key in enumerate(schema.key))
    values = ", ".join(f"{_carried('h', column, added)} AS o{i}" for i, column in enumerate(absent))
    return (
        f"SELECT {keys}, {values}, {COMMIT_SCN} AS origin_scn FROM {history} h WHERE _cdc_op = 'r'"
    )
