"""A database's redo as LogMiner shows it, made step by step: strands, log switches, threads, and XIDs that are not told whole.

It stands where the miner's own border is: what it gives are answers to the queries of ``capture``. Every fact that it shows
was measured or reported of a real Oracle; which of them come, and when, is the schedule's dice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

import pyarrow as pa

from cdc_core.capture.passes.mining import MINED_SCHEMA
from cdc_core.errors import OracleUnavailableError
from cdc_core.model.operations import ENDS, Operation
from cdc_core.model.redo_address import RedoAddress
from tests.oracle.fake_session import times_of

START, COMMIT, ROLLBACK, INSERT, DELETE = (
    Operation.START, Operation.COMMIT, Operation.ROLLBACK, Operation.INSERT, Operation.DELETE,
)  # fmt: skip
NO_XID = "0" * 16
ZERO = " 0x000000.00000000.0000 "
SLOTS = 3
GROUPS = 3
_NAMES = [one.name for one in MINED_SCHEMA]


@dataclass(slots=True)
class Change:
    """One captured row change, or the undo of one. ``ident`` is its statement's text, unlike any other."""

    ident: str
    scn: int
    is_undo: bool


@dataclass(slots=True)
class Transaction:
    """``waiting`` is what its private strand holds; ``living`` are the changes that it could still take back."""

    xid: str
    thread: int
    start_scn: int
    changes: list[Change] = field(default_factory=list)
    living: list[Change] = field(default_factory=list)
    waiting: list[Record] = field(default_factory=list)
    commit_scn: int | None = None
    has_ended: bool = False
    has_vanished: bool = False

    @property
    def session(self) -> tuple[int, int]:
        """SID and SERIAL# of the session that runs it, which none other has."""
        return int(self.xid[:2], 16), int(self.xid[8:], 16)


@dataclass(slots=True)
class Record:
    """A redo record. ``is_spurious`` is a ROLLBACK that closes a savepoint only, and is shown from an online log at most."""

    scn: int
    operation: Operation
    transaction: Transaction | None
    change: Change | None = None
    table: str = "EMP"
    address: RedoAddress | None = None
    is_spurious: bool = False


@dataclass(slots=True)
class Log:
    thread: int
    sequence: int
    first_change: int
    next_change: int | None = None
    records: list[Record] = field(default_factory=list)
    shown: int = 0

    @property
    def member(self) -> str:
        return f"/online/{self.thread}.{self.sequence % GROUPS}"

    @property
    def archived(self) -> str:
        return f"/archived/{self.thread}.{self.sequence}"


@dataclass(slots=True)
class Thread:
    number: int
    enabled: str
    logs: list[Log]
    enable_change: int
    last_redo: int


