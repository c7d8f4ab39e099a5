"""In which database does LogMiner run, and how far has that one come?

In the primary, unless ``capture.standby_dsn`` names a physical standby of it. Then LogMiner runs
there, and which files hold the redo says the standby's V$ARCHIVED_LOG. Everything else is asked of
the primary: open transactions, redo threads, the dictionary, rows. A standby knows none of these:
its V$TRANSACTION shows no transaction of the primary, and its V$THREAD.LAST_REDO_CHANGE# means
nothing.

Source: Oracle Database Reference 19c, V$THREAD and V$DATABASE (CURRENT_SCN of a standby is the SCN
that it has applied); Oracle Database Utilities 19c, "LogMiner Dictionary Options": where the
database is not open for writing, the dictionary must be a file. ORA-01300 was met with the online
catalog on standbys of 12c and later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cdc_core.capture.logs.coverage import archived_end, read_logs, read_threads
from cdc_core.capture.logs.naming import where_logminer_runs
from cdc_core.capture.logs.positions import resetlogs_change
from cdc_core.config import LogMinerConfig
from cdc_core.errors import ConfigError, PreflightError, RedoUnavailableError
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import OracleDatabase, current_scn
from cdc_core.oracle.session import OracleSession

_ROLE = "SELECT DATABASE_ROLE, OPEN_MODE FROM V$DATABASE"
_STANDBY = "PHYSICAL STANDBY"
_OPEN_MODES = ("READ ONLY", "READ ONLY WITH APPLY")
_ROLES_HINT = (
    "After a switchover exchange oracle.dsn and capture.standby_dsn, or name services that follow the roles; where the standby was "
    "activated, start the source over."
)


@contextmanager
def miner_of(
    session: OracleSession, database: OracleDatabase, how: LogMinerConfig
) -> Iterator[OracleSession]:
    """The session in which LogMiner runs, for the block: the given one of the primary, or a new one
    of the standby.

    Raises:
        PreflightError: The standby is none, or not open read only.
        ConfigError: It is another database's.
        RedoUnavailableError: It is of another incarnation than the primary.
    """
    if how.standby_dsn is None:
        yield session
        return
    with database.beside(how.standby_dsn).new_session() as miner:
        check_standby(session, miner)
        yield miner


def check_same(session: OracleSession, miner: OracleSession) -> None:
    """After a pass: are both still what they were before it? The errors of :func:`miner_of`."""
    if miner is not session:
        check_standby(session, miner)


def check_standby(session: OracleSession, miner: OracleSession) -> None:
    """Are these a primary and a standby of it, as both say now? The errors of :func:`miner_of`."""
    [(role, open_mode)] = session.fetch_all(_ROLE)
    if role != "PRIMARY":
        raise PreflightError(
            "oracle.dsn does not lead to a primary database",
            hint=_ROLES_HINT,
            role=role,
            open_mode=open_mode,
        )
    [(role, open_mode)] = miner.fetch_all(_ROLE)
    if role != _STANDBY or open_mode not in _OPEN_MODES:
        raise PreflightError(
            "capture.standby_dsn does not lead to a physical standby that is open read only",
            hint=_ROLES_HINT,
            role=role,
            open_mode=open_mode,
        )
    if miner.dbid != session.dbid:
        raise ConfigError(
            "capture.standby_dsn names a standby of another database",
            hint="Name a physical standby of the database under oracle.dsn: both have one DBID.",
            expected=session.dbid,
            current=miner.dbid,
        )
    if session.is_cdb and miner.container != session.container:
        raise ConfigError(
            "capture.standby_dsn leads to another container than oracle.dsn",
            hint="Name the same pluggable database's service on the standby.",
            expected=session.container,
            current=miner.container,
        )
    expected, current = resetlogs_change(session), resetlogs_change(miner)
    if current != expected:
        raise RedoUnavailableError(
            "the standby belongs to another incarnation than the primary (RESETLOGS)",
            hint="Have it reinstated, or leave capture.standby_dsn out, and LogMiner runs in the primary.",
            expected=expected,
            current=current,
        )


@contextmanager
def where_both_run(
    session: OracleSession, miner: OracleSession, how: LogMinerConfig
) -> Iterator[None]:
    """Work where LogMiner runs, in both databases where there are two."""
    with ExitStack() as stack:
        stack.enter_context(where_logminer_runs(session, how.logs))
        if miner is not session:
            stack.enter_context(where_logminer_runs(miner, how.logs))
        yield


def readable_end(
    session: OracleSession, miner: OracleSession, read_from: Scn, how: LogMinerConfig
) -> Scn | None:
    """The last SCN up to which LogMiner can read where archived logs alone are read: archived in
    every thread that is written and, on a standby, applied. None if a thread has no archived
    log."""
    # Applied first: what is archived meanwhile counts the next time.
    applied = None if miner is session else current_scn(miner)
    end = archived_end(read_logs(miner, read_from, how), read_threads(session))
    if end is None or applied is None:
        return end
    return Scn(min(end, applied))
