"""Where does a row that changes its key get the columns that the change does not carry?

LogMiner leaves LOBs out of an update's old image, so a change of key can lack them. The row is followed by its ROW_ID through
the window: the last present value before the change counts, from an earlier change, else from the mirror's row of the key
that the row had when the window began. Chains of key changes need nothing more, since the ROW_ID stays.

A row that came in this window has no ROW_ID in its insert, if its table has LOBs: the statement that writes them follows, with the
ROW_ID. Where the last that happened to the first key was such an insert, the row is that one's: at the end of a statement a key is one
row's. Its value is then what the insert, or a later change of that key, carries. Where the first thing seen of the row is that it
leaves the key, in the insert's own transaction, one MERGE may have moved it away and inserted another: then the row is the insert's only
if nobody can have had the key before, by the mirror and by all changes of the window.

Changes that write LOBs may have no ROW_ID either. Where the first key has met nothing but such changes in place, in the window and before
the row is seen, the row that they changed is the row: none left the key or came to it. What they carry last counts, else the mirror.

What cannot be proved is left missing, and the MERGE refuses it: a row without a known ROW_ID, changes of one ROW_ID that do
not join key to key, a first key that an earlier transaction of the window had touched otherwise, and that MERGE. (Other rows may touch the key in the same transaction, since Oracle checks unique keys at
the end of a statement.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdc_core.lake.reduce import moved_sql
from cdc_core.lake.tables import delta, quote_name, string_literal
from cdc_core.schema.table import TableSchema
from cdc_core.stage.layout import COMMIT_SCN

_AT = "NAMED_STRUCT('cs', _cdc_commit_scn, 'o', _cdc_ordinal)"


def carried_sql(
    changes: str,
    schema: TableSchema,
    absent: Sequence[str],
    defaults: Mapping[str, str],
    origin: str,
    *,
    has_gaps: bool,
) -> str:
    """SELECT of the change log's columns.

    Args:
        changes: A relation of SQL with the change log's columns.
        schema: The table.
        absent: Columns that some change lacks.
        defaults: SQL of the defaults of columns that were added to the table.
        origin: SELECT of ``key0…, o0…`` (structs with the field ``v``) and ``origin_scn``: rows as they were before.
        has_gaps: Changes of the table are in quarantine or come later, so a key may have had a row that nothing shows.
    """
    row = "PARTITION BY _cdc_row_id ORDER BY _cdc_commit_scn, _cdc_ordinal"
    run = "PARTITION BY _cdc_row_id, run ORDER BY _cdc_commit_scn, _cdc_ordinal"
    before_key = ", ".join(f"before.{quote_name(key)}" for key in schema.key)
    after_key = ", ".join(f"after.{quote_name(key)}" for key in schema.key)
    earlier = ", ".join(
        f"LAST({_present(column, schema, defaults)}, TRUE) OVER ({run} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS c{i}"
        for i, column in enumerate(absent)
    )
    keys = [f"key{i}" for i in range(len(schema.key))]
    first_key = ", ".join(
        f"FIRST(before.{quote_name(key)}) OVER runs AS {slot}"
        for key, slot in zip(schema.key, keys, strict=True)
    )
    same_key = " AND ".join(f"f.{slot} = g.{slot}" for slot in keys)
    touched = _touched_sql(changes, schema, absent, defaults)
    return f"""