class World:
    """The redo of a database with one thread, or one that opens a second, PRIVATE one."""

    def __init__(self, dice: Random, *, threads: int) -> None:
        self.dice = dice
        self.scn = 1000
        self.threads = [Thread(1, "PUBLIC", [Log(1, 5, 1000)], 1, 1000)]
        self.transactions: list[Transaction] = []
        self._slots: dict[tuple[int, int], Transaction] = {}
        self._sequence = 0x250
        self._threads_wanted = threads

    @property
    def open_transactions(self) -> list[Transaction]:
        return [one for one in self.transactions if not one.has_ended]

    def step(self) -> None:
        """Something happens."""
        dice = self.dice
        what = dice.choices(
            ("begin", "change", "undo", "flush", "commit", "rollback", "switch", "empty", "idle", "vanish", "thread"),
            (6, 14, 4, 2, 5, 2, 1.5, 1, 3, 0.4, 0.7),
        )[0]  # fmt: skip
        getattr(self, f"_{what}")()

    def settle(self) -> None:
        """Most transactions end, and every thread's log is switched."""
        for one in list(self.open_transactions):
            if self.dice.random() < 0.7:
                self.end(one, commits=self.dice.random() < 0.8)
        for thread in self.threads:
            self.switch(thread)
        self._idle()

    def end(self, one: Transaction, *, commits: bool) -> None:
        if not commits:
            while one.living:
                self._take_back(one)
        end = COMMIT if commits else ROLLBACK
        one.waiting.append(Record(self._tick(), end, one))
        one.commit_scn = self.scn if commits else None
        self._bind(one)
        self._free(one)

    def switch(self, thread: Thread) -> None:
        """Every strand of the thread is bound into the old log before the new one begins."""
        for one in self.open_transactions:
            if one.thread == thread.number:
                self._bind(one)
        scn = self._tick()
        thread.logs[-1].next_change = scn
        thread.logs.append(Log(thread.number, thread.logs[-1].sequence + 1, scn))
        thread.last_redo = scn

    def thread(self, number: int) -> Thread:
        return next(one for one in self.threads if one.number == number)

    # -- what may happen -------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        thread = self.dice.choice(self.threads)
        free = [at for at in range(SLOTS) if (thread.number, at) not in self._slots]
        if not free:
            return
        slot = self.dice.choice(free)
        self._sequence += self.dice.choice((1, 1, 0x100))
        xid = f"{thread.number:02x}00{slot:02x}00" + self._sequence.to_bytes(4, "little").hex()
        one = Transaction(xid, thread.number, self._tick())
        one.waiting.append(Record(self.scn, START, one))
        self.transactions.append(one)
        self._slots[thread.number, slot] = one

    def _change(self) -> None:
        if one := self._any():
            table = "OTHER" if self.dice.random() < 0.15 else "EMP"
            change = Change(f"{one.xid}:{len(one.changes)}", self._tick(), False)
            if table == "EMP":
                one.changes.append(change)
                one.living.append(change)
            one.waiting.append(Record(self.scn, INSERT, one, change, table))

    def _undo(self) -> None:
        """ROLLBACK TO SAVEPOINT, or a statement that fails."""
        if (one := self._any()) and one.living:
            for _ in range(self.dice.randint(1, len(one.living))):
                self._take_back(one)
            if self.dice.random() < 0.6:
                one.waiting.append(Record(self._tick(), ROLLBACK, one, is_spurious=True))

    def _flush(self) -> None:
        if one := self._any():
            self._bind(one)

    def _commit(self) -> None:
        if one := self._any():
            self.end(one, commits=True)

    def _rollback(self) -> None:
        if one := self._any():
            self.end(one, commits=False)

    def _switch(self) -> None:
        self.switch(self.dice.choice(self.threads))

    def _empty(self) -> None:
        """What transactions that change nothing leave behind: a START without an XID, a COMMIT of thread 0."""
        thread = self.dice.choice(self.threads)
        self._write(thread, Record(self._tick(), self.dice.choice((START, COMMIT)), None))

    def _idle(self) -> None:
        self._tick()
        for thread in self.threads:
            thread.last_redo = self.scn

    def _vanish(self) -> None:
        """A session is killed, and the end of its transaction is never mined."""
        if one := self._any():
            one.waiting.clear()
            one.has_vanished = True
            self._free(one)

    def _thread(self) -> None:
        if len(self.threads) < self._threads_wanted:
            scn = self._tick()
            self.threads.append(Thread(2, "PRIVATE", [Log(2, 1, scn)], scn, scn))

    def _any(self) -> Transaction | None:
        return self.dice.choice(self.open_transactions) if self.open_transactions else None

    def _take_back(self, one: Transaction) -> None:
        undone = one.living.pop()
        change = Change(f"{undone.ident}:undo", self._tick(), True)
        one.changes.append(change)
        one.waiting.append(Record(self.scn, DELETE, one, change))

    def _tick(self) -> int:
        self.scn += self.dice.randint(1, 3)
        return self.scn

    def _bind(self, one: Transaction) -> None:
        for record in one.waiting:
            self._write(self.thread(one.thread), record)
        one.waiting.clear()

    def _write(self, thread: Thread, record: Record) -> None:
        log = thread.logs[-1]
        record.address = RedoAddress(sequence=log.sequence, block=2 + len(log.records), byte=16)
        log.records.append(record)
        thread.last_redo = max(thread.last_redo, self.scn)

    def _free(self, one: Transaction) -> None:
        one.has_ended = True
        self._slots = {key: each for key, each in self._slots.items() if each is not one}


SHORT_READS = 0.15
"""How often a lively pass ends before the end of a thread's newest log, without an error: reported of online logs. It leaves out
what was written last; what an earlier pass has shown is there."""


