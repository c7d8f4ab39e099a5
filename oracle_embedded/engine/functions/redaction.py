"""What does partial redaction leave of a value?

Source: Oracle Database Data Redaction Guide 23ai, "Creating a Partial Redaction Policy".
"""

from __future__ import annotations

import re
from datetime import datetime

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.functions.registry import register
from oracle_embedded.values import date_from_datetime, datetime_from_date

_DATE_PARTS = re.compile(
    r"(M|m\d{1,2})(D|d\d{1,2})(Y|y\d{1,4})(H|h\d{1,2})(M|m\d{1,2})(S|s\d{1,2})"
)


def check_parameters(family: str, parameters: str) -> None:
    """Do the parameters fit a column's type?

    Raises:
        OracleError: ORA-28082, and ORA-28073 for a type without partial redaction.
    """
    if family == "number":
        is_valid = re.fullmatch(r"\d,\d+,\d+", parameters) is not None
    elif family == "text":
        parts = parameters.split(",")
        is_valid = (
            len(parts) == 5
            and set(parts[0]) <= {"V", "F"}
            and parts[0].count("V") == parts[1].count("V")
            and len(parts[2]) == 1
            and parts[3].isdigit()
            and parts[4].isdigit()
        )
    elif family in ("date", "timestamp"):
        is_valid = _DATE_PARTS.fullmatch(parameters) is not None
    else:
        raise OracleError(28073, "The column has an unsupported datatype.")
    if not is_valid:
        raise OracleError(28082, "The parameter FUNCTION_PARAMETERS is invalid.")


def _redact_part(value: bytes | str, family: str, parameters: str) -> bytes | str:
    if isinstance(value, str):
        return _text(value, *parameters.split(","))
    if family == "number":
        digit, first, last = (int(part) for part in parameters.split(","))
        return _number(value, str(digit), first, last)
    return _moment(value, parameters)


def _number(value: bytes, digit: str, first: int, last: int) -> bytes:
    """Digits ``first`` to ``last``, counted from the left, become another; sign and point stay."""
    text, at = [], 0
    for character in format(numbers.decode(value), "f"):
        at += character.isdigit()
        text.append(digit if character.isdigit() and first <= at <= last else character)
    return numbers.encode(numbers.WIDE.create_decimal("".join(text)))


def _text(value: str, shape: str, shown: str, mask: str, first: str, last: str) -> str:
    """Of the characters under a V of the input's form those from ``first`` to ``last`` become the
    mask; all go into the places of the output's form."""
    kept = [character for character, form in zip(value, shape, strict=False) if form == "V"]
    for at in range(int(first) - 1, min(int(last), len(kept))):
        kept[at] = mask
    left = iter(kept)
    return "".join(next(left, "") if form == "V" else form for form in shown)


def _moment(value: bytes, parameters: str) -> bytes:
    """Each part of a date is kept (an upper-case letter) or becomes what its letter is followed
    by."""
    found = _DATE_PARTS.fullmatch(parameters)
    assert found is not None
    was = datetime_from_date(value)
    fields = (was.month, was.day, was.year, was.hour, was.minute, was.second)
    month, day, year, hour, minute, second = (
        field if part.isupper() else int(part[1:])
        for field, part in zip(fields, found.groups(), strict=True)
    )
    return date_from_datetime(datetime(year, month, day, hour, minute, second)) + value[7:]


register("o_redact_part", _redact_part, 3)
