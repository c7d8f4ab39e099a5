"""Which version of a mirror shows Oracle as of an SCN?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.delta.history import DeltaCommit


def version_at(commits: Sequence[DeltaCommit], scn: int) -> int | None:
    """The newest version in which a mirror has not gone past ``scn``, with the columns that it had
    there; None if the commits do not reach back so far.

    A commit's ``scn_high`` is the mirror's position after it, or the SCN of a chunk that was read
    ahead of the position. A commit that says nothing (a change of properties, OPTIMIZE, somebody
    else's) leaves the mirror where it was. A mirror whose first rows came by a window, or that has
    none, was empty from its snapshot on, as it was begun.

    A change of columns belongs to what the mirror has from the SCN of its definition on
    (``definition_scn``), also if no window brings a row
    after it: VACUUM removes the files of the version before a column became wider. One that does
    not name the SCN waits for the next commit.
    """
    found: int | None = None
    reached = -1
    first = next((one for one in commits if "scn_high" in one.metadata), None)
    is_empty = first is None or first.metadata.get("kind") != "chunk"
    is_known = False
    for commit in commits:
        is_known |= (is_empty and commit.version == 0) or "scn_high" in commit.metadata
        reached = max(reached, commit.metadata.get("scn_high", -1))
        if is_known and reached <= scn and not _has_newer_columns(commit, scn):
            found = commit.version
    return found


def _has_newer_columns(commit: DeltaCommit, scn: int) -> bool:
    said = commit.metadata
    return said.get("kind") == "schema" and said.get("definition_scn", scn + 1) > scn


@dataclass(frozen=True, slots=True)
class NoImage:
    """No version of a mirror is proved to be its table as of an SCN: why, and what to do."""

    reason: str
    way_out: str


def image_at(
    commits: Sequence[DeltaCommit], scn: int, *, known: tuple[int, int] | None = None
) -> int | NoImage:
    """The version of a mirror that is its table ``AS OF SCN``, as far as its log proves it.

    A window's commit proves the SCN of its end, and that nothing of the table changed between the
    mirror's position before it and its lower end. Between its two ends there is no image. A chunk
    read at a newer SCN may end a stream that was interrupted, so it proves nothing of the SCNs
    before it. Behind the newest window the log does not tell an idle table from a stopped one.

    Args:
        commits: Those that the log still has, oldest first.
        scn: The SCN.
        known: The first and the last SCN between which the table's stream is known from elsewhere
            to have had no interruption.
    """
    version = version_at(commits, scn)
    if version is None:
        return NoImage(
            "its Delta log does not reach back to this SCN",
            "Take a newer SCN; old versions go when Delta cleans up its log.",
        )
    later = [one for one in commits if one.version > version]
    if late := [one for one in later if one.metadata.get("late_scn", scn + 1) <= scn]:
        found = late[-1].metadata
        return NoImage(
            f"commits from SCN {found['late_scn']} on came to light with a later window",
            f"Take SCN {found['scn_high']} or a newer one.",
        )
    taken = [
        one.metadata["scn_high"]
        for one in commits
        if one.version <= version and one.metadata.get("kind") in _ENDS
    ]
    if scn in taken[-1:]:
        return version
    is_known = known is not None and known[0] <= scn <= known[1]
    for commit in later:
        said = commit.metadata
        kind, reached = said.get("kind"), said.get("scn_high", -1)
        if kind == "window" and said["scn_low"] < scn:
            return NoImage(
                f"the SCN is inside a window that changed the table ({said['scn_low']} to {reached})",
                f"Take SCN {said['scn_low']} or {reached}.",
            )
        if kind in IN_ORDER and reached > scn:
            return version
        if not is_known and kind in _CHUNKS and said["chunk_scn"] > scn:
            return NoImage(
                f"a snapshot read some of its rows at the newer SCN {said['chunk_scn']}",
                "Take an SCN from there on.",
            )
    if is_known:
        return version
    return NoImage(
        f"its Delta log says nothing of SCNs behind {max(taken, default=0)}",
        "Take an older SCN, or run `redolake run` until the table has taken this one.",
    )


_ENDS = frozenset({"window", "truncate"})
"""Kinds of commits after which the mirror is the table as of the commit's SCN."""

IN_ORDER = _ENDS | {"partitions"}
"""Kinds of commits that the stream brings, each behind all that is older."""

_CHUNKS = frozenset({"chunk", "gone"})
