"""Under which names does a mined row appear?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from oracle_embedded.api import DatabaseView, OraType, StoredColumn, TableVersion
from oracle_embedded.redo.miner import DICT_FROM_ONLINE_CATALOG, DICT_FROM_REDO_LOGS
from oracle_embedded.redo.sink import LOB_TYPES

STATUS_EXECUTABLE = 0
STATUS_INVALID = 2
STATUS_NOT_GUARANTEED = 3
MISMATCH = b"Dictionary Mismatch"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A definition to print a row by, and what STATUS and INFO say about it."""

    table: TableVersion
    status: int = STATUS_EXECUTABLE
    info: bytes | None = None


def resolve(
    row_version: TableVersion, options: int, database: DatabaseView, *, unnamed: bool
) -> Resolved:
    """Look a row's table up as the session's options say.

    Without a dictionary nothing has a name. ``unnamed`` makes the online catalog what it is on Oracle: it knows only the newest definition; a row of a table whose
    columns have changed since shows ``COL n`` and internal values, one of a dropped table ``OBJ# n`` as well.

    Source:
        Oracle Database Utilities 19c, "LogMiner Dictionary Options" and "DDL_DICT_TRACKING and Supplemental Logging".
    """
    if options & DICT_FROM_REDO_LOGS:
        return Resolved(row_version)
    if not options & DICT_FROM_ONLINE_CATALOG:
        return Resolved(_nameless(row_version), STATUS_INVALID, MISMATCH)
    if not unnamed:
        return Resolved(row_version)
    current = database.table_version_at(row_version.object_id, database.current_scn())
    if current is None:
        return Resolved(_nameless(row_version), STATUS_INVALID, MISMATCH)
    if current.columns == row_version.columns:
        return Resolved(replace(row_version, owner=current.owner, name=current.name))
    named = _numbered(row_version)
    return Resolved(
        replace(named, owner=current.owner, name=current.name), STATUS_INVALID, MISMATCH
    )


def _nameless(table: TableVersion) -> TableVersion:
    return replace(_numbered(table), owner="UNKNOWN", name=f"OBJ# {table.object_id}")


def _numbered(table: TableVersion) -> TableVersion:
    """The table with ``COL n`` for names and raw values."""
    names = {column.name: f"COL {at}" for at, column in enumerate(table.columns, 1)}
    return replace(
        table,
        columns=tuple(_raw(column, names[column.name]) for column in table.columns),
        key_columns=tuple(names[name] for name in table.key_columns),
    )


def _raw(column: StoredColumn, name: str) -> StoredColumn:
    kind = column.type if column.type in LOB_TYPES else OraType.RAW
    return replace(column, name=name, type=kind, charset_form=0)
