"""In which form does the configuration want the lake to hold a column? The one place that reads
``columns_as`` and ``types_as``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError, UnsupportedTypeError
from cdc_core.schema.converters import form_by, is_class
from cdc_core.schema.table import OFFSET, OFFSET_SUFFIX, OR_NULL, WITH_OFFSET, Column
from cdc_core.schema.types import RESELECT, family_of, is_decimal, may_be_unfit


def form_of(config: TableConfig, column: Column, key: Collection[str]) -> str:
    """What the configuration says; empty for the type table's own answer.

    ``columns_as`` comes before ``types_as``, ``NUMBER(1)`` before ``NUMBER``. A column of the key
    keeps its type, unless ``columns_as`` names it as a decimal. A class that does not match the
    column leaves it to what comes next. Where ``on_unfit_value`` says so,
    :data:`~cdc_core.schema.table.OR_NULL` is behind a form that does not hold every value.

    Raises:
        ConverterError: A class of the user's own cannot be used.
    """
    if column.name in key:
        own = config.columns_as.get(column.name, "")
        return own if is_decimal(own) else ""
    form = _wanted(config, column)
    if config.on_unfit_value != "null":
        return form
    held = replace(column, held_as=form)
    try:
        return f"{form}{OR_NULL}" if may_be_unfit(held) else form
    except UnsupportedTypeError:  # which whoever holds the column says
        return form


def _wanted(config: TableConfig, column: Column) -> str:
    one_digit = (column.data_type, column.precision, column.scale) == ("NUMBER", 1, 0)
    names = ("NUMBER(1)", "NUMBER") if one_digit else (family_of(column),)
    by_type = {str(name): form for name, form in config.types_as.items()}
    for form in (config.form_of(column.name), *map(by_type.get, names)):
        if form and (found := form_by(form, column, config.table) if is_class(form) else form):
            return found
    return RESELECT if config.reselects(column.data_type) else ""


def in_forms(
    config: TableConfig, columns: tuple[Column, ...], key: Collection[str]
) -> tuple[Column, ...]:
    """The columns with the forms that the configuration wants; behind each whose offset stands in a
    column of its own, that column.

    Raises:
        ConfigError: The table has a column of that name.
    """
    known = {one.name: one for one in columns if one.form == OFFSET}
    found: list[Column] = []
    for column in columns:
        if column.name in known:
            continue
        held = replace(column, held_as=form_of(config, column, key))
        found.append(held)
        if held.form == WITH_OFFSET:
            beside = f"{held.name}{OFFSET_SUFFIX}"
            stored_as = known[beside].stored_as if beside in known else beside
            found.append(
                replace(held, name=beside, stored_as=stored_as, held_as=OFFSET, nullable=True)
            )
    names = Counter(one.name for one in found)
    if twice := [name for name, times in names.items() if times > 1]:
        raise ConfigError(
            f"the table has a column of the name that {WITH_OFFSET} gives to an offset",
            hint="Name another form for the column, such as iso8601, which keeps its offset in text.",
            table=config.table,
            columns=", ".join(twice),
        )
    return tuple(found)
