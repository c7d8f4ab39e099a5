"""Which Arrow type holds an Oracle column exactly, and how is the column selected for the snapshot
path?

The one table of types. Snapshot and log path both end in these Arrow types, and Delta's types
follow from them.

===========================  =====================  ==========================================================
Oracle                       Arrow                  note
===========================  =====================  ==========================================================
NUMBER(p, s), 0 < s <= p     decimal128(p, s)       also NUMBER(*, s): decimal128(38, s)
NUMBER(p, 0), p <= 18        int64
NUMBER(p, 0), p > 18         decimal128(p, 0)       also NUMBER(*, 0) and INTEGER: decimal128(38, 0)
NUMBER(p, -s)                decimal128(p + s, 0)   int64 where p + s <= 18; text as NUMBER where p + s > 38
NUMBER(p, s), s > p          decimal128(s, s)       text as NUMBER where s > 38
NUMBER, FLOAT                string                 canonical text (see ``canonical_number_text``): loses no digit
BINARY_DOUBLE, BINARY_FLOAT  float64, float32
CHAR, VARCHAR2, NCHAR,       string                 CHAR blank padded as stored; '' is NULL as in Oracle,
NVARCHAR2, CLOB, NCLOB                               but an empty CLOB is ''; of any length
DATE, TIMESTAMP(0-6)         timestamp[us]          without zone
TIMESTAMP(7-9)               string                 'YYYY-MM-DD HH24:MI:SS.FF9', always nine digits
TIMESTAMP WITH TIME ZONE     string                 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM': the time there and its
                                                     offset from UTC; the name of a region becomes
                                                     its offset
TIMESTAMP WITH LOCAL         string                 the same form, in UTC: always '+00:00'
TIME ZONE
INTERVAL YEAR TO MONTH       string                 '1-02', '-0-11'
INTERVAL DAY TO SECOND       string                 '5 04:03:02.123456789', always nine digits; '-5 04:03:02.5…'
XMLTYPE                      string                 the document as Oracle prints it
RAW, BLOB                    binary                 an empty RAW is NULL as in Oracle, an empty BLOB is not
ROWID                        string                 as ROWIDTOCHAR prints it
LONG, LONG RAW, UROWID       string, binary, string only with ``columns_as: snapshot``: redo does not carry them whole
JSON, BOOLEAN, VECTOR        string, bool, string   only with ``unsupported_columns: reselect``: LogMiner shows no row
                                                     of their tables. Text as Oracle serializes it
===========================  =====================  ==========================================================

Times with zone are text that Spark casts to TIMESTAMP, intervals are text that it casts to INTERVAL
YEAR TO MONTH or INTERVAL DAY TO SECOND, as far as microseconds go: Delta has no type that holds the
offset, and none for intervals.

A DATE or TIMESTAMP keeps its year, month and day. Oracle counts days before 15 October 1582 in the
Julian calendar, Delta and Arrow in the Gregorian one: the day of the week and the distance to later
days differ there, the label does not, as with every client that makes a date of Oracle's fields. A
label that the Gregorian calendar lacks (29 February 1500, the years before Christ) is a
:class:`~cdc_core.errors.DecodeError` on both paths, never another day; a DATE or TIMESTAMP that is
held as text holds it.

``columns_as`` of a table, and ``types_as`` for all its columns of a type, hold values in another
form: :data:`FORMS` says which type has which. Loops and driver give some of them as they are; the
others are made of the type table's own values by :mod:`cdc_core.decode.column_forms`, the one place for
both paths.

Everything else is refused with :class:`~cdc_core.errors.UnsupportedTypeError`; the way out is
``columns_exclude``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

import pyarrow as pa

from cdc_core.errors import UnsupportedTypeError
from cdc_core.model.identifiers import TableId, quote
from cdc_core.schema.table import OFFSET, WITH_OFFSET, Column, TableSchema

DECIMAL_DIGITS_MAX = 38
INT64_DIGITS_MAX = 18
MICROSECOND_DIGITS = 6
INSTANT = pa.timestamp("us", "UTC")
"""A moment everywhere, which Delta calls TIMESTAMP; what has no zone is TIMESTAMP_NTZ."""
TEXT_TYPES = frozenset(
    {"CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2", "CLOB", "NCLOB", "XMLTYPE", "ROWID"}
)
MASKED_TYPES = frozenset({"CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2"})
_TIMESTAMP = re.compile(r"TIMESTAMP\((\d)\)\Z")
_TIMESTAMP_TEXT_FORMAT = "SYYYY-MM-DD HH24:MI:SS.FF9"
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
CONVERTED = "{path} -> {type}"
"""The form of a column that a class of the user's own converts, and into which Arrow type
(:mod:`cdc_core.schema.converters`)."""
_TEXT_IN = re.compile(r"text\((\w+)\)")
NUMBER_TYPES = frozenset({"NUMBER", "FLOAT"})
_DIGITS = re.compile(r"\(\d\)")

SNAPSHOT = "snapshot"
"""The form of a column that snapshots read, and of which a change in the redo must give no
value."""

RESELECT = "reselect"
"""The form of a column of whose table LogMiner shows no row: each row that changes is read from
Oracle as of its commit."""

_OF_MOMENTS = frozenset({"text", "iso8601", "microseconds", "nanoseconds", "date"})
_OF_ZONED = frozenset({"iso8601", "instant"})
_OF_INTERVALS = frozenset({"iso8601", "microseconds"})
_OF_BYTES = frozenset({"hex", "base64", "base64url"})
FORMS: Mapping[str, frozenset[str]] = {
    "NUMBER": frozenset({"text", "double", "boolean", "boolean(>0)"}),
    "FLOAT": frozenset({"text", "double"}),
    "DATE": _OF_MOMENTS,
    "TIMESTAMP": _OF_MOMENTS | {"timestamp"},
    "TIMESTAMP WITH TIME ZONE": _OF_ZONED | {WITH_OFFSET},
    "TIMESTAMP WITH LOCAL TIME ZONE": _OF_ZONED,
    "INTERVAL YEAR TO MONTH": _OF_INTERVALS,
    "INTERVAL DAY TO SECOND": _OF_INTERVALS,
    "RAW": _OF_BYTES | {"text"},
    "BLOB": _OF_BYTES,
    "LONG": frozenset({SNAPSHOT}),
    "LONG RAW": frozenset({SNAPSHOT}),
    "UROWID": frozenset({SNAPSHOT}),
    "JSON": frozenset({RESELECT}),
    "BOOLEAN": frozenset({RESELECT}),
    "VECTOR": frozenset({RESELECT}),
}
"""In which other forms the lake may hold a type; a NUMBER and a FLOAT as ``decimal(p,s)`` too, a
RAW as ``text(CHARACTER_SET)``, a NUMBER as ``boolean`` where an int64 holds it."""
_FORM_TYPES = {
    SNAPSHOT: pa.string(),
    RESELECT: pa.string(),
    "text": pa.string(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "boolean(>0)": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "instant": INSTANT,
    WITH_OFFSET: INSTANT,
    "date": pa.date32(),
    "iso8601": pa.string(),
    "microseconds": pa.int64(),
    "nanoseconds": pa.int64(),
    "hex": pa.string(),
    "base64": pa.string(),
    "base64url": pa.string(),
}
_CONVERTED_TYPES = (
    pa.bool_(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    INSTANT,
)
_UROWID_BYTES_MAX = 4000
_PARTIAL = frozenset({"boolean", "date", "microseconds", "nanoseconds"})
"""Forms that do not hold all values of their types, beside timestamps, decimals and character
sets."""
_AS_READ = frozenset({"", "text", "double", SNAPSHOT, RESELECT})
_ZONED_TEXT_FORMAT = "SYYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM"


class Printed(Enum):
    """Types whose values Oracle prints, and the lake holds, as text; the value is the pattern of
    the declaration."""

    ZONED = re.compile(r"TIMESTAMP\(\d\) WITH (LOCAL )?TIME ZONE")
    YEAR_TO_MONTH = re.compile(r"INTERVAL YEAR\(\d\) TO MONTH")
    DAY_TO_SECOND = re.compile(r"INTERVAL DAY\(\d\) TO SECOND\(\d\)")


def printed_as(column: Column) -> Printed | None:
    """Which of them the column's type is, if any."""
    return next((kind for kind in Printed if kind.value.fullmatch(column.data_type)), None)


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type that holds every value of the column exactly.

    Raises:
        UnsupportedTypeError: The type is not captured.
    """
    data_type = column.data_type
    if column.form:
        return _held_type(column)
    if data_type in TEXT_TYPES:
        return pa.string()
    if data_type == "NUMBER":
        return _number_type(column)
    if data_type == "FLOAT":
        return pa.string()
    if data_type == "BINARY_DOUBLE":
        return pa.float64()
    if data_type == "BINARY_FLOAT":
        return pa.float32()
    if data_type == "DATE":
        return pa.timestamp("us")
    if data_type in {"RAW", "BLOB"}:
        return pa.binary()
    if printed_as(column):
        return pa.string()
    if found := _TIMESTAMP.match(data_type):
        return pa.timestamp("us") if int(found[1]) <= MICROSECOND_DIGITS else pa.string()
    raise _unsupported(column, _REASONS.get(data_type, "this type is not captured"))


def _held_type(column: Column) -> pa.DataType:
    """What ``columns_as`` or ``types_as`` makes of the column."""
    form, family = column.form, family_of(column)
    if form == OFFSET:
        return pa.string()
    if is_converted(column):
        arrow_type(replace(column, held_as=""))  # the column's own type is captured
        return converter_of(form)[1]
    if family in NUMBER_TYPES and (found := _DECIMAL.fullmatch(form)):
        return pa.decimal128(int(found[1]), int(found[2]))
    if form == SNAPSHOT and column.data_type == "LONG RAW":
        return pa.binary()
    if form == RESELECT and family == "BOOLEAN":
        return pa.bool_()
    if family == "RAW" and character_set_of(form):
        return pa.string()
    fits = not form.startswith("boolean") or _number_type(column) == pa.int64()
    if fits and form in FORMS.get(family, ()):
        return _FORM_TYPES[form]
    raise _unsupported(column, f"columns_as or types_as does not hold this type as {form}")


def is_decimal(form: str) -> bool:
    """Is the form ``decimal(p,s)``?"""
    return _DECIMAL.fullmatch(form) is not None


def is_converted(column: Column) -> bool:
    """Does a class of the user's own convert the column?"""
    return ":" in column.form


