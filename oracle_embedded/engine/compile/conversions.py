"""How are values brought to one type, by implicit conversion, CASE, ``||`` and CAST?"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.api import OraType
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.datatypes import types
from oracle_embedded.engine.datatypes.types import (
    FAMILY_NAMES,
    NUMBER,
    TEXT,
    SqlType,
    family_type,
)
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.formats.dates import DIGITS_MAX

IMPLICIT = {
    ("text", "number"), ("number", "text"), ("text", "date"), ("date", "text"), ("text", "timestamp"),
    ("timestamp", "text"), ("text", "tz"), ("tz", "text"), ("text", "ltz"), ("ltz", "text"),
    ("date", "timestamp"), ("timestamp", "date"), ("date", "tz"), ("timestamp", "tz"), ("tz", "date"),
    ("tz", "timestamp"), ("date", "ltz"), ("ltz", "date"), ("timestamp", "ltz"), ("ltz", "timestamp"),
    ("tz", "ltz"), ("ltz", "tz"), ("number", "double"), ("double", "number"), ("number", "float"),
    ("float", "number"), ("float", "double"), ("double", "float"), ("text", "double"), ("double", "text"),
    ("text", "float"), ("float", "text"), ("text", "raw"), ("raw", "text"), ("text", "rowid"),
    ("rowid", "text"), ("text", "clob"), ("clob", "text"), ("raw", "blob"), ("blob", "raw"), ("text", "ids"),
    ("ids", "text"), ("text", "iym"), ("iym", "text"), ("clob", "number"), ("number", "clob"), ("date", "clob"),
    ("bool", "number"), ("number", "bool"), ("timestamp", "clob"), ("tz", "clob"), ("text", "blob"),
    ("text", "json"), ("clob", "json"), ("text", "vector"), ("clob", "vector"),
}  # fmt: skip
_SAME_BYTES = {("text", "clob"), ("clob", "text"), ("raw", "blob"), ("blob", "raw")}
NUMERIC_RANK = {"number": 1, "float": 2, "double": 3}
ZONED = ("tz", "ltz")
_FRACTIONAL = ("timestamp", *ZONED)
_JOINED_MAX = 100


def convert(value: Sql, family: str, pos: int = 0) -> Sql:
    """An expression in another family of types, converted as Oracle does by itself.

    Raises:
        OracleError: ORA-00932 where there is no such conversion.
    """
    source = value.family
    if source == family:
        return value
    if source == "null":
        return Sql(value.text, family_type(family), True)
    if (source, family) not in IMPLICIT:
        raise ora(
            932, FAMILY_NAMES.get(family, family), FAMILY_NAMES.get(source, source), offset=pos
        )
    kind = family_type(family)
    if family == "text":
        kind = (
            TEXT
            if source != "number"
            else SqlType(OraType.VARCHAR, length=40, char_length=40, char_used="B", form=1)
        )
    if (source, family) in _SAME_BYTES:
        return Sql(value.text, kind, value.nullable, constant=value.constant)
    is_printed = source in _FRACTIONAL and family in ("text", "clob")
    more = f", {fraction_digits(value)}" if is_printed else ""
    text = f"cv_{source}_{family}({value.text}{more})"
    return Sql(text, kind, value.nullable, constant=value.constant)


def fraction_digits(value: Sql) -> int:
    """How many digits of a second's fraction ``FF`` prints of a time: as many as its type has."""
    return DIGITS_MAX if value.type.scale is None else value.type.scale


def client_form(text: str, kind: SqlType) -> str:
    """What gives a value as clients get it: ROWIDs printed, local times in the session's zone."""
    match kind.family:
        case "rowid":
            return f"o_rowid_text({text})"
        case "ltz":
            return f"cv_ltz_timestamp({text})"
    return text


def numeric(value: Sql, pos: int = 0) -> Sql:
    """An operand of arithmetic: NUMBER, or BINARY_DOUBLE if it is binary."""
    if value.family == "null":
        return Sql(value.text, NUMBER)
    if value.family in ("number", "double"):
        return value
    if value.family == "float":
        return convert(value, "double", pos)
    if value.family in ("text", "clob", "bool"):
        return convert(value, "number", pos)
    raise ora(932, "NUMBER", FAMILY_NAMES.get(value.family, value.family), offset=pos)


