"""Generated schedules of snapshots: however chunks are cut and read, and whatever comes between, the mirror is the table.

Each schedule is a throw of dice over two writers whose transactions stay open, chunks that are read and applied in any order or by several
sessions at once, changes at the very moments at which a chunk is read, windows, redo that is lost, signals, ends of the process at any write
to the metadata store, and restarts. One kind of table and one way of reading belong to each seed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection

from cdc_core.errors import CdcError
from cdc_core.model.signals import Signal
from cdc_core.oracle.database import current_scn
from cdc_core.state.database import Database
from cdc_core.steps.snapshots import read, watermarks
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import ADMIN, Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_crashes import CrashError
from tests.steps.test_partition_schedules import attempt

SHORT = (2, 5, 9, 13)
LONG_PARTS = [range(first, first + 25) for first in range(15, 2015, 25)]
STEPS = 18
BIG = "RPAD(TO_CLOB('x'), 3000, 'y') || RPAD(TO_CLOB('z'), 3000, 'w')"
KINDS: dict[str, dict[str, Any]] = {
    "key": {},
    "lobs": {},
    "ranges of rowids": {"cut": "rowid"},
    "no key": {"identity": "rowid"},
    "another column": {"surrogate_key": "G"},
}
READS = ("flashback", "watermarks", "auto")
POLICIES = {"on_redo_gone": "resnapshot", "resnapshot_hours_min": 1e-9}


class Ends:
    """Ends the process at one of the writes to the metadata store that come, before or after its commit."""

    def __init__(self) -> None:
        self.left = 0
        self.is_before = False
        self._lock = threading.Lock()

    def arm(self, dice: Random) -> None:
        self.left, self.is_before = dice.randrange(1, 15), dice.random() < 0.5

    def disarm(self) -> None:
        self.left = 0

    def is_now(self) -> bool:
        with self._lock:
            self.left -= self.left > 0
            if self.left != 1:
                return False
            self.left = 0
            return True


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    ends, writing = Ends(), Database.writing

    @contextmanager
    def wrapped(database: Database, **options: bool) -> Iterator[Connection]:
        is_now = ends.is_now()
        with writing(database, **options) as connection:
            yield connection
            if is_now and ends.is_before:
                raise CrashError
        if is_now:
            raise CrashError

    monkeypatch.setattr(Database, "writing", wrapped)
    return ends


class Moments:
    """Where the SCN of a chunk is fixed: what happens right before and behind it."""

    def __init__(self) -> None:
        self.happens: Callable[[], None] = lambda: None

    def asking(self, session: Any) -> Any:
        self.happens()
        scn = current_scn(session)
        self.happens()
        return scn


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Moments:
    moments = Moments()
    for module in (watermarks, read):
        monkeypatch.setattr(module, "current_scn", moments.asking)
    return moments


class Schedule:
    """One table, two who write to it, and one who reads it."""

    def __init__(self, source: Source, name: str, kind: str, dice: Random, ends: Ends) -> None:
        self.source, self.name, self.kind, self.dice, self.ends = source, name, kind, dice, ends
        self.oracle = source.oracle
        self.writers = [self.oracle.owner() for _ in range(2)]
        self.did = Counter[str]()
        self.signals = 0
        self._lock = threading.Lock()

    def step(self) -> None:
        what = self.dice.random()
        if what < 0.4:
            self.change()
        elif what < 0.5:
            self.end_transaction()
        elif what < 0.55:
            self.process(lambda: self.source.pipeline.plan_windows())
        elif what < 0.6:
            self.process(lambda: self.source.capture())
        elif what < 0.66:
            self.process(lambda: self.source.pipeline.start_snapshot([table_id(self.name)]))
        elif what < 0.78:
            self.process(self.carry)
        elif what < 0.84:
            self.signal()
        elif what < 0.88:
            self.source.close()
        elif what < 0.9:
            self.lose_redo()
        else:
            self.process(self.source.run)
            self.check()

    def moment(self) -> None:
        """A transaction or two of a writer, or of both, while a chunk is read."""
        with self._lock:
            for _ in range(self.dice.choice((0, 0, 1, 2))):
                self.change()
                self.end_transaction()

    def change(self) -> None:
        """Of rows of the writer's own, so that nobody waits."""
        dice, name = self.dice, self.name
        writer = dice.randrange(2)
        mine, some = f"MOD(ID, 2) = {writer}", dice.randrange(150)
        one = f"ID = {2 * some + writer}"
        statements = [
            f"INSERT INTO {name} (ID, G, V) VALUES ({2 * some + writer}, {some}, 'new')",
            f"UPDATE {name} SET G = {dice.randrange(300)} WHERE {one}",
            f"UPDATE {name} SET V = 'v{some}' WHERE {mine} AND MOD(ID, 23) = {some % 23}",
            f"DELETE FROM {name} WHERE {one}",
            f"DELETE FROM {name} WHERE {mine} AND MOD(ID, 31) = {some % 31}",
        ]
        if self.kind == "lobs":
            statements.append(f"UPDATE {name} SET C = {BIG} WHERE {one}")
        else:
            statements.append(
                f"UPDATE {name} SET ID = {2 * dice.randrange(150) + writer} WHERE {one}"
            )
        attempt(self.writers[writer], dice.choice(statements))

    def end_transaction(self) -> None:
        connection = self.writers[self.dice.randrange(2)]
        (connection.commit if self.dice.random() < 0.75 else connection.rollback)()

    def process(self, work: Callable[[], object]) -> None:
        """Work of the process, which may end in the middle."""
        if self.dice.random() < 0.25:
            self.ends.arm(self.dice)
        try:
            work()
        except CrashError:
            self.did["ended"] += 1
            store = self.source.pipeline.store
            for lease in store.leases.all():  # as of a process that is gone
                store.leases.release(lease)
            self.source.close()
        except CdcError as error:
            self.did[type(error).__name__] += 1
        finally:
            self.ends.disarm()

    def carry(self) -> None:
        """Chunks in any order, of which some are read and not applied; or all by several sessions."""
        pipeline = self.source.pipeline
        if self.dice.random() < 0.4:
            for _ in pipeline.run_snapshot():
                self.did["chunks"] += 1
            return
        keys = pipeline.pending_chunks()
        for key in self.dice.sample(keys, min(len(keys), 3)):
            pipeline.snapshot_chunk(key)
            self.did["chunks"] += 1
            if self.dice.random() < 0.7:
                pipeline.apply_chunk(key)

    def signal(self) -> None:
        kind = self.dice.choice(("execute-snapshot", "execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot"))  # fmt: skip
        data: dict[str, Any] = {"data-collections": [f"DEMO.{self.name}"]}
        if kind == "execute-snapshot":
            data["type"] = self.dice.choice(("incremental", "blocking"))
            if self.dice.random() < 0.4:
                condition = {"data-collection": f"DEMO.{self.name}", "filter": "G < 100"}
                data["additional-conditions"] = [condition]
        self.send(kind, data)

    def send(self, kind: str, data: dict[str, Any]) -> None:
        self.signals += 1
        self.source.pipeline.add_signal(
            Signal(id=f"s{self.signals}", source="src", type=kind, data=data)
        )
        self.did[kind] += 1

    def lose_redo(self) -> None:
        """The log that holds the next changes is gone before it was read."""
        redo = self.oracle.database.redo
        self.source.run()
        self.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        with self.source.pipeline.database.session() as session:
            query = "SELECT SEQUENCE# FROM V$LOG WHERE STATUS = 'CURRENT'"
            [(log,)] = session.fetch_all(query)
        self.moment()
        # So that the log is in no online group any more.
        self.oracle.run(*["ALTER SYSTEM SWITCH LOGFILE"] * 6, user=ADMIN)
        redo.delete_archived_log(int(log))
        self.did["gap"] += 1

    def finish(self) -> None:
        for writer in self.writers:
            writer.commit()
            writer.close()
        self.oracle.server.faults.disarm_all()
        self.send("resume-snapshot", {})
        for _ in range(4):  # a table that met a gap, or a signal, is read again
            self.source.run()
        self.oracle.run(f"INSERT INTO {self.name} (ID, G, V) VALUES (9999, 9, 'last')")
        self.source.run()
        if self.source.record(self.name).state == "failed":
            # A transaction that was open at the new snapshot began before the gap: it has ended.
            self.did["asked again"] += 1
            self.source.pipeline.resnapshot_tables([table_id(self.name)])
            self.source.run()
            self.source.run()
        record = self.source.record(self.name)
        assert record.state == "ready", (record.state, record.reason)
        assert not self.source.pipeline.pending_chunks()
        if self.source.status(self.name).is_partial:
            self.source.pipeline.start_snapshot([table_id(self.name)])
            self.source.run()
            self.source.run()
        self.source.check_current(self.name)

    def check(self) -> None:
        """Where the mirror is an image of one SCN, it is that of the table."""
        record = self.source.pipeline.store.tables.get(table_id(self.name))
        if record is None:  # each process so far ended before it knew the table
            self.did["unknown"] += 1
            return
        scn = record.mirror_scn
        is_image = scn is not None and (record.consistent_scn or 0) <= scn
        if record.state == "ready" and is_image and not self.source.status(self.name).is_partial:
            faults = self.oracle.server.faults
            armed = faults.armed()
            faults.disarm_all()
            self.source.check_exact(self.name)
            for fault in armed:
                faults.arm(fault)
            self.did["checked"] += 1