def converter_of(form: str) -> tuple[str, pa.DataType]:
    """The class that converts a column, and the type of what it makes, of :data:`CONVERTED`."""
    path, _, kind = form.partition(" -> ")
    return path, type_named(kind)


def type_named(text: str) -> pa.DataType | None:
    """The Arrow type of that text (``str(type)``), if Delta tables have it; None otherwise."""
    if found := _DECIMAL.fullmatch(text.replace("128", "").replace(" ", "")):
        return pa.decimal128(int(found[1]), int(found[2]))
    return next((kind for kind in _CONVERTED_TYPES if str(kind) == text), None)


def character_set_of(form: str) -> str:
    """The character set that ``text(CHARACTER_SET)`` names; empty for other forms."""
    found = _TEXT_IN.fullmatch(form)
    return found[1] if found else ""


def family_of(column: Column) -> str:
    """The column's type without digits of seconds, days and years, as :data:`FORMS` has it."""
    return _DIGITS.sub("", column.data_type)


def as_read(column: Column) -> Column:
    """The column as both paths read it, before :mod:`cdc_core.decode.column_forms` gives its values the
    form that is asked for."""
    form = column.form
    if form == OFFSET:
        return column  # of which it is read tells its name
    if column.nulls_unfit:
        is_text = is_moment(column) or pa.types.is_decimal(arrow_type(column))
        return replace(column, held_as="text" if is_text and not is_converted(column) else "")
    if is_decimal(form) or (form in _AS_READ and column.data_type != "RAW"):
        return column
    as_text = is_moment(column) and not is_converted(column)
    return replace(column, held_as="text" if as_text else "")


