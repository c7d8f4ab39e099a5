"""What happens at the airport, in which order, and in which transactions?

Pure: flights and weather in, batches out, the same in every run of the same plan. One batch is one
transaction of the airport's live system; batch numbers let it go on where it stood.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from random import Random

from pipelines.demo.flights import Flight, WeatherReport

HOUR = timedelta(hours=1)
SCHEDULED_BEFORE = timedelta(hours=3)
PROVISIONAL_SHIFT = timedelta(minutes=12, seconds=30)
"""A flight to be re-timed is first in a provisional slot. The half minute keeps it apart from every
real key."""

BATCH_SIZES = (1, 1, 1, 2, 3, 5, 8, 13, 30, 80, 150)
AUDIT_AGE_DAYS = 3
AUDIT_FROM_HOUR, AUDIT_HOURS = 7, 9


class Kind(IntEnum):
    """What happened, in the order in which it can happen to one flight."""

    SCHEDULED = 1
    RETIMED = 2
    REPLANNED = 3
    DEPARTED = 4
    ENDED = 5
    CANCELLED = 6


@dataclass(frozen=True, slots=True)
class FlightEvent:
    """Something happened to a flight at ``at`` (UTC)."""

    at: datetime
    kind: Kind
    flight: Flight


@dataclass(frozen=True, slots=True)
class WeatherEvent:
    """The weather of one airport was observed."""

    at: datetime
    report: WeatherReport


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """The totals of what ended since the last one: minutes in the air per plane, arrivals per
    airport, and per airline the flights flown and their average delay since the live system began,
    to 38 digits."""

    at: datetime
    planes: tuple[tuple[str, int], ...]
    airports: tuple[tuple[str, int], ...]
    airlines: tuple[tuple[str, int, Decimal | None], ...]


Event = FlightEvent | WeatherEvent | Bookkeeping


class Detour(IntEnum):
    """How a transaction comes to its commit."""

    STRAIGHT = 0
    ROLLED_BACK_FIRST = 1
    """All is done, rolled back, and done again."""
    SAVEPOINT = 2
    """In the middle something wrong is done and undone by ROLLBACK TO SAVEPOINT."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One transaction; ``number`` counts from 1, ``at`` is the moment of its last event."""

    number: int
    at: datetime
    detour: Detour
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """A transaction that stays open for hours: one flight of some days ago is signed off at each
    step's moment.

    ``abandoned`` audits are rolled back in the end.
    """

    number: int
    steps: tuple[tuple[datetime, Flight], ...]
    abandoned: bool

    @property
    def ends(self) -> datetime:
        """When it commits or is given up (UTC)."""
        return self.steps[-1][0] + HOUR


def is_retimed(flight: Flight) -> bool:
    """Is the flight first in a provisional slot, so that its key changes?"""
    return flight.chance % 50 == 0


def is_replanned(flight: Flight) -> bool:
    """Is the flight deleted and inserted again under the same key, with its plane?"""
    return flight.chance % 50 == 1 and flight.tailnum is not None


def provisional(flight: Flight) -> datetime:
    """The provisional departure of a re-timed flight."""
    return flight.sched_dep + PROVISIONAL_SHIFT


def flight_events(flights: Iterable[Flight]) -> Iterator[FlightEvent]:
    """All events of flights, in order of time. Flights come by scheduled time; few are held at
    once."""
    waiting: list[tuple[datetime, int, int, FlightEvent]] = []
    for place, flight in enumerate(flights):
        begins = flight.scheduled - SCHEDULED_BEFORE
        while waiting and waiting[0][0] < begins:
            yield heapq.heappop(waiting)[-1]
        for event in _events_of(flight, begins):
            heapq.heappush(waiting, (event.at, event.kind, place, event))
    while waiting:
        yield heapq.heappop(waiting)[-1]


def _events_of(flight: Flight, begins: datetime) -> Iterator[FlightEvent]:
    yield FlightEvent(begins, Kind.SCHEDULED, flight)
    if is_retimed(flight):
        yield FlightEvent(begins + timedelta(minutes=20), Kind.RETIMED, flight)
    if is_replanned(flight):
        yield FlightEvent(begins + timedelta(minutes=45), Kind.REPLANNED, flight)
    if flight.departed is None or flight.ended is None:
        yield FlightEvent(flight.scheduled + timedelta(minutes=30), Kind.CANCELLED, flight)
        return
    yield FlightEvent(flight.departed, Kind.DEPARTED, flight)
    yield FlightEvent(flight.ended, Kind.ENDED, flight)


