"""Oracle's calendar: Julian up to 4 October 1582, Gregorian from the 15th on, years before Christ, and arithmetic over all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle_embedded.api import OracleError
from oracle_embedded.days import (
    FIRST_NUMBER,
    LAST_NUMBER,
    day_of_number,
    month_days,
    number_of_day,
)

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client

_PRINT = "to_char({}, 'SYYYY-MM-DD')"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        pytest.param(_PRINT.format("date '1500-02-29'"), " 1500-02-29", id="julian-leap-year"),
        pytest.param(_PRINT.format("date '1582-10-04' + 1"), " 1582-10-15", id="ten-days-fell-out"),
        pytest.param(_PRINT.format("date '1582-10-15' - 1"), " 1582-10-04", id="and-backwards"),
        pytest.param(_PRINT.format("date '1582-10-10'"), " 1582-10-15", id="missing-day-in-a-literal"),
        pytest.param(
            _PRINT.format("to_date('10.10.1582', 'DD.MM.YYYY')"), " 1582-10-15", id="missing-day-as-text"
        ),
        pytest.param("to_char(date '1582-10-15' - date '1582-10-04')", "1", id="difference-over-the-gap"),
        pytest.param("to_char(date '1582-10-04', 'DAY')", "THURSDAY ", id="last-julian-day"),
        pytest.param("to_char(date '1582-10-15', 'DAY')", "FRIDAY   ", id="first-gregorian-day"),
        pytest.param("to_char(last_day(date '1500-02-01'), 'DD')", "29", id="last-day"),
        pytest.param(_PRINT.format("add_months(date '1582-09-10', 1)"), " 1582-10-15", id="months-into-the-gap"),
        pytest.param(_PRINT.format("date '-0044-03-15'"), "-0044-03-15", id="ides-of-march"),
        pytest.param("to_char(date '-0044-03-15', 'YYYY BC')", "0044 BC", id="era"),
        pytest.param(_PRINT.format("to_date('11-0044 BC', 'MM-YYYY BC')"), "-0044-11-01", id="era-read"),
        pytest.param("to_char(date '-4712-01-01', 'J')", "0000001", id="first-day"),
        pytest.param(_PRINT.format("to_date(1, 'J')"), "-4712-01-01", id="julian-day-read"),
        pytest.param("to_char(date '9999-12-31', 'J')", "5373484", id="last-day-of-all"),
        pytest.param("to_char(date '2000-01-01', 'J')", "2451545", id="julian-day-of-today"),
        pytest.param("to_char(date '0001-01-01' - date '-0001-12-31')", "367", id="year-0-is-counted"),
        pytest.param(_PRINT.format("date '-0001-12-31' + 1"), " 0000-01-01", id="year-0-is-reached"),
        pytest.param("to_char(extract(year from date '-0044-03-15'))", "-44", id="extract"),
        pytest.param(_PRINT.format("trunc(date '-0044-03-15', 'MM')"), "-0044-03-01", id="trunc"),
        pytest.param("to_char(date '-0044-03-15', 'SCC')", "-01", id="century"),
        pytest.param(
            "to_char(timestamp '-4712-01-01 10:11:12.5', 'SYYYY-MM-DD HH24:MI:SS.FF1')",
            "-4712-01-01 10:11:12.5", id="timestamp",
        ),
    ],
)  # fmt: skip
def test_the_calendar(shared: Client, expression: str, text: str) -> None:
    assert shared.one(f"select {expression} from dual") == text


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        pytest.param("date '0000-01-01'", 1841, id="year-0"),
        pytest.param("date '-4713-12-31'", 1841, id="before-the-first-year"),
        pytest.param("date '1700-02-29'", 1839, id="gregorian-common-year"),
        pytest.param("date '-4712-01-01' - 1", 1841, id="before-the-first-day"),
        pytest.param("date '9999-12-31' + 1", 1841, id="behind-the-last-day"),
        pytest.param("to_date(0, 'J')", 1854, id="julian-day-0"),
    ],
)
def test_days_that_are_none_are_refused(shared: Client, expression: str, code: int) -> None:
    with pytest.raises(OracleError) as raised:
        shared.one(f"select to_char({expression}, 'J') from dual")
    assert raised.value.code == code


@given(st.integers(FIRST_NUMBER, LAST_NUMBER))
def test_numbers_and_days_are_each_others_inverse(number: int) -> None:
    year, month, day = day_of_number(number)
    assert 1 <= day <= month_days(year, month)
    assert number_of_day(year, month, day) == number


def test_every_day_follows_the_one_before() -> None:
    for first in (FIRST_NUMBER, number_of_day(-1, 12, 1), number_of_day(1582, 9, 1)):
        for number in range(first, first + 500):
            (year, month, day), after = day_of_number(number), day_of_number(number + 1)
            if (year, month, day) == (1582, 10, 4):
                assert after == (1582, 10, 15)
            elif day < month_days(year, month):
                assert after == (year, month, day + 1)
            else:
                assert after == (year + month // 12, month % 12 + 1, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("BINARY_DOUBLE_NAN", "Nan"),
        ("BINARY_DOUBLE_INFINITY", "Inf"),
        ("-BINARY_DOUBLE_INFINITY", "-Inf"),
        ("BINARY_FLOAT_NAN", "Nan"),
        ("-BINARY_FLOAT_INFINITY", "-Inf"),
    ],
)
def test_floats_have_names_for_what_no_digits_say(shared: Client, name: str, text: str) -> None:
    assert shared.one(f"select to_char({name}) from dual") == text
