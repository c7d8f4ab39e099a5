"""How does a test get an Oracle database of its own?

With :func:`oracle`: a database in a folder, its server on loopback, and a state to which it can
return between tests. :mod:`oracle_embedded.pytest` makes fixtures of it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oracle_embedded.database import ADMIN, CAPTURE, OWNER, OpenDatabase, open_database
from oracle_embedded.engine.run.security import SYS
from oracle_embedded.faults import FaultRegistry
from oracle_embedded.redo import Wart
from oracle_embedded.server import EmbeddedServer

__all__ = ["ADMIN", "CAPTURE", "OWNER", "SYS", "EmbeddedOracle", "KeptState", "oracle"]


@dataclass(frozen=True, slots=True)
class KeptState:
    """All that a database was at one moment: users, tables, rows, redo. Of one
    :class:`EmbeddedOracle`."""

    folder: Path


class EmbeddedOracle:
    """A running database, for one process and its children.

    The users are ``DEMO``, who owns what tests make, ``REDOLAKE_ADMIN`` with the role DBA,
    ``C##REDOLAKE`` with what LogMiner needs, and ``SYS``.

    Args:
        folder: An empty folder, for the data and kept states.
        options: As :func:`oracle_embedded.database.open_database` takes them: ``release``,
            ``character_set``, ``time_zone`` and more.
    """

    user = OWNER

    def __init__(self, folder: Path, **options: Any) -> None:
        self._folder, self._options, self._kept = folder, options, 0
        self.seconds_ahead = 0.0
        """By how much the database's clock is ahead of this machine's; a test may raise it."""
        self._database, self._server = self._open(port=0)

    def _open(self, port: int) -> tuple[OpenDatabase, EmbeddedServer]:
        database = open_database(
            self._folder / "data", now=lambda: time.time() + self.seconds_ahead, **self._options
        )
        server = EmbeddedServer(database.engine, port=port, faults=database.faults)
        try:
            server.start()
        except OSError:
            database.close()
            raise
        return database, server

    @property
    def dsn(self) -> str:
        """Easy Connect string; the same for as long as the database lives."""
        return self._server.dsn

    @property
    def port(self) -> int:
        """The server's port on loopback."""
        return self._server.port

    @property
    def password(self) -> str:
        """Of ``DEMO``."""
        return self._database.password(OWNER)

    def password_of(self, user: str) -> str:
        """Of one of the first users.

        Raises:
            KeyError: There is no such user.
        """
        return self._database.password(user)

    def connect(self, user: str = OWNER) -> Any:
        """A new connection of python-oracledb, which must be installed; SYS comes AS SYSDBA.

        Raises:
            KeyError: The user is none of the first ones.
        """
        import oracledb

        mode = oracledb.AUTH_MODE_SYSDBA if user == SYS else oracledb.AUTH_MODE_DEFAULT
        password = self.password_of(user)
        return oracledb.connect(user=user, password=password, dsn=self.dsn, mode=mode)

    def run(self, *statements: str, user: str = OWNER) -> None:
        """Run statements in one transaction, and commit."""
        with self.connect(user) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()

    @property
    def faults(self) -> FaultRegistry:
        """What goes wrong on purpose: ``faults.arm(Fault(FaultKind.ORA_ERROR, code=1555, …))``."""
        return self._database.faults

    def show(self, oddity: Wart | str, *, shown: bool = True) -> None:
        """Show an oddity of a real LogMiner by its name, or do not.

        Raises:
            ValueError: There is no oddity of that name.
        """
        self._database.redo.set_wart(Wart(oddity), shown=shown)

    def keep(self) -> KeptState:
        """What the database is now. Connections are closed, and their transactions rolled back."""
        self._kept += 1
        state = KeptState(self._folder / f"kept-{self._kept}")
        self._between(lambda data: shutil.copytree(data, state.folder))
        return state

    def restore(self, state: KeptState) -> None:
        """Be again what the database was, with no fault armed and the clock of this machine; the
        SCN goes back too. Connections are closed; the address stays."""

        def replaced(data: Path) -> None:
            shutil.rmtree(data)
            shutil.copytree(state.folder, data)
            self.seconds_ahead = 0.0

        self._between(replaced)

    def _between(self, work: Any) -> None:
        """Do something with the data while nobody has it open."""
        port = self.port
        self.close()
        work(self._folder / "data")
        self._database, self._server = self._open(port)

    def close(self) -> None:
        """End all connections and release the data. May be called twice."""
        self._server.stop()
        self._database.close()


@contextmanager
def oracle(folder: Path | None = None, **options: Any) -> Iterator[EmbeddedOracle]:
    """A database that is gone when the block ends; in a temporary folder unless one is given.

    Args:
        folder: An empty folder, which stays.
        options: As for :class:`EmbeddedOracle`.
    """
    with TemporaryDirectory(prefix="oracle-embedded-") as own:
        database = EmbeddedOracle(folder or Path(own), **options)
        try:
            yield database
        finally:
            database.close()
