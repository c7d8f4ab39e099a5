"""How does the airport work on its Oracle database while Redolake looks on?

An ordinary client: it knows nothing of capture. Everything it has done stands in AIRPORT_CLOCK,
changed in the same transactions, so that it goes on exactly where it stood, whatever ended it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import groupby

import oracledb

from cdc_core.errors import OracleError
from pipelines.demo import tables
from pipelines.demo.events import (
    AUDIT_AGE_DAYS,
    Audit,
    Batch,
    Bookkeeping,
    Detour,
    Event,
    FlightEvent,
    Kind,
    WeatherEvent,
    all_events,
    audits,
    batches,
    is_replanned,
    is_retimed,
    provisional,
)
from pipelines.demo.flights import Flight, read_flights, read_weather
from pipelines.demo.tables import Row

FIRST_DAY = date(2013, 1, 1)
LAST_DAY_BEFORE = date(2013, 1, 31)
LOAD_ROWS = 5_000
DELAY_SHOWN_MINUTES = 15
YOUNG = timedelta(days=AUDIT_AGE_DAYS) / 2
"""Flights scheduled less than this ago are in no audit's hands."""
CAUSES = ("late aircraft", "weather", "air traffic control", "crew", "l'avion n'est pas prêt")
_COLUMN_EXISTS = 1430
_NAME_EXISTS = 955

_KEY = "SCHED_DEP = :{} AND CARRIER = :{} AND FLIGHT_NO = :{}"
_RETIME = f"UPDATE FLIGHTS SET SCHED_DEP = :1 WHERE {_KEY.format(2, 3, 4)}"
_DELETE = f"DELETE FROM FLIGHTS WHERE {_KEY.format(1, 2, 3)}"
_DEPART = (
    "UPDATE FLIGHTS SET STATUS = 'departed', DEPARTED = :1, DEP_DELAY = :2, SEAL = :3"
    f" WHERE {_KEY.format(4, 5, 6)}"
)
_END = (
    "UPDATE FLIGHTS SET STATUS = :1, ARRIVED = :2, ARR_DELAY = :3, AIR_TIME = :4, SPEED = :5, FUEL = :6"
    f" WHERE {_KEY.format(7, 8, 9)}"
)
_ANNOTATE = f"UPDATE FLIGHTS SET NOTES = :1 WHERE {_KEY.format(2, 3, 4)}"
_EXPLAIN = f"UPDATE FLIGHTS SET DELAY_CAUSE = :1 WHERE {_KEY.format(2, 3, 4)}"
_AUDIT = f"UPDATE FLIGHTS SET STATUS = 'signed off', NOTES = :1 WHERE {_KEY.format(2, 3, 4)}"
_PLANE = "UPDATE PLANES SET AIR_MINUTES = AIR_MINUTES + :1, LAST_SEEN = :2 WHERE TAILNUM = :3"
_AIRPORT = "UPDATE AIRPORTS SET ARRIVALS = ARRIVALS + :1 WHERE FAA = :2"
_AIRLINE = "UPDATE AIRLINES SET FLIGHTS_FLOWN = :1, DELAY_AVERAGE = :2 WHERE CARRIER = :3"
_CLOCK = "UPDATE AIRPORT_CLOCK SET DONE = :1 WHERE NAME = :2"

