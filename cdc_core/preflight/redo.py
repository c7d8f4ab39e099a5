"""Do the settings of the tables let the redo say what changed in them, and LogMiner show it?

Source: Oracle Database Utilities 19c, "LogMiner Requirements", "Supplemental Logging" and
"Supported Data Types, Storage Attributes, and Database and Redo Log File Versions".
"""

from __future__ import annotations

from collections.abc import Iterator

from cdc_core.errors import PreflightError
from cdc_core.model.character_sets import KNOWN
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.preflight.checks import Check, CheckInput
from cdc_core.schema.dictionary_queries import OF_ROWS, by_table, rows_about
from cdc_core.schema.segments import have_segments
from cdc_core.schema.table import LOGMINER_NAME_BYTES_MAX

_ALL_COLUMN_GROUPS = """
SELECT OWNER, TABLE_NAME FROM ALL_LOG_GROUPS WHERE LOG_GROUP_TYPE = 'ALL COLUMN LOGGING'"""
_VISIBLE = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE {tables}"
_LOB_TABLES = f"""
SELECT DISTINCT OWNER, TABLE_NAME
  FROM ALL_TAB_COLS
 WHERE (DATA_TYPE IN ('CLOB', 'NCLOB', 'BLOB') OR DATA_TYPE IN ('VARCHAR2', 'NVARCHAR2') AND DATA_LENGTH > 4000
    OR DATA_TYPE = 'RAW' AND DATA_LENGTH > 2000) AND {OF_ROWS} AND {{tables}}"""
_LONG_NAMES = """
SELECT OWNER, TABLE_NAME, COLUMN_NAME
  FROM ALL_TAB_COLS
 WHERE USER_GENERATED = 'YES' AND VIRTUAL_COLUMN = 'NO' AND LENGTHB(COLUMN_NAME) > :bytes AND {tables}
 ORDER BY OWNER, TABLE_NAME, COLUMN_ID"""
_OBJECTS_PROBE = "SELECT 1 FROM DBA_OBJECTS WHERE ROWNUM = 0"
_UNTRANSLATED = f"""
SELECT OWNER, TABLE_NAME, COLUMN_NAME, DATA_TYPE
  FROM ALL_TAB_COLS
 WHERE DATA_TYPE IN ('JSON', 'BOOLEAN', 'VECTOR') AND {OF_ROWS} AND {{tables}}
 ORDER BY OWNER, TABLE_NAME, COLUMN_ID"""
_NESTED = """
SELECT OWNER, PARENT_TABLE_NAME, PARENT_TABLE_COLUMN, TABLE_TYPE_NAME
  FROM ALL_NESTED_TABLES
 WHERE {tables}
 ORDER BY OWNER, PARENT_TABLE_NAME, PARENT_TABLE_COLUMN"""
_CHARACTER_SETS = """
SELECT PARAMETER, VALUE FROM NLS_DATABASE_PARAMETERS WHERE PARAMETER IN ('NLS_CHARACTERSET', 'NLS_NCHAR_CHARACTERSET')"""
_NATIONAL = f"""
SELECT OWNER, TABLE_NAME, COLUMN_NAME
  FROM ALL_TAB_COLS
 WHERE DATA_TYPE IN ('NCHAR', 'NVARCHAR2', 'NCLOB') AND {OF_ROWS} AND {{tables}}
 ORDER BY OWNER, TABLE_NAME, COLUMN_ID"""
_NATIONAL_SET = "AL16UTF16"


def _check_logging(given: CheckInput) -> Iterator[Finding]:
    """All columns name the row of a change, and say what it was. Where the ROWID names it, capture
    goes on with less, but in tables with LOBs, whose rows LogMiner shows without it.
    ALL_LOG_GROUPS has nothing of a table that the capture user may not read, so nothing is said
    of one."""
    visible = {table for (table,) in rows_about(given.session, _VISIBLE, given.tables)}
    tables = [one for one in given.configs if one.table in visible]
    logged = {TableId(owner, name) for owner, name in given.session.fetch_all(_ALL_COLUMN_GROUPS)}
    loose = [one.table for one in tables if one.identity == "rowid" and one.table not in logged]
    with_lobs = {table for (table,) in rows_about(given.session, _LOB_TABLES, loose)}
    for config in tables:
        table = config.table
        if table in logged:
            continue
        is_needed = config.identity != "rowid" or table in with_lobs
        yield Finding(
            f"{table} has no supplemental logging of all columns"
            + (
                ""
                if is_needed
                else ": updates in its change log hold only the changed columns; its mirror is complete nevertheless"
            ),
            f"ALTER TABLE {table.sql} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
            table,
            is_problem=is_needed,
        )


def _check_row_ids(given: CheckInput) -> Iterator[Finding]:
    for config in given.configs:
        if config.identity == "rowid":
            yield Finding(
                f"{config.table}: Redolake identifies its rows by ROWID. ALTER TABLE … MOVE, SHRINK SPACE, FLASHBACK TABLE, and partitions "
                "that are split, merged, moved or exchanged change ROWIDs, and the table leaves the stream",
                f"`redolake table resnapshot {config.table.argument}` adds it back after each such statement; a table with a key is not affected",
                config.table,
                is_problem=False,
            )


