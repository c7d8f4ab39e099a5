"""A database without an engine: just enough of a DatabaseView to write and mine redo."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.api import (
    ColumnMeta,
    EngineSession,
    OraType,
    RowChange,
    RowOp,
    StoredColumn,
    TableVersion,
    TransactionInfo,
    Value,
)
from oracle_embedded.redo import Redo, RedoSettings, open_redo
from oracle_embedded.values import number_from_text
from tests.oracle_embedded.encodings import int_from_number
from tests.oracle_embedded.wire import fake_engine

NLS = {
    "NLS_DATE_FORMAT": "YYYY-MM-DD HH24:MI:SS",
    "NLS_TIMESTAMP_FORMAT": "YYYY-MM-DD HH24:MI:SS.FF9",
    "NLS_TIMESTAMP_TZ_FORMAT": "YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM",
    "NLS_NUMERIC_CHARACTERS": ".,",
    "TIME_ZONE": "+00:00",
    "CONTAINER": "CDB$ROOT",
}


class FakeSession(fake_engine.FakeSession):
    """A session that only has settings and privileges."""

    def __init__(self, **settings: str) -> None:
        super().__init__(fake_engine.FakeEngine(), 17, "C##MINER", "test")
        self.serial = 4711
        self.settings = {**NLS, **settings}
        self.privileges = {"LOGMINING"}

    def parameter(self, name: str) -> str:
        return self.settings[name]

    def has_privilege(self, privilege: str) -> bool:
        return privilege in self.privileges


class FakeDatabase:
    """SCNs, transactions and a SQLite file."""

    database_name = "ORCLCDB"
    instance_name = "ORCLCDB"
    container_name = "ORCLPDB1"
    container_id = 3
    container_dbid = 30

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scn = 1000
        self.closed_containers: set[str] = set()
        self.tables: dict[int, TableVersion] = {}
        self.open: dict[bytes, TransactionInfo] = {}
        self.system: dict[str, Callable[[EngineSession], None]] = {}
        self.database: dict[str, Callable[[EngineSession], None]] = {}
        self.redo: Redo | None = None
        self._lock = threading.RLock()
        self._depth = 0
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.text_factory = bytes  # as the engine's connections have it
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")

    def current_scn(self) -> int:
        return self.scn

    def zone_at(self, scn: int) -> str:
        assert scn
        return "+00:00"

    def zone_minutes(self, zone: str, moment: bytes) -> int:
        assert (zone, bool(moment)) == ("+00:00", True)
        return 0

    def next_scn(self) -> int:
        self.scn += 1
        return self.scn

    def connection(self) -> sqlite3.Connection:
        return self._connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with closing(self.read_connection()) as connection:
            yield connection

    def read_connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{self.path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = bytes
        return connection

    def segment_version(self, object_id: int) -> TableVersion | None:
        return self.tables.get(object_id)

    def segment_versions(self) -> dict[int, TableVersion]:
        return dict(self.tables)

    def ended_statistics(self) -> dict[str, int]:
        return {"user commits": 3}

    def session_statistics(self) -> dict[int, dict[str, int]]:
        return {}

    def open_transactions(self) -> Sequence[TransactionInfo]:
        return list(self.open.values())

    def alter_system_hooks(self) -> dict[str, Callable[[EngineSession], None]]:
        return self.system

    def alter_database_hooks(self) -> dict[str, Callable[[EngineSession], None]]:
        return self.database

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._lock:
            self._depth += 1
            try:
                if self._depth == 1:
                    self._connection.execute("BEGIN IMMEDIATE")
                yield
                if self._depth == 1:
                    if self.redo is not None:
                        self.redo.sink.flush()
                    self._connection.execute("COMMIT")
            except BaseException:
                if self._depth == 1:
                    self._connection.execute("ROLLBACK")
                    if self.redo is not None:
                        self.redo.sink.reload()
                raise
            finally:
                self._depth -= 1

    def close(self) -> None:
        self._connection.close()


class World:
    """A database with redo, and verbs to write and mine it."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.now = 1_700_000_000.0
        settings.setdefault("clock", lambda: self.now)
        settings.setdefault("warts", frozenset())  # tests show one oddity at a time
        self.settings = RedoSettings(**settings)
        self.path = path
        self.xids = 0
        self._start()

    def _start(self) -> None:
        self.db = FakeDatabase(self.path)
        self.redo = open_redo(self.db, settings=self.settings)
        self.db.redo = self.redo
        self.session = FakeSession()

    def reopen(self, *, scn: int) -> None:
        """Open again after the process died: nothing is closed or flushed."""
        old = self.db
        self._start()
        self.db.scn = scn
        self.db.tables = old.tables

    # --- writing ---------------------------------------------------------------------------------

    def supplemental(self, *clauses: str) -> None:
        for clause in clauses:
            self.db.database[f"ADD SUPPLEMENTAL LOG DATA{clause}"](self.session)

    def begin(self, username: str = "APP", client_id: str | None = None) -> TransactionInfo:
        with self.db.writing():
            self.xids += 1
            xid = (
                (5).to_bytes(2, "little")
                + (17).to_bytes(2, "little")
                + (1000 + self.xids).to_bytes(4, "little")
            )
            tx = TransactionInfo(xid, 42, 7, username, client_id, self.db.next_scn(), self.now)
            self.db.open[xid] = tx
            self.redo.sink.begin(tx)
        return tx

    def change(
        self,
        tx: TransactionInfo,
        table: TableVersion,
        op: RowOp,
        before: dict[str, Value] | None = None,
        after: dict[str, Value] | None = None,
        *,
        row_id: str = "AAAR3sAAEAAAACXAAA",
        rollback: bool = False,
        scn: int | None = None,
    ) -> int:
        ids = {column.name: column.internal_id for column in table.columns}
        with self.db.writing():
            scn = self.db.next_scn() if scn is None else scn
            self.redo.sink.change(
                RowChange(
                    scn,
                    tx.xid,
                    op,
                    rollback,
                    table,
                    row_id,
                    None if before is None else {ids[k]: v for k, v in before.items()},
                    None if after is None else {ids[k]: v for k, v in after.items()},
                )
            )
        return scn

    def insert(
        self, tx: TransactionInfo, table: TableVersion, row: dict[str, Value], **more: Any
    ) -> int:
        return self.change(tx, table, RowOp.INSERT, None, row, **more)

    def commit(self, tx: TransactionInfo) -> int:
        with self.db.writing():
            scn = self.db.next_scn()
            self.redo.sink.commit(tx, scn, self.now)
            del self.db.open[tx.xid]
        return scn

    def undone(self, tx: TransactionInfo) -> None:
        """A rollback to a savepoint has ended."""
        with self.db.writing():
            self.redo.sink.undone(tx)

    def rollback(self, tx: TransactionInfo) -> int:
        with self.db.writing():
            scn = self.db.next_scn()
            self.redo.sink.rollback(tx, scn, self.now)
            del self.db.open[tx.xid]
        return scn

    def ddl(
        self, text: str, owner: str = "APP", table: str | None = "T", object_id: int = 71000
    ) -> int:
        with self.db.writing():
            self.xids += 1
            xid = (6).to_bytes(2, "little") + bytes(2) + (self.xids).to_bytes(4, "little")
            scn = self.db.next_scn()
            tx = TransactionInfo(xid, 42, 7, "APP", None, scn, self.now)
            self.redo.sink.ddl(tx, scn, self.now, text, owner, table, object_id)
        return scn

    # --- reading ---------------------------------------------------------------------------------

    def call(self, name: str, *, session: FakeSession | None = None, **arguments: Any) -> None:
        package, _, procedure = name.partition(".")
        found = next(p for p in self.redo.procedures if (p.package, p.name) == (package, procedure))
        values = {p.name: p.default for p in found.parameters}
        found.run(session or self.session, values | {k.upper(): v for k, v in arguments.items()})

    def constant(self, name: str) -> int:
        return next(c.value for c in self.redo.constants if c.name == name)

    def view(
        self,
        name: str,
        *constraints: tuple[str, str, Value],
        columns: Sequence[str] | None = None,
        session: FakeSession | None = None,
    ) -> list[dict[str, Any]]:
        table = next(t for t in self.redo.virtual_tables if t.name == name)
        wanted = None if columns is None else frozenset(columns)
        rows = table.rows(session or self.session, constraints, wanted)
        return [
            {
                meta.name: plain(meta, value)
                for meta, value in zip(table.columns, row, strict=True)
                if columns is None or meta.name in columns
            }
            for row in rows
        ]

    def add_all_logs(self, session: FakeSession | None = None) -> None:
        for log in self.view("V$ARCHIVED_LOG"):
            if log["NAME"] is not None:
                self.call("DBMS_LOGMNR.ADD_LOGFILE", logfilename=log["NAME"], session=session)
        current = next(log for log in self.view("V$LOG") if log["STATUS"] == "CURRENT")
        member = next(f for f in self.view("V$LOGFILE") if f["GROUP#"] == current["GROUP#"])
        self.call("DBMS_LOGMNR.ADD_LOGFILE", logfilename=member["MEMBER"], session=session)

    def start(self, *options: str, session: FakeSession | None = None, **arguments: Any) -> None:
        bits = sum(self.constant(name) for name in options)
        self.call("DBMS_LOGMNR.START_LOGMNR", options=bits, session=session, **arguments)

    def mine(
        self, *options: str, session: FakeSession | None = None, **arguments: Any
    ) -> list[dict[str, Any]]:
        """All rows of all logs, with the online catalog."""
        state = session or self.session
        if any(self.view("V$LOGMNR_LOGS", session=state)):
            self.call("DBMS_LOGMNR.END_LOGMNR", session=state)
        self.add_all_logs(state)
        self.start("DICT_FROM_ONLINE_CATALOG", *options, session=state, **arguments)
        return self.view("V$LOGMNR_CONTENTS", session=state)

    def redo_texts(self, *options: str, **arguments: Any) -> list[str]:
        """SQL_REDO of row changes, without ROWID."""
        rows = self.mine("NO_ROWID_IN_STMT", *options, **arguments)
        return [row["SQL_REDO"] for row in rows if row["OPERATION_CODE"] in (1, 2, 3, 9, 10, 11)]


