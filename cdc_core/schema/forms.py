"""In which form does the configuration want the lake to hold a column? The one place that reads
``columns_as`` and ``types_as``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cdc_core.config import TableConfig
from cdc_core.schema.table import Column
from cdc_core.schema.types import family_of, is_decimal


def form_of(config: TableConfig, column: Column, key: Collection[str]) -> str:
    """What the configuration says; empty for the type table's own answer.

    ``columns_as`` comes before ``types_as``, ``NUMBER(1)`` before ``NUMBER``. A column of the key
    keeps its type, unless ``columns_as`` names it as a decimal.
    """
    if column.name in key:
        own = config.columns_as.get(column.name, "")
        return own if is_decimal(own) else ""
    if (named := config.form_of(column.name)) is not None:
        return named
    one_digit = (column.data_type, column.precision, column.scale) == ("NUMBER", 1, 0)
    names = ("NUMBER(1)", "NUMBER") if one_digit else (family_of(column),)
    forms = (form for name in names for given, form in config.types_as.items() if given == name)
    return next(forms, "")


def in_forms(
    config: TableConfig, columns: tuple[Column, ...], key: Collection[str]
) -> tuple[Column, ...]:
    """The columns with the forms that the configuration wants."""
    return tuple(replace(column, held_as=form_of(config, column, key)) for column in columns)
