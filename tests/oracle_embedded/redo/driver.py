"""A served database, written and mined through the unmodified driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import oracledb

from oracle_embedded.database import ADMIN, CAPTURE, OWNER, OpenDatabase, open_database
from oracle_embedded.redo import RedoSettings, Wart
from oracle_embedded.server import EmbeddedServer

PASSWORDS = {ADMIN: "admin", CAPTURE: "capture", OWNER: "owner"}
ONLINE_CATALOG = 16
NO_ROWID = 2048
_CURRENT = "select f.member from v$log l join v$logfile f on f.group# = l.group# where l.status = 'CURRENT'"
_ARCHIVED = "select name from v$archived_log where name is not null"
Row = dict[str, Any]


@dataclass(slots=True)
class Live:
    """A running database; what it opens is closed with it."""

    opened: OpenDatabase
    server: EmbeddedServer
    connections: list[Any] = field(default_factory=list)

    def connect(self, user: str = OWNER) -> Any:
        connection = oracledb.connect(user=user, password=PASSWORDS[user], dsn=self.server.dsn)
        self.connections.append(connection)
        return connection

    def admin(self, *statements: str) -> None:
        connection = self.connect(ADMIN)
        for statement in statements:
            connection.cursor().execute(statement)

    def miner(self, *, container: str = "cdb$root") -> Miner:
        connection = self.connect(CAPTURE)
        connection.cursor().execute(f"alter session set container = {container}")
        return Miner(connection)

    def fault(self, call: str) -> None:
        """``DBMS_REDOLAKE_FAULTS.…``."""
        self.admin(f"begin dbms_redolake_faults.{call}; end;")


@dataclass(slots=True)
class Miner:
    """A capture session in the root."""

    connection: Any

    def query(self, sql: str, **binds: Any) -> list[Row]:
        cursor = self.connection.cursor()
        cursor.execute(sql, binds)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def add(self, *files: str) -> None:
        for file in files:
            self.connection.cursor().callproc("dbms_logmnr.add_logfile", [file, 3])

    def add_all(self) -> None:
        """All logs: archived where they are, and the current one."""
        self.add(*(row["NAME"] for row in self.query(f"{_ARCHIVED} union all {_CURRENT}")))

    def start(self, low: int = 0, high: int = 0, options: int = ONLINE_CATALOG + NO_ROWID) -> None:
        names = {"startscn": low, "endscn": high, "options": options}
        self.connection.cursor().callproc("dbms_logmnr.start_logmnr", keyword_parameters=names)

    def end(self) -> None:
        self.connection.cursor().callproc("dbms_logmnr.end_logmnr")

    def contents(self, where: str = "1 = 1") -> list[Row]:
        return self.query(f"select * from v$logmnr_contents where {where}")

    def mine(self, low: int = 0, high: int = 0, where: str = "1 = 1") -> list[Row]:
        """Rows of all logs."""
        self.add_all()
        self.start(low, high)
        try:
            return self.contents(where)
        finally:
            self.end()


@contextmanager
def live(
    path: Path,
    *warts: Wart,
    extended_strings: bool = False,
    character_set: str = "",
    release: str = "19c",
    **settings: Any,
) -> Iterator[Live]:
    """A database with these oddities alone and full supplemental logging, for the block."""
    chosen = RedoSettings(warts=frozenset(warts), **settings)
    opened = open_database(
        path / "ora",
        passwords=PASSWORDS,
        redo_settings=chosen,
        extended_strings=extended_strings,
        character_set=character_set,
        release=release,
    )
    try:
        with EmbeddedServer(opened.engine, faults=opened.faults) as server:
            running = Live(opened, server)
            running.admin(
                "alter database add supplemental log data (all) columns",
                "grant execute on sys.dbms_redolake_faults to public",
            )
            yield running
            for connection in running.connections:
                connection.close()
    finally:
        opened.close()


def run(connection: Any, *statements: str) -> None:
    """Execute without committing."""
    for statement in statements:
        connection.cursor().execute(statement)


def operations(rows: Sequence[Row]) -> list[str]:
    """OPERATION of each row."""
    return [row["OPERATION"] for row in rows]
