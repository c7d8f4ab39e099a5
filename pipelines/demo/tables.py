"""Which tables does the airport's database have, and how does a flight become a row?

One tuple per row, in the order of the table's columns; ``binds`` gives the driver the type of each,
so that a None never decides it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import oracledb

from pipelines.demo.flights import Flight, WeatherReport, read_rows, read_weather

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class DemoTable:
    """A table: its columns as DDL, its key, and whether Redolake captures it."""

    name: str
    definitions: str
    key: tuple[str, ...]
    captured: bool = True

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Name and type of each column."""
        parts = (one.partition(" ") for one in self.definitions.split(", "))
        return [(name, definition) for name, _, definition in parts]

    @property
    def create_sql(self) -> str:
        """The CREATE TABLE statement."""
        return f"CREATE TABLE {self.name} ({self.definitions}, CONSTRAINT {self.name}_PK PRIMARY KEY ({', '.join(self.key)}))"

    @property
    def insert_sql(self) -> str:
        """INSERT of all columns, by position."""
        names = ", ".join(name for name, _ in self.columns)
        places = ", ".join(f":{place}" for place in range(1, len(self.columns) + 1))
        return f"INSERT INTO {self.name} ({names}) VALUES ({places})"

    @property
    def binds(self) -> list[oracledb.DbType]:
        """The bind types of :attr:`insert_sql`."""
        return [bind_type(definition) for _, definition in self.columns]


AIRLINES = DemoTable(
    "AIRLINES",
    "CARRIER CHAR(2) NOT NULL, NAME VARCHAR2(60) NOT NULL, FLIGHTS_FLOWN NUMBER(9) NOT NULL, "
    "DELAY_AVERAGE NUMBER",
    key=("CARRIER",),
)
AIRPORTS = DemoTable(
    "AIRPORTS",
    "FAA CHAR(3) NOT NULL, NAME VARCHAR2(80) NOT NULL, LATITUDE BINARY_DOUBLE, "
    "LONGITUDE BINARY_DOUBLE, ALTITUDE_FEET NUMBER(5), HOURS_FROM_UTC NUMBER(4,2), "
    "SUMMER_TIME CHAR(1), TIME_ZONE VARCHAR2(40), ARRIVALS NUMBER(9) NOT NULL",
    key=("FAA",),
)
PLANES = DemoTable(
    "PLANES",
    "TAILNUM VARCHAR2(6) NOT NULL, YEAR_BUILT NUMBER(4), TYPE VARCHAR2(30), "
    "MANUFACTURER VARCHAR2(40), MODEL VARCHAR2(30), ENGINES NUMBER(2), SEATS NUMBER(3), "
    "SPEED NUMBER(4), ENGINE VARCHAR2(20), FINGERPRINT RAW(16), AIR_MINUTES NUMBER(9) NOT NULL, "
    "LAST_SEEN TIMESTAMP(6)",
    key=("TAILNUM",),
)
WEATHER = DemoTable(
    "WEATHER",
    "ORIGIN CHAR(3) NOT NULL, OBSERVED DATE NOT NULL, TEMP NUMBER(5,2), DEWPOINT NUMBER(5,2), "
    "HUMIDITY NUMBER(5,2), WIND_DIRECTION NUMBER(3), WIND_SPEED NUMBER, WIND_GUST NUMBER, "
    "PRECIPITATION NUMBER(4,2), PRESSURE NUMBER(6,1), VISIBILITY NUMBER(5,2)",
    key=("ORIGIN", "OBSERVED"),
)
FLIGHTS = DemoTable(
    "FLIGHTS",
    "SCHED_DEP DATE NOT NULL, CARRIER CHAR(2) NOT NULL, FLIGHT_NO NUMBER(4) NOT NULL, "
    "ORIGIN CHAR(3) NOT NULL, DEST CHAR(3) NOT NULL, TAILNUM VARCHAR2(6), SCHED_ARR DATE, "
    "DISTANCE NUMBER(5), STATUS VARCHAR2(12) NOT NULL, DEPARTED TIMESTAMP(6), DEP_DELAY NUMBER(5), "
    "SEAL RAW(8), ARRIVED TIMESTAMP(3), ARR_DELAY NUMBER(5), AIR_TIME NUMBER(4), "
    "SPEED BINARY_DOUBLE, FUEL NUMBER(8,2), NOTES CLOB",
    key=("SCHED_DEP", "CARRIER", "FLIGHT_NO"),
)
CLOCK = DemoTable(
    "AIRPORT_CLOCK",
    "NAME VARCHAR2(30) NOT NULL, DONE NUMBER(12) NOT NULL",
    key=("NAME",),
    captured=False,
)
"""Where the live system stands: changed in the same transactions as the rest, so that it can go on
after any end."""

TABLES = (AIRLINES, AIRPORTS, PLANES, WEATHER, FLIGHTS, CLOCK)
ADDED_COLUMN = ("DELAY_CAUSE", "VARCHAR2(40)")
"""What an ``ALTER TABLE`` adds to FLIGHTS while everything runs."""


