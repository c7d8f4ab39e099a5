"""Through which reader does a life read its redo, and what of a life is there with LogMiner alone?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.free_port import free_port
from tests.invariants.points import Capture

Reads = Literal["redo", "files", "server", "recordings"]

_LOGS = {
    "late redo": "a transaction comes whole, behind its commit",
    "short read": "no pass of LogMiner is made",
    "other instance": "messages of one redo thread are read",
    "delete logs": "whoever writes the stream reads the logs",
    "needed log": "whoever writes the stream reads the logs",
    "hole": "whoever writes the stream reads the logs",
    "switch in progress": "a window ends where the stream proves it complete",
    "resetlogs": "a copy of the database is not the one that the stream is of",
    "lagging database": "a window ends where the stream proves it complete",
}
_FORGETS = "the server forgets what is applied"
_ONE_CLIENT = "the server serves one client, and forgets what a copy of the life applies"
_SERVED = {
    "lose landing": _FORGETS,
    "damage landing": _FORGETS,
    **dict.fromkeys(
        (
            "out of order", "landed again", "damaged file", "damaged manifest", "yesterday's store", "no undo",
        ),
        _ONE_CLIENT,
    ),
    "kill Oracle": "a server of which nothing was confirmed has no state; tests/sources/test_kills.py ends and starts it",
}  # fmt: skip
LEFT_OUT: dict[Reads, Mapping[str, str]] = {
    "redo": {},
    "files": _LOGS,
    "server": _LOGS | _SERVED,
    "recordings": _LOGS,
}
"""By what is read: the kinds of events that do not happen, and why."""
SOURCE = "proof"


@dataclass(frozen=True, slots=True)
class Way:
    """How a life reads its redo: what of ``capture`` says so, and what the database tells of its
    changes besides (arguments of :func:`oracle_embedded.streams.streaming`)."""

    reads: Reads
    capture: dict[str, Any] = field(default_factory=dict)
    streams: dict[str, Any] = field(default_factory=dict)


def reads_of(capture: Capture, seed: int) -> Reads:
    """What a life reads: of OpenLogReplicator, files or its network writer."""
    if capture == "openlogreplicator":
        return "files" if seed % 2 == 0 else "server"
    return "redo" if capture == "logminer" else "recordings"


def way_of(capture: Capture, seed: int, oracle: Path) -> Way:
    """The way of a life whose database is in a folder, where what it tells is too."""
    told = oracle / "streams"
    reads = reads_of(capture, seed)
    match reads:
        case "redo":
            return Way(reads)
        case "files":
            how: dict[str, Any] = {"type": capture, "folder": str(told), "binary_floats": "take"}
            return Way(reads, how, {"replicator_folder": told})
        case "server":
            port = free_port()
            how = {
                "type": capture, "host": "127.0.0.1", "port": port, "source": SOURCE, "idle_seconds": 1, "binary_floats": "take",
            }  # fmt: skip
            return Way(reads, how, {"replicator_port": port})
        case "recordings":
            return Way(reads, {"type": capture, "folder": str(told)}, {"recordings": told})