def play(oracle: Oracle, path: Path, seed: int, ends: Ends, moments: Moments) -> Counter[str]:
    """One schedule to its end; what happened in it."""
    dice, name = Random(seed), f"T{seed}"
    kind = list(KINDS)[seed % len(KINDS)]
    how = READS[seed // len(KINDS) % len(READS)]
    key = "" if kind == "no key" else "PRIMARY KEY"
    lob = ", C CLOB" if kind == "lobs" else ""
    oracle.run(
        f"CREATE TABLE {name} (ID NUMBER(9) {key}, G NUMBER(9), V VARCHAR2(9){lob})",
        f"INSERT INTO {name} (ID, G, V) SELECT LEVEL, MOD(LEVEL * 7, 300), 'first' FROM DUAL CONNECT BY LEVEL <= 270",
    )
    oracle.clock.ahead += 60  # LAST_DDL_TIME of ranges of ROWIDs is not near
    snapshot = {"chunk_rows": 100, "sessions": dice.choice((1, 1, 3)), "read": how}
    with source_of(oracle, path / name, snapshot=snapshot, policies=POLICIES) as source:
        source.configure({"name": name, **KINDS[kind]})
        schedule = Schedule(source, name, kind, dice, ends)
        moments.happens = schedule.moment
        if how == "auto":
            fault = Fault(FaultKind.ORA_ERROR, sql_contains=f'"{name}" AS OF SCN', code=1555, nth=4)
            fault.times = dice.choice((3, 6, 0))
            oracle.server.faults.arm(fault)
        try:
            schedule.process(lambda: source.pipeline.start_snapshot())
            for _ in range(STEPS):
                schedule.step()
        finally:
            moments.happens = lambda: None
            oracle.server.faults.disarm_all()
        schedule.finish()
    schedule.did[kind] += 1
    schedule.did[how] += 1
    return schedule.did


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        yield running


@pytest.mark.parametrize(
    "seeds",
    [SHORT, *(pytest.param(part, marks=pytest.mark.slow) for part in LONG_PARTS)],
    ids=str,
)
def test_the_mirror_is_the_table_however_it_is_read(
    oracle: Oracle, tmp_path: Path, ends: Ends, moments: Moments, seeds: Sequence[int]
) -> None:
    did = Counter[str]()
    for seed in seeds:
        try:
            did += play(oracle, tmp_path, seed, ends, moments)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert {*READS, "checked", "chunks", "ended"} <= set(did), did
    assert len(set(KINDS) & set(did)) == min(len(KINDS), len(seeds))
