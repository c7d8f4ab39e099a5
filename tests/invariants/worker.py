"""A process with one role that does what it is told over a pipe: the prover's victim.

``capture`` reads Oracle into landing and has no JVM; ``apply`` carries landing into the lake and keeps its JVM from one command to
the next. A command is ``{"do": "capture", "meet": POINT, "hit": N}``. Answers are ``{"met": POINT}``, after which the worker waits
for any message before it goes on, and at the end ``{"done": …}`` or ``{"failed": …}``.
"""

from __future__ import annotations

import os
import random
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
from cdc_core.lake.spark import start_session
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.invariants.points import Role, install
from tests.invariants.sabotage import SABOTAGES


class Worker:
    """The commands of both roles."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.source = pipeline.config.name

    def warm(self) -> int:
        """Do before there is work what takes longest: start Spark, and compile the decoder in a tree that is new."""
        warm_up()
        start_session(self.pipeline.config.lake)
        return 0

    def snapshot(self, table: str | None = None, condition: str | None = None) -> int:
        """Plan what is missing (or an ad hoc snapshot of a table), and read every planned chunk into landing."""
        tables = None if table is None else [TableId.parse(table)]
        self.pipeline.start_snapshot(tables, condition=condition)
        return self.read_chunks()

    def read_chunks(self) -> int:
        """Read every planned chunk into landing."""
        planned = self.pipeline._ctx.store.chunks(self.source, states=("planned",))
        for chunk in planned:
            self.pipeline.snapshot_chunk(ChunkKey(chunk.table, chunk.snapshot_id, chunk.number))
        return len(planned)

    def capture(self) -> int:
        """Capture the windows that are planned, then cut windows to the present and capture them."""
        captured = self._capture_planned()
        self.pipeline.plan_windows()
        return captured + self._capture_planned()

    def _capture_planned(self) -> int:
        planned = self.pipeline._ctx.store.windows(self.source, states=("planned",))
        for record in planned:
            self.pipeline.capture_window(record.window)
        return len(planned)

    def apply(self) -> int:
        """Apply every landed chunk and every captured window."""
        landed = self.pipeline._ctx.store.chunks(self.source, states=("landed",))
        for chunk in landed:
            self.pipeline.apply_chunk(ChunkKey(chunk.table, chunk.snapshot_id, chunk.number))
        captured = self.pipeline._ctx.store.windows(self.source, states=("captured",))
        for record in captured:
            self.pipeline.apply_window(record.window)
        return len(landed) + len(captured)

    def replay(self, seed: int, windows: int) -> int:
        """Take every applied chunk and some applied windows once more, in shuffled order."""
        rng = random.Random(seed)
        work: list[Callable[[], Any]] = []
        applied = self.pipeline._ctx.store.windows(self.source, states=("applied",))
        for record in rng.sample(applied, min(windows, len(applied))):
            work.append(lambda window=record.window: self.pipeline.replay_window(window))  # type: ignore[misc]
        for chunk in self.pipeline._ctx.store.chunks(self.source, states=("applied",)):
            key = ChunkKey(chunk.table, chunk.snapshot_id, chunk.number)
            work.append(lambda key=key: self.pipeline.apply_chunk(key))  # type: ignore[misc]
        rng.shuffle(work)
        for task in work:
            task()
        return len(work)

    def reconcile(self, scn: int) -> dict[str, Any]:
        """What the pipeline says of itself at one SCN."""
        return asdict(self.pipeline.reconcile(scn=scn))


def serve(config: Path, role: Role, sabotage: str | None, pipe: Connection, log: Path) -> None:
    """Answer commands until the prover closes the pipe. What the process prints goes to ``log``."""
    os.setsid()
    with log.open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    if sabotage:
        SABOTAGES[sabotage]()
    talking = threading.Lock()

    def meet(point: str) -> None:
        with talking:
            pipe.send({"met": point})
            pipe.recv()

    points = install(role, meet)
    with Pipeline(SourceConfig.model_validate_json(config.read_text())) as pipeline:
        worker = Worker(pipeline)
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