def is_held_otherwise(column: Column) -> bool:
    """Does the lake hold other values than are read (:mod:`cdc_core.decode.column_forms`)?"""
    return column.form == OFFSET or as_read(column) != column


def may_be_unfit(column: Column) -> bool:
    """May Oracle have a value that the column's form does not hold? Text does, of any kind, but a
    time with zone before the year 1."""
    form, kind = column.form, arrow_type(column)
    if is_converted(column) or character_set_of(form) or (form == "text" and kind == pa.string()):
        return column.data_type == "RAW" or is_converted(column)
    if form in _PARTIAL or pa.types.is_timestamp(kind):
        return True
    is_bounded = column.precision is not None and not form
    return pa.types.is_decimal(kind) and not is_bounded


def is_moment(column: Column) -> bool:
    """Is the column a DATE or TIMESTAMP without a zone?"""
    return column.data_type == "DATE" or _TIMESTAMP.match(column.data_type) is not None


_REASONS = {
    "UROWID": "LogMiner does not show values of this type",
    "LONG": "the redo does not carry values of this type whole",
    "LONG RAW": "the redo does not carry values of this type whole",
    "BFILE": "the value is a file outside of the database",
    **dict.fromkeys(("JSON", "BOOLEAN", "VECTOR"), "LogMiner shows no row of its table"),
}


