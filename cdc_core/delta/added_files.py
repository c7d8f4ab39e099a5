"""With what words did a Delta table's log add its files? Their statistics, which stay theirs where
rows of them are deleted, and their deletion vectors.

Source: the Delta transaction log protocol, sections "Add File and Remove File" and
"Checkpoints".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from cdc_core.delta.checkpoints import added_files
from cdc_core.delta.deletion_vectors import Vector
from cdc_core.delta.history import file_names_of
from cdc_core.delta.log_files import (
    Action,
    actions_of,
    commit_name,
    commits_behind,
    log_folder,
    newest_checkpoint,
)

_Said = TypeVar("_Said")


@dataclass(frozen=True, slots=True)
class AddedFile:
    """What the log says of a file: its statistics as JSON, and which of its rows are deleted."""

    statistics: str | None
    vector: Vector | None

    @classmethod
    def of_action(cls, added: dict[str, Any]) -> AddedFile:
        """By an ``add``."""
        said = added.get("deletionVector") or {}
        return cls(added.get("stats"), Vector.of_action(said) if said.get("storageType") else None)


def read_added(
    filesystem: pafs.FileSystem, root: str, names: Iterable[str], version: int
) -> dict[str, AddedFile]:
    """Of each file of a version, by its path.

    Args:
        filesystem: Where the table is kept.
        root: Its folder there.
        names: Those of the log's files.
        version: One that the log still tells.

    Raises:
        FileNotFoundError: The log was cleaned up meanwhile.
        LakeError: It is damaged.
    """
    folder, until = log_folder(root), commit_name(version).removesuffix(".json")
    names = sorted(name for name in names if name[: len(until)] <= until)
    start, parts = newest_checkpoint(names)
    commits = commits_behind(names, start, root)
    found: dict[str, AddedFile] = {}
    for added in added_files(filesystem, root, parts):
        wanted = [
            n for n in ("path", "stats", "deletionVector") if added.type.get_field_index(n) >= 0
        ]
        columns = [pc.struct_field(added, name).to_pylist() for name in wanted]
        for values in zip(*columns, strict=True):
            one = dict(zip(wanted, values, strict=True))
            found[one["path"]] = AddedFile.of_action(one)
    for _, name in sorted(commits.items()):
        take_added(found, actions_of(filesystem, f"{folder}/{name}"), AddedFile.of_action)
    return found


def take_added(
    files: dict[str, _Said], actions: Iterable[Action], said: Callable[[dict[str, Any]], _Said]
) -> None:
    """The files after one more commit, each with what its ``add`` has ``said``. A commit may take a
    file away and add it again with another vector."""
    actions = list(actions)
    for action in actions:
        if removed := action.get("remove"):
            files.pop(removed["path"], None)
    for action in actions:
        if added := action.get("add"):
            files[added["path"]] = said(added)


def files_within(path: str, column: str, low: int, high: int) -> list[str]:
    """The table's files that may have values from ``low`` to ``high`` in a column: by their
    statistics, or because nobody wrote some."""
    from deltalake import DeltaTable

    found = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    name = file_names_of(path).of(column)
    if {f"min.{name}", f"max.{name}"} <= set(found.column_names):
        least, most = found[f"min.{name}"], found[f"max.{name}"]
        inside = pc.and_(pc.less_equal(least, high), pc.greater_equal(most, low))
        found = found.filter(pc.fill_null(inside, True))
    names: list[str] = found["path"].to_pylist()
    return names
