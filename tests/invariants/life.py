"""One run of the prover: events happen to a source, its workers and its database; then everything is compared.

A prover waits for each answer, so a seed repeats a run, but for what workers do side by side and where they are at random instants.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import oracledb
import pyarrow.parquet as pq
from rich.console import Console
from sqlalchemy import NullPool, create_engine, text

from cdc_core.model.identifiers import TableId
from tests.invariants.changelog import Stream, check_table
from tests.invariants.compare import judge
from tests.invariants.deadline import EVENT_SECONDS_MAX, HungError, deadline
from tests.invariants.events import Event
from tests.invariants.hidden import HIDDEN, files_with_marks
from tests.invariants.histories import check_history
from tests.invariants.lakes import JudgedDelta, JudgedKept, JudgedLake
from tests.invariants.load import KEYS
from tests.invariants.points import (
    FENCE,
    IN_MERGE,
    IN_REWRITING,
    LINK,
    POINTS,
    UNFENCED,
    LakeKind,
    Role,
)
from tests.invariants.proof import Comparison, Proof
from tests.invariants.refused import REFUSALS
from tests.invariants.server import EmbeddedServer, current_scn
from tests.invariants.shapes import PARTS, quoted, written
from tests.invariants.shapes import TABLES as SHAPED
from tests.invariants.team import Answer, Team, Worker, WorkerFailedError
from tests.invariants.wild import TPCC, WILD_TABLES, WildLoad, inconsistencies
from tests.jvm import SHORT_LIVED, SMALL_WORK

ROWS = 130
ATTEMPTS = 4
MAINTAINED_FIRST, MAINTAINED = 6, 4
"""So many tables are maintained behind the first chunks, and by an event."""
WITHOUT_VECTORS = ("EVENTS", "GROWING")
"""Their mirrors never have deletion vectors."""
END_ROUNDS_MAX = 8
"""Within so many rounds every table is ready. One that left in a round comes back in the next, and is read in the one behind that."""
LEASE_SECONDS = 3
ORDINAL_SHIFT = 40
"""A row's number in the source is behind that of its window."""
LONG_TRANSACTIONS = 3
SAVEPOINT, LATE = LONG_TRANSACTIONS, LONG_TRANSACTIONS + 1
"""Long transactions of their own."""
STANDS = """
SELECT mirror_scn, name FROM tables WHERE mirror_scn >= consistent_scn
 UNION
SELECT w.scn_high, t.name FROM windows w JOIN tables t ON t.source = w.source
 WHERE w.state = 'applied' AND w.inexact IS NULL AND w.scn_high BETWEEN t.consistent_scn AND t.mirror_scn
  AND w.ordinal >= t.first_ordinal AND w.scn_high > t.snapshot_scn"""
INEXACT = "SELECT scn_low, scn_high, inexact FROM windows WHERE inexact IS NOT NULL"
CONDITIONS = {
    "ACCOUNTS": "BALANCE > 0",
    "EVENTS": "EVENT_ID > 20",
    "ORDERS": "O_OL_CNT < 4",
    "SHIFTED": "V = 'first'",
}
LATE_TABLES = ("EVENTS", "ACCOUNTS", "EVENTS")
COMES_BACK = ("PASSING", "GROWING", "LOOSE", "NOTES", "BARE", "EQUALS", *SHAPED)
"""Tables that leave and come back."""
STOPPED_BY_DDL = ("PASSING", "GROWING", "EQUALS", PARTS)
"""Tables that a TRUNCATE stops, or any DDL between the plan of a snapshot and its reading: Oracle cannot look back behind it. EQUALS is also
stopped by a chunk without undo, and read again by its policy."""
REFUSED_AT = {
    FENCE: {"FencedError"},
    UNFENCED: {"FencedError"},
    LINK: {"FencedError", "CommitConflictError"},
    "change log committed, mirror not": {"FencedError", "CommitConflictError"},
}
"""What a worker must say that was stopped there past its lease; elsewhere it may find that the other one did the same."""
COMMANDS: dict[Role, tuple[str, ...]] = {
    "capture": ("capture", "capture", "read_chunks", "retire"),
    "apply": ("apply",),
}


ON_A_CLUSTER = {"spark.cores.max": "1", "spark.executor.memory": "512m"}
"""Two workers' processes have an executor each, also while one of them is stopped."""