def _check_names(given: CheckInput) -> Iterator[Finding]:
    limit = {"bytes": LOGMINER_NAME_BYTES_MAX}
    rows = rows_about(given.session, _LONG_NAMES, given.tables, limit)
    long = by_table(rows)
    for config in given.configs:
        columns = [column for (column,) in long.get(config.table, ())]
        own = [
            name
            for name in (config.table.owner, config.table.name)
            if len(name.encode()) > LOGMINER_NAME_BYTES_MAX
        ]
        if own or columns:
            yield Finding(
                f"{config.table}: LogMiner does not support names longer than {LOGMINER_NAME_BYTES_MAX} bytes: {', '.join(own + columns)}",
                "Rename the table or the columns, or leave the table out: LogMiner shows no row of it, whatever columns you capture; a schema "
                "cannot be renamed: move the table to another",
                config.table,
            )


def _check_character_sets(given: CheckInput) -> Iterator[Finding]:
    """Rows from before a DDL hold text in the bytes of the database's sets; the driver's thin mode
    reads national text of one set."""
    sets = dict(given.session.fetch_all(_CHARACTER_SETS))
    own, national = sets["NLS_CHARACTERSET"], sets["NLS_NCHAR_CHARACTERSET"]
    if own not in KNOWN:
        yield Finding(
            f"Redolake does not know the database's character set {own}: rows from before a DDL contain text in its bytes",
            "Migrate the database to AL32UTF8 (Database Migration Assistant for Unicode), or ask for the set in an issue",
        )
    if national == _NATIONAL_SET:
        return
    wide = by_table(rows_about(given.session, _NATIONAL, given.tables))
    for config in given.configs:
        names = [name for (name,) in wide.get(config.table, ()) if not config.excludes(name)]
        if names:
            yield Finding(
                f"{config.table}: the driver does not read the national character set {national} of {', '.join(names)} (DPY-3012)",
                "Leave the columns out under columns_exclude",
                config.table,
            )


def _check_segments(given: CheckInput) -> Iterator[Finding]:
    """Rows of a segment that is gone have no name: whose they are, the objects of the database
    tell."""
    segmented = sorted(have_segments(given.session, given.tables))
    if not segmented:
        return
    try:
        given.session.fetch_all(_OBJECTS_PROBE)
    except PreflightError:
        for table in segmented:
            yield Finding(
                f"{table} has partitions or is index-organized, and the capture user may not read DBA_OBJECTS: if a partition is made "
                "and goes again before its redo is read, the table stops",
                f"GRANT SELECT, FLASHBACK ON SYS.DBA_OBJECTS TO {given.session.user}",
                table,
                is_problem=False,
            )


def _check_types(given: CheckInput) -> Iterator[Finding]:
    """LogMiner shows each row of a table with such a column as UNSUPPORTED, whatever is captured of
    it: measured on 23ai by others, and of nested tables as Oracle Database Utilities 19c says,
    "Supported Data Types, Storage Attributes, and Database and Redo Log File Versions"."""
    documents = rows_about(given.session, _UNTRANSLATED, given.tables)
    nested = rows_about(given.session, _NESTED, given.tables, name="PARENT_TABLE_NAME")
    reselecting = {one.table: one for one in given.configs}
    for table, column, kind in (*documents, *nested):
        if reselecting[table].reselects(kind):
            yield Finding(
                f"{table} has the column {column} of type {kind}: LogMiner does not show its rows, so each row that changes is read from "
                "Oracle as of its commit (unsupported_columns: reselect)",
                "Capture often enough that Oracle has undo since the commits (UNDO_RETENTION)",
                table,
                is_problem=False,
            )
            continue
        yield Finding(
            f"{table} has the column {column} of type {kind}: LogMiner does not translate rows of such a table, also where the "
            "column is left out",
            "Leave the table out, or move the column to a separate table; with its first change the table stops",
            table,
            is_problem=False,
        )


LOGGING: Check[CheckInput] = Check(
    "supplemental logging of all columns",
    "ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
    "how-to/oracle-on-premises.md",
    _check_logging,
)
"""Without need where the database logs all columns of all tables."""

ROW_CHECKS: tuple[Check[CheckInput], ...] = (
    Check(
        "what `identity: rowid` costs",
        "`redolake table resnapshot OWNER.TABLE` after each operation that changes ROWIDs",
        "concepts/tables.md",
        _check_row_ids,
    ),
)
"""What is to be known of what identifies a table's rows, whichever reader reads the redo."""

REDO_CHECKS: tuple[Check[CheckInput], ...] = (
    LOGGING,
    *ROW_CHECKS,
    Check(
        "names that LogMiner supports: up to 30 bytes",
        "Rename the table or the columns, or leave the table out",
        "concepts/tables.md",
        _check_names,
    ),
    Check(
        "character sets of the database and of national columns",
        "Leave national columns out, or migrate the database to AL32UTF8",
        "limits.md",
        _check_character_sets,
    ),
    Check(
        "partitions that come and go before their redo is read",
        "GRANT SELECT, FLASHBACK ON SYS.DBA_OBJECTS",
        "concepts/tables.md",
        _check_segments,
    ),
    Check(
        "types whose rows LogMiner does not translate",
        "Leave the table out, or move the column to a separate table",
        "reference/types.md",
        _check_types,
    ),
)
"""What is asked of each table beside what the database itself must have."""
