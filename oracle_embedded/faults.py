"""Which failures shall the embedded Oracle show to its clients on purpose?

Tests arm faults here, or from another process through ``DBMS_REDOLAKE_FAULTS.ARM``. The wire asks
before it answers, the redo side before it shows its logs or rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from oracle_embedded.api import EngineSession, OracleError, OraType, Parameter, Procedure

PACKAGE = "DBMS_REDOLAKE_FAULTS"

_WAKE_SECONDS = 0.02
_TEXTS = {
    308: "cannot open archived log 'log'",
    310: "archived log contains sequence 2; sequence 1 required",
    334: "archived log: 'log'",
    1013: "user requested cancel of current operation",
    1284: "file log cannot be opened",
    1289: "cannot add duplicate logfile log",
    1291: "missing log file",
    1292: "no log file has been specified for the current LogMiner session",
    1368: "Redo log file header mismatch for thread 1 sequence 1.",
    1555: "snapshot too old: rollback segment number with name too small",
    2392: "exceeded session limit on CPU usage, you are being logged off",
    2396: "exceeded maximum idle time, please connect again",
    2399: "exceeded maximum connect time, you are being logged off",
    3113: "end-of-file on communication channel",
    4030: "out of process memory when trying to allocate 65560 bytes (krvxprgt,LogMiner)",
    4036: "PGA memory used by the instance or PDB exceeds PGA_AGGREGATE_LIMIT",
    8181: "specified number is not a valid system change number",
    16331: 'container "ORCLPDB1" is not open',
}


LOGGED_OFF = frozenset({28, 2392, 2394, 2396, 2397, 2399})
"""Errors behind which a session is over: its transaction is rolled back, and each further call of
the client is refused (ORA-01012)."""
_CHANNEL_GONE = 3113
"""What a client says of a server process that is gone; nobody sends it."""


class FaultKind(StrEnum):
    """What happens."""

    LOST_CONNECTION = "LOST_CONNECTION"
    """The socket is closed without an answer; the session's transaction is rolled back."""
    ORA_ERROR = "ORA_ERROR"
    """The call ends with an ORA error; the session lives on, but behind those of
    :data:`LOGGED_OFF`."""
    DELAY = "DELAY"
    """The answer waits, as on a slow network."""
    SWITCH_IN_PROGRESS = "SWITCH_IN_PROGRESS"
    """V$LOG lacks the log that is being written, as in the middle of a switch (seen on Oracle
    23ai)."""
    MISSING_SCN = "MISSING_SCN"
    """LogMiner shows a hole in the redo: a row with operation code 34."""
    SHORT_READ = "SHORT_READ"
    """LogMiner's rows end before the newest log, without an error: reported of online logs that are
    switched meanwhile."""


class FaultEvent(StrEnum):
    """At what it happens: a batch of rows is asked for, a statement or a commit is about to run, or
    has run; V$LOG or V$LOGMNR_CONTENTS is read.

    A connection that is lost at COMMITTED leaves the client without knowing that its changes are
    there. ``sql_contains`` matters at the first two only.
    """

    FETCH = "FETCH"
    EXECUTE = "EXECUTE"
    COMMIT = "COMMIT"
    COMMITTED = "COMMITTED"
    LOGS = "LOGS"
    MINING = "MINING"


_EVENT_OF = {
    FaultKind.SWITCH_IN_PROGRESS: FaultEvent.LOGS,
    FaultKind.MISSING_SCN: FaultEvent.MINING,
    FaultKind.SHORT_READ: FaultEvent.MINING,
}
_STATEMENT_EVENTS = frozenset((FaultEvent.FETCH, FaultEvent.EXECUTE))


class LostConnectionFaultError(Exception):
    """The wire is to drop the connection."""


@dataclass(slots=True)
class Fault:
    """An armed fault: it happens at the ``nth`` matching event and at ``times - 1`` further ones
    (0: at all further).

    ``sql_contains`` is looked for without regard to case; empty matches every statement. What the
    redo side shows has one event only, whatever ``event`` says.
    """

    kind: FaultKind
    event: FaultEvent = FaultEvent.FETCH
    sql_contains: str = ""
    nth: int = 1
    times: int = 1
    code: int = 1555
    delay_seconds: float = 0.0
    seen: int = 0

    def __post_init__(self) -> None:
        if self.nth < 1 or self.times < 0 or self.code < 1 or self.delay_seconds < 0:
            raise OracleError(6502, "PL/SQL: numeric or value error: fault arguments out of range")
        self.event = _EVENT_OF.get(self.kind, self.event)

    def is_due(self, event: FaultEvent, sql: str) -> bool:
        """Count an event; does the fault happen now?"""
        if event is not self.event:
            return False
        if event in _STATEMENT_EVENTS and self.sql_contains.upper() not in sql.upper():
            return False
        self.seen += 1
        past = self.seen - self.nth
        return past >= 0 and (self.times == 0 or past < self.times)


