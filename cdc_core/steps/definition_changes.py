"""How is a table's definition, and what became of it, told to people?"""

from __future__ import annotations

import re
from typing import assert_never

from cdc_core.decode.plan import NATIONAL_TYPES
from cdc_core.schema.evolution import (
    AddColumn,
    DropColumn,
    Evolution,
    RedefineColumn,
    RenameColumn,
    Step,
    WidenColumn,
    judge,
)
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import TEXT_TYPES

_IDENTITY = re.compile(r'"(?:[^"]|"")*"\."ISEQ\$\$_\d+"\.nextval', re.IGNORECASE)
"""The default of a column GENERATED … AS IDENTITY, as ALL_TAB_COLS shows it: the next number of the
sequence that Oracle made for it."""
_HIDDEN = re.compile(r"SYS_NC\d+\$")


def changes_between(before: TableSchema | None, schema: TableSchema) -> tuple[str, ...]:
    """What became of a table between two of its versions."""
    if before is None:
        return ("read for the first time",)
    evolution = _judged(before, schema)
    if evolution.refusal is not None:
        return (f"read into new Delta tables: {evolution.refusal}",)
    left_out = [*_newly_left_out(before, schema), *new_and_left_out(before, schema)]
    said = (*map(_step_text, evolution.steps), *(f"{name} is left out" for name in left_out))
    return said or ("read again as it was",)


def previous_names(before: TableSchema | None, schema: TableSchema) -> dict[str, str]:
    """What columns were called before a change of their table that renamed them, by the names of
    now."""
    if before is None:
        return {}
    steps = _judged(before, schema).steps
    return {step.new: step.old for step in steps if isinstance(step, RenameColumn)}


def _judged(before: TableSchema, schema: TableSchema) -> Evolution:
    return judge(before.without(_newly_left_out(before, schema)), schema)


def _newly_left_out(before: TableSchema, schema: TableSchema) -> list[str]:
    return [name for name in schema.excluded if name in before.column_names]


def new_and_left_out(before: TableSchema, schema: TableSchema) -> list[str]:
    """Columns that came, and that are not captured; without those that Oracle hides for itself."""
    return [
        name
        for name in schema.stored
        if name in schema.excluded and name not in before.stored and not _HIDDEN.fullmatch(name)
    ]


def _step_text(step: Step) -> str:
    match step:
        case AddColumn(column):
            return f"{column.name} {type_text(column)} is new"
        case DropColumn(column):
            return f"{column.name} was dropped; the lake keeps it"
        case RenameColumn(old, new):
            return f"{old} is called {new}"
        case RedefineColumn(old_column, new_column):
            return f"{new_column.name} is {type_text(new_column)}, was {type_text(old_column)}"
        case WidenColumn(old_column, new_column):
            types = f"{new_column.name} is {type_text(new_column)}, was {type_text(old_column)}"
            return f"{types}; the Delta tables have a wider type"
    assert_never(step)


def type_text(column: Column) -> str:
    """A column's type as one writes it in Oracle, for example ``NUMBER(10,2)``."""
    kind = column.data_type
    if kind == "NUMBER" and column.precision is not None:
        return f"NUMBER({column.precision},{column.scale or 0})"
    if kind == "NUMBER" and column.scale is not None:
        return f"NUMBER(*,{column.scale})"
    if kind in {"VARCHAR2", "NVARCHAR2", "CHAR", "NCHAR"}:
        return f"{kind}({column.char_length})"
    if kind == "RAW":
        return f"RAW({column.length})"
    return kind


def is_identity(column: Column) -> bool:
    """Does Oracle number the column's values (GENERATED … AS IDENTITY)?"""
    return _IDENTITY.fullmatch(column.default or "") is not None


def character_set(column: Column, schema: TableSchema) -> str | None:
    """Oracle's name of the character set in which it stores a text column; None for others, and
    where it is not known."""
    if column.data_type not in TEXT_TYPES - {"ROWID", "XMLTYPE"}:
        return None
    is_national = column.data_type in NATIONAL_TYPES
    return (schema.ncharset if is_national else schema.charset) or None


def declared_length(column: Column) -> int | None:
    """What stands first in the brackets of a column's type, as Debezium has it: a number's digits
    (0 where it has any), a text's characters, a RAW's bytes, digits of a second; None for types
    without."""
    kind = column.data_type
    if kind in {"NUMBER", "FLOAT"}:
        return column.precision or 0
    if kind in {"VARCHAR2", "NVARCHAR2", "CHAR", "NCHAR"}:
        return column.char_length
    if kind == "RAW":
        return column.length
    digits = re.fullmatch(r"TIMESTAMP\((\d)\)", kind)
    return None if digits is None else int(digits[1])
