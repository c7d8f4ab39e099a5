"""How often does a window ask S3, and how long does it take, when thousands of windows have gone
before it, beside one with ten?

The history of :mod:`benchmarks.behind` is made on a disk and put into a server that imitates S3, in
a process of its own on this machine: each history into a bucket of its own, since that server goes
through all names of a bucket for a listing. Measured is what is measured there, and the requests
that the server gets of it. So the seconds are those of many small requests without a network
between.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.behind import ALLOWED, COMMITS, FEW, ROUNDS, WARM_UP, History, with_share
from benchmarks.common import Form, Result, alternating
from tests.landing.s3_process import S3Process, running_s3_process

MANY = {Form.QUICK: (300,), Form.NORMAL: (1_000, 10_000), Form.LONG: (1_000, 10_000)}


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """One window behind each length of history, against the shortest."""
    with running_s3_process() as server, tempfile.TemporaryDirectory() as folder:
        os.environ |= server.environment()
        tables = {
            windows: _in_s3(server, Path(folder) / str(windows), windows)
            for windows in (FEW, *MANY[form])
        }
        asked: dict[str, list[int]] = {}
        works = {
            str(windows): _counting(server, asked.setdefault(str(windows), []), table.window)
            for windows, table in tables.items()
        }
        alternating(works, repeats=WARM_UP)
        for counts in asked.values():
            counts.clear()
        costs = alternating(works, repeats=ROUNDS)
        shares: dict[str, list[int]] = {}
        writing = {
            name: _counting(
                server, shares.setdefault(name, []), tables[int(name)].write_checkpoints
            )
            for name in works
        }
        checkpoints = alternating(writing, repeats=WARM_UP)
        correct = {windows: table.is_right() for windows, table in tables.items()}
    costs = {name: with_share(cost, checkpoints[name]) for name, cost in costs.items()}
    requests = {name: median(asked[name]) + median(shares[name]) / COMMITS for name in works}
    for windows in MANY[form]:
        ours, few = str(windows), str(FEW)
        for unit, mine, other in (
            ("requests", requests[ours], requests[few]),
            ("s", costs[ours].seconds, costs[few].seconds),
        ):
            yield Result(
                f"a window of one change on S3, behind {windows:,} others",
                mine,
                unit,
                f"{ALLOWED} times one behind {FEW}",
                ALLOWED * other,
                goal=1.0,
                correct=correct[FEW] and correct[windows],
                higher_is_better=False,
                cost=costs[ours],
                is_warm=True,
            )


def _in_s3(server: S3Process, folder: Path, windows: int) -> History:
    """A history in a bucket of its own."""
    history, bucket = History(folder, windows), f"behind-{windows}"
    server.load(folder / "lake", bucket, "lake")
    history.is_at(f"s3a://{bucket}/lake")
    return history


def _counting(server: S3Process, counts: list[int], work: Callable[[], None]) -> Callable[[], None]:
    """The work, which notes how many requests it took."""

    def counted() -> None:
        before = server.count()
        work()
        counts.append(server.count() - before)

    return counted
