"""The seeded load of the prover: what an unkind application does to a few tables, through the real driver.

One :class:`Load` is deterministic for its seed. Each ``step`` runs one transaction (or a part of the long one) and counts what
it committed, so that the change log can be held against the load's own record.
"""

from __future__ import annotations

import random
import string
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import oracledb

from tests.invariants.hidden import MARK
from tests.invariants.shapes import KEYS as SHAPED_KEYS

DDL = (
    """CREATE TABLE ACCOUNTS (
        ID NUMBER(10) NOT NULL, BRANCH CHAR(4) NOT NULL, OWNER_NAME VARCHAR2(80 CHAR), BALANCE NUMBER(14,2),
        RATE NUMBER, SCORE BINARY_DOUBLE, OPENED DATE, TOUCHED TIMESTAMP(6), STAMP RAW(16), BIG NUMBER(38),
        CONSTRAINT ACCOUNTS_PK PRIMARY KEY (ID, BRANCH))""",
    """CREATE TABLE NOTES (
        NOTE_ID VARCHAR2(40) NOT NULL, TITLE VARCHAR2(200 CHAR), BODY CLOB, WEIGHT NUMBER(9,3),
        CONSTRAINT NOTES_PK PRIMARY KEY (NOTE_ID))""",
    f"""CREATE TABLE EVENTS (
        EVENT_ID NUMBER(18) NOT NULL, KIND VARCHAR2(20), AT TIMESTAMP(3), AMOUNT NUMBER(20,4), PIN VARCHAR2(40) DEFAULT '{MARK}',
        CONSTRAINT EVENTS_PK PRIMARY KEY (EVENT_ID))""",
)
TABLES = ("ACCOUNTS", "NOTES", "EVENTS")
KEYS = {
    "ACCOUNTS": ("ID", "BRANCH"), "NOTES": ("NOTE_ID",), "EVENTS": ("EVENT_ID",), "WAREHOUSE": ("W_ID",),
    "DISTRICT": ("D_W_ID", "D_ID"), "ORDERS": ("O_W_ID", "O_D_ID", "O_ID"), "NEW_ORDER": ("NO_W_ID", "NO_D_ID", "NO_O_ID"),
    "ORDER_LINE": ("OL_W_ID", "OL_D_ID", "OL_O_ID", "OL_NUMBER"), "SHIFTED": ("ID",), "GROWING": ("ID",), "PASSING": ("ID",),
    "LOOSE": ("K", "L"), "BARE": ("N",), **SHAPED_KEYS,
}  # fmt: skip
"""Columns that name a row. Of BARE nobody knows that but the load: it has no key, and the pipeline knows its rows by ROWID."""
WITH_LOB = frozenset({"NOTES"})
BRANCHES = ("N001", "S2", "E", "W999")
TEXTS = (
    "O'Neill",
    "a''b",
    "naïve — ✓",
    "  padded ",
    "x" * 70,
    "tab\there",
    "line\nbreak",
    "-- no comment",
    "null",
    "NULL",
)
EPOCH = datetime(2013, 1, 1)


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed transaction by the load's own record: its changes by (table, operation), and the SCNs that were current
    before and after its COMMIT, which lies between them. ``unseen``: of so many deleted rows nobody needs to know, since they came without redo
    and may have gone before a chunk read them."""

    before: int
    after: int
    changes: Counter[tuple[str, str]]
    unseen: int = 0


@dataclass
class Load:
    """A seeded sequence of transactions on the three tables of one schema.

    ``clock`` gives the database's current SCN, through a session of its own.
    """

    connection: oracledb.Connection
    seed: int
    clock: Callable[[], int]
    committed: list[Committed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.accounts: set[tuple[int, str]] = set()
        self.notes: set[str] = set()
        self.events: set[int] = set()
        self.deleted_accounts: list[tuple[int, str]] = []
        self.next_event = 1
        self.only: str | None = None
        """The one table that changes for now."""
        self.is_undone = False
        """What is changed now is rolled back to a savepoint, of which LogMiner shows no undo of LOBs outside the row."""
        self._kinds = [
            ("ACCOUNTS", 22, self._insert_account),
            ("ACCOUNTS", 20, self._update_account),
            ("ACCOUNTS", 10, self._delete_account),
            ("ACCOUNTS", 8, self._rekey_account),
            ("NOTES", 10, self._insert_note),
            ("NOTES", 15, self._update_note),
            ("NOTES", 4, self._move_new_note),
            ("EVENTS", 5, self._insert_event),
            ("EVENTS", 10, self._delete_event),
        ]
        self._pending: Counter[tuple[str, str]] = Counter()
        self._long: Counter[tuple[str, str]] = Counter()

    # -- set-up ----------------------------------------------------------------------------------------------------

    def create(self, rows: int) -> None:
        """Create the tables with ALL COLUMN logging and fill them."""
        with self.connection.cursor() as cursor:
            for statement in DDL:
                cursor.execute(statement)
            for table in TABLES:
                cursor.execute(f"ALTER TABLE {table} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
        for _ in range(rows):
            self._insert_account(self.connection)
            self._insert_event(self.connection)
        for _ in range(rows // 4):
            self._insert_note(self.connection)
        self._commit(self.connection, self._pending)

    # -- one transaction -------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Run one transaction: commit, roll back, or roll back to savepoints on the way."""
        saved = self._state()
        kind = self.random.random()
        for _ in range(self.random.choice((1, 1, 2, 5, 20))):
            self._change(self.connection)
        if kind < 0.3:
            self._savepoint()
        if kind > 0.9:
            self.connection.rollback()
            self._restore(saved)
            return
        self._commit(self.connection, self._pending)

    def commit_long_transaction(self, connection: oracledb.Connection) -> None:
        """End what :meth:`long_transaction` began."""
        self._commit(connection, self._long)

    def _commit(self, connection: oracledb.Connection, changes: Counter[tuple[str, str]]) -> None:
        before = self.clock()
        connection.commit()
        self.committed.append(Committed(before, self.clock(), Counter(changes)))
        changes.clear()

    def _savepoint(self) -> None:
        saved = self._state()
        with self.connection.cursor() as cursor:
            cursor.execute("SAVEPOINT before_more")
            self.is_undone = True
            for _ in range(self.random.randint(1, 6)):
                self._change(self.connection)
            self.is_undone = False
            cursor.execute("ROLLBACK TO SAVEPOINT before_more")
        self._restore(saved)
        for _ in range(self.random.randint(0, 2)):
            self._change(self.connection)

    def long_transaction(self, connection: oracledb.Connection, part: int) -> None:
        """A part of a transaction that stays open over many windows, on keys of its own."""
        with connection.cursor() as cursor:
            base = 10_000_000 + part * 10
            for offset in range(3):
                cursor.execute(
                    "INSERT INTO EVENTS (EVENT_ID, KIND, AT, AMOUNT) VALUES (:1, :2, :3, :4)",
                    [base + offset, "long", EPOCH, Decimal(part)],
                )
            if part:
                cursor.execute(
                    "UPDATE EVENTS SET AMOUNT = AMOUNT + 0.5 WHERE EVENT_ID = :1", [base - 10]
                )
                cursor.execute("DELETE FROM EVENTS WHERE EVENT_ID = :1", [base - 9])
        self._long += Counter({("EVENTS", "c"): 3})
        if part:
            self._long += Counter({("EVENTS", "u"): 1, ("EVENTS", "d"): 1})

    # -- changes ---------------------------------------------------------------------------------------------------

    def _change(self, connection: oracledb.Connection) -> None:
        kinds = [kind for kind in self._kinds if self.only in (None, kind[0])]
        [(_, _, change)] = self.random.choices(kinds, [weight for _, weight, _ in kinds])
        change(connection)

    def _run(
        self, connection: oracledb.Connection, table: str, op: str, sql: str, binds: list[Any]
    ) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, binds)
            if cursor.rowcount != 1:
                raise AssertionError(f"{op} on {table} changed {cursor.rowcount} rows")
        self._pending[table, op] += 1

    def _insert_account(self, connection: oracledb.Connection) -> None:
        again = self.deleted_accounts and self.random.random() < 0.5
        if again:
            key = self.deleted_accounts.pop(self.random.randrange(len(self.deleted_accounts)))
        else:
            key = (self.random.randrange(1, 1_000_000), self.random.choice(BRANCHES).ljust(4))
        if key in self.accounts:
            return
        self.accounts.add(key)
        self._run(
            connection,
            "ACCOUNTS",
            "c",
            "INSERT INTO ACCOUNTS (ID, BRANCH, OWNER_NAME, BALANCE, RATE, SCORE, OPENED, TOUCHED, STAMP, BIG)"
            " VALUES (:1, :2, :3, :4, :5, TO_BINARY_DOUBLE(:6), :7, TO_TIMESTAMP(:8, 'YYYY-MM-DD HH24:MI:SS.FF'), :9, :10)",
            [
                *key, self._text(), self._money(), self._rate(), self._double(), self._date(), self._stamp(), self._raw(),
                self._big(),
            ],
        )  # fmt: skip

    def _update_account(self, connection: oracledb.Connection) -> None:
        if not self.accounts:
            return
        key = self._pick(self.accounts)
        column, value = self.random.choice(
            [
                ("OWNER_NAME", self._text()), ("BALANCE", self._money()), ("RATE", self._rate()), ("OPENED", self._date()),
                ("STAMP", self._raw()), ("BIG", self._big()), ("BALANCE", None),
            ]
        )  # fmt: skip
        self._run(
            connection,
            "ACCOUNTS",
            "u",
            f"UPDATE ACCOUNTS SET {column} = :1 WHERE ID = :2 AND BRANCH = :3",
            [value, *key],
        )

    def _delete_account(self, connection: oracledb.Connection) -> None:
        if not self.accounts:
            return
        key = self._pick(self.accounts)
        self.accounts.discard(key)
        self.deleted_accounts.append(key)
        self._run(
            connection,
            "ACCOUNTS",
            "d",
            "DELETE FROM ACCOUNTS WHERE ID = :1 AND BRANCH = :2",
            [*key],
        )

    def _rekey_account(self, connection: oracledb.Connection) -> None:
        if not self.accounts:
            return
        old, new = (
            self._pick(self.accounts),
            (self.random.randrange(1, 1_000_000), self.random.choice(BRANCHES).ljust(4)),
        )
        if new in self.accounts:
            return
        self.accounts.discard(old)
        self.accounts.add(new)
        self._run(
            connection,
            "ACCOUNTS",
            "u",
            "UPDATE ACCOUNTS SET ID = :1, BRANCH = :2 WHERE ID = :3 AND BRANCH = :4",
            [*new, *old],
        )

    def _insert_note(self, connection: oracledb.Connection) -> None:
        key = "".join(self.random.choices(string.ascii_letters + "'-ß", k=12))
        if key in self.notes:
            return
        self.notes.add(key)
        self._run(
            connection,
            "NOTES",
            "c",
            "INSERT INTO NOTES (NOTE_ID, TITLE, BODY, WEIGHT) VALUES (:1, :2, :3, :4)",
            [
                key,
                self._text(),
                self._body(),
                Decimal(self.random.randrange(-(10**6), 10**6)) / 1000,
            ],
        )

    def _move_new_note(self, connection: oracledb.Connection) -> None:
        """A row with a LOB comes, and its key changes before any window has it; the update does not carry the LOB."""
        known = set(self.notes)
        self._insert_note(connection)
        for key in self.notes - known:
            self._move_note(connection, key)

    def _move_note(self, connection: oracledb.Connection, key: str) -> None:
        new = self._note_key(14)
        self.notes.discard(key)
        self.notes.add(new)
        sql = "UPDATE NOTES SET NOTE_ID = :1 WHERE NOTE_ID = :2"
        self._run(connection, "NOTES", "u", sql, [new, key])

    def _note_key(self, length: int) -> str:
        return "".join(self.random.choices(string.ascii_letters, k=length))

    def _update_note(self, connection: oracledb.Connection) -> None:
        if not self.notes:
            return
        key = self._pick(self.notes)
        if self.random.random() < 0.3:
            self._move_note(connection, key)
            return
        column, value = self.random.choice(
            [("TITLE", self._text()), ("BODY", self._body()), ("WEIGHT", None)]
        )
        self._run(
            connection,
            "NOTES",
            "u",
            f"UPDATE NOTES SET {column} = :1 WHERE NOTE_ID = :2",
            [value, key],
        )

    def _insert_event(self, connection: oracledb.Connection) -> None:
        key, self.next_event = self.next_event, self.next_event + 1
        self.events.add(key)
        self._run(
            connection,
            "EVENTS",
            "c",
            "INSERT INTO EVENTS (EVENT_ID, KIND, AT, AMOUNT, PIN) VALUES (:1, :2, :3, :4, :5)",
            [
                key, self.random.choice(["open", "close", None]), self._date(), self._money(), f"{MARK} {key}",
            ],
        )  # fmt: skip

    def _delete_event(self, connection: oracledb.Connection) -> None:
        if not self.events:
            return
        key = self._pick(self.events)
        self.events.discard(key)
        if key % 3 == 0:  # what changes is not captured
            sql = "UPDATE EVENTS SET PIN = :1 WHERE EVENT_ID = :2"
            self._run(connection, "EVENTS", "u", sql, [f"{MARK} again", key])
        self._run(connection, "EVENTS", "d", "DELETE FROM EVENTS WHERE EVENT_ID = :1", [key])

    # -- values ----------------------------------------------------------------------------------------------------

    def _pick(self, keys: set[Any]) -> Any:
        return self.random.choice(sorted(keys))

    def _text(self) -> str | None:
        return self.random.choice(
            [*TEXTS, None, "".join(self.random.choices(string.printable[:94], k=30))]
        )

    def _body(self) -> str | None:
        """In the row, and outside of it: a LOB of more than 3,964 bytes is written by its locator."""
        bodies = [None, "short body", "it''s " + self._text_or_blank() * 20, "é" * 900]
        outside = self._text_or_blank().ljust(10, "b") * self.random.randint(500, 900)
        return self.random.choice([*bodies, *([] if self.is_undone else [outside, outside])])

    def _text_or_blank(self) -> str:
        return self._text() or ""

    def _money(self) -> Decimal:
        return Decimal(self.random.randrange(-(10**12), 10**12)) / 100

    def _rate(self) -> Decimal | None:
        return self.random.choice(
            [
                None,
                Decimal("0.1"),
                Decimal("-1E-20"),
                Decimal("123456789012345678901234567890.12345678"),
            ]
        )

    def _double(self) -> str:
        return self.random.choice(["0.1", "-2.5E-100", "1.7E+120", "3", "0"])

    def _date(self) -> datetime:
        return EPOCH + timedelta(seconds=self.random.randrange(0, 10**9))

    def _stamp(self) -> str:
        return f"{self._date():%Y-%m-%d %H:%M:%S}.{self.random.randrange(10**6):06d}"

    def _raw(self) -> bytes | None:
        return self.random.choice([None, self.random.randbytes(16), b"\x00\xff"])

    def _big(self) -> int:
        return self.random.choice([0, -1, 10**37 + 7, 99999999999999999999])

    def _state(self) -> tuple[Any, ...]:
        return (
            set(self.accounts),
            set(self.notes),
            set(self.events),
            list(self.deleted_accounts),
            Counter(self._pending),
        )

    def _restore(self, state: tuple[Any, ...]) -> None:
        self.accounts, self.notes, self.events, self.deleted_accounts, self._pending = state
