"""Which text does the lake have for a time with zone or an interval, however Oracle prints it?

Both paths get such values as text: LogMiner's literals and the snapshot's TO_CHAR have one form.
What differs by the column's declaration goes: leading zeros, a plus, the number of fractional
digits. So equal values are equal texts.
"""

from __future__ import annotations

import re
from datetime import datetime

UTC_OFFSET = "+00:00"
"""The time zone of capture's sessions, in which Oracle prints WITH LOCAL TIME ZONE, without naming
it."""

_ZONED = re.compile(
    r"([ -]?)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{0,9}))?(?: ([+-]\d\d:\d\d))?", re.ASCII
)
_YEARS = re.compile(r"([+-]?)(\d{1,9})-(\d\d)", re.ASCII)
_DAYS = re.compile(r"([+-]?)(\d{1,9}) (\d\d:\d\d:\d\d)(?:\.(\d{0,9}))?", re.ASCII)


def zoned_text(printed: str) -> str | None:
    """``YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM``; None where it is something else, or no day of the
    years 1 to 9999.

    Args:
        printed: In the format of :data:`cdc_core.oracle.session.SETTINGS`, with or without the
            zone.
    """
    found = _ZONED.fullmatch(printed)
    if found is None or found[1] == "-":
        return None
    try:
        datetime.fromisoformat(found[2])
    except ValueError:
        return None
    return f"{found[2]}.{(found[3] or '').ljust(9, '0')} {found[4] or UTC_OFFSET}"


def year_to_month_text(printed: str) -> str | None:
    """``[-]Y-MM``; None where it is something else."""
    found = _YEARS.fullmatch(printed)
    return found and f"{_minus(found[1])}{int(found[2])}-{found[3]}"


def day_to_second_text(printed: str) -> str | None:
    """``[-]D HH24:MI:SS.FF9``; None where it is something else."""
    found = _DAYS.fullmatch(printed)
    return (
        found and f"{_minus(found[1])}{int(found[2])} {found[3]}.{(found[4] or '').ljust(9, '0')}"
    )


def _minus(sign: str) -> str:
    return "-" if sign == "-" else ""