def bind_type(definition: str) -> oracledb.DbType:
    """The driver's type for a column. Notes are short: they go as text, and Oracle makes the
    CLOB."""
    name = definition.partition(" ")[0].partition("(")[0]
    return {
        "NUMBER": oracledb.DB_TYPE_NUMBER,
        "BINARY_DOUBLE": oracledb.DB_TYPE_BINARY_DOUBLE,
        "DATE": oracledb.DB_TYPE_DATE,
        "TIMESTAMP": oracledb.DB_TYPE_TIMESTAMP,
        "RAW": oracledb.DB_TYPE_RAW,
    }.get(name, oracledb.DB_TYPE_VARCHAR)


def airline_rows() -> list[Row]:
    """Rows of AIRLINES, nothing flown yet."""
    return [(row["carrier"], row["name"], 0, None) for row in read_rows("airlines")]


def airport_rows() -> list[Row]:
    """Rows of AIRPORTS, nothing arrived yet. Positions are doubles, as in the data."""
    return [
        (
            row["faa"],
            row["name"],
            float(row["lat"] or "nan"),
            float(row["lon"] or "nan"),
            int(row["alt"] or 0),
            Decimal(row["tz"] or 0),
            row["dst"],
            row["tzone"],
            0,
        )
        for row in read_rows("airports")
    ]


def plane_rows() -> list[Row]:
    """Rows of PLANES. The fingerprint is a digest of the plane's record."""
    return [
        (
            row["tailnum"],
            _int(row["year"]),
            row["type"],
            row["manufacturer"],
            row["model"],
            _int(row["engines"]),
            _int(row["seats"]),
            _int(row["speed"]),
            row["engine"],
            hashlib.blake2b("|".join(map(str, row.values())).encode(), digest_size=16).digest(),
            0,
            None,
        )
        for row in read_rows("planes")
    ]


def weather_rows(before: datetime) -> list[Row]:
    """Rows of WEATHER observed before a moment (UTC)."""
    return [weather_row(report) for report in read_weather() if report.observed < before]


def weather_row(report: WeatherReport) -> Row:
    """One report as a row: its fields stand in the order of the columns."""
    return astuple(report)


def flown_rows(flights: Sequence[Flight]) -> Iterator[Row]:
    """Rows of FLIGHTS for flights of the past: those that were cancelled are not there any more."""
    for flight in flights:
        if flight.departed is not None:
            yield (*scheduled_values(flight), *departed_values(flight), *arrived_values(flight))


def scheduled_row(flight: Flight, *, sched_dep: datetime, tailnum: str | None) -> Row:
    """The row that is inserted when a flight is scheduled."""
    row = scheduled_values(flight)
    later = (None,) * (len(FLIGHTS.columns) - len(row) - 2)
    return (sched_dep, *row[1:5], tailnum, *row[6:8], "scheduled", *later, first_notes(flight))


def scheduled_values(flight: Flight) -> Row:
    """The first eight columns of FLIGHTS."""
    return (
        flight.sched_dep,
        flight.carrier,
        flight.number,
        flight.origin,
        flight.dest,
        flight.tailnum,
        flight.sched_arr,
        flight.distance,
    )


def departed_values(flight: Flight) -> Row:
    """STATUS, DEPARTED, DEP_DELAY and SEAL of a flight that left."""
    assert flight.dep_delay is not None
    moment = flight.sched_dep + timedelta(
        minutes=flight.dep_delay, microseconds=flight.chance % 60_000_000
    )
    seal = hashlib.blake2b(str(flight.key).encode(), digest_size=8).digest()
    return (status_at_end(flight), moment, flight.dep_delay, seal)


def arrived_values(flight: Flight) -> Row:
    """ARRIVED, ARR_DELAY, AIR_TIME, SPEED, FUEL and NOTES of a flight that ended."""
    arrived = None
    if flight.arr_delay is not None:
        arrived = flight.sched_arr + timedelta(
            minutes=flight.arr_delay, milliseconds=flight.chance % 60_000
        )
    return (
        arrived,
        flight.arr_delay,
        flight.air_time,
        flight.speed,
        flight.fuel,
        last_notes(flight),
    )


def status_at_end(flight: Flight) -> str:
    """What STATUS says when a flight is over."""
    return "diverted" if flight.arr_delay is None else "arrived"


def first_notes(flight: Flight) -> str | None:
    """Free text of one flight in eight, with the characters that people write."""
    if flight.chance % 8:
        return None
    return f"Briefing {flight.carrier}{flight.number}: crew asks for gate “C{flight.chance % 40}”; it's Zoë's last flight — 再见!\nFuel as planned."


def last_notes(flight: Flight) -> str | None:
    """The notes in the end: long delays and diversions are explained below what was there."""
    notes = first_notes(flight)
    late = flight.arr_delay is None or flight.arr_delay > 60
    if not late:
        return notes
    reason = f"Late by {flight.arr_delay} min; passengers' connections re-booked at {flight.dest}."
    if flight.arr_delay is None:
        reason = f"Did not reach {flight.dest}; passengers' luggage ('blue tags') follows."
    return reason if notes is None else f"{notes}\n{reason}"


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)
