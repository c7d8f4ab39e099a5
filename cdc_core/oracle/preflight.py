"""What does a database lack before a source can be captured from it? All of it at once, each with what mends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from cdc_core.config import SourceConfig, TableConfig
from cdc_core.errors import CdcError, ConfigError, OracleError, PreflightError, UnsupportedTypeError
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.oracle.preflight_rows import check_rows
from cdc_core.oracle.session import Binds, OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import LOGMINER_NAME_BYTES_MAX
from cdc_core.schema.types import arrow_schema, is_number_text

VIEWS = (
    "V$DATABASE",
    "V$LOG",
    "V$LOGFILE",
    "V$ARCHIVED_LOG",
    "V$THREAD",
    "V$TRANSACTION",
    "V$DATAFILE",
    "V$TABLESPACE",
    "V$LOGMNR_LOGS",
)
"""Views that capture reads besides the rows of LogMiner."""

_DATABASE = """
SELECT LOG_MODE, SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_ALL, CURRENT_SCN FROM V$DATABASE"""
_ALL_COLUMN_GROUPS = """
SELECT OWNER, TABLE_NAME FROM ALL_LOG_GROUPS WHERE LOG_GROUP_TYPE = 'ALL COLUMN LOGGING'"""
_OBJECT_KINDS = "SELECT OBJECT_TYPE FROM ALL_OBJECTS WHERE OWNER = :owner AND OBJECT_NAME = :name"
_UNDO = "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'undo_retention'"
_LOGMINER_PROBE = "BEGIN SYS.DBMS_LOGMNR.END_LOGMNR(); END;"
_NO_SESSION = "ORA-01307"
# The view says whether one may read it before it says that LogMiner is not started; ROWNUM = 0 would not open it.
_CONTENTS_PROBE = "SELECT 1 FROM V$LOGMNR_CONTENTS WHERE ROWNUM = 1"
_NOT_STARTED = "ORA-01306"
_NO_VIEW = "ORA-00942"
_NUMBER_BYTES = "SELECT SYS.UTL_RAW.CAST_FROM_NUMBER(0) FROM DUAL"
_NO_SUCH_FUNCTION = frozenset({"ORA-00904", "ORA-01031"})


def check_source(session: OracleSession, config: SourceConfig) -> list[Finding]:
    """Look at database and tables; an empty list means that nothing is to be said.

    Only failures to look are raised: a lost session, a database that is down.
    """
    findings = list(_check_views(session))
    blind = any(finding.problem.endswith("V$DATABASE") for finding in findings)
    supplemental, scn = False, None
    if not blind:
        supplemental, scn, found = _check_database(session)
        findings += found
    findings += _check_logminer(session, in_root=not blind)
    logged = {TableId(owner, name) for owner, name in session.fetch_all(_ALL_COLUMN_GROUPS)}
    for table in config.tables:
        findings += _check_table(session, table, scn)
        if not supplemental and table.table not in logged:
            findings.append(
                Finding(
                    f"{table.table} has no supplemental logging of all columns",
                    f"ALTER TABLE {table.table.sql} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
                    table.table,
                )
            )
    findings += check_rows(session, [table.table for table in config.tables])
    findings += _check_undo(session)
    return findings


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


def _check_database(session: OracleSession) -> tuple[bool, Scn, list[Finding]]:
    """Whether all columns of all tables are logged, the present SCN, and what is wrong with the database."""
    [(log_mode, minimal, everything, scn)] = session.fetch_all(_DATABASE)
    findings = []
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
    return everything == "YES", Scn(scn), findings


def _check_logminer(session: OracleSession, *, in_root: bool) -> Iterator[Finding]:
    with ExitStack() as stack:
        try:
            if in_root:
                stack.enter_context(session.in_root())
        except PreflightError:
            yield Finding(
                "the capture user may not work in CDB$ROOT, where LogMiner runs",
                f"GRANT SET CONTAINER TO {session.user} CONTAINER = ALL (to a common user, C##…)",
            )
            return
        yield from _probe_logminer(session)


def _probe_logminer(session: OracleSession) -> Iterator[Finding]:
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


def _check_table(session: OracleSession, config: TableConfig, scn: Scn | None) -> Iterator[Finding]:
    table = config.table
    try:
        schema = read_table_schema(session, config)
        arrow_schema(schema)
    except (ConfigError, PreflightError, UnsupportedTypeError) as error:
        if _is_view(session, table):
            yield Finding(
                f"{table} is a view, not a table",
                "Capture the tables that it reads; a view has no rows in the redo of its own",
                table,
            )
        else:
            yield Finding(error.what_happened, error.hint, table)
        return
    names = [table.name, *schema.column_names]
    long = [name for name in names if len(name.encode()) > LOGMINER_NAME_BYTES_MAX]
    if long:
        yield Finding(
            f"{table}: LogMiner does not support names longer than {LOGMINER_NAME_BYTES_MAX} bytes: {', '.join(long)}",
            "Rename them, or leave the columns out under columns_exclude",
            table,
        )
    if any(is_number_text(column) for column in schema.columns):
        yield from _probe_number_bytes(session, table)
    yield from _check_rights(session, table, scn)


def _probe_number_bytes(session: OracleSession, table: TableId) -> Iterator[Finding]:
    """Can chunks read NUMBERs without a scale? Everyone may run UTL_RAW, unless it was revoked from PUBLIC."""
    try:
        session.fetch_all(_NUMBER_BYTES)
    except CdcError as error:
        if error.facts.get("ora") not in _NO_SUCH_FUNCTION:
            raise
        yield Finding(
            f"the capture user may not run UTL_RAW, which reads the NUMBER columns without a scale of {table}",
            f"GRANT EXECUTE ON SYS.UTL_RAW TO {session.user}",
            table,
        )


def _check_rights(session: OracleSession, table: TableId, scn: Scn | None) -> Iterator[Finding]:
    probes: tuple[tuple[str, str, Binds], ...] = (
        ("SELECT", f"SELECT 1 FROM {table.sql} WHERE ROWNUM = 0", {}),
        ("FLASHBACK", f"SELECT 1 FROM {table.sql} AS OF SCN :scn WHERE ROWNUM = 0", {"scn": scn}),
    )
    for privilege, sql, binds in probes if scn is not None else probes[:1]:
        try:
            session.fetch_all(sql, binds)
        except PreflightError:
            yield Finding(
                f"the capture user lacks {privilege} on {table}",
                f"GRANT {privilege} ON {table.sql} TO {session.user}",
                table,
            )
            return
        except CdcError as error:
            yield Finding(
                f"{table} cannot be read as of an SCN: {error.what_happened}", error.hint, table
            )
            return


def _check_undo(session: OracleSession) -> Iterator[Finding]:
    try:
        rows = session.fetch_all(_UNDO)
    except PreflightError:
        return
    if rows:
        yield Finding(
            f"undo is kept for {rows[0][0]} seconds",
            "Chunks and reconciliation must finish within that time; ALTER SYSTEM SET UNDO_RETENTION raises it",
            is_problem=False,
        )


def _is_view(session: OracleSession, table: TableId) -> bool:
    binds = {"owner": table.owner, "name": table.name}
    return any("VIEW" in kind for (kind,) in session.fetch_all(_OBJECT_KINDS, binds))
