"""How long do the archived logs stay that are still to be read?

Oracle does not say when a log will be deleted: RMAN, a fast recovery area that is full, or RDS's
retention decide. What it has deleted so far tells: the oldest log that is left shows how old logs
become.

Source: Oracle Database Reference 19c, V$ARCHIVED_LOG (STATUS, DELETED, FIRST_TIME).
"""

from __future__ import annotations

from cdc_core.capture.logs.coverage import read_logs
from cdc_core.config import LogMinerConfig
from cdc_core.model.alerts import LogHeadroom
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession

_AGES = """
SELECT COUNT(CASE WHEN A.STATUS <> 'A' THEN 1 END),
       MIN(CASE WHEN A.STATUS = 'A' THEN A.SEQUENCE# END),
       (SYSDATE - MIN(CASE WHEN A.STATUS = 'A' THEN A.FIRST_TIME END)) * 24,
       (SYSDATE - MAX(CASE WHEN A.STATUS = 'A' AND A.FIRST_CHANGE# <= :scn THEN A.FIRST_TIME END)) * 24
  FROM V$ARCHIVED_LOG A, V$DATABASE D
 WHERE A.STANDBY_DEST = 'NO' AND A.ARCHIVED = 'YES'
   AND A.RESETLOGS_CHANGE# = D.RESETLOGS_CHANGE# AND A.RESETLOGS_TIME = D.RESETLOGS_TIME"""
_FIRST_SEQUENCE = 1


def read_headroom(session: OracleSession, scn: Scn, how: LogMinerConfig) -> LogHeadroom:
    """The headroom of a source that has read the redo up to ``scn``.

    Raises:
        CdcError: V$ARCHIVED_LOG or V$LOG cannot be read.
    """
    [(deleted, sequence, oldest, needed)] = session.fetch_all(_AGES, {"scn": scn})
    logs = {
        (one.thread, one.sequence): one.bytes
        for one in read_logs(session, scn, how)
        if one.state not in ("before", "gone")
    }
    left = LogHeadroom(hours=None, logs=len(logs), bytes=sum(logs.values()))
    is_deleting = bool(deleted) or (sequence is not None and sequence > _FIRST_SEQUENCE)
    if how.archive_hours is not None:
        is_deleting, oldest = True, min(float(oldest or 0), how.archive_hours)
    if not is_deleting or oldest is None:
        return left
    hours = 0.0 if needed is None else max(0.0, float(oldest) - float(needed))
    return LogHeadroom(hours=hours, logs=left.logs, bytes=left.bytes)
