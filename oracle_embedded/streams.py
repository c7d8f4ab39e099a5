"""What tells readers other than LogMiner of a served database's changes while it runs?

A writer of files goes on where the process before it ended, in its next file: what that process may
have written last comes again. OpenLogReplicator's network writer keeps what was confirmed, as its
own state file does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from oracle_embedded.database import OpenDatabase
from oracle_embedded.openlogreplicator import OlrSettings, OpenLogReplicator
from oracle_embedded.openlogreplicator_server import OlrServer
from oracle_embedded.xstream import Recorder, XStreamOut

_WRITE_SECONDS, _END_SECONDS = 0.5, 5.0
"""A write that takes longer is given up at the end: what it writes comes again."""
_POSITION_NAME = "position"


class Writer(Protocol):
    """Writes files into a folder."""

    @property
    def folder(self) -> Path:
        """The folder."""

    def write(self) -> int:
        """Write all that has committed since; how many lines."""

    def position(self) -> Mapping[str, Any]:
        """What the writer of the next process must know."""

    def resume(self, position: Mapping[str, Any]) -> None:
        """Go on behind a position, in the next file."""


@contextmanager
def streaming(
    database: OpenDatabase,
    *,
    name: str,
    replicator_folder: Path | None = None,
    replicator_port: int | None = None,
    recordings: Path | None = None,
    state: Path,
) -> Iterator[Callable[[], None]]:
    """Tell of changes for the block. Gives what writes at once, to files, all that has committed.

    Args:
        database: Whose changes.
        name: Of OpenLogReplicator's source, for its network writer.
        replicator_folder: For files of OpenLogReplicator.
        replicator_port: For its network writer, on loopback.
        recordings: For recordings of XStream's LCRs.
        state: Where the network writer keeps what was confirmed.

    Raises:
        OSError: The port is taken.
    """
    writers: list[Writer] = []
    if replicator_folder is not None:
        settings = OlrSettings(headless=False, lost_at_restart=False)
        writers.append(OpenLogReplicator(database, replicator_folder, settings))
    if recordings is not None:
        writers.append(Recorder(XStreamOut(database), recordings))
    with ExitStack() as stack:
        if replicator_port is not None:
            server = OlrServer(database, name, port=replicator_port, state=state)
            stack.enter_context(server)
        yield stack.enter_context(_writing(writers))


@contextmanager
def _writing(writers: Sequence[Writer]) -> Iterator[Callable[[], None]]:
    ended, writing = threading.Event(), threading.Lock()
    for writer in writers:
        writer.folder.mkdir(parents=True, exist_ok=True)
        left = writer.folder / _POSITION_NAME
        if left.exists():
            writer.resume(json.loads(left.read_text()))

    def write() -> None:
        with writing:
            for writer in writers:
                _write(writer)

    def keep_writing() -> None:
        while not ended.wait(_WRITE_SECONDS):
            write()

    thread = threading.Thread(target=keep_writing, daemon=True)
    thread.start()
    try:
        yield write
    finally:
        ended.set()
        thread.join(_END_SECONDS)


def _write(writer: Writer) -> None:
    if not writer.write():
        return
    fresh = writer.folder / f"{_POSITION_NAME}.new"
    fresh.write_text(json.dumps(writer.position()))
    fresh.replace(writer.folder / _POSITION_NAME)
