"""Is a mirror equal to Oracle's rows as of one SCN?

Each side is looked at by itself first: its rows are spread over buckets by a hash of their key, and
each bucket is counted, digested (the rule below) and searched for keys that more than one row has.
Only where the two sides' buckets differ are
keys held against each other: one row per key and side, with count and digest. Buckets by hash,
unlike ranges, are the same on both sides whatever the key's type and the database's sort order are.

**Equal rows.** Where all values identify a row, and equal rows are counted, its key here are the
values themselves, not the digest that the
pipeline makes of them: rows are grouped by all their columns on each side, and both sides must have
as many copies. The mirror's own
marks are looked at by themselves: the copies of a row are numbered from 1 on without holes, and
have one digest; a row of which that is not true counts as a double key.

Memory and disk stay bounded: Oracle's side comes in parts, of which only the sums are kept; the
mirror is read in passes of at most :data:`ROWS_AT_ONCE` rows; and of the buckets that differ no
more than :data:`ROWS_AT_ONCE` rows are held against each other. Beyond that the number of differing
keys is a lower bound.

**The digest.** A value's text: ``N`` for NULL, else ``V`` and: integers and decimals plainly with
the type's scale; text with backslash doubled and the separator U+001F as ``\\u``; binary in
upper-case hex; ``true`` and ``false``; timestamps as microseconds since 1970-01-01; floats as Java
prints the shortest text, with -0 as 0. A row's text joins its columns, in the table's order, with
U+001F. A row's number is the first 15 hex digits of the SHA-256 of its text. The digest is the sum
of all rows' numbers, which no order of the rows changes. ``tests/lake/plain_digest.py`` has the
rule in plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cdc_core.delta.history import read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.lake.definitions.evolution import check_mirror, known_schema, widened_columns
from cdc_core.lake.definitions.type_widening import exact_sql
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import columns_of, delta, quote_name, spark_type
from cdc_core.schema.evolution import holding
from cdc_core.schema.table import ROW_COPY, ROW_DIGEST, TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.spark.session import translated

HEX_DIGITS = 15
"""60 bits of each row: a sum over a billion billion rows still fits into 38 decimal digits."""
ROWS_PER_BUCKET = 1024
BUCKETS_MAX = 2**16
ROWS_AT_ONCE = 20_000_000
_MARKS = (ROW_DIGEST, ROW_COPY)
_ILL_MARKED = f"COUNT(DISTINCT {ROW_DIGEST}) <> 1 OR COUNT(DISTINCT {ROW_COPY}) <> COUNT(*) OR MAX({ROW_COPY}) <> COUNT(*)"
"""Of all copies of a row in the mirror."""


@dataclass(frozen=True, slots=True)
class Sums:
    """One bucket of one side, or a side as a whole."""

    rows: int = 0
    digest: int = 0
    double_keys: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.rows + other.rows,
            self.digest + other.digest,
            self.double_keys + other.double_keys,
        )


Side = Mapping[int, Sums]
"""Sums by bucket; a bucket without rows is not there."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """The buckets in which the sides differ or a key is double, as far as they are looked into;
    ``differences_beyond`` is how many keys differ at least in those that are not."""

    buckets: tuple[int, ...]
    differences_beyond: int


@dataclass(frozen=True, slots=True)
class Differences:
    """Keys that are not the same on both sides. ``keys`` are the first ones, as values of the lake
    in the key's order: row values, which the caller shows to nobody who did not ask. ``copies`` are
    how many rows Oracle and the mirror have of each."""

    count: int
    keys: tuple[tuple[Any, ...], ...]
    copies: tuple[tuple[int, int], ...] = ()


def of_mirror(work: TableWork, schema: TableSchema, version: int) -> MirrorComparison:
    """The comparison of a version of a mirror, with as many buckets as its size asks for.

    Raises:
        SchemaMismatchError: The mirror lacks columns of ``schema``.
        LakeError: There is no mirror.
    """
    own, schema = schema, _as_held(work, schema)
    if (log := work.require_mirror()).version == version:
        check_mirror(work, schema, log)
    rows = count_rows(work.mirror)
    wanted = BUCKETS_MAX if rows is None else -(-rows // ROWS_PER_BUCKET)
    buckets = min(BUCKETS_MAX, 1 << max(0, wanted - 1).bit_length())
    if not schema.is_by_all_columns:
        return MirrorComparison(work, schema, version, buckets, own)
    rows_alone = schema.as_in_rows()
    by_values = replace(rows_alone, key=rows_alone.column_names)
    return MirrorComparison(work, by_values, version, buckets, own.as_in_rows(), counts_rows=True)


def _as_held(work: TableWork, schema: TableSchema) -> TableSchema:
    """The definition with the types that the Delta tables have, which may be wider."""
    known = known_schema(read_log(work.changelog))
    if known is None:
        return schema
    held = {column.stored_as: column for column in holding(schema, known).columns}
    columns = tuple(replace(held[one.stored_as], name=one.name) for one in schema.columns)
    return replace(schema, columns=columns)


def total(side: Side) -> Sums:
    """A side as a whole."""
    return sum(side.values(), Sums())


def added(sides: Iterable[Side]) -> Side:
    """Parts of one side that have no key in common, as one."""
    found: dict[int, Sums] = {}
    for part in sides:
        for bucket, sums in part.items():
            found[bucket] = found.get(bucket, Sums()) + sums
    return found


def suspects(oracle: Side, delta_side: Side, *, rows_max: int = ROWS_AT_ONCE) -> Suspects:
    """Which buckets are to be looked into."""
    nothing = Sums()
    differing = [
        bucket
        for bucket in sorted(oracle.keys() | delta_side.keys())
        if oracle.get(bucket, nothing) != delta_side.get(bucket, nothing)
        or oracle.get(bucket, nothing).double_keys
    ]
    taken: list[int] = []
    left, beyond = rows_max, 0
    for bucket in differing:
        rows = oracle.get(bucket, nothing).rows + delta_side.get(bucket, nothing).rows
        if not taken or rows <= left:
            taken.append(bucket)
            left -= rows
        else:
            ours, theirs = oracle.get(bucket, nothing), delta_side.get(bucket, nothing)
            beyond += max(1, abs(ours.rows - theirs.rows))
    return Suspects(tuple(taken), beyond)


@dataclass(frozen=True, slots=True)
class MirrorComparison:
    """A version of one mirror that is compared. :func:`of_mirror` makes it. Values are compared in
    the types of ``schema``; Oracle's rows have those of ``own``, and so may versions of the mirror
    from before it was given wider ones. ``counts_rows``: equal rows are counted, so the key of
    ``schema`` are all its columns."""

    work: TableWork
    schema: TableSchema
    version: int
    buckets: int
    own: TableSchema
    counts_rows: bool = False

    def sums_of_files(self, paths: Sequence[str], *, held_only: bool = False) -> Side:
        """Sums of rows of Oracle that lie in Parquet files; with ``held_only`` of those whose keys
        the mirror has.

        Raises:
            LandingDamagedError: A file is missing or cannot be read.
        """
        session = self.work.session_for()
        with translated("looking at Oracle's rows", **self.work.facts()):
            self._make_oracle_rows(session, paths, held_only=held_only)
            double = "FALSE" if self.counts_rows else _DOUBLE
            return _collected(session, _sums_sql("oracle_rows", self.schema, self.buckets, double))

    def sums_of_mirror(self) -> Side:
        """Sums of the mirror.

        Raises:
            LakeError: The mirror does not have the version, or lacks a column there.
        """
        session = self.work.session_for()
        rows = count_rows(self.work.mirror) or 0
        passes = min(self.buckets, max(1, -(-rows // ROWS_AT_ONCE)))
        found: dict[int, Sums] = {}
        with translated("looking at the mirror's rows", **self._facts()):
            for number in range(passes):
                bucket = _bucket_sql(self.schema, self.buckets)
                part = f" WHERE PMOD({bucket}, {passes}) = {number}" if passes > 1 else ""
                mirror = f"(SELECT * FROM {self._mirror}{part})"
                double = _ILL_MARKED if self.counts_rows else _DOUBLE
                sql = _sums_sql(mirror, self.schema, self.buckets, double)
                found |= _collected(session, sql)
        return found

    def keep_keys(
        self, paths: Sequence[str], wanted: Suspects, folder: str, *, held_only: bool = False
    ) -> None:
        """Of rows of Oracle in Parquet files, write keys, counts and digests of the wanted buckets
        into a new folder; ``held_only`` as for :meth:`sums_of_files`."""
        session = self.work.session_for()
        with translated("looking at Oracle's rows", **self.work.facts()):
            self._make_oracle_rows(session, paths, held_only=held_only)
            _make_wanted(session, wanted)
            sql = _keys_sql("oracle_rows", self.schema, self.buckets)
            session.sql(sql).coalesce(1).write.parquet(folder)

    def differing_keys(
        self, kept: Sequence[str], wanted: Suspects, *, keys_max: int
    ) -> Differences:
        """Hold what :meth:`keep_keys` wrote against the mirror, key by key."""
        session = self.work.session_for()
        kinds = dict(columns_of(self.schema))
        key = self.schema.key
        keys = ", ".join(map(quote_name, key))
        equal = "<=>" if self.counts_rows else "="
        same = " AND ".join(f"o.{quote_name(k)} {equal} d.{quote_name(k)}" for k in key)
        either = ", ".join(
            f"COALESCE(o.{quote_name(k)}, d.{quote_name(k)}) AS {quote_name(k)}" for k in key
        )
        ddl = ", ".join(f"{quote_name(k)} {spark_type(kinds[k])}" for k in key)
        with translated("comparing keys with Oracle", **self._facts()):
            _make_wanted(session, wanted)
            reader = session.read.schema(f"{ddl}, _cdc_n BIGINT, _cdc_number DECIMAL(38, 0)")
            reader.parquet(*kept).createOrReplaceTempView("kept")
            mirror = _keys_sql(
                f"(SELECT * FROM {self._mirror})",
                self.schema,
                self.buckets,
                *((_MARKS, _ILL_MARKED) if self.counts_rows else ()),
            )
            copies = "o._cdc_n" if self.counts_rows else "1"
            session.sql(f"""
                SELECT {either}, COALESCE(o._cdc_n, 0) AS _cdc_oracle, COALESCE(d._cdc_n, 0) AS _cdc_delta FROM
                  (SELECT {keys}, SUM(_cdc_n) AS _cdc_n, SUM(_cdc_number) AS _cdc_number FROM kept GROUP BY {keys}) o
                FULL OUTER JOIN ({mirror}) d ON {same}
                WHERE NOT (o._cdc_n <=> {copies} AND d._cdc_n <=> {copies} AND o._cdc_number <=> d._cdc_number) OR d._cdc_double
            """).createOrReplaceTempView("differing")
            [(count,)] = session.sql("SELECT COUNT(*) FROM differing").collect()
            first = f"SELECT * FROM differing ORDER BY {keys} LIMIT {keys_max}"
            found = [tuple(row) for row in session.sql(first).collect()]
            return Differences(
                count, tuple(row[:-2] for row in found), tuple((row[-2], row[-1]) for row in found)
            )

    def _make_oracle_rows(self, session: Any, paths: Sequence[str], *, held_only: bool) -> None:
        ddl = ", ".join(
            f"{quote_name(column)} {spark_type(kind)}" for column, kind in columns_of(self.own)
        )
        rows = session.read.schema(ddl).parquet(*paths)
        for name, value in self._wide().items():
            rows = rows.selectExpr("*", f"{value} AS _wide").drop(name)
            rows = rows.withColumnRenamed("_wide", name)
        if held_only:
            keys = ", ".join(map(quote_name, self.schema.key))
            held = session.sql(f"SELECT {keys} FROM {self._mirror}")
            rows = rows.join(held, on=list(self.schema.key), how="left_semi")
        rows.createOrReplaceTempView("oracle_rows")

    @property
    def _mirror(self) -> str:
        mirror = f"{delta(self.work.mirror)} VERSION AS OF {self.version}"
        if not (wide := self._wide()):
            return mirror
        values = ", ".join(f"{value} AS {quote_name(name)}" for name, value in wide.items())
        others = ", ".join(map(quote_name, wide))
        return f"(SELECT * EXCEPT ({others}), {values} FROM {mirror})"

    def _wide(self) -> dict[str, str]:
        """SQL of the columns that Oracle's rows, or this version of the mirror, may have with a
        narrower type."""
        log = read_log(self.work.changelog)
        since = set(widened_columns(log))
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


_DOUBLE = "COUNT(*) > 1"
"""Of all rows of a key."""


def _sums_sql(rows: str, schema: TableSchema, buckets: int, double: str) -> str:
    """Sums by bucket. ``double``: is a key of which these are the rows a double one?"""
    return f"""
        SELECT bucket, SUM(n) AS n, SUM(number) AS digest, COUNT_IF(is_double) AS double_keys
        FROM ({_per_key_sql(rows, schema, buckets, double)}) GROUP BY bucket
    """


def _keys_sql(
    rows: str,
    schema: TableSchema,
    buckets: int,
    marks: Sequence[str] = (),
    double: str = "FALSE",
) -> str:
    """Key, ``_cdc_n``, ``_cdc_number`` and ``_cdc_double`` of the keys in the view ``wanted``'s
    buckets. ``double`` is asked of columns ``marks`` besides."""
    keys = ", ".join(quote_name(key) for key in schema.key)
    own = ", ".join([keys, *marks])
    return f"""
        SELECT {keys}, COUNT(*) AS _cdc_n, CAST(SUM(_cdc_number) AS DECIMAL(38, 0)) AS _cdc_number, {double} AS _cdc_double
        FROM (
          SELECT /*+ BROADCAST(w) */ r.* FROM (
            SELECT {own}, {_row_number_sql(schema)} AS _cdc_number, {_bucket_sql(schema, buckets)} AS _cdc_bucket FROM {rows}
          ) r LEFT SEMI JOIN wanted w ON r._cdc_bucket = w.bucket
        ) GROUP BY {keys}
    """


def _per_key_sql(rows: str, schema: TableSchema, buckets: int, double: str) -> str:
    """Without the key: its columns may be called anything."""
    keys = ", ".join(quote_name(key) for key in schema.key)
    bucket = _bucket_sql(schema, buckets)
    return f"""
        SELECT ANY_VALUE({bucket}) AS bucket, COUNT(*) AS n, SUM({_row_number_sql(schema)}) AS number, {double} AS is_double
        FROM {rows} GROUP BY {keys}
    """


def _bucket_sql(schema: TableSchema, buckets: int) -> str:
    keys = ", ".join(quote_name(key) for key in schema.key)
    return f"PMOD(XXHASH64({keys}), {buckets})"


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
