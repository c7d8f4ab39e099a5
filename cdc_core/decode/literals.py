"""Which value does one literal of redo text have in a column of a given kind? The plain form, one
value at a time.

Every rule stands here once more than in the kernels, which must agree with it; and rare forms are
decoded here alone. Source: forms of literals in V$LOGMNR_CONTENTS.SQL_REDO under the mining
session's NLS settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypeAlias, assert_never

import pyarrow as pa

from cdc_core.decode import printed
from cdc_core.decode.plan import ColumnPlan, Kind
from cdc_core.errors import ANY_TABLE, RESNAPSHOT_HINT, no_day_hint
from cdc_core.schema.types import INT64_DIGITS_MAX

Value: TypeAlias = int | Decimal | float | str | bytes | datetime | None

NUMBER_EXPONENT_MAX = 200
"""Oracle's NUMBER ends near 1E126 and 1E-130; larger exponents are damage, and would fill memory
with zeros."""

_HINT_NLS = (
    "The mining session did not have the NLS settings that capture sets: look for a trigger "
    "AFTER LOGON or AFTER SET CONTAINER that changes NLS_DATE_FORMAT or NLS_TIMESTAMP_FORMAT. "
    "Capture the window again with `redolake recapture --from WINDOW` while Oracle has its redo, "
    f"then run `redolake table resume {ANY_TABLE}`."
)
_HINT_SCHEMA = f"The table's definition may not be the one of this SCN. {RESNAPSHOT_HINT}"
_HINT_EXCLUDE = "Name the column under columns_exclude of its table to capture the others."


class LiteralRefusedError(Exception):
    """The literal has no exact value in the column; carries what and what to do, never the
    value."""

    def __init__(self, what: str, hint: str = _HINT_SCHEMA) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Quoted:
    """``'text'`` with doubled quotes undone."""

    text: str


@dataclass(frozen=True, slots=True)
class Bare:
    """A number without quotes."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function call whose arguments are all quoted strings."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Concat:
    """Parts joined by ``||``; at least two."""

    parts: tuple[Quoted | Call, ...]


@dataclass(frozen=True, slots=True)
class Null:
    """``NULL`` or ``IS NULL``."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """``Unsupported Type``: LogMiner cannot print the column's type."""


Literal: TypeAlias = Quoted | Bare | Call | Concat | Null | Unsupported


def value_of(literal: Literal, column: ColumnPlan) -> Value:
    """The value, in the Python type that Arrow makes the column's type of.

    Raises:
        LiteralRefusedError: The literal is not one of the column's forms, or its value does not fit
            exactly.
    """
    match literal:
        case Null():
            return None
        case Unsupported():
            raise LiteralRefusedError("LogMiner cannot print this column's type", _HINT_EXCLUDE)
        case Quoted() | Bare() | Call() | Concat():
            return _typed(literal, column)
        case _:
            assert_never(literal)


def _typed(literal: Quoted | Bare | Call | Concat, column: ColumnPlan) -> Value:
    match column.kind:
        case Kind.TEXT | Kind.CLOB:
            return _text(literal, column.kind)
        case Kind.INT64:
            return _integer(_number_text(literal))
        case Kind.DECIMAL:
            return _decimal(_number_text(literal), column)
        case Kind.NUMBER:
            return canonical_number_text(_number_text(literal))
        case Kind.FLOAT64 | Kind.FLOAT32:
            return _binary_float(_number_text(literal, floats=True), column.kind)
        case Kind.TIMESTAMP | Kind.DATE:
            return _timestamp(literal, column.kind)
        case Kind.TIMESTAMP_TEXT:
            return _moment_text_of(literal)
        case Kind.RAW:
            return _raw(literal)
        case Kind.BLOB:
            return b"" if literal == Call("EMPTY_BLOB", ()) else _raw(literal)
        case Kind.ZONED | Kind.INTERVAL_YM | Kind.INTERVAL_DS:
            return _printed(literal, column.kind)
        case _:
            raise AssertionError(column.kind)


# Text ---------------------------------------------------------------------------------------------


def _text(literal: Quoted | Bare | Call | Concat, kind: Kind) -> str | None:
    if kind is Kind.CLOB and literal == Call("EMPTY_CLOB", ()):
        return ""
    if isinstance(literal, Bare):
        raise LiteralRefusedError("a text column has a literal without quotes")
    parts = literal.parts if isinstance(literal, Concat) else (literal,)
    units = "".join(_text_part(part) for part in parts)
    try:
        text = units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise LiteralRefusedError("UNISTR contains half of a surrogate pair") from None
    # Oracle knows no empty VARCHAR2; a literal '' assigned to a CLOB is NULL as well. Only
    # EMPTY_CLOB() is ''.
    return text or None


def _text_part(part: Quoted | Call) -> str:
    if isinstance(part, Quoted):
        return part.text
    if part.name == "UNISTR" and len(part.arguments) == 1:
        return decode_unistr(part.arguments[0])
    raise LiteralRefusedError(f"{part.name}() is not a known form of text")


