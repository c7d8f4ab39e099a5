"""At which points of its work can the prover meet a worker?

Points are reached by wrapping the functions at which they lie, so production code knows nothing of them. A worker that is met at
a point waits there until it is killed or told to go on.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Capture = Literal["logminer", "openlogreplicator", "xstream"]
Role = Literal["capture", "apply"]
LakeKind = Literal["delta", "kept"]
"""Delta Lake through Spark, or the lake in memory that is kept in files (:mod:`tests.invariants.kept_lake`)."""
POLL_SECONDS = 0.002


class Points:
    """The points of one process, of which one at a time is armed: at its ``hit``-th time the work meets the prover there."""

    def __init__(self, meet: Callable[[str], None]) -> None:
        self._meet = meet
        self._lock = threading.Lock()
        self._armed = ""
        self._left = 0

    def arm(self, point: str, hit: int) -> None:
        """Meet at the point when it is reached the ``hit``-th time from now on."""
        with self._lock:
            self._armed, self._left = point, hit

    def disarm(self) -> None:
        """Meet nowhere."""
        self.arm("", 0)

    def reached(self, point: str) -> None:
        """Count, and meet when it is time; others that reach a point in the meantime wait too."""
        with self._lock:
            if point != self._armed:
                return
            self._left -= 1
            if self._left == 0:
                self._armed = ""
                self._meet(point)


Install = Callable[[Callable[[], None]], None]
"""Wraps what lies at a point, so that it calls what it is given each time that the point is reached."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point: in which role it lies, how it is wrapped, whether each table of a window reaches it, and with which lake, or by which readers,
    alone."""

    role: Role
    install: Install
    is_per_table: bool = False
    lake: LakeKind | None = None
    captures: frozenset[Capture] | None = None


def _before(
    owner: Any,
    name: str,
    reached: Callable[[], None],
    when: Callable[..., bool] = lambda *_, **__: True,
) -> None:
    original = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if when(*args, **kwargs):
            reached()
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)


def _on_rename(part: str) -> Install:
    def install(reached: Callable[[], None]) -> None:
        _before(
            Path,
            "replace",
            reached,
            lambda _self, target: part in str(target) and "parquet" in str(target),
        )

    return install


def _on_windows(name: str) -> Install:
    def install(reached: Callable[[], None]) -> None:
        from cdc_core.state.windows import Windows

        _before(Windows, name, reached)

    return install


def _on_chunks(name: str) -> Install:
    def install(reached: Callable[[], None]) -> None:
        from cdc_core.state.chunks import Chunks

        _before(Chunks, name, reached)

    return install


def _on_manifest(part: str) -> Install:
    """In a local folder, and in S3, where the files are in the bucket by then."""

    def install(reached: Callable[[], None]) -> None:
        from cdc_core.landing.store_objects import ObjectLandingStore

        _before(os, "link", reached, lambda _source, target, **_: part in str(target))
        _before(
            ObjectLandingStore,
            "write_manifest",
            reached,
            lambda _self, folder, _content: part in f"/{folder}/",
        )

    return install


def _in_fetch(reached: Callable[[], None]) -> None:
    from cdc_core.oracle.session import OracleSession

    original = OracleSession.fetch_batches

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        for batch in original(self, *args, **kwargs):
            reached()
            yield batch

    OracleSession.fetch_batches = wrapped  # type: ignore[method-assign]


def _in_records(reached: Callable[[], None]) -> None:
    from cdc_core.change_stream.events import WindowEvents

    original = WindowEvents.read

    def wrapped(self: Any, *args: Any) -> Any:
        for event in original(self, *args):
            reached()
            yield event

    WindowEvents.read = wrapped  # type: ignore[method-assign, assignment]


def _before_statement(reached: Callable[[], None]) -> None:
    from cdc_core.oracle.session import OracleSession

    _before(OracleSession, "_report", reached)


def _between_deltas(reached: Callable[[], None]) -> None:
    from cdc_core.lake.apply import windows

    _before(windows, "write", reached)


def _in_merge(reached: Callable[[], None]) -> None:
    """When a MERGE has written a file of the mirror and not committed it."""
    from cdc_core.lake.mirror import write as mirror_write
    from cdc_core.lake.mirror.merge import run_merge as original

    def wrapped(work: Any, *args: Any, **kwargs: Any) -> Any:
        folder = Path(work.mirror)
        before = _files(folder)
        commits = len(list((folder / "_delta_log").glob("*.json")))

        def watch() -> None:
            while len(list((folder / "_delta_log").glob("*.json"))) == commits:
                if _files(folder) - before:
                    reached()
                    return
                time.sleep(POLL_SECONDS)

        threading.Thread(target=watch, daemon=True).start()
        return original(work, *args, **kwargs)

    mirror_write.run_merge = wrapped  # type: ignore[attr-defined]


def _before_the_exchange(reached: Callable[[], None]) -> None:
    """When a window's rows are in a new file of the mirror, and no commit names it."""
    from cdc_core.lake.mirror import copy_on_write as rewriting

    _before(rewriting, "commit_files", reached)


