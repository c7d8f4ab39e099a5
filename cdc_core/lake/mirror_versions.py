"""Which version of a mirror shows Oracle as of an SCN?"""

from __future__ import annotations

from collections.abc import Sequence

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
