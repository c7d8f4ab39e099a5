"""How do the columns of LCRs become Arrow columns, in the types of the type table?

Values are bytes as Oracle keeps them, and are read as those are that LogMiner shows of rows from
before a DDL. What an LCR must have and has not, or has and must not, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.change_stream.images import ABSENT, UNTOLD, RefusedValueError
from cdc_core.decode.batch import Operations, ScannedBatch
from cdc_core.decode.kernels.scan import DELETE, INSERT
from cdc_core.decode.literals import LiteralRefusedError, value_of
from cdc_core.decode.plan import ROW_ARCHIVAL, ColumnPlan, Kind, plan_column
from cdc_core.decode.unnamed import named_literal
from cdc_core.schema.table import Column, TableSchema
from cdc_core.xstream.columns import Numbers, column_at_once
from cdc_core.xstream.events import RowImage, old_image
from cdc_core.xstream.lcrs import (
    AL16UTF16,
    EMPTY_LOB,
    ENCRYPTED,
    LOB_DATA,
    LONG_STRING,
    OBJECT_XML,
    UPDATED,
    XML_DIFF,
    Value,
)
from cdc_core.xstream.runs import HeldLcrs

CHARSETS = {
    1: "US7ASCII",
    31: "WE8ISO8859P1",
    178: "WE8MSWIN1252",
    871: "UTF8",
    873: "AL32UTF8",
    2000: "AL16UTF16",
}
"""Oracle's numbers of character sets."""

NUMBER, DATE, RAW, TIMESTAMP, ZONED, YEARS, DAYS, LOCAL = 2, 12, 23, 180, 181, 182, 183, 231
"""Numbers of types, as in Oracle's public header; of LOBs, text and bytes below too."""
_TEXTS = frozenset({1, 8, 11, 58, 96, 104, 108, 112, 208})
_BYTES = frozenset({RAW, 24, 113})
_TYPES = {
    Kind.TEXT: _TEXTS,
    Kind.CLOB: _TEXTS,
    Kind.RAW: _BYTES,
    Kind.BLOB: _BYTES,
    Kind.DATE: frozenset({DATE}),
    Kind.TIMESTAMP: frozenset({DATE, TIMESTAMP}),
    Kind.TIMESTAMP_TEXT: frozenset({DATE, TIMESTAMP}),
    Kind.ZONED: frozenset({ZONED, LOCAL}),
    Kind.INTERVAL_YM: frozenset({YEARS}),
    Kind.INTERVAL_DS: frozenset({DAYS}),
    Kind.FLOAT32: frozenset({100}),
    Kind.FLOAT64: frozenset({101}),
}
_UTC = b"\x14\x3c"
"""How a time with zone ends that is in UTC: hour and minute of the offset, 20 and 60 added."""
_KNOWN_MAX = 100_000


