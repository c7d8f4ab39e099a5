"""How does Spark compare a version of a mirror with Oracle's rows? In SQL, by the rule of
:mod:`cdc_core.lake.comparison.sides`.

The mirror is read in passes of at most :data:`ROWS_AT_ONCE` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_core.delta.history import read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.lake.comparison.sides import (
    HEX_DIGITS,
    Differences,
    MirrorComparison,
    Side,
    Sums,
    Suspects,
)
from cdc_core.lake.definitions.evolution import widened_columns
from cdc_core.lake.definitions.type_widening import exact_sql
from cdc_core.lake.rows.staging import ddl_of
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import columns_of, delta, listed, quote_name, same_key, spark_type
from cdc_core.model.reports import ComparisonEngine
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema, arrow_type
from cdc_core.spark.session import translated

ROWS_AT_ONCE = 20_000_000


@dataclass(frozen=True, slots=True)
class SparkComparison(MirrorComparison):
    """A version of one mirror that is compared. Values are compared in the types of ``schema``;
    Oracle's rows have those of ``own``, and so may versions of the mirror from before it was given
    wider ones."""

    work: TableWork
    schema: TableSchema
    version: int
    buckets: int
    own: TableSchema
    rows_at_once: int = ROWS_AT_ONCE
    engine: ComparisonEngine = "spark"

    def sums_of_files(self, paths: Sequence[str], *, held_only: bool = False) -> Side:
        session = self.work.session_for()
        with translated("looking at Oracle's rows", **self.work.facts()):
            self._make_oracle_rows(session, paths, held_only=held_only)
            return _collected(session, _sums_sql("oracle_rows", self.schema, self.buckets))

    def sums_of_mirror(self) -> Side:
        session = self.work.session_for()
        rows = count_rows(self.work.mirror) or 0
        passes = min(self.buckets, max(1, -(-rows // ROWS_AT_ONCE)))
        found: dict[int, Sums] = {}
        with translated("looking at the mirror's rows", **self._facts()):
            for number in range(passes):
                bucket = _bucket_sql(self.schema, self.buckets)
                part = f" WHERE PMOD({bucket}, {passes}) = {number}" if passes > 1 else ""
                mirror = f"(SELECT * FROM {self._mirror}{part})"
                found |= _collected(session, _sums_sql(mirror, self.schema, self.buckets))
        return found

    def keep_keys(
        self, paths: Sequence[str], wanted: Suspects, folder: str, *, held_only: bool = False
    ) -> None:
        session = self.work.session_for()
        with translated("looking at Oracle's rows", **self.work.facts()):
            self._make_oracle_rows(session, paths, held_only=held_only)
            _make_wanted(session, wanted)
            sql = _keys_sql("oracle_rows", self.schema, self.buckets)
            session.sql(sql).coalesce(1).write.parquet(folder)

    def differing_keys(
        self, kept: Sequence[str], wanted: Suspects, *, keys_max: int
    ) -> Differences:
        session, schema = self.work.session_for(), self.schema
        keys, same = listed(schema.key), same_key(schema, "o", "d")
        either = ", ".join(
            f"COALESCE(o.{key}, d.{key}) AS {key}" for key in map(quote_name, schema.key)
        )
        ddl = ddl_of(pa.schema([arrow_schema(schema).field(key) for key in schema.key]))
        with translated("comparing keys with Oracle", **self._facts()):
            _make_wanted(session, wanted)
            reader = session.read.schema(f"{ddl}, _cdc_n BIGINT, _cdc_number DECIMAL(38, 0)")
            reader.parquet(*kept).createOrReplaceTempView("kept")
            mirror = _keys_sql(f"(SELECT * FROM {self._mirror})", schema, self.buckets)
            session.sql(f"""
                SELECT {either} FROM
                  (SELECT {keys}, SUM(_cdc_n) AS _cdc_n, SUM(_cdc_number) AS _cdc_number FROM kept GROUP BY {keys}) o
                FULL OUTER JOIN ({mirror}) d ON {same}
                WHERE NOT (o._cdc_n <=> 1 AND d._cdc_n <=> 1 AND o._cdc_number <=> d._cdc_number)
            """).createOrReplaceTempView("differing")
            [(count,)] = session.sql("SELECT COUNT(*) FROM differing").collect()
            first = f"SELECT * FROM differing ORDER BY {keys} LIMIT {keys_max}"
            return Differences(count, tuple(tuple(row) for row in session.sql(first).collect()))

    def _make_oracle_rows(self, session: Any, paths: Sequence[str], *, held_only: bool) -> None:
        rows = session.read.schema(ddl_of(arrow_schema(self.own))).parquet(*paths)
        for name, value in self._wide().items():
            rows = rows.selectExpr("*", f"{value} AS _wide").drop(name)
            rows = rows.withColumnRenamed("_wide", name)
        if held_only:
            held = session.sql(f"SELECT {listed(self.schema.key)} FROM {self._mirror}")
            rows = rows.join(held, on=list(self.schema.key), how="left_semi")
        rows.createOrReplaceTempView("oracle_rows")

    @property
    def _mirror(self) -> str:
        mirror = f"{delta(self.work.mirror)} VERSION AS OF {self.version}"
        if not (wide := self._wide()):
            return mirror
        values = ", ".join(f"{value} AS {quote_name(name)}" for name, value in wide.items())
        return f"(SELECT * EXCEPT ({listed(wide)}), {values} FROM {mirror})"

    def _wide(self) -> dict[str, str]:
        """SQL of the columns that Oracle's rows, or this version of the mirror, may have with a
        narrower type."""
        since = set(widened_columns(read_log(self.work.changelog)))
        return {
            one.name: exact_sql(quote_name(one.name), one)
            for one, own in zip(self.schema.columns, self.own.columns, strict=True)
            if one.name in since or arrow_type(one) != arrow_type(own)
        }

    def _facts(self) -> dict[str, object]:
        return self.work.facts(version=self.version)


def _make_wanted(session: Any, wanted: Suspects) -> None:
    rows = [(bucket,) for bucket in wanted.buckets]
    session.createDataFrame(rows, "bucket BIGINT").createOrReplaceTempView("wanted")


def _collected(session: Any, sql: str) -> dict[int, Sums]:
    return {
        row["bucket"]: Sums(row["n"], int(row["digest"]), row["double_keys"])
        for row in session.sql(sql).collect()
    }


def _sums_sql(rows: str, schema: TableSchema, buckets: int) -> str:
    """Sums by bucket. The key is not among what is selected: its columns may be called anything."""
    return f"""
        SELECT bucket, SUM(n) AS n, SUM(number) AS digest, COUNT_IF(n > 1) AS double_keys FROM (
          SELECT ANY_VALUE({_bucket_sql(schema, buckets)}) AS bucket, COUNT(*) AS n, SUM({_row_number_sql(schema)}) AS number
          FROM {rows} GROUP BY {listed(schema.key)}
        ) GROUP BY bucket
    """


def _keys_sql(rows: str, schema: TableSchema, buckets: int) -> str:
    """Key, ``_cdc_n`` and ``_cdc_number`` of the keys in the view ``wanted``'s buckets."""
    keys = listed(schema.key)
    return f"""
        SELECT {keys}, COUNT(*) AS _cdc_n, CAST(SUM(_cdc_number) AS DECIMAL(38, 0)) AS _cdc_number
        FROM (
          SELECT /*+ BROADCAST(w) */ r.* FROM (
            SELECT {keys}, {_row_number_sql(schema)} AS _cdc_number, {_bucket_sql(schema, buckets)} AS _cdc_bucket FROM {rows}
          ) r LEFT SEMI JOIN wanted w ON r._cdc_bucket = w.bucket
        ) GROUP BY {keys}
    """


def _bucket_sql(schema: TableSchema, buckets: int) -> str:
    return f"PMOD(XXHASH64({listed(schema.key)}), {buckets})"


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
