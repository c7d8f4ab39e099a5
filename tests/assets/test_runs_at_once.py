"""Two runs of Dagster at once, each in a process of its own, over the same windows or over different ones: one works, the other one waits, or
ends with what it must wait for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import NullPool, create_engine, text

from assets.history import add_partitions
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.steps import Pipeline
from tests.invariants.changelog import Stream, check_table
from tests.invariants.compare import judge
from tests.invariants.kept_lake import KeptLake
from tests.invariants.lakes import JudgedKept
from tests.invariants.load import KEYS
from tests.invariants.server import EmbeddedServer, current_scn
from tests.invariants.shapes import INDEXED, TWIN, written
from tests.invariants.wild import WildLoad

ROOT = Path(__file__).parents[2]
TABLES = ("ACCOUNTS", "EVENTS", INDEXED, TWIN)
WINDOWS = 6
SECONDS_MAX = 300
CLEAR = (
    "another process is working on this",
    "the window before this one is not captured",
    "the mirrors have not applied the previous window",
)
"""What a run says that has to wait: for whoever does the work, or for the windows before its own."""


class Source:
    """A source with windows that nobody has captured yet, its load's record, and Dagster's instance."""

    def __init__(self, server: EmbeddedServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.home = folder / "dagster"
        self.home.mkdir()
        clock = server.connect_capture()
        self.load = WildLoad(server.connect(), 17, lambda: current_scn(clock))
        self.load.create(60)
        server.put_forward()
        self.path = folder / "config.json"
        self.path.write_text(json.dumps(self._configured()))
        self.config = SourceConfig.model_validate_json(self.path.read_text())
        self.names = Translator(self.config.name)
        with self.pipeline() as pipeline:
            list(pipeline.run_once())
            for number in range(WINDOWS):
                self.load.draw(str(number))
                self.load.step()
                self.load.tpcc()
                pipeline.plan_windows()
            with dg.DagsterInstance.from_config(str(self.home)) as instance:
                add_partitions(instance, pipeline.records, self.config, self.names)
            self.keys = [
                one.key for one in reversed(pipeline.records.windows(newest_first=True, limit=WINDOWS))
            ]  # fmt: skip
            assert {one.state for one in pipeline.records.windows(limit=99)} >= {"planned"}

    def pipeline(self) -> Pipeline:
        return Pipeline(self.config, open_lake=KeptLake(Path(self.config.lake.path)).open)

    def start(self, first: str, last: str) -> subprocess.Popen[str]:
        """A run over some windows in a process of its own."""
        layers = [self.names.redo_key]
        for table in self.config.tables:
            layers += [self.names.key(layer, table.table) for layer in ("changelog", "mirror")]
        return subprocess.Popen(
            [
                sys.executable, "-m", "dagster", "asset", "materialize", "-m", "tests.assets.kept_location",
                "--select", ",".join(f'key:"{key.to_user_string()}"' for key in layers), "--partition-range", f"{first}...{last}",
            ],
            cwd=ROOT, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=os.environ | {
                "PYTHONPATH": str(ROOT), "DAGSTER_HOME": str(self.home), "REDOLAKE_TEST_CONFIG": str(self.path),
            },
        )  # fmt: skip

    def asked(self, sql: str) -> list[tuple[Any, ...]]:
        engine = create_engine(self.config.state.url, poolclass=NullPool)
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(sql))]

    def check(self) -> None:
        """Every table equals Oracle where it stands, and its change log has each change of the load once."""
        judged = JudgedKept(Path(self.config.lake.path), self._name)
        for name, snapshot_scn, scn in self.asked("SELECT name, snapshot_scn, mirror_scn FROM tables"):  # fmt: skip
            verdict = judge(
                self.load.connection, name, KEYS[name], scn, partial(judged.values, name, scn)
            )
            assert verdict.is_equal, f"{name}: {verdict}"
            streams = [Stream(int(snapshot_scn))]
            assert check_table(
                name, judged.changelog(name), judged.mirror(name), self.load.committed, streams, int(scn)
            ) == []  # fmt: skip

    def _name(self, table: str) -> str:
        return f"{self.server.user.upper()}.{written(table)}"

    def _configured(self) -> dict[str, Any]:
        return {
            "name": "src",
            "oracle": {"dsn": self.server.dsn, "user": self.server.capture_user, "password": self.server.capture_password},
            "tables": [{"name": self._name(table)} for table in TABLES],
            "capture": {"close_at": "online"},
            "landing": {"type": "local", "path": str(self.folder / "landing")},
            "lake": {"path": str(self.folder / "lake")},
            "state": {"url": f"sqlite:///{self.folder}/state.db"},
        }  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with EmbeddedServer(tmp_path / "oracle") as server:
        yield Source(server, tmp_path)


@pytest.mark.dagster
@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS_MAX)
@pytest.mark.parametrize("share", ["the-same-windows", "different-windows"])
def test_two_runs_at_once_take_each_change_once(source: Source, share: str) -> None:
    keys, middle = source.keys, len(source.keys) // 2
    ranges = [(keys[0], keys[-1])] * 2
    if share == "different-windows":
        ranges = [(keys[0], keys[middle - 1]), (keys[middle], keys[-1])]
    runs = [source.start(*one) for one in ranges]
    said = [run.communicate(timeout=SECONDS_MAX)[0] for run in runs]
    codes = [run.returncode for run in runs]
    assert 0 in codes, said[0][-5000:]
    for code, output in zip(codes, said, strict=True):
        assert code == 0 or any(one in output for one in CLEAR), output[-5000:]
    assert source.asked("SELECT name FROM leases WHERE holder <> ''") == [], "a lease is stuck"
    again = source.start(keys[0], keys[-1])
    output = again.communicate(timeout=SECONDS_MAX)[0]
    assert again.returncode == 0, output[-5000:]
    assert source.asked("SELECT 1 FROM windows WHERE state <> 'applied'") == []
    source.check()
