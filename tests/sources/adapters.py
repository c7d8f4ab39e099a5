"""The readers of redo, each as the contract suite runs it, and what each cannot do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from oracle_embedded import committed
from oracle_embedded.openlogreplicator import OpenLogReplicator
from oracle_embedded.openlogreplicator_server import OlrServer
from oracle_embedded.redo import store
from tests.oracle.embedded import Oracle
from tests.xstream.lcrs import recorded, recorder_of
from tests.xstream.outbound import COMPILER, Outbound, built


@dataclass(frozen=True)
class Reader:
    """A reader that is set up: ``capture`` of its sources, ``bring`` what has committed to where it reads, ``lose`` what it would
    read next, ``die`` as what it reads from does, which comes back by its rules, and ``live`` lets it live from now on."""

    capture: dict[str, Any]
    bring: Callable[[], None]
    lose: Callable[[], None]
    die: Callable[[Random], None] = lambda _: None
    live: Callable[[], None] = lambda: None


@contextmanager
def logminer(oracle: Oracle, path: Path) -> Iterator[Reader]:
    """Reads up to the newest redo."""

    def lose() -> None:
        redo = oracle.database.redo
        for _ in range(4):  # more than there are groups: no online log has it any more
            redo.switch_log()
        with redo.database.reading() as connection:
            logs = store.read_logs(connection)
        for log in logs[-5:-1]:
            redo.delete_archived_log(log.sequence)

    yield Reader({"close_at": "online"}, lambda: None, lose)


@contextmanager
def olr_files(oracle: Oracle, path: Path) -> Iterator[Reader]:
    """Reads the files of OpenLogReplicator's file writer."""
    olr = OpenLogReplicator(oracle.database, path / "olr")
    olr.write()

    def lose() -> None:
        olr.write()
        for file in olr.folder.glob("*.json"):
            file.unlink()

    def bring() -> None:
        olr.write()

    def die(rng: Random) -> None:
        """In the middle of a line, or not; an operator puts its checkpoint back."""
        if rng.random() < 0.5:
            olr.tear()
        with oracle.database.engine.reading() as connection:
            ended = [one.end_scn or 0 for one in committed.transactions(connection, 0)]
        olr.restart(checkpoint=rng.choice([0, *ended[-20:]]), rewound=True)

    capture = {"type": "openlogreplicator", "folder": str(olr.folder)}
    yield Reader(capture, bring, lose, die)


@contextmanager
def olr_network(oracle: Oracle, path: Path) -> Iterator[Reader]:
    """Reads from OpenLogReplicator's network writer."""
    with OlrServer(oracle.database, "ORCL") as server:
        capture = {"type": "openlogreplicator", "host": "127.0.0.1", "port": server.port, "source": "ORCL", "idle_seconds": 60}  # fmt: skip

        def lose() -> None:
            server.saved = None
            server.restart()

        def die(rng: Random) -> None:
            """In the middle of a frame at times; one that was confirmed nothing would begin anew."""
            server.cut_after = rng.choice([None, 0, 1, rng.randrange(2, 60)])
            if server.confirmed and rng.random() < 0.5:
                server.restart()

        def live() -> None:
            server.cut_after = None

        yield Reader(capture, lambda: None, lose, die, live)


@contextmanager
def lcr_files(oracle: Oracle, path: Path) -> Iterator[Reader]:
    """Reads recordings of XStream's LCRs."""
    recorder = recorder_of(oracle, path / "lcrs")

    def lose() -> None:
        recorder.write()
        for file in recorder.folder.glob("*.jsonl"):
            file.unlink()

    def bring() -> None:
        recorder.write()

    def die(rng: Random) -> None:
        if rng.random() < 0.5:
            recorder.tear()
        recorder.restart(back=rng.randrange(6))

    yield Reader(recorded(recorder), bring, lose, die)


@contextmanager
def lcr_server(oracle: Oracle, path: Path) -> Iterator[Reader]:
    """Reads from an outbound server through a stand-in for Oracle's client library."""
    if COMPILER is None:
        pytest.skip("no C compiler: the stand-in for Oracle's client library is not built")
    outbound = Outbound.of(oracle, path / "outbound", built(path))

    def lose() -> None:
        outbound.write()
        outbound.process(outbound.newest)

    yield Reader(outbound.capture, outbound.write, lose)


READERS = {
    "logminer": logminer,
    "olr_files": olr_files,
    "olr_network": olr_network,
    "lcr_files": lcr_files,
    "lcr_server": lcr_server,
}

CANNOT = {
    ("olr_files", "quarantine"): "a value that cannot be read has no redo text to keep",
    ("olr_network", "quarantine"): "a value that cannot be read has no redo text to keep",
    ("lcr_files", "quarantine"): "a value that cannot be read has no redo text to keep",
    ("olr_files", "prefetch"): "files are read in order",
    ("lcr_files", "prefetch"): "files are read in order",
    ("lcr_server", "quarantine"): "a value that cannot be read has no redo text to keep",
    ("lcr_server", "prefetch"): "the server serves one client at a time",
    ("lcr_server", "captured again"): "the server forgets what is applied",
    ("olr_network", "prefetch"): "the server serves one client at a time",
    ("olr_network", "a gap is skipped"): "a server that lost its state is a new source",
    ("olr_network", "captured again"): "the server forgets what is applied",
}
"""By reader and story, why it cannot; docs/extending.md has the table for readers."""
