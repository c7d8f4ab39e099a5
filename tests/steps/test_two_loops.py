"""Two `redolake run --loop` on one source, each suspended past its lease: neither ends, and the tables equal Oracle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest
import yaml
from deltalake import DeltaTable

from cdc_core.config import SourceConfig
from cdc_core.steps import Pipeline
from tests.oracle.embedded import CAPTURE, OWNER, PASSWORDS, running_oracle

LEASE_SECONDS = 3
STOPS = 8


@contextmanager
def looping(file: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "pipelines.cli", "--debug", "run", "--loop", "--every", "0.5"]
    environ = {**os.environ, "CAPTURE_PASSWORD": PASSWORDS[CAPTURE], "REDOLAKE_CONFIG": str(file)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


@pytest.mark.slow
def test_loops_that_are_suspended_past_their_leases_stay(tmp_path: Path) -> None:
    dice = Random(20)
    rows = 0
    with running_oracle() as oracle, ExitStack() as running:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))")
        file, written = (
            tmp_path / "defs.yaml",
            {
                "name": "src",
                "oracle": {**oracle.login(CAPTURE), "password_env": "CAPTURE_PASSWORD"},
                "tables": [{"name": f"{OWNER}.T"}],
                "capture": {"close_at": "online"},
                "landing": {"type": "local", "path": str(tmp_path / "landing")},
                "lake": {"path": str(tmp_path / "lake")},
                "state": {"url": f"sqlite:///{tmp_path}/state.db", "lease_seconds": LEASE_SECONDS},
            },
        )
        del written["oracle"]["password"]  # type: ignore[attr-defined]
        text = {"type": "assets.components.OracleCdc", "attributes": written}
        file.write_text(yaml.safe_dump(text))
        logs = [tmp_path / f"{number}.log" for number in range(2)]
        loops = [running.enter_context(looping(file, log)) for log in logs]

        def change(seconds: float) -> None:
            nonlocal rows
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                rows += 1
                oracle.run(f"INSERT INTO T VALUES ({rows}, 'x')")
                time.sleep(0.3)

        def at_work() -> int:
            """The loop that has just cut windows."""
            ends = [log.stat().st_size for log in logs]
            until = time.monotonic() + 60
            while time.monotonic() < until:
                change(0.1)
                for number, log in enumerate(logs):
                    if b"windows-planned" in log.read_bytes()[ends[number] :]:
                        return number
            raise AssertionError(said())

        def said() -> list[str]:
            return [log.read_text()[-2000:] for log in logs]

        change(20)
        for _ in range(STOPS):
            suspended = loops[at_work()]
            time.sleep(dice.random() / 4)
            suspended.send_signal(signal.SIGSTOP)
            change(LEASE_SECONDS * 2 + dice.random() * 3)
            suspended.send_signal(signal.SIGCONT)
            change(1)
            assert [loop.poll() for loop in loops] == [None, None], said()
        config = SourceConfig.model_validate({**written, "oracle": oracle.login(CAPTURE)})
        running.close()
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
        mirror = DeltaTable(str(tmp_path / "lake" / "src" / "mirror" / f"{OWNER.lower()}.t"))
        found = sorted(mirror.to_pyarrow_table(columns=["ID"])["ID"].to_pylist())
        assert found == list(range(1, rows + 1))
        texts = [log.read_text() for log in logs]
        assert any("another process" in text for text in texts), "no loop met the other one"