class LcrRows:
    """A :class:`~cdc_core.change_stream.form.RunForm`: rows of one version of a table in LCRs."""

    def __init__(
        self, schema: TableSchema, columns: Sequence[Column], *, reselects: bool = False
    ) -> None:
        self.asks = reselects
        self._names = [one.name for one in columns]
        self._lobs = frozenset(one.name for one in columns if one.is_lob)
        known = {one.name for one in schema.as_in_rows().in_oracle().columns}
        omitted = {name for name, _ in schema.omitted}
        self._known = known | omitted | {*schema.stored, *schema.excluded, ROW_ARCHIVAL}
        self._readers = [
            _ColumnReader(plan_column(one, schema), is_local=one.is_local_time) for one in columns
        ]

    def by_column(self, images: Sequence[RowImage | None]) -> list[list[Any]]:
        """See :meth:`RowForm.by_column`."""
        rows = [{} if one is None else self._row(one) for one in images]
        return [[row.get(name, ABSENT) for row in rows] for name in self._names]

    def convert(self, at: int, values: list[Any]) -> pa.Array:
        """See :meth:`RowForm.convert`."""
        return self._readers[at].read(values)

    def scan(self, rows: HeldLcrs, operations: Operations) -> ScannedBatch:
        """See :meth:`RunForm.scan`: all rows, or none."""
        count = len(rows)
        lists = [rows.values("old"), rows.values("new")]
        lengths = [pc.fill_null(pc.list_value_length(one), 0).to_numpy() for one in lists]
        if lengths[0][operations == INSERT].any() or lengths[1][operations == DELETE].any():
            raise RefusedValueError("an INSERT has old columns, or a DELETE new ones")
        row_of = np.concatenate([np.repeat(np.arange(count), one) for one in lengths])
        old_count = int(lengths[0].sum())
        flat = pa.concat_arrays([one.flatten() for one in lists]).flatten()
        old_flags = pc.fill_null(flat[3][:old_count], 0)
        if pc.any(pc.not_equal(pc.bit_wise_and(old_flags, LOB_DATA | LONG_STRING), 0)).as_py():
            raise RefusedValueError("an old value comes in chunks, which is none")
        names = flat[0].dictionary_encode()
        known = names.dictionary.to_pylist()
        self._refuse_others(known)
        codes = names.indices.fill_null(-1).to_numpy()
        befores: list[pa.Array] = []
        afters: list[pa.Array] = []
        carried_before, carried = [], []
        for name, reader in zip(self._names, self._readers, strict=True):
            places = np.flatnonzero(codes == (known.index(name) if name in known else -2))
            is_old = places < old_count
            found = reader.at_once([one.take(pa.array(places)) for one in flat])
            before = _place_of(np.flatnonzero(is_old), row_of[places[is_old]], count)
            after = _place_of(np.flatnonzero(~is_old), row_of[places[~is_old]], count)
            if (after[operations == INSERT] < 0).any():
                raise RefusedValueError(f"an INSERT lacks columns: {name}")
            after = np.where(after < 0, before, after)
            for place, arrays in ((before, befores), (after, afters)):
                arrays.append(found.take(pa.array(place, mask=place < 0)))
            carried_before.append(before >= 0)
            carried.append(after >= 0)
        has_old, has_new = (operations != INSERT).any(), (operations != DELETE).any()
        return ScannedBatch(
            operations,
            befores if has_old else None,
            afters if has_new else None,
            np.array(carried),
            np.array(carried_before),
        )

    def image(self, rows: HeldLcrs, row: int, *, is_old: bool) -> RowImage | None:
        """See :meth:`RunForm.image`."""
        operation = int(rows.operations[row])
        if operation == (INSERT if is_old else DELETE):
            return None
        found = rows.values("old" if is_old else "new")[row].as_py() or ()
        given = tuple(Value(**{**one, "flags": one["flags"] or 0}) for one in found)
        return old_image(given) if is_old else RowImage(given, (), is_whole=operation == INSERT)

    def _refuse_others(self, names: Iterable[str]) -> None:
        others = [name for name in names if name not in self._known and not name.startswith("SYS_")]
        if others:
            raise RefusedValueError(
                f"the table's definition lacks columns: {', '.join(others)}; create the outbound server with include_ddl TRUE"
            )

    def _row(self, image: RowImage) -> dict[str, Any]:
        row: dict[str, Any] = {one.name: one for one in image.values}
        if image.is_key_only:
            raise RefusedValueError(
                "an LCR has only the row's identity: the table has columns that XStream does not support, see "
                "DBA_XSTREAM_OUT_SUPPORT_MODE"
            )
        untold = self._untold(image) if image.is_piece else frozenset[str]()
        pieces: dict[str, list[Value]] = {}
        for chunk in () if image.is_piece else image.chunks:
            pieces.setdefault(chunk.name, []).append(chunk)
        for name, chunks in pieces.items():
            whole = "".join(one.value or "" for one in chunks)
            first = chunks[0]
            row[name] = Value(
                name, first.type, whole, first.flags | (0 if whole else EMPTY_LOB), first.charset
            )
        if image.is_whole and (missing := [name for name in self._names if name not in row]):
            raise RefusedValueError(f"an INSERT lacks columns: {', '.join(missing)}")
        self._refuse_others(row)
        return row | dict.fromkeys(untold, UNTOLD)

    def _untold(self, image: RowImage) -> frozenset[str]:
        """The captured LOBs of which an LCR may write a piece: all, if it names none.

        Raises:
            RefusedValueError: Nobody asks Oracle for their values.
        """
        named = frozenset(
            one.name for one in (*image.values, *image.chunks) if one.flags & LOB_DATA
        )
        lobs = named.intersection(self._names) if named else self._lobs
        if (lobs or not named) and not self.asks:
            raise RefusedValueError(
                "a piece of a LOB was written, whose value no LCR has whole; with `capture.lobs: reselect` Redolake reads it from Oracle"
            )
        return lobs


def _place_of(at: Numbers, rows: Numbers, count: int) -> Numbers:
    """By row, the place of its value; -1 where it has none.

    Raises:
        RefusedValueError: A row names the column twice.
    """
    found = np.full(count, -1)
    found[rows] = at
    if (found >= 0).sum() != len(at):
        raise RefusedValueError("a row has a column twice")
    return found


