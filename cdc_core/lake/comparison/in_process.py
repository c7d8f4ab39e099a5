"""How does this process compare a version of a mirror with Oracle's rows? Over Arrow, by the rule
of :mod:`cdc_core.lake.comparison.sides`; delta-rs reads the mirror.

Rows pass in batches. What is held of each row is :data:`NUMBERED`: the SHA-256 of its key's text,
of which the first 16 bytes identify the key and the first number its bucket, and the row's number
in two halves, so that sums of them stay whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.decode.widened import widened
from cdc_core.delta.errors import at_work
from cdc_core.errors import MIRROR_HINT, LandingDamagedError
from cdc_core.lake.comparison.sides import (
    HEX_DIGITS,
    Differences,
    MirrorComparison,
    Side,
    Sums,
    Suspects,
)
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import columns_of
from cdc_core.model.reports import ComparisonEngine
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import TableSchema

ROWS_AT_ONCE = 4_000_000
BUCKETS = 4096
"""Enough for a side that is a thousand times as large as the mirror should be."""

_BATCH_ROWS = 16_384
_SEPARATOR = "\x1f"
_HALF = 30
_KEY = pa.binary(16)

NUMBERED = pa.schema(
    [("key", _KEY), ("bucket", pa.int64()), ("high", pa.int64()), ("low", pa.int64())]
)
"""One row per row that was looked at."""


@dataclass(frozen=True, slots=True)
class ArrowComparison(MirrorComparison):
    """A version of one mirror that is compared; fields as for
    :class:`cdc_core.lake.comparison.in_spark.SparkComparison`."""

    work: TableWork
    schema: TableSchema
    version: int
    own: TableSchema
    rows_at_once: int = ROWS_AT_ONCE
    engine: ComparisonEngine = "arrow"

    def sums_of_files(self, paths: Sequence[str], *, held_only: bool = False) -> Side:
        numbered = [self._numbered(batch) for batch in self._of_oracle(paths)]
        rows = pa.concat_tables([NUMBERED.empty_table(), *numbered])
        if held_only:
            rows = rows.filter(pc.is_in(rows["key"], value_set=self._keys_of_mirror()))
        return _sums(_by_key(rows))

    def sums_of_mirror(self) -> Side:
        return _sums(_by_key(self._of_mirror()))

    def keep_keys(
        self, paths: Sequence[str], wanted: Suspects, folder: str, *, held_only: bool = False
    ) -> None:
        """Each row of the wanted buckets is written, with its key."""
        held = self._keys_of_mirror() if held_only else None
        kept = []
        for batch in self._of_oracle(paths):
            rows = self._with_key(batch).filter(_in_buckets(self._numbered(batch), wanted))
            kept.append(rows if held is None else rows.filter(pc.is_in(rows["key"], held)))
        schema = self._kept_schema
        with self.reading():
            Path(folder).mkdir(parents=True)
            found = pa.concat_tables([schema.empty_table(), *kept])
            pq.write_table(found, f"{folder}/keys.parquet")

    def differing_keys(
        self, kept: Sequence[str], wanted: Suspects, *, keys_max: int
    ) -> Differences:
        with self.reading():
            oracle = pa.concat_tables([pq.read_table(f"{folder}/keys.parquet") for folder in kept])
            own = [
                self._with_key(batch).filter(_in_buckets(self._numbered(batch), wanted))
                for batch in self._batches_of_mirror()
            ]
        delta = pa.concat_tables([self._kept_schema.empty_table(), *own])
        both = _by_key(oracle).join(
            _by_key(delta), "key", join_type="full outer", right_suffix=" d"
        )
        differing = both.filter(_differ(both))["key"]
        texts = pa.concat_tables([one.select(["key", *self._shown]) for one in (oracle, delta)])
        keys = self._first_keys(texts, differing, keys_max)
        return Differences(
            len(differing), tuple(tuple(row[name] for name in self._shown) for row in keys)
        )

    @property
    def _shown(self) -> list[str]:
        """What the key's columns are called beside ours: they may be called anything."""
        return [f"key {name}" for name in self.schema.key]

    @property
    def _kept_schema(self) -> pa.Schema:
        kinds = dict(columns_of(self.schema))
        shown = zip(self._shown, (kinds[name] for name in self.schema.key), strict=True)
        return pa.schema([*NUMBERED, *(pa.field(*one) for one in shown)])

    def _first_keys(
        self, texts: pa.Table, differing: pa.ChunkedArray, keys_max: int
    ) -> list[dict[str, Any]]:
        """The first of these keys by their values, NULL before all others."""
        found = texts.filter(pc.is_in(texts["key"], value_set=differing.combine_chunks()))
        numbered = found.append_column("row", pa.array(np.arange(found.num_rows)))
        first = numbered.group_by("key").aggregate([("row", "min")])["row_min"]
        found = found.take(first)
        for at, field in enumerate(found.schema):
            if pa.types.is_timestamp(field.type):  # as Spark gives them
                plain = found[field.name].cast(pa.timestamp("us"))
                found = found.set_column(at, field.name, plain)
        return nsmallest(keys_max, found.to_pylist(), key=self._order)

    def _order(self, row: dict[str, Any]) -> list[tuple[bool, Any]]:
        values = (row[name] for name in self._shown)
        return [(one is not None, 0 if one is None else one) for one in values]

    def _of_oracle(self, paths: Sequence[str]) -> Iterator[pa.Table]:
        try:
            for path in paths:
                with pq.ParquetFile(path) as file:
                    names = list(self.own.column_names)
                    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names):
                        yield self._as_held(pa.Table.from_batches([batch]))
        except (OSError, pa.ArrowInvalid) as error:
            raise LandingDamagedError(
                "looking at Oracle's rows: a file is missing or cannot be read",
                hint="Check the disk of the folder for temporary files, and try again.",
                **self.work.facts(),
            ) from error

    def _of_mirror(self) -> pa.Table:
        with self.reading():
            found = [self._numbered(batch) for batch in self._batches_of_mirror()]
        return pa.concat_tables([NUMBERED.empty_table(), *found])

    def _keys_of_mirror(self) -> pa.Array:
        return whole(self._of_mirror()["key"])

    def _batches_of_mirror(self) -> Iterator[pa.Table]:
        from deltalake import DeltaTable, QueryBuilder

        table = DeltaTable(self.work.mirror, version=self.version)
        names = list(self.schema.column_names)
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        found = QueryBuilder().register("mirror", table).execute(f"SELECT {columns} FROM mirror")
        for batch in pa.RecordBatchReader.from_stream(found):
            yield self._as_held(pa.Table.from_batches([batch]).rename_columns(names))

    def _as_held(self, rows: pa.Table) -> pa.Table:
        """Values in the types of ``schema``: Oracle's rows, or this version of the mirror, may
        have narrower ones."""
        for name, kind in columns_of(self.schema):
            at = rows.column_names.index(name)
            rows = rows.set_column(at, name, widened(_whole(rows[name]), kind))
        return rows

    def _numbered(self, rows: pa.Table) -> pa.Table:
        """What :data:`NUMBERED` says of these rows."""
        texts = {name: _texts(_whole(rows[name])) for name in self.schema.column_names}
        row_hashes = _hashes([texts[name] for name in self.schema.column_names])
        keys = _hashes([texts[name] for name in self.schema.key])
        number = _first_number(row_hashes) >> (64 - 4 * HEX_DIGITS)
        bucket = _first_number(keys) % BUCKETS
        columns = [
            pa.FixedSizeBinaryArray.from_buffers(
                _KEY, len(keys), [None, pa.py_buffer(np.ascontiguousarray(keys[:, :16]))]
            ),
            pa.array(bucket.astype(np.int64)),
            pa.array((number >> _HALF).astype(np.int64)),
            pa.array((number & (2**_HALF - 1)).astype(np.int64)),
        ]
        return pa.Table.from_arrays(columns, schema=NUMBERED)

    def _with_key(self, rows: pa.Table) -> pa.Table:
        found = self._numbered(rows)
        for shown, name in zip(self._shown, self.schema.key, strict=True):
            found = found.append_column(shown, rows[name])
        return found.cast(self._kept_schema)

    def reading(self) -> AbstractContextManager[None]:
        """For a block that reads the mirror's rows, or what was kept of them."""
        facts = self.work.facts(version=self.version)
        return at_work("looking at the mirror's rows", facts, hint=MIRROR_HINT)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, in the plain form of its type."""
    kind = column.type
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        kind = pa.string()
    elif pa.types.is_large_binary(kind) or kind == pa.binary_view():
        kind = pa.binary()
    return pa.concat_arrays([pa.array([], kind), *column.cast(kind).chunks])


def _in_buckets(numbered: pa.Table, wanted: Suspects) -> pa.Array:
    return pc.is_in(numbered["bucket"], value_set=pa.array(wanted.buckets, pa.int64()))


def _by_key(rows: pa.Table) -> pa.Table:
    """``rows``, ``bucket``, ``high`` and ``low`` of each key."""
    asked: list[Any] = [("high", "sum"), ("low", "sum"), ("bucket", "min"), ("bucket", "count")]
    names = {"high_sum": "high", "low_sum": "low", "bucket_min": "bucket", "bucket_count": "rows"}
    groups = rows.group_by("key").aggregate(asked)
    return groups.rename_columns([names.get(one, one) for one in groups.column_names])


def _differ(both: pa.Table) -> pa.Array:
    """Of each key of either side: is it not the same, once, on both?"""
    same = pc.and_(*(pc.equal(pc.fill_null(both[name], 0), 1) for name in ("rows", "rows d")))
    for half in ("high", "low"):
        values = (pc.fill_null(both[name], -1) for name in (half, f"{half} d"))
        same = pc.and_(same, pc.equal(*values))
    return pc.invert(same)


def _sums(groups: pa.Table) -> Side:
    is_double = pc.greater(groups["rows"], 1)
    marked = groups.append_column("double", pc.cast(is_double, pa.int64()))
    asked: list[Any] = [(name, "sum") for name in ("rows", "high", "low", "double")]
    found = marked.group_by("bucket").aggregate(asked).to_pylist()
    return {
        one["bucket"]: Sums(
            one["rows_sum"], (one["high_sum"] << _HALF) + one["low_sum"], one["double_sum"]
        )
        for one in found
    }


def _hashes(texts: Sequence[pa.Array]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The SHA-256 of each row's text, 32 bytes a row."""
    joined = pc.binary_join_element_wise(*texts, _SEPARATOR) if len(texts) > 1 else texts[0]
    digests = b"".join(sha256(text).digest() for text in joined.cast(pa.binary()).to_pylist())
    return np.frombuffer(digests, dtype=np.uint8).reshape(-1, 32)