def plain(meta: ColumnMeta, value: Value) -> Any:
    if value is None:
        return None
    if meta.type is OraType.NUMBER:
        return int_from_number(value)
    return value.decode() if meta.type is OraType.VARCHAR else value


def column(
    at: int,
    name: str,
    kind: OraType,
    *,
    precision: int | None = None,
    scale: int | None = None,
    national: bool = False,
) -> StoredColumn:
    form = 2 if national else 1 if kind in (OraType.VARCHAR, OraType.CHAR, OraType.CLOB) else 0
    return StoredColumn(
        internal_id=at,
        name=name,
        data_type=kind.name,
        type=kind,
        length=100,
        char_length=100,
        char_used=None,
        precision=precision,
        scale=scale,
        nullable=True,
        default_text=None,
        charset_form=form,
    )


def table(
    *columns: StoredColumn,
    key: tuple[str, ...] = ("ID",),
    name: str = "T",
    object_id: int = 71000,
    version: int = 1,
    supplemental_all: bool = False,
    supplemental_primary_key: bool = False,
) -> TableVersion:
    return TableVersion(
        object_id=object_id,
        data_object_id=object_id,
        object_version=version,
        owner="APP",
        name=name,
        columns=columns,
        key_columns=key,
        supplemental_all=supplemental_all,
        supplemental_primary_key=supplemental_primary_key,
        scn_from=1,
    )


def num(text: str | int) -> bytes:
    return number_from_text(str(text))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "ora.db")
    yield made
    made.db.close()


@pytest.fixture
def people() -> TableVersion:
    """ID, NAME, AGE with ID as key."""
    return table(
        column(1, "ID", OraType.NUMBER, precision=10, scale=0),
        column(2, "NAME", OraType.VARCHAR),
        column(3, "AGE", OraType.NUMBER),
    )