_TEXT, _NUMBER = oracledb.DB_TYPE_VARCHAR, oracledb.DB_TYPE_NUMBER
_DATE, _MOMENT = oracledb.DB_TYPE_DATE, oracledb.DB_TYPE_TIMESTAMP
_RAW, _DOUBLE = oracledb.DB_TYPE_RAW, oracledb.DB_TYPE_BINARY_DOUBLE
_KEY_TYPES = (_DATE, _TEXT, _NUMBER)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the live system will do: the days that it works (New York's), and the seed of its
    dice."""

    first_day: date
    last_day: date
    seed: int = 2013

    @classmethod
    def of_scale(cls, scale: str) -> Plan:
        """A day, a month, or the rest of the year after January."""
        first = LAST_DAY_BEFORE + timedelta(days=1)
        last = {"day": first, "month": date(2013, 2, 28), "year": date(2013, 12, 31)}[scale]
        return cls(first, last)

    @property
    def begins(self) -> datetime:
        """Midnight in New York before the first day, in UTC."""
        return datetime(self.first_day.year, self.first_day.month, self.first_day.day, 5)

    @property
    def days(self) -> int:
        """Days that the live system works."""
        return (self.last_day - self.first_day).days + 1

    @property
    def alters_at(self) -> datetime:
        """When FLIGHTS gets its new column (UTC): in the middle, after noon in New York, when no
        audit is open."""
        return self.begins + timedelta(days=self.days // 2, hours=13)


@dataclass(slots=True)
class Progress:
    """What the live system has done, for those who look on: its clock (UTC), transactions, and
    changed rows by table."""

    now: datetime | None = None
    transactions: int = 0
    rolled_back: int = 0
    changes: Counter[str] = field(default_factory=Counter)


Connect = Callable[[], oracledb.Connection]
Pace = Callable[[datetime], None]


def create_tables(connection: oracledb.Connection) -> None:
    """Create what is missing of the tables, each with supplemental logging of all columns."""
    with connection.cursor() as cursor:
        for table in tables.TABLES:
            _tolerating(_NAME_EXISTS, cursor, table.create_sql)
            if table.captured and not _has_log_group(cursor, table.name):
                cursor.execute(f"ALTER TABLE {table.name} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")


def _has_log_group(cursor: oracledb.Cursor, table: str) -> bool:
    cursor.execute(
        "SELECT COUNT(*) FROM USER_LOG_GROUPS WHERE TABLE_NAME = :1 AND LOG_GROUP_TYPE = 'ALL COLUMN LOGGING'",
        [table],
    )
    (count,) = cursor.fetchone()
    return bool(count)


def _tolerating(code: int, cursor: oracledb.Cursor, sql: str) -> None:
    """Run a DDL; it may already have been run."""
    try:
        cursor.execute(sql)
    except oracledb.DatabaseError as error:
        if error.args[0].code != code:
            raise


def load_history(
    connection: oracledb.Connection, plan: Plan, report: Callable[[str, int, int], None]
) -> None:
    """Fill the tables with what was before the live system began, one transaction a table; loaded
    ones are left alone.

    ``report`` is told the table, rows done and rows in all.
    """
    past = read_flights(FIRST_DAY, plan.first_day - timedelta(days=1))
    sources = (
        (tables.AIRLINES, tables.airline_rows()),
        (tables.AIRPORTS, tables.airport_rows()),
        (tables.PLANES, tables.plane_rows()),
        (tables.WEATHER, tables.weather_rows(plan.begins)),
        (tables.FLIGHTS, list(tables.flown_rows(past))),
    )
    for table, rows in sources:
        if clock(connection, f"load {table.name}") == 0:
            _load(connection, table, rows, report)
        report(table.name, len(rows), len(rows))


def _load(
    connection: oracledb.Connection,
    table: tables.DemoTable,
    rows: Sequence[Row],
    report: Callable[[str, int, int], None],
) -> None:
    with connection.cursor() as cursor:
        for start in range(0, len(rows), LOAD_ROWS):
            cursor.setinputsizes(*table.binds)
            cursor.executemany(table.insert_sql, rows[start : start + LOAD_ROWS])
            report(table.name, min(start + LOAD_ROWS, len(rows)), len(rows))
        cursor.execute(tables.CLOCK.insert_sql, [f"load {table.name}", 1])
    connection.commit()


def clock(connection: oracledb.Connection, name: str) -> int:
    """How far a part of the live system has come: 0 where it has not begun."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DONE FROM AIRPORT_CLOCK WHERE NAME = :1", [name])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


