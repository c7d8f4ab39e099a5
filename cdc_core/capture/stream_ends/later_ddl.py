"""Did a DDL of a table come within seconds after an SCN, where Oracle's times cannot tell?

Oracle maps SCNs to times with a grain of about three seconds, and dates DDL by the second. Whether
the last DDL of a table is the one that was met in the redo, or one right behind it, is read from
the redo itself: the few seconds after the SCN.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from cdc_core.capture.logs.coverage import cover, read_logs, read_threads
from cdc_core.capture.logs.positions import upper_bound
from cdc_core.capture.logs.standby import readable_end, where_both_run
from cdc_core.capture.passes.mining import mining
from cdc_core.config import LogMinerConfig
from cdc_core.errors import CdcError, LogsNotReadyError
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.scn import SLACK_SECONDS, Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession

_SOON = """
SELECT TIMESTAMP_TO_SCN(SCN_TO_TIMESTAMP(:scn) + NUMTODSINTERVAL(:seconds, 'SECOND')) FROM DUAL"""
_DDL = """
SELECT COUNT(*) FROM V$LOGMNR_CONTENTS
 WHERE SCN > :low AND SCN <= :high AND OPERATION_CODE = :ddl AND SEG_OWNER = :owner AND TABLE_NAME = :name
   AND (INFO IS NULL OR INFO NOT LIKE 'INTERNAL DDL%')"""
_UNMAPPED = frozenset({"ORA-08180", "ORA-08181", "ORA-08186"})
_ATTEMPTS = 20
_WAIT_SECONDS = 0.5


def is_altered_soon_after(
    session: OracleSession,
    table: TableId,
    scn: Scn,
    *,
    how: LogMinerConfig,
    miner: OracleSession | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Does the redo of the seconds after ``scn``, up to the present at most, hold a DDL of the
    table that a user sent?

    Args:
        miner: Where LogMiner runs, if that is a standby: it has that redo once the primary has
            switched its logs.

    Raises:
        LogsNotReadyError: That redo is not there yet, after some waiting.
    """
    high = _soon_after(session, scn)
    if high <= scn:
        return False
    miner = miner or session
    on_standby = miner is not session
    with where_both_run(session, miner, how):
        if on_standby:
            _refuse_unreadable(session, miner, table, scn, high, how)
        else:
            for _attempt in range(_ATTEMPTS):
                if upper_bound(session, "online") >= high:
                    break
                sleep(_WAIT_SECONDS)
        # Of the primary all logs may be read, and the present dictionary names its tables.
        by = how if on_standby else LogMinerConfig(logs=how.logs)
        copies = read_logs(miner, scn, how) if on_standby else read_logs(session, scn)
        logs = cover(copies, read_threads(session), scn, high)
        with mining(miner, logs, scn, high, how=by):
            binds = {
                "low": scn,
                "high": high,
                "ddl": int(Operation.DDL),
                "owner": table.owner,
                "name": table.name,
            }
            [(count,)] = miner.fetch_all(_DDL, binds)
    return int(count) > 0


def _refuse_unreadable(
    session: OracleSession,
    miner: OracleSession,
    table: TableId,
    scn: Scn,
    high: Scn,
    how: LogMinerConfig,
) -> None:
    end = readable_end(session, miner, scn, how)
    if end is None or end < high:
        raise LogsNotReadyError(
            "the window holds a DDL, and the standby does not have the redo of the seconds after it yet",
            hint="The window waits until the primary has switched its logs and the standby has applied them; ARCHIVE_LAG_TARGET bounds that.",
            table=table,
            scn=high,
        )


def _soon_after(session: OracleSession, scn: Scn) -> Scn:
    """The SCN twice the slack after another one, since both times may be off; the present if that
    has not come yet."""
    now = current_scn(session)
    try:
        [(soon,)] = session.fetch_all(_SOON, {"scn": scn, "seconds": 2 * SLACK_SECONDS})
    except CdcError as error:
        if error.facts.get("ora") not in _UNMAPPED:
            raise
        return now
    return now if soon is None else Scn(min(int(soon), now))
