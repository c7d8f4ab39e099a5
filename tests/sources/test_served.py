"""A database that is served tells of its changes beside LogMiner, through restarts of its process: nothing is lost, nothing is doubled."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import LogsNotReadyError
from oracle_embedded.streams import streaming
from tests.free_port import free_port
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of

ROUNDS = 3

oracle = oracle_with("CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))")


def _ways(folder: Path, port: int) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Arguments of ``streaming``, and ``capture`` of who reads that."""
    replicator = {"type": "openlogreplicator"}
    reached = {"host": "127.0.0.1", "port": port, "source": "ORCL", "idle_seconds": 60}
    return {
        "OpenLogReplicator's files": (
            {"replicator_folder": folder},
            {**replicator, "folder": str(folder)},
        ),
        "its network writer": ({"replicator_port": port}, {**replicator, **reached}),
        "recordings of LCRs": ({"recordings": folder}, {"type": "xstream", "folder": str(folder)}),
    }


def _until(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.1)


def _windows(source: Source) -> None:
    try:
        source.windows()
    except LogsNotReadyError:
        source.close()  # not written yet


@pytest.mark.parametrize(
    "way", ["OpenLogReplicator's files", "its network writer", "recordings of LCRs"]
)
def test_a_process_goes_on_where_the_one_before_it_ended(
    oracle: Oracle, tmp_path: Path, way: str
) -> None:
    """Also where that one was killed in the middle of a line."""
    folder = tmp_path / "redo"
    options, capture = _ways(folder, free_port())[way]
    named = {"name": "ORCL", "state": tmp_path / "state.json", **options}
    with source_of(oracle, tmp_path / "source", "K", capture=capture) as source:
        for number in range(ROUNDS):
            with streaming(oracle.database, **named):
                if number == 0:
                    _until(partial(_has_begun, folder, way))
                    source.run()
                oracle.run(f"INSERT INTO K VALUES ({number}, 'x')")
                _until(partial(_has, source, 2 * number + 1))
            if newest := [one for one in folder.glob("*.json*") if one.is_file()]:
                with max(newest, key=lambda one: one.stat().st_mtime).open("ab") as file:
                    file.write(b'{"lcr":"row","c_scn":1')
            oracle.run(f"UPDATE K SET V = 'y' WHERE ID = {number}")
        with streaming(oracle.database, **named):
            _until(partial(_has, source, 2 * ROUNDS))
        assert source.ops("K") == "cu" * ROUNDS
        source.check_exact("K")


def _has_begun(folder: Path, way: str) -> bool:
    return way == "its network writer" or any(folder.glob("*.json*"))


def _has(source: Source, changes: int) -> bool:
    _windows(source)
    return len(source.ops("K")) >= changes
