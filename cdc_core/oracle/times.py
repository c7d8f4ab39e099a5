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

_NOW = "SELECT SYS_EXTRACT_UTC(SYSTIMESTAMP) FROM DUAL"
_TIMES = "SELECT SYS_EXTRACT_UTC(SYSTIMESTAMP), CAST(SYSTIMESTAMP AS TIMESTAMP){mapped} FROM DUAL"
_AT_ONCE = 100
"""So many times are asked for with one query."""
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
    now, local, found = _moments(session, scns[:_AT_ONCE])
    for at in range(_AT_ONCE, len(scns), _AT_ONCE):
        now, local, more = _moments(session, scns[at : at + _AT_ONCE])
        found += more
    offset = round((local - now) / _ZONE_GRAIN) * _ZONE_GRAIN
    latest = now
    times = []
    for mapped in reversed(found):
        latest = min(latest, mapped - offset if mapped is not None else latest)
        times.append(latest.replace(tzinfo=UTC))
    return times[::-1]


def _moments(
    session: OracleSession, scns: Sequence[Scn]
) -> tuple[datetime, datetime, list[datetime | None]]:
    """The present, in UTC and at the host, and the times of SCNs, None for one that has none: with
    one query, if all have one."""
    binds = {f"at{number}": scn for number, scn in enumerate(scns)}
    mapped = "".join(f", SCN_TO_TIMESTAMP(:{name})" for name in binds)
    try:
        [(now, local, *found)] = session.fetch_all(_TIMES.format(mapped=mapped), binds)
    except (OracleError, SnapshotTooOldError) as error:
        if error.facts.get("ora") not in _UNMAPPED:
            raise
        now, local, _ = _moments(session, ())
        each = [_moments(session, [scn])[2] for scn in scns] if len(scns) > 1 else [[None]]
        found = [one for its in each for one in its]
    return now, local, found
