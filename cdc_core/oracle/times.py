"""When, in UTC, was the database at an SCN?

Oracle maps SCNs to times with a grain of about three seconds, in the time zone of the database's
host, and for some days back only. So a time is for people who look for a window; nothing is ever
decided by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cdc_core.errors import OracleError, SnapshotTooOldError
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession

_NOW = "SELECT SYS_EXTRACT_UTC(SYSTIMESTAMP), CAST(SYSTIMESTAMP AS TIMESTAMP) FROM DUAL"
_TIME = "SELECT SCN_TO_TIMESTAMP(:scn) FROM DUAL"
_UNMAPPED = frozenset({"ORA-08180", "ORA-08181"})
_ZONE_GRAIN = timedelta(minutes=15)


def clock_of(session: OracleSession) -> datetime:
    """The database host's time, in UTC: lags are measured by it, whatever the clock here says."""
    now: datetime = session.fetch_all(_NOW)[0][0]
    return now.replace(tzinfo=UTC)


def times_of(session: OracleSession, scns: Sequence[Scn]) -> list[datetime]:
    """The times of SCNs in ascending order, none before the one of a lower SCN and none in the
    future.

    An SCN that Oracle maps to no time any more has that of the next one that it maps, the last one
    the present.
    """
    [(now, local)] = session.fetch_all(_NOW)
    offset = round((local - now) / _ZONE_GRAIN) * _ZONE_GRAIN
    latest = now
    times = []
    for scn in reversed(scns):
        mapped = _mapped(session, scn)
        latest = min(latest, mapped - offset if mapped is not None else latest)
        times.append(latest.replace(tzinfo=UTC))
    return times[::-1]


def _mapped(session: OracleSession, scn: Scn) -> datetime | None:
    try:
        [(found,)] = session.fetch_all(_TIME, {"scn": scn})
    except (OracleError, SnapshotTooOldError) as error:
        if error.facts.get("ora") not in _UNMAPPED:
            raise
        return None
    assert found is None or isinstance(found, datetime)
    return found