_UNISTR_ESCAPE = re.compile(r"\\(\\|[0-9A-Fa-f]{4}|)")


def decode_unistr(argument: str) -> str:
    r"""The UTF-16 units of ``UNISTR('...')``, surrogates unpaired: the caller joins parts before it
    pairs them.

    Args:
        argument: Text between the quotes, doubled quotes undone. ``\XXXX`` is one unit, ``\\`` a
            backslash.

    Raises:
        LiteralRefusedError: A backslash starts neither form.

    Source:
        Oracle SQL Language Reference, function UNISTR.
    """

    def unit(found: re.Match[str]) -> str:
        if not found[1]:
            raise LiteralRefusedError("UNISTR contains a backslash that starts no code unit")
        return "\\" if found[1] == "\\" else chr(int(found[1], 16))

    return _UNISTR_ESCAPE.sub(unit, argument)


def _raw(literal: Quoted | Bare | Call | Concat) -> bytes | None:
    if not (
        isinstance(literal, Call) and literal.name == "HEXTORAW" and len(literal.arguments) == 1
    ):
        raise LiteralRefusedError("a column of bytes has a literal that is not HEXTORAW('...')")
    digits = literal.arguments[0]
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", digits, re.ASCII):
        raise LiteralRefusedError("HEXTORAW contains something other than pairs of hex digits")
    return bytes.fromhex(digits) or None


# Numbers ------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d{1,9}))?", re.ASCII)
_FLOAT_NAMES = {"nan": "nan", "inf": "inf", "+inf": "inf", "-inf": "-inf"}


def _number_text(literal: Quoted | Bare | Call | Concat, *, floats: bool = False) -> str:
    if not isinstance(literal, Quoted | Bare):
        raise LiteralRefusedError("a number column has a literal that is not a number")
    text = literal.text
    if floats and text.lower() in _FLOAT_NAMES:
        return _FLOAT_NAMES[text.lower()]
    if not _NUMBER.fullmatch(text):
        raise LiteralRefusedError("a number column has a literal that is not a number")
    return text


def number_digits(text: str) -> tuple[bool, str, int]:
    """``(negative, digits, exponent)`` of number text: value = ±digits x 10**exponent, no zeros at
    either end of digits.

    Zero is ``(False, "", 0)``.

    Raises:
        LiteralRefusedError: Not a number, or an exponent beyond what NUMBER holds.
    """
    found = _NUMBER.fullmatch(text)
    if not found:
        raise LiteralRefusedError("a number column has a literal that is not a number")
    fraction = found[3] or found[4] or ""
    digits = ((found[2] or "") + fraction).lstrip("0")
    exponent = int(found[5] or 0) - len(fraction)
    stripped = digits.rstrip("0")
    if not stripped:
        return False, "", 0
    exponent += len(digits) - len(stripped)
    if abs(exponent) > NUMBER_EXPONENT_MAX:
        raise LiteralRefusedError("a number's exponent is out of NUMBER's range")
    return found[1] == "-", stripped, exponent


def canonical_number_text(text: str) -> str:
    """Canonical text of a NUMBER: no exponent, no zeros that say nothing, ``0.5`` for ``.5``, ``0``
    for ``-0``."""
    negative, digits, exponent = number_digits(text)
    if not digits:
        return "0"
    if exponent >= 0:
        plain = digits + "0" * exponent
    elif len(digits) > -exponent:
        plain = f"{digits[:exponent]}.{digits[exponent:]}"
    else:
        plain = "0." + "0" * (-exponent - len(digits)) + digits
    return f"-{plain}" if negative else plain


def _integer(text: str) -> int:
    negative, digits, exponent = number_digits(text)
    if exponent < 0:
        raise LiteralRefusedError("an integer column has a number with a fraction")
    if len(digits) + exponent > INT64_DIGITS_MAX:
        raise LiteralRefusedError("a number has more digits than its column's type allows")
    number = int(digits + "0" * exponent) if digits else 0
    return -number if negative else number


def _decimal(text: str, column: ColumnPlan) -> Decimal:
    negative, digits, exponent = number_digits(text)
    if -exponent > column.scale:
        raise LiteralRefusedError("a number has more fractional digits than its column's type")
    if digits and len(digits) + exponent > column.precision - column.scale:
        raise LiteralRefusedError("a number has more digits than its column's type allows")
    return Decimal((int(negative), tuple(map(int, digits or "0")), exponent))


def _binary_float(text: str, kind: Kind) -> float:
    number = float(text)
    if kind is Kind.FLOAT32 and text not in _FLOAT_NAMES.values():
        # Arrow reads text to float32 in one rounding; by way of a double it would be two.
        number = pa.scalar(text.lstrip("+")).cast(pa.float32()).as_py()
    if text in _FLOAT_NAMES.values():
        return number
    if number in (float("inf"), float("-inf")):
        raise LiteralRefusedError("a number is larger than its column's type allows")
    if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise LiteralRefusedError("a number is smaller than its column's type allows")
    return number


