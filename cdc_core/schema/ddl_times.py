"""Did a DDL come before an SCN, or behind it?

LAST_DDL_TIME, and the time that Oracle maps an SCN to, are local times of the database's host:
exact to the second, and to some seconds. In autumn the host's clock goes back, and an hour of local
times comes twice. There, and nowhere else, the order of two times within an hour says nothing, so
that a DDL counts as one that may have come before, or behind. Oracle tells the host's present
offset from UTC and not its zone; every zone that has this offset now may be the one.

Source: Oracle Database Reference 19c, ALL_OBJECTS; SQL Language Reference 19c, SCN_TO_TIMESTAMP,
SYSTIMESTAMP ("in the time zone of the operating system").
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, available_timezones

from cdc_core.errors import SnapshotTooOldError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import SLACK_SECONDS, Scn
from cdc_core.schema.dictionary_queries import Queries, rows_about

_TIMES = "SELECT SYS_EXTRACT_UTC(SYSTIMESTAMP), CAST(SYSTIMESTAMP AS TIMESTAMP), {times} FROM DUAL"
_LAST_DDL = """
SELECT OWNER, OBJECT_NAME, LAST_DDL_TIME FROM ALL_OBJECTS WHERE OBJECT_TYPE = 'TABLE' AND {tables}"""
_OBJECTS = """
SELECT OBJECT_TYPE, SUBOBJECT_NAME, OBJECT_ID, DATA_OBJECT_ID, LAST_DDL_TIME, SYSDATE FROM ALL_OBJECTS
 WHERE OWNER = :owner AND OBJECT_NAME = :name AND OBJECT_TYPE LIKE 'TABLE%' ORDER BY OBJECT_ID"""
_SETTLED = 2.0
_OFFSET_GRAIN = timedelta(minutes=15)
_NEAR = timedelta(hours=3)
"""No further from a time is the night whose repeated hour it may lie in, or next to."""


@dataclass(frozen=True, slots=True)
class DdlTimes:
    """What LAST_DDL_TIME says of an SCN: up to ``before`` the DDL came before it, above ``behind``
    it came behind it, and between the two nobody can tell. ``repeated`` is by how much the clock
    may have gone back near it."""

    before: datetime
    behind: datetime
    repeated: timedelta


def ddl_times(session: Queries, scn: Scn) -> DdlTimes:
    """The local times around an SCN.

    Raises:
        SnapshotTooOldError: Oracle maps the SCN to no time, as after some five days.
    """
    return _times(session, scn)[0]


def times_around(session: Queries, low: Scn, high: Scn) -> tuple[DdlTimes | None, DdlTimes | None]:
    """The local times around two SCNs, the lower one first, with one query; None for one that
    Oracle maps to no time."""
    with suppress(SnapshotTooOldError):
        first, last = _times(session, low, high)
        return first, last
    with suppress(SnapshotTooOldError):  # the lower one has none
        return None, ddl_times(session, high)
    return None, None


def _times(session: Queries, *scns: Scn) -> list[DdlTimes]:
    names = [f"scn{number}" for number, _ in enumerate(scns)]
    sql = _TIMES.format(times=", ".join(f"SCN_TO_TIMESTAMP(:{name})" for name in names))
    [(now, local, *found)] = session.fetch_all(sql, dict(zip(names, scns, strict=True)))
    offset = round((local - now) / _OFFSET_GRAIN) * _OFFSET_GRAIN
    return [_around(at, now, offset) for at in found]


def _around(at: datetime, now: datetime, offset: timedelta) -> DdlTimes:
    repeated = went_back(at, now, offset)
    slack = timedelta(seconds=SLACK_SECONDS) + repeated
    whole = at.replace(microsecond=0)
    return DdlTimes(whole - slack, whole + slack, repeated)


@dataclass(frozen=True, slots=True)
class LastDdl:
    """The objects of a table, its own and those of its partitions, and when each was altered."""

    objects: tuple[tuple[object, ...], ...]


def last_ddl(session: Queries, table: TableId) -> LastDdl:
    """What every DDL of the table changes."""
    rows = session.fetch_all(_OBJECTS, {"owner": table.owner, "name": table.name})
    return LastDdl(tuple(tuple(row[:-1]) for row in rows))


def settled_ddl(session: Queries, table: TableId) -> LastDdl:
    """The same when it is so old that a DDL from here on has another time: LAST_DDL_TIME has whole
    seconds."""
    rows = session.fetch_all(_OBJECTS, {"owner": table.owner, "name": table.name})
    age = min((abs((now - last).total_seconds()) for *_, last, now in rows), default=_SETTLED)
    if age < _SETTLED:
        time.sleep(_SETTLED - age)
    return last_ddl(session, table)


def unchanged_since(session: Queries, tables: Sequence[TableId], scn: Scn) -> frozenset[TableId]:
    """The tables whose last DDL came before an SCN; none where Oracle maps it to no time."""
    try:
        before = ddl_times(session, scn).before
    except SnapshotTooOldError:
        return frozenset()
    rows = rows_about(session, _LAST_DDL, tables, name="OBJECT_NAME")
    return frozenset(table for table, last in rows if last <= before)


def went_back(at: datetime, now: datetime, offset: timedelta) -> timedelta:
    """By how much the clock of a host may have gone back near a local time.

    Args:
        at: The local time, some days ago at most.
        now: The present, in UTC.
        offset: What the host's clock is ahead of UTC now.
    """
    near = (at - offset).replace(tzinfo=UTC)
    zones = _zones(now.replace(second=0, microsecond=0, tzinfo=UTC), offset)
    steps = (_offset(near - _NEAR, zone) - _offset(near + _NEAR, zone) for zone in zones)
    return max((timedelta(), *steps))


@lru_cache(maxsize=64)
def _zones(minute: datetime, offset: timedelta) -> tuple[ZoneInfo, ...]:
    """Zones that are so far ahead of UTC in a minute; clocks are put back between two minutes."""
    return tuple(one for one in _every_zone() if _offset(minute, one) == offset)


@cache
def _every_zone() -> tuple[ZoneInfo, ...]:
    return tuple(map(ZoneInfo, _zone_names()))


def _zone_names() -> list[str]:
    """Zones of which each other one has had the clock since 1970, as zone1970.tab of the tz
    database lists them; all zones where that file is missing. There are half as many, and no folder
    is searched for them: a process that reads one window needs a third less CPU (measured)."""
    for folder in TZPATH:
        with suppress(OSError):
            lines = (Path(folder) / "zone1970.tab").read_text(encoding="utf-8").splitlines()
            return [line.split("\t")[2] for line in lines if not line.startswith("#")]
    return sorted(available_timezones())


def _offset(at: datetime, zone: ZoneInfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()
