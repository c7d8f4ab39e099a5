"""What is the result of a benchmark, and how is it measured?

A benchmark is a module with ``rows(form) -> list[Result]``. Ours and the other are measured in one
run, on one machine, on the same input, in turns where that is possible; a figure without a check of
its result is worth nothing, so ``correct`` stands beside it. Seconds on the clock believe every
neighbour on the machine, so the CPU seconds of each process and the load stand beside them too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median

import oracledb

GROWN_AT_ONCE = 50_000
_TICKS = os.sysconf("SC_CLK_TCK")


class Form(StrEnum):
    """How much a benchmark takes on: ``quick`` for small machines, ``normal`` for ``make bench``,
    ``long`` for sizes that need an hour."""

    QUICK = "quick"
    NORMAL = "normal"
    LONG = "long"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock, and CPU seconds by process: ``driver`` (this Python), ``jvm``,
    ``workers`` (Python that Spark started), ``database`` (the embedded Oracle) and ``other``."""

    seconds: float
    cpu: Mapping[str, float]
    runs: int = 1
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The least and the most ``seconds`` and ``cpu_seconds`` of several runs."""

    @property
    def cpu_seconds(self) -> float:
        """Of all processes but the database."""
        return sum(used for name, used in self.cpu.items() if name != "database")


@dataclass(frozen=True, slots=True)
class Result:
    """One row of a run's report.

    ``ratio`` above 1 means that we are better. ``theirs`` is None where there is nothing to compare
    with, or where the peer cannot run here: ``against`` then says why. ``cost`` is what one run of
    ours took, the median of several; ``is_warm`` says that the same work had run in the same
    processes before.
    """

    question: str
    ours: float | None
    unit: str
    against: str
    theirs: float | None = None
    goal: float | None = None
    correct: bool = True
    higher_is_better: bool = True
    cost: Cost | None = None
    is_warm: bool | None = None
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    @property
    def ratio(self) -> float | None:
        """How many times better we are."""
        if not self.ours or not self.theirs:
            return None
        return self.ours / self.theirs if self.higher_is_better else self.theirs / self.ours

    def as_json(self) -> dict[str, object]:
        """The row with the keys that readers of the file rely on."""
        cost = self.cost
        return {
            "question": self.question,
            "ours": _short(self.ours),
            "unit": self.unit,
            "against": self.against,
            "theirs": _short(self.theirs),
            "ratio": _short(self.ratio),
            "goal": self.goal,
            "correct": self.correct,
            "seconds": _short(cost.seconds) if cost else None,
            "cpu_seconds": {name: _short(used) for name, used in cost.cpu.items()} if cost else {},
            "runs": cost.runs if cost else None,
            "spread": {name: [_short(one) for one in ends] for name, ends in cost.spread.items()}
            if cost
            else {},
            "warm": self.is_warm,
            "load": _short(self.load),
        }


@dataclass(slots=True)
class Stopwatch:
    """What a block took; read after the block has ended."""

    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)

    @property
    def cost(self) -> Cost:
        """The same as a value."""
        return Cost(self.seconds, self.cpu)


@contextmanager
def measured() -> Iterator[Stopwatch]:
    """Measure a block."""
    watch = Stopwatch()
    before, started = cpu_seconds(), time.perf_counter()
    try:
        yield watch
    finally:
        watch.seconds = time.perf_counter() - started
        after = cpu_seconds()
        watch.cpu = {name: used - before.get(name, 0.0) for name, used in after.items()}


def median_cost(costs: Sequence[Cost]) -> Cost:
    """The median of several runs, of seconds and of each process's CPU seconds by itself, with the
    least and the most of both."""
    names = sorted({name for cost in costs for name in cost.cpu})
    cpu = {name: median(cost.cpu.get(name, 0.0) for cost in costs) for name in names}
    seconds, used = [cost.seconds for cost in costs], [cost.cpu_seconds for cost in costs]
    spread = {"seconds": (min(seconds), max(seconds)), "cpu_seconds": (min(used), max(used))}
    return Cost(median(seconds), cpu, len(costs), spread)


def repeated(work: Callable[[], object], *, repeats: int) -> Cost:
    """The median of several runs: the machine is shared, and the mean believes every hiccup."""
    return alternating({"work": work}, repeats=repeats)["work"]


def alternating(works: Mapping[str, Callable[[], object]], *, repeats: int) -> dict[str, Cost]:
    """The median of several rounds, in each of which every work runs once: what disturbs the
    machine disturbs them all."""
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            with measured() as watch:
                work()
            costs[name].append(watch.cost)
    return {name: median_cost(found) for name, found in costs.items()}


def median_seconds(work: Callable[[], object], *, repeats: int) -> float:
    """The median of several runs on the clock."""
    return repeated(work, repeats=repeats).seconds


def cpu_seconds() -> dict[str, float]:
    """CPU seconds that this process and those below it have used so far, ended ones included; empty
    where there is no ``/proc``."""
    found = {"driver": sum(os.times()[:2]), "other": sum(os.times()[2:4])}
    for name, used in cpu_of(descendants(os.getpid()), kind_of).items():
        found[name] = found.get(name, 0.0) + used
    return found


def cpu_of(
    processes: Sequence[int], kind: Callable[[int], str], *, ended: str = "other"
) -> dict[str, float]:
    """CPU seconds that these processes have used so far, by kind; those of their children that have
    ended count as ``ended``."""
    found: dict[str, float] = {}
    for process in processes:
        name = kind(process)
        try:
            stat = (Path("/proc") / str(process) / "stat").read_text()
        except OSError:
            continue
        used = [int(text) / _TICKS for text in stat.rpartition(")")[2].split()[11:15]]
        found[name] = found.get(name, 0.0) + used[0] + used[1]
        found[ended] = found.get(ended, 0.0) + used[2] + used[3]
    return found


def descendants(root: int) -> list[int]:
    """The processes below one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def kind_of(process: int) -> str:
    """Which part of the whole a process below this one is, as in :class:`Cost`."""
    try:
        command = (Path("/proc") / str(process) / "cmdline").read_bytes()
    except OSError:
        return "other"
    if b"pyspark.daemon" in command:
        return "workers"
    if b"oracle\0serve" in command:
        return "database"
    return "jvm" if b"java" in command.split(b"\0")[0] else "other"


def peak_megabytes() -> dict[str, float]:
    """The highest resident memory so far of this process and of each kind below it that still
    runs."""
    found: dict[str, float] = {}
    for process in (os.getpid(), *descendants(os.getpid())):
        name = "driver" if process == os.getpid() else kind_of(process)
        try:
            lines = (Path("/proc") / str(process) / "status").read_text().splitlines()
        except OSError:
            continue
        peaks = [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")]
        found[name] = max(found.get(name, 0.0), *peaks, 0.0)
    return found


def _short(value: float | None) -> float | None:
    """Four significant digits: more would pretend."""
    return None if value is None else float(f"{value:.4g}")


def grow(connection: oracledb.Connection, first: str, more: str, count: int) -> None:
    """Fill a table with ``count`` rows, :data:`GROWN_AT_ONCE` in a transaction: by ``first``, with
    the bind ``many``, and by copies of these, ``more``, with ``there`` beside it."""
    with connection.cursor() as cursor:
        for there in range(0, count, GROWN_AT_ONCE):
            many = min(GROWN_AT_ONCE, count - there)
            if there:
                cursor.execute(more, {"there": there, "many": many})
            else:
                cursor.execute(first, {"many": many})
            connection.commit()
