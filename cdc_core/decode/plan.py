"""How is each column of a table read from redo text, and which names may a statement use?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache

import pyarrow as pa

from cdc_core.schema.table import OFFSET, Column, TableSchema
from cdc_core.schema.types import (
    NUMBER_TYPES,
    RESELECT,
    Printed,
    arrow_type,
    as_read,
    is_held_otherwise,
    is_number_text,
    is_timestamp_text,
    printed_as,
)

NATIONAL_TYPES = frozenset({"NCHAR", "NVARCHAR2", "NCLOB"})
"""Types whose text is in the national character set."""

ROW_ARCHIVAL = "ORA_ARCHIVE_STATE"
"""Pseudo column of row archival: LogMiner names it in any clause, it is never captured."""


class Kind(IntEnum):
    """How a literal becomes a value; the kernels know the numbers."""

    SKIPPED = 0
    TEXT = 1
    CLOB = 2
    INT64 = 3
    DECIMAL = 4
    NUMBER = 5
    FLOAT64 = 6
    FLOAT32 = 7
    TIMESTAMP = 8
    TIMESTAMP_TEXT = 9
    RAW = 10
    DATE = 11
    ZONED = 12
    INTERVAL_YM = 13
    INTERVAL_DS = 14
    BLOB = 15
    TOKEN = 16
    """A JSON value as it stands, for whoever reads it further."""


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """One captured column: where its literals go. ``precision`` and ``scale`` are those of the
    Arrow type; ``charset`` is Oracle's name of the character set of its text, ``is_number`` says
    that its stored bytes are a NUMBER, ``is_extended`` that it is a text or RAW that Oracle stores
    as a LOB, ``is_xml`` that it holds documents. ``time_zone`` is DBTIMEZONE for a column WITH
    LOCAL TIME ZONE, empty where it is not known; None for others."""

    name: str
    kind: Kind
    type: pa.DataType
    precision: int
    scale: int
    charset: str = ""
    is_number: bool = False
    is_extended: bool = False
    is_xml: bool = False
    time_zone: str | None = None


@dataclass(frozen=True, eq=False)
class TablePlan:
    """What decoding needs of a table: its quoted name, the captured columns in order, and the names
    to pass over.

    ``stored`` names the columns that LogMiner calls ``COL 1``, ``COL 2`` … where its dictionary
    does not know them; empty where that is not known, or where a column itself has such a name.
    ``object_sql`` is the table's name without a dictionary. ``held`` are the columns that the lake
    holds in another form than they are read in, each by its place. ``beside`` are the places of
    columns that no statement names, each with the place of the column whose values it is made of.

    :func:`plan_table` makes one of each version, so a plan equals itself alone: what is kept by
    plan is found without a look at its columns.
    """

    name_sql: str
    columns: tuple[ColumnPlan, ...]
    skipped: tuple[str, ...]
    stored: tuple[str, ...] = ()
    object_sql: str = ""
    held: tuple[tuple[int, Column], ...] = ()
    beside: tuple[tuple[int, int], ...] = ()

    @cached_property
    def row_fields(self) -> tuple[pa.Field, ...]:
        """The fields of a row in the lake: one, nullable, for each captured column."""
        kinds = [column.type for column in self.columns]
        for at, column in self.held:
            kinds[at] = arrow_type(column)
        names = [column.name for column in self.columns]
        return tuple(map(pa.field, names, kinds))


@lru_cache(maxsize=1024)
def plan_table(schema: TableSchema) -> TablePlan:
    """Plan the decoding of a table's redo.

    Raises:
        UnsupportedTypeError: A column's type is not captured.
    """
    captured = set(schema.column_names)
    skipped = [
        name for name in (*schema.excluded, *schema.stored, ROW_ARCHIVAL) if name not in captured
    ]
    return TablePlan(
        name_sql=schema.table.sql,
        columns=tuple(plan_column(column, schema) for column in schema.columns),
        skipped=tuple(dict.fromkeys(skipped)),
        stored=() if any(map(is_dictionary_name, schema.stored)) else schema.stored,
        object_sql=f'"UNKNOWN"."OBJ# {schema.object_id}"' if schema.object_id else "",
        held=tuple((at, one) for at, one in enumerate(schema.columns) if is_held_otherwise(one)),
        beside=tuple(
            (at, schema.column_names.index(one.source))
            for at, one in enumerate(schema.columns)
            if one.form == OFFSET
        ),
    )


def plan_column(column: Column, schema: TableSchema | None = None) -> ColumnPlan:
    """Plan the decoding of one column, in the form in which it is read.

    Raises:
        UnsupportedTypeError: The column's type is not captured.
    """
    column = as_read(column)
    kind, held = _kind(column), arrow_type(column)
    is_decimal = kind is Kind.DECIMAL
    return ColumnPlan(
        name=column.name,
        kind=kind,
        type=held,
        precision=held.precision if is_decimal else 0,
        scale=held.scale if is_decimal else 0,
        charset=_charset(column, schema) if schema else "",
        is_number=column.data_type in NUMBER_TYPES,
        is_extended=column.is_extended,
        is_xml=column.data_type == "XMLTYPE",
        time_zone=schema.time_zone if schema and column.is_local_time else None,
    )


def _charset(column: Column, schema: TableSchema) -> str:
    return schema.ncharset if column.data_type in NATIONAL_TYPES else schema.charset


def _kind(column: Column) -> Kind:
    held = arrow_type(column)
    if column.form == RESELECT:
        return Kind.TEXT  # no redo carries its values
    if is_number_text(column):
        return Kind.NUMBER
    if is_timestamp_text(column):
        return Kind.TIMESTAMP_TEXT
    if printed := printed_as(column):
        return _PRINTED_KINDS[printed]
    if column.data_type == "BLOB":
        return Kind.BLOB
    if pa.types.is_string(held):
        return Kind.CLOB if column.may_be_empty else Kind.TEXT
    if pa.types.is_decimal128(held):
        return Kind.DECIMAL
    return Kind.DATE if column.data_type == "DATE" else _FIXED_KINDS[held]


_FIXED_KINDS: dict[pa.DataType, Kind] = {
    pa.int64(): Kind.INT64,
    pa.float64(): Kind.FLOAT64,
    pa.float32(): Kind.FLOAT32,
    pa.timestamp("us"): Kind.TIMESTAMP,
    pa.binary(): Kind.RAW,
}

_PRINTED_KINDS = {
    Printed.ZONED: Kind.ZONED,
    Printed.YEAR_TO_MONTH: Kind.INTERVAL_YM,
    Printed.DAY_TO_SECOND: Kind.INTERVAL_DS,
}

_DICTIONARY_NAME = re.compile(r"(?:COL|OBJ#) ?\d+\Z")


def is_dictionary_name(name: str) -> bool:
    """Did LogMiner invent the name (``COL 1``, ``OBJ# 12345``) since its dictionary does not know
    the object?"""
    return bool(_DICTIONARY_NAME.match(name))
