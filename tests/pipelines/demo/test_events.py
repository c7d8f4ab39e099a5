"""What happens at the airport: the true order, and the same in every run."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from pipelines.demo.events import (
    AUDIT_AGE_DAYS,
    Bookkeeping,
    Detour,
    Event,
    FlightEvent,
    Kind,
    WeatherEvent,
    all_events,
    audits,
    batches,
    is_retimed,
)
from pipelines.demo.flights import Flight, read_flights, read_weather
from pipelines.demo.workload import YOUNG, Plan

FIRST, LAST = date(2013, 2, 1), date(2013, 2, 3)


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return read_flights(FIRST, LAST)


@pytest.fixture(scope="module")
def events(flights: list[Flight]) -> list[Event]:
    begins = datetime(2013, 2, 1, 5)
    weather = [
        report
        for report in read_weather()
        if begins <= report.observed < begins + timedelta(days=3)
    ]
    return list(all_events(flights, weather))


def test_events_come_in_order_of_time(events: list[Event]) -> None:
    moments = [event.at for event in events]
    assert moments == sorted(moments)


def test_every_flight_takes_a_legal_way(events: list[Event], flights: list[Flight]) -> None:
    ways: dict[object, list[Kind]] = defaultdict(list)
    for event in events:
        if isinstance(event, FlightEvent):
            ways[event.flight.key].append(event.kind)
    assert len(ways) == len(flights)
    for flight in flights:
        way = ways[flight.key]
        assert way == sorted(way)
        assert way[0] is Kind.SCHEDULED
        assert way[-1] is (Kind.CANCELLED if flight.departed is None else Kind.ENDED)
        assert (Kind.RETIMED in way) is is_retimed(flight)
    counts = Counter(kind for way in ways.values() for kind in way)
    assert set(counts) == set(Kind)


def test_bookkeeping_adds_up_to_what_was_flown(events: list[Event], flights: list[Flight]) -> None:
    minutes: Counter[str] = Counter()
    arrivals = 0
    for event in events:
        if isinstance(event, Bookkeeping):
            minutes.update(dict(event.planes))
            arrivals += sum(count for _, count in event.airports)
    assert sum(minutes.values()) == sum(
        flight.air_time or 0 for flight in flights if flight.tailnum
    )
    assert arrivals == sum(flight.arr_delay is not None for flight in flights)


def test_averages_are_exact_to_thirty_places(events: list[Event]) -> None:
    averages = [
        average
        for event in events
        if isinstance(event, Bookkeeping)
        for _, _, average in event.airlines
        if average is not None
    ]
    assert any(average.as_tuple().exponent == -30 for average in averages)
    assert all(abs(average) < 2000 for average in averages)
    assert any(average < 0 for average in averages)
    assert isinstance(averages[0], Decimal)


def test_batches_are_the_same_in_every_run_and_of_many_sizes(events: list[Event]) -> None:
    made = list(batches(events, seed=7))
    assert made == list(batches(events, seed=7))
    assert made != list(batches(events, seed=8))
    assert [event for batch in made for event in batch.events] == events
    assert [batch.number for batch in made] == list(range(1, len(made) + 1))
    assert len({len(batch.events) for batch in made}) >= 8
    assert {batch.detour for batch in made} == set(Detour)


def test_weather_is_observed_at_three_airports_every_hour(events: list[Event]) -> None:
    assert sum(isinstance(event, WeatherEvent) for event in events) == 3 * 24 * 3


def test_audits_sign_off_landed_flights_of_days_ago() -> None:
    known = read_flights(date(2013, 1, 29), LAST)
    made = audits(known, datetime(2013, 2, 1), 3)
    assert [audit.number for audit in made] == [1, 2, 3]
    assert [audit.abandoned for audit in made] == [False, False, True]
    for audit in made:
        moments = [moment for moment, _ in audit.steps]
        assert moments == sorted(moments)
        assert audit.ends - moments[0] >= timedelta(hours=9)
        for moment, flight in audit.steps:
            assert flight.arr_delay is not None
            assert moment - flight.scheduled > timedelta(days=AUDIT_AGE_DAYS - 1)


def test_an_audit_holds_no_flight_that_the_daily_work_may_touch_by_mistake() -> None:
    """One thread works on both sessions: had one to wait for the other's locks, it would wait for ever."""
    for audit in audits(
        read_flights(date(2013, 2, 1), date(2013, 3, 31)), datetime(2013, 2, 4), 56
    ):
        begins = audit.steps[0][0]
        assert all(flight.sched_dep <= begins - YOUNG for _, flight in audit.steps)


def test_the_column_is_added_while_no_audit_is_open() -> None:
    for scale in ("day", "month", "year"):
        plan = Plan.of_scale(scale)
        at = plan.alters_at
        assert 16 < at.hour < 24
        assert plan.begins < at < plan.begins + timedelta(days=plan.days)
