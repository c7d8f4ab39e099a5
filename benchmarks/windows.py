"""How many changes a second go from landing into merged mirror and change log, in one table and in
ten?

The windows are made (``benchmarks.made``): new flights that are scheduled, depart and land, some
deleted, in a mirror that holds others; and remarks on random rows of the whole mirror, of which
each is changed once, or three times. They are as capture lands them; what is measured is the lake's
part alone. The result is right if every row of every mirror, and the numbers of changes in the
change logs, are what the windows say.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.common import Cost, Form, Result, measured, median_cost
from benchmarks.made import SOURCE, Events, MadeSource, MadeWindow
from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake

GOAL = 100_000
CHANGES, FLIGHTS, LOADED, RUNS = 600_000, 205_000, 300_000, 5
ONCE = 300_000
QUICK_SHARE = 10
TABLES = 10


def rows(form: Form) -> Iterator[Result]:
    """One table with new rows, then with changes of random rows, ten tables with both."""
    share = QUICK_SHARE if form is Form.QUICK else 1
    with tempfile.TemporaryDirectory() as folder:
        one = _Lake(Path(folder) / "one", ["FLIGHTS"], share)
        yield from _found(
            one,
            {
                "1 table, new rows and their changes": one.new_flights,
                "1 table, random rows, each key once": one.remarks_once,
                "1 table, random rows, each key three times": one.remarks,
            },
        )
        ten = _Lake(Path(folder) / "ten", [f"FLIGHTS_{n}" for n in range(TABLES)], share)
        yield from _found(ten, {f"{TABLES} tables, mixed changes": ten.mixed})


def _found(lake: _Lake, questions: Mapping[str, Callable[[int], MadeWindow]]) -> Iterator[Result]:
    for question, make in questions.items():
        changes, cost = lake.costs(make)
        yield Result(
            f"window to Delta, {question}: {changes:,} changes of 19 columns",
            changes / cost.seconds,
            "changes/s",
            "the goal",
            GOAL,
            goal=1.0,
            correct=lake.is_right(),
            cost=cost,
            is_warm=True,
        )


class _Lake:
    """A lake and the source of its windows."""

    def __init__(self, folder: Path, names: Sequence[str], share: int) -> None:
        self._share = share * len(names)
        config = LakeConfig(path=f"{folder}/lake")
        self._path, self._at_once = config.path, config.tables_at_once
        self.lake = DeltaLake(config, SOURCE)
        self.source = MadeSource(folder, names)
        for name in names:
            self.source.load(self.lake, name, LOADED // self._share)

    def costs(self, make: Callable[[int], MadeWindow]) -> tuple[int, Cost]:
        """Changes in a window, and what it costs, after one that warms up."""
        self._apply(make(self._share))
        costs = []
        for _ in range(RUNS):
            window = make(self._share)
            with measured() as watch:
                self._apply(window)
            costs.append(watch.cost)
        return window.changes, median_cost(costs)

    def new_flights(self, share: int) -> MadeWindow:
        """Flights that come, change and partly go."""
        events = [
            one.day(FLIGHTS // share, CHANGES // share) for one in self.source.tables.values()
        ]
        return self.source.window([event for found in events for event in found])

    def remarks_once(self, share: int) -> MadeWindow:
        """One remark on each of some random rows."""
        return self.source.window(self._remarks(ONCE // share, 1))

    def remarks(self, share: int) -> MadeWindow:
        """Three remarks on each of some random rows."""
        return self.source.window(self._remarks(CHANGES // share // 3, 3))

    def mixed(self, share: int) -> MadeWindow:
        """Half of the changes by new flights, half by remarks."""
        remarks = self._remarks(CHANGES // share // 4, 2)
        tables = self.source.tables.values()
        events = [one.day(FLIGHTS // share // 2, CHANGES // share // 2) for one in tables]
        return self.source.window([*remarks, *(event for found in events for event in found)])

    def _remarks(self, count: int, times: int) -> list[Events]:
        chance = np.random.default_rng(count)
        found = []
        for table in self.source.tables.values():
            there = np.flatnonzero(table.stages >= 0)
            found += table.remark(np.sort(chance.choice(there, count, replace=False)), times)
        return found

    def _apply(self, window: MadeWindow) -> None:
        with ThreadPoolExecutor(self._at_once) as pool:
            list(pool.map(lambda name: window.apply(self.lake, name), self.source.tables))

    def is_right(self) -> bool:
        """Does the lake hold what the source says?"""
        return self.source.is_right(self._path)
