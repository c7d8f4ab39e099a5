"""How many rows with equal values does a whole change log leave? Generated Spark SQL, one row per
digest and number.

It is the rule of :mod:`cdc_core.stage.copies`, which has a window's changes, for what is derived
from everything that the change log has.
"""

from __future__ import annotations

from cdc_core.errors import LakeError
from cdc_core.lake.tables import delta, quote_name, string_literal
from cdc_core.schema.table import ROW_COPY, ROW_DIGEST, TableSchema
from cdc_core.spark.session import packed_error
from cdc_core.stage.copies import TOO_FEW, TOO_FEW_HINT
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL
from cdc_core.stage.merging_copies import another_mirror

_SAME = f"before.{ROW_DIGEST} <=> after.{ROW_DIGEST}"


def copies_sql(
    changes: str,
    schema: TableSchema,
    read_scn: int,
    wanted: str | None = None,
    *,
    has_gaps: bool = False,
) -> str:
    """SELECT with one row per row of the table.

    Args:
        changes: A relation with the change log's columns.
        schema: The table.
        read_scn: The SCN of the snapshot: what committed up to it is in the rows of its chunks.
        wanted: A relation of the digests that are looked at, None for all. An update may touch one
            that is wanted and one that is not.
        has_gaps: Commits that belong between these changes come to light later.

    Returns:
        SQL of the mirror's columns, ``_cdc_kind`` (``row``) and ``_cdc_missing`` (nothing). It
        fails where more copies go than are there.
    """
    error = LakeError(TOO_FEW, hint=TOO_FEW_HINT, table=schema.table)
    stop = f"CAST(RAISE_ERROR({string_literal(packed_error(error))}) AS BIGINT)"
    values = ", ".join(
        f"top.img.{quote_name(column)} AS {quote_name(column)}"
        for column in schema.as_in_rows().column_names
    )
    own = "" if wanted is None else f" LEFT SEMI JOIN {wanted} w ON events.digest = w.{ROW_DIGEST}"
    up_to_here = (
        "PARTITION BY digest ORDER BY cs, o ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    )
    short, short_at_end = (
        (f" - LEAST(MIN(raised) OVER ({one}), 0)" if has_gaps else "")
        for one in (up_to_here, "PARTITION BY digest")
    )
    return f"""
WITH counted AS (
  SELECT {COMMIT_SCN} AS cs, {ORDINAL} AS o, before, after FROM {changes}
  WHERE (_cdc_op = 'r' OR {COMMIT_SCN} > {read_scn}) AND NOT ({_SAME})
), events AS (
  SELECT cs, o, e.added, e.img, e.img.{ROW_DIGEST} AS digest
  FROM counted LATERAL VIEW EXPLODE(ARRAY(
    NAMED_STRUCT('added', -1, 'img', before), NAMED_STRUCT('added', 1, 'img', after)
  )) exploded AS e WHERE e.img IS NOT NULL
), summed AS (
  SELECT *, SUM(added) OVER ({up_to_here}) AS raised, SUM(added) OVER (PARTITION BY digest) AS raised_at_end FROM events{own}
), piled AS (
  SELECT *, raised{short} AS height, raised_at_end{short_at_end} AS copies FROM summed
), tops AS (
  SELECT digest, height, MAX_BY(NAMED_STRUCT('cs', cs, 'o', o, 'img', img), NAMED_STRUCT('cs', cs, 'o', o)) AS top
  FROM piled WHERE height < 0 OR (added > 0 AND height <= copies) GROUP BY digest, height
)
SELECT digest AS {ROW_DIGEST}, height AS {ROW_COPY}, {values}, top.cs AS {COMMIT_SCN},
  IF(height < 0, {stop}, top.o) AS {ORDINAL}, 'row' AS _cdc_kind, CAST(ARRAY() AS ARRAY<STRING>) AS _cdc_missing
FROM tops
"""


def different_copies_sql(derived: str, mirror: str, wanted: str, schema: TableSchema) -> str:
    """SELECT of what is to be merged so that the mirror has the derived copies of some digests,
    with ``_cdc_new`` beside the columns of :func:`copies_sql`; ``wanted`` is a relation of the
    digests."""
    columns = ", ".join(f"d.{quote_name(column)}" for column in schema.as_in_rows().column_names)
    return f"""
SELECT COALESCE(d.{ROW_DIGEST}, m.{ROW_DIGEST}) AS {ROW_DIGEST}, COALESCE(d.{ROW_COPY}, m.{ROW_COPY}) AS {ROW_COPY}, {columns},
  d.{COMMIT_SCN}, d.{ORDINAL}, IF(d.{ROW_DIGEST} IS NULL, 'del', 'row') AS _cdc_kind, m.{ROW_DIGEST} IS NULL AS _cdc_new
FROM ({derived}) d FULL OUTER JOIN (
  SELECT m.* FROM {delta(mirror)} m LEFT SEMI JOIN {wanted} w ON m.{ROW_DIGEST} = w.{ROW_DIGEST}
) m ON d.{ROW_DIGEST} = m.{ROW_DIGEST} AND d.{ROW_COPY} = m.{ROW_COPY}
WHERE d.{ROW_DIGEST} IS NULL OR m.{ROW_DIGEST} IS NULL OR d.{COMMIT_SCN} <> m.{COMMIT_SCN} OR d.{ORDINAL} <> m.{ORDINAL}
"""


def merge_copies_sql(mirror: str, source: str, schema: TableSchema) -> str:
    """MERGE of ``source`` (columns of ``stage.copies.copies_source``) into the Delta table at
    ``mirror``.

    The mirror was read before: which copies come is a fact about its version then. If a row that is
    to come is there, or one that is to go or to get another position is not, another writer has
    been at work, and the MERGE fails before its commit.
    """
    stop = f"CAST(RAISE_ERROR({string_literal(packed_error(another_mirror(schema)))}) AS BIGINT)"
    columns = [*schema.with_copies().column_names, COMMIT_SCN]
    names = ", ".join(map(quote_name, [*columns, ORDINAL]))
    values = ", ".join(f"s.{quote_name(column)}" for column in columns)
    return f"""
MERGE INTO {delta(mirror)} t USING {source} s ON t.{ROW_DIGEST} = s.{ROW_DIGEST} AND t.{ROW_COPY} = s.{ROW_COPY}
WHEN MATCHED AND s._cdc_kind = 'del' THEN DELETE
WHEN MATCHED THEN UPDATE SET t.{COMMIT_SCN} = IF(s._cdc_new, {stop}, s.{COMMIT_SCN}), t.{ORDINAL} = s.{ORDINAL}
WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values}, IF(s._cdc_new AND s._cdc_kind = 'row', s.{ORDINAL}, {stop}))
"""


def doubled_copies_sql(mirror: str, schema: TableSchema) -> str:
    """SELECT for ``merge.replace_sql`` that numbers the rows anew of digests of which chunks
    brought copies with one number."""
    columns = [*schema.as_in_rows().column_names, COMMIT_SCN, ORDINAL]
    values = ", ".join(map(quote_name, columns))
    return f"""
WITH doubled AS (
  SELECT {ROW_DIGEST} FROM {delta(mirror)} GROUP BY {ROW_DIGEST} HAVING COUNT(*) > COUNT(DISTINCT {ROW_COPY})
), own AS (
  SELECT m.*, ROW_NUMBER() OVER (PARTITION BY m.{ROW_DIGEST} ORDER BY m.{ROW_COPY}) AS _cdc_number
  FROM {delta(mirror)} m LEFT SEMI JOIN doubled d ON m.{ROW_DIGEST} = d.{ROW_DIGEST}
)
SELECT {ROW_DIGEST}, CAST(_cdc_number AS BIGINT) AS {ROW_COPY}, {values}, 'row' AS _cdc_kind FROM own
UNION ALL
SELECT {ROW_DIGEST}, {ROW_COPY}, {", ".join(f"FIRST({quote_name(column)})" for column in columns)}, 'del' FROM own GROUP BY {ROW_DIGEST}, {ROW_COPY}
"""
