"""Ten processes carry one source at once, over one metadata store in PostgreSQL and one lake, while its tables change.

The lake is the one in memory that is kept in files, whose commits are as exclusive as Delta's: ten JVMs would be ten times as much of the
same.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text

from tests.invariants.changelog import Stream, check_table
from tests.invariants.compare import judge
from tests.invariants.deadline import deadline
from tests.invariants.lakes import JudgedKept
from tests.invariants.load import KEYS
from tests.invariants.nursery import NURSERY
from tests.invariants.rounds import Rounds, run_rounds
from tests.invariants.server import EmbeddedServer, current_scn
from tests.invariants.shapes import INDEXED, PARTS, TWIN, written
from tests.invariants.wild import WildLoad
from tests.steps.test_postgresql_gone import Server

PROCESSES = 10
TRANSACTIONS = 120
SECONDS_MAX = 900
TABLES = ("ACCOUNTS", "EVENTS", "DISTRICT", PARTS, INDEXED, TWIN)
HELD = {
    "LeaseHeldError": ("another process is working on this", "another process works on this source"),
    "NotYetError": (
        "the window before this one is not captured", "the mirrors have not applied the previous window",
        "this chunk has not landed yet", "this chunk is no longer planned",
    ),
}  # fmt: skip
"""What a process may be told: that somebody else does this work, or has yet to do the step before."""


@pytest.fixture
def postgresql() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="redolake-postgresql-") as folder:
        opened = Server(Path(folder))
        yield opened.url
        opened.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path / "oracle") as running:
        yield running


@pytest.mark.slow
@pytest.mark.timeout(SECONDS_MAX + 60)
def test_ten_processes_take_each_change_once(
    server: EmbeddedServer, postgresql: str, tmp_path: Path
) -> None:
    """From the first snapshot on; nobody waits for ever, nobody keeps a lease, and nobody is told anything but that others work."""
    clock = server.connect_capture()
    load = WildLoad(server.connect(), 11, lambda: current_scn(clock))
    load.create(350)
    server.put_forward()
    config = configured(server, postgresql, tmp_path)
    pipes, processes = [], []
    for seed in range(PROCESSES):
        near, far = NURSERY.Pipe()
        process = NURSERY.Process(target=run_rounds, args=(config, seed, far))
        process.start()
        far.close()
        pipes.append(near)
        processes.append(process)
    try:
        with deadline(SECONDS_MAX, lambda: "the processes"):
            for number in range(TRANSACTIONS):
                load.draw(str(number))
                load.step()
                load.tpcc()
            for pipe in pipes:
                with suppress(BrokenPipeError):  # it has sent what ended it
                    pipe.send("the load is over")
            found: list[Rounds] = [pipe.recv() for pipe in pipes]
            for process in processes:
                process.join()
    finally:
        for process in processes:
            process.kill()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    told = sum((one.errors for one in found), Counter[tuple[str, str]]())
    for name, said in told:
        assert said.startswith(HELD.get(name, ("\0",))), f"{name}: {said}"

    assert asked(postgresql, "SELECT name FROM leases WHERE holder <> ''") == []
    tables = asked(postgresql, "SELECT name, state, snapshot_scn, mirror_scn FROM tables")
    assert {one[1] for one in tables} == {"ready"}
    assert asked(postgresql, "SELECT 1 FROM windows WHERE state <> 'applied'") == []
    assert asked(postgresql, "SELECT 1 FROM chunks WHERE state <> 'applied'") == []
    newest = max(one.after for one in load.committed)
    judged = JudgedKept(tmp_path / "lake", lambda name: f"{server.user.upper()}.{written(name)}")
    for name, _, snapshot_scn, mirror_scn in tables:
        assert mirror_scn >= newest - 1, f"{name} is behind"
        verdict = judge(
            load.connection, name, KEYS[name], mirror_scn, partial(judged.values, name, mirror_scn)
        )
        assert verdict.is_equal, f"{name}: {verdict}"
        assert check_table(
            name, judged.changelog(name), judged.mirror(name), load.committed, [Stream(int(snapshot_scn))], int(mirror_scn),
        ) == []  # fmt: skip
    assert all(one.steps.total() for one in found), "one of them did nothing"


def configured(server: EmbeddedServer, store: str, folder: Path) -> str:
    """As JSON. Small chunks, so that several processes have something to read."""
    owner = server.user.upper()
    return json.dumps(
        {
            "name": "proof",
            "oracle": {
                "dsn": server.dsn, "user": server.capture_user, "password": server.capture_password, "fetch_rows": 100,
            },
            "tables": [{"name": f"{owner}.{written(name)}"} for name in TABLES],
            "capture": {"close_at": "online"},
            "snapshot": {"chunk_rows": 100},
            "landing": {"type": "local", "path": str(folder / "landing")},
            "lake": {"path": str(folder / "lake"), "driver_memory": "1g"},
            "state": {"url": store, "lease_seconds": 10},
        }
    )  # fmt: skip


def asked(store: str, sql: str) -> list[tuple[Any, ...]]:
    """Rows of the metadata store, read as any tool could."""
    engine = create_engine(store, poolclass=NullPool)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(sql))]
