"""At which SCNs do a snapshot, its first window, and the newest window stand?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cdc_core.capture.logs.coverage import (
    RedoState,
    log_starts,
    read_redo_state,
    read_redo_threads,
)
from cdc_core.change_reader import Start
from cdc_core.config import CloseAt
from cdc_core.errors import LogsNotReadyError, TransientError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary_queries import tables_condition

_INCARNATION = "SELECT RESETLOGS_CHANGE# FROM V$DATABASE"
_TRANSACTIONS = "SELECT RAWTOHEX(XID), START_SCN FROM {view} WHERE START_SCN > 1 OR USED_UREC > 0"
"""0 and 1 stand for a START_SCN that is not assigned yet. A transaction without undo records has
changed nothing: where it has no START_SCN, its changes come later than the look.
Source: Oracle Database Reference 19c, V$TRANSACTION."""
_RECENT_DDL = """
SELECT COUNT(*) FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND {tables} AND LAST_DDL_TIME >= CAST(SCN_TO_TIMESTAMP(:scn) AS DATE)"""

ATTEMPTS = 30
"""How often a passing state of the database is looked at again, up to a second apart."""


def read_start(
    session: OracleSession,
    *,
    tables: Sequence[TableId] = (),
    sleep: Callable[[float], None] = time.sleep,
) -> Start:
    """Fix the snapshot SCN and how far back the first window must read.

    The order of the reads matters: an SCN, then the oldest open transaction, then the snapshot SCN.
    A transaction that is open at the last one was in the view, or began after the first one.

    Args:
        tables: If given, the snapshot SCN is taken later than their last DDL by the clock, since
            Oracle maps SCNs to times coarsely and refuses to look back across a DDL (ORA-01466).

    Raises:
        TransientError: Oracle does not say where an open transaction began, or DDL goes on and on.
    """
    database = read_redo_threads(session)
    before = database.current_scn
    oldest = _oldest_open(session, sleep, instances=len(database.written))
    snapshot = _after_ddl(session, tables, sleep)
    low = min(before, oldest if oldest is not None else before) - 1
    return Start(
        snapshot_scn=snapshot,
        mining_low=Scn(low),
        resetlogs_change=database.resetlogs_change,
        database_name=session.database_name,
        dbid=session.dbid,
        container_dbid=session.container_dbid,
    )


def upper_bound(session: OracleSession, close_at: CloseAt) -> Scn:
    """The highest SCN at which a window may be closed now; see :func:`bound_of`."""
    return bound_of(read_redo_state(session), close_at)


def bound_of(state: RedoState, close_at: CloseAt) -> Scn:
    """The highest SCN at which a window may be closed. Pure.

    ``completed_logs``: the last SCN below the end of the newest switched log of every open thread,
    and below the beginning of every log that is written: all redo up to there is in logs that do
    not change any more. ``online``: one less than the lowest LAST_REDO_CHANGE#, up to which redo is
    on disk in every open thread (LogMiner reads one SCN further than it is asked to); redo of open
    transactions that enters the log later is read with a later window.

    Raises:
        LogsNotReadyError: No thread is open.
    """
    current = state.database.current_scn
    if close_at == "completed_logs":
        starts = log_starts(state).values()
        ends = [end for one in starts for end in (one.first_change, one.switched_change) if end]
        return Scn(min(current, min(ends) - 1))
    written = min((one.last_redo_change for one in state.database.written), default=0)
    if not written:
        raise LogsNotReadyError(
            "no redo thread of the database is open",
            hint="Capture continues as soon as the database is open.",
        )
    return Scn(min(current, written - 1))


def resetlogs_change(session: OracleSession) -> int:
    """The SCN of the last RESETLOGS: names the incarnation."""
    return int(session.fetch_all(_INCARNATION)[0][0])


def _oldest_open(
    session: OracleSession, sleep: Callable[[float], None], *, instances: int
) -> Scn | None:
    # V$TRANSACTION shows this instance only; in a cluster the others' transactions count as well.
    view = "GV$TRANSACTION" if instances > 1 else "V$TRANSACTION"
    pending: set[str] | None = None
    for attempt in range(ATTEMPTS):
        rows = session.fetch_all(_TRANSACTIONS.format(view=view))
        unknown = {str(xid) for xid, scn in rows if scn <= 1}
        # Those that the first look did not show began after it, so behind the SCN that was read
        # before it.
        pending = unknown if pending is None else pending & unknown
        if not pending:
            return min((Scn(scn) for _xid, scn in rows if scn > 1), default=None)
        sleep(min(1, 0.05 * 2**attempt))
    raise TransientError(
        "an open transaction has no start SCN yet",
        hint="Try again; V$TRANSACTION shows which session it is (START_SCN = 0).",
        xids=", ".join(sorted(pending or ())),
    )


def _after_ddl(
    session: OracleSession, tables: Sequence[TableId], sleep: Callable[[float], None]
) -> Scn:
    for _attempt in range(ATTEMPTS):
        scn = current_scn(session)
        if not tables:
            return scn
        condition, binds = tables_condition(tables, "OWNER", "OBJECT_NAME")
        recent = session.fetch_all(_RECENT_DDL.format(tables=condition), {**binds, "scn": scn})
        if not recent[0][0]:
            return scn
        sleep(1)
    raise TransientError(
        "the captured tables were altered repeatedly",
        hint="Start the snapshot when their DDL has ended.",
    )
