"""An engine that answers from a script, for tests of the wire alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oracle_embedded.api import (
    BindMeta,
    ColumnMeta,
    EngineSession,
    LobCall,
    Logon,
    ObjectShape,
    OracleError,
    OraType,
    Outcome,
    ResultRows,
    Statement,
    StatementKind,
    Value,
)
from oracle_embedded.charsets import CharacterSets
from oracle_embedded.wire.placeholders import returning_positions

PATIENCE_SECONDS = 60
"""Nobody waits so long for what happens, however busy the machine is; a test that fails does."""


class FakeRows:
    """Rows from a list, or from a function that is asked for every batch."""

    def __init__(
        self,
        columns: Sequence[ColumnMeta],
        rows: Sequence[Sequence[Value]] | Callable[[int], Sequence[Sequence[Value]]],
    ) -> None:
        self.columns = columns
        self._rows = rows
        self._at = 0
        self.closed = False

    def fetch(self, count: int) -> list[Sequence[Value]]:
        if callable(self._rows):
            return list(self._rows(count))
        batch = list(self._rows[self._at : self._at + count])
        self._at += len(batch)
        return batch

    def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class FakeStatement:
    sql: str
    kind: StatementKind
    columns: Sequence[ColumnMeta]
    bind_names: Sequence[str]
    returning: Sequence[int]


@dataclass(slots=True)
class Call:
    """One execute as the engine saw it."""

    sql: str
    binds: list[list[Value]]
    metas: list[BindMeta]
    batch_errors: bool


Handler = Callable[[Call], Outcome]


@dataclass(slots=True)
class Script:
    """What a statement answers; found by the longest prefix of its text."""

    kind: StatementKind
    run: Handler
    columns: Sequence[ColumnMeta] = ()
    binds: int = 0


class FakeSession(EngineSession):
    def __init__(self, engine: FakeEngine, number: int, user: str, program: str) -> None:
        self.character_sets = engine.character_sets
        self.session_id = number
        self.serial = 7
        self.standby = None
        self.username = user
        self.round_trips = 0
        self.user = user
        self.program = program
        self.engine = engine
        self.open_transaction = False
        self.log: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.interrupted = threading.Event()
        self.closed = threading.Event()

    def set_context(self, namespace: str, values: Mapping[str, str]) -> None:
        if namespace != "CLIENTCONTEXT":
            raise OracleError(28267, "Invalid NameSpace Value")

    def set_temporary_lobs(self, count: int) -> None:
        pass

    def set_password(self, password: str, name: str = "") -> None:
        self.engine.users[self.user] = password

    def parameter(self, name: str) -> str:
        return ""

    def instance_name(self) -> str:
        return "FREE"

    def has_privilege(self, privilege: str) -> bool:
        return False

    def object_shape(self, oid: bytes) -> ObjectShape:
        raise OracleError(21700, "object does not exist or is marked for delete")

    def is_interrupted(self) -> bool:
        return self.interrupted.is_set()

    def take_cursor(self, handle: bytes) -> ResultRows:
        raise OracleError(1001, "invalid cursor")

    def give_cursor(self, rows: ResultRows) -> bytes:
        raise OracleError(1001, "invalid cursor")

    def parse(self, sql: str) -> FakeStatement:
        key = max((k for k in self.engine.scripts if sql.startswith(k)), key=len, default=None)
        if key is None:
            if "ALTER SESSION" in sql:
                return FakeStatement(sql, StatementKind.DDL, (), (), ())
            raise OracleError(942, "table or view does not exist", sql.find("missing"))
        script = self.engine.scripts[key]
        names = tuple(f"B{at}" for at in range(script.binds))
        returning = sorted(returning_positions(sql))
        return FakeStatement(sql, script.kind, script.columns, names, returning)

    def execute(
        self,
        statement: Statement,
        binds: Sequence[Sequence[Value]] = (),
        *,
        bind_metas: Sequence[BindMeta] = (),
        batch_errors: bool = False,
    ) -> Outcome:
        assert isinstance(statement, FakeStatement)
        self.log.append(statement.sql)
        if "ALTER SESSION" in statement.sql:
            return Outcome(StatementKind.DDL)
        self.interrupted.clear()
        call = Call(statement.sql, [list(row) for row in binds], list(bind_metas), batch_errors)
        self.engine.calls.append(call)
        if statement.kind is StatementKind.DML:
            self.open_transaction = True
        key = max((k for k in self.engine.scripts if statement.sql.startswith(k)), key=len)
        return self.engine.scripts[key].run(call)

    def ping(self) -> None:
        """It always could do something."""

    def commit(self) -> None:
        self.log.append("COMMIT")
        self.open_transaction = False

    def rollback(self) -> None:
        self.log.append("ROLLBACK")
        self.open_transaction = False

    def in_transaction(self) -> bool:
        return self.open_transaction

    def set_attribute(self, name: str, value: str | None) -> None:
        if name == "CURRENT_SCHEMA" and value == "NOBODY":
            raise OracleError(1435, "user does not exist")
        self.attributes[name] = value

    def interrupt(self) -> None:
        self.interrupted.set()

    def wait_for_interrupt(self) -> None:
        """Stand for a statement that runs until it is cancelled."""
        if self.interrupted.wait(PATIENCE_SECONDS):
            raise OracleError(1013, "user requested cancel of current operation")
        raise AssertionError("the statement was not interrupted")

    def read_lob(self, handle: bytes) -> tuple[OraType, bytes]:
        return self.engine.lobs[handle]

    def write_lob(self, handle: bytes, content: bytes, call: LobCall) -> None:
        raise OracleError(22920, "row containing the LOB value is not locked")

    def close(self) -> None:
        if self.open_transaction:
            self.rollback()
        self.closed.set()


@dataclass
class FakeEngine:
    character_sets: CharacterSets = field(default_factory=CharacterSets)
    service_names: Sequence[str] = ("FREEPDB1",)
    users: dict[str, str] = field(default_factory=lambda: {"SCOTT": "tiger"})
    scripts: dict[str, Script] = field(default_factory=dict)
    lobs: dict[bytes, tuple[OraType, bytes]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    sessions: list[FakeSession] = field(default_factory=list)

    def password_of(self, user: str, service: str = "") -> str | None:
        return self.users.get(user)

    def open_session(self, logon: Logon) -> FakeSession:
        if logon.as_sysdba:
            raise OracleError(1031, "insufficient privileges")
        if logon.proxy:
            raise OracleError(28150, "proxy not authorized to connect as client")
        if logon.user == "LOCKEDOUT":
            raise OracleError(1045, "user LOCKEDOUT lacks CREATE SESSION privilege; logon denied")
        session = FakeSession(self, len(self.sessions) + 1, logon.user, logon.program)
        self.sessions.append(session)
        return session

    def close(self) -> None:
        pass

    # --- scripting ---

    def on_query(
        self,
        sql: str,
        columns: Sequence[ColumnMeta],
        rows: Sequence[Sequence[Value]] | Callable[[int], Sequence[Sequence[Value]]],
        binds: int = 0,
    ) -> None:
        """Let a query return these rows at every execution."""
        self.scripts[sql] = Script(
            StatementKind.QUERY,
            lambda _call: Outcome(StatementKind.QUERY, rows=FakeRows(columns, rows)),
            columns,
            binds,
        )

    def on_statement(
        self, sql: str, run: Handler, binds: int = 0, kind: StatementKind = StatementKind.DML
    ) -> None:
        """Let a function answer a statement."""
        self.scripts[sql] = Script(kind, run, (), binds)


def column(name: str, ora_type: OraType, **facts: Any) -> ColumnMeta:
    """A column with sizes that fit its type."""
    text = ora_type in (OraType.VARCHAR, OraType.CHAR, OraType.CLOB, OraType.LONG)
    facts.setdefault("charset_form", 1 if text else 0)
    facts.setdefault("char_size", 100 if text else 0)
    facts.setdefault("size", 400 if text else 22)
    if ora_type is OraType.NUMBER:
        facts.setdefault("scale", -127)
    return ColumnMeta(name, ora_type, **facts)