# Time ---------------------------------------------------------------------------------------------

_PRINTED = {
    Kind.ZONED: ("TO_TIMESTAMP_TZ", printed.zoned_text),
    Kind.INTERVAL_YM: ("TO_YMINTERVAL", printed.year_to_month_text),
    Kind.INTERVAL_DS: ("TO_DSINTERVAL", printed.day_to_second_text),
}


def _printed(literal: Quoted | Bare | Call | Concat, kind: Kind) -> str:
    name, canonical = _PRINTED[kind]
    if isinstance(literal, Call) and literal.name == name and len(literal.arguments) == 1:
        text = canonical(literal.arguments[0])
        if text is not None:
            return text
        if kind is Kind.ZONED and _ZONED_DAY.match(literal.arguments[0]):
            raise LiteralRefusedError(
                "a time with zone is outside the years 1 to 9999, or is not in the Gregorian "
                "calendar",
                no_day_hint(as_text=False),
            )
    raise LiteralRefusedError(
        "a time with zone or an interval is not as the mining session prints it",
        _HINT_NLS,
    )


_ZONED_DAY = re.compile(r"[ -]?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)
_MOMENT = re.compile(
    r"([ -]?)(\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?", re.ASCII
)
_DATE_MASKS = frozenset({"YYYY-MM-DD HH24:MI:SS", "SYYYY-MM-DD HH24:MI:SS"})
_TIMESTAMP_MASKS = _DATE_MASKS | frozenset(
    f"{mask}.FF{digits}" for mask in _DATE_MASKS for digits in ("", *"123456789")
)


def _timestamp(literal: Quoted | Bare | Call | Concat, kind: Kind) -> datetime:
    moment, fraction = _moment(literal)
    if kind is Kind.DATE and int(fraction):
        raise LiteralRefusedError("a DATE column has a literal with a fraction of a second")
    if fraction[6:] != "000":
        raise LiteralRefusedError("a timestamp has nanoseconds, its column's type has microseconds")
    return moment.replace(microsecond=int(fraction[:6]))


def _moment(literal: Quoted | Bare | Call | Concat) -> tuple[datetime, str]:
    """Whole seconds, and nine fractional digits."""
    text, signed, fractional = _moment_text(literal)
    found = _MOMENT.fullmatch(text)
    if not found or (found[1] == " " and not signed) or (found[8] is not None and not fractional):
        raise LiteralRefusedError("a date is not in the mining session's format", _HINT_NLS)
    year = int(found[2])
    if found[1] == "-" or not 1 <= year <= 9999:
        raise LiteralRefusedError("a date is outside the years 1 to 9999", no_day_hint())
    try:
        month, day, hour, minute, second = map(int, found.group(3, 4, 5, 6, 7))
        moment = datetime(year, month, day, hour, minute, second)
    except ValueError:
        raise LiteralRefusedError(
            "a date is not in the Gregorian calendar", no_day_hint()
        ) from None
    return moment, (found[8] or "").ljust(9, "0")


def _moment_text_of(literal: Quoted | Bare | Call | Concat) -> str:
    """The moment as text, which holds every day of Oracle's calendar: Julian before 15 October
    1582, years from -4712 on."""
    text, signed, fractional = _moment_text(literal)
    found = _MOMENT.fullmatch(text)
    if not found or (found[1] == " " and not signed) or (found[8] is not None and not fractional):
        raise LiteralRefusedError("a date is not in the mining session's format", _HINT_NLS)
    year, month, day = map(int, found.group(2, 3, 4))
    is_julian = (year, month, day) < (1582, 10, 5) or found[1] == "-"
    # Any leap year stands for a day that only the Julian calendar has.
    known = 2000 if is_julian and (month, day) == (2, 29) else max(year, 1)
    try:
        if not 1 <= year <= 9999:
            raise ValueError(year)
        hour, minute, second = map(int, found.group(5, 6, 7))
        datetime(known, month, day, hour, minute, second)
    except ValueError:
        raise LiteralRefusedError("a date has a field that is out of range") from None
    return f"{text.lstrip(' ').partition('.')[0]}.{(found[8] or '').ljust(9, '0')}"


def _moment_text(literal: Quoted | Bare | Call | Concat) -> tuple[str, bool, bool]:
    """Text of the moment; whether a leading blank is a sign position; whether a fraction may
    follow."""
    if isinstance(literal, Call):
        match literal.name, literal.arguments:
            case "TO_DATE", (text, mask) if mask in _DATE_MASKS:
                return text, mask.startswith("S"), False
            case "TO_TIMESTAMP", (text,):
                return text, True, True
            case "TO_TIMESTAMP", (text, mask) if mask in _TIMESTAMP_MASKS:
                return text, mask.startswith("S"), True
            case (("TO_DATE" | "TO_TIMESTAMP"), _):
                raise LiteralRefusedError("a date has a format that is not understood", _HINT_NLS)
    raise LiteralRefusedError("a date column has a literal that is not a date")
