"""How do numbers turn into text and back under Oracle's format models?

Source: Oracle SQL Language Reference 19c, chapter 2, Number Format Models.
"""

from __future__ import annotations

import decimal
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.errors import ora
from oracle_embedded.values import shortest_text_from_number

_BAD = (1481, "invalid number format model")
_BAD_SETTING = (12702, "invalid NLS parameter string used in SQL function")
_MODEL = re.compile(
    r"(?P<fm>FM)?(?P<s1>S)?(?P<b1>B)?(?P<cur>[$LCU])?(?P<whole>[09,G$B]*)(?:(?P<point>[.DV])(?P<frac>[09$B]*))?"
    r"(?P<sci>EEEE)?(?P<s2>S|MI|PR)?\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    fill: bool
    sign: str
    currency: str
    whole: str
    fraction: str
    point: str
    scientific: bool
    blank_zero: bool


@lru_cache(maxsize=256)
def _layout(model: str) -> _Layout:
    match = _MODEL.match(model.strip().upper())
    if match is None:
        raise OracleError(*_BAD)
    whole, fraction = match["whole"] or "", match["frac"] or ""
    currency = match["cur"] or ("$" if "$" in whole + fraction else "")
    if match["point"] == "V" or (match["s1"] and match["s2"]):
        raise OracleError(*_BAD)
    sign = "S<" if match["s1"] else {"S": "S>", "MI": "MI", "PR": "PR"}.get(match["s2"] or "", "")
    blank = match["b1"] is not None or "B" in whole + fraction
    for letter in "$B":
        whole, fraction = whole.replace(letter, ""), fraction.replace(letter, "")
    return _Layout(
        fill=not match["fm"],
        sign=sign,
        currency=currency,
        whole=whole,
        fraction=fraction,
        point=match["point"] or "",
        scientific=bool(match["sci"]),
        blank_zero=blank,
    )


def print_number(value: bytes, model: str, separators: str, currency: str) -> str:
    """Text of a number under a format model; ``#`` all over when it does not fit.

    Raises:
        OracleError: ORA-01481 for a model that is none.
    """
    number = numbers.decode(value)
    upper = model.strip().upper()
    if upper in ("TM", "TM9", "TME"):
        text = shortest_text_from_number(value, scientific=upper == "TME")
        return text.replace(".", separators[0])
    if re.fullmatch(r"(FM)?0*X+", upper):
        return _hexadecimal(number, upper, model)
    if re.fullmatch(r"(FM)?RN", upper):
        return _roman(number, upper.startswith("FM"))
    layout = _layout(model)
    if layout.scientific:
        return _scientific(number, layout)
    places = len(layout.fraction)
    rounded = number.copy_abs().quantize(Decimal((0, (1,), -places)), ROUND_HALF_UP, numbers.WIDE)
    whole_digits, _, fraction = f"{rounded:f}".partition(".")
    whole_digits = "" if whole_digits == "0" else whole_digits
    room = sum(1 for letter in layout.whole if letter in "09")
    if len(whole_digits) > room:
        return "#" * (len(upper.removeprefix("FM")) + (0 if layout.sign else 1))
    body = _group(whole_digits, layout, separators)
    if layout.point:
        kept = fraction
        if not layout.fill:
            least = layout.fraction.rfind("0") + 1
            kept = fraction[:least] + fraction[least:].rstrip("0")
        body += ("." if layout.point == "." else separators[0]) + kept
    elif not whole_digits and "0" not in layout.whole:
        body = body[:-1] + "0" if body else "0"
    negative = number < 0 and any(letter in "123456789" for letter in body)
    return _signed(body, negative, layout, currency)


_SETTING = re.compile(
    r"\s*(NLS_NUMERIC_CHARACTERS|NLS_CURRENCY|NLS_ISO_CURRENCY)\s*=\s*(?:'([^']*)'|(\S+))",
    re.IGNORECASE,
)


@lru_cache(maxsize=64)
def number_settings(text: str) -> dict[str, str]:
    """The settings of TO_CHAR's third argument:
    ``NLS_NUMERIC_CHARACTERS = ',.' NLS_CURRENCY = 'EUR'``.

    Raises:
        OracleError: ORA-12702 for anything else.
    """
    found = {}
    at = 0
    while text[at:].strip():
        match = _SETTING.match(text, at)
        if match is None:
            raise OracleError(*_BAD_SETTING)
        found[match[1].upper()] = match[2] if match[2] is not None else match[3]
        at = match.end()
    if len(found.get("NLS_NUMERIC_CHARACTERS", ".,")) != 2:
        raise OracleError(*_BAD_SETTING)
    return found


def _group(digits: str, layout: _Layout, separators: str) -> str:
    """Digits of the whole part in the model's places, leading blanks kept."""
    result: list[str] = []
    left = list(digits)
    zero_from = layout.whole.find("0")
    for at in range(len(layout.whole) - 1, -1, -1):
        letter = layout.whole[at]
        significant = bool(left) or (zero_from >= 0 and at >= zero_from)
        if letter in ",G":
            before = bool(left) or (zero_from >= 0 and at > zero_from)
            result.append(("," if letter == "," else separators[1]) if before else " ")
        elif left:
            result.append(left.pop())
        else:
            result.append("0" if significant else " ")
    return "".join(reversed(result))


def _signed(body: str, negative: bool, layout: _Layout, currency: str) -> str:
    stripped = body.lstrip(" ")
    pad = " " * (len(body) - len(stripped))
    if layout.currency:
        stripped = ("$" if layout.currency == "$" else currency) + stripped
    match layout.sign:
        case "S<":
            text = pad + ("-" if negative else "+") + stripped
        case "S>":
            text = pad + stripped + ("-" if negative else "+")
        case "MI":
            text = pad + stripped + ("-" if negative else " " if layout.fill else "")
        case "PR":
            text = f"{pad}<{stripped}>" if negative else f"{pad} {stripped} "
        case _:
            text = pad + ("-" if negative else " ") + stripped
    return text if layout.fill else text.strip(" ")


def _scientific(number: Decimal, layout: _Layout) -> str:
    digits = decimal.Context(prec=len(layout.fraction) + 1, rounding=ROUND_HALF_UP)
    rounded = digits.plus(number.copy_abs())
    mantissa, exponent = f"{rounded:.{len(layout.fraction)}E}".split("E")
    body = f"{mantissa}E{int(exponent):+03d}"
    if layout.sign == "S<":
        return ("-" if number < 0 else "+") + body
    return (" " if layout.fill else "") + ("-" if number < 0 else " " if layout.fill else "") + body


def _hexadecimal(number: Decimal, upper: str, model: str) -> str:
    value = int(number.to_integral_value(ROUND_HALF_UP))
    width = len(upper.removeprefix("FM"))
    text = f"{value:X}" if value >= 0 else "#" * (width + 1)
    if len(text) > width:
        return "#" * (width + 1)
    if "0" in upper:
        text = text.zfill(width)
    text = text.lower() if "x" in model else text
    return text if upper.startswith("FM") else text.rjust(width + 1)


def _roman(number: Decimal, tight: bool) -> str:
    value = int(number)
    if not 1 <= value <= 3999:
        return "#" * 15
    text = ""
    for weight, letters in (
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ):
        text += letters * (value // weight)
        value %= weight
    return text if tight else text.rjust(15)


def read_number(text: str, model: str, separators: str, currency: str) -> bytes:
    """TO_NUMBER(text, model).

    Raises:
        OracleError: ORA-01722 when the text does not follow the model.
    """
    upper = model.strip().upper()
    stripped = text.strip()
    if re.fullmatch(r"(FM)?0*X+", upper):
        try:
            return numbers.encode(int(stripped, 16))
        except ValueError as error:
            raise ora(1722) from error
    layout = _layout(model)
    negative = stripped.startswith(("-", "<")) or (
        layout.sign in ("S>", "MI") and stripped.endswith("-")
    )
    body = stripped.strip("+-<> ").removeprefix("$").removeprefix(currency)
    grouping = separators[1] if "G" in layout.whole else ","
    point = separators[0] if layout.point == "D" else "."
    if grouping in body:
        if grouping not in layout.whole and "G" not in layout.whole:
            raise ora(1722)
        body = body.replace(grouping, "")
    whole, _, fraction = body.partition(point)
    room = sum(1 for letter in layout.whole if letter in "09")
    if (
        not re.fullmatch(r"\d*", whole)
        or not re.fullmatch(r"\d*", fraction)
        or not whole + fraction
    ):
        raise ora(1722)
    if len(whole) > room or len(fraction) > len(layout.fraction):
        raise ora(1722)
    return numbers.encode(Decimal(f"{'-' if negative else ''}{whole or '0'}.{fraction or '0'}"))
