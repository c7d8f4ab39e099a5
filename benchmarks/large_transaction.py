"""How much memory does a transaction of millions of changes take, in each process?

Capture reads it from made batches, in a process of its own, as the tests' measure does. Applying is
the real thing: one transaction that changes each of some rows four times, from landing into change
log and mirror, with Spark as it is configured by default. The result is right if mirror and change
log are what the transaction says.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.common import Form, Result, measured, peak_megabytes
from benchmarks.made import SOURCE, Flights, MadeSource, MadeWindow
from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake

CHANGES = {Form.QUICK: 100_000, Form.NORMAL: 1_000_000, Form.LONG: 10_000_000}
CAPTURE_MEGABYTES, DRIVER_MEGABYTES = 512, 1536
TIMES = 4
_SLICE = 250_000
TABLE = "FLIGHTS"


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """Capture's peak, then that of the driver and of the JVM."""
    changes = CHANGES[form]
    question = f"{changes:,} changes in one transaction: peak memory of %s"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.capture.memory_of_capture", str(changes), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    yield Result(
        question % "capture",
        int(done.stdout) / 1024**2,
        "MB",
        "the goal",
        CAPTURE_MEGABYTES,
        goal=1.0,
        higher_is_better=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        config = LakeConfig(path=f"{folder}/lake")
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            tables, window = pool.apply(_made, (Path(folder), config, changes))
        source = MadeSource(Path(folder), [TABLE])
        source.tables = tables
        lake = DeltaLake(config, SOURCE)
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        with measured() as watch:
            window.apply(lake, TABLE)
        peaks = peak_megabytes()
        correct = source.is_right(config.path)
    heap = _megabytes(config.driver_memory)
    for name, allowed, against in (
        ("driver", DRIVER_MEGABYTES, "the goal"),
        ("jvm", 1.5 * heap, f"its heap of {config.driver_memory} and half as much again"),
    ):
        yield Result(
            question % {"driver": "the process that applies it", "jvm": "Spark's JVM"}[name],
            peaks.get(name, 0.0),
            "MB",
            against,
            allowed,
            goal=1.0,
            correct=correct,
            higher_is_better=False,
            cost=watch.cost,
            is_warm=False,
        )


def _made(folder: Path, config: LakeConfig, changes: int) -> tuple[dict[str, Flights], MadeWindow]:
    """Land it, in a process that takes what memory it likes."""
    source = MadeSource(folder, [TABLE])
    source.load(DeltaLake(config, SOURCE), TABLE, changes // TIMES * 2)
    table = source.tables[TABLE]
    changing = np.arange(0, changes // TIMES * 2, 2)
    slices = (changing[at : at + _SLICE] for at in range(0, len(changing), _SLICE))
    blocks = (table.remark(ids, TIMES) for ids in slices)
    window = source.long_window(blocks, transaction_rows=None)
    return source.tables, window


def _megabytes(memory: str) -> float:
    return float(memory[:-1]) * {"g": 1024, "m": 1}[memory[-1].lower()]
