"""May the values of all columns tell a table's rows apart (``identity: all_columns``), and which
changes of its definition can be followed then?

A row is known by its values alone: what is left out, masked, or rounded would make two rows of
Oracle one, and what LogMiner shows in pieces, or not at all, has no values to know the row by. So
all columns are captured as they are, or the table is refused. A column that comes, goes, or gets
another name or type gives every row other values without a row in the redo: the stream ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError, UnsupportedTypeError
from cdc_core.schema.converters import is_class
from cdc_core.schema.forms import form_of
from cdc_core.schema.table import WITH_OFFSET, Column, TableSchema
from cdc_core.schema.types import arrow_type

_MERGING = frozenset({"boolean(>0)", "instant", WITH_OFFSET})
_PADDED = frozenset({"CHAR", "NCHAR"})
"""Values of another length, or of another type, have other blanks, in rows that nobody has
changed."""


def refuse_all_columns(
    config: TableConfig, columns: Sequence[Column], *, is_index_organized: bool
) -> None:
    """Refuse a table whose rows all columns cannot tell apart; the error names every column and
    why.

    Args:
        columns: Those that rows of the table hold, captured or not: not the virtual ones, nor what
            Oracle hides for itself.

    Raises:
        ConfigError: The table has a key, or some columns' values do not reach the lake as they are.
    """
    if is_index_organized:
        raise ConfigError(
            "identity: all_columns is not for an index-organized table, which has a primary key",
            hint="Leave identity out: Redolake then uses the primary key.",
            table=config.table,
        )
    if found := lacking_columns(config, columns):
        raise ConfigError(
            "identity: all_columns tells rows apart by the values of all columns, and Redolake would not have them all",
            hint="Take the columns out of columns_exclude, columns_mask, columns_as and types_as. For a table with LOBs (or VARCHAR2 over 4000 "
            "bytes) or types that are not captured, name unique NOT NULL columns under key, or set identity: rowid.",
            table=config.table,
            columns=", ".join(found),
        )


def lacking_columns(config: TableConfig, columns: Sequence[Column]) -> list[str]:
    """Columns whose values do not reach the lake as they are, each with the reason."""
    return [f"{column.name} ({why})" for column in columns if (why := _why_lacking(config, column))]


def _why_lacking(config: TableConfig, column: Column) -> str | None:
    if config.excludes(column.name):
        return "excluded"
    if config.mask_of(column.name) is not None:
        return "masked"
    if column.is_lob:
        return f"{column.data_type}, stored as a LOB"
    form = replace(column, held_as=form_of(config, column, ())).form
    if form == "double":
        return f"held as {form}, which rounds"
    if form in _MERGING or is_class(form):
        return f"held as {form}, which may make equal what differs"
    try:
        arrow_type(replace(column, held_as=""))
    except UnsupportedTypeError:
        return f"{column.data_type}, which is not captured"
    return None


def lost_identity(
    old: TableSchema,
    new: TableSchema,
    changed: Sequence[tuple[Column, Column]],
    others: Sequence[str],
) -> str | None:
    """Why rows that are known by all columns are not known any more after a change of the
    definition; None if they are.

    Args:
        changed: Columns with another definition whose values keep their type in the lake.
        others: Names of columns that came, went, or got another name.
    """
    if not (old.is_by_all_columns and new.is_by_all_columns):
        return None
    padded = [before.name for before, _ in changed if before.data_type in _PADDED]
    if not (padded or others):
        return None
    return f"the values of all columns identify a row, and these columns changed: {', '.join((*others, *padded))}"
