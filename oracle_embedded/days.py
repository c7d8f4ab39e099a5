"""Which days are there in Oracle's calendar, and how are they counted?

Days are Julian up to 4 October 1582 and Gregorian from 15 October 1582 on; the ten days between are
none. A day's number is Python's proleptic ordinal (1 is the Gregorian 0001-01-01), which is the
Julian day number less :data:`JULIAN_OFFSET`.

Years before Christ are negative. Oracle counts as if there were a year 0 between 1 BC and 1 AD, a
leap year that no text can name: 31 December 1 BC and 1 January 1 AD are 367 days apart. The first
day, 1 January 4712 BC, is Julian day 1, so that year has no 29 February.

Source:
    Oracle SQL Language Reference 19c, "Julian Dates" and format element J. S. Stuber, "Looking
    through holes in time" (2018), measured on 12.1 to 18c: TO_DATE and literals move the ten days
    to 15 October. Bug 106242: the year 0 in arithmetic.
"""

from __future__ import annotations

from datetime import date

JULIAN_OFFSET = 1721425
FIRST_YEAR, LAST_YEAR = -4712, 9999
LAST_NUMBER = date.max.toordinal()
FIRST_NUMBER = 1 - JULIAN_OFFSET

_GREGORIAN_FROM = (1582, 10, 15)
_GREGORIAN_FROM_NUMBER = date(*_GREGORIAN_FROM).toordinal()
_GREGORIAN_YEARS = 1583
_GAP = (10, 5), (10, 14)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FIRST_MARCH_JULIAN_DAY = 60


def is_missing(year: int, month: int, day: int) -> bool:
    """Is it one of the ten days of October 1582 that are none?"""
    return year == _GREGORIAN_FROM[0] and _GAP[0] <= (month, day) <= _GAP[1]


def month_days(year: int, month: int) -> int:
    """The number of the last day of a month."""
    if month == 2 and _is_leap(year):
        return 29
    return _MONTH_DAYS[month - 1]


def _is_leap(year: int) -> bool:
    if year % 4 or year == FIRST_YEAR:
        return False
    return year < _GREGORIAN_YEARS or year % 100 != 0 or year % 400 == 0


def number_of_day(year: int, month: int, day: int) -> int:
    """The number of a day. One of the missing days counts as 15 October."""
    if year >= _GREGORIAN_YEARS or (year, month, day) >= _GREGORIAN_FROM:
        return date(year, month, day).toordinal()
    if is_missing(year, month, day):
        return _GREGORIAN_FROM_NUMBER
    before_march = (14 - month) // 12
    years = year + 4800 - before_march
    months = month + 12 * before_march - 3
    julian = day + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083
    if julian < _FIRST_MARCH_JULIAN_DAY:
        julian += 1
    return julian - JULIAN_OFFSET


def day_of_number(number: int) -> tuple[int, int, int]:
    """Year, month and day of a number from :data:`FIRST_NUMBER` to :data:`LAST_NUMBER`; the year
    may be 0."""
    if number >= _GREGORIAN_FROM_NUMBER:
        found = date.fromordinal(number)
        return found.year, found.month, found.day
    julian = number + JULIAN_OFFSET
    if julian < _FIRST_MARCH_JULIAN_DAY:
        julian -= 1
    rest = julian + 32082
    years, rest = divmod(4 * rest + 3, 1461)
    months, rest = divmod(5 * (rest // 4) + 2, 153)
    month = months + 3 - 12 * (months // 10)
    return years - 4800 + months // 10, month, rest // 5 + 1


def weekday(number: int) -> int:
    """0 for Monday to 6 for Sunday."""
    return (number - 1) % 7


def iso_week(number: int) -> tuple[int, int]:
    """ISO 8601's year and week of a day."""
    thursday = number - weekday(number) + 3
    year = day_of_number(thursday)[0]
    return year, (thursday - number_of_day(year, 1, 1)) // 7 + 1


def iso_year_start(year: int) -> int:
    """The Monday with which an ISO 8601 year begins."""
    fourth = number_of_day(year, 1, 4)
    return fourth - weekday(fourth)
