"""Steps on windows and chunks that are recorded, for tests of what goes on side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from cdc_core.model.chunks import ChunkKey
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import ScnWindow

SECONDS = 60.0


class Recorder:
    """Steps that are recorded; one may be told to wait or to fail."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.started: list[str] = []
        self.hooks: dict[str, Callable[[], None]] = {}
        self.lock = threading.Lock()

    def step(self, kind: str) -> Callable[[ScnWindow | ChunkKey], StepReport]:
        def work(key: ScnWindow | ChunkKey) -> StepReport:
            table = f"{key.table.name} " if isinstance(key, ChunkKey) else ""
            name = f"{kind} {table}{key.key}"
            with self.lock:
                self.started.append(name)
            self.hooks.get(name, lambda: None)()
            with self.lock:
                self.done.append(name)
            return StepReport(kind="chunk-applied", key=name, seconds=0.0)

        return work


def until(error: type[Exception], steps: Iterator[StepReport]) -> list[str]:
    """The keys of the steps that were yielded before the error."""
    seen: list[str] = []

    def listen() -> None:
        seen.extend(step.key for step in steps)

    with pytest.raises(error):
        listen()
    return seen


def failing(error: Exception) -> Callable[[], None]:
    def fails() -> None:
        raise error

    return fails


def must(happened: bool) -> None:
    assert happened, "the other step did not go on meanwhile"
