"""What happened to the captured tables that no row of the redo tells?

Rows that were loaded without logging (direct loads into NOLOGGING tables, SQL*Loader UNRECOVERABLE)
and supplemental logging that was dropped for the database leave no redo row of a table; neither
does FLASHBACK PLUGGABLE DATABASE or a recovery of the pluggable database to a point in time, which
take all its tables back while the redo of the whole database goes on. The control file and the
dictionary tell; they are looked at once a window, after its pass. They know the present only, so a
table leaves at the window's lower end: what came up to there was read while nothing was found.

What happened behind the window is for a later one: V$PDB_INCARNATION has the SCN of each RESETLOGS,
and the statement that drops a table's logging has a row in the window of its time. The last change
without redo of a file says nothing of the one before it, which may be in the window, so that a
table leaves with the first window that is captured behind it; so does one whose database lost its
logging.

UNRECOVERABLE_CHANGE# names a file, and all tables of its tablespace leave. No fact that Oracle
keeps says less and is safe: the LOGGING attribute of a table is what it is now, and a load with
SQL*Loader's UNRECOVERABLE does not ask for it; the extents of a segment (DBA_EXTENTS) are those of
now, and a segment that was moved, or whose partition was exchanged, after the load no longer has
some in the file. Rows that nobody captured cost more than a snapshot too many;
``on_unlogged: ignore`` is for those who know, and FORCE LOGGING for all.

Source: Oracle Database Reference 19c, V$DATAFILE (UNRECOVERABLE_CHANGE#: the last unrecoverable
change made to the file), V$PDB_INCARNATION ("a new PDB incarnation whenever a PDB is opened with
the RESETLOGS option"; a database without containers has its own incarnations there, if any),
ALL_TABLES, ALL_LOG_GROUPS; Oracle Database Utilities 19c, "Supplemental Logging".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from cdc_core.errors import SnapshotTooOldError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.ddl_times import ddl_times
from cdc_core.schema.dictionary_queries import Queries, rows_about, tables_condition
from cdc_core.schema.table import TableSchema

_DATABASE = """
SELECT SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_ALL, 0, 'database' FROM V$DATABASE
 UNION ALL
