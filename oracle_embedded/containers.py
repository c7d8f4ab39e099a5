"""How do two pluggable databases stand in one container database?

Each is a storage of its own, so owners, tables, object numbers and transaction numbers of both can
be equal, as in Oracle. They share the SCNs, the lock of the writer, and the logs: a log that is
switched ends in both at one SCN, and LogMiner in the root shows the redo of both, each row with its
container. Each is served by a listener of its own; either leads to the root, and its sessions
change from one container to another (``ALTER SESSION SET CONTAINER``).

One may be closed (``DBMS_REDOLAKE_FAULTS.CLOSE_CONTAINER``): a session may still change to it, and
has ORA-01109 for what it asks there (seen by others with SYSDBA on 19c and 26ai; that other users
are not refused before is not known). One may be dropped (:func:`drop`): ORA-65011. Its redo stays
in the logs.

Known differences from Oracle: a session has another SID in each container, and begins there with
the settings of a new one; V$TRANSACTION and the size of a log are those of the container through
which the root was reached; rows of the other one are named by the present dictionary alone; a
session whose container is closed is not ended.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from oracle_embedded.api import (
    BindMeta,
    EngineSession,
    Logon,
    OracleError,
    Outcome,
    Statement,
    Value,
)
from oracle_embedded.database import OpenDatabase
from oracle_embedded.engine.database import ROOT, Database
from oracle_embedded.engine.session import Session


def plug_in(database: OpenDatabase, other: OpenDatabase) -> None:
    """Make ``other`` a pluggable database beside that of ``database``; both are new and served to
    nobody yet."""
    first, second = database.engine, other.engine
    with first.store.lock, second.store.lock:
        clock = first.store.clock
        clock.value = max(clock.value, second.store.clock.value)
        second.store.clock = clock
        second.store.lock = first.store.lock
        second.store.changed = threading.Condition(first.store.lock)
        with second.writing():
            other.redo.sink.writer.join(database.redo.sink.writer)
    database.redo.contents.beside.append(other.redo.contents)
    other.redo.contents.beside.append(database.redo.contents)
    second.closed_containers = first.closed_containers
    first.other_containers[second.container_name] = second.container_id
    second.other_containers[first.container_name] = first.container_id


def drop(database: OpenDatabase, other: OpenDatabase) -> None:
    """DROP PLUGGABLE DATABASE ``other``: the one beside it does not know it any more."""
    del database.engine.other_containers[other.engine.container_name]


class Containers:
    """The :class:`~oracle_embedded.api.Engine` of a listener whose sessions may change to the
    pluggable databases that ``beside`` names, its own among them. The mapping is looked at with
    each change, so that one can be plugged in later."""

    def __init__(self, own: Database, beside: Mapping[str, Database]) -> None:
        self._own, self._beside = own, beside
        self.service_names: Sequence[str] = own.service_names
        self.character_sets = own.character_sets

    def password_of(self, user: str, service: str = "") -> str | None:
        """As the container of the service has the user."""
        return self._own.password_of(user, service)

    def open_session(self, logon: Logon) -> EngineSession:
        """Start a session in the container that the service leads to."""
        session = self._own.open_session(logon)
        return cast(EngineSession, MovingSession(session, self._own, self._beside))

    def close(self) -> None:
        """The storages are closed by whoever opened them."""


class MovingSession:
    """A session that has one of the engine's sessions in each pluggable database where it has been,
    and works in one of them."""

    def __init__(self, session: Session, own: Database, beside: Mapping[str, Database]) -> None:
        self._present = session
        self._beside = beside
        self._been = {own.container_name: session, ROOT: session}
        self._has_moved = False
        session.move = self._move

    def __getattr__(self, name: str) -> Any:
        return getattr(self._present, name)

    @property
    def round_trips(self) -> int:
        """Calls of the client."""
        return self._present.round_trips

    @round_trips.setter
    def round_trips(self, count: int) -> None:
        self._present.round_trips = count

    def parse(self, sql: str) -> Statement:
        """Parse in the present container."""
        is_closed = self._present.container in self._present.database.closed_containers
        if is_closed and not sql.lstrip().upper().startswith("ALTER SESSION"):
            raise OracleError(1109, "database not open")
        return self._present.parse(sql)

    def execute(
        self,
        statement: Any,
        binds: Sequence[Sequence[Value]] = (),
        *,
        bind_metas: Sequence[BindMeta] = (),
        batch_errors: bool = False,
    ) -> Outcome:
        """Run a statement; one that was parsed in another container is parsed again."""
        if self._has_moved:
            statement = self.parse(statement.sql)
        return self._present.execute(
            statement, binds, bind_metas=bind_metas, batch_errors=batch_errors
        )

    def close(self) -> None:
        """End it in every container."""
        for session in self._been.values():
            session.close()

    def _move(self, name: str) -> None:
        before = self._present
        found = self._been.get(name)
        if found is None:
            found = self._beside[name].open_session(replace(before.logon, service=name))
            found.move = self._move
            self._been[name] = found
        found.container = name
        self._has_moved |= found is not before
        self._present = found
