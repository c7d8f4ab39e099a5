"""Which version of a table does a definition describe that somebody sends, in the form in which
Debezium keeps its schema history?

Such a definition stands in for one that neither Oracle's dictionary nor a DDL's text shows any
more. It describes columns as JDBC does: ``typeName`` is Oracle's type, with or without digits,
``length`` the precision of a NUMBER and the characters of a text.

Source: Debezium's documentation of the signal ``schema-changes`` and of its schema history; Oracle
JDBC, ``DatabaseMetaData.getColumns``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError, SchemaMismatchError, UnsupportedTypeError
from cdc_core.model.identifiers import TableId, quote
from cdc_core.model.scn import Scn
from cdc_core.schema.create_table import DescribedColumn, tables_in
from cdc_core.schema.forms import in_forms
from cdc_core.schema.masks import mask_refusal, masks_of
from cdc_core.schema.table import IN_ROW_BYTES_MAX, ROW_ID_COLUMN, Column, TableSchema
from cdc_core.schema.types import arrow_schema

_UNSET_SCALE = -127
"""What JDBC says of the scale of a NUMBER without one."""
_WHOLE_PRECISION = 38
"""What JDBC says of the precision of ``NUMBER(*,s)``, and Debezium of a NUMBER without one."""
_SECONDS_DIGITS_MAX = 9
_LENGTH = re.compile(r"\(\s*(\d{1,5})\b")
_BYTES_EACH = {"VARCHAR2": 4, "CHAR": 4, "NVARCHAR2": 2, "NCHAR": 2, "RAW": 1}
"""The most bytes of one unit of length in AL32UTF8 and AL16UTF16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenColumn:
    """A column as it was sent. ``has_default`` is None where nothing was said of the DEFAULT
    clause."""

    name: str
    type_name: str
    length: int | None = None
    scale: int | None = None
    nullable: bool = True
    is_virtual: bool = False
    has_default: bool | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTable:
    """What a table is as of ``as_of``, by the signal of that id: its columns in order, and those of
    its primary key. It takes effect at ``scn``, which is later where the redo in between was
    captured before."""

    signal: str
    as_of: Scn
    scn: Scn
    table: TableId
    columns: tuple[GivenColumn, ...]
    key: tuple[str, ...]


def check_given(given: GivenTable) -> None:
    """Refuse what fits no table.

    Raises:
        ConfigError: It has no columns, two of one name, a key of columns that it does not have, or
            a type that is not read.
    """
    names = [column.name for column in given.columns]
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            "the definition has no columns, or two of one name",
            hint="Send all columns of the table, each once.",
            table=given.table,
        )
    missing = [name for name in given.key if name not in names]
    if missing:
        raise ConfigError(
            "the definition lacks columns of its own key",
            hint="Send all columns of the table, also those of its key.",
            table=given.table,
            columns=", ".join(missing),
        )
    for column in given.columns:
        if not column.is_virtual:
            _column(column, given.table, None)


def version_given(old: TableSchema, given: GivenTable, config: TableConfig) -> TableSchema:
    """The version that a definition describes of a table that was ``old`` before. What it cannot
    say stays as it was: object number, character sets, hidden columns, whether the key is deferred.

    Raises:
        ConfigError: It lacks columns of the table's key, or the configuration does not fit it.
        SchemaMismatchError: It brings the first LOB of a table whose rows ROWIDs identify.
        UnsupportedTypeError: A column has a type that is not captured.
    """
    check_given(given)
    known = {column.name: column for column in old.columns}
    left_out = [one.name for one in given.columns if one.is_virtual or config.excludes(one.name)]
    columns = tuple(
        _column(one, given.table, known.get(one.name))
        for one in given.columns
        if one.name not in left_out
    )
    key = old.key
    if old.is_by_row_id:
        columns = (ROW_ID_COLUMN, *columns)
    elif given.key and not old.key_is_configured:
        key = given.key
    missing = [name for name in old.key if name not in {column.name for column in columns}]
    if missing:
        raise ConfigError(
            "the definition lacks columns of the key by which the lake knows the table's rows",
            hint="Send all columns of the table, also those of its key.",
            table=given.table,
            columns=", ".join(missing),
        )
    if refusal := mask_refusal(config, columns, key):
        raise ConfigError(
            refusal, hint="Change columns_mask, or send another definition.", table=given.table
        )
    new = replace(
        old,
        scn_from=given.scn,
        columns=in_forms(config, columns, key),
        key=key,
        excluded=tuple(dict.fromkeys((*old.excluded, *left_out))),
        stored=_stored(old, given),
        masked=masks_of(config, columns),
        has_lobs=old.has_lobs or any(column.is_lob for column in columns),
    ).in_zone_of(old)
    arrow_schema(new)
    if old.is_by_row_id and new.has_lobs and not old.has_lobs:
        raise SchemaMismatchError(
            "the definition adds the first LOB to a table whose rows are identified by ROWID",
            hint=f"`redolake table resnapshot {given.table.argument}` adds the table back as it is now.",
            table=given.table,
        )
    return new.without(old.excluded)