def _first_number(hashes: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[Any]]:
    """The first eight bytes of each."""
    return np.ascontiguousarray(hashes[:, :8]).view(">u8").reshape(-1).astype(np.uint64)


def _texts(values: pa.Array) -> pa.Array:
    """Each value's canonical text, with ``V`` before it; ``N`` for NULL."""
    kind = values.type
    if pa.types.is_string(kind):
        plain = pc.replace_substring(values, "\\", "\\\\")
        found = pc.replace_substring(plain, _SEPARATOR, "\\u")
    elif pa.types.is_binary(kind):
        texts = [None if one is None else one.hex().upper() for one in values.to_pylist()]
        found = pa.array(texts, pa.string())
    elif pa.types.is_timestamp(kind):
        found = values.cast(pa.int64()).cast(pa.string())
    elif pa.types.is_floating(kind):
        shortest = values.cast(pa.string()).to_pylist()
        found = pa.array([None if one is None else _float_text(one) for one in shortest])
        found = found.cast(pa.string())
    elif pa.types.is_decimal(kind):
        found = values.cast(pa.string())
        if pc.any(pc.match_substring(found, "E")).as_py():  # Arrow prints small ones so
            plain_texts = [None if one is None else f"{one:f}" for one in values.to_pylist()]
            found = pa.array(plain_texts, pa.string())
    else:
        found = values.cast(pa.string())
    return pc.fill_null(pc.binary_join_element_wise("V", found, ""), "N")


def _float_text(shortest: str) -> str:
    """What Java prints of a float, from the shortest text that gives it back."""
    value = float(shortest)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value) or not value:
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "0.0")
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    text, power = "".join(map(str, digits)), int(exponent)
    point = len(text) + power  # value = 0.text * 10**point
    if -2 <= point <= 7:
        whole = text[: max(point, 0)].ljust(max(point, 1), "0")
        plain = f"{whole}.{'0' * max(-point, 0) + text[max(point, 0) :] or '0'}"
    else:
        plain = f"{text[0]}.{text[1:] or '0'}E{point - 1}"
    return f"-{plain}" if sign else plain
