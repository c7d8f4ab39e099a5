"""How do the columns of LCRs become Arrow columns, in the types of the type table?

Values are bytes as Oracle keeps them, and are read as those are that LogMiner shows of rows from
before a DDL. What an LCR must have and has not, or has and must not, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cdc_core.change_stream.images import ABSENT, RefusedValueError
from cdc_core.decode.literals import LiteralRefusedError, value_of
from cdc_core.decode.plan import ROW_ARCHIVAL, ColumnPlan, Kind, plan_column
from cdc_core.decode.unnamed import named_literal
from cdc_core.schema.table import Column, TableSchema
from cdc_core.xstream.events import RowImage
from cdc_core.xstream.lcrs import (
    AL16UTF16,
    EMPTY_LOB,
    ENCRYPTED,
    LOB_DATA,
    OBJECT_XML,
    XML_DIFF,
    Value,
)

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
    """A :class:`~cdc_core.change_stream.form.RowForm`: rows of one version of a table in LCRs."""

    def __init__(self, schema: TableSchema, columns: Sequence[Column]) -> None:
        self._names = [one.name for one in columns]
        known = {one.name for one in schema.as_in_rows().in_oracle().columns}
        omitted = {name for name, _ in schema.omitted}
        self._known = known | omitted | {*schema.stored, *schema.excluded, ROW_ARCHIVAL}
        self._converters = [
            _converter(plan_column(one, schema), is_local=one.is_local_time) for one in columns
        ]

    def by_column(self, images: Sequence[RowImage | None]) -> list[list[Any]]:
        """See :meth:`RowForm.by_column`."""
        rows = [{} if one is None else self._row(one) for one in images]
        return [[row.get(name, ABSENT) for row in rows] for name in self._names]

    def convert(self, at: int, values: list[Any]) -> pa.Array:
        """See :meth:`RowForm.convert`."""
        return self._converters[at](values)

    def _row(self, image: RowImage) -> dict[str, Value]:
        row = {one.name: one for one in image.values}
        if image.is_key_only:
            raise RefusedValueError(
                "an LCR has the row's identity alone: the table has columns that XStream does not support, see "
                "DBA_XSTREAM_OUT_SUPPORT_MODE"
            )
        if image.is_piece and self._takes_piece(image):
            raise RefusedValueError(
                "a piece of a LOB was written, whose value no LCR has whole; write whole values, or name the column under "
                "columns_exclude and create the outbound server without it"
            )
        pieces: dict[str, list[Value]] = {}
        for chunk in image.chunks:
            pieces.setdefault(chunk.name, []).append(chunk)
        for name, chunks in pieces.items():
            whole = "".join(one.value or "" for one in chunks)
            first = chunks[0]
            row[name] = Value(
                name, first.type, whole, first.flags | (0 if whole else EMPTY_LOB), first.charset
            )
        if image.is_whole and (missing := [name for name in self._names if name not in row]):
            raise RefusedValueError(f"an INSERT lacks columns: {', '.join(missing)}")
        others = [name for name in row if name not in self._known and not name.startswith("SYS_")]
        if others:
            raise RefusedValueError(
                f"the table's definition lacks columns: {', '.join(others)}; create the outbound server with include_ddl TRUE"
            )
        return row

    def _takes_piece(self, image: RowImage) -> bool:
        """Is the LOB captured? One that the LCR does not name may be."""
        lobs = {one.name for one in (*image.values, *image.chunks) if one.flags & LOB_DATA}
        return not lobs or not lobs.isdisjoint(self._names)


def _converter(plan: ColumnPlan, *, is_local: bool) -> Callable[[list[Any]], pa.Array]:
    """What makes Arrow of a column's values. Equal bytes are equal values, and are read once."""
    types = frozenset({NUMBER}) if plan.is_number else _TYPES[plan.kind]
    is_lob = plan.kind in (Kind.CLOB, Kind.BLOB)
    known: dict[tuple[str, int, int | None, int], Any] = {}
    plans = _Plans(plan)

    def read(value: Value | None) -> Any:
        if value is None:
            return None
        if value.flags & (XML_DIFF | ENCRYPTED | OBJECT_XML):
            raise RefusedValueError(
                "it comes encrypted, as a difference of documents, or as an object"
            )
        if value.flags & EMPTY_LOB and not value.value:
            return b"" if plan.kind is Kind.BLOB else ""
        if not value.value:
            return None
        if value.type not in types:
            raise RefusedValueError(f"a value has type {value.type}, which the column has not")
        key = (value.value, value.type, value.charset, value.flags & AL16UTF16)
        if key not in known:
            if len(known) >= _KNOWN_MAX:
                known.clear()
            found = _read(value, plans, is_local=is_local)
            if is_lob:
                return found
            known[key] = found
        return known[key]

    return lambda values: pa.array(list(map(read, values)), plan.type)


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
