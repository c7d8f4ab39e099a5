"""The flights' files: keys, times and exact values, as the demo relies on them."""

from __future__ import annotations

import importlib.util
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from cdc_core.errors import PreflightError
from pipelines.demo import flights as flights_module
from pipelines.demo.flights import read_flights, read_weather
from pipelines.demo.tables import (
    FLIGHTS,
    TABLES,
    airline_rows,
    airport_rows,
    flown_rows,
    plane_rows,
    scheduled_row,
    weather_rows,
)


def test_flights_of_a_day_are_in_order_and_have_different_keys() -> None:
    day = read_flights(date(2013, 2, 1), date(2013, 2, 1))
    assert len(day) == 926
    assert len({flight.key for flight in day}) == len(day)
    assert [flight.scheduled for flight in day] == sorted(flight.scheduled for flight in day)


def test_a_cancelled_flight_never_departs_and_a_diverted_one_has_no_delay_on_arrival() -> None:
    days = read_flights(date(2013, 1, 1), date(2013, 1, 3))
    cancelled = [flight for flight in days if flight.dep_delay is None]
    diverted = [flight for flight in days if flight.departed and flight.arr_delay is None]
    assert cancelled
    assert diverted
    assert all(flight.departed is None and flight.ended is None for flight in cancelled)
    assert all(
        flight.ended and flight.ended > flight.departed for flight in diverted if flight.departed
    )
    assert len(list(flown_rows(days))) == len(days) - len(cancelled)


def test_arrivals_are_on_the_destinations_clock() -> None:
    """An early flight to Houston: 5:15 in New York to 8:19 in Texas, one hour behind."""
    first = read_flights(date(2013, 1, 1), date(2013, 1, 1))[0]
    assert (first.dest, first.sched_dep, first.sched_arr) == (
        "IAH", datetime(2013, 1, 1, 5, 15), datetime(2013, 1, 1, 8, 19),
    )  # fmt: skip
    assert first.scheduled - first.sched_dep == timedelta(hours=5)


def test_weather_is_unique_by_utc_hour_though_not_by_local_hour() -> None:
    reports = read_weather()
    assert len(reports) == 26_115
    assert len({(report.origin, report.observed) for report in reports}) == len(reports)


def test_decimals_keep_every_digit_of_the_file() -> None:
    assert any(report.wind_speed == Decimal("10.357019999999999") for report in read_weather())


@pytest.mark.parametrize(
    ("name", "rows", "count"),
    [
        pytest.param("AIRLINES", airline_rows, 16, id="airlines"),
        pytest.param("AIRPORTS", airport_rows, 1458, id="airports"),
        pytest.param("PLANES", plane_rows, 3322, id="planes"),
        pytest.param("WEATHER", lambda: weather_rows(datetime(2013, 1, 2, 5)), 67, id="weather"),
    ],
)
def test_rows_have_a_value_for_each_column(name: str, rows: object, count: int) -> None:
    made = rows()  # type: ignore[operator]
    table = next(table for table in TABLES if table.name == name)
    assert len(made) == count
    assert {len(row) for row in made} == {len(table.columns)}
    assert len(table.binds) == len(table.columns)


def test_a_scheduled_row_knows_nothing_of_what_comes() -> None:
    flight = read_flights(date(2013, 2, 1), date(2013, 2, 1))[0]
    row = scheduled_row(flight, sched_dep=flight.sched_dep, tailnum=None)
    names = [name for name, _ in FLIGHTS.columns]
    values = dict(zip(names, row, strict=True))
    assert values["STATUS"] == "scheduled"
    assert values["TAILNUM"] is None
    assert values["ARRIVED"] is values["DEPARTED"] is values["FUEL"] is None
    assert values["DISTANCE"] == flight.distance


def test_without_the_package_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(PreflightError, match="make setup"):
        flights_module.data_folder()
