"""From how many changes on is it worth while to let Spark's executors stage a window, beside
threads of the driver?

The same windows of new flights and their changes (``benchmarks.made``) are applied to two lakes, in
turns and in one warm Spark: in one threads stage all of them, in the other executors, in four tasks
each. On one machine both share its cores, so executors cannot be faster on the clock than the
machine is; what they take off the driver is what a cluster gains, and what they cost in all is what
it pays. The result is right if every row of the mirrors, and the numbers of changes in the change
logs, are what the windows say.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import Cost, Form, Result, alternating
from benchmarks.made import SOURCE, MadeSource, MadeWindow
from cdc_core.config import ExecutorsFrom, LakeConfig
from cdc_core.lake.delta_lake import DeltaLake

CHANGES = {
    Form.QUICK: (20_000,),
    Form.NORMAL: (50_000, 200_000, 600_000),
    Form.LONG: (50_000, 200_000, 1_000_000, 3_000_000),
}
CHANGES_PER_FLIGHT = 3
WARM_UP, ROUNDS = 1, 3
TABLE = "FLIGHTS"


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """Seconds, and CPU seconds of the driver and of all processes, of one window of each size."""
    for changes in CHANGES[form]:
        with tempfile.TemporaryDirectory() as folder:
            threads = _Lake(Path(folder) / "threads", changes, "never")
            executors = _Lake(Path(folder) / "executors", changes, changes)
            works = {"threads": threads.window, "executors": executors.window}
            alternating(works, repeats=WARM_UP)
            costs = alternating(works, repeats=ROUNDS)
            correct = threads.is_right() and executors.is_right()
        ours, other = costs["executors"], costs["threads"]
        for unit, mine, theirs in (
            ("s", ours.seconds, other.seconds),
            ("CPU s of the driver", _of_driver(ours), _of_driver(other)),
            ("CPU s", ours.cpu_seconds, other.cpu_seconds),
        ):
            yield Result(
                f"a window of {changes:,} changes, staged by executors",
                mine,
                unit,
                "staged by threads of the driver",
                theirs,
                correct=correct,
                higher_is_better=False,
                cost=ours,
                is_warm=True,
            )


def _of_driver(cost: Cost) -> float:
    return cost.cpu.get("driver", 0.0)


class _Lake:
    """A lake, and windows of one size that are made before they are measured."""

    def __init__(self, folder: Path, changes: int, executors_from: ExecutorsFrom) -> None:
        config = LakeConfig(path=f"{folder}/lake", stage_on_executors_from_rows=executors_from)
        self._path = config.path
        self._lake = DeltaLake(config, SOURCE)
        self._source = MadeSource(folder, [TABLE])
        table = self._source.tables[TABLE]
        flights = changes // CHANGES_PER_FLIGHT
        self._source.load(self._lake, TABLE, flights)
        self._windows: list[MadeWindow] = [
            self._source.window(table.day(flights, changes)) for _ in range(WARM_UP + ROUNDS)
        ]

    def window(self) -> None:
        """Apply the next one."""
        self._windows.pop(0).apply(self._lake, TABLE)

    def is_right(self) -> bool:
        """Does the lake hold what the source says?"""
        return self._source.is_right(self._path)
