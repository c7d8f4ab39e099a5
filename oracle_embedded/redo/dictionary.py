"""Under which names does a mined row appear?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from oracle_embedded.api import DatabaseView, TableVersion
from oracle_embedded.redo import store
from oracle_embedded.redo.miner import DDL_DICT_TRACKING, DICT_FROM_ONLINE_CATALOG, Mining

STATUS_EXECUTABLE = 0
STATUS_INVALID = 2
STATUS_NOT_GUARANTEED = 3
MISMATCH = b"Dictionary Mismatch"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A definition to print a row by, and what STATUS and INFO say about it.

    ``raw`` when the types of its columns are unknown. ``segment`` is SEG_NAME where SEG_OWNER and
    TABLE_NAME are empty.
    """

    table: TableVersion
    status: int = STATUS_EXECUTABLE
    info: bytes | None = None
    raw: bool = False
    segment: str | None = None


def resolve(
    number: int,
    row_version: TableVersion,
    mining: Mining,
    database: DatabaseView,
    *,
    unnamed: bool,
) -> Resolved:
    """Look a row's table up as the session's dictionary and options say. ``number`` counts the
    definitions of which rows were written.

    Without a dictionary nothing has a name. ``unnamed`` makes the online catalog what it is on
    Oracle: it knows only the newest definition, so a row of a table whose columns have been changed
    since, were it back again, shows ``COL n`` and stored bytes, and one of a segment that is gone
    (of a dropped table, or a partition that was dropped, split or merged) has no owner and no name
    either, only SEG_NAME ``OBJ# n``.

    Source:
        Measured on 23ai (rows before a bare ADD COLUMN; rows into a segment that was dropped
        later). Oracle Database Utilities 19c, "LogMiner Dictionary Options" and "DDL_DICT_TRACKING
        and Supplemental Logging".
    """
    options = mining.options
    nameless = replace(
        _numbered(row_version), owner="UNKNOWN", name=f"OBJ# {row_version.object_id}"
    )
    if mining.dictionary is not None:
        tracks = bool(options & DDL_DICT_TRACKING)
        return _in_dictionary(number, row_version, mining.dictionary, nameless, tracks=tracks)
    if not options & DICT_FROM_ONLINE_CATALOG:
        return Resolved(nameless, STATUS_INVALID, MISMATCH, raw=True)
    if not unnamed:
        return Resolved(row_version)
    current = database.segment_version(row_version.object_id)
    if current is None:
        return Resolved(nameless, STATUS_INVALID, MISMATCH, raw=True, segment=nameless.name)
    named = replace(
        row_version, owner=current.owner, name=current.name, partition=current.partition
    )
    if current.object_version == row_version.object_version:
        return Resolved(named)
    return Resolved(_numbered(named), STATUS_INVALID, MISMATCH, raw=True)


def _in_dictionary(
    number: int,
    row_version: TableVersion,
    dictionary: store.Dictionary,
    nameless: TableVersion,
    *,
    tracks: bool,
) -> Resolved:
    """A dictionary of its time, in the redo or in a file: it knows one version of each table, and
    with DDL_DICT_TRACKING what DDL has made of them since; rows from before it have the versions
    that it knows, or none."""
    if tracks and number > dictionary.last_object:
        return Resolved(row_version)
    known = dictionary.objects.get(row_version.object_id)
    if known is None:
        return Resolved(nameless, STATUS_INVALID, MISMATCH, raw=True, segment=nameless.name)
    named = replace(row_version, owner=known.owner, name=known.name, partition=known.partition)
    if known.object_version == row_version.object_version:
        return Resolved(named)
    return Resolved(_numbered(named), STATUS_INVALID, MISMATCH, raw=True)


def _numbered(table: TableVersion) -> TableVersion:
    """The table with ``COL n`` for names, numbered by the places of its columns in the row when
    that was written."""
    names = {
        column.name: f"COL {column.segment_id or at}" for at, column in enumerate(table.columns, 1)
    }
    return replace(
        table,
        columns=tuple(replace(column, name=names[column.name]) for column in table.columns),
        key_columns=tuple(names[name] for name in table.key_columns),
    )