def _number_type(column: Column) -> pa.DataType:
    precision, scale = column.precision, column.scale
    if scale is None:
        return pa.string()
    digits = DECIMAL_DIGITS_MAX if precision is None else precision
    digits = digits - scale if scale <= 0 else max(digits, scale)
    if digits > DECIMAL_DIGITS_MAX:
        return pa.string()
    if scale <= 0 and digits <= INT64_DIGITS_MAX:
        return pa.int64()
    return pa.decimal128(digits, max(scale, 0))


def _unsupported(column: Column, message: str) -> UnsupportedTypeError:
    hint = "Name the column under columns_exclude of its table to capture the others."
    if SNAPSHOT in FORMS.get(column.data_type, ()):
        hint += f" `columns_as: {{{column.name}: {SNAPSHOT}}}` lets snapshots read it."
    if RESELECT in FORMS.get(column.data_type, ()):
        hint += " `unsupported_columns: reselect` reads the table's changed rows from Oracle."
    return UnsupportedTypeError(
        message,
        hint=hint,
        column=column.name,
        data_type=column.data_type,
        precision=column.precision,
        scale=column.scale,
    )


def is_number_text(column: Column) -> bool:
    """Is the column held as canonical number text (FLOAT, and NUMBER that no decimal of 38 digits
    holds)?"""
    return column.data_type in NUMBER_TYPES and bool(arrow_type(column) == pa.string())


def is_unbounded_number(column: Column) -> bool:
    """Is the column a NUMBER without precision and scale, whose values only text holds all?"""
    return column.data_type == "NUMBER" and column.precision is None and column.scale is None


def is_read_as_bytes(column: Column) -> bool:
    """Does the snapshot path read the column's numbers in Oracle's own bytes?"""
    return is_number_text(column) or (column.data_type in NUMBER_TYPES and bool(column.form))


def is_timestamp_text(column: Column) -> bool:
    """Is the column held as text with nine fractional digits (TIMESTAMP(7) to TIMESTAMP(9))?"""
    if column.form == "text" and is_moment(column):
        return True
    found = _TIMESTAMP.match(column.data_type)
    return bool(found) and int(found[1]) > MICROSECOND_DIGITS if found else False


