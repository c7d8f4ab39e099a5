"""With what words did a Delta table's log add its files? Their statistics, which stay theirs where rows of them are deleted, and their deletion vectors.

Source: the Delta transaction log protocol, sections "Add File and Remove File" and "Checkpoints".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.lake.log_files import (
    Action,
    actions_of,
    commit_name,
    log_folder,
    newest_checkpoint,
    reading_file,
)
from cdc_core.lake.vectors import Vector


@dataclass(frozen=True, slots=True)
class Added:
    """What the log says of a file: its statistics as JSON, and which of its rows are deleted."""

    statistics: str | None
    vector: Vector | None

    @classmethod
    def of_action(cls, added: dict[str, Any]) -> Added:
        """By an ``add``."""
        said = added.get("deletionVector") or {}
        return cls(added.get("stats"), Vector.of_action(said) if said.get("storageType") else None)


def read_added(
    filesystem: pafs.FileSystem, root: str, names: Iterable[str], version: int
) -> dict[str, Added]:
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
    start, parts = newest_checkpoint([name for name in names if name[: len(until)] <= until])
    found: dict[str, Added] = {}
    for part in parts:
        with reading_file(part), filesystem.open_input_file(f"{folder}/{part}") as file:
            added = pq.read_table(file, columns=["add"])["add"].combine_chunks()
        added = added.filter(pc.is_valid(pc.struct_field(added, "path")))
        wanted = [
            n for n in ("path", "stats", "deletionVector") if added.type.get_field_index(n) >= 0
        ]
        columns = [pc.struct_field(added, name).to_pylist() for name in wanted]
        for values in zip(*columns, strict=True):
            one = dict(zip(wanted, values, strict=True))
            found[one["path"]] = Added.of_action(one)
    for at in range(start + 1, version + 1):
        take_added(found, actions_of(filesystem, f"{folder}/{commit_name(at)}"))
    return found


def take_added(files: dict[str, Added], actions: Iterable[Action]) -> None:
    """The files after one more commit. It may take a file away and add it again with another vector."""
    actions = list(actions)
    for action in actions:
        if removed := action.get("remove"):
            files.pop(removed["path"], None)
    for action in actions:
        if added := action.get("add"):
            files[added["path"]] = Added.of_action(added)
