"""What keeps LogMiner from reading a database's redo? All of it at once, each with its remedy.

Rights and settings are asked for one by one, so that each has its remedy; then LogMiner is started over the newest redo and one row
is read, since only that shows what no view tells: a container that is not open, a file that cannot be opened, a release in which
ranges name no logs.

Source: Oracle Database Utilities 19c, "LogMiner Requirements" and "Using LogMiner in a CDB"; Oracle Database Reference 19c,
V$DATABASE, V$PDBS, V$ARCHIVE_DEST_STATUS; Security Guide 19c, "Enabling Common Users to View CDB and PDB Information".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from cdc_core.capture.dictionaries import (
    BUILD_SCRIPT,
    needed_from,
    newest_dictionary,
    read_dictionary_marks,
)
from cdc_core.capture.flushing import check_flush_table
from cdc_core.capture.logs import cover, read_log_starts, read_logs, read_threads
from cdc_core.capture.mining import mining
from cdc_core.capture.positions import upper_bound
from cdc_core.capture.standby import readable_end, where_both_run
from cdc_core.config import LogMinerConfig, LogsBy, TableConfig
from cdc_core.decode.character_sets import KNOWN
from cdc_core.errors import (
    CdcError,
    ConfigError,
    LogsNotReadyError,
    OracleError,
    OracleUnavailableError,
    PreflightError,
    RedoUnavailableError,
    TransientError,
)
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import SCN_MAX, Scn
from cdc_core.oracle.session import ROOT, OracleSession
from cdc_core.schema.dictionary_queries import OF_ROWS, tables_condition
from cdc_core.schema.segments import have_segments
from cdc_core.schema.table import LOGMINER_NAME_BYTES_MAX

VIEWS = (
    "V$DATABASE",
    "V$LOG",
    "V$LOGFILE",
    "V$ARCHIVED_LOG",
    "V$THREAD",
    "V$TRANSACTION",
    "V$DATAFILE",
    "V$TABLESPACE",
    "V$PDB_INCARNATION",
    "V$LOGMNR_LOGS",
)
"""Views that capture reads besides the rows of LogMiner."""

_SESSIONS = "GV$SESSION"
_TRANSACTIONS = "GV$TRANSACTION"
_DATABASE = """
SELECT DATABASE_ROLE, OPEN_MODE, LOG_MODE, SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_ALL FROM V$DATABASE"""
_FORCE_LOGGING = "SELECT FORCE_LOGGING FROM V$DATABASE"
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
_CONTAINERS = "SELECT NAME, OPEN_MODE FROM V$PDBS WHERE NAME <> 'PDB$SEED'"
_MOUNTED = "MOUNTED"
_BROKEN_DESTINATIONS = """
SELECT DEST_NAME, STATUS FROM V$ARCHIVE_DEST_STATUS WHERE STATUS NOT IN ('VALID', 'INACTIVE', 'DEFERRED')"""
_KEPT = """
SELECT ROUND((SYSDATE - MIN(FIRST_TIME)) * 24)
  FROM V$ARCHIVED_LOG WHERE STATUS = 'A' AND ARCHIVED = 'YES' AND STANDBY_DEST = 'NO'"""
_DICTIONARY_AGE = """
SELECT ROUND((SYSDATE - MAX(COMPLETION_TIME)) * 24) FROM V$ARCHIVED_LOG
 WHERE DICTIONARY_END = 'YES' AND STATUS = 'A' AND ARCHIVED = 'YES' AND STANDBY_DEST = 'NO'"""
_DESTINATIONS = "SELECT DEST_NAME, STATUS, TYPE FROM V$ARCHIVE_DEST_STATUS"
_LOGMINER_PROBE = "BEGIN SYS.DBMS_LOGMNR.END_LOGMNR(); END;"
_NO_SESSION = "ORA-01307"
# The view says whether one may read it before it says that LogMiner is not started; ROWNUM = 0 would not open it.
_CONTENTS_PROBE = "SELECT 1 FROM V$LOGMNR_CONTENTS WHERE ROWNUM = 1"
_NOT_STARTED = "ORA-01306"
_NO_VIEW = "ORA-00942"
_ATTEMPTS = 3
_CONTAINER_CLOSED = "ORA-16331"


def check_redo(
    session: OracleSession,
    tables: Sequence[TableConfig],
    how: LogMinerConfig,
    *,
    open_miner: Callable[[], AbstractContextManager[OracleSession]] | None = None,
) -> list[Finding]:
    """Look at the database as LogMiner needs it, and at the tables' logging; an empty list means that nothing is to be said.

    Args:
        open_miner: Gives the session in which LogMiner runs, if that is another one than ``session``; what it refuses is a finding.

    Only failures to look are raised: a lost session, a database that is down.
    """
    logs_by = how.logs
    findings = list(_check_views(session))
    can_look = not findings
    if can_look:
        findings += _check_instances(session)
    findings += _check_sessions(session)
    is_blind = any(finding.problem.endswith("V$DATABASE") for finding in findings)
    supplemental = False
    if not is_blind:
        supplemental, found = _check_database(session)
        findings += [*found, *_check_force_logging(session)]
    names = [config.table for config in tables]
    findings += _check_logging(session, tables) if not supplemental else []
    findings += _check_row_ids(tables)
    findings += _check_all_columns(tables)
    findings += _check_names(session, tables)
    findings += _check_character_sets(session, tables)
    findings += _check_segments(session, names)
    findings += _check_types(session, names)
    findings += check_flush_table(session, how)
    if is_blind:
        return [*findings, *_check_rights(session)]
    with ExitStack() as stack:
        try:
            miner = stack.enter_context(open_miner()) if open_miner else session
        except (ConfigError, PreflightError, RedoUnavailableError) as error:
            return [*findings, Finding(error.what_happened, error.hint)]
        try:
            with where_both_run(session, miner, how):
                findings += _check_rights(miner)
                if logs_by == "files" and session.is_cdb:
                    findings += _check_containers(miner)
                if not any(one.is_problem for one in findings):
                    findings += _check_dictionary(session, how)
                if not any(one.is_problem for one in findings):
                    findings += _probe(session, miner, how)
        except PreflightError as error:
            findings.append(_not_there(session, error, logs_by))
        return findings + (list(_check_archive(miner, how)) if can_look else [])


def _not_there(session: OracleSession, error: PreflightError, logs_by: LogsBy) -> Finding:
    if logs_by == "scn_range":
        return Finding(error.what_happened, error.hint)
    return Finding(
        "the capture user may not work in CDB$ROOT, where LogMiner runs",
        f"GRANT SET CONTAINER TO {session.user} CONTAINER = ALL (to a common user, C##…); where the root is out of reach, set "
        "capture.logs to scn_range",
    )


def _check_views(session: OracleSession) -> Iterator[Finding]:
    for view in VIEWS:
        try:
            session.fetch_all(f"SELECT 1 FROM {view} WHERE ROWNUM = 0")
        except PreflightError:
            grant = view.replace("V$", "V_$")
            yield Finding(
                f"the capture user may not read {view}",
                f"GRANT SELECT ON SYS.{grant} TO {session.user}",
            )


def _check_instances(session: OracleSession) -> Iterator[Finding]:
    """Where several instances run, each has transactions of its own, which a snapshot must know."""
    if sum(thread.is_written for thread in read_threads(session)) < 2:
        return
    try:
        session.fetch_all(f"SELECT 1 FROM {_TRANSACTIONS} WHERE ROWNUM = 0")
    except PreflightError:
        yield Finding(
            f"the capture user may not read {_TRANSACTIONS}, which shows the open transactions of all instances",
            f"GRANT SELECT ON SYS.GV_$TRANSACTION TO {session.user}",
        )


def _check_sessions(session: OracleSession) -> Iterator[Finding]:
    """Capture goes on without it, and keeps what it could forget."""
    try:
        session.fetch_all(f"SELECT 1 FROM {_SESSIONS} WHERE ROWNUM = 0")
    except PreflightError:
        yield Finding(
            f"the capture user may not read {_SESSIONS}: Redolake cannot abandon transactions of killed sessions, so it keeps "
            "their windows in landing indefinitely",
            f"GRANT SELECT ON SYS.GV_$SESSION TO {session.user}",
            is_problem=False,
        )


def _check_database(session: OracleSession) -> tuple[bool, list[Finding]]:
    """Whether all columns of all tables are logged, and what is wrong with the database."""
    [(role, open_mode, log_mode, minimal, everything)] = session.fetch_all(_DATABASE)
    findings = []
    if role != "PRIMARY" or open_mode != "READ WRITE":
        findings.append(
            Finding(
                f"the database is not a primary that is open for writing (role {role}, open mode {open_mode}): a standby does not show "
                "how far its redo is complete",
                "Name the service of the primary database in oracle.dsn, or open the database: ALTER DATABASE OPEN; capture.standby_dsn lets "
                "LogMiner read a standby's logs",
            )
        )
    if log_mode != "ARCHIVELOG":
        findings.append(
            Finding(
                "the database is not in ARCHIVELOG mode",
                "SHUTDOWN IMMEDIATE; STARTUP MOUNT; ALTER DATABASE ARCHIVELOG; ALTER DATABASE OPEN",
            )
        )
    if everything != "YES" and minimal not in {"YES", "IMPLICIT"}:
        findings.append(
            Finding(
                "the database has no supplemental logging",
                "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA",
            )
        )
    return everything == "YES", findings


def _check_force_logging(session: OracleSession) -> Iterator[Finding]:
    """May rows be written without redo? Windows notice it, and stop the tables of the tablespace."""
    [(forced,)] = session.fetch_all(_FORCE_LOGGING)
    if forced != "YES":
        yield Finding(
            "FORCE LOGGING is off: a load without redo (NOLOGGING, SQL*Loader UNRECOVERABLE) "
            "into a captured table stops that table",
            "ALTER DATABASE FORCE LOGGING, or ALTER TABLESPACE … FORCE LOGGING for those of the captured tables; policies.on_unlogged "
            "says what becomes of the tables otherwise",
            is_problem=False,
        )


def _check_logging(session: OracleSession, tables: Sequence[TableConfig]) -> Iterator[Finding]:
    """All columns name the row of a change, and say what it was. Where the ROWID names it, capture goes on with less, but in tables with
    LOBs, whose rows LogMiner shows without it. ALL_LOG_GROUPS has nothing of a table that the capture user may not read, so
    nothing is said of one."""
    condition, binds = tables_condition([one.table for one in tables], "OWNER", "TABLE_NAME")
    found = session.fetch_all(_VISIBLE.format(tables=condition), binds)
    visible = {TableId(owner, name) for owner, name in found}
    tables = [one for one in tables if one.table in visible]
    logged = {TableId(owner, name) for owner, name in session.fetch_all(_ALL_COLUMN_GROUPS)}
    loose = [one.table for one in tables if one.identity == "rowid" and one.table not in logged]
    with_lobs: set[TableId] = set()
    if loose:
        condition, binds = tables_condition(loose, "OWNER", "TABLE_NAME")
        found = session.fetch_all(_LOB_TABLES.format(tables=condition), binds)
        with_lobs = {TableId(owner, name) for owner, name in found}
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


def _check_row_ids(tables: Sequence[TableConfig]) -> Iterator[Finding]:
    for config in tables:
        if config.identity == "rowid":
            yield Finding(
                f"{config.table}: Redolake identifies its rows by ROWID. ALTER TABLE … MOVE, SHRINK SPACE, FLASHBACK TABLE, and partitions "
                "that are split, merged, moved or exchanged change ROWIDs, and the table leaves the stream",
                f"`redolake table resnapshot {config.table.argument}` adds it back after each such statement; a table with a key is not affected",
                config.table,
                is_problem=False,
            )


def _check_all_columns(tables: Sequence[TableConfig]) -> Iterator[Finding]:
    for config in tables:
        if config.identity == "all_columns":
            yield Finding(
                f"{config.table}: Redolake identifies its rows by the values of all columns, and counts equal rows. Each change carries the "
                "whole row twice through the lake, the whole table is read as of one SCN, which needs the undo for that long, and a column "
                "that comes, goes, or changes its name or type takes the table out of the stream",
                f"`redolake table resnapshot {config.table.argument}` adds it back with new Delta tables after a DDL of its columns; a table "
                "with a key needs none of this",
                config.table,
                is_problem=False,
            )


def _check_names(session: OracleSession, tables: Sequence[TableConfig]) -> Iterator[Finding]:
    condition, binds = tables_condition([one.table for one in tables], "OWNER", "TABLE_NAME")
    long: dict[TableId, list[str]] = {}
    rows = session.fetch_all(
        _LONG_NAMES.format(tables=condition), {**binds, "bytes": LOGMINER_NAME_BYTES_MAX}
    )
    for owner, name, column in rows:
        long.setdefault(TableId(owner, name), []).append(column)
    for config in tables:
        columns = long.get(config.table, [])
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


def _check_character_sets(
    session: OracleSession, tables: Sequence[TableConfig]
) -> Iterator[Finding]:
    """Rows from before a DDL hold text in the bytes of the database's sets; the driver's thin mode reads national text of one set."""
    sets = dict(session.fetch_all(_CHARACTER_SETS))
    own, national = sets["NLS_CHARACTERSET"], sets["NLS_NCHAR_CHARACTERSET"]
    if own not in KNOWN:
        yield Finding(
            f"Redolake does not know the database's character set {own}: rows from before a DDL hold text in its bytes",
            "Migrate the database to AL32UTF8 (Database Migration Assistant for Unicode), or ask for the set in an issue",
        )
    if national == _NATIONAL_SET:
        return
    condition, binds = tables_condition([one.table for one in tables], "OWNER", "TABLE_NAME")
    wide: dict[TableId, list[str]] = {}
    for owner, name, column in session.fetch_all(_NATIONAL.format(tables=condition), binds):
        wide.setdefault(TableId(owner, name), []).append(column)
    for config in tables:
        names = [name for name in wide.get(config.table, []) if name not in config.columns_exclude]
        if names:
            yield Finding(
                f"{config.table}: the driver does not read the national character set {national} of {', '.join(names)} (DPY-3012)",
                "Leave the columns out under columns_exclude",
                config.table,
            )


def _check_segments(session: OracleSession, tables: Sequence[TableId]) -> Iterator[Finding]:
    """Rows of a segment that is gone have no name: whose they are, the objects of the database tell."""
    segmented = sorted(have_segments(session, tables))
    if not segmented:
        return
    try:
        session.fetch_all(_OBJECTS_PROBE)
    except PreflightError:
        for table in segmented:
            yield Finding(
                f"{table} has partitions or is index-organized, and the capture user may not read DBA_OBJECTS: if a partition is made "
                "and goes again before its redo is read, the table stops",
                f"GRANT SELECT, FLASHBACK ON SYS.DBA_OBJECTS TO {session.user}",
                table,
                is_problem=False,
            )


def _check_types(session: OracleSession, tables: Sequence[TableId]) -> Iterator[Finding]:
    """LogMiner shows each row of a table with such a column as UNSUPPORTED, whatever is captured of it: measured on 23ai by others, and of
    nested tables as Oracle Database Utilities 19c says, "Supported Data Types, Storage Attributes, and Database and Redo Log File Versions"."""
    condition, binds = tables_condition(tables, "OWNER", "TABLE_NAME")
    documents = session.fetch_all(_UNTRANSLATED.format(tables=condition), binds)
    condition, binds = tables_condition(tables, "OWNER", "PARENT_TABLE_NAME")
    nested = session.fetch_all(_NESTED.format(tables=condition), binds)
    for owner, name, column, kind in (*documents, *nested):
        table = TableId(owner, name)
        yield Finding(
            f"{table} has the column {column} of type {kind}: LogMiner does not translate rows of such a table, also where the "
            "column is left out",
            "Leave the table out, or keep the column in a table of its own; with its first change the table stops",
            table,
            is_problem=False,
        )


def _check_rights(session: OracleSession) -> Iterator[Finding]:
    try:
        session.execute_block(_LOGMINER_PROBE)
    except PreflightError as error:
        yield Finding(
            f"the capture user may not use LogMiner ({error.facts.get('ora')})",
            f"GRANT LOGMINING TO {session.user}; GRANT EXECUTE ON SYS.DBMS_LOGMNR TO {session.user}",
        )
        return
    except OracleError as error:
        if error.facts.get("ora") != _NO_SESSION:
            raise
    try:
        session.fetch_all(_CONTENTS_PROBE)
    except PreflightError as error:
        grant = (
            "SELECT ON SYS.V_$LOGMNR_CONTENTS"
            if error.facts.get("ora") == _NO_VIEW
            else "LOGMINING"
        )
        yield Finding(
            f"the capture user may not read V$LOGMNR_CONTENTS ({error.facts.get('ora')})",
            f"GRANT {grant} TO {session.user}",
        )
    except OracleError as error:
        if error.facts.get("ora") != _NOT_STARTED:
            raise


def _check_containers(session: OracleSession) -> Iterator[Finding]:
    """Is every pluggable database open? What is closed for long may have no redo in the logs that are read."""
    try:
        containers = dict(session.fetch_all(_CONTAINERS))
    except PreflightError:
        yield Finding(
            "the capture user may not see whether all pluggable databases are open, which LogMiner needs",
            f"GRANT SELECT ON SYS.V_$PDBS TO {session.user} CONTAINER = ALL",
            is_problem=False,
        )
        return
    if session.container != ROOT and session.container not in containers:
        yield Finding(
            "the capture user does not see in CDB$ROOT whether all pluggable databases are open (CONTAINER_DATA)",
            f"ALTER USER {session.user} SET CONTAINER_DATA = ALL CONTAINER = CURRENT, in CDB$ROOT",
            is_problem=False,
        )
    for name, open_mode in sorted(containers.items()):
        if open_mode == _MOUNTED:
            yield Finding(
                f"the pluggable database {name} is not open: LogMiner stops where its redo is in the logs (ORA-16331), captured or not",
                f"ALTER PLUGGABLE DATABASE {name} OPEN; ALTER PLUGGABLE DATABASE {name} SAVE STATE",
                is_problem=False,
            )


def _probe(session: OracleSession, miner: OracleSession, how: LogMinerConfig) -> Iterator[Finding]:
    """Start LogMiner over the redo of the newest logs, as a window does, and read one row."""
    attempts = Retrying(
        retry=retry_if_exception(_passes),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_fixed(1),
        reraise=True,
    )
    try:
        attempts(_read_newest, session, miner, how)
    except CdcError as error:
        lost = isinstance(error, OracleUnavailableError)
        if lost and error.facts.get("ora") != _CONTAINER_CLOSED:
            raise
        yield Finding(
            f"LogMiner cannot read the newest redo: {error.what_happened}",
            error.hint or "Have it fixed, then run redolake doctor",
        )


def _read_newest(session: OracleSession, miner: OracleSession, how: LogMinerConfig) -> None:
    # A thread that was opened a moment ago has no older log.
    first = max(one.first_change for one in read_log_starts(session).values())
    high = upper_bound(session, "online")
    low = Scn(min(first, high) - 1)
    if how.reads_archived_only:
        # The newest redo is not archived yet; what a window reads lies below.
        end = readable_end(session, miner, low, how)
        if end is None:
            option = "capture.archived_only" if how.standby_dsn is None else "capture.standby_dsn"
            raise LogsNotReadyError(
                f"{option} is set, and no log is archived yet",
                hint="ALTER SYSTEM ARCHIVE LOG CURRENT archives the one that is written.",
            )
        high = min(high, end)
        low = min(low, Scn(high - 1))
    dictionary = None
    if how.strategy == "redo_log_catalog":
        dictionary = newest_dictionary(read_dictionary_marks(session, SCN_MAX))
    if dictionary is not None:
        low = max(low, Scn(dictionary.next_change - 1))
        high = max(high, Scn(low + 1))
    from_ = needed_from(session, how, low)
    logs = cover(read_logs(miner, from_, how), read_threads(session), from_, high)
    with mining(miner, logs, low, high, how=how, logs_by=how.logs):
        miner.fetch_all(_CONTENTS_PROBE)


def _passes(error: BaseException) -> bool:
    """Is it over in a moment, as a log that is just switched?"""
    return isinstance(error, TransientError) and not isinstance(error, OracleUnavailableError)


def _check_dictionary(session: OracleSession, how: LogMinerConfig) -> Iterator[Finding]:
    """Is there a dictionary to read redo with, and for how long must logs be kept because of it?"""
    if how.strategy == "dictionary_from_file" and session.is_cdb:
        yield Finding(
            "capture.strategy: dictionary_from_file in a database with containers: Oracle supports dictionary files from 19c on only "
            "without them",
            "Set capture.strategy to online_catalog, the default, which gives the same tables"
            if how.standby_dsn is None
            else "Leave capture.standby_dsn out, and set capture.strategy to online_catalog: LogMiner then runs in the primary",
            is_problem=False,
        )
    if how.strategy != "redo_log_catalog":
        return
    if newest_dictionary(read_dictionary_marks(session, SCN_MAX)) is None:
        yield Finding(
            "capture.strategy: redo_log_catalog, and no archived log holds a LogMiner dictionary",
            f"Run {BUILD_SCRIPT} as a database administrator",
        )
        return
    [(hours,)] = session.fetch_all(_DICTIONARY_AGE)
    yield Finding(
        f"the newest LogMiner dictionary in the redo is {int(hours)} hours old, and for each window Oracle reads all redo since then",
        f"Keep the archived logs since that dictionary, and run {BUILD_SCRIPT} from time to time (every day, for example)",
        is_problem=False,
    )


def _check_destinations(session: OracleSession, how: LogMinerConfig) -> Iterator[Finding]:
    """Can files of the chosen archive destinations be read here?"""
    if not how.archive_destinations:
        return
    valid = {
        str(name)
        for name, status, kind in session.fetch_all(_DESTINATIONS)
        if status == "VALID" and kind == "LOCAL"
    }
    for name in how.archive_destinations:
        if name not in valid:
            yield Finding(
                f"capture.archive_destinations names {name}, which is not a valid local destination",
                "SELECT DEST_NAME, STATUS, TYPE FROM V$ARCHIVE_DEST_STATUS shows those that are",
            )


def _check_archive(session: OracleSession, how: LogMinerConfig) -> Iterator[Finding]:
    try:
        yield from _check_destinations(session, how)
    except PreflightError:
        yield Finding(
            "the capture user may not read V$ARCHIVE_DEST_STATUS, so nothing says whether capture.archive_destinations exist",
            f"GRANT SELECT ON SYS.V_$ARCHIVE_DEST_STATUS TO {session.user}",
            is_problem=False,
        )
    try:
        broken = session.fetch_all(_BROKEN_DESTINATIONS)
    except PreflightError:
        broken = []  # a convenience: what is not archived makes windows wait, which they say
    for name, status in broken:
        yield Finding(
            f"the archive destination {name} has the status {status}",
            "SELECT ERROR FROM V$ARCHIVE_DEST_STATUS says why; windows wait for logs that are not archived",
            is_problem=False,
        )
    [(hours,)] = session.fetch_all(_KEPT)
    if hours is not None:
        yield Finding(
            f"archived logs reach back {int(hours)} hours",
            "Archived logs must cover the longest time that capture stands still, and the longest transaction",
            is_problem=False,
        )
