"""When is a password sent again that Oracle has refused?

Oracle's profiles lock an account after some failed logins in a row (FAILED_LOGIN_ATTEMPTS: 10 by
default, 3 where security guides are followed). Sensors that look every minute would lock it within
minutes of a password's rotation, for those who know the new one too. So a refused password is sent
once more after a pause, for a secret that was handed out before the database had it, and then no
more: until it changes, or somebody runs ``redolake doctor``.

All processes of a metadata store share what was refused, and log in one after the other, so that
those that log in at once send a refused password once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from cdc_core.errors import CdcError, ConfigError
from cdc_core.model.logins import Login, Refusal

PAUSE_SECONDS = 900.0
SENT_MAX = 2
"""So often a password is sent that Oracle refuses each time."""
TURN_SECONDS_MAX = 10.0
"""So long a login waits for another one of the same account; a refusal takes less."""
_COUNTED = frozenset({"ORA-01017", "ORA-01005"})
"""What Oracle counts as a failed login. An account that is locked, or a password that has expired,
may be put right at any time, and asking makes nothing worse."""


class RefusalMemory(Protocol):
    """Remembers which logins Oracle has refused for their password."""

    def turn(self, login: Login, seconds: float) -> AbstractContextManager[Refusal | None]:
        """A block in which nobody else logs in that has the same memory; or ``seconds`` have
        passed. Gives what is remembered of the login then; None if it was not refused, or was
        accepted since."""

    def add(self, login: Login, at: float) -> Refusal:
        """It was refused once more; what is remembered now."""

    def forget(self, login: Login) -> None:
        """It was accepted."""


@dataclass(slots=True)
class _Memory:
    """What this process alone remembers. Safe for use from several threads."""

    _known: dict[Login, Refusal] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turns: dict[Login, threading.Lock] = field(default_factory=dict)

    @contextmanager
    def turn(self, login: Login, seconds: float) -> Iterator[Refusal | None]:
        with self._lock:
            turn = self._turns.setdefault(login, threading.Lock())
        is_mine = turn.acquire(timeout=seconds)
        try:
            yield self._known.get(login)
        finally:
            if is_mine:
                turn.release()

    def add(self, login: Login, at: float) -> Refusal:
        known = self._known.get(login)
        refusal = self._known[login] = Refusal(1 + (known.count if known else 0), at)
        return refusal

    def forget(self, login: Login) -> None:
        self._known.pop(login, None)


@dataclass(slots=True)
class RefusedLogins:
    """The logins of a process. Safe for use from several threads."""

    now: Callable[[], float] = time.time
    _own: _Memory = field(default_factory=_Memory)

    @contextmanager
    def attempt(
        self, login: Login, shared: RefusalMemory | None = None, *, insists: bool = False
    ) -> Iterator[None]:
        """A login is tried in the block.

        Args:
            login: Who logs in.
            shared: What other processes know too; without it, this one alone.
            insists: Whatever others know: an operator wants to know now. This process sends a
                password twice at most all the same.

        Raises:
            ConfigError: Oracle refused the same login before, and the block has not run; or
                refuses it now.
        """
        with (
            self._own.turn(login, TURN_SECONDS_MAX) as own,
            shared.turn(login, TURN_SECONDS_MAX) if shared else nullcontext(own) as known,
        ):
            self._refuse(login, own if insists else known)
            with self._told(login, shared):
                yield
            self._own.forget(login)
            if known is not None and shared is not None:
                shared.forget(login)

    def _refuse(self, login: Login, known: Refusal | None) -> None:
        """Refuse a login that is not to be tried now. A clock that was set back ends the pause."""
        if known is None:
            return
        is_paused = 0 <= self.now() - known.newest < PAUSE_SECONDS
        if is_paused or known.count >= SENT_MAX:
            facts = {"dsn": login.dsn, "user": login.user}
            raise _with_pause("Oracle has refused user name or password", login, known, facts)

    @contextmanager
    def _told(self, login: Login, shared: RefusalMemory | None) -> Iterator[None]:
        try:
            yield
        except ConfigError as error:
            if error.facts.get("ora") not in _COUNTED:
                raise
            refusal = self._own.add(login, self.now())
            if shared is not None:
                with suppress(CdcError):  # the refusal is what the caller must hear of
                    refusal = shared.add(login, self.now())
            raise _with_pause(error.message, login, refusal, error.facts) from error


def _with_pause(
    message: str, login: Login, refusal: Refusal, facts: Mapping[str, object]
) -> ConfigError:
    has_blanks = login.password != login.password.strip()
    blanks = "The password begins or ends with white space, perhaps a line break. "
    again = "when it changes"
    if refusal.count < SENT_MAX:
        moment = datetime.fromtimestamp(refusal.newest + PAUSE_SECONDS, UTC)
        again = f"{moment:%Y-%m-%d %H:%M:%S} UTC, or {again}"
    return ConfigError(
        message,
        hint=f"{blanks if has_blanks else ''}"
        "Check oracle.user, and the password in the variable that oracle.password_env names; "
        "the database administrator can unlock the account or set another password. Redolake does "
        "not send the same password again and again, which would lock the account: another one is "
        "sent at once, and `redolake doctor` sends this one too.",
        **facts,
        sent_again=again,
    )


REFUSED_LOGINS = RefusedLogins()
"""Those of this process."""