class Life:
    """One run in a folder of its own, against an embedded Oracle of its own."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        events: Sequence[Event],
        *,
        lake: LakeKind = "kept",
        tables: Sequence[str] = WILD_TABLES,
        scns_compared: int = 8,
        services: dict[str, Any] | None = None,
        spark: str | None = None,
        on_executors: bool = False,
        sabotage: str | None = None,
        say: Console | None = None,
    ) -> None:
        self.folder, self.events, self.lake, self.tables = folder, events, lake, tables
        self.scns_compared, self.sabotage = scns_compared, sabotage
        self.say = say or Console(quiet=True)
        self.proof = Proof(seed, list(events))
        self.dice = Random(seed)
        self.server = EmbeddedServer(folder / "oracle")
        self.streams: dict[str, list[Stream]] = {}
        self._states: dict[str, str] = {}
        self._lives: dict[str, tuple[int, int]] = {}
        self._blind_below: dict[str, int] = {}
        self._positions: dict[str, int] = {}
        self._paused: set[str] = set()
        self._noted: set[tuple[int, str]] = set()
        self._joined: set[tuple[str, int]] = set()
        self._lacking: dict[tuple[int, int], tuple[int, tuple[str, ...]]] = {}
        self._compared: set[tuple[int, str]] = set()
        self._counted: set[Path] = set()
        self._services = services or {}
        self._spark = spark
        self._stage: dict[str, Any] = {"stage_on_executors_from_rows": 1} if on_executors else {}
        self._signals = 0
        self.copies = 0
        self._is_cluster = seed % 4 != 0
        self.completes = seed % 3 == 1
        """Windows end with switched logs, as they do by default; else where redo was written last."""
        self.follows = seed % 4 < 2
        """The lake follows a TRUNCATE and loses columns that Oracle drops."""
        self.rewrites = seed % 2 == 0
        """Windows are merged into Delta by writing files anew; else by Spark."""
        self._now, self._since = "start", time.monotonic()

    def run(self) -> Proof:
        """Let everything happen and return the proof."""
        with self.server:
            if self._is_cluster:
                self.server.begin_cluster()
            try:
                self._live()
            except Exception as error:  # a run that stops is judged, too
                if not isinstance(error, (WorkerFailedError, HungError, oracledb.Error)):
                    raise
                self.proof.stopped = f"stopped in {self._now}: {str(error)[-3000:]}"
                self.proof.stopped_in = self._kind_of(self._now)
        self._enter("")
        return self.proof

    def _live(self) -> None:
        config = self._configure()
        with Team(config, lake=self.lake, sabotage=self.sabotage) as self.team:
            with self._phase("begin"):
                self._connect()
                self.load = WildLoad(self.connection, self.proof.seed, self._scn)
                self.load.create(ROWS)
                self.server.put_forward()
                self.load.draw("begin")
                self.load.long_part(0, self.server.connect)  # open at the snapshot's SCN
                self.do("capture", "plan_snapshot")
                self.load.step()
                self.do("capture", "read_chunks", at_most=len(self.tables) // 2)
                self.do("apply", "apply")
                self._note()
                if self.rewrites and self.lake == "delta":
                    self._maintain(MAINTAINED_FIRST)
            for event in self.events:
                self._happen(event)
            with self._phase("the end"):
                self._end()
            with self._phase("compare"):
                self._compare_noted(None)
                self._check_changelogs()
                self._check_hidden()
                self.proof.late["windows that a late commit belongs to"] += len(self._lacking)

    def _happen(self, event: Event) -> None:
        self.say.print(f"  {event}", style="dim")
        self.load.draw(str(event.number))
        self.dice = Random(f"{self.proof.seed}/{event.number}/dice")
        with self._phase(str(event)):
            if event.kind in REFUSALS:
                took_place = not self._services and REFUSALS[event.kind](self, event)
            else:
                took_place = getattr(self, f"_on_{event.kind.replace(' ', '_')}")(event)
            self._note()
        if took_place is not False:
            self.proof.happened[event.kind] += 1

    # -- the load ------------------------------------------------------------------------------------------------------

    def _on_load(self, event: Event) -> None:
        """Some transactions, on one table if the event names it."""
        self.load.only = event.what or None
        for _ in range(self.dice.randint(1, 4)):
            self.load.step()
        self.load.only = None

    def _on_tpcc(self, _event: Event) -> None:
        for _ in range(self.dice.randint(1, 3)):
            self.load.tpcc()

    def _on_shift(self, _event: Event) -> None:
        self.load.shift()

    def _on_again(self, _event: Event) -> None:
        self.load.again()

    def _on_long(self, _event: Event) -> None:
        number = self.dice.randrange(LONG_TRANSACTIONS)
        is_other = self._is_cluster and number == LONG_TRANSACTIONS - 1
        connect = self.server.connect_other if is_other else self.server.connect
        self.load.long_part(number, connect)

    def _on_other_instance(self, event: Event) -> bool:
        """Transactions through the second instance, whose redo has a thread of its own; a moment later the first goes on."""
        if not self._is_cluster:
            return False
        with self.server.connect_other() as other, self.load.through(other):
            self._on_load(event)
            self._on_tpcc(event)
        self.load.step()
        return True

    def _on_late_redo(self, _event: Event) -> bool:
        """The last change of an open transaction waits in memory (the strand is full with its START and its first change), and reaches
        the log behind the end of a window above its SCN."""
        if self.completes:
            return False
        for _ in range(2):
            self.load.long_rows(LATE, self.server.connect, 2)
            self.load.shift()
            self.do("capture", "capture")
        self.load.long_end(LATE, commits=self.dice.random() < 0.8)
        self.load.step()
        self.do("capture", "capture")
        return True

    def _on_savepoint(self, _event: Event) -> None:
        """What a savepoint's rollback took back lies in one window, the COMMIT in the next, which has no rollback of its own."""
        self.load.long_part(SAVEPOINT, self.server.connect)
        self._on_switch(_event)
        self.do("capture", "capture")
        self.load.long_end(SAVEPOINT, commits=True)
        self.do("capture", "capture")

    def _on_long_end(self, _event: Event) -> bool:
        if not self.load.long:
            return False
        number = self.dice.choice(sorted(self.load.long))
        self.load.long_end(number, commits=self.dice.random() < 0.7)
        return True

    def _on_grow(self, _event: Event) -> None:
        with self._changed("GROWING"):
            self.load.grow()

    def _on_reshape(self, _event: Event) -> None:
        with self._changed("GROWING"):
            self.load.reshape()

    def _on_other_DDL(self, _event: Event) -> bool:
        """DDL that changes no column: its table goes on."""
        with self._changed("GROWING"):
            self.load.other_ddl()
        return True

    def _on_move(self, _event: Event) -> bool:
        """Rows that nothing but their values tells apart get other ROWIDs; nobody minds."""
        with self._changed("EQUALS"):
            self.load.move()
        return True

    def _on_passing_rows(self, _event: Event) -> None:
        """Rows that a TRUNCATE takes, which no row of the redo does."""
        self.load.passing_rows()

    def _on_truncate(self, _event: Event) -> bool:
        if self._states.get("PASSING") not in ("ready", "removed"):
            return False
        with self._changed("PASSING"):
            self.load.truncate()
        return True

    def _on_partitions(self, _event: Event) -> bool:
        """A partition is dropped or truncated, which the table follows."""
        if self._states.get(PARTS) not in ("ready", "removed"):
            return False
        with self._changed(PARTS):
            self.load.partitions()
        return True

    @contextmanager
    def _changed(self, table: str) -> Iterator[None]:
        """Oracle cannot look back behind the DDL of the block: what is to be compared is compared before."""
        self._note()
        self._compare_noted(table)
        yield
        self.server.put_forward()
        self._blind_below[table] = self._scn()

    # -- the database --------------------------------------------------------------------------------------------------

    def _on_switch(self, _event: Event) -> None:
        """Of every instance: one that is idle is made to switch too, as ARCHIVE_LAG_TARGET does."""
        self.server.administer("ALTER SYSTEM ARCHIVE LOG CURRENT")

    def _on_delete_logs(self, _event: Event) -> bool:
        """Archived logs go that no window, open transaction or joining table can need."""
        limits = self._store("SELECT MIN(start_scn) FROM open_transactions")
        limits += self._store("SELECT MIN(mining_low) FROM windows WHERE state <> 'applied'")
        limits += self._store("SELECT MAX(scn_high) FROM windows")
        known = self._store("SELECT positions FROM windows WHERE positions IS NOT NULL ORDER BY ordinal DESC")  # fmt: skip
        limits += [(one["first_scn"],) for one in (json.loads(known[0][0]) if known else ())]
        with self._capture_session() as cursor:
            cursor.execute("SELECT MIN(START_SCN) FROM GV$TRANSACTION")
            limits += cursor.fetchall()
            limit = min([int(one[0]) for one in limits if one[0] is not None], default=0)
            cursor.execute(
                "SELECT SEQUENCE#, THREAD# FROM V$ARCHIVED_LOG WHERE NEXT_CHANGE# < :1 AND NAME IS NOT NULL",
                [limit],
            )
            logs = sorted({(int(sequence), int(thread)) for sequence, thread in cursor})
        if not self._store("SELECT 1 FROM windows"):
            return False
        for sequence, thread in logs:
            self.server.administer(
                "BEGIN DBMS_REDOLAKE_FAULTS.DELETE_ARCHIVED_LOG(:1, :2); END;",
                **{"1": sequence, "2": thread},
            )
        return bool(logs)

    def _on_lost_connection(self, _event: Event) -> None:
        what = self.dice.choice(("V$LOGMNR_CONTENTS", "AS OF SCN", "V$LOG", "V$TRANSACTION"))
        self.server.arm("LOST_CONNECTION", sql_contains=what, nth=self.dice.randint(1, 3))
        self.do("capture", "capture")
        self.do("capture", "read_chunks")
        self.server.clear_faults()

    def _on_snapshot_too_old(self, event: Event) -> None:
        self._on_snapshot(event)
        self.server.arm("ORA_ERROR", sql_contains="AS OF SCN", code=1555, nth=self.dice.randint(1, 2))  # fmt: skip
        self.do("capture", "read_chunks")
        self.server.clear_faults()

    def _on_short_read(self, _event: Event) -> bool:
        """A pass ends before the newest log of the second instance, without an error: what committed there comes with the next
        window, below what the first instance has changed since. Other tables than those with LOBs: an update of a row that is not
        there yet would not say all of it."""
        if not self._is_cluster or self.completes:
            return False
        self.do("capture", "capture")
        with self.server.connect_other() as other, self.load.through(other):
            for table in LATE_TABLES:
                self.load.only = table
                self.load.step()
        self.load.only = None
        self.load.tpcc()
        self.server.arm("SHORT_READ")
        self.do("capture", "capture")
        self.server.clear_faults()
        self.do("apply", "apply")
        self._note()
        self.load.step()
        self.do("capture", "capture")
        self.do("apply", "apply")
        return True

    def _on_kill_Oracle(self, _event: Event) -> None:
        self.server.kill_and_restart()
        self._connect()
        self.load.forget_open(self.connection)
        self.proof.kills["the database"] += 1
        for role, command in (("capture", "capture"), ("apply", "apply")):
            self.do(role, command)  # type: ignore[arg-type]

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _on_capture(self, _event: Event) -> None:
        self.do("capture", "capture")

    def _on_apply(self, _event: Event) -> None:
        self.do("apply", "apply")

    def _on_side_by_side(self, event: Event) -> None:
        """Both roles and the load at once."""
        for role in ("capture", "apply"):
            self.team[role].send(role)
        self._on_load(event)
        self.load.tpcc()
        for role in ("capture", "apply"):
            answer = self.team[role].answer()  # type: ignore[index]
            if self._passes(answer):
                self.do(role, role)  # type: ignore[arg-type]
            else:
                self._expect(answer)

    def _on_chunks(self, _event: Event) -> None:
        """Some planned chunks are read, so tables become ready at different times."""
        self.do("capture", "read_chunks", at_most=self.dice.randint(1, 3))

    def _on_retire(self, _event: Event) -> None:
        self.do("capture", "retire")

    def _on_maintain(self, _event: Event) -> bool:
        """Mirrors get deletion vectors, or lose them; small files are put together."""
        return self._maintain(MAINTAINED)

    def _maintain(self, at_most: int) -> bool:
        ready = sorted(table for table, state in self._states.items() if state == "ready")
        chosen = self.dice.sample(ready, min(at_most, len(ready)))
        if chosen:
            with_vectors = self.do(
                "apply", "maintain", tables=[self.name(table) for table in chosen]
            )
            self.proof.late["mirrors maintained with deletion vectors"] += with_vectors
        return bool(chosen)

    def _on_replay(self, event: Event) -> None:
        done = self.do("apply", "replay", seed=event.number, windows=4, chunks=2)
        self.proof.replayed.update(done)

    # -- ad hoc snapshots ----------------------------------------------------------------------------------------------

    def _on_snapshot(self, event: Event) -> bool:
        table = self.ready((event.what,) if event.what else WILD_TABLES)
        if table is None:
            return False
        self.do("capture", "plan_snapshot", table=self.name(table))
        return True

    def _on_snapshot_where(self, _event: Event) -> bool:
        table = self.ready(CONDITIONS)
        if table is None:
            return False
        self.do("capture", "plan_snapshot", table=self.name(table), condition=CONDITIONS[table])
        return True

    def _on_signal(self, _event: Event) -> bool:
        table = self.ready(CONDITIONS)
        if table is None:
            return False
        self._signals += 1
        condition = self.dice.choice((None, CONDITIONS[table]))
        self.do(
            "capture", "signal", name=f"s{self._signals}", table=self.name(table),
            condition=condition,
        )  # fmt: skip
        return True

    # -- fates ---------------------------------------------------------------------------------------------------------

    def _on_leave(self, event: Event) -> bool:
        table = self.ready((event.what,) if event.what else COMES_BACK)
        if table is None:
            return False
        self.do("capture", "remove", table=self.name(table))
        return True

    def _on_come_back(self, _event: Event) -> bool:
        gone = [table for table in COMES_BACK if self._states.get(table) in ("removed", "failed")]
        for table in gone:
            command = "add" if self._states[table] == "removed" else "resnapshot"
            self.do("capture", command, table=self.name(table))
        return bool(gone)

    def _on_pause(self, _event: Event) -> bool:
        table = self.ready(("ORDERS", "ACCOUNTS"))
        if table is None:
            return False
        self.do("capture", "pause", table=self.name(table))
        self._paused.add(table)
        return True

    def _on_resume(self, _event: Event) -> bool:
        paused, self._paused = self._paused, set()
        for table in sorted(paused):
            self.do("capture", "resume", table=self.name(table))
        return bool(paused)

    # -- kills ---------------------------------------------------------------------------------------------------------

    def _on_kill_at_a_point(self, event: Event) -> bool:
        """Kill the point's worker when it gets there; where it does not, there was too little to do."""
        point = event.what or self.dice.choice(list(POINTS))
        if point in (IN_MERGE, IN_REWRITING):
            point = IN_REWRITING if self.rewrites else IN_MERGE
        role = POINTS[point].role
        for attempt in range(ATTEMPTS):
            self._give_work(point)
            hit = 2 if POINTS[point].is_per_table and attempt == 0 and self.dice.random() < 0.5 else 1  # fmt: skip
            answer = self.team[role].ask(self._command_at(point), meet=point, hit=hit)
            if answer.met:
                self._kill(role)
                self.proof.kills[point] += 1
                return True
            self._settle(role, answer)
        self.proof.not_reached.append(point)
        return False

    def _give_work(self, point: str) -> None:
        """Something to do that leads to the point."""
        self.load.step()
        self.load.tpcc()
        self.end_logs()
        is_there = "planned" if POINTS[point].role == "capture" else "landed"
        if point.startswith("chunk ") and not self._store(
            "SELECT 1 FROM chunks c JOIN tables t ON t.source = c.source AND t.name = c.name"
            f" WHERE c.state IN ('planned', '{is_there}') AND t.state <> 'failed'"
        ):
            self._on_snapshot(Event(0, "snapshot"))
        if POINTS[point].role == "apply":
            self.do("capture", "read_chunks", at_most=2)
            self.do("capture", "capture")

    def _command_at(self, point: str) -> str:
        if POINTS[point].role == "apply":
            return "apply"
        return "read_chunks" if point.startswith("chunk ") else "capture"

    def _kill(self, role: Role) -> None:
        code = self.team[role].kill()
        assert code == -signal.SIGKILL, code
        self.team.replace(role)

    def _on_kill_at_random(self, _event: Event) -> bool:
        """Kill a worker some time after it was asked for something; one that was done before gets more to do and less time."""
        role: Role = self.dice.choice(("capture", "apply"))
        worker, seconds = self.team[role], self.dice.random() * 0.15
        for _ in range(ATTEMPTS):
            self._give_work(self.dice.choice(("window landed, not recorded", "chunk landed, not recorded")))  # fmt: skip
            if role == "apply":
                self.do("capture", "capture")
            worker.send(self.dice.choice(COMMANDS[role]))
            if not worker.answers_within(seconds):
                self._kill(role)
                self.proof.kills[f"{role} at random"] += 1
                return True
            self._settle(role, worker.answer())
            seconds /= 3
        return False

    def _on_kill_the_JVM(self, _event: Event) -> bool:
        """The JVM goes while it works; the process that started it says so, and the next one finishes."""
        self.load.step()
        self.do("capture", "capture")
        worker = self.team["apply"]
        children = worker.ask("children").done
        if not children:
            return False
        worker.send("apply")
        worker.answers_within(self.dice.random() * 2)
        for child in children:
            os.kill(child, signal.SIGKILL)
        self._settle("apply", worker.answer())
        self.proof.kills["the JVM alone"] += 1
        self._kill("apply")
        return True

    def _on_stop(self, event: Event) -> bool:
        """Two workers have one role; one is stopped past its lease right before it commits, and goes on when the other is done."""
        point = event.what
        role = POINTS[point].role
        for _ in range(ATTEMPTS):
            self._give_work(point)
            stopped = self.team[role]
            answer = stopped.ask(self._command_at(point), meet=point)
            if answer.met:
                break
            self._settle(role, answer)
        else:
            self.proof.not_reached.append(f"stopped: {point}")
            return False
        self._stop_without_a_lock(stopped)
        self.team.replace(role)
        self.do(role, self._command_at(point))
        self.load.step()
        stopped.signal(signal.SIGCONT)
        answer = stopped.go_on()
        if answer.failed not in REFUSED_AT.get(point, {answer.failed}):
            said = answer.failed or f"done {answer.done}"
            self.proof.let_pass(f"stop: {point}", f"it said {said} {answer.text[-600:]}")  # fmt: skip
        self.proof.happened[f"stopped: {point}"] += 1
        return True

    def _stop_without_a_lock(self, worker: Worker) -> None:
        """SIGSTOP, at a moment at which its renewing of a lease does not hold the store's lock of writers, which it would keep."""
        while True:
            worker.stop()
            if self._is_writable():
                return
            worker.signal(signal.SIGCONT)
            time.sleep(0.01)

    def _is_writable(self) -> bool:
        """In PostgreSQL writers hold an advisory lock."""
        if self._services:
            return not self._store("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted")
        store = sqlite3.connect(self.folder / "state.db", timeout=0.2, isolation_level=None)
        with closing(store):
            try:
                store.execute("BEGIN IMMEDIATE")
                store.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return False
        return True

    # -- damage --------------------------------------------------------------------------------------------------------

    def _on_lose_landing(self, _event: Event) -> bool:
        """A window's files are lost before it is applied; the documented way out."""
        self.load.step()
        self.do("capture", "capture")
        waiting = self._store("SELECT scn_low, scn_high FROM windows WHERE state = 'captured'")
        folders = sorted((self.folder / "landing").glob("*/windows/*"))
        if not waiting or not folders:
            return False
        low, high = waiting[0]
        [folder] = [one for one in folders if f"{low}" in one.name and f"{high}" in one.name]
        shutil.rmtree(folder)
        self.do("capture", "recapture")
        return True

    def _on_damage_landing(self, _event: Event) -> bool:
        """A byte of a waiting window's redo changes: apply names the file and stops, and the documented way out reads it again."""
        landing = self.folder / "landing"
        if not landing.is_dir() or self._states.get("SHIFTED") != "ready":
            return False
        self.load.shift()  # it commits, and its table takes every window
        self.do("capture", "capture")
        waiting = self._store("SELECT MAX(scn_high) FROM windows WHERE state = 'captured'")
        found = sorted(landing.glob(f"*/windows/*-*{waiting[0][0]}/redo*.parquet"))
        if not found:
            return False
        whole = found[0].read_bytes()
        content = bytearray(whole)
        content[self.dice.randrange(len(content))] ^= 1 << self.dice.randrange(8)
        found[0].write_bytes(content)
        answer = self.team["apply"].ask("apply")
        if answer.failed != "LandingDamagedError":
            found[0].write_bytes(whole)
            self.proof.let_pass("damage landing", f"a changed byte was read: {answer}")
        self.do("capture", "recapture")
        self.do("capture", "capture")
        self.do("apply", "apply")
        return True

    def _on_lose_store(self, _event: Event) -> bool:
        """The metadata store is lost, and made anew from landing and lake."""
        store = self.folder / "state.db"
        if not store.exists() or not self._states:
            return False
        for role in ("capture", "apply"):
            self._kill(role)
        for path in self.folder.glob("state.db*"):
            path.unlink()
        self.do("apply" if self.lake == "delta" else "capture", "rebuild_state")
        return True

    # -- the end -------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Bring everything up to one SCN."""
        self.load.draw("end")
        event = Event(-1, "end", "NOTES" if self.lake == "delta" else "")
        self._on_resume(event)
        for number in sorted(self.load.long):
            self.load.long_end(number, commits=True)
        stopped: list[Any] = []
        for _ in range(END_ROUNDS_MAX):
            self._on_load(event)
            self.do("capture", "capture")
            self.do("capture", "read_chunks")
            self.do("apply", "apply")
            self._note()
            stopped.append(
                self._store("SELECT name, state, reason FROM tables WHERE state <> 'ready'")
            )
            if not self._on_come_back(event) and self._is_settled():
                break
        self.do("capture", "capture")
        self.do("apply", "apply")
        self._note()
        if self.lake == "delta" and not self.sabotage:
            whole = max(scn for scn, _ in self._noted)
            self.proof.reconciled.append(self.do("apply", "reconcile", scn=whole))
        lagging = {name: state for name, state in self._states.items() if state != "ready"}
        if lagging:
            raise WorkerFailedError(f"tables are not ready at the end, by round: {stopped}")

    def _is_settled(self) -> bool:
        waiting = self._store("SELECT 1 FROM chunks WHERE state <> 'applied'")
        return not waiting and set(self._states.values()) == {"ready"}

    # -- workers -------------------------------------------------------------------------------------------------------

    def do(self, role: Role, command: str, **arguments: Any) -> Any:
        """Let a worker do something to the end; what is said to pass by itself is tried again."""
        if command == "capture":
            self.end_logs()
        for _ in range(ATTEMPTS):
            answer = self.team[role].ask(command, **arguments)
            if not self._passes(answer):
                break
        return self._expect(answer)

    def end_logs(self) -> None:
        """Where windows end with switched logs, the logs that are written end here."""
        if self.completes:
            self.server.administer("ALTER SYSTEM ARCHIVE LOG CURRENT")

    def _passes(self, answer: Answer) -> bool:
        """Does the same command go on behind this, by itself or without the table that DDL has stopped?"""
        is_ddl = answer.failed == "TableStoppedError" and any(
            f"(table={self.name(table)})" in answer.text for table in STOPPED_BY_DDL
        )
        return answer.is_transient or is_ddl

    def _settle(self, role: Role, answer: Answer) -> None:
        if self._passes(answer):
            self.do(role, role)
        else:
            self._expect(answer)

    def _expect(self, answer: Answer) -> Any:
        if answer.failed is not None:
            raise WorkerFailedError(f"a worker failed: {answer.text[-3000:]}")
        return answer.done

    # -- what the prover knows -----------------------------------------------------------------------------------------

    def _note(self) -> None:
        """Note where each table stands, and when its streams begin and end."""
        rows = self._store(
            "SELECT name, state, generation, first_ordinal, snapshot_scn, stopped_scn, reason, mirror_scn FROM tables"
        )
        for name, state, generation, ordinal, snapshot_scn, stopped_scn, reason, mirror_scn in rows:
            self._states[name] = state
            if state == "failed" and name not in STOPPED_BY_DDL:
                raise WorkerFailedError(f"{name} failed: {reason}")
            if snapshot_scn is None or state == "new":
                continue
            known = self._lives.get(name)
            if known is None or known[0] != generation:
                self.streams[name] = []
                self._noted = {one for one in self._noted if one[1] != name}
            streams = self.streams[name]
            if known != (generation, ordinal):
                self._lives[name] = (generation, ordinal)
                if streams:  # what its mirror had not taken yet, the new snapshot brings
                    streams[-1] = Stream(streams[-1].start, self._positions[name])
                streams.append(Stream(int(snapshot_scn)))
            elif mirror_scn is None:  # it began again before there was a window
                streams[-1] = Stream(int(snapshot_scn))
            if stopped_scn is not None:
                streams[-1] = Stream(streams[-1].start, int(stopped_scn))
            self._positions[name] = max(int(mirror_scn or 0), streams[-1].start)
            self._joined.add((name, int(ordinal)))
        self._count_late()
        self._noted |= {(int(scn), name) for scn, name in self._store(STANDS)}
        for low, high, found in self._store(INEXACT):
            inexact = json.loads(found)
            self._lacking[int(low), int(high)] = (int(inexact["scn"]), tuple(inexact["tables"]))
        self._noted = {one for one in self._noted if not self._lacks_commits(*one)}

    def _lacks_commits(self, scn: int, table: str) -> bool:
        """Did commits of the table up to the SCN come to light after the window in which it lies?"""
        return any(
            low < scn <= high and first <= scn and self.name(table) in tables
            for (low, high), (first, tables) in self._lacking.items()
        )

    def ready(self, among: Any = WILD_TABLES) -> str | None:
        ready = [table for table in among if self._states.get(table) == "ready"]
        return self.dice.choice(sorted(ready)) if ready else None

    def name(self, table: str) -> str:
        return f"{self.server.user.upper()}.{written(table)}"

    def _store(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the metadata store, read as any tool could."""
        engine = create_engine(self._url, poolclass=NullPool)
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(sql))]

    # -- comparing -----------------------------------------------------------------------------------------------------

    def _compare_noted(self, only: str | None) -> None:
        """Compare tables where they were seen to stand: at some SCNs of each, the last one among them."""
        for table in self.tables if only is None else (only,):
            scns = sorted(
                scn
                for scn, name in self._noted - self._compared
                if name == table and scn >= self._blind_below.get(table, 0)
            )
            chosen = self.dice.sample(scns, min(self.scns_compared, len(scns)))
            for scn in sorted({*chosen, *scns[-1:]}):
                self._compare(table, scn)
            self._compared |= {(scn, table) for scn in scns}
        if only is None:
            self._ask_tpcc()

    def _compare(self, table: str, scn: int) -> None:
        found = judge(
            self.connection, table, KEYS[table], scn,
            lambda names: self._judged.values(table, scn, names), without=HIDDEN.get(table, ()),
        )  # fmt: skip
        self.proof.comparisons.append(Comparison(scn, table, found))

    def _check_hidden(self) -> None:
        """No value of a column that is not captured is in a file: of landing (where it is a folder), lake, store and logs."""
        found, self.proof.read_for_marks = files_with_marks(self.folder, without="oracle")
        self.proof.violations += [
            f"a value that is not captured: {one.relative_to(self.folder)}" for one in found
        ]

    def _ask_tpcc(self) -> None:
        times = Counter(scn for scn, table in self._noted if table in TPCC)
        whole = sorted(scn for scn, tables in times.items() if tables == len(TPCC))
        for scn in self.dice.sample(whole, min(self.scns_compared, len(whole))):
            images = {}
            for table in TPCC:
                names = self._columns(table)
                rows = self._judged.values(table, scn, names)
                images[table] = [dict(zip(names, row, strict=True)) for row in rows]
            self.proof.violations += [f"{one} (SCN {scn})" for one in inconsistencies(images)]
            self.proof.consistent += 1

    def _columns(self, table: str) -> list[str]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {quoted(table)} WHERE 1 = 0")
            return [column[0] for column in cursor.description]

    def _check_changelogs(self) -> None:
        positions = {name: int(scn) for name, scn in self._store("SELECT name, mirror_scn FROM tables")}  # fmt: skip
        for table in self.tables:
            self.proof.violations += check_table(
                table,
                self._judged.changelog(table),
                self._judged.mirror(table),
                self.load.committed,
                self.streams[table],
                positions[table],
                self.load.dropped.get(table, ()),
                renamed=self.load.renamed.get(table, ()),
                loses_columns=self.follows,
                emptied=self.load.emptied if table == PARTS else (),
            )
            if isinstance(self._judged, JudgedDelta):
                self.proof.violations += check_history(
                    table,
                    TableId.parse(self.name(table)),
                    self.folder / "lake",
                    self._judged.changelog_path(table),
                    self.streams[table],
                    self.load.renamed.get(table, ()),
                )

    def _count_late(self) -> None:
        """Count new windows with redo from below them that came late, but for what the first window and tables that join read back."""
        for manifest in sorted((self.folder / "landing").glob("*/windows/*/*.json")):
            folder = manifest.parent
            if folder in self._counted:
                continue
            self._counted.add(folder)
            low = int(folder.name.split("-")[-2])
            self.proof.late["windows with late redo"] += any(
                row["scn"] <= low
                and (number := row["ordinal"] >> ORDINAL_SHIFT)
                and (row["table_name"], number) not in self._joined
                for path in folder.glob("redo*.parquet")
                for row in pq.read_table(path, columns=["scn", "table_name", "ordinal"]).to_pylist()
            )

    # -- set-up --------------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self.connection = self.server.connect()
        self._clock = self.server.connect_capture()

    def _scn(self) -> int:
        return current_scn(self._clock)

    @contextmanager
    def _capture_session(self) -> Iterator[oracledb.Cursor]:
        with self.server.connect_capture() as connection, connection.cursor() as cursor:
            yield cursor

    def _configure(self) -> Path:
        self._url = self._services.get("store", f"sqlite:///{self.folder}/state.db")
        lake = self.folder / "lake"
        self._judged: JudgedLake = (
            JudgedDelta(lake, self.name) if self.lake == "delta" else JudgedKept(lake, self.name)
        )
        tables: list[dict[str, Any]] = [{"name": self.name(table)} for table in self.tables]
        for table in tables:
            if table["name"].endswith(".LOOSE"):
                table["key"] = list(KEYS["LOOSE"])
            if table["name"].endswith(".BARE"):
                table["identity"] = "rowid"
            if table["name"].endswith(".EQUALS"):
                table["identity"] = "all_columns"
            if table["name"].endswith(".PASSING") and self.follows:
                table["on_truncate"] = "follow"
            if table["name"].endswith(f".{PARTS}"):
                table["on_truncate"] = "follow_or_resnapshot"
            if table["name"].endswith(".GROWING") and self.follows:
                table["dropped_columns"] = "drop"
            for hiding, columns in HIDDEN.items():
                if table["name"].endswith(f".{hiding}"):
                    table["columns_exclude"] = list(columns)
            if table["name"].endswith(WITHOUT_VECTORS):
                table["deletion_vectors"] = "never"
        config = {
            "name": "proof",
            "oracle": {
                "dsn": self.server.dsn, "user": self.server.capture_user, "password": self.server.capture_password,
                "fetch_rows": 100,
            },
            "tables": tables,
            "capture": {"close_at": "completed_logs" if self.completes else "online"},
            "snapshot": {"chunk_rows": 100},
            "maintenance": {"deletion_vectors": "always"},
            "landing": self._services.get("landing", {"type": "local", "path": str(self.folder / "landing")}),
            "lake": {
                "path": str(lake), "driver_memory": "1g", **({} if self.rewrites else {"rewrite_mirrors_up_to_mb": 0}),
                "spark_config": {"spark.driver.extraJavaOptions": " ".join(SHORT_LIVED), **SMALL_WORK, **(ON_A_CLUSTER if self._spark else {})},
                **({"spark_master": self._spark} if self._spark else {}),
                **self._stage,
            },
            "state": {"url": self._url, "lease_seconds": LEASE_SECONDS},
        }  # fmt: skip
        path = self.folder / "config.json"
        path.write_text(json.dumps(config))
        return path

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Count the block's seconds by the kind of what happens; one that does not end is interrupted."""
        outer = self._enter(name)
        with deadline(EVENT_SECONDS_MAX[self.lake], self.team.stacks):
            yield
        self._enter(outer)

    def _enter(self, name: str) -> str:
        now, before = time.monotonic(), self._now
        self.proof.seconds[self._kind_of(before)] += now - self._since
        self._now, self._since = name, now
        return before

    def _kind_of(self, phase: str) -> str:
        """The event's kind, of whose number and object a phase is named too."""
        return phase.partition(" ")[2].partition(":")[0] if phase[:1].isdigit() else phase
