"""A process with one role that does what it is told over a pipe: the prover's victim.

``capture`` reads Oracle into landing and has no JVM; ``apply`` carries landing into the lake and keeps its JVM from one command to
the next. A command is ``{"do": "capture", "meet": POINT, "hit": N}``. Answers are ``{"met": POINT}``, after which the worker waits
for any message before it goes on, and at the end ``{"done": …}`` or ``{"failed": …}``.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cdc_core.config import SourceConfig
from cdc_core.decode.warm import warm_up
from cdc_core.errors import TransientError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, ChunkState
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.signals import Signal
from cdc_core.spark.session import start_session
from cdc_core.steps import Pipeline
from tests.invariants.kept_lake import KeptLake
from tests.invariants.points import LakeKind, Role, install
from tests.invariants.sabotage import SABOTAGES
from tests.invariants.tries import Tries

STACKS_SIGNAL = signal.SIGUSR1
"""Makes a worker write to its log where its threads are."""


class Worker:
    """The commands of both roles."""

    def __init__(self, pipeline: Pipeline, lake: LakeKind) -> None:
        self.pipeline = pipeline
        self.source = pipeline.config.name
        self._lake = lake

    def warm(self) -> int:
        """Do before there is work what takes longest: start Spark, and compile the decoder in a tree that is new."""
        warm_up()
        if self._lake == "delta":
            start_session(self.pipeline.config.lake)
        return 0

    def children(self) -> list[int]:
        """The process ids of what this process has started: its JVM."""
        found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
        return [int(one) for path in found for one in path.read_text().split()]

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def plan_snapshot(self, table: str | None = None, condition: str | None = None) -> int:
        """Plan the first snapshot, or an ad hoc one of a table."""
        tables = None if table is None else [TableId.parse(table)]
        return len(self.pipeline.start_snapshot(tables, condition=condition))

    def signal(self, name: str, table: str, condition: str | None) -> int:
        """Ask for an ad hoc snapshot by a signal, and take it."""
        data: dict[str, Any] = {"data-collections": [table]}
        if condition is not None:
            data["additional-conditions"] = [{"data-collection": table, "filter": condition}]
        self.pipeline.add_signal(
            Signal(id=name, source=self.source, type="execute-snapshot", data=data)
        )
        return sum(len(keys) for _, keys in self.pipeline.take_signals())

    def snapshot(self) -> int:
        """Plan what is missing, and read every planned chunk into landing."""
        self.plan_snapshot()
        return self.read_chunks()

    def read_chunks(self, at_most: int = sys.maxsize) -> int:
        """Read planned chunks into landing, but for those of tables that have stopped."""
        planned = self._of_tables_that_go_on("planned")[:at_most]
        for chunk in planned:
            self.pipeline.snapshot_chunk(ChunkKey(chunk.table, chunk.snapshot_id, chunk.number))
        return len(planned)

    def _of_tables_that_go_on(self, state: ChunkState) -> list[ChunkRecord]:
        store = self.pipeline.store
        stopped = {one.table for one in store.tables.all() if one.state == "failed"}
        return [one for one in store.chunks.find(states=(state,)) if one.table not in stopped]

    # -- windows -------------------------------------------------------------------------------------------------------

    def capture(self) -> int:
        """Capture the windows that are planned, then cut windows to the present and capture them."""
        captured = self.capture_planned()
        self.pipeline.plan_windows()
        return captured + self.capture_planned()

    def plan(self) -> list[tuple[int, int]]:
        """Cut windows to the present; the bounds of all that are planned."""
        self.pipeline.plan_windows()
        planned = self.pipeline.store.windows.find(states=("planned",))
        return [(record.window.scn_low, record.window.scn_high) for record in planned]

    def capture_one(self, low: int, high: int) -> int:
        """Capture one window, whatever is before it."""
        return self.pipeline.capture_window(ScnWindow(Scn(low), Scn(high))).rows

    def apply_one(self, low: int, high: int) -> int:
        """Apply one window, whatever is before it."""
        return self.pipeline.apply_window(ScnWindow(Scn(low), Scn(high))).rows

    def replay_one(self, low: int, high: int) -> int:
        """Replay one window, applied or not."""
        return self.pipeline.replay_window(ScnWindow(Scn(low), Scn(high))).rows

    def attempt(self, what: str, **arguments: int) -> Any:
        """Try what must be refused (:mod:`tests.invariants.tries`)."""
        return getattr(Tries(self.pipeline), what)(**arguments)

    def capture_planned(self) -> int:
        """Capture the windows that are planned."""
        planned = self.pipeline.store.windows.find(states=("planned",))
        with self.pipeline.prefetching([record.window for record in planned]):
            for record in planned:
                self.pipeline.capture_window(record.window)
        return len(planned)

    def apply(self) -> int:
        """Apply every landed chunk but those of tables that have stopped, and every captured window that a table wants."""
        landed = self._of_tables_that_go_on("landed")
        for chunk in landed:
            self.pipeline.apply_chunk(ChunkKey(chunk.table, chunk.snapshot_id, chunk.number))
        planned = self.pipeline.store.windows.find(states=("planned",))
        not_captured = {record.window for record in planned}
        wanted = [one for one in self.pipeline.pending_windows() if one not in not_captured]
        for window in wanted:
            self.pipeline.apply_window(window)
        return len(landed) + len(wanted)

    def replay(self, seed: int, windows: int, chunks: int = sys.maxsize) -> dict[str, int]:
        """Take applied windows and chunks once more, in shuffled order; how many of each."""
        rng = random.Random(seed)
        work: list[Callable[[], Any]] = []
        tables = self.pipeline.store.tables.all()
        applied = self.pipeline.store.windows.find(states=("applied",))
        applied = rng.sample(applied, min(windows, len(applied)))
        for record in applied:
            taken = [
                one.table
                for one in tables
                if one.state == "ready"
                and one.first_ordinal <= record.ordinal
                and (one.mirror_scn or 0) >= record.window.scn_high
            ]
            work.append(
                lambda window=record.window, taken=taken: self.pipeline.replay_window(window, taken)  # type: ignore[misc]
            )
        read = self.pipeline.store.chunks.find(states=("applied",))
        read = rng.sample(read, min(chunks, len(read)))
        for chunk in read:
            key = ChunkKey(chunk.table, chunk.snapshot_id, chunk.number)
            work.append(lambda key=key: self.pipeline.apply_chunk(key))  # type: ignore[misc]
        rng.shuffle(work)
        for task in work:
            changed = [one.table.name for one in task().tables if not one.skipped]
            if changed:
                raise AssertionError(f"a replay changed mirrors that were not damaged: {changed}")
        return {"windows": len(applied), "chunks": len(read)}

    def retire(self) -> int:
        """Forget what is not needed any more."""
        return len(self.pipeline.retire_windows())

    def maintain(self, tables: list[str]) -> int:
        """`redolake maintain`; how many mirrors have deletion vectors switched on behind it."""
        done = list(self.pipeline.maintain([TableId.parse(table) for table in tables]))
        if failed := [one.left_alone for one in done if one.is_failed]:
            raise AssertionError(f"tables were not maintained: {failed}")
        return sum(layer.has_vectors for one in done for layer in one.done)

    # -- fates and ways out ----------------------------------------------------------------------------------------------

    def remove(self, table: str) -> int:
        """`redolake table remove`."""
        return len(self.pipeline.remove_tables([TableId.parse(table)]))

    def add(self, table: str) -> int:
        """`redolake table add`."""
        return len(self.pipeline.add_tables([TableId.parse(table)]))

    def pause(self, table: str) -> int:
        """`redolake table pause`."""
        return len(self.pipeline.pause_tables([TableId.parse(table)]))

    def resume(self, table: str) -> int:
        """`redolake table resume`."""
        return len(self.pipeline.resume_tables([TableId.parse(table)]))

    def resnapshot(self, table: str) -> int:
        """`redolake table resnapshot`."""
        return len(self.pipeline.resnapshot_tables([TableId.parse(table)]))

    def recapture(self) -> int:
        """`redolake recapture`."""
        return len(list(self.pipeline.recapture()))

    def rebuild_state(self) -> int:
        """`redolake state rebuild`."""
        self.pipeline.rebuild_state()
        return 0

    def reconcile(self, scn: int) -> dict[str, Any]:
        """What the pipeline says of itself at one SCN."""
        return asdict(self.pipeline.reconcile(scn=scn))


def serve(
    config: Path, role: Role, lake: LakeKind, sabotage: str | None, pipe: Connection, log: Path
) -> None:
    """Answer commands until the prover closes the pipe. What the process prints goes to ``log``."""
    os.setsid()
    with log.open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    faulthandler.register(STACKS_SIGNAL, file=sys.stderr)
    if sabotage:
        SABOTAGES[sabotage]()
    talking = threading.Lock()

    def meet(point: str) -> None:
        with talking:
            pipe.send({"met": point})
            pipe.recv()

    source = SourceConfig.model_validate_json(config.read_text())
    points = install(role, lake, source.capture.type, meet)
    kept = KeptLake(Path(source.lake.path)).open if lake == "kept" else None
    with Pipeline(source, open_lake=kept) as pipeline:
        worker = Worker(pipeline, lake)
        while True:
            try:
                command = pipe.recv()
            except EOFError:
                return
            points.arm(command.pop("meet", ""), command.pop("hit", 1))
            answer: dict[str, Any]
            try:
                answer = {"done": getattr(worker, command.pop("do"))(**command)}
            except Exception as error:
                answer = {
                    "failed": type(error).__name__,
                    "is_transient": isinstance(error, TransientError),
                    "text": traceback.format_exc(),
                }
            points.disarm()
            with talking:
                pipe.send(answer)
