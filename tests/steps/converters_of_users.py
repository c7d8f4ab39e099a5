"""Classes as users write them: converters of columns, good ones and wrong ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.schema.converters import ConvertedColumn


class YesNo:
    """A one-letter text as a boolean, in columns whose name ends so."""

    type = pa.bool_()

    def matches(self, column: ConvertedColumn) -> bool:
        """Columns of one letter."""
        return column.arrow_type == pa.string() and column.name.endswith("_YN")

    def convert(self, values: pa.Array) -> pa.Array:
        """Y and N; anything else is an error."""
        if not pc.all(pc.is_in(values, pa.array(["Y", "N", None]))).as_py():
            raise ValueError(f"what is {values.to_pylist()}?")
        return pc.equal(values, "Y")


class Cents:
    """An amount in cents."""

    type = pa.int64()

    def matches(self, column: ConvertedColumn) -> bool:
        """Every NUMBER with two decimals."""
        return (column.data_type, column.scale) == ("NUMBER", 2)

    def convert(self, values: pa.Array) -> pa.Array:
        """The number of cents."""
        return pc.multiply(values, pa.scalar(100, pa.decimal128(3, 0))).cast(pa.int64())


class Noon(YesNo):
    """A day as the moment of its noon in UTC; says something of NULL, too."""

    type = pa.timestamp("us", "UTC")

    def matches(self, column: ConvertedColumn) -> bool:
        """Days."""
        return column.data_type == "DATE"

    def convert(self, values: pa.Array) -> pa.Array:
        """Twelve hours later."""
        later = pc.add(pc.fill_null(values.cast(pa.int64()), 0), 12 * 3_600_000_000)
        return later.cast(self.type)


class Short(YesNo):
    """Gives one value too few."""

    def convert(self, values: pa.Array) -> pa.Array:
        """All but the last."""
        return super().convert(values)[:-1]


class OtherType(YesNo):
    """Gives another type than it says."""

    def convert(self, values: pa.Array) -> pa.Array:
        """Texts."""
        return values


class NoArray(YesNo):
    """Gives a list."""

    def convert(self, values: pa.Array) -> Any:
        """A list."""
        return values.to_pylist()


class Maybe(YesNo):
    """Does not say whether it matches."""

    def matches(self, column: ConvertedColumn) -> Any:
        """None."""
        return None


class Confused(YesNo):
    """Fails to say whether it matches."""

    def matches(self, column: ConvertedColumn) -> bool:
        """An error."""
        raise KeyError(column.name)


class Untyped:
    """Has no type."""

    def matches(self, column: ConvertedColumn) -> bool:
        """Always."""
        return True

    def convert(self, values: pa.Array) -> pa.Array:
        """The same."""
        return values


class OddlyTyped(Untyped):
    """Has a type that the Delta tables do not have."""

    type = pa.time64("us")


class Nothing:
    """Does nothing."""

    type = pa.bool_()


class Demanding(YesNo):
    """Wants an argument."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