class FaultRegistry:
    """The armed faults of one server. Safe for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def arm(self, fault: Fault) -> None:
        """Let a fault happen from now on."""
        with self._lock:
            self._faults.append(fault)

    def disarm_all(self) -> None:
        """Behave well again."""
        with self._lock:
            self._faults.clear()

    def armed(self) -> Sequence[Fault]:
        """The faults that can still happen or have happened since the last :meth:`disarm_all`."""
        with self._lock:
            return tuple(self._faults)

    def check(
        self, event: FaultEvent, sql: str, *, wake: Callable[[], bool] = lambda: False
    ) -> None:
        """Let the faults that are due happen; delays first, which end early when ``wake`` says so.

        Raises:
            OracleError: An ORA error is due.
            LostConnectionFaultError: The connection is to be dropped.
        """
        due = self._due(event, sql)
        for fault in due:
            if fault.kind is FaultKind.DELAY:
                _sleep(fault.delay_seconds, wake)
        for fault in due:
            if fault.kind is FaultKind.LOST_CONNECTION or (
                fault.kind is FaultKind.ORA_ERROR and fault.code == _CHANNEL_GONE
            ):
                raise LostConnectionFaultError
            if fault.kind is FaultKind.ORA_ERROR:
                raise OracleError(fault.code, _TEXTS.get(fault.code, "injected fault"))

    def shown(self, event: FaultEvent) -> frozenset[FaultKind]:
        """Count an event of the redo side: what shall it show?"""
        return frozenset(fault.kind for fault in self._due(event, ""))

    def _due(self, event: FaultEvent, sql: str) -> list[Fault]:
        if not self._faults:
            return []
        with self._lock:
            return [fault for fault in self._faults if fault.is_due(event, sql)]

    def procedures(self) -> Sequence[Procedure]:
        """``DBMS_REDOLAKE_FAULTS.ARM`` and ``DISARM_ALL`` for the engine to serve."""
        text, number = OraType.VARCHAR, OraType.NUMBER
        parameters = (
            Parameter("KIND", text),
            Parameter("SQL_CONTAINS", text, required=False, default=None),
            Parameter("NTH", number, required=False, default=1),
            Parameter("CODE", number, required=False, default=1555),
            Parameter("TIMES", number, required=False, default=1),
            Parameter("DELAY_MS", number, required=False, default=0),
            Parameter("EVENT", text, required=False, default=str(FaultEvent.FETCH)),
        )
        return (
            Procedure(PACKAGE, "ARM", parameters, self._arm_call),
            Procedure(PACKAGE, "DISARM_ALL", (), lambda _session, _arguments: self.disarm_all()),
        )

    def _arm_call(self, _session: EngineSession, arguments: Mapping[str, object]) -> None:
        try:
            fault = Fault(
                kind=FaultKind(_text(arguments, "KIND", "").upper()),
                event=FaultEvent(_text(arguments, "EVENT", FaultEvent.FETCH).upper()),
                sql_contains=_text(arguments, "SQL_CONTAINS", ""),
                nth=_integer(arguments, "NTH", 1),
                code=_integer(arguments, "CODE", 1555),
                times=_integer(arguments, "TIMES", 1),
                delay_seconds=_integer(arguments, "DELAY_MS", 0) / 1000,
            )
        except ValueError as error:
            kinds, events = ", ".join(FaultKind), ", ".join(FaultEvent)
            raise OracleError(
                20000, f"unknown fault; KIND is one of {kinds}, EVENT one of {events}"
            ) from error
        self.arm(fault)


def _sleep(seconds: float, wake: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0 and not wake():
        time.sleep(min(rest, _WAKE_SECONDS))


def _text(arguments: Mapping[str, object], name: str, default: str) -> str:
    value = arguments.get(name)
    return default if value is None else str(value)


def _integer(arguments: Mapping[str, object], name: str, default: int) -> int:
    value = arguments.get(name)
    return default if value is None else int(str(value))
