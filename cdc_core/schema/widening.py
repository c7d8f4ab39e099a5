"""Which column holds the values of two definitions of a column, the one before and the one after
MODIFY?

Oracle lets a column get more digits at any time, fewer only while it is empty (ORA-01440) or has no
value that is too long. Delta tables hold the values of both times, those of an emptied column in
the change log: they get the wider type, and keep it.
"""

from __future__ import annotations

from dataclasses import replace

from cdc_core.schema.table import Column
from cdc_core.schema.types import (
    DECIMAL_DIGITS_MAX,
    MASKED_TYPES,
    NUMBER_TYPES,
    arrow_type,
    is_moment,
    is_number_text,
    is_timestamp_text,
    printed_as,
)

_FLOATS = ("BINARY_FLOAT", "BINARY_DOUBLE")


def wider(old: Column, new: Column) -> Column | None:
    """The new definition with a type that holds exactly the values of both; None where no type
    does.

    A NUMBER has as many digits before and behind the point as either had, and is a NUMBER without
    precision (canonical text) where these are more than a decimal's 38. A moment of nine digits is
    text. Of other types, only those of one kind hold each other's values, and what the
    configuration holds in a form of its own (``held_as``) keeps that: a DATE and a TIMESTAMP WITH
    LOCAL TIME ZONE are no kind, whatever form both have.

    Raises:
        UnsupportedTypeError: The type of one of them is not captured.
    """
    same = new if arrow_type(old) == arrow_type(new) and _kind(old) == _kind(new) else None
    if old.form or new.form:
        return same
    if {old.data_type, new.data_type} <= NUMBER_TYPES:
        return _number(old, new)
    if same is not None:
        return same
    if is_moment(old) and is_moment(new):
        return new if is_timestamp_text(new) else _typed_as(old, new)
    if old.data_type in _FLOATS and new.data_type in _FLOATS:
        return replace(new, data_type="BINARY_DOUBLE")
    return None


def _kind(column: Column) -> object:
    """What the column's values are; texts of two kinds have one type in Delta, and say other
    things."""
    if column.data_type in NUMBER_TYPES:
        return "number"
    if is_moment(column):
        return "moment"
    if column.data_type in MASKED_TYPES:
        return "text"
    return printed_as(column) or column.data_type


def _number(old: Column, new: Column) -> Column:
    if is_number_text(new) or is_number_text(old):
        return new if is_number_text(new) else _typed_as(old, new)
    digits = [_digits(one) for one in (old, new)]
    whole, fraction = (max(sizes) for sizes in zip(*digits, strict=True))
    for one, own in ((new, digits[1]), (old, digits[0])):
        if own == (whole, fraction):
            return _typed_as(one, new)
    if whole + fraction > DECIMAL_DIGITS_MAX:
        return replace(new, precision=None, scale=None)
    return replace(new, precision=whole + fraction, scale=fraction)


def _digits(column: Column) -> tuple[int, int]:
    """Digits before and behind the point of a NUMBER with scale."""
    scale = column.scale or 0
    digits = DECIMAL_DIGITS_MAX if column.precision is None else column.precision
    return max(0, digits - scale), max(0, scale)


def _typed_as(one: Column, column: Column) -> Column:
    """The column with the type of another definition."""
    return replace(
        column,
        data_type=one.data_type,
        length=one.length,
        precision=one.precision,
        scale=one.scale,
    )


def is_wider(old: Column, new: Column) -> bool:
    """Must Delta tables that hold the old definition get another type to hold the new one too? What
    :func:`wider` gives has it."""
    held = wider(old, new)
    return held is not None and arrow_type(held) != arrow_type(old)
