"""What may a registered SQLite function know of the statement that calls it?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from oracle_embedded.api import OraType, Value
from oracle_embedded.charsets import CharacterSets
from oracle_embedded.engine.datatypes import temporal

NLS_DEFAULTS = {
    "NLS_LANGUAGE": "AMERICAN",
    "NLS_TERRITORY": "AMERICA",
    "NLS_CURRENCY": "$",
    "NLS_ISO_CURRENCY": "AMERICA",
    "NLS_NUMERIC_CHARACTERS": ".,",
    "NLS_CALENDAR": "GREGORIAN",
    "NLS_DATE_FORMAT": "DD-MON-RR",
    "NLS_DATE_LANGUAGE": "AMERICAN",
    "NLS_SORT": "BINARY",
    "NLS_TIME_FORMAT": "HH.MI.SSXFF AM",
    "NLS_TIMESTAMP_FORMAT": "DD-MON-RR HH.MI.SSXFF AM",
    "NLS_TIME_TZ_FORMAT": "HH.MI.SSXFF AM TZR",
    "NLS_TIMESTAMP_TZ_FORMAT": "DD-MON-RR HH.MI.SSXFF AM TZR",
    "NLS_DUAL_CURRENCY": "$",
    "NLS_COMP": "BINARY",
    "NLS_LENGTH_SEMANTICS": "BYTE",
    "NLS_NCHAR_CONV_EXCP": "FALSE",
}


@dataclass(slots=True)
class CallContext:
    """Settings of the session and the moment of the statement that runs on a connection.

    ``error`` keeps the error that a function raised, since SQLite only passes on that one was
    raised. ``is_program`` says that PL/SQL itself computes, not a statement of it.
    """

    nls: dict[str, str] = field(default_factory=lambda: dict(NLS_DEFAULTS))
    character_sets: CharacterSets = field(default_factory=CharacterSets)
    time_zone: str = "+00:00"
    database_zone: str = "+00:00"
    now_utc: int = field(default_factory=temporal.now)
    user: str = ""
    schema: str = ""
    userenv: Callable[[str], str | None] = lambda _name: None
    contexts: dict[str, dict[str, str]] = field(default_factory=dict)
    next_value: Callable[[int], int] = lambda _identifier: 0
    current_value: Callable[[int], int] = lambda _identifier: 0
    table_ddl: Callable[[str, str | None], str] = lambda _name, _owner: ""
    call_stored: Callable[[str, dict[str, bytes | None]], bytes | str | None] = (
        lambda _name, _given: None
    )
    scn_time: Callable[[int], float | None] = lambda _scn: None
    time_scn: Callable[[float], int | None] = lambda _moment: None
    current_scn: Callable[[], int] = lambda: 0
    mined: Callable[[int, str], tuple[OraType, Value] | None] = lambda _number, _column: None
    xid_at: Callable[[int], bytes | None] = lambda _scn: None
    error: BaseException | None = None
    is_program: bool = False

    def local_now(self) -> int:
        """The moment of the statement as wall-clock time of the session."""
        return (
            self.now_utc + temporal.zone_offset(self.time_zone, self.now_utc) * 60 * temporal.SECOND
        )
