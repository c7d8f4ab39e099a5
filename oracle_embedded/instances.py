"""Another instance of a cluster: a listener of its own, whose sessions write that instance's redo
thread.

The storage is the one of all instances. Sessions of the first instance come through the database's
own listener.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.api import EngineSession, Logon
from oracle_embedded.database import OpenDatabase


class Instance:
    """The :class:`~oracle_embedded.api.Engine` of an instance, for an
    :class:`~oracle_embedded.server.EmbeddedServer` of its own.

    Args:
        database: The database, open in its first instance.
        thread: The redo thread of the instance; the thread has to be open when sessions begin.
    """

    def __init__(self, database: OpenDatabase, thread: int) -> None:
        self._engine, self._redo, self._thread = database.engine, database.redo, thread
        self.service_names: Sequence[str] = self._engine.service_names
        self.character_sets = self._engine.character_sets

    def password_of(self, user: str, service: str = "") -> str | None:
        """Users and passwords are the database's."""
        return self._engine.password_of(user, service)

    def open_session(self, logon: Logon) -> EngineSession:
        """Start a session of this instance.

        Raises:
            OracleError: ORA-01034 while the instance is down, and what the database refuses.
        """
        session = self._engine.open_session(logon)
        try:
            self._redo.connect_session(session.session_id, self._thread)
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        """The storage is the database's."""