SELECT T.NAME, NULL, MAX(F.UNRECOVERABLE_CHANGE#), 'file'
  FROM V$DATAFILE F, V$TABLESPACE T
 WHERE T.TS# = F.TS# AND T.CON_ID = F.CON_ID AND F.UNRECOVERABLE_CHANGE# > :scn
 GROUP BY T.NAME
 UNION ALL
SELECT NULL, NULL, END_RESETLOGS_SCN, 'reset'
  FROM V$PDB_INCARNATION
 WHERE END_RESETLOGS_SCN > 0 AND END_RESETLOGS_SCN <= :high AND CON_ID IN (0, SYS_CONTEXT('USERENV', 'CON_ID'))"""
_TABLES = "SELECT OWNER, TABLE_NAME, TABLESPACE_NAME, 'table' FROM ALL_TABLES WHERE {tables}"
_TABLES_AND_GROUPS = f"""
{_TABLES}
 UNION ALL
SELECT OWNER, TABLE_NAME, NULL, 'logged'
  FROM ALL_LOG_GROUPS
 WHERE LOG_GROUP_TYPE = 'ALL COLUMN LOGGING' AND {{tables}}"""
_ALTERED_LATER = """
SELECT OWNER, OBJECT_NAME FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND LAST_DDL_TIME > :behind AND {tables}"""
_LOBS = frozenset({"CLOB", "NCLOB", "BLOB"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What control file and dictionary tell.

    ``unrecoverable`` has the SCN of the last change without redo, by tablespace; ``tablespaces``
    where each table that is there lies, None where it has several segments (partitions,
    index-organised tables). ``is_supplemental`` says whether the database has supplemental logging
    at all, ``logged`` which tables have that of all columns, or lost it behind the window.
    ``reset_scn`` is where the pluggable database was last opened with RESETLOGS, up to the window's
    end; 0 if it was not.
    """

    unrecoverable: Mapping[str, int]
    tablespaces: Mapping[TableId, str | None]
    is_supplemental: bool
    logged: frozenset[TableId]
    reset_scn: int = 0


def unlogged_ends(
    session: Queries,
    tables: Sequence[TableSchema],
    window: ScnWindow,
    read_at: Mapping[TableId, Scn],
    ddl: Sequence[tuple[TableId, str]] = (),
) -> list[StreamEnd]:
    """Tables that leave with a window, at its lower end.

    Args:
        read_at: The SCN of each table's snapshot.
        ddl: The DDL of the tables that the window has.
    """
    if not tables:
        return []
    told = {table for table, text in ddl if "SUPPLEMENTAL" in text.upper()}
    facts = _read(session, [one.table for one in tables], window, told)
    low = window.scn_low
    return [end for one in tables if (end := judge(one, facts, low, read_at.get(one.table)))]


def judge(table: TableSchema, facts: Facts, scn_low: Scn, read_at: Scn | None) -> StreamEnd | None:
    """Does the table leave? Pure.

    A table that is not there under its name was dropped or renamed, which its DDL tells.
    """
    name = table.table
    if read_at is not None and facts.reset_scn > read_at:
        return StreamEnd(
            name,
            scn_low,
            "the pluggable database was opened with RESETLOGS: a flashback or a recovery took its tables back without redo "
            f"(END_RESETLOGS_SCN={facts.reset_scn})",
            f"`redolake table resnapshot {name.argument}` adds the table back with a new snapshot.",
        )
    if name not in facts.tablespaces:
        return None
    changed = _unrecoverable(table, facts)
    if changed > max(scn_low, read_at or 0):
        return StreamEnd(
            name,
            scn_low,
            "rows were written without redo (NOLOGGING) into a tablespace of the table "
            f"(UNRECOVERABLE_CHANGE#={changed})",
            f"`redolake table resnapshot {name.argument}` adds the table back with a new snapshot. ALTER DATABASE FORCE LOGGING, or ALTER TABLESPACE … "
            "FORCE LOGGING, prevents this; if it was no captured table (an index that was rebuilt), "
            "policies.on_unlogged: ignore keeps the tables in the stream.",
            "unlogged",
        )
    # Who a change is about, the row's ROWID says, whatever columns are logged; where it has to be
    # found, all columns prove it.
    is_known = table.is_by_row_id and not table.has_placeholders
    is_logged = is_known or name in facts.logged
    if not (facts.is_supplemental and is_logged):
        whose = f"TABLE {name.sql}" if facts.is_supplemental else "DATABASE"
        what = "LOG DATA (ALL) COLUMNS" if facts.is_supplemental else "LOG DATA"
        return StreamEnd(
            name,
            scn_low,
            "supplemental logging of the table was dropped"
            if facts.is_supplemental
            else "supplemental logging of the database was dropped",
            f"ALTER {whose} ADD SUPPLEMENTAL {what}, then `redolake table resnapshot {name.argument}` adds the table back with a new snapshot.",
        )
    return None


def _unrecoverable(table: TableSchema, facts: Facts) -> int:
    """The last change without redo that may be the table's: LOBs and partitions may lie in any
    tablespace."""
    place = facts.tablespaces[table.table]
    if place is None or any(column.data_type in _LOBS for column in table.columns):
        return max(facts.unrecoverable.values(), default=0)
    return facts.unrecoverable.get(place, 0)


def _read(
    session: Queries, tables: Sequence[TableId], window: ScnWindow, told: Set[TableId]
) -> Facts:
    condition, binds = tables_condition(tables, "OWNER", "TABLE_NAME")
    bounds = {"scn": window.scn_low, "high": window.scn_high}
    facts = session.fetch_all(_DATABASE, bounds)
    [(minimal, everything)] = [row[:2] for row in facts if row[-1] == "database"]
    sql = _TABLES if everything == "YES" else _TABLES_AND_GROUPS
    rows = session.fetch_all(sql.format(tables=condition), binds)
    tablespaces = {TableId(owner, name): at for owner, name, at, what in rows if what == "table"}
    logged = set(tables)
    if everything != "YES":
        logged = {TableId(owner, name) for owner, name, _, what in rows if what == "logged"}
        logged |= _altered_later(session, {*tables} - logged - told, window.scn_high)
    return Facts(
        unrecoverable={str(name): int(scn) for name, _, scn, what in facts if what == "file"},
        tablespaces=tablespaces,
        is_supplemental=everything == "YES" or minimal in {"YES", "IMPLICIT"},
        logged=frozenset(logged),
        reset_scn=max((int(scn) for *_, scn, what in facts if what == "reset"), default=0),
    )


def _altered_later(session: Queries, tables: Set[TableId], high: Scn) -> set[TableId]:
    """Tables whose last DDL lies behind an SCN."""
    if not tables:
        return set()
    try:
        bounds = {"behind": ddl_times(session, high).behind}
        rows = rows_about(session, _ALTERED_LATER, tables, bounds, name="OBJECT_NAME")
    except SnapshotTooOldError:  # Oracle maps the SCN to no time any more
        return set()
    return {table for (table,) in rows}
