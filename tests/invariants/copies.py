"""Where can something be tried that must not happen to a life? On a copy of all that it has.

A copy has the metadata store, landing and the lake as they stand, and where it is asked for Oracle too, served by a process of its own.
Nothing that is done to it reaches the life, so what is not refused there hurts nobody.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.invariants.points import LakeKind, Role
from tests.invariants.server import EmbeddedServer
from tests.invariants.team import Answer, Worker

ORACLE, STORE = "oracle", "state.db"
CONFIG = "config.json"
PARTS = ("landing", "lake")


@dataclass
class Copy:
    """A life's folder over again; ``server`` is its own Oracle, None where it reads the life's."""

    folder: Path
    lake: LakeKind
    server: EmbeddedServer | None
    _workers: list[Worker] = field(default_factory=list)

    def ask(self, do: str, **arguments: Any) -> Answer:
        """Ask the copy's worker."""
        return self.worker().ask(do, **arguments)

    def worker(self, role: Role = "apply", *, is_new: bool = False) -> Worker:
        """The worker of the copy, or another one in its place."""
        if is_new or not self._workers:
            log = self.folder / f"worker-{len(self._workers)}.log"
            self._workers.append(Worker(self.folder / CONFIG, role, log, lake=self.lake))
        return self._workers[-1]

    def close(self) -> None:
        """End its workers."""
        for worker in self._workers:
            worker.close()


def copy_oracle(folder: Path, place: Path) -> Path:
    """Oracle's files as they are now."""
    return Path(shutil.copytree(folder / ORACLE, place / ORACLE))


def copy_store(folder: Path, place: Path) -> None:
    """The metadata store as it is now, in the place of the one that is there."""
    for old in place.glob(f"{STORE}*"):
        old.unlink()
    for path in folder.glob(f"{STORE}*"):
        shutil.copyfile(path, place / path.name)


def files_of(folders: Iterable[Path], table: str) -> list[Path]:
    """Files of landed windows that have redo rows, or changes, of a table; the newest comes last."""
    paths = [path for folder in folders for path in folder.glob("*-[0-9]*.parquet")]
    own = [
        one for one in paths if table in pq.read_table(one, columns=["table_name"])[0].to_pylist()
    ]
    return sorted(own, key=lambda path: path.stat().st_mtime_ns)


@contextmanager
def copied(
    folder: Path, place: Path, server: EmbeddedServer, lake: LakeKind, *, with_oracle: bool
) -> Iterator[Copy]:
    """A copy below ``place`` for the block; Oracle's files may be there already, as they were earlier."""
    place.mkdir(exist_ok=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        for part in PARTS:
            if (folder / part).is_dir():
                shutil.copytree(folder / part, place / part)
        copy_store(folder, place)
        text = (folder / CONFIG).read_text()
        for part in (*PARTS, STORE):
            text = text.replace(f"{folder}/{part}", f"{place}/{part}")
        own = None
        if with_oracle:
            data = place / ORACLE if (place / ORACLE).is_dir() else copy_oracle(folder, place)
            own = stack.enter_context(EmbeddedServer(data, ahead=server.ahead))
            text = text.replace(server.dsn, own.dsn)
        (place / CONFIG).write_text(text)
        copy = Copy(place, lake, own)
        stack.callback(copy.close)
        yield copy
