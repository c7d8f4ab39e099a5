"""Which state does a whole change log leave for each key? Generated Spark SQL from its rows to one
row per key.

It is the rule of ``stage.reducing``, which has a window's changes, for what is derived from
everything that the change log has, the rows of chunks and the defaults of columns that were added
included.

**Events.** An insert or snapshot row *puts* its key, an update *sets* its key, a delete *deletes*
its key; an update that changes the key deletes the old key and puts the new one. The order is
(commit SCN, ordinal); rows of a chunk stand behind all changes of their SCN.

**Occupants.** Oracle checks unique keys at the end of a statement, so that in ``UPDATE t SET id =
id + 1`` two rows share a key for a while, and "the last event of the key" would delete the wrong
one. Inside one transaction the events of a key are
therefore followed per ROW_ID: a delete ends what its own row did, and reaches the key's occupant
from before the transaction only if that row did not put the key itself. Where LogMiner does not
know an address, order alone decides. A key that was moved to and deleted in one such transaction is
refused, and so is one that Oracle does not check at once and that was inserted before a delete.

**Result.** After the last put or delete of a key, the last present value of each column counts.
Columns that no change of the key carries are named in ``_cdc_missing`` and keep the mirror's value.
After an insert they are NULL, since LogMiner lists what the row holds, and Oracle writes a column's
DEFAULT into a row that is inserted without it; only columns that were added after the insert have
their default there (SQL Language Reference 19c, ALTER TABLE, "add_column_clause").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdc_core.errors import RESNAPSHOT_HINT, DecodeError
from cdc_core.lake.tables import quote_name, string_literal
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import packed_error
from cdc_core.stage.layout import CHUNK_ORDINAL
from cdc_core.stage.reducing import AFTER_DELETE, AMBIGUOUS, TWICE, UNKNOWN_ROW


def reduced_sql(
    changes: str,
    schema: TableSchema,
    *,
    absent: Sequence[str],
    defaults: Mapping[str, str],
    has_gaps: bool = False,
) -> str:
    """SELECT with one row per key that ``changes`` touch.

    Args:
        changes: A view with the change log's columns.
        schema: The table.
        absent: Columns that some change does not carry; the others are taken from the last image as
            a whole.
        defaults: SQL of the default of each column that was added to the table. Rows that were
            inserted before have it; a column that was there when a row was inserted, and that the
            insert does not list, is NULL.
        has_gaps: Changes of the table are in quarantine.

    Returns:
        SQL of the table's columns, ``_cdc_commit_scn`` and ``_cdc_ordinal`` (position of the key's
        last change), ``_cdc_kind`` (``row`` or ``del``), ``_cdc_missing`` (columns without a
        value), ``_cdc_lost`` (a missing column belongs to a row that came from another key, so the
        mirror's value under this key is not it) and ``_cdc_new`` (the key
        came by an insert, and no row of it went: an older row in the mirror would be a second
            one).
    """
    keys = ", ".join(f"key{i}" for i in range(len(schema.key)))
    shared = "MIN(IF(kind = 'put', o, NULL)) OVER whole < MAX(IF(kind = 'del', o, NULL)) OVER whole"
    key_images = ", ".join(
        f"img.{quote_name(column)} AS key{i}" for i, column in enumerate(schema.key)
    )
    present = "".join(
        f",\n    MAX_BY(NAMED_STRUCT('v', img.{quote_name(column)}), pos) FILTER (WHERE (base IS NULL OR pos >= base)"
        f" AND NOT ARRAY_CONTAINS(absent, {string_literal(column)})) AS v{i}"
        for i, column in enumerate(absent)
    )
    return f"""
