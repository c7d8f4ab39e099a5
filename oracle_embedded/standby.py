"""How does a physical standby stand beside the embedded Oracle?

A second listener serves it. It is the same storage, read as of the SCN up to which redo is applied;
it takes no change (ORA-16000), has its own copies of the archived logs, and says of itself what a
standby says (:class:`~oracle_embedded.api.StandbySite`).

Known difference from Oracle: definitions of tables are those of the primary, also where their DDL
is not applied yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.api import EngineSession, Logon, StandbySite
from oracle_embedded.database import OpenDatabase


class Standby:
    """The :class:`~oracle_embedded.api.Engine` of a standby, for an
    :class:`~oracle_embedded.server.EmbeddedServer` of its own."""

    def __init__(self, primary: OpenDatabase, site: StandbySite | None = None) -> None:
        self._engine = primary.engine
        self.site = site or StandbySite()
        self.service_names: Sequence[str] = self._engine.service_names
        self.character_sets = self._engine.character_sets
        primary.redo.keep_for_standby()

    def password_of(self, user: str, service: str = "") -> str | None:
        """Users and passwords are the primary's."""
        return self._engine.password_of(user, service)

    def open_session(self, logon: Logon) -> EngineSession:
        """Start a session that reads."""
        session = self._engine.open_session(logon)
        session.standby = self.site
        return session

    def close(self) -> None:
        """The storage is the primary's."""
