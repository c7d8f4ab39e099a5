"""How does a value become what a column stores, and when is it refused?"""

from __future__ import annotations

import json
from collections.abc import Callable

from oracle_embedded.api import OracleError, OraType, Value
from oracle_embedded.charsets import (
    CharacterSet,
    CharacterSets,
    bytes_from_text,
    replaced_utf8,
)
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.temporal import fit_interval, fit_timestamp
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef
from oracle_embedded.values import packed, unpacked

_NO_TABLE = TableDef(object_id=0, data_object_id=0, object_version=0, owner="", name="", columns=())  # fmt: skip
Fitter = Callable[[bytes], Value]


def fitter(table: TableDef, column: ColumnDef, sets: CharacterSets) -> Fitter:
    """What turns a value of the column's family into its stored form.

    The function raises ORA-12899 for text and RAW that are too long, ORA-01438 for numbers that are
    too large, ORA-01873 for intervals that are too long, ORA-51803 for vectors with another
    number of dimensions.
    """
    kind = column.type
    match kind.family:
        case "text":
            own = sets.of(kind.form)
            if own.is_utf8 or kind.form == 2 or kind.ora == OraType.LONG:
                return _text_fitter(table, column)
            return _recoded_fitter(table, column, own)
        case "clob" if kind.form == 2 or sets.database.is_utf8:
            return replaced_utf8
        case "clob":
            return sets.database.keep_utf8
        case "number":
            return _number_fitter(column)
        case "timestamp" | "tz" | "ltz":
            scale = 9 if kind.scale is None else kind.scale
            size = 13 if kind.family == "tz" else 11
            return lambda value: fit_timestamp(
                value.ljust(size, b"\0") if size == 11 else value, scale
            )
        case "raw":
            most = kind.length

            def fit_raw(value: bytes) -> Value:
                if len(value) > most:
                    raise too_long(table, column, len(value), most)
                return value or None

            return fit_raw
        case "ids" | "iym":
            precision, digits = kind.precision or 0, kind.scale or 0
            return lambda value: fit_interval(value, precision, digits)
        case "date":
            return lambda value: value[:7]
        case "vector" if kind.length:
            return _vector_fitter(kind.length)
        case "object":
            return fit_object(column.type, sets)
    return lambda value: value


def fit_object(kind: SqlType, sets: CharacterSets) -> Fitter:
    """An image whose parts fit: a client's have no blanks behind CHAR, and may be too long."""
    user = kind.user
    if user is None:
        return lambda value: value
    if user.element is not None:
        one = _part_fitter(user.element, sets)
        has_index = bool(user.index)

        def fit_elements(value: bytes) -> Value:
            items = unpacked(value)
            if user.limit is not None and len(items) > user.limit:
                raise OracleError(22165, f"given index [{len(items)}] must be in the range of [1] to [{user.limit}]")  # fmt: skip
            return packed(
                item if item is None or (has_index and not at % 2) else one(item)
                for at, item in enumerate(items)
            )

        return fit_elements
    fitters = [_part_fitter(item, sets) for _, item in user.attributes]

    def fit(value: bytes) -> Value:
        items = zip(fitters, unpacked(value), strict=True)
        return packed(None if item is None else one(item) for one, item in items)

    return fit


def _part_fitter(kind: SqlType, sets: CharacterSets) -> Fitter:
    inner = fitter(_NO_TABLE, ColumnDef(internal_id=0, name="", type=kind), sets)

    def fit(value: bytes) -> Value:
        try:
            return inner(value)
        except OracleError as error:
            if error.code not in (12899, 1438):
                raise
            raise OracleError(22814, "attribute or element value is larger than specified in type") from error  # fmt: skip

    return fit


def too_long(table: TableDef, column: ColumnDef, actual: int, most: int) -> OracleError:
    """ORA-12899."""
    name = f'"{table.owner}"."{table.name}"."{column.name}"'
    return OracleError(
        12899, f"value too large for column {name} (actual: {actual}, maximum: {most})"
    )


def _number_fitter(column: ColumnDef) -> Fitter:
    kind = column.type
    if kind.float_bits is not None:
        bits = kind.float_bits
        return lambda value: numbers.fit_float(value, bits)
    if kind.precision is None and kind.scale is None:
        return lambda value: value
    precision, scale = kind.precision, kind.scale or 0
    return lambda value: numbers.fit(value, precision, scale)


def _vector_fitter(dimensions: int) -> Fitter:
    def fit(value: bytes) -> Value:
        count = len(json.loads(value))
        if count != dimensions:
            raise OracleError(
                51803,
                "Vector dimension count must match the dimension count specified in the column definition"
                f" (expected {dimensions} dimensions, specified {count} dimensions).",
            )
        return value

    return fit


def _text_fitter(table: TableDef, column: ColumnDef) -> Fitter:
    kind = column.type
    in_characters = kind.char_used == "C"
    most = kind.char_length if in_characters else kind.length
    national = kind.form == 2
    padded = kind.is_char and kind.char_used != "UNTOLD"
    if kind.ora == OraType.LONG:
        return lambda value: value or None

    def fit(value: bytes) -> Value:
        if not value:
            return None
        if national:
            value = replaced_utf8(value)
        size = len(value)
        if size > most or padded or national:
            if not in_characters:
                size = len(bytes_from_text(value))
            else:
                text = value.decode()
                size = len(text) + (
                    sum(1 for letter in text if letter > "\uffff") if national else 0
                )
            if size > most:
                raise too_long(table, column, size, most)
            if padded and size < most:
                return value + b" " * (most - size)
        return value

    return fit


def _recoded_fitter(table: TableDef, column: ColumnDef, own: CharacterSet) -> Fitter:
    """The same for a set other than UTF-8: what it does not hold is replaced, and bytes are counted
    in it."""
    kind = column.type
    in_characters = kind.char_used == "C"
    most = kind.char_length if in_characters else kind.length
    padded = kind.is_char and kind.char_used != "UNTOLD"

    def fit(value: bytes) -> Value:
        if not value:
            return None
        text = own.keep(value.decode())
        size = len(text) if in_characters else len(own.encode(text))
        if size > most:
            raise too_long(table, column, size, most)
        return (text + " " * (most - size) if padded else text).encode()

    return fit