def unify(values: list[Sql], pos: int, *, strict: bool = False) -> list[Sql]:
    """Give several values one type: that of the first which has one, wide enough for all.

    With ``strict`` (CASE) families must be equal but for numbers; otherwise the later ones are
    converted.
    """
    typed = [value for value in values if value.family != "null"]
    if not typed:
        return values
    family = typed[0].family
    numbers_only = all(value.family in NUMERIC_RANK for value in typed)
    if numbers_only:
        family = max((value.family for value in typed), key=lambda name: NUMERIC_RANK[name])
    elif family == "text" and any(value.family == "clob" for value in typed):
        family = "clob"
    elif strict and any(value.family != family for value in typed):
        odd = next(value for value in typed if value.family != family)
        raise ora(932, FAMILY_NAMES[family], FAMILY_NAMES[odd.family], offset=pos)
    converted = [convert(value, family, pos) for value in values]
    kind = common_type(family, [value.type for value in converted if value.type is not types.NULL])
    return [Sql(value.text, kind, value.nullable, constant=value.constant) for value in converted]


def common_type(family: str, kinds: list[SqlType]) -> SqlType:
    """The type that holds values of all these types of one family."""
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if family == "text":
        length = max(kind.length for kind in kinds)
        characters = max(kind.char_length for kind in kinds)
        form = max(kind.form for kind in kinds)
        if all(kind.is_char for kind in kinds) and len({kind.char_length for kind in kinds}) == 1:
            return types.char(length, characters, form)
        return types.varchar(length, characters, form)
    if family == "raw":
        return types.raw(max(kind.length for kind in kinds))
    return types.family_type(family)


def concatenate(left: Sql, right: Sql, pos: int = 0) -> Sql:
    """``||``: a NULL counts as nothing."""
    if left.family == "raw" and right.family == "raw":
        text = f"o_raw_concat({left.text}, {right.text})"
        return Sql(text, types.raw(left.type.length + right.type.length))
    clob = left.family == "clob" or right.family == "clob"
    national = 2 in (left.type.form, right.type.form)
    lt, rt = convert(left, "text", pos), convert(right, "text", pos)
    length, characters = (
        lt.type.length + rt.type.length,
        lt.type.char_length + rt.type.char_length,
    )
    kind = (
        types.CLOB
        if clob
        else types.varchar(min(length, 4000), min(characters, 4000), 2 if national else 1)
    )
    if left.type.is_char and right.type.is_char and not clob and length <= 2000:
        kind = types.char(length, characters, kind.form)
    nullable = left.nullable and right.nullable
    parts = [part.text if not part.nullable else f"ifnull({part.text}, '')" for part in (lt, rt)]
    operands = (*(left.operands if left.chain == "||" else parts[:1]), parts[1])
    text = _joined(operands)
    return Sql(
        f"nullif({text}, '')" if nullable else text,
        kind,
        nullable,
        constant=left.constant and right.constant,
        chain="||",
        operands=operands,
    )


def _joined(operands: Sequence[str]) -> str:
    """Texts one behind the other, in groups: SQLite takes an expression of 1,000 levels."""
    if len(operands) <= _JOINED_MAX:
        return f"({' || '.join(operands)})"
    groups = range(0, len(operands), _JOINED_MAX)
    return _joined([_joined(operands[at : at + _JOINED_MAX]) for at in groups])


def cast(value: Sql, kind: SqlType, pos: int = 0) -> Sql:
    """CAST: conversion, then fitting into the type's size."""
    converted = convert(value, kind.family, pos)
    text = converted.text
    match kind.family:
        case "number" if kind.float_bits is not None:
            text = f"o_fit_float({text}, {kind.float_bits})"
        case "number" if kind.precision is not None or kind.scale is not None:
            precision = "NULL" if kind.precision is None else kind.precision
            text = (
                f"o_fit({text}, {precision}, {kind.scale or 0})"
                if kind.precision
                else f"o_fit({text}, 38, {kind.scale or 0})"
            )
        case "text":
            text = f"o_cast_text({text}, {kind.char_length}, {kind.length}, {int(kind.is_char)}, {kind.form or 1})"
        case "timestamp" | "tz" | "ltz":
            text = f"o_fit_timestamp({text}, {kind.scale if kind.scale is not None else 9})"
        case "ids" | "iym":
            text = f"o_fit_interval({text}, {kind.precision}, {kind.scale or 0})"
        case "clob" | "blob":
            raise ora(932, "CHAR", FAMILY_NAMES[kind.family], offset=pos)
    return Sql(text, kind, converted.nullable, constant=converted.constant)