def arrow_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of a table's rows: one nullable field per captured column, in the table's
    order.

    Raises:
        UnsupportedTypeError: Names every column that is not captured, at once.
    """
    fields, refused = [], []
    for column in schema.columns:
        try:
            fields.append(pa.field(column.name, arrow_type(column)))
        except UnsupportedTypeError as error:
            refused.append(f"{column.name} {column.data_type} ({error.message})")
    if refused:
        raise unsupported_columns(schema.table, refused)
    return pa.schema(fields)


def is_snapshot_only(column: Column) -> bool:
    """Do snapshots alone read the column's values?"""
    return column.form == SNAPSHOT


def is_reselected(schema: TableSchema) -> bool:
    """Does LogMiner show no row of the table, so that each is read from Oracle as of its commit?"""
    return any(column.form == RESELECT for column in schema.columns)


def is_captured(column: Column) -> bool:
    """Is the column of a type that is captured, in whatever form the configuration holds it?"""
    is_as_asked = column.form in (SNAPSHOT, RESELECT)
    try:
        arrow_type(column if is_as_asked else replace(column, held_as=""))
    except UnsupportedTypeError:
        return False
    return True


def unsupported_columns(table: TableId, refused: list[str]) -> UnsupportedTypeError:
    """The error for a table with columns that are not captured."""
    return UnsupportedTypeError(
        "the table has columns of types that are not captured",
        hint="Name them under columns_exclude of the table, or leave the table out. Snapshots read a LONG, LONG RAW or UROWID with `columns_as: snapshot`; "
        "`unsupported_columns: reselect` reads rows with a JSON, BOOLEAN or VECTOR from Oracle.",
        table=table,
        columns="; ".join(refused),
    )


_SERIALIZED = {
    "JSON": "JSON_SERIALIZE({} RETURNING CLOB)",
    "VECTOR": "VECTOR_SERIALIZE({} RETURNING CLOB)",
    "BOOLEAN": "CASE WHEN {0} = TRUE THEN 1 WHEN {0} = FALSE THEN 0 END",
}
"""Source: Oracle AI Vector Search User's Guide 23ai, "VECTOR_SERIALIZE"; SQL Language Reference
23ai, "JSON_SERIALIZE"."""


def select_expression(column: Column) -> str:
    """How the snapshot path selects the column, so that the driver's Arrow fetch loses nothing.

    A NUMBER that is held as text, or by ``columns_as``, goes as its own bytes
    (:func:`cdc_core.decode.values.number_text` prints them), since the driver would make it a
    double and TO_CHAR may round; TIMESTAMP(7-9) and what else is held as text goes as Oracle prints
    it.
    """
    name, value = quote(column.name), quote(column.source)
    if column.data_type == "ROWID":
        return f"ROWIDTOCHAR({column.sql}) AS {name}"
    if column.data_type == "UROWID":
        return f"CAST({name} AS VARCHAR2({_UROWID_BYTES_MAX})) AS {name}"
    if column.data_type == "XMLTYPE":
        return f"XMLSERIALIZE(CONTENT {name} AS CLOB) AS {name}"
    if column.form == RESELECT:
        return f"{_SERIALIZED[column.data_type].format(name)} AS {name}"
    if is_read_as_bytes(column):
        return f"SYS.UTL_RAW.CAST_FROM_NUMBER({name}) AS {name}"
    if is_timestamp_text(column):
        moment = f"CAST({name} AS TIMESTAMP(9))" if column.data_type == "DATE" else name
        return f"TO_CHAR({moment}, '{_TIMESTAMP_TEXT_FORMAT}') AS {name}"
    match printed_as(column):
        case Printed.ZONED:
            return f"TO_CHAR({value}, '{_ZONED_TEXT_FORMAT}') AS {name}"
        case Printed.YEAR_TO_MONTH | Printed.DAY_TO_SECOND:
            return f"TO_CHAR({name}) AS {name}"
    return name


def empty_lob_expression(column: Column) -> str:
    """1 where the LOB is empty, else NULL: the driver fetches an empty LOB as NULL, which it is
    not."""
    return f"CASE WHEN DBMS_LOB.GETLENGTH({quote(column.name)}) = 0 THEN 1 END"
