"""How does LogMiner learn which redo logs to read, where does it run for that, and which files has
it read?

In CDB$ROOT, and in a database without containers, each file is named (``DBMS_LOGMNR.ADD_LOGFILE``).
Inside a pluggable database that is refused (ORA-65040): there LogMiner finds the logs of a range of
SCNs by itself. Which logs a range needs is proved before both in the same way
(:mod:`cdc_core.capture.logs.coverage`); of a range it is proved afterwards that LogMiner had them.

Source: Oracle Database Utilities 19c, "Using LogMiner in a CDB"; measured on 23ai and on RDS by
others: V$LOG, V$ARCHIVED_LOG, V$THREAD and V$DATABASE show their rows inside a pluggable database,
V$LOGMNR_LOGS has the logs of the range after START_LOGMNR.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from cdc_core.capture.logs.coverage import RedoLog
from cdc_core.config import LogsBy
from cdc_core.errors import LogsNotReadyError, PreflightError
from cdc_core.oracle.session import ROOT, OracleSession

_ADD = (
    "SYS.DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => :log{number}, OPTIONS => SYS.DBMS_LOGMNR.{option});"
)
_STATES = "SELECT STATUS FROM V$LOGMNR_LOGS"
_READ = "SELECT THREAD_ID, THREAD_SQN, LOW_SCN, FILENAME FROM V$LOGMNR_LOGS"
_STATUS_MISSING = 4
_ONLINE_FIRST = ("current", "online", "archived")

Call = tuple[str, dict[str, object]]
"""A call of DBMS_LOGMNR, and its binds."""


@contextmanager
def where_logminer_runs(session: OracleSession, logs_by: LogsBy) -> Iterator[None]:
    """Work in the container of LogMiner for the block.

    Raises:
        PreflightError: The user may not change to CDB$ROOT; or ranges are to be mined where
            LogMiner finds no log by itself.
    """
    if logs_by == "files":
        with session.in_root():
            yield
        return
    if not session.is_cdb or session.container == ROOT:
        raise PreflightError(
            "capture.logs: scn_range needs a connection to a pluggable database",
            hint="Name the service of the tables' pluggable database in oracle.dsn; where there are no containers, "
            "leave capture.logs at files.",
        )
    yield


def naming_calls(logs: Iterable[RedoLog], logs_by: LogsBy) -> list[Call]:
    """The calls that tell LogMiner its logs, before START_LOGMNR; of a range it needs none."""
    if logs_by == "scn_range":
        return []
    calls: list[Call] = []
    for number, log in enumerate(logs):
        # NEW clears the list: one that an ORA-01291 left behind would refuse the same files
        # (ORA-01289).
        option = "ADDFILE" if number else "NEW"
        calls.append((_ADD.format(number=number, option=option), {f"log{number}": log.name}))
    return calls


def refuse_unread_logs(session: OracleSession) -> None:
    """After START_LOGMNR: LogMiner goes on without a log that it misses, and shows fewer rows.

    Raises:
        LogsNotReadyError: It misses one.
    """
    missing = sum(status == _STATUS_MISSING for (status,) in session.fetch_all(_STATES))
    if missing:
        raise LogsNotReadyError(
            "LogMiner misses redo logs of the window",
            hint="The window waits; if that lasts, look for archiver errors in the alert log.",
            logs=missing,
        )


def logs_read(
    session: OracleSession, logs: Sequence[RedoLog], copies: Sequence[RedoLog], logs_by: LogsBy
) -> list[RedoLog]:
    """The copies that LogMiner has read, asked before it is ended: one of each of ``logs``, which
    the range needs.

    ``copies`` are all that were there before. A file of an online log that is shown under an
    unknown name is another member of its group.

    Raises:
        LogsNotReadyError: LogMiner did not have one of the logs.
    """
    if logs_by == "files":
        return list(logs)
    listed = {
        (int(thread), int(sequence), int(first)): str(name)
        for thread, sequence, first, name in session.fetch_all(_READ)
    }
    lacking = [log for log in logs if _identity(log) not in listed]
    if lacking:
        raise LogsNotReadyError(
            "LogMiner did not read all redo logs of the range",
            hint="The window is read again; if that lasts, look for archiver errors in the alert log.",
            logs=", ".join(f"{log.thread}.{log.sequence}" for log in lacking),
        )
    return [_copy(log, listed[_identity(log)], copies) for log in logs]


def _identity(log: RedoLog) -> tuple[int, int, int]:
    """Sequences begin again with RESETLOGS: the first SCN says of which incarnation a log is."""
    return log.thread, log.sequence, log.first_change


def _copy(log: RedoLog, name: str, copies: Sequence[RedoLog]) -> RedoLog:
    own = [one for one in copies if _identity(one) == _identity(log) and one.name]
    named = [one for one in own if one.name == name]
    return min(named or own, key=lambda one: _ONLINE_FIRST.index(one.state))
