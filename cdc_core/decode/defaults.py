"""Which value does the DEFAULT clause of an added column give to existing rows?

Oracle adds such a column without touching the rows, and no redo row tells its value; so the clause
is read here, and only where it is a literal, whose value no session setting and no clock changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa

from cdc_core.decode.column_forms import in_form
from cdc_core.decode.literals import (
    Bare,
    Call,
    Literal,
    LiteralRefusedError,
    Null,
    Quoted,
    Value,
    canonical_number_text,
    number_digits,
    value_of,
)
from cdc_core.decode.plan import Kind, plan_column
from cdc_core.errors import RESNAPSHOT, DecodeError, SchemaMismatchError
from cdc_core.schema.table import Column
from cdc_core.schema.types import is_held_otherwise

_HINT = f"{RESNAPSHOT} reads the column's values instead of its DEFAULT clause."
_STRING = r"'((?:[^']|'')*)'"
_TEXT = re.compile(rf"N?{_STRING}", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"[+-]?\s*(?:\d+\.?\d*|\.\d+)(?:E[+-]?\d{1,3})?", re.IGNORECASE | re.ASCII)
_MOMENT = re.compile(rf"(DATE|TIMESTAMP)\s*{_STRING}", re.IGNORECASE)
_CALL = re.compile(
    rf"(TO_DATE|TO_TIMESTAMP|HEXTORAW|UNISTR)\s*\(\s*{_STRING}\s*(?:,\s*{_STRING}\s*)?\)",
    re.IGNORECASE | re.DOTALL,
)
_EMPTY_CLOB = re.compile(r"EMPTY_CLOB\s*\(\s*\)", re.IGNORECASE)
_TIMESTAMP_DIGITS = re.compile(r"TIMESTAMP\((\d)\)")
_DAY_MASK, _SECOND_MASK = "YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS"
_BITS_PER_DIGIT = math.log2(10)


def default_scalar(column: Column) -> pa.Scalar | None:
    """The value of the column's DEFAULT clause in the column's Arrow type; None where it is NULL or
    there is none.

    Blanks are added for CHAR, as Oracle stores it.

    Raises:
        SchemaMismatchError: The clause is not a literal (a function, a sequence), or Oracle would
            round or convert the literal by session settings.
        UnsupportedTypeError: The column's type is not captured.
    """
    plan = plan_column(column)
    if column.default is None or not column.default.strip():
        return None
    literal = _literal(_without_parentheses(column.default.strip()), plan.kind)
    try:
        if literal is None:
            raise LiteralRefusedError("a column's DEFAULT clause is not a literal")
        _check_fits(literal, column, plan.kind)
        value = value_of(literal, plan)
        value = _padded(value, column) if isinstance(value, str) else value
    except LiteralRefusedError as error:
        raise _not_applied(column, error.what) from None
    if value is None:
        return None
    scalar = pa.scalar(value, plan.type)
    if not is_held_otherwise(column):
        return scalar
    try:
        return in_form(pa.array([scalar]), column)[0]
    except DecodeError as error:
        raise _not_applied(column, error.message) from None


def scalar_of_older_rows(column: Column) -> pa.Scalar | None:
    """The value of an added column in existing rows: its DEFAULT, None (NULL) if that is no
    literal.

    Capture ends the stream at a column whose DEFAULT is no literal (:func:`unfilled`), so such a
    column comes with a snapshot, which reads every row again.
    """
    try:
        return default_scalar(column)
    except SchemaMismatchError:
        return None


def unfilled(columns: Iterable[Column]) -> str | None:
    """Why existing rows cannot get the DEFAULT of an added column, such as an identity column; None
    if they can."""
    for column in columns:
        try:
            default_scalar(column)
        except SchemaMismatchError as error:
            return error.what_happened
    return None


def _not_applied(column: Column, what: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"the DEFAULT clause of a new column cannot be applied to older rows: {what}",
        hint=_HINT,
        column=column.name,
        data_type=column.data_type,
    )


def _without_parentheses(text: str) -> str:
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    return text


def _literal(text: str, kind: Kind) -> Literal | None:
    """The clause as the literal that redo would have for it; None where it is something else."""
    if text.upper() == "NULL":
        return Null()
    if found := _TEXT.fullmatch(text):
        inner = _undoubled(found[1])
        # An implicit conversion to RAW is HEXTORAW, whatever the session's settings are.
        return Call("HEXTORAW", (inner,)) if kind is Kind.RAW and inner else Quoted(inner)
    if _NUMBER.fullmatch(text):
        return _number(re.sub(r"\s", "", text), kind)
    if found := _MOMENT.fullmatch(text):
        is_day = found[1].upper() == "DATE"
        return _day(found[2]) if is_day else Call("TO_TIMESTAMP", (found[2],))
    if _EMPTY_CLOB.fullmatch(text):
        return Call("EMPTY_CLOB", ())
    if found := _CALL.fullmatch(text):
        return _call(found[1].upper(), _undoubled(found[2]), found[3])
    return None


def _number(text: str, kind: Kind) -> Literal | None:
    if kind not in (Kind.TEXT, Kind.CLOB):
        return Bare(text)
    # TO_CHAR of a fraction depends on NLS_NUMERIC_CHARACTERS, of a whole number on nothing.
    whole = canonical_number_text(text)
    return Quoted(whole) if re.fullmatch(r"-?\d{1,40}", whole) else None


def _day(text: str) -> Call:
    return Call("TO_DATE", (f"{text} 00:00:00", _SECOND_MASK))


def _call(name: str, text: str, mask: str | None) -> Call:
    if mask is None:
        return Call(name, (text,))
    mask = mask.upper()
    return _day(text) if mask == _DAY_MASK else Call(name, (text, mask))


def _undoubled(text: str) -> str:
    return text.replace("''", "'")


def _check_fits(literal: Literal, column: Column, kind: Kind) -> None:
    """Refuse what Oracle would round when it stores the literal in the column.

    Raises:
        LiteralRefusedError: It would.
    """
    if isinstance(literal, Call) and literal.name in ("TO_DATE", "TO_TIMESTAMP"):
        fraction = literal.arguments[0].partition(".")[2].rstrip("0")
        found = _TIMESTAMP_DIGITS.match(column.data_type)
        if len(fraction) > (int(found[1]) if found else 0):
            raise LiteralRefusedError("it has more fractional digits of a second than the column")
    if not isinstance(literal, Quoted | Bare):
        return
    if kind is Kind.NUMBER and column.data_type == "FLOAT":
        _negative, digits, _exponent = number_digits(literal.text)
        if len(digits) > int((column.precision or 126) / _BITS_PER_DIGIT):
            raise LiteralRefusedError("it may have more digits than the column")
    is_coarse = kind in (Kind.INT64, Kind.DECIMAL) and (column.scale or 0) < 0
    if is_coarse and Decimal(literal.text) % 10 ** -(column.scale or 0):
        raise LiteralRefusedError("it has more digits than the column")


def _padded(value: Value, column: Column) -> Value:
    """CHAR and NCHAR as Oracle stores them: filled with blanks to the column's length.

    Raises:
        LiteralRefusedError: The length is in bytes, and the text's bytes in the database's
            character set are not known.
    """
    if not isinstance(value, str) or column.data_type not in ("CHAR", "NCHAR"):
        return value
    if column.data_type == "CHAR" and column.char_length == column.length and not value.isascii():
        raise LiteralRefusedError("its length in the database's character set is not known")
    return value.ljust(column.char_length)