class WorldSession:
    """What ``capture`` asks, answered from the world. Where it ``is_lively``, the world goes on while rows are fetched, passes are
    lost, and some end early, so that COMMIT rows come to light with the next one.

    Inside a pluggable database, where ``is_cdb``, LogMiner finds the logs of a range by itself, and takes archived copies or online
    ones."""

    user, container = "CAPTURE", "ORCL"
    dbid = container_dbid = 7
    database_name, is_mining = "ORCL", False

    def __init__(self, world: World, *, is_lively: bool = False, is_cdb: bool = False) -> None:
        self.world = world
        self.is_lively, self.is_cdb = is_lively, is_cdb
        self._filters = world.dice.random() < 0.5
        self._added: list[str] = []

    @contextmanager
    def in_root(self) -> Iterator[None]:
        yield

    def execute_block(self, plsql: str, binds: Mapping[str, Any] | None = None) -> None:
        if ".NEW)" in plsql or "END_LOGMNR" in plsql:
            self._added.clear()
        if "ADD_LOGFILE" in plsql:
            assert not self.is_cdb, "ORA-65040"
            self._added += [file for name, file in (binds or {}).items() if name[:3] == "log"]
        if "START_LOGMNR" in plsql and self.is_cdb:
            self._find_logs(**(binds or {}))

    def _find_logs(self, scn_low: int, scn_high: int) -> None:
        for thread in self.world.threads:
            online = thread.logs[-GROUPS:]
            for log in thread.logs:
                ends = log.next_change is not None and log.next_change <= scn_low
                if not ends and log.first_change <= scn_high:
                    takes_archived = log.next_change is not None and (
                        log not in online or self.world.dice.random() < 0.5
                    )
                    self._added.append(log.archived if takes_archived else log.member)

    def fetch_all(self, sql: str, binds: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        world, asked = self.world, binds or {}
        if "GV$SESSION" in sql:
            return [(*one.session, world.scn) for one in world.open_transactions]
        if "SELECT CURRENT_SCN" in sql:
            return [(world.scn,)]
        if "SELECT RESETLOGS_CHANGE#" in sql:
            return [(1,)]
        if "START_SCN > 1" in sql:
            return [(one.xid.upper(), one.start_scn) for one in world.open_transactions]
        if "RAWTOHEX(XID)" in sql:
            return [(one.xid.upper(),) for one in world.open_transactions]
        if "FROM V$THREAD" in sql:
            return [
                (
                    one.number,
                    "OPEN",
                    one.enabled,
                    one.enable_change,
                    0,
                    0,
                    one.last_redo,
                    1,
                    world.scn,
                )
                for one in world.threads
            ]
        logs = [log for thread in world.threads for log in thread.logs]
        if "FROM V$LOG L" in sql:
            return [
                (log.thread, log.sequence, log.member, log.first_change, log.next_change, 100, "ACTIVE" if log.next_change else "CURRENT")
                for thread in world.threads for log in thread.logs[-GROUPS:]
            ]  # fmt: skip
        ended = [log for log in logs if log.next_change is not None]
        if "MAX(A.SEQUENCE#)" in sql:
            old = {log.thread: log for log in ended if log.next_change <= asked["scn"]}
            return [(log.thread, log.sequence, log.next_change) for log in old.values()]
        if "A.BLOCKS" in sql:
            return [
                (log.thread, log.sequence, log.archived, log.first_change, log.next_change, 100, "A", "YES", 1, 0)
                for log in ended if log.next_change > asked["scn"]
            ]  # fmt: skip
        if "SCN_TO_TIMESTAMP" in sql:
            return times_of(asked)
        if "LAST_DDL_TIME" in sql:
            return []  # nothing is altered in this world
        if "P.OBJECT_NAME = T.OBJECT_NAME" in sql:
            return []  # no table has partitions
        if "FROM ALL_OBJECTS" in sql:
            return [("HR", "EMP", 501)]
        if "SELECT OBJECT_ID, OWNER, OBJECT_NAME FROM DBA_OBJECTS" in sql:
            return [(501, "HR", "EMP")]
        if "SUPPLEMENTAL_LOG_DATA_MIN" in sql:
            return [("YES", "YES", 0, "database")]
        if "DATA_OBJECT_ID), MAX(" in sql or "FROM ALL_TABLES" in sql:
            return []
        if "THREAD_SQN" in sql:
            newest = {log.member: log for log in logs}
            files = newest | {log.archived: log for log in logs}
            read = [(files[name], name) for name in self._added]
            return [(log.thread, log.sequence, log.first_change, name) for log, name in read]
        if "FROM V$LOGMNR_LOGS" in sql:
            return [(0,) for _ in self._added]
        raise AssertionError(f"no answer for {sql}")

    def fetch_batches(
        self, sql: str, binds: Mapping[str, Any], *, rows: int, schema: pa.Schema
    ) -> Generator[pa.RecordBatch]:
        dice = self.world.dice
        found: list[dict[str, Any]] = []
        size = dice.randint(1, rows)
        for row in self._contents(binds):
            found.append(row)
            if len(found) >= size:
                yield _batch(found)
                found, size = [], dice.randint(1, rows)
                if self.is_lively and dice.random() < 0.3:
                    self.world.step()
                if self.is_lively and dice.random() < 0.05:
                    raise OracleUnavailableError("the session was lost")
        yield _batch(found)

    def _contents(self, binds: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Merged by SCN over the threads, in the order of each; a log that is written is read as far as it is there."""
        low, high = binds["scn_low"], binds["scn_high"]
        started: set[str] = set()
        shown = {thread.number: self._shown_of_newest(thread) for thread in self.world.threads}
        heads = [self._records(thread, shown[thread]) for thread in shown]
        waiting = [next(head, None) for head in heads]
        while any(one is not None for one in waiting):
            _, at = min((one[0].scn, at) for at, one in enumerate(waiting) if one is not None)
            record, is_online = waiting[at]  # type: ignore[misc]
            waiting[at] = next(heads[at], None)
            one = record.transaction
            if one is not None and record.operation == START and low < record.scn <= high:
                started.add(one.xid)
            if low < record.scn <= high and (is_online or not record.is_spurious):
                row = self._row(record, heads_online=is_online, started=started, thread=at + 1)
                if record.table == "EMP" and (not self._filters or _is_asked_for(row, binds)):
                    yield row

    def _shown_of_newest(self, thread: Thread) -> tuple[Log, int] | None:
        """The log of a pass that ends early, and how many of its records are shown; None for one that reads all."""
        dice, newest = self.world.dice, thread.logs[-1]
        if not self.is_lively or dice.random() >= SHORT_READS:
            return None
        return newest, dice.randint(newest.shown, len(newest.records))

    def _records(self, thread: int, short: tuple[Log, int] | None) -> Iterator[tuple[Record, bool]]:
        for log in self.world.thread(thread).logs:
            if log.member in self._added or log.archived in self._added:
                at = 0
                while at < len(log.records) and not (short and log is short[0] and at >= short[1]):
                    yield log.records[at], log.archived not in self._added
                    at += 1
                    log.shown = max(log.shown, at)

    def _row(
        self, record: Record, *, heads_online: bool, started: set[str], thread: int
    ) -> dict[str, Any]:
        dice, one, operation = self.world.dice, record.transaction, record.operation
        is_undo = record.change is not None and record.change.is_undo
        hides = operation in ENDS or is_undo
        is_known = one is None or one.xid in started
        xid = NO_XID if one is None else one.xid
        is_partial = one is not None and (
            record.is_spurious
            or (heads_online and hides and dice.random() < 0.5)
            or (not is_known and dice.random() < 0.7)
        )
        has_no_address = record.is_spurious or (
            operation in ENDS and heads_online and dice.random() < 0.3
        )
        assert record.address is not None
        row: dict[str, Any] = {
            "scn": record.scn, "operation_code": int(operation), "rollback": int(is_undo), "csf": 0, "status": 0,
            "thread": 0 if one is None and operation == COMMIT else thread,
            "timestamp": datetime(2026, 1, 2), "xid": f"{xid[:8]}ffffffff" if is_partial else xid,
            "rs_id": ZERO if has_no_address else f" {record.address.rs_id} ",
            "start_scn": one.start_scn if one is not None and is_known else None,
        }  # fmt: skip
        if one is not None and operation == START:
            row["session_id"], row["serial"] = one.session
        if record.change is not None:
            row |= {"seg_owner": "HR", "table_name": record.table, "data_obj": 501, "sql_redo": record.change.ident}  # fmt: skip
        return row


def _is_asked_for(row: Mapping[str, Any], binds: Mapping[str, Any]) -> bool:
    """The condition of the query on redo that is looked at again; it may let more through than it must."""
    if (
        "window_low" not in binds
        or row["scn"] > binds["window_low"]
        or row["operation_code"] in ENDS
    ):
        return True
    padded = row["rs_id"].strip().rjust(32, "0")
    threads = [name[1:] for name in binds if name[0] == "t" and name[1:].isdigit()]
    return any(
        row["thread"] == binds[f"t{number}"] and padded > binds.get(f"a{number}", "")
        for number in threads
    )


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = {name: [one.get(name) for one in rows] for name in _NAMES}
    return pa.RecordBatch.from_pydict(columns, schema=MINED_SCHEMA)