class LiveSystem:
    """The airport's own program, on two sessions: one for the daily work, one for the long
    audits."""

    def __init__(self, connect: Connect, plan: Plan, *, pace: Pace | None = None) -> None:
        self.plan = plan
        self.progress = Progress()
        self._connect = connect
        self._pace = pace or (lambda _: None)
        self._known_causes = False

    def run(self, stop: threading.Event | None = None) -> None:
        """Work from where the tables say that it stood to the end of the plan, or until ``stop`` is
        set.

        Raises:
            OracleError: A row that must be there was not: someone else changed the airport's
                tables.
        """
        stop = stop or threading.Event()
        audited = timedelta(days=AUDIT_AGE_DAYS)
        known = read_flights(self.plan.first_day - audited, self.plan.last_day)
        flights = [flight for flight in known if flight.sched_dep.date() >= self.plan.first_day]
        with self._connect() as daily, self._connect() as auditing:
            for name in ("live", "audit"):
                _ensure_clock(daily, name)
            audit = _AuditDesk(auditing, audits(known, *self._audit_days()), self.progress)
            for batch in self._todo(flights, clock(daily, "live")):
                self._pace(batch.at)
                if stop.is_set():
                    return
                audit.work_until(batch.at)
                self._alter_when_due(daily, batch.at)
                self._work(daily, batch)
                self.progress.now = batch.at
            audit.work_until(datetime.max)

    def _audit_days(self) -> tuple[datetime, int]:
        first = self.plan.first_day
        return datetime(first.year, first.month, first.day), self.plan.days

    def _todo(self, flights: Sequence[Flight], done: int) -> Iterator[Batch]:
        ends = self.plan.begins + timedelta(days=self.plan.days)
        weather = [
            report for report in read_weather() if self.plan.begins <= report.observed < ends
        ]
        for batch in batches(all_events(flights, weather), seed=self.plan.seed):
            if batch.number > done:
                yield batch
            else:
                self.progress.now = batch.at

    def _alter_when_due(self, connection: oracledb.Connection, now: datetime) -> None:
        if self._known_causes or now < self.plan.alters_at:
            return
        name, definition = tables.ADDED_COLUMN
        with connection.cursor() as cursor:
            _tolerating(_COLUMN_EXISTS, cursor, f"ALTER TABLE FLIGHTS ADD ({name} {definition})")
        self._known_causes = True

    def _work(self, connection: oracledb.Connection, batch: Batch) -> None:
        with connection.cursor() as cursor:
            if batch.detour is Detour.ROLLED_BACK_FIRST:
                self._do(cursor, batch.events)
                connection.rollback()
                self.progress.rolled_back += 1
            if batch.detour is Detour.SAVEPOINT:
                half = len(batch.events) // 2
                counts = self._do(cursor, batch.events[:half])
                cursor.execute("SAVEPOINT BEFORE_THE_MISTAKE")
                self._make_mistakes(cursor, batch)
                cursor.execute("ROLLBACK TO SAVEPOINT BEFORE_THE_MISTAKE")
                counts += self._do(cursor, batch.events[half:])
            else:
                counts = self._do(cursor, batch.events)
            _run(cursor, _CLOCK, (_NUMBER, _TEXT), [(batch.number, "live")])
        connection.commit()
        self.progress.transactions += 1
        self.progress.changes += counts

    def _make_mistakes(self, cursor: oracledb.Cursor, batch: Batch) -> None:
        """What someone does and takes back: rows deleted, changed and inserted that stay as they
        were.

        Only flights that are younger than those an audit may hold locked: it would never let go of
        them, waiting for us.
        """
        since = batch.at - YOUNG
        cursor.execute(
            "UPDATE FLIGHTS SET DEP_DELAY = 999 WHERE SCHED_DEP > :1 AND CARRIER IN ('AS', 'F9', 'HA')",
            [since],
        )
        cursor.execute(
            "DELETE FROM WEATHER WHERE ORIGIN = 'JFK' AND OBSERVED < DATE '2013-01-01' + 1/4"
        )
        values = ["ZZ", f"Mistake {batch.number}", 0, None]
        cursor.setinputsizes(*tables.AIRLINES.binds)
        cursor.execute(tables.AIRLINES.insert_sql, values)

    def _do(self, cursor: oracledb.Cursor, events: Sequence[Event]) -> Counter[str]:
        """Do events in their order, same kinds together; returns changed rows by table."""
        counts: Counter[str] = Counter()
        of_flights = [event for event in events if isinstance(event, FlightEvent)]
        of_flights.sort(key=lambda event: event.kind)
        for kind, same in groupby(of_flights, key=lambda event: event.kind):
            counts["FLIGHTS"] += self._do_flights(cursor, kind, [event.flight for event in same])
        weather = [
            tables.weather_row(event.report) for event in events if isinstance(event, WeatherEvent)
        ]
        counts["WEATHER"] += _run(cursor, tables.WEATHER.insert_sql, tables.WEATHER.binds, weather)
        for event in events:
            if isinstance(event, Bookkeeping):
                counts += _keep_books(cursor, event)
        return counts

    def _do_flights(self, cursor: oracledb.Cursor, kind: Kind, flights: Sequence[Flight]) -> int:
        insert, binds = tables.FLIGHTS.insert_sql, tables.FLIGHTS.binds
        keys: list[Row] = [flight.key for flight in flights]
        expected = len(flights)
        match kind:
            case Kind.SCHEDULED:
                done = _run(cursor, insert, binds, [_first_row(flight) for flight in flights])
            case Kind.RETIMED:
                moves = [
                    (flight.sched_dep, provisional(flight), *flight.key[1:]) for flight in flights
                ]
                done = _run(cursor, _RETIME, (_DATE, *_KEY_TYPES), moves)
            case Kind.REPLANNED:
                done = _run(cursor, _DELETE, _KEY_TYPES, keys)
                again = [
                    tables.scheduled_row(flight, sched_dep=flight.sched_dep, tailnum=flight.tailnum)
                    for flight in flights
                ]
                done += _run(cursor, insert, binds, again)
                expected *= 2
            case Kind.DEPARTED:
                left = [(*tables.departed_values(flight)[1:], *flight.key) for flight in flights]
                done = _run(cursor, _DEPART, (_MOMENT, _NUMBER, _RAW, *_KEY_TYPES), left)
            case Kind.ENDED:
                done, expected = self._end(cursor, flights)
            case Kind.CANCELLED:
                done = _run(cursor, _DELETE, _KEY_TYPES, keys)
        if done != expected:
            raise OracleError(
                "a flight that must be in the table was not there",
                hint="Has someone else changed the demo's tables? Start over: `redolake demo --fresh`.",
                kind=kind.name,
                expected=expected,
                changed=done,
            )
        return done

    def _end(self, cursor: oracledb.Cursor, flights: Sequence[Flight]) -> tuple[int, int]:
        """Flights that ended: their figures, their notes where these grew, and the cause of the
        delay once there is a column."""
        figures = [
            (tables.status_at_end(flight), *tables.arrived_values(flight)[:-1], *flight.key)
            for flight in flights
        ]
        types = (_TEXT, _MOMENT, _NUMBER, _NUMBER, _DOUBLE, _NUMBER, *_KEY_TYPES)
        notes: list[Row] = [
            (tables.last_notes(flight), *flight.key)
            for flight in flights
            if tables.last_notes(flight) != tables.first_notes(flight)
        ]
        causes: list[Row] = [
            (CAUSES[flight.chance % len(CAUSES)], *flight.key)
            for flight in flights
            if self._known_causes and (flight.arr_delay or 0) > DELAY_SHOWN_MINUTES
        ]
        done = _run(cursor, _END, types, figures)
        done += _run(cursor, _ANNOTATE, (_TEXT, *_KEY_TYPES), notes)
        done += _run(cursor, _EXPLAIN, (_TEXT, *_KEY_TYPES), causes)
        return done, len(figures) + len(notes) + len(causes)


