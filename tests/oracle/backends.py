"""The databases that a suite runs against: the embedded Oracle always, a real one where the environment names it.

``REDOLAKE_TEST_ORACLE_DSN`` names the service, ``…_USER`` and ``…_PASSWORD`` the capture user, ``…_ADMIN`` and
``…_ADMIN_PASSWORD`` a user that may create users and switch log files. The suite creates the schema ``DEMO`` there, refuses one
that exists, and drops it. What only the embedded Oracle can do (faults, lost logs, a held archiver) is asked of
:func:`tests.oracle.embedded.running_oracle`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import oracledb
import pytest

from cdc_core.config import SourceConfig
from cdc_core.oracle.session import OracleSession, connect
from oracle_embedded.database import ADMIN, OWNER
from tests.oracle.embedded import running_oracle, source_config

VARIABLE = "REDOLAKE_TEST_ORACLE_"
BACKENDS = [
    pytest.param("embedded", id="embedded"),
    pytest.param("real", id="real", marks=pytest.mark.oracle),
]
"""What a fixture is parametrised with; :func:`open_backend` opens it."""


class Database(Protocol):
    """A database with an empty schema ``DEMO`` and a capture user."""

    sent: list[str]
    """What sessions of :meth:`capture_session` have sent."""

    def owner(self) -> Any:
        """A new connection of the schema's owner."""

    def run(self, *statements: str, user: str = OWNER) -> None:
        """Run statements in one transaction and commit."""

    def config(self, path: Path, *tables: str, **more: Any) -> SourceConfig:
        """A source of this database with local folders below ``path``."""

    def capture_session(self, config: SourceConfig) -> OracleSession:
        """A session as capture opens it."""

    def login(self, user: str, password: str | None = None) -> dict[str, str]:
        """``oracle`` of a configuration with another user, or a wrong password."""


@dataclass(slots=True)
class RealOracle:
    """A real database. Its windows close at log switches, which bring all redo into the log."""

    dsn: str
    passwords: dict[str, str]
    capture: str
    admin: str
    sent: list[str] = field(default_factory=list)
    _owners: list[Any] = field(default_factory=list)

    @classmethod
    def from_environment(cls) -> RealOracle:
        """The database that the environment names."""
        wanted = ("DSN", "USER", "PASSWORD", "ADMIN", "ADMIN_PASSWORD")
        missing = [VARIABLE + name for name in wanted if VARIABLE + name not in os.environ]
        if missing:
            raise LookupError(f"a real Oracle needs {', '.join(missing)}: see CONTRIBUTING.md")
        dsn, user, password, admin, admin_password = (
            os.environ[VARIABLE + name] for name in wanted
        )
        passwords = {user: password, admin: admin_password, OWNER: f"Rl1{secrets.token_hex(8)}"}
        return cls(dsn, passwords, user, admin)

    def owner(self) -> Any:
        made = oracledb.connect(user=OWNER, password=self.passwords[OWNER], dsn=self.dsn)
        self._owners.append(made)
        return made

    def run(self, *statements: str, user: str = OWNER) -> None:
        name = self.admin if user == ADMIN else user
        with oracledb.connect(user=name, password=self.passwords[name], dsn=self.dsn) as connection:
            cursor = connection.cursor()
            for statement in statements:
                if statement.startswith("ALTER SYSTEM"):
                    _into_root(cursor)
                cursor.execute(statement)
            connection.commit()

    def config(self, path: Path, *tables: str, **more: Any) -> SourceConfig:
        oracle = self.login(self.capture)
        return source_config(
            path, *tables, **{"oracle": oracle, "capture": {"close_at": "completed_logs"}, **more}
        )

    def capture_session(self, config: SourceConfig) -> OracleSession:
        return connect(config.oracle, on_statement=self.sent.append)

    def login(self, user: str, password: str | None = None) -> dict[str, str]:
        return {"dsn": self.dsn, "user": user, "password": password or self.passwords[user]}

    def make_schema(self) -> None:
        """Create the schema's owner; whoever has the name already keeps it."""
        self.run(
            f'CREATE USER {OWNER} IDENTIFIED BY "{self.passwords[OWNER]}"',
            f"GRANT CREATE SESSION, CREATE TABLE, UNLIMITED TABLESPACE TO {OWNER}",
            user=ADMIN,
        )

    def drop_schema(self) -> None:
        """Drop the owner with all tables, which nobody may be logged on for."""
        for connection in self._owners:
            with suppress(oracledb.InterfaceError):  # closed already
                connection.close()
        self.run(f"DROP USER {OWNER} CASCADE", user=ADMIN)


@contextmanager
def open_backend(kind: str) -> Iterator[Database]:
    """A database of that kind for the block, with a fresh schema."""
    if kind == "embedded":
        with running_oracle() as oracle:
            yield oracle
        return
    real = RealOracle.from_environment()
    real.make_schema()
    try:
        yield real
    finally:
        real.drop_schema()


def _into_root(cursor: Any) -> None:
    """Log files belong to the whole database, not to a container."""
    cursor.execute("SELECT SYS_CONTEXT('USERENV', 'CDB_NAME') FROM DUAL")
    if cursor.fetchone()[0] is not None:
        cursor.execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
