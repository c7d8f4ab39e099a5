"""How does work get a session of a source's database, and a new one where it is lost on the way?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from cdc_core.config import OracleConfig
from cdc_core.errors import OracleUnavailableError
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession, connect

T = TypeVar("T")

SESSION_ATTEMPTS = 3
_CURRENT = "SELECT CURRENT_SCN FROM V$DATABASE"


class OracleDatabase:
    """The database of one source. Holds no session itself, so several threads may use it.

    Args:
        config: How it is reached.
        on_statement: Called with the text of each statement before it is sent.
    """

    def __init__(
        self, config: OracleConfig, *, on_statement: Callable[[str], None] | None = None
    ) -> None:
        self._config = config
        self._on_statement = on_statement

    @contextmanager
    def session(self) -> Iterator[OracleSession]:
        """A session for the block."""
        with connect(self._config, on_statement=self._on_statement) as session:
            yield session

    def read(self, work: Callable[[OracleSession], T]) -> T:
        """Do work that reads from the database and lands nothing before its end; once more in a new session where the session
        is lost on the way.

        Raises:
            OracleUnavailableError: It was lost at every attempt.
        """
        attempts = Retrying(
            retry=retry_if_exception_type(OracleUnavailableError),
            stop=stop_after_attempt(SESSION_ATTEMPTS),
            wait=wait_exponential(multiplier=0.5, max=10),
            reraise=True,
        )
        for attempt in attempts:
            with attempt, self.session() as session:
                return work(session)
        raise AssertionError("every attempt returns or raises")


def current_scn(session: OracleSession) -> Scn:
    """The database's present SCN."""
    return Scn(session.fetch_all(_CURRENT)[0][0])
