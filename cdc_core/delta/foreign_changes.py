"""Which rows of a Delta table did somebody else change, behind the last commit of ours that brought
rows?

Delta's log says what each commit did. A change of some rows is named; what put other rows in the
place of all (RESTORE) took windows away that the transaction identifiers still count, and nothing
may be built on such a table. Source: the Delta transaction log protocol, sections "Commit
Provenance Information" and "Add File and Remove File".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

_WITHOUT_ROWS = frozenset({"maintenance", "schema", "purge", "replay"})
"""Kinds of our commits after which a table has no more of what it should have than before."""

_KEPT_MAX = 20


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """A commit of somebody else that changed rows. ``scn``: how far the table was by our last
    commit before it, -1 where nobody knows; ``replaces``: it put other rows in the place of all."""

    version: int
    operation: str
    scn: int
    replaces: bool


@dataclass(frozen=True, slots=True)
class ForeignChanges:
    """Those behind the newest of our commits that brought rows: ``own_version``, up to ``own_scn``;
    both -1 where the log has none."""

    own_version: int = -1
    own_scn: int = -1
    changes: tuple[ForeignChange, ...] = ()

    def followed(self, version: int, actions: Sequence[dict[str, Any]]) -> ForeignChanges:
        """With one more commit."""
        info, said = commit_info(actions)
        if kind := said.get("kind"):
            if kind in _WITHOUT_ROWS:
                return self
            return ForeignChanges(version, int(said.get("scn_high", -1)))
        if not _changes_rows(actions):
            return self
        operation = str(info.get("operation") or "an unnamed operation")
        changes = self.changes
        if (target := _restored_version(info)) is not None:
            changes = tuple(one for one in changes if one.version <= target)
            if target >= self.own_version:
                return ForeignChanges(self.own_version, self.own_scn, changes)
        new = ForeignChange(version, operation, self.own_scn, _replaces(info))
        return ForeignChanges(self.own_version, self.own_scn, (*changes, new)[-_KEPT_MAX:])

    @property
    def replacing(self) -> ForeignChange | None:
        """The first that put other rows in the place of all."""
        return next((one for one in self.changes if one.replaces), None)


NOTHING_FOREIGN = ForeignChanges()
"""Before the first commit."""


def brings_rows(actions: Iterable[dict[str, Any]]) -> bool:
    """Is a commit one of ours that brought rows?"""
    kind = commit_info(actions)[1].get("kind")
    return kind is not None and kind not in _WITHOUT_ROWS


def in_short(actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What of a commit's actions is looked at here: a RESTORE may have one for each file of the
    table."""
    infos = [action for action in actions if "commitInfo" in action]
    files = (action for action in actions if _changes_rows([action]))
    return [*infos, *islice(files, 1)]


def commit_info(actions: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a commit says of itself, and our user metadata in it; empty if they are none."""
    info: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
    try:
        said = json.loads(info.get("userMetadata") or "{}")
    except ValueError:  # somebody else's words
        return info, {}
    return info, said if isinstance(said, dict) else {}


def _changes_rows(actions: Iterable[dict[str, Any]]) -> bool:
    files = (action.get("add") or action.get("remove") for action in actions)
    return any(file.get("dataChange", True) for file in files if file)


def _restored_version(info: dict[str, Any]) -> int | None:
    """To which version a RESTORE went back; None for others, and where it names a time alone."""
    said = (info.get("operationParameters") or {}).get("version")
    if info.get("operation") != "RESTORE" or not str(said).isdecimal():
        return None
    return int(str(said))


def _replaces(info: dict[str, Any]) -> bool:
    operation = str(info.get("operation") or "").upper()
    mode = str((info.get("operationParameters") or {}).get("mode") or "").upper()
    words = ("RESTORE", "TRUNCATE", "REPLACE", "CLONE")
    return any(word in operation for word in words) or mode == "OVERWRITE"
