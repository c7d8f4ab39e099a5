"""Two processes on one source, one of them stopped past its lease and continued where it is about to commit; no JVM is needed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_core.landing.manifest import MANIFEST_NAME, read_window_manifest
from tests.invariants.server import EmbeddedServer
from tests.invariants.team import Worker, is_writable


@contextmanager
def two_workers(folder: Path, server: EmbeddedServer) -> Iterator[list[Worker]]:
    config = {
        "name": "proof",
        "oracle": {
            "dsn": server.dsn, "user": server.capture_user, "password": server.capture_password,
        },
        "tables": [{"name": f"{server.user.upper()}.T"}],
        "capture": {"close_at": "online"},
        "landing": {"type": "local", "path": str(folder / "landing")},
        "lake": {"path": str(folder / "lake")},
        "state": {"url": f"sqlite:///{folder}/state.db", "lease_seconds": 3},
    }  # fmt: skip
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    with ExitStack() as stack:
        workers = []
        for number in range(2):
            worker = Worker(path, "capture", folder / f"{number}.log")
            stack.callback(worker.close)
            workers.append(worker)
        yield workers


@pytest.mark.parametrize(
    "point",
    [
        "window file written, not renamed",
        "window files renamed, no manifest",
        "window landed, not recorded",
    ],
)
def test_a_process_that_was_stopped_past_its_lease_changes_nothing(
    tmp_path: Path, point: str
) -> None:
    """The other one captures the window in the meantime; each row has landed once, whoever wrote it."""
    with EmbeddedServer(tmp_path / "oracle") as server, server.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")
        cursor.execute("ALTER TABLE T ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
        with two_workers(tmp_path, server) as (stopped, other):
            assert stopped.ask("snapshot").done == 1
            cursor.execute("INSERT INTO T SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 50")
            connection.commit()
            assert stopped.ask("capture", meet=point).met == point
            stopped.stop_where(lambda: is_writable(tmp_path / "state.db"))
            assert other.ask("capture").done >= 1
            stopped.signal(signal.SIGCONT)
            answer = stopped.go_on()
            assert answer.failed is not None or answer.done >= 1, answer
            cursor.execute("DELETE FROM T WHERE ID <= 20")
            connection.commit()
            for worker in (other, stopped):
                assert worker.ask("capture").failed is None
    rows = landed_rows(tmp_path / "landing")
    assert [code for code, _ in rows] == [1] * 50 + [2] * 20
    assert len({ordinal for _, ordinal in rows}) == 70


def landed_rows(landing: Path) -> list[tuple[Any, Any]]:
    """(operation code, ordinal) of what the manifests name, in order."""
    found = []
    for path in landing.rglob(MANIFEST_NAME):
        if "/windows/" not in path.as_posix():
            continue
        manifest = read_window_manifest(path.read_bytes(), where="")
        for file in manifest.redo_files:
            table = pq.read_table(path.parent / file.name, columns=["operation_code", "ordinal"])
            found += [(row["operation_code"], row["ordinal"]) for row in table.to_pylist()]
    return sorted(found, key=lambda row: row[1])
