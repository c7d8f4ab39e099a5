"""What keeps LogMiner from reading a database's redo? All of it at once, each with its remedy.

Rights and settings are asked for one by one, so that each has its remedy; then LogMiner is started
over the newest redo and one row is read, since only that shows what no view tells: a container that
is not open, a file that cannot be opened, a release in which ranges name no logs.

Source: Oracle Database Utilities 19c, "LogMiner Requirements" and "Using LogMiner in a CDB"; Oracle
Database Reference 19c, V$DATABASE, V$PDBS, V$ARCHIVE_DEST_STATUS; Security Guide 19c, "Enabling
Common Users to View CDB and PDB Information".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from cdc_core.capture.logs.coverage import (
    cover,
    log_starts,
    read_logs,
    read_redo_state,
    read_threads,
)
from cdc_core.capture.logs.dictionaries import (
    BUILD_SCRIPT,
    needed_from,
    newest_dictionary,
    read_dictionary_marks,
)
from cdc_core.capture.logs.flushing import check_flush_table
from cdc_core.capture.logs.positions import bound_of
from cdc_core.capture.logs.standby import readable_end, where_both_run
from cdc_core.capture.passes.mining import mining
from cdc_core.config import LogMinerConfig, LogsBy, TableConfig
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
from cdc_core.model.scn import SCN_MAX, Scn
from cdc_core.model.wording import counted
from cdc_core.oracle.session import ROOT, OracleSession
from cdc_core.preflight.checks import Check, CheckInput, found_by
from cdc_core.preflight.redo import LOGGING, REDO_CHECKS

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
SELECT DATABASE_ROLE, OPEN_MODE, LOG_MODE, SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_ALL, FORCE_LOGGING
  FROM V$DATABASE"""
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
# The view says whether one may read it before it says that LogMiner is not started; ROWNUM = 0
# would not open it.
_CONTENTS_PROBE = "SELECT 1 FROM V$LOGMNR_CONTENTS WHERE ROWNUM = 1"
_NOT_STARTED = "ORA-01306"
_NO_VIEW = "ORA-00942"
_ATTEMPTS = 3
_CONTAINER_CLOSED = "ORA-16331"


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What V$DATABASE says, in its own words."""

    role: str
    open_mode: str
    log_mode: str
    minimal: str
    everything: str
    forced: str


@dataclass(frozen=True, slots=True)
class RedoCheckInput:
    """What checks of the redo look at: the session of the tables, the one in which LogMiner runs,
    and what V$DATABASE says, once that was read."""

    session: OracleSession
    miner: OracleSession
    how: LogMinerConfig
    database: DatabaseFacts | None = None

    @property
    def facts(self) -> DatabaseFacts:
        """What V$DATABASE says; it is asked where it was not."""
        return self.database or _facts(self.session)


def check_redo(
    session: OracleSession,
    tables: Sequence[TableConfig],
    how: LogMinerConfig,
    *,
    open_miner: Callable[[], AbstractContextManager[OracleSession]] | None = None,
) -> list[Finding]:
    """Look at the database as LogMiner needs it, and at the tables' logging; an empty list means
    that nothing is to be said.

    Args:
        open_miner: Gives the session in which LogMiner runs, if that is another one than
            ``session``; what it refuses is a finding.

    Only failures to look are raised: a lost session, a database that is down.
    """
    redo = RedoCheckInput(session, session, how)
    findings = list(VIEWS_CHECK.find(redo))
    can_look = not findings
    if can_look:
        findings += INSTANCES_CHECK.find(redo)
    findings += SESSIONS_CHECK.find(redo)
    is_blind = any(finding.problem.endswith("V$DATABASE") for finding in findings)
    if not is_blind:
        redo = replace(redo, database=_facts(session))
        findings += found_by(DATABASE_CHECKS, redo)
    is_logged = redo.database is not None and redo.database.everything == "YES"
    of_tables = [one for one in REDO_CHECKS if not (is_logged and one is LOGGING)]
    findings += found_by(of_tables, CheckInput(session, tables))
    findings += FLUSH_CHECK.find(redo)
    if is_blind:
        return [*findings, *RIGHTS_CHECK.find(redo)]
    with ExitStack() as stack:
        try:
            miner = stack.enter_context(open_miner()) if open_miner else session
        except (ConfigError, PreflightError, RedoUnavailableError) as error:
            return [*findings, Finding(error.what_happened, error.hint)]
        redo = replace(redo, miner=miner)
        try:
            with where_both_run(session, miner, how):
                findings += found_by((RIGHTS_CHECK, CONTAINERS_CHECK), redo)
                for check in (DICTIONARY_CHECK, READING_CHECK):
                    if not any(one.is_problem for one in findings):
                        findings += check.find(redo)
        except PreflightError as error:
            findings.append(_not_there(session, error, how.logs))
        return findings + (list(ARCHIVE_CHECK.find(redo)) if can_look else [])


def _not_there(session: OracleSession, error: PreflightError, logs_by: LogsBy) -> Finding:
    if logs_by == "scn_range":
        return Finding(error.what_happened, error.hint)
    return Finding(
        "the capture user may not work in CDB$ROOT, where LogMiner runs",
        f"GRANT SET CONTAINER TO {session.user} CONTAINER = ALL (to a common user, C##…); where the root is out of reach, set "
        "capture.logs to scn_range",
    )


def _check_views(given: RedoCheckInput) -> Iterator[Finding]:
    probes = {view: f"SELECT 1 FROM {view} WHERE ROWNUM = 0" for view in VIEWS}
    with suppress(PreflightError):  # one by one they say which
        given.session.fetch_all(" UNION ALL ".join(probes.values()))
        return
    for view, probe in probes.items():
        try:
            given.session.fetch_all(probe)
        except PreflightError:
            grant = view.replace("V$", "V_$")
            yield Finding(
                f"the capture user may not read {view}",
                f"GRANT SELECT ON SYS.{grant} TO {given.session.user}",
            )


def _check_instances(given: RedoCheckInput) -> Iterator[Finding]:
    """Where several instances run, each has transactions of its own, which a snapshot must know."""
    if sum(thread.is_written for thread in read_threads(given.session)) < 2:
        return
    try:
        given.session.fetch_all(f"SELECT 1 FROM {_TRANSACTIONS} WHERE ROWNUM = 0")
    except PreflightError:
        yield Finding(
            f"the capture user may not read {_TRANSACTIONS}, which shows the open transactions of all instances",
            f"GRANT SELECT ON SYS.GV_$TRANSACTION TO {given.session.user}",
        )


def _check_sessions(given: RedoCheckInput) -> Iterator[Finding]:
    """Capture goes on without it, and keeps what it could forget."""
    try:
        given.session.fetch_all(f"SELECT 1 FROM {_SESSIONS} WHERE ROWNUM = 0")
    except PreflightError:
        yield Finding(
            f"the capture user may not read {_SESSIONS}: Redolake cannot abandon transactions of killed sessions, so it keeps "
            "their windows in landing indefinitely",
            f"GRANT SELECT ON SYS.GV_$SESSION TO {given.session.user}",
            is_problem=False,
        )


def logs_all_columns(session: OracleSession) -> bool:
    """Does the database log all columns of all tables?"""
    return _facts(session).everything == "YES"


def _facts(session: OracleSession) -> DatabaseFacts:
    return DatabaseFacts(*session.fetch_all(_DATABASE)[0])


def _check_database(given: RedoCheckInput) -> list[Finding]:
    facts = given.facts
    findings = []
    if facts.role != "PRIMARY" or facts.open_mode != "READ WRITE":
        findings.append(
            Finding(
                f"the database is not a primary that is open for writing (role {facts.role}, open mode {facts.open_mode}): "
                "a standby does not show how far its redo is complete",
                "Name the service of the primary database in oracle.dsn, or open the database: ALTER DATABASE OPEN; capture.standby_dsn lets "
                "LogMiner read a standby's logs",
            )
        )
    if facts.log_mode != "ARCHIVELOG":
        findings.append(
            Finding(
                "the database is not in ARCHIVELOG mode",
                "SHUTDOWN IMMEDIATE; STARTUP MOUNT; ALTER DATABASE ARCHIVELOG; ALTER DATABASE OPEN",
            )
        )
    if facts.everything != "YES" and facts.minimal not in {"YES", "IMPLICIT"}:
        findings.append(
            Finding(
                "the database has no supplemental logging",
                "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA",
            )
        )
    return findings


def _check_force_logging(given: RedoCheckInput) -> Iterator[Finding]:
    """May rows be written without redo? Windows notice it, and stop the tables of the
    tablespace."""
    facts = given.facts
    if facts.forced != "YES":
        yield Finding(
            "FORCE LOGGING is off: a load without redo (NOLOGGING, SQL*Loader UNRECOVERABLE) "
            "into a captured table stops that table",
            "ALTER DATABASE FORCE LOGGING, or ALTER TABLESPACE … FORCE LOGGING for those of the captured tables; policies.on_unlogged "
            "says what becomes of the tables otherwise",
            is_problem=False,
        )


def _check_rights(given: RedoCheckInput) -> Iterator[Finding]:
    try:
        given.miner.execute_block(_LOGMINER_PROBE)
    except PreflightError as error:
        yield Finding(
            f"the capture user may not use LogMiner ({error.facts.get('ora')})",
            f"GRANT LOGMINING TO {given.miner.user}; GRANT EXECUTE ON SYS.DBMS_LOGMNR TO {given.miner.user}",
        )
        return
    except OracleError as error:
        if error.facts.get("ora") != _NO_SESSION:
            raise
    try:
        given.miner.fetch_all(_CONTENTS_PROBE)
    except PreflightError as error:
        grant = (
            "SELECT ON SYS.V_$LOGMNR_CONTENTS"
            if error.facts.get("ora") == _NO_VIEW
            else "LOGMINING"
        )
        yield Finding(
            f"the capture user may not read V$LOGMNR_CONTENTS ({error.facts.get('ora')})",
            f"GRANT {grant} TO {given.miner.user}",
        )
    except OracleError as error:
        if error.facts.get("ora") != _NOT_STARTED:
            raise


def _check_containers(given: RedoCheckInput) -> Iterator[Finding]:
    """Is every pluggable database open? What is closed for long may have no redo in the logs that
    are read."""
    if given.how.logs != "files" or not given.session.is_cdb:
        return
    try:
        containers = dict(given.miner.fetch_all(_CONTAINERS))
    except PreflightError:
        yield Finding(
            "the capture user may not see whether all pluggable databases are open, which LogMiner needs",
            f"GRANT SELECT ON SYS.V_$PDBS TO {given.miner.user} CONTAINER = ALL",
            is_problem=False,
        )
        return
    if given.miner.container != ROOT and given.miner.container not in containers:
        yield Finding(
            "the capture user does not see in CDB$ROOT whether all pluggable databases are open (CONTAINER_DATA)",
            f"ALTER USER {given.miner.user} SET CONTAINER_DATA = ALL CONTAINER = CURRENT, in CDB$ROOT",
            is_problem=False,
        )
    for name, open_mode in sorted(containers.items()):
        if open_mode == _MOUNTED:
            yield Finding(
                f"the pluggable database {name} is not open: LogMiner stops where its redo is in the logs (ORA-16331), captured or not",
                f"ALTER PLUGGABLE DATABASE {name} OPEN; ALTER PLUGGABLE DATABASE {name} SAVE STATE",
                is_problem=False,
            )


def _probe(given: RedoCheckInput) -> Iterator[Finding]:
    """Start LogMiner over the redo of the newest logs, as a window does, and read one row."""
    attempts = Retrying(
        retry=retry_if_exception(_passes),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_fixed(1),
        reraise=True,
    )
    try:
        attempts(_read_newest, given.session, given.miner, given.how)
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
    redo = read_redo_state(session)
    first = max(one.first_change for one in log_starts(redo).values())
    high = bound_of(redo, "online")
    low = Scn(min(first, high) - 1)
    if how.reads_archived_only:
        # The newest redo is not archived yet; what a window reads lies below.
        end = readable_end(session, miner, low, how)
        if end is None:
            option = "capture.archived_only" if how.standby_dsn is None else "capture.standby_dsn"
            raise LogsNotReadyError(
                f"{option} is set, and no log is archived yet",
                hint="ALTER SYSTEM ARCHIVE LOG CURRENT archives the current one.",
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
    copies = read_logs(miner, from_, how, online=redo.online)
    logs = cover(copies, redo.database.threads, from_, high)
    with mining(miner, logs, low, high, how=how):
        miner.fetch_all(_CONTENTS_PROBE)


def _passes(error: BaseException) -> bool:
    """Is it over in a moment, as a log that is just switched?"""
    return isinstance(error, TransientError) and not isinstance(error, OracleUnavailableError)


def _check_dictionary(given: RedoCheckInput) -> Iterator[Finding]:
    """Is there a dictionary to read redo with, and for how long must logs be kept because of it?"""
    session, how = given.session, given.how
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
            "capture.strategy: redo_log_catalog, and no archived log contains a LogMiner dictionary",
            f"Run {BUILD_SCRIPT} as a database administrator",
        )
        return
    [(hours,)] = session.fetch_all(_DICTIONARY_AGE)
    yield Finding(
        f"the newest LogMiner dictionary in the redo is {counted(int(hours), 'hour')} old, and for each window Oracle reads all redo since then",
        f"Keep the archived logs since that dictionary, and run {BUILD_SCRIPT} regularly (for example every day)",
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


def _check_archive(given: RedoCheckInput) -> Iterator[Finding]:
    session, how = given.miner, given.how
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
            f"archived logs reach back {counted(int(hours), 'hour')}",
            "Archived logs must cover the longest time that capture stands still, and the longest transaction",
            is_problem=False,
        )


HOST = "how-to/oracle-on-premises.md"
VIEWS_CHECK = Check("rights on the V$ views", "GRANT SELECT ON SYS.V_$…", HOST, _check_views)
INSTANCES_CHECK = Check(
    "rights on GV$TRANSACTION, where several instances run",
    "GRANT SELECT ON SYS.GV_$TRANSACTION",
    "how-to/rac-and-standby.md",
    _check_instances,
)
SESSIONS_CHECK = Check(
    "rights on GV$SESSION, which tells killed sessions",
    "GRANT SELECT ON SYS.GV_$SESSION",
    "how-to/stuck-window.md",
    _check_sessions,
)
DATABASE_CHECKS: tuple[Check[RedoCheckInput], ...] = (
    Check(
        "role, open mode, ARCHIVELOG mode, and supplemental logging of the database",
        "ALTER DATABASE ARCHIVELOG; ALTER DATABASE ADD SUPPLEMENTAL LOG DATA",
        HOST,
        _check_database,
    ),
    Check(
        "loads without redo",
        "ALTER DATABASE FORCE LOGGING",
        "how-to/tables.md",
        _check_force_logging,
    ),
)
FLUSH_CHECK: Check[RedoCheckInput] = Check(
    "the table of `capture.flush_table`",
    "Create it and grant SELECT and UPDATE on it",
    "reference/configuration.md",
    lambda given: check_flush_table(given.session, given.how),
)
RIGHTS_CHECK = Check(
    "rights to use LogMiner and to read its rows", "GRANT LOGMINING", HOST, _check_rights
)
CONTAINERS_CHECK = Check(
    "pluggable databases that are closed",
    "ALTER PLUGGABLE DATABASE … OPEN",
    HOST,
    _check_containers,
)
DICTIONARY_CHECK = Check(
    "the dictionary that `capture.strategy` needs",
    "Build a dictionary, or choose `online_catalog`",
    "reference/configuration.md",
    _check_dictionary,
)
READING_CHECK = Check(
    "whether LogMiner reads a row of the newest redo", "As the finding says", HOST, _probe
)
ARCHIVE_CHECK = Check(
    "archive destinations, and how far archived logs reach back",
    "Keep archived logs as long as capture may stand still",
    HOST,
    _check_archive,
)
LOGMINER_CHECKS: tuple[Check[RedoCheckInput], ...] = (
    VIEWS_CHECK,
    INSTANCES_CHECK,
    SESSIONS_CHECK,
    *DATABASE_CHECKS,
    FLUSH_CHECK,
    RIGHTS_CHECK,
    CONTAINERS_CHECK,
    DICTIONARY_CHECK,
    READING_CHECK,
    ARCHIVE_CHECK,
)
"""What is asked of the database, in this order; see :func:`check_redo` for what follows what."""
