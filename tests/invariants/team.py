"""The prover's workers: one process per role, asked over a pipe, and replaced when a kill has ended it."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.invariants.deadline import ANSWER_SECONDS_MAX
from tests.invariants.nursery import NURSERY
from tests.invariants.points import LakeKind, Role
from tests.invariants.worker import STACKS_SIGNAL, serve

STACKS_SECONDS_MAX = 60.0
STACKS_CHARACTERS = 6000


class WorkerFailedError(AssertionError):
    """A worker ended or failed where it should not."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker said: where it waits, what it did, or how it failed."""

    met: str | None = None
    done: Any = None
    failed: str | None = None
    is_transient: bool = False
    text: str = ""


def is_writable(store: Path) -> bool:
    """Does nobody hold the lock of writers of a store's SQLite file?"""
    with contextlib.closing(sqlite3.connect(store, timeout=0.2, isolation_level=None)) as opened:
        try:
            opened.execute("BEGIN IMMEDIATE")
            opened.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


class Worker:
    """A process with a role."""

    def __init__(
        self,
        config: Path,
        role: Role,
        log: Path,
        *,
        lake: LakeKind = "delta",
        sabotage: str | None = None,
    ) -> None:
        self.role = role
        self._log = log
        self._pipe, far = NURSERY.Pipe()
        self._process = NURSERY.Process(
            target=serve, args=(config, role, lake, sabotage, far, log), daemon=True
        )
        self._process.start()
        far.close()
        self._owed = 0

    def send(self, do: str, **arguments: Any) -> None:
        """Send a command and do not wait for its answer; the next :meth:`ask` does."""
        try:
            self._pipe.send({"do": do, **arguments})
        except ConnectionError as error:
            raise WorkerFailedError(f"the {self.role} worker ended: {self._said()}") from error
        self._owed += 1

    def ask(self, do: str, **arguments: Any) -> Answer:
        """Send a command and wait until it has ended, or meets the prover at a point."""
        while self._owed:
            self.answer()
        self.send(do, **arguments)
        return self.answer()

    def go_on(self) -> Answer:
        """Let a worker that waits at a point go on, and wait for the end of its command."""
        self._pipe.send({})
        return self.answer()

    def answer(self) -> Answer:
        """The next answer.

        Raises:
            WorkerFailedError: The process ended, or gives none.
        """
        try:
            if not self._pipe.poll(ANSWER_SECONDS_MAX):
                raise WorkerFailedError(
                    f"the {self.role} worker gives no answer within {ANSWER_SECONDS_MAX} seconds: {self.stacks()}"
                )
            answer = Answer(**self._pipe.recv())
        except (EOFError, ConnectionError) as error:
            raise WorkerFailedError(f"the {self.role} worker ended: {self._said()}") from error
        if answer.met is None:
            self._owed -= 1
        return answer

    def answers_within(self, seconds: float) -> bool:
        """Is there an answer by then?"""
        return self._pipe.poll(seconds)

    def signal(self, number: int) -> None:
        """Send a signal to the process alone; a JVM that it started is not told."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def stop(self) -> None:
        """SIGSTOP, and wait until every thread of the process has stopped: the signal alone is there before they have, so one of them
        may still take a lock."""
        self.signal(signal.SIGSTOP)
        while not self._is_stopped():
            time.sleep(0.001)

    def stop_where(self, is_fine: Callable[[], bool]) -> None:
        """Stop it at a moment at which something is so that others see."""
        while True:
            self.stop()
            if is_fine():
                return
            self.signal(signal.SIGCONT)
            time.sleep(0.01)

    def _is_stopped(self) -> bool:
        """Source: proc(5), ``/proc/PID/task/TID/stat``: the state follows the name, which ends with the last bracket."""
        for thread in Path(f"/proc/{self._process.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                if (thread / "stat").read_text().rpartition(")")[2].split()[0] not in "TXZ":
                    return False
        return True

    def kill(self) -> int | None:
        """SIGKILL of the process alone; returns its exit code."""
        self._process.kill()
        self._process.join()
        return self._process.exitcode

    def close(self) -> None:
        """End the process and whatever it started. One that has just been forked leads no process group yet."""
        assert self._process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()

    def stacks(self) -> str:
        """Where its threads are, if it lives and has begun its work."""
        if not self._process.is_alive() or not self._log.exists():
            return f"the {self.role} worker is not at work"
        size = self._log.stat().st_size
        self.signal(signal.SIGCONT)
        self.signal(STACKS_SIGNAL)
        until = time.monotonic() + STACKS_SECONDS_MAX
        said = ""
        while (
            "in <module>" not in said and time.monotonic() < until
        ):  # the last line of the last thread
            time.sleep(0.05)
            said = self._log.read_bytes()[size:].decode(errors="replace")
        return f"the {self.role} worker ({self._log.name}):\n{said[-STACKS_CHARACTERS:]}"

    def _said(self) -> str:
        return self._log.read_text()[-3000:]


class Team:
    """A worker per role; a context manager."""

    def __init__(self, config: Path, *, lake: LakeKind, sabotage: str | None) -> None:
        self._config = config
        self._lake = lake
        self._sabotage = sabotage
        self._everybody: list[Worker] = []
        self._at_work: dict[Role, Worker] = {}

    def __enter__(self) -> Self:
        self.replace("apply")
        self.replace("capture")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._everybody:
            worker.close()

    def __getitem__(self, role: Role) -> Worker:
        return self._at_work[role]

    def stacks(self) -> str:
        """Where the threads of all workers are that live."""
        return "\n".join(worker.stacks() for worker in self._everybody)

    def hire(self, role: Role) -> Worker:
        """Start a worker beside the one that has the role; Spark starts in it while others work."""
        log = self._config.with_name(f"{role}-{len(self._everybody)}.log")
        worker = Worker(self._config, role, log, lake=self._lake, sabotage=self._sabotage)
        self._everybody.append(worker)
        if role == "apply":
            worker.send("warm")
        return worker

    def replace(self, role: Role) -> None:
        """Let a new worker take the role."""
        self._at_work[role] = self.hire(role)