def _stored(old: TableSchema, given: GivenTable) -> tuple[str, ...]:
    if not old.stored:
        return ()
    stored = [one.name for one in given.columns if not one.is_virtual]
    gone = {name for name in old.column_names if name not in stored}
    kept = [name for name in old.stored if name not in gone]
    return (*kept, *(name for name in stored if name not in kept))


def _column(given: GivenColumn, table: TableId, known: Column | None) -> Column:
    """The column as ALL_TAB_COLS would have it; what a definition does not tell apart is as it is
    ``known``."""
    described = _described(given, table)
    length, char_length = _lengths(given, described.data_type, table)
    column = Column(
        name=given.name,
        data_type=described.data_type,
        length=length,
        char_length=char_length,
        precision=described.precision,
        scale=described.scale,
        nullable=given.nullable,
        default=given.default,
    )
    if known is None:
        return column
    if given.has_default is None:
        column = replace(column, default=known.default)
    is_whole = (column.data_type, column.precision) == ("NUMBER", _WHOLE_PRECISION)
    if is_whole and (known.precision, known.scale) == (None, column.scale):
        column = replace(column, precision=None)
    if (known.data_type, known.char_length) == (column.data_type, column.char_length):
        is_bytes = column.data_type == "RAW"
        column = column if is_bytes else replace(column, length=known.length)
    return column


def _described(given: GivenColumn, table: TableId) -> DescribedColumn:
    """What the reader of CREATE TABLE makes of the type."""
    text = _type_text(given)
    try:
        found = tables_in(f'CREATE TABLE T ("C" {text})')
    except ConfigError:
        found = []
    columns = found[0].columns if len(found) == 1 else []
    if len(columns) != 1 or not re.fullmatch(r"[A-Z0-9 _$#()]{1,128}", columns[0].data_type):
        raise UnsupportedTypeError(
            "the definition has a column whose type is not read",
            hint="Write typeName as Oracle does, for example NUMBER, VARCHAR2 or TIMESTAMP(6).",
            table=table,
            column=quote(given.name),
        )
    return columns[0]


def _type_text(given: GivenColumn) -> str:
    text = given.type_name.strip().upper()
    scale = None if given.scale == _UNSET_SCALE else given.scale
    if "(" in text:
        return text
    if text in ("NUMBER", "NUMERIC", "DECIMAL"):
        is_open = not given.length or (given.length == _WHOLE_PRECISION and scale is None)
        if is_open and scale is None:
            return "NUMBER"
        return f"NUMBER({'*' if is_open else given.length},{scale or 0})"
    if text == "FLOAT" and given.length:
        return f"FLOAT({given.length})"
    if text.startswith("TIMESTAMP"):
        digits = next(
            (one for one in (scale, given.length) if one is not None and 0 <= one <= _SECONDS_DIGITS_MAX),
            6,
        )  # fmt: skip
        return text.replace("TIMESTAMP", f"TIMESTAMP({digits})", 1)
    return text


def _lengths(given: GivenColumn, data_type: str, table: TableId) -> tuple[int, int]:
    """Bytes and characters. More than 4000 of them are stored as a LOB; up to there a column is
    taken for one that is not."""
    each = _BYTES_EACH.get(data_type)
    if each is None:
        return 0, 0
    written = _LENGTH.search(given.type_name)
    units = given.length or (int(written[1]) if written else 0)
    if not units and data_type in ("CHAR", "NCHAR"):
        units = 1
    if units <= 0:
        raise ConfigError(
            "the definition has a text or RAW column without a length",
            hint="Send its length.",
            table=table,
            column=quote(given.name),
        )
    most = IN_ROW_BYTES_MAX.get(data_type, 2000)
    length = units if units > most else min(units * each, most)
    return length, 0 if data_type == "RAW" else units
