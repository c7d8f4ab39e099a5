"""The order of local times says nothing near the hour that a host's clock repeats, and something everywhere else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from cdc_core.model.scn import SLACK_SECONDS, Scn
from cdc_core.schema import ddl_times as looked_up
from cdc_core.schema.ddl_times import ddl_times, went_back
from tests.oracle.fake_session import Answer, FakeSession

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("at", "now", "offset", "expected"),
    [
        # Berlin's clock went from 3:00 to 2:00: asked before, behind, and days later.
        ("2026-10-25 02:30", "2026-10-25 00:45", 2, 2 * HOUR),  # as Troll's, by two
        ("2026-10-25 02:30", "2026-10-25 02:00", 1, HOUR),
        ("2026-10-25 01:59", "2026-10-28 12:00", 1, HOUR),
        ("2026-10-25 03:05", "2026-10-25 02:06", 1, HOUR),
        ("2026-10-25 08:00", "2026-10-25 12:00", 1, timedelta()),
        ("2026-03-29 02:30", "2026-03-29 12:00", 2, timedelta()),  # forward
        ("2026-10-25 02:30", "2026-10-25 02:00", 5.5, timedelta()),  # India has no summer time
        ("2026-11-01 01:30", "2026-11-01 07:00", -5, HOUR),  # New York
        ("2026-04-05 02:30", "2026-04-04 17:00", 10, HOUR),  # Sydney
        ("2026-04-05 01:45", "2026-04-05 12:00", 10.5, timedelta(minutes=30)),  # Lord Howe
    ],
)
def test_the_clocks_that_may_be_the_hosts_are_asked(
    at: str, now: str, offset: float, expected: timedelta
) -> None:
    moments = datetime.fromisoformat(at), datetime.fromisoformat(now)
    assert went_back(*moments, timedelta(hours=offset)) == expected


@pytest.mark.parametrize(("month", "repeated"), [(6, timedelta()), (10, HOUR)])
def test_what_nobody_can_tell_lies_between_before_and_behind(
    month: int, repeated: timedelta
) -> None:
    at = datetime(2026, month, 25, 1, 30, 5, 7)
    local: dict[str, Answer] = {
        "SYSTIMESTAMP": [(datetime(2026, month, 25, 12), datetime(2026, month, 25, 13), at)]
    }
    times = ddl_times(FakeSession(local), Scn(7))
    slack = timedelta(seconds=SLACK_SECONDS) + repeated
    whole = at.replace(microsecond=0)
    assert (times.before, times.behind, times.repeated) == (whole - slack, whole + slack, repeated)


def test_the_zones_that_are_looked_at_go_back_whenever_some_zone_does() -> None:
    """By how much, from which offset, and on which day, over a year and a half."""
    days = [datetime(2025, 6, 1, tzinfo=UTC) + timedelta(days=day) for day in range(550)]

    def steps(zones: Iterable[ZoneInfo]) -> set[tuple[datetime, timedelta, timedelta]]:
        found = set()
        for zone in zones:
            offsets = [day.astimezone(zone).utcoffset() or timedelta() for day in days]
            pairs = zip(days, offsets, offsets[1:], strict=False)
            found |= {(day, before, after) for day, before, after in pairs if after < before}
        return found

    looked_at = looked_up._every_zone()
    assert len(looked_at) < len(available_timezones())
    assert steps(looked_at) == steps(map(ZoneInfo, available_timezones()))
    assert steps(looked_at)
