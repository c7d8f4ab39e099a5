"""Capture holds neither a whole transaction nor a whole window in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MORE_BYTES_MAX = 120 * 1024**2
"""Room for the row groups and batches that are held; eight times the rows are 450 MB of redo text more."""


def _peak_bytes(rows: int, folder: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "tests.capture.memory_of_capture", str(rows), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_a_transaction_eight_times_as_large_takes_about_the_same_memory(tmp_path: Path) -> None:
    small = _peak_bytes(100_000, tmp_path / "small")
    large = _peak_bytes(800_000, tmp_path / "large")
    assert large - small < MORE_BYTES_MAX
