"""Is a mirror equal to Oracle's rows as of one SCN?

Exact: every row is joined by key and every column compared, NULL equal to NULL and NaN to NaN. Next to that stand counts and
a digest of all values on each side; ``reconcile.digest`` has the digest's rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_core.lake.evolution import check_mirror
from cdc_core.lake.spark import translated
from cdc_core.lake.tables import columns_of, delta, quote_name, spark_type
from cdc_core.lake.work import TableWork
from cdc_core.schema.table import TableSchema

HEX_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison found. ``keys`` are the first differing keys, as text, columns joined by a comma; never values."""

    rows_oracle: int
    rows_delta: int
    differences: int
    keys: tuple[str, ...]
    digest_oracle: str
    digest_delta: str


def compare(
    work: TableWork, schema: TableSchema, paths: Sequence[str], version: int, *, keys_max: int
) -> Comparison:
    """Compare Parquet files of the table's rows with a version of its mirror.

    Raises:
        LandingDamagedError: A file is missing or cannot be read.
        LakeError: The mirror does not have the version, or lacks a column there.
    """
    log = work.require_mirror()
    check_mirror(work, schema, log)
    session = work.open_session()
    ddl = ", ".join(
        f"{quote_name(column)} {spark_type(kind)}" for column, kind in columns_of(schema)
    )
    with translated("comparing with Oracle", **work.facts(version=version)):
        frame = (
            session.read.schema(ddl).parquet(*paths) if paths else session.createDataFrame([], ddl)
        )
        frame.createOrReplaceTempView("oracle_rows")
        session.sql(_joined_sql(work.mirror, schema, version)).createOrReplaceTempView("joined")
        found = session.sql(_SUMMARY).collect()[0]
        keys = _differing_keys(session, schema, keys_max) if found["differences"] else ()
    return Comparison(
        rows_oracle=found["rows_oracle"],
        rows_delta=found["rows_delta"],
        differences=found["differences"],
        keys=keys,
        digest_oracle=f"{int(found['digest_oracle']):x}",
        digest_delta=f"{int(found['digest_delta']):x}",
    )


_SUMMARY = """
    SELECT COUNT(o_number) AS rows_oracle, COUNT(d_number) AS rows_delta, COUNT_IF(differs) AS differences,
      COALESCE(SUM(o_number), 0) AS digest_oracle, COALESCE(SUM(d_number), 0) AS digest_delta
    FROM joined
"""


def _joined_sql(mirror: str, schema: TableSchema, version: int) -> str:
    """One row per key of either side: do they differ, and each side's number for the digest."""
    number = _row_number_sql(schema)
    columns = ", ".join(quote_name(column) for column in schema.column_names)
    on = " AND ".join(f"o.{quote_name(key)} = d.{quote_name(key)}" for key in schema.key)
    equal = " AND ".join(f"o.{quote_name(c)} <=> d.{quote_name(c)}" for c in schema.column_names)
    keys = ", ".join(
        f"COALESCE(o.{quote_name(key)}, d.{quote_name(key)}) AS key{i}"
        for i, key in enumerate(schema.key)
    )
    return f"""
        SELECT {keys}, o.number AS o_number, d.number AS d_number,
          NOT (o.number IS NOT NULL AND d.number IS NOT NULL AND {equal}) AS differs
        FROM (SELECT {columns}, {number} AS number FROM oracle_rows) o
        FULL OUTER JOIN (SELECT {columns}, {number} AS number FROM {delta(mirror)} VERSION AS OF {version}) d
          ON {on}
    """


def _row_number_sql(schema: TableSchema) -> str:
    parts = ", ".join(
        f"COALESCE(CONCAT('V', {_text_sql(quote_name(column), kind)}), 'N')"
        for column, kind in columns_of(schema)
    )
    digits = f"SUBSTR(SHA2(CONCAT_WS(CHR(31), {parts}), 256), 1, {HEX_DIGITS})"
    return f"CAST(CONV({digits}, 16, 10) AS DECIMAL(28, 0))"


def _text_sql(column: str, kind: pa.DataType) -> str:
    """A value's canonical text, NULL for NULL."""
    if pa.types.is_string(kind):
        return f"REPLACE(REPLACE({column}, '\\\\', '\\\\\\\\'), CHR(31), '\\\\u')"
    if pa.types.is_binary(kind):
        return f"HEX({column})"
    if pa.types.is_timestamp(kind):
        return f"CAST(UNIX_MICROS(CAST({column} AS TIMESTAMP_LTZ)) AS STRING)"
    if pa.types.is_floating(kind):
        return f"CAST(IF({column} = 0, CAST(0 AS {spark_type(kind)}), {column}) AS STRING)"
    return f"CAST({column} AS STRING)"


def _differing_keys(session: Any, schema: TableSchema, keys_max: int) -> tuple[str, ...]:
    keys = ", ".join(f"key{i}" for i in range(len(schema.key)))
    rows = session.sql(
        f"SELECT CONCAT_WS(',', {keys}) AS k FROM joined WHERE differs ORDER BY {keys} LIMIT {keys_max}"
    ).collect()
    return tuple(row["k"] for row in rows)