def all_events(flights: Iterable[Flight], weather: Sequence[WeatherReport]) -> Iterator[Event]:
    """Flights' events, weather reports and the bookkeeping of every hour, in order of time."""
    reports: Iterator[Event] = (WeatherEvent(report.observed, report) for report in weather)
    happened: Iterator[Event] = flight_events(flights)
    merged = heapq.merge(happened, reports, key=lambda event: event.at)
    books = _Books()
    due: datetime | None = None
    for event in merged:
        due = due or event.at + HOUR
        while event.at >= due:
            if books.has_news:
                yield books.close(due)
            due += HOUR
        books.enter(event)
        yield event
    if books.has_news and due is not None:
        yield books.close(due)


@dataclass(slots=True)
class _Books:
    """Sums up what ended, between one bookkeeping and the next."""

    minutes: Counter[str] = field(default_factory=Counter)
    arrivals: Counter[str] = field(default_factory=Counter)
    flown: Counter[str] = field(default_factory=Counter)
    delays: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    carriers: set[str] = field(default_factory=set)

    @property
    def has_news(self) -> bool:
        return bool(self.carriers)

    def enter(self, event: Event) -> None:
        if not (isinstance(event, FlightEvent) and event.kind is Kind.ENDED):
            return
        flight = event.flight
        self.carriers.add(flight.carrier)
        self.flown[flight.carrier] += 1
        if flight.tailnum is not None and flight.air_time is not None:
            self.minutes[flight.tailnum] += flight.air_time
        if flight.arr_delay is not None:
            self.arrivals[flight.dest] += 1
            delay = self.delays[flight.carrier]
            delay[0] += flight.arr_delay
            delay[1] += 1

    def close(self, at: datetime) -> Bookkeeping:
        airlines = []
        for carrier in sorted(self.carriers):
            total, count = self.delays[carrier]
            average = _quotient(total, count) if count else None
            airlines.append((carrier, self.flown[carrier], average))
        made = Bookkeeping(
            at,
            tuple(sorted(self.minutes.items())),
            tuple(sorted(self.arrivals.items())),
            tuple(airlines),
        )
        self.minutes.clear()
        self.arrivals.clear()
        self.carriers.clear()
        return made


def _quotient(total: int, count: int) -> Decimal:
    """``total / count`` to 30 places, computed in whole numbers."""
    scaled, rest = divmod(abs(total) * 10**30, count)
    digits = tuple(map(int, str(scaled + (2 * rest >= count))))
    return Decimal((int(total < 0), digits, -30))


def batches(events: Iterable[Event], *, seed: int) -> Iterator[Batch]:
    """Cut events into transactions of many sizes, some with a detour on their way."""
    random = Random(seed)  # noqa: S311 - a demo's dice, thrown alike in every run
    gathered: list[Event] = []
    size = random.choice(BATCH_SIZES)
    number = 0
    for event in events:
        gathered.append(event)
        if len(gathered) >= size:
            number += 1
            yield _batch(number, gathered, random)
            gathered, size = [], random.choice(BATCH_SIZES)
    if gathered:
        yield _batch(number + 1, gathered, random)


def _batch(number: int, events: list[Event], random: Random) -> Batch:
    chance = random.random()
    detour = Detour.STRAIGHT
    if chance < 0.05:
        detour = Detour.ROLLED_BACK_FIRST
    elif chance < 0.12:
        detour = Detour.SAVEPOINT
    return Batch(number, events[-1].at, detour, tuple(events))


def audits(flights: Sequence[Flight], first_day: datetime, days: int) -> list[Audit]:
    """One audit a day: each signs off one flight per hour, of those that flew three days before.

    Nobody else changes these rows any more, so an audit never waits for a lock, and none waits for
    it.
    """
    flown: dict[datetime, list[Flight]] = defaultdict(list)
    for flight in flights:
        if flight.arr_delay is not None:
            flown[
                datetime(flight.sched_dep.year, flight.sched_dep.month, flight.sched_dep.day)
            ].append(flight)
    made = []
    for number in range(1, days + 1):
        day = first_day + timedelta(days=number - 1)
        candidates = flown.get(day - timedelta(days=AUDIT_AGE_DAYS), [])
        chosen = sorted(candidates, key=lambda flight: flight.chance)[:AUDIT_HOURS]
        begins = day + AUDIT_FROM_HOUR * HOUR
        steps = tuple((begins + hour * HOUR, flight) for hour, flight in enumerate(chosen))
        if steps:
            made.append(Audit(number, steps, abandoned=number % 4 == 3))
    return made
