"""What is the result of a benchmark, and how is it measured?

A benchmark is a module with ``rows(*, quick: bool) -> list[Result]``. Ours and the other are measured in one run, on one
machine, on the same input; a figure without a check of its result is worth nothing, so ``correct`` stands beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Result:
    """One row of ``results.json``.

    ``ratio`` above 1 means that we are better. ``theirs`` is None where there is nothing to compare with, or where the peer
    cannot run here: ``against`` then says why.
    """

    question: str
    ours: float | None
    unit: str
    against: str
    theirs: float | None = None
    goal: float | None = None
    correct: bool = True
    higher_is_better: bool = True

    @property
    def ratio(self) -> float | None:
        """How many times better we are."""
        if not self.ours or not self.theirs:
            return None
        return self.ours / self.theirs if self.higher_is_better else self.theirs / self.ours

    def as_json(self) -> dict[str, object]:
        """The row with the keys that readers of the file rely on."""
        return {
            "question": self.question,
            "ours": _short(self.ours),
            "unit": self.unit,
            "against": self.against,
            "theirs": _short(self.theirs),
            "ratio": _short(self.ratio),
            "goal": self.goal,
            "correct": self.correct,
        }


@dataclass(slots=True)
class Stopwatch:
    """Seconds of a block; read after the block has ended."""

    seconds: float = 0.0


@contextmanager
def measured() -> Iterator[Stopwatch]:
    """Measure a block."""
    watch = Stopwatch()
    started = time.perf_counter()
    try:
        yield watch
    finally:
        watch.seconds = time.perf_counter() - started


def median_seconds(work: Callable[[], object], *, repeats: int) -> float:
    """The median of several runs: the machine is shared, and the mean believes every hiccup."""
    seconds = []
    for _ in range(repeats):
        with measured() as watch:
            work()
        seconds.append(watch.seconds)
    return median(seconds)


def _short(value: float | None) -> float | None:
    """Four significant digits: more would pretend."""
    return None if value is None else float(f"{value:.4g}")
