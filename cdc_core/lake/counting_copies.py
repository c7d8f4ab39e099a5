"""How are the copies of a table whose rows are counted merged into its mirror? Generated MERGE
text."""

from __future__ import annotations

from cdc_core.lake.tables import delta, quote_name, string_literal
from cdc_core.schema.table import ROW_COPY, ROW_DIGEST, TableSchema
from cdc_core.spark.session import packed_error
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL
from cdc_core.stage.merging_copies import another_mirror


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
