"""How does a class of the user's own convert the values of a column?

``columns_as`` and ``types_as`` name it as ``package.module:Class``. Both paths convert by it
(:mod:`cdc_core.decode.column_forms`), by whole Arrow columns. What it makes is part of the column's
form (``package.module:Class -> bool``), so that the lake's half needs no class to know the type,
and a class that has begun to make another one is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.config import SourceConfig
from cdc_core.errors import ANY_TABLE, ConfigError, ConverterError, UnsupportedTypeError
from cdc_core.model.identifiers import TableId
from cdc_core.model.import_path import made_by
from cdc_core.schema.table import Column
from cdc_core.schema.types import CONVERTED, arrow_type, converter_of, type_named

_DOES = "it has `type`, an Arrow type, `matches(column)` and `convert(values)`."
_HINT = "docs/how-to/converters.md says what Redolake asks of a converter."


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """What a converter is told of a column: its table as ``OWNER.TABLE``, how Oracle declares it
    (``data_type`` is Oracle's own text, such as ``NUMBER`` or ``TIMESTAMP(6)``), and in which Arrow
    type its values come."""

    table: str
    name: str
    data_type: str
    length: int
    precision: int | None
    scale: int | None
    nullable: bool
    arrow_type: pa.DataType


class Converter(Protocol):
    """What a class does whose name stands under ``columns_as`` or ``types_as``. Redolake makes one
    of it without arguments, for a process; several threads may call it."""

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of all that :meth:`convert` returns."""
        ...

    def matches(self, column: ConvertedColumn) -> bool:
        """Does it convert the column? Otherwise the column's form is what ``types_as`` says, or the
        default."""
        ...

    def convert(self, values: pa.Array) -> pa.Array:
        """The values, one for each that is given, in their order. Each must depend on its own value
        alone: a row comes in snapshots, in the log and in replays, among other rows. What is NULL
        stays NULL, whatever this returns for it. A value that cannot be converted is an exception,
        of which Redolake shows the class, never the text."""
        ...


def form_by(path: str, column: Column, table: TableId) -> str:
    """The form of a column that a class converts; empty if it does not match the column, or the
    column is of a type that is not captured.

    Raises:
        ConverterError: The class cannot be used.
    """
    try:
        kind = arrow_type(replace(column, held_as=""))
    except UnsupportedTypeError:
        return ""
    told = ConvertedColumn(
        table.argument,
        column.name,
        column.data_type,
        column.length,
        column.precision,
        column.scale,
        column.nullable,
        kind,
    )
    converter = _made(path)
    try:
        found = converter.matches(told)
    except Exception as error:  # whatever a user's class raises
        raise _wrong(path, "matches() raises an error", reason=type(error).__name__) from None
    if not isinstance(found, bool):
        raise _wrong(path, "matches() returns neither True nor False")
    return CONVERTED.format(path=path, type=converter.type) if found else ""


def check_converters(config: SourceConfig) -> None:
    """Import all classes that the configuration names.

    Raises:
        ConverterError: One cannot be used.
    """
    for table in config.tables:
        for form in (*table.columns_as.values(), *table.types_as.values()):
            if is_class(form):
                _made(form)


def is_class(form: str) -> bool:
    """Does the configuration name a class by the form?"""
    return ":" in form


def converted(values: pa.Array, column: Column) -> pa.Array:
    """A column's values as its class converts them; nulls stay.

    Raises:
        ConverterError: It raises an error, or gives another number of values, or another type. The
            facts name the row whose value alone does that, if there is one, never the value.
    """
    path, kind = converter_of(column.form)
    converter = _made(path)
    if len(values) == 0:  # of which `pc.all` and its kin say neither true nor false
        return pa.array([], kind)
    try:
        found = converter.convert(values)
    except MemoryError:
        raise
    except Exception as error:  # whatever a user's class raises; its text may hold values
        row = _failing_row(converter, values)
        where = {} if row is None else {"row": row}
        raise _wrong(
            path,
            "convert() raises an error",
            reason=type(error).__name__,
            column=column.name,
            **where,
        ) from None
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if not isinstance(found, pa.Array) or found.type != kind:
        got = found.type if isinstance(found, pa.Array) else type(found).__name__
        raise _wrong(path, f"convert() gives {got}, not {kind}", column=column.name)
    if len(found) != len(values):
        raise _wrong(path, "convert() gives another number of values", column=column.name)
    return pc.if_else(values.is_valid(), found, pa.scalar(None, kind))


@lru_cache(maxsize=256)
def _made(path: str) -> Converter:
    try:
        made: Any = made_by(path, option="columns_as", does=_DOES)
    except ConfigError as error:
        raise ConverterError(error.message, hint=error.hint, **error.facts) from None
    if not all(callable(getattr(made, name, None)) for name in ("matches", "convert")):
        raise _wrong(path, "it has no matches() or no convert()")
    kind = getattr(made, "type", None)
    if not isinstance(kind, pa.DataType) or type_named(str(kind)) != kind:
        raise _wrong(path, f"its type is {kind}, which Redolake's Delta tables do not have")
    found: Converter = made
    return found


def _failing_row(converter: Converter, values: pa.Array) -> int | None:
    """The first row whose value the converter refuses by itself."""
    for row in range(len(values)):
        try:
            converter.convert(values.slice(row, 1))
        except Exception:  # as above
            return row
    return None


def _wrong(path: str, what: str, **facts: object) -> ConverterError:
    return ConverterError(
        f"a converter of columns_as or types_as cannot be used: {what}",
        hint=f"{_HINT} Fix the class, or remove it there, then run `redolake table resume {ANY_TABLE}`.",
        converter=path,
        **facts,
    )