class _ColumnReader:
    """Makes Arrow of a column's values: at once where they are alike; else equal bytes are equal
    values, and are read once."""

    def __init__(self, plan: ColumnPlan, *, is_local: bool) -> None:
        self._plan, self._is_local = plan, is_local
        self._types = frozenset({NUMBER}) if plan.is_number else _TYPES[plan.kind]
        self._is_lob = plan.kind in (Kind.CLOB, Kind.BLOB)
        self._known: dict[tuple[str, int, int | None, int], Any] = {}
        self._plans = _Plans(plan)

    def read(self, values: list[Value | None]) -> pa.Array:
        """Of values as LCRs have them."""
        kinds = {(one.type, one.flags & ~UPDATED, one.charset) for one in values if one is not None}
        if len(kinds) == 1:
            hexes = [None if one is None else one.value for one in values]
            found = self._alike(pa.array(hexes, pa.string()), *kinds.pop())
            if found is not None:
                return found
        return self._read_each(values)

    def at_once(self, fields: list[pa.Array]) -> pa.Array:
        """Of arrays with the members of values."""
        _, types, hexes, flags, charsets = fields
        others = pc.bit_wise_and(pc.fill_null(flags, 0), ~UPDATED)
        kinds = [pc.unique(one).to_pylist() for one in (types, others, charsets)]
        if max(map(len, kinds)) == 1:
            found = self._alike(hexes, *(one[0] for one in kinds))
            if found is not None:
                return found
        given = zip(*(one.to_pylist() for one in fields), strict=True)
        return self._read_each(
            [
                Value(name, kind, hexes, flags or 0, charset)
                for name, kind, hexes, flags, charset in given
            ]
        )

    def _alike(
        self, hexes: pa.StringArray, kind: int, flags: int, charset: int | None
    ) -> pa.Array | None:
        if self._is_local or self._is_lob or flags:
            return None
        if kind not in self._types:
            return None if hexes.null_count < len(hexes) else pa.nulls(len(hexes), self._plan.type)
        name = CHARSETS.get(charset, "") if charset else self._plan.charset
        try:
            return column_at_once(hexes, self._plan, name)
        except pa.ArrowException:
            return None  # read one by one, the value that does not fit is found

    def _read_each(self, values: Sequence[Value | None]) -> pa.Array:
        return pa.array(list(map(self._value, values)), self._plan.type)

    def _value(self, value: Value | None) -> Any:
        if value is None:
            return None
        if value.flags & (XML_DIFF | ENCRYPTED | OBJECT_XML):
            raise RefusedValueError(
                "it comes encrypted, as a difference of documents, or as an object"
            )
        if value.flags & EMPTY_LOB and not value.value:
            return b"" if self._plan.kind is Kind.BLOB else ""
        if not value.value:
            return None
        if value.type not in self._types:
            raise RefusedValueError(f"a value has type {value.type}, which the column has not")
        key = (value.value, value.type, value.charset, value.flags & AL16UTF16)
        if key not in self._known:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            found = _read(value, self._plans, is_local=self._is_local)
            if self._is_lob:
                return found
            self._known[key] = found
        return self._known[key]


class _Plans:
    """A column's plan for each character set in which its values come, made once."""

    def __init__(self, plan: ColumnPlan) -> None:
        self._plan = plan
        self._known: dict[tuple[str | None, bool], ColumnPlan] = {}

    def of(self, value: Value, *, is_in_utc: bool) -> ColumnPlan:
        """The plan by which a value is read; a time that ``is_in_utc`` has no zone of its own."""
        charset = self._plan.charset
        if value.flags & AL16UTF16:
            charset = "AL16UTF16"
        elif value.charset:
            charset = CHARSETS.get(value.charset, str(value.charset))
        key = charset, is_in_utc
        if key not in self._known:
            plan = replace(self._plan, charset=charset)
            self._known[key] = replace(plan, time_zone=None) if is_in_utc else plan
        return self._known[key]


def _read(value: Value, plans: _Plans, *, is_local: bool) -> Any:
    try:
        stored = bytes.fromhex(value.value or "")
    except ValueError:
        raise RefusedValueError("bytes are not in hexadecimal digits") from None
    is_in_utc = is_local and value.type == ZONED
    if is_in_utc and stored[11:] != _UTC:
        raise RefusedValueError("a local time is not in UTC")
    plan = plans.of(value, is_in_utc=is_in_utc)
    try:
        return value_of(named_literal(stored, plan), plan)
    except LiteralRefusedError as error:
        raise RefusedValueError(error.what) from None