def _before_the_fence(reached: Callable[[], None]) -> None:
    from cdc_core.leases import HeldLease

    _before(HeldLease, "check", reached)


def _before_the_link(reached: Callable[[], None]) -> None:
    from tests.invariants.kept_lake import KeptLake

    _before(KeptLake, "_link", reached)


def _before_the_append(reached: Callable[[], None]) -> None:
    """When the commit has read the change log, found no other one there, and is about to ask the fence."""
    from cdc_core.delta import appending
    from cdc_core.lake.apply import windows

    def is_of_a_window(*_: Any, **__: Any) -> bool:
        commit, caller = sys._getframe(2), sys._getframe(3)
        return commit.f_code is appending.commit_files.__code__ and caller.f_globals is vars(
            windows
        )

    _before(appending, "_check_names", reached, is_of_a_window)


def _files(folder: Path) -> set[Path]:
    return set(folder.glob("*.parquet"))


FENCE = "about to commit, fence not asked"
UNFENCED = "change log written, fence not asked"
LINK = "past the fence, version not in the lake"
IN_MERGE = "Spark in the middle of a MERGE"
IN_REWRITING = "mirror's files written anew, not committed"
POINTS: dict[str, Point] = {
    "chunk file written, not renamed": Point("capture", _on_rename("/chunks/")),
    "chunk files renamed, no manifest": Point("capture", _on_manifest("/chunks/")),
    "chunk landed, not recorded": Point("capture", _on_chunks("record_landed")),
    "window file written, not renamed": Point("capture", _on_rename("/windows/")),
    "window files renamed, no manifest": Point("capture", _on_manifest("/windows/")),
    "window landed, not recorded": Point("capture", _on_windows("record_captured")),
    "in the middle of a fetch": Point("capture", _in_fetch, captures=frozenset({"logminer"})),
    "in the middle of the records": Point(
        "capture", _in_records, captures=frozenset({"openlogreplicator", "xstream"})
    ),
    "before a statement to Oracle": Point("capture", _before_statement),
    "chunk in the lake, not recorded": Point("apply", _on_chunks("record_applied")),
    FENCE: Point("apply", _before_the_fence, is_per_table=True),
    LINK: Point("apply", _before_the_link, is_per_table=True, lake="kept"),
    UNFENCED: Point("apply", _before_the_append, is_per_table=True, lake="delta"),
    "change log committed, mirror not": Point(
        "apply", _between_deltas, is_per_table=True, lake="delta"
    ),
    IN_MERGE: Point("apply", _in_merge, lake="delta"),
    IN_REWRITING: Point("apply", _before_the_exchange, is_per_table=True, lake="delta"),
    "Delta committed, store not": Point("apply", _on_windows("advance_tables"), is_per_table=True),
    "window in the lake, not recorded": Point("apply", _on_windows("record_applied")),
}


def points_of(lake: LakeKind, capture: Capture = "logminer") -> dict[str, Point]:
    """The points that processes with such a lake and reader have."""
    return {
        name: point
        for name, point in POINTS.items()
        if point.lake in (None, lake) and (point.captures is None or capture in point.captures)
    }


def install(role: Role, lake: LakeKind, capture: Capture, meet: Callable[[str], None]) -> Points:
    """Wrap everything that lies at a point of the role."""
    points = Points(meet)
    for name, point in points_of(lake, capture).items():
        if point.role == role:
            point.install(lambda name=name: points.reached(name))  # type: ignore[misc]
    return points
