"""Capture holds neither a whole transaction nor a whole window in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MORE_BYTES_MAX = 120 * 1024**2
"""Room for the row groups and batches that are held; eight times the rows are 220 MB of redo text more."""


SESSION_BYTES_MAX = 80 * 1024**2
"""A few batches of 10,000 rows of 700 bytes, which are being fetched, wait, or are written."""


def _peak_bytes(rows: int, folder: Path, *, sessions: int = 1) -> int:
    arguments = [str(rows), str(folder), str(sessions)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.capture.memory_of_capture", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_a_transaction_eight_times_as_large_takes_about_the_same_memory(tmp_path: Path) -> None:
    small = _peak_bytes(50_000, tmp_path / "small")
    large = _peak_bytes(400_000, tmp_path / "large")
    assert large - small < MORE_BYTES_MAX


@pytest.mark.slow
def test_four_sessions_take_four_times_a_few_batches_whatever_the_transaction_s_size(
    tmp_path: Path,
) -> None:
    small = _peak_bytes(100_000, tmp_path / "small", sessions=4)
    large = _peak_bytes(400_000, tmp_path / "large", sessions=4)
    alone = _peak_bytes(100_000, tmp_path / "alone")
    assert large - small < MORE_BYTES_MAX
    assert small - alone < 4 * SESSION_BYTES_MAX
