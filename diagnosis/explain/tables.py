"""Which tables does a description speak of: a script of CREATE TABLE, or rows like those of
ALL_TAB_COLS?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError, PreflightError, UnsupportedTypeError
from cdc_core.model.character_sets import KNOWN
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.create_table import DescribedColumn, DescribedTable, tables_in
from cdc_core.schema.dictionary_rows import TableKeys, schema_from_rows
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type
from diagnosis.explain.files import DamagedRow, Values, open_rows, refuse_utf16
from diagnosis.explain.outcomes import Finding

SCRIPT_BYTES_MAX = 16 * 2**20
"""A longer description is another file."""

_ROWS = {".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet"}
_NEEDED = ("TABLE_NAME", "COLUMN_NAME", "DATA_TYPE")
_COLUMNS = (
    *_NEEDED, "OWNER", "DATA_PRECISION", "DATA_SCALE", "NULLABLE", "COLUMN_ID", "SEGMENT_COLUMN_ID",
    "HIDDEN_COLUMN", "USER_GENERATED", "VIRTUAL_COLUMN", "KEY_POSITION",
)  # fmt: skip
_BY_ROW_ID = ("ROWID",)
_NATIONAL_SET = "AL16UTF16"


def read_tables(
    path: Path,
    *,
    owner: str | None = None,
    keys: Mapping[TableId, Sequence[str]] | None = None,
    character_set: str = "AL32UTF8",
    report: Callable[[Finding], None],
) -> list[TableSchema]:
    """The definitions of the described tables.

    Args:
        path: ``.csv``, ``.json``, ``.jsonl`` or ``.parquet`` for rows of the dictionary, anything
            else is a script.
        owner: The schema of tables whose owner nothing names.
        keys: The columns that identify a row, of tables whose description does not say so;
            ``ROWID`` alone for its ROWID.
        character_set: The database's, in which rows from before a DDL hold the bytes of a text.
        report: Takes the columns that are left out since their types are not captured.

    Raises:
        ConfigError: The file cannot be read, describes no table, or a table has no key, or columns
            that cannot identify its rows; or the character set is not known.
    """
    if character_set.upper() not in KNOWN:
        raise ConfigError(
            "the character set is not known",
            hint="Write it as NLS_DATABASE_PARAMETERS names NLS_CHARACTERSET, such as WE8MSWIN1252.",
            character_set=character_set,
        )
    if not path.is_file():
        raise ConfigError("there is no such file", hint="Give the path of a file.", file=path.name)
    described = _from_rows(path) if path.suffix.lower() in _ROWS else _from_script(path)
    if not described:
        raise ConfigError(
            "the file describes no table",
            hint="Give a script of CREATE TABLE statements, or an export of ALL_TAB_COLS as .csv, .jsonl or .parquet.",
            file=path.name,
        )
    keys = dict(keys or {})
    sets = {"NLS_CHARACTERSET": character_set.upper(), "NLS_NCHAR_CHARACTERSET": _NATIONAL_SET}
    tables = [(one, one.id(owner)) for one in described]
    if unknown := sorted(map(str, set(keys) - {table for _, table in tables})):
        raise ConfigError(
            "--key names a table that is not described",
            hint="Describe the table in the file of --tables, or leave its --key out.",
            tables=", ".join(unknown),
        )
    return [_schema(one, table, keys, sets, report) for one, table in tables]


def _from_script(path: Path) -> list[DescribedTable]:
    refuse_utf16(path)
    text = path.read_bytes()[: SCRIPT_BYTES_MAX + 1]
    try:
        if len(text) <= SCRIPT_BYTES_MAX:
            return tables_in(text.decode("utf-8-sig"))
    except UnicodeDecodeError:
        pass
    raise ConfigError(
        f"the file is not a script in UTF-8 of at most {SCRIPT_BYTES_MAX:,} bytes",
        hint="Give a script of CREATE TABLE statements, or an export of ALL_TAB_COLS as .csv, .jsonl or .parquet.",
        file=path.name,
    )


def _from_rows(path: Path) -> list[DescribedTable]:
    file = open_rows(path, _COLUMNS)
    lacking = [name for name in _NEEDED if name not in file.columns]
    if lacking:
        raise ConfigError(
            "the file is no export of ALL_TAB_COLS, or lacks columns of it",
            hint="Export OWNER, TABLE_NAME, COLUMN_NAME, DATA_TYPE, DATA_PRECISION, DATA_SCALE, NULLABLE and "
            "COLUMN_ID.",
            file=path.name,
            columns=", ".join(lacking),
        )
    rows: dict[tuple[str | None, str], list[tuple[int, Values]]] = {}
    for number, row in file.rows:
        if isinstance(row, DamagedRow) or not all(isinstance(row.get(one), str) for one in _NEEDED):
            raise _damaged(path, number)
        rows.setdefault((row.get("OWNER"), row["TABLE_NAME"]), []).append((number, row))
    return [_from_rows_of(path, *name, found) for name, found in rows.items()]


def _from_rows_of(
    path: Path, owner: Any, name: str, rows: list[tuple[int, Values]]
) -> DescribedTable:
    if owner is not None and not isinstance(owner, str):
        raise _damaged(path, rows[0][0])
    numbered = [(number, row, _integers(path, number, row)) for number, row in rows]
    numbered.sort(key=lambda one: (one[2]["COLUMN_ID"] is None, one[2]["COLUMN_ID"] or 0, one[0]))
    table = DescribedTable(owner, name)
    key: list[tuple[int, str]] = []
    for _, row, integers in numbered:
        column = _column(row, integers, len([one for one in table.columns if one.place]) + 1)
        table.columns.append(column)
        if integers["KEY_POSITION"]:
            key.append((integers["KEY_POSITION"], column.name))
    table.primary_key = tuple(column for _, column in sorted(key))
    return table


_INTEGERS = (
    "DATA_PRECISION", "DATA_SCALE", "COLUMN_ID", "SEGMENT_COLUMN_ID", "KEY_POSITION",
)  # fmt: skip


def _integers(path: Path, number: int, row: Values) -> dict[str, int | None]:
    try:
        return {
            name: None if row.get(name) is None else int(str(row[name]).removesuffix(".0"))
            for name in _INTEGERS
        }
    except ValueError:
        raise _damaged(path, number) from None


def _column(row: Values, integers: dict[str, int | None], place: int) -> DescribedColumn:
    is_virtual = row.get("VIRTUAL_COLUMN") == "YES"
    return DescribedColumn(
        name=row["COLUMN_NAME"],
        data_type=row["DATA_TYPE"],
        precision=integers["DATA_PRECISION"],
        scale=integers["DATA_SCALE"],
        is_nullable=row.get("NULLABLE") != "N",
        is_virtual=is_virtual,
        is_hidden=row.get("HIDDEN_COLUMN") == "YES" and row.get("USER_GENERATED") != "YES",
        place=None if is_virtual else integers["SEGMENT_COLUMN_ID"] or place,
    )


def _damaged(path: Path, number: int) -> ConfigError:
    return ConfigError(
        "a row of the table description cannot be read",
        hint="Export OWNER, TABLE_NAME, COLUMN_NAME, DATA_TYPE, DATA_PRECISION, DATA_SCALE, NULLABLE and "
        "COLUMN_ID.",
        file=path.name,
        row=number,
    )


def _schema(
    described: DescribedTable,
    table: TableId,
    keys: Mapping[TableId, Sequence[str]],
    sets: Mapping[str, str],
    report: Callable[[Finding], None],
) -> TableSchema:
    named = tuple(keys.get(table, ()))
    is_by_row_id = named == _BY_ROW_ID
    key = () if is_by_row_id else named or described.primary_key
    unknown = sorted(set(key) - {column.name for column in described.columns})
    if unknown:
        raise ConfigError(
            "the key of a table names columns that it does not have",
            hint="Write names as the dictionary has them.",
            table=table,
            columns=", ".join(unknown),
        )
    rows = [_row(column, is_key=column.name in key) for column in described.columns]
    config = TableConfig(
        name=str(table),
        columns_exclude=_not_captured(described, table, report),
        identity="rowid" if is_by_row_id else "key",
    )
    try:
        schema = schema_from_rows(
            config,
            rows,
            TableKeys(key, described.unique),
            object_id=0,
            scn=Scn(0),
            character_sets=sets,
        )
    except PreflightError as error:
        raise ConfigError(
            "the description of a table names no key",
            hint=f"Name the columns that identify a row: --key {table.argument}=COLUMN,COLUMN; or --key {table.argument}=ROWID "
            "where the source has identity: rowid",
            table=table,
        ) from error
    if schema.has_placeholders:
        raise ConfigError(
            "the rows of a table with LOBs are not told apart by their ROWIDs here: rows without a table's name close its statements",
            hint=f"Name the columns that identify a row: --key {table.argument}=COLUMN,COLUMN",
            table=table,
        )
    return schema


def _row(column: DescribedColumn, *, is_key: bool) -> tuple[Any, ...]:
    """As :func:`schema_from_rows` takes it. Lengths decide nothing here."""
    return (
        column.name, column.data_type, 0, 0, column.precision, column.scale,
        "N" if is_key or not column.is_nullable else "Y", None, "YES" if column.is_hidden else "NO",
        "YES" if column.is_virtual else "NO", column.place,
    )  # fmt: skip


def _not_captured(
    described: DescribedTable, table: TableId, report: Callable[[Finding], None]
) -> tuple[str, ...]:
    """The columns of types that are not captured; each is reported."""
    found = []
    for one in described.columns:
        if one.is_virtual or one.is_hidden:
            continue
        column = Column(one.name, one.data_type, 0, 0, one.precision, one.scale, nullable=True)  # fmt: skip
        try:
            arrow_type(column)
        except UnsupportedTypeError as error:
            found.append(one.name)
            report(
                Finding(
                    f"column {one.name} of {table} is left out: {one.data_type} is not captured ({error.message})",
                    hint="A source names it under columns_exclude.",
                )
            )
    return tuple(found)