WITH numbered AS (
  SELECT *, SUM(IF(_cdc_op = 'c', 1, 0)) OVER ({row})
    + COALESCE(SUM(IF(_cdc_op = 'd', 1, 0)) OVER ({row} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS run
  FROM {changes} WHERE _cdc_row_id IS NOT NULL AND _cdc_op IN ('c', 'u', 'd')
), linked AS (
  SELECT *, COALESCE(LAG(NAMED_STRUCT('k', STRUCT({after_key}))) OVER runs
      <> NAMED_STRUCT('k', STRUCT({before_key})), FALSE) AS torn,
    {earlier}, {first_key}, FIRST(_cdc_op) OVER runs AS first_op,
    FIRST({_AT}) OVER runs AS first_at, FIRST(_cdc_xid) OVER runs AS first_xid, FIRST({moved_sql(schema)}) OVER runs AS first_moves
  FROM numbered WINDOW runs AS ({run})
), followed AS (
  SELECT *, COALESCE(BOOL_OR(torn) OVER (PARTITION BY _cdc_row_id, run), FALSE) AS broken FROM linked
), moved AS (
  SELECT * FROM followed WHERE {moved_sql(schema)} AND SIZE(_cdc_absent) > 0 AND NOT broken
), filled AS (
  SELECT f._cdc_commit_scn AS cs, f._cdc_ordinal AS o, {_filled(schema, absent, has_gaps=has_gaps)}
  FROM moved f
  LEFT JOIN ({touched}) h
    ON {same_key.replace("g.", "h.")} AND h.at < f.first_at AND (h.rid IS NULL OR h.xid <> f.first_xid)
  LEFT JOIN ({origin}) g
    ON {same_key} AND f.first_op = 'u' AND f.run = 0 AND f.first_at.cs > g.origin_scn
  GROUP BY f._cdc_commit_scn, f._cdc_ordinal
)
SELECT {_rewritten(schema, absent)}
FROM {changes} c LEFT JOIN filled f ON c._cdc_commit_scn = f.cs AND c._cdc_ordinal = f.o AND c._cdc_op = 'u'
"""


def _touched_sql(
    changes: str, schema: TableSchema, absent: Sequence[str], defaults: Mapping[str, str]
) -> str:
    """What happened to which key: a row came by an insert, came or left otherwise, or was changed in its place."""
    moved = moved_sql(schema)
    images = {
        "before": f"IF(_cdc_op = 'd' OR {moved}, 'left', 'set')",
        "after": f"CASE WHEN _cdc_op = 'c' THEN 'inserted' WHEN {moved} THEN 'moved in' ELSE 'set' END",
    }

    def half(image: str, kind: str) -> str:
        own = [f"{image}.{quote_name(key)} AS key{i}" for i, key in enumerate(schema.key)]
        values = [
            f"{_present(column, schema, defaults) if image == 'after' else 'NULL'} AS v{i}"
            for i, column in enumerate(absent)
        ]
        columns = [*own, "_cdc_xid AS xid", "_cdc_row_id AS rid", f"{_AT} AS at", f"{kind} AS kind"]
        return f"SELECT {', '.join([*columns, *values])} FROM {changes} WHERE {image} IS NOT NULL AND _cdc_op <> 'r'"

    return " UNION ALL ".join(half(image, kind) for image, kind in images.items())


def _present(column: str, schema: TableSchema, defaults: Mapping[str, str]) -> str:
    """The column as a struct if the change carries it, else NULL. What an insert does not list is NULL in its row, or the default of a
    column that was added later."""
    value = f"NAMED_STRUCT('v', after.{quote_name(column)})"
    unlisted = value
    if column in defaults:
        at = schema.column_names.index(column)
        unlisted = f"IF(_cdc_columns <= {at}, NAMED_STRUCT('v', {defaults[column]}), {value})"
    absent = f"ARRAY_CONTAINS(_cdc_absent, {string_literal(column)})"
    return f"CASE WHEN _cdc_op = 'd' THEN NULL WHEN NOT {absent} THEN {value} WHEN _cdc_op = 'c' THEN {unlisted} END"


def _filled(schema: TableSchema, absent: Sequence[str], *, has_gaps: bool) -> str:
    inserted = "MAX(h.at) FILTER (WHERE h.kind = 'inserted' AND h.rid IS NULL)"
    other = "MAX(h.at) FILTER (WHERE h.kind IN ('left', 'moved in') OR h.rid IS NOT NULL)"
    before = "COUNT_IF(h.xid = f.first_xid) = 0"
    if not schema.key_is_deferred:
        before = f"({before} OR NOT BOOL_OR(f.first_moves))"
    if not has_gaps:
        strangers = (
            "COUNT_IF(h.kind IN ('left', 'moved in') OR h.rid IS NOT NULL OR h.xid <> f.first_xid)"
        )
        is_first = (
            f"COUNT(g.origin_scn) = 0 AND {strangers} = 0 AND COUNT_IF(h.kind = 'inserted') = 1"
        )
        before = f"({before} OR {is_first})"
    is_of_insert = f"{before} AND COALESCE({inserted} > {other}, {inserted} IS NOT NULL)"
    elsewhere = " OR h.xid = f.first_xid" if schema.key_is_deferred else ""
    is_in_place = f"COUNT_IF(h.kind <> 'set' OR h.rid IS NOT NULL{elsewhere}) = 0"
    if has_gaps:
        is_in_place = "COUNT(h.at) = 0"
    return ", ".join(
        f"COALESCE(FIRST(f.c{i}), CASE WHEN {is_in_place} THEN "
        f"COALESCE(MAX_BY(h.v{i}, h.at) FILTER (WHERE h.v{i} IS NOT NULL), MAX_BY(g.o{i}, g.origin_scn)) "
        f"WHEN {is_of_insert} THEN MAX_BY(h.v{i}, h.at) FILTER (WHERE h.v{i} IS NOT NULL) END) AS f{i}"
        for i in range(len(absent))
    )


def _rewritten(schema: TableSchema, absent: Sequence[str]) -> str:
    """The change log's columns, with ``after`` and ``_cdc_absent`` rewritten where something was found."""
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
    kept = "c._cdc_op, c._cdc_commit_scn, c._cdc_ordinal, c._cdc_xid, c._cdc_snapshot, c._cdc_row_id, c._cdc_columns"
    return (
        f"{kept}, FILTER(c._cdc_absent, a -> {still}) AS _cdc_absent, c.before, "
        f"IF(f.cs IS NULL, c.after, NAMED_STRUCT({fields})) AS after"
    )


def _fills(column: str, slot: str) -> str:
    return f"ARRAY_CONTAINS(c._cdc_absent, {string_literal(column)}) AND {slot} IS NOT NULL"


def mirror_origin(mirror: str, schema: TableSchema, absent: Sequence[str]) -> str:
    keys = ", ".join(f"{quote_name(key)} AS key{i}" for i, key in enumerate(schema.key))
    values = ", ".join(
        f"NAMED_STRUCT('v', {quote_name(column)}) AS o{i}" for i, column in enumerate(absent)
    )
    return f"SELECT {keys}, {values}, {COMMIT_SCN} AS origin_scn FROM {delta(mirror)}"


def history_origin(history: str, schema: TableSchema, absent: Sequence[str]) -> str:
    """Origin for a derivation from the change log alone: the rows that chunks brought."""
    keys = ", ".join(f"after.{quote_name(key)} AS key{i}" for i, key in enumerate(schema.key))
    values = ", ".join(
        f"NAMED_STRUCT('v', after.{quote_name(column)}) AS o{i}" for i, column in enumerate(absent)
    )
    return f"SELECT {keys}, {values}, {COMMIT_SCN} AS origin_scn FROM {history} WHERE _cdc_op = 'r'"
