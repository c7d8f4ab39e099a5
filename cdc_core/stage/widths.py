"""How wide are the widest values that a column has had, and how much room is left in its Delta
type?

Delta's types hold all that Oracle's hold, but for decimals that are narrower by choice
(``columns_as``) or by nature (``NUMBER(*, s)`` has 40 digits, a decimal 38). What does not fit
there is refused row by row; the widths tell of it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import DECIMAL_DIGITS_MAX, NUMBER_TYPES, arrow_type, is_number_text

ORACLE_DIGITS_MAX = 40
"""Decimal digits that a NUMBER without precision may have."""

ROOM_MIN = 1
"""With no more digits left than this, people are warned."""


@dataclass(frozen=True, slots=True)
class Width:
    """The most that one value of a column had: digits before and behind the point of numbers,
    characters of text, bytes of binary."""

    whole: int = 0
    fraction: int = 0
    length: int = 0

    def __or__(self, other: Width) -> Width:
        return Width(
            max(self.whole, other.whole),
            max(self.fraction, other.fraction),
            max(self.length, other.length),
        )


Widths: TypeAlias = Mapping[str, Width]
"""By column, as each is stored."""


def both(one: Widths, other: Widths) -> dict[str, Width]:
    """The wider of two widths, column by column."""
    return {
        name: one.get(name, Width()) | other.get(name, Width()) for name in sorted({*one, *other})
    }


def widths_as_json(widths: Widths) -> dict[str, Any]:
    """A JSON form; :func:`widths_from_json` is its inverse."""
    return {
        name: {part: size for part, size in asdict(width).items() if size}
        for name, width in widths.items()
    }


def widths_from_json(data: Mapping[str, Any]) -> dict[str, Width]:
    """Read what :func:`widths_as_json` made."""
    return {name: Width(**parts) for name, parts in data.items()}


def room_of(column: Column, width: Width) -> int | None:
    """How many more digits before the point the column's Delta type has; None where it holds all
    that Oracle's type holds."""
    held = arrow_type(column)
    if column.data_type not in NUMBER_TYPES or not pa.types.is_decimal128(held):
        return None
    most = ORACLE_DIGITS_MAX if column.precision is None else column.precision
    needed = DECIMAL_DIGITS_MAX if column.scale is None else most - column.scale
    has: int = held.precision - held.scale
    return has - width.whole if has < needed else None


@dataclass(slots=True)
class WidthCounter:
    """Measures the new rows of change batches that pass. ``seen`` is the result so far."""

    schema: TableSchema
    seen: dict[str, Width] = field(default_factory=dict)

    def passing(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches (columns of ``layout.change_schema``) as they are."""
        columns = self.schema.columns
        for batch in batches:
            rows = batch["after"]
            values = (rows.field(column.stored_as) for column in columns)
            found = widths_of(columns, values)
            self.seen = both(self.seen, {one.stored_as: width for one, width in found})
            yield batch


def widths_of(
    columns: Iterable[Column], values: Iterable[pa.Array]
) -> Iterator[tuple[Column, Width]]:
    """How wide the values of each column are, for those that have a width."""
    for column, array in zip(columns, values, strict=True):
        width = width_of(array, column)
        if width is not None:
            yield column, width


def width_of(values: pa.Array, column: Column) -> Width | None:
    """The width of a column's values in the lake; None where there are none, or their type has one
    width alone."""
    kind = values.type
    if len(values) == values.null_count:
        return None
    if pa.types.is_string(kind):
        if is_number_text(column):
            return _number_text_width(values)
        return Width(length=pc.max(pc.utf8_length(values)).as_py())
    if pa.types.is_binary(kind):
        return Width(length=pc.max(pc.binary_length(values)).as_py())
    if column.data_type not in NUMBER_TYPES or not (
        pa.types.is_int64(kind) or pa.types.is_decimal128(kind)
    ):
        return None
    bounds = pc.min_max(values).as_py()
    # abs() of a Decimal rounds to 28 digits: 9…9 of 29 becomes a 1 with 29 zeros.
    sizes = [Decimal(one).copy_abs() for one in bounds.values()]
    whole = max(len(str(int(one))) if one >= 1 else 0 for one in sizes)
    # It takes a look at every value, and elsewhere Oracle's own scale bounds it.
    return Width(whole, 0 if room_of(column, Width()) is None else _fraction(values))


def _fraction(values: pa.Array) -> int:
    """Digits behind the point, without zeros at the end. Mostly some value uses the whole scale,
    which the first look tells."""
    scale: int = values.type.scale
    while scale and pc.all(pc.equal(pc.round(values, scale - 1, "towards_zero"), values)).as_py():
        scale -= 1
    return scale


def _number_text_width(texts: pa.Array) -> Width:
    """Digits of canonical text: all before the point are digits but a minus, and the zero of
    ``0.5``."""
    texts = texts.drop_null()
    lengths = pc.binary_length(texts).to_numpy()
    points = pc.find_substring(texts, ".").to_numpy()
    minus = pc.starts_with(texts, "-").to_numpy(zero_copy_only=False)
    has_point = points >= 0
    whole = np.where(has_point, points, lengths) - minus
    fraction = np.where(has_point, lengths - points - 1, 0)
    return Width(int(whole.max()), int(fraction.max()))