class _AuditDesk:
    """Keeps the long transactions: at any moment at most one is open, on a session of its own."""

    def __init__(
        self, connection: oracledb.Connection, todo: Sequence[Audit], progress: Progress
    ) -> None:
        done = clock(connection, "audit")
        self._connection = connection
        self._todo = [audit for audit in todo if audit.number > done]
        self._steps_done = 0
        self._progress = progress

    def work_until(self, now: datetime) -> None:
        """Do every step that is due; end what is over."""
        while self._todo:
            audit = self._todo[0]
            with self._connection.cursor() as cursor:
                for moment, flight in audit.steps[self._steps_done :]:
                    if moment > now:
                        return
                    self._sign_off(cursor, audit, flight)
                    self._steps_done += 1
                if audit.ends > now:
                    return
                self._finish(cursor, audit)

    def _sign_off(self, cursor: oracledb.Cursor, audit: Audit, flight: Flight) -> None:
        notes = f"Audit {audit.number}: papers of {flight.carrier}{flight.number} in order."
        _run(cursor, _AUDIT, (_TEXT, *_KEY_TYPES), [(notes, *flight.key)])

    def _finish(self, cursor: oracledb.Cursor, audit: Audit) -> None:
        if audit.abandoned:
            self._connection.rollback()
            self._progress.rolled_back += 1
        else:
            self._progress.changes["FLIGHTS"] += len(audit.steps)
        _run(cursor, _CLOCK, (_NUMBER, _TEXT), [(audit.number, "audit")])
        self._connection.commit()
        self._progress.transactions += 1
        self._todo.pop(0)
        self._steps_done = 0


def _keep_books(cursor: oracledb.Cursor, books: Bookkeeping) -> Counter[str]:
    planes: list[Row] = [(minutes, books.at, tailnum) for tailnum, minutes in books.planes]
    airports: list[Row] = [(arrivals, faa) for faa, arrivals in books.airports]
    airlines: list[Row] = [(flown, average, carrier) for carrier, flown, average in books.airlines]
    return Counter(
        {
            "PLANES": _run(cursor, _PLANE, (_NUMBER, _MOMENT, _TEXT), planes),
            "AIRPORTS": _run(cursor, _AIRPORT, (_NUMBER, _TEXT), airports),
            "AIRLINES": _run(cursor, _AIRLINE, (_NUMBER, _NUMBER, _TEXT), airlines),
        }
    )


def _first_row(flight: Flight) -> Row:
    return tables.scheduled_row(
        flight,
        sched_dep=provisional(flight) if is_retimed(flight) else flight.sched_dep,
        tailnum=None if is_replanned(flight) else flight.tailnum,
    )


def _run(
    cursor: oracledb.Cursor, sql: str, types: Sequence[oracledb.DbType], rows: Sequence[Row]
) -> int:
    """Run one statement for many rows; returns how many rows changed."""
    if not rows:
        return 0
    cursor.setinputsizes(*types)
    cursor.executemany(sql, list(rows))
    return int(cursor.rowcount)


def _ensure_clock(connection: oracledb.Connection, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM AIRPORT_CLOCK WHERE NAME = :1", [name])
        if cursor.fetchone()[0] == 0:
            cursor.execute(tables.CLOCK.insert_sql, [name, 0])
            connection.commit()