WITH {events_sql(changes, schema)},
keyed AS (
  SELECT cs, o, op, xid, rid, width, kind, moved, img, absent, {key_images},
    NAMED_STRUCT('cs', cs, 'late', o = {CHUNK_ORDINAL}, 'there', kind <> 'del', 'o', o) AS pos
  FROM events
), known AS (
  SELECT *,
    BOOL_OR(kind = 'del') OVER (PARTITION BY {keys}) AS gone,
    BOOL_OR(rid IS NULL) OVER whole AS unknown,
    BOOL_OR(moved AND kind = 'put') OVER whole AND BOOL_OR(kind = 'del') OVER whole AS crossed,
    COALESCE({shared if schema.key_is_deferred else "FALSE"}, FALSE) AS shared
  FROM keyed WINDOW whole AS (PARTITION BY {keys}, cs, xid)
), lines AS (
  SELECT *, unknown AND crossed AS ambiguous, unknown AND shared AS hidden, IF(unknown, '', rid) AS line FROM known
), lived AS (
  SELECT *,
    COALESCE(BOOL_OR(kind = 'del') OVER (PARTITION BY {keys}, cs, xid, line ORDER BY o
      ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), FALSE) AS ended,
    COALESCE(BOOL_OR(kind = 'put') OVER (PARTITION BY {keys}, cs, xid, line ORDER BY o
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), FALSE) AS own
  FROM lines
), kept AS (
  SELECT * FROM lived WHERE (kind <> 'del' AND NOT ended) OR (kind = 'del' AND NOT own) OR ambiguous OR hidden
), based AS (
  SELECT *,
    MAX(IF(kind IN ('put', 'del'), pos, NULL)) OVER (PARTITION BY {keys}) AS base,
    MIN(IF(kind <> 'del', line, NULL)) OVER (PARTITION BY {keys}, cs, xid)
      <> MAX(IF(kind <> 'del', line, NULL)) OVER (PARTITION BY {keys}, cs, xid) AS twice
  FROM kept
), grouped AS (
  SELECT {keys},
    MAX(pos) AS pos,
    MAX_BY(NAMED_STRUCT('kind', kind, 'img', img), pos) AS last,
    MAX_BY(NAMED_STRUCT('kind', kind, 'op', op, 'width', width), pos) FILTER (WHERE pos = base) AS base,
    BOOL_OR(op = 'c') AND NOT BOOL_OR(gone) AS new,
    BOOL_OR(ambiguous) AS ambiguous, BOOL_OR(hidden) AS hidden, COALESCE(BOOL_OR(twice), FALSE) AS twice{present}
  FROM based GROUP BY {keys}
)
{_final_select(schema, absent, defaults, has_gaps=has_gaps)}
FROM grouped
"""


def events_sql(changes: str, schema: TableSchema) -> str:
    """The CTEs ``changed`` and ``events``: what each change does to which key."""

    def event(kind: str, image: str, moved: str) -> str:
        return f"NAMED_STRUCT('kind', '{kind}', 'moved', {moved}, 'img', {image}, 'absent', absent)"

    return f"""changed AS (
  SELECT _cdc_commit_scn AS cs, _cdc_ordinal AS o, _cdc_op AS op, COALESCE(_cdc_xid, _cdc_snapshot) AS xid, _cdc_columns AS width,
    _cdc_row_id AS rid, COALESCE(_cdc_absent, ARRAY()) AS absent, before, after, {moved_sql(schema)} AS key_moved
  FROM {changes}
), events AS (
  SELECT cs, o, op, xid, rid, width, e.kind, e.moved, e.img, e.absent
  FROM changed LATERAL VIEW EXPLODE(CASE
    WHEN op = 'd' THEN ARRAY({event("del", "before", "FALSE")})
    WHEN key_moved THEN ARRAY({event("del", "before", "TRUE")}, {event("put", "after", "TRUE")})
    WHEN op = 'u' THEN ARRAY({event("set", "after", "FALSE")})
    ELSE ARRAY({event("put", "after", "FALSE")})
  END) exploded AS e
)"""


def moved_sql(schema: TableSchema) -> str:
    """Does a change log row change its row's key?"""
    same = " AND ".join(
        f"before.{quote_name(key)} <=> after.{quote_name(key)}" for key in schema.key
    )
    return f"(_cdc_op = 'u' AND NOT ({same}))"


def _final_select(
    schema: TableSchema, absent: Sequence[str], defaults: Mapping[str, str], *, has_gaps: bool
) -> str:
    slots = {column: f"v{i}" for i, column in enumerate(absent)}
    columns = []
    for at, column in enumerate(schema.column_names):
        if column in schema.key:
            value = f"key{schema.key.index(column)}"
        elif column in slots:
            value = f"{slots[column]}.v"
            if column in defaults:
                older = f"base.op IN ('c', 'r') AND base.width <= {at}"
                value = f"IF({slots[column]} IS NULL AND {older}, {defaults[column]}, {value})"
        else:
            value = f"last.img.{quote_name(column)}"
        columns.append(f"{value} AS {quote_name(column)}")
    missing = ", ".join(
        f"IF({slot} IS NULL AND COALESCE(base.op, '') NOT IN ('c', 'r'), {string_literal(column)}, NULL)"
        for column, slot in slots.items()
        if column not in schema.key
    )
    missing = f"FILTER(ARRAY({missing}), m -> m IS NOT NULL)" if missing else "ARRAY()"
    missing = (
        f"IF(last.kind = 'del', CAST(ARRAY() AS ARRAY<STRING>), CAST({missing} AS ARRAY<STRING>))"
    )
    after_delete = "base.kind = 'del' AND last.kind = 'set'"
    if has_gaps:
        after_delete += f" AND SIZE({missing}) > 0"
    return f"""SELECT {", ".join(columns)}, pos.cs AS _cdc_commit_scn, pos.o AS _cdc_ordinal,
  CASE
    WHEN ambiguous THEN {_stop(schema, AMBIGUOUS)}
    WHEN hidden THEN {_stop(schema, UNKNOWN_ROW)}
    WHEN twice THEN {_stop(schema, TWICE)}
    WHEN {after_delete} THEN {_stop(schema, AFTER_DELETE)}
    WHEN last.kind = 'del' THEN 'del' ELSE 'row'
  END AS _cdc_kind,
  {missing} AS _cdc_missing,
  COALESCE(base.kind = 'put', FALSE) AS _cdc_lost, {"FALSE" if has_gaps else "new"} AS _cdc_new"""


def _stop(schema: TableSchema, message: str) -> str:
    error = DecodeError(message, hint=RESNAPSHOT_HINT, table=schema.table)
    return f"CAST(RAISE_ERROR({string_literal(packed_error(error))}) AS STRING)"
