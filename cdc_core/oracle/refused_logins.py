"""When does a process send a password again that Oracle has refused?

Oracle's profiles lock an account after some failed logins (FAILED_LOGIN_ATTEMPTS). Sensors that
look every minute would lock it within minutes of a password's rotation, for those who know the new
one too. So after each refusal a process waits twice as long before it sends the same password
again, and of threads that send it at once, one does, and the others wait for what becomes of it.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cdc_core.errors import CdcError, ConfigError

PAUSE_SECONDS_FIRST = 60.0
PAUSE_SECONDS_MAX = 1800.0
_REFUSED = "ORA-01017"
TURN_SECONDS_MAX = 10.0
"""So long a login waits for one with the same password; a refusal takes less."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    error: CdcError
    pause: float
    until: float


@dataclass(slots=True)
class RefusedLogins:
    """What Oracle has refused, by digests of who asked for what with which password."""

    now: Callable[[], float] = time.monotonic
    _known: dict[bytes, _Refusal] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turns: dict[bytes, threading.Lock] = field(default_factory=dict)

    @contextmanager
    def attempt(self, *credentials: str) -> Iterator[None]:
        """A login is tried in the block. A wrong password counts; an account that is locked, or a
        connect string that leads nowhere, may be put right at any time.

        Raises:
            ConfigError: Oracle refused the same a moment ago; the block has not run.
        """
        key = hashlib.sha256("\0".join(credentials).encode()).digest()
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        has_turn = turn.acquire(timeout=TURN_SECONDS_MAX)
        try:
            with self._attempt(key):
                yield
        finally:
            if has_turn:
                turn.release()

    @contextmanager
    def _attempt(self, key: bytes) -> Iterator[None]:
        with self._lock:
            known = self._known.get(key)
        if known is not None and (left := known.until - self.now()) > 0:
            error = known.error
            facts = {**error.facts, "tried_again_in": f"{left:.0f} s"}
            raise ConfigError(error.message, hint=error.hint, **facts)
        try:
            yield
        except ConfigError as error:
            if error.facts.get("ora") != _REFUSED:
                raise
            pause = PAUSE_SECONDS_FIRST if known is None else 2 * known.pause
            pause = min(pause, PAUSE_SECONDS_MAX)
            with self._lock:
                self._known[key] = _Refusal(error, pause, self.now() + pause)
            raise
        with self._lock:
            self._known.pop(key, None)


REFUSED_LOGINS = RefusedLogins()
"""Those of this process."""
