"""The whole demo through each reader, killed in the middle and started again: five tables, no difference."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
from pathlib import Path
from pipelines.demo import run
from pipelines.demo.settings import DemoSettings
run.SECONDS_PER_FLIGHT_HOUR["day"] = 0.2
sys.exit(run.run_demo(DemoSettings(capture=sys.argv[2]), folder=Path(sys.argv[1])))
"""


def _start(folder: Path, capture: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), capture],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("capture", ["logminer", "openlogreplicator", "xstream"])
def test_a_demo_that_was_killed_goes_on_and_ends_without_a_difference(
    tmp_path: Path, capture: str
) -> None:
    killed = _start(tmp_path, capture)
    assert killed.stdout is not None
    for line in killed.stdout:
        if line.startswith("chunk"):
            break
    killed.send_signal(signal.SIGKILL)
    killed.wait()

    ended = _start(tmp_path, capture)
    said, _ = ended.communicate()
    assert ended.returncode == 0, said
    assert "Continuing where the demo stopped" in said
    assert "Every table equals Oracle." in said
    assert "The life of flight" in said
    assert "window (" in said
    rows = [line.replace(",", "").split() for line in said.splitlines()]
    tables = {row[0]: row[1:] for row in rows if len(row) == 5 and all(map(str.isdigit, row[1:]))}
    assert set(tables) == {"AIRLINES", "AIRPORTS", "PLANES", "WEATHER", "FLIGHTS"}
    for rows_oracle, rows_delta, differences, _ in tables.values():
        assert rows_oracle == rows_delta
        assert differences == "0"
