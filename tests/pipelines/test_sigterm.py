"""SIGTERM, as systemd, Docker and Kubernetes send it, ends a command in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from pipelines.commands.shared import EXIT_TERMINATED
from tests.oracle.embedded import CAPTURE, OWNER, PASSWORDS, running_oracle


def test_a_loop_that_is_told_to_end_stops_in_order_and_is_continued(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        source = {
            "name": "src",
            "oracle": {**oracle.login(CAPTURE), "password_env": "CAPTURE_PASSWORD"},
            "tables": [{"name": f"{OWNER}.T"}],
            "capture": {"close_at": "online"},
            "landing": {"type": "local", "path": str(tmp_path / "landing")},
            "lake": {"path": str(tmp_path / "lake")},
            "state": {"url": f"sqlite:///{tmp_path}/state.db", "lease_seconds": 3600},
        }
        del source["oracle"]["password"]  # type: ignore[attr-defined]
        file, log = tmp_path / "defs.yaml", tmp_path / "log"
        text = {"type": "assets.components.OracleCdc", "attributes": source}
        file.write_text(yaml.safe_dump(text))
        command = [sys.executable, "-m", "pipelines.cli", "run", "--loop", "--every", "0.2"]
        environ = {
            **os.environ,
            "CAPTURE_PASSWORD": PASSWORDS[CAPTURE],
            "REDOLAKE_CONFIG": str(file),
        }
        with log.open("wb") as output:
            loop = subprocess.Popen(command, env=environ, stdout=output, stderr=output)
            try:
                while "window-applied" not in log.read_text():
                    assert loop.poll() is None, log.read_text()
                    oracle.run("INSERT INTO T SELECT MAX(ID) + 1 FROM T")
                    time.sleep(0.2)
                loop.send_signal(signal.SIGTERM)
                assert loop.wait() == EXIT_TERMINATED, log.read_text()
            finally:
                loop.kill()
                loop.wait()
        said = log.read_text()
        assert "Run the same command to continue" in said
        assert "Traceback" not in said
        again = subprocess.run([*command[:4]], env=environ, capture_output=True, check=False)
        assert again.returncode == 0, again.stderr.decode()
