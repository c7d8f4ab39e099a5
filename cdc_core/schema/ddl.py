"""Can a change of a table's definition be followed without a new snapshot?

The dictionary before and after decides; the DDL's text is only shown to people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from cdc_core.schema.table import Column, TableSchema

_NO_CODE = re.compile(r"/\*.*?\*/|--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"", re.DOTALL)
_ROWS_LOST = re.compile(
    r"^\s*TRUNCATE\b|\b(?:TRUNCATE|DROP|EXCHANGE)\s+(?:SUB)?PARTITIONS?\b", re.IGNORECASE
)


class DdlEffect(Enum):
    """What a DDL did to what is captured of a table."""

    NONE = "none"
    COLUMNS_APPENDED = "columns appended"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class DdlVerdict:
    """The effect, and for a refused one the reason in words."""

    effect: DdlEffect
    reason: str = ""


def compare_schemas(old: TableSchema, new: TableSchema) -> DdlVerdict:
    """Compare two versions of a table. Only columns appended behind the old ones are followed; whether the DEFAULT of one can be
    given to existing rows, of which the redo says nothing, is for the lake to decide.

    A default, a comment, an index, a grant, a constraint other than the key do not matter. A column that became nullable or
    NOT NULL does not matter either, unless it is part of the key.
    """
    if old.object_id and new.object_id and old.object_id != new.object_id:
        return _refused("the table was dropped and created again")
    if old.key != new.key:
        return _refused(f"the key changed from ({', '.join(old.key)}) to ({', '.join(new.key)})")
    names = new.column_names
    gone = [column.name for column in old.columns if column.name not in names]
    if gone:
        return _refused(f"columns were dropped or renamed: {', '.join(gone)}")
    changed = [column.name for column in old.columns if not _same(column, new.column(column.name))]
    if changed:
        return _refused(f"columns changed their type: {', '.join(changed)}")
    if names[: len(old.columns)] != old.column_names:
        return _refused("columns changed their order")
    if len(new.columns) == len(old.columns):
        return DdlVerdict(DdlEffect.NONE)
    return DdlVerdict(DdlEffect.COLUMNS_APPENDED)


def _same(old: Column, new: Column) -> bool:
    return (old.data_type, old.length, old.char_length, old.precision, old.scale) == (
        new.data_type,
        new.length,
        new.char_length,
        new.precision,
        new.scale,
    )


def _refused(reason: str) -> DdlVerdict:
    return DdlVerdict(DdlEffect.REFUSED, reason)


def removes_rows(ddl: str) -> bool:
    """Does the statement remove or replace rows without redo for each: TRUNCATE, or a partition dropped or exchanged?

    The dictionary cannot tell, so here the text must: comments, strings and quoted names are left out.
    """
    return bool(_ROWS_LOST.search(_NO_CODE.sub(" ", ddl)))
