"""Did a DDL of a table come within seconds after an SCN, where Oracle's times cannot tell?

Oracle maps SCNs to times with a grain of about three seconds, and dates DDL by the second. Whether the last DDL of a table is the
one that was met in the redo, or one right behind it, is read from the redo itself: the few seconds after the SCN.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from cdc_core.capture.log_naming import where_logminer_runs
from cdc_core.capture.logs import cover, read_logs, read_threads
from cdc_core.capture.mining import mining
from cdc_core.capture.positions import upper_bound
from cdc_core.config import LogsBy
from cdc_core.errors import CdcError
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
    logs_by: LogsBy,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Does the redo of the seconds after ``scn``, up to the present at most, hold a DDL of the table that a user sent?

    Raises:
        LogsNotReadyError: That redo is not on disk yet, after some waiting.
    """
    high = _soon_after(session, scn)
    if high <= scn:
        return False
    with where_logminer_runs(session, logs_by):
        for _attempt in range(_ATTEMPTS):
            if upper_bound(session, "online") >= high:
                break
            sleep(_WAIT_SECONDS)
        logs = cover(read_logs(session, scn), read_threads(session), scn, high)
        with mining(session, logs, scn, high, logs_by=logs_by):
            binds = {
                "low": scn,
                "high": high,
                "ddl": int(Operation.DDL),
                "owner": table.owner,
                "name": table.name,
            }
            [(count,)] = session.fetch_all(_DDL, binds)
    return int(count) > 0


def _soon_after(session: OracleSession, scn: Scn) -> Scn:
    """The SCN twice the slack after another one, since both times may be off; the present if that has not come yet."""
    now = current_scn(session)
    try:
        [(soon,)] = session.fetch_all(_SOON, {"scn": scn, "seconds": 2 * SLACK_SECONDS})
    except CdcError as error:
        if error.facts.get("ora") not in _UNMAPPED:
            raise
        return now
    return now if soon is None else Scn(min(int(soon), now))
