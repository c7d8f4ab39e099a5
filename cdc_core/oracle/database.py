"""How does work get a session of a source's database, and a new one where it is lost on the way?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from cdc_core.config import OracleConfig
from cdc_core.errors import OracleUnavailableError
from cdc_core.model.logins import Login
from cdc_core.model.scn import Scn
from cdc_core.oracle.refused_logins import REFUSED_LOGINS, RefusalMemory
from cdc_core.oracle.session import OracleSession, connect

T = TypeVar("T")

SESSION_ATTEMPTS = 3
KEPT_SECONDS = 30
"""How long a session is kept that nobody uses: far less than what firewalls and profiles allow an
idle one."""
SESSION_SECONDS_MAX = 600
"""How long a session may serve: memory that LogMiner holds in the server (PGA) ends with it."""
ANSWERED_SECONDS = 1
"""Work that would be done again in another session does not ask one whether it is alive that
answered so short a time ago."""
_CURRENT = "SELECT CURRENT_SCN FROM V$DATABASE"


class OracleDatabase:
    """The database of one source. Several threads may use it: no two have a session at once.

    Logging in costs Oracle and us more than most queries of a step do. So a session that was left
    in good order is kept for the next block, for :data:`KEPT_SECONDS`, until it is
    :data:`SESSION_SECONDS_MAX` old.

    Args:
        config: How it is reached.
        on_statement: Called with the text of each statement before it is sent.
        check: Called with each new session; what it raises keeps the session from being used.
        refusals: Gives what other processes know of refused passwords.
        insists: A refused password is sent once more, whatever others know.
    """

    def __init__(
        self,
        config: OracleConfig,
        *,
        on_statement: Callable[[str], None] | None = None,
        check: Callable[[OracleSession], None] | None = None,
        refusals: Callable[[], RefusalMemory | None] = lambda: None,
        insists: bool = False,
    ) -> None:
        self._config = config
        self._on_statement = on_statement
        self._check = check
        self._refusals = refusals
        self._insists = insists
        self._lock = threading.Lock()
        self._kept: list[tuple[float, OracleSession]] = []

    @contextmanager
    def session(self, *, asked_after: float = 0) -> Iterator[OracleSession]:
        """A session for the block, which may have served another one. Whether it is alive is asked,
        unless it was used less than ``asked_after`` seconds ago."""
        session = self._take(asked_after) or self._connect()
        try:
            yield session
        except BaseException:
            session.close()
            raise
        with self._lock:
            self._kept.append((time.monotonic(), session))

    def unchecked(self) -> OracleDatabase:
        """The same, whatever database it is now."""
        return self._as(self._config)

    def beside(self, dsn: str) -> OracleDatabase:
        """Another database, reached by the same user in the same way under another connect
        string."""
        return self._as(self._config.model_copy(update={"dsn": dsn}))

    def _as(self, config: OracleConfig) -> OracleDatabase:
        return OracleDatabase(
            config,
            on_statement=self._on_statement,
            refusals=self._refusals,
            insists=self._insists,
        )

    def logging_in(self, login: Login) -> AbstractContextManager[None]:
        """Another client of the database logs in, in the block
        (:meth:`~cdc_core.oracle.refused_logins.RefusedLogins.attempt`)."""
        return REFUSED_LOGINS.attempt(login, self._refusals(), insists=self._insists)

    def new_session(self) -> OracleSession:
        """A session of one's own, which its caller closes."""
        return self._connect()

    def close(self) -> None:
        """Close the sessions that are kept. The next block has a new one."""
        with self._lock:
            kept, self._kept = self._kept, []
        for _, session in kept:
            session.close()

    def _take(self, asked_after: float) -> OracleSession | None:
        """A kept session that is alive; None if there is none."""
        while True:
            with self._lock:
                if not self._kept:
                    return None
                since, session = self._kept.pop()
            now = time.monotonic()
            idle, age = now - since, now - session.opened
            is_young = idle < KEPT_SECONDS and age < SESSION_SECONDS_MAX
            if is_young and (idle < asked_after or session.is_alive()):
                return session
            session.close()

    def _connect(self) -> OracleSession:
        session = connect(
            self._config,
            on_statement=self._on_statement,
            refusals=self._refusals(),
            insists=self._insists,
        )
        if self._check is not None:
            try:
                self._check(session)
            except BaseException:
                session.close()
                raise
        return session

    def read(self, work: Callable[[OracleSession], T]) -> T:
        """Do work that reads much from the database and lands nothing before its end; once more in
        a new session where one is lost on the way.

        Raises:
            OracleUnavailableError: It was lost at every attempt.
        """
        attempts = Retrying(
            retry=retry_if_exception_type(OracleUnavailableError),
            stop=stop_after_attempt(SESSION_ATTEMPTS),
            wait=wait_exponential(multiplier=0.5, max=10),
            reraise=True,
        )
        asked_after: float = ANSWERED_SECONDS
        for attempt in attempts:
            with attempt, self.session(asked_after=asked_after) as session:
                asked_after = 0
                return work(session)
        raise AssertionError("every attempt returns or raises")


def current_scn(session: OracleSession) -> Scn:
    """The database's present SCN."""
    return Scn(session.fetch_all(_CURRENT)[0][0])
