"""What does a Delta table's own log say: transaction identifiers, properties, columns, commits?

Read directly, without Spark, so that a repeated window or chunk is seen as such in a few milliseconds and `status` needs no
JVM. Source: the Delta transaction log protocol, sections "Delta log entries", "Checkpoints" and "Actions".
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.errors import LakeError
from cdc_core.lake.storage import storing
from cdc_core.stage.file_names import PLAIN_NAMES, FileNames

MAPPING = "delta.columnMapping.mode"
"""Table property: how a table's columns are found in its files."""

_READING = "reading a Delta table's log"

_COMMIT = re.compile(r"(\d{20})\.json\Z")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet\Z")


@dataclass(frozen=True, slots=True)
class DeltaCommit:
    """One commit that the log still has: version, operation, our user metadata (empty if it is not ours), Delta's metrics of
    the operation, and the transaction identifiers that came with it."""

    version: int
    operation: str
    metadata: dict[str, Any]
    metrics: dict[str, Any] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """A table's newest state: ``transactions`` maps application id to version, ``columns`` maps the names of
    the top-level columns to the protocol's type names (``struct`` and the like for nested ones), ``fields`` each struct to its
    fields' names. ``file_names`` are what files call them."""

    version: int
    transactions: dict[str, int]
    properties: dict[str, str]
    columns: dict[str, str]
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    file_names: FileNames = PLAIN_NAMES

    @property
    def is_mapped(self) -> bool:
        """Has the table other names in its files than in its schema (column mapping)?"""
        return self.file_names.are_mapped


def read_log(path: str) -> DeltaLog | None:
    """Read the log of the Delta table at ``path`` (a folder, or a URI that pyarrow knows); None if there is no table.

    Raises:
        LakeError: The log has a gap or cannot be read.
    """
    filesystem, root = filesystem_of(path)
    names = log_names(filesystem, root)
    start, parts = newest_checkpoint(names)
    commits = _commit_names(names_behind(names, start))
    if not commits and not parts:
        return None
    newest = max(commits, default=start)
    versions = range(start + 1, newest + 1)
    if missing := [version for version in versions if version not in commits]:
        raise LakeError(
            "the Delta log has a gap",
            hint="Restore the missing file of _delta_log. Of a mirror, move the folder aside and run `redolake table rebuild OWNER.TABLE`.",
            path=path,
            version=missing[0],
        )
    folder = f"{root}/_delta_log"
    state = _State()
    for part in parts:
        state.take_checkpoint(filesystem, f"{folder}/{part}")
    for version in versions:
        state.take(list(_actions(filesystem, f"{folder}/{commits[version]}")))
    return DeltaLog(
        version=newest,
        transactions=state.transactions,
        properties=state.properties,
        columns=state.columns,
        fields=state.fields,
        file_names=state.file_names,
    )


def folder_exists(path: str) -> bool:
    """Is there anything at the place of a Delta table?"""
    filesystem, root = filesystem_of(path)
    return bool(filesystem.get_file_info(root).type != pafs.FileType.NotFound)


def move_aside(path: str, suffix: str) -> str:
    """Rename a Delta table's folder, in one step; return its new name.

    Raises:
        LakeError: The place cannot rename folders in one step, or something stands there already.
    """
    filesystem, root = filesystem_of(path)
    target = root + suffix
    taken = filesystem.get_file_info(target).type != pafs.FileType.NotFound
    if taken or not isinstance(filesystem, pafs.LocalFileSystem | pafs.HadoopFileSystem):
        raise LakeError(
            "an old Delta table cannot be moved aside"
            + (": its new place is taken" if taken else ""),
            hint="Move the folder yourself, and run the command again.",
            path=path,
            wanted=target,
        )
    filesystem.move(root, target)
    return path.rstrip("/") + suffix


def read_commits(path: str) -> tuple[DeltaCommit, ...]:
    """The commits that the log of the Delta table at ``path`` still has, oldest first; none if there is no table.

    Reads every file of the log, which :func:`read_log` does not: ask it only for what no newest state tells.
    """
    filesystem, root = filesystem_of(path)
    commits = _commit_names(log_names(filesystem, root))
    return tuple(
        _commit(version, list(_actions(filesystem, f"{root}/_delta_log/{name}")))
        for version, name in sorted(commits.items())
    )


def newest_metadata(path: str, name: str) -> Any:
    """What the newest of our commits that has a name in its user metadata says there; None if no commit does.

    Commits are read newest first, and those between two of ours are few.
    """
    filesystem, root = filesystem_of(path)
    commits = _commit_names(log_names(filesystem, root))
    for version in sorted(commits, reverse=True):
        actions = list(_actions(filesystem, f"{root}/_delta_log/{commits[version]}"))
        metadata = _commit(version, actions).metadata
        if name in metadata:
            return metadata[name]
    return None


def version_at(commits: Iterable[DeltaCommit], scn: int) -> int | None:
    """The newest version in which a mirror has not gone past ``scn``, with the columns that it had there; None if the commits do
    not reach back so far.

    A commit's ``scn_high`` is the mirror's position after it, or the SCN of a chunk that was read ahead of the position. A
    commit that says nothing (a change of properties, OPTIMIZE, somebody else's) leaves the mirror where it was.
    """
    found: int | None = None
    reached = -1
    for commit in commits:
        reached = max(reached, commit.metadata.get("scn_high", -1))
        if 0 <= reached <= scn and commit.metadata.get("kind") != "schema":
            found = commit.version
    return found


def log_names(filesystem: pafs.FileSystem, root: str) -> list[str]:
    """Names of the log's files in their order; none without a table. Of thousands, asking about each would take most of the time."""
    folder = f"{root}/_delta_log"
    try:
        with storing(_READING, path=root):
            if isinstance(filesystem, pafs.LocalFileSystem):
                return sorted(os.listdir(folder))  # noqa: PTH208 - it makes no objects
            infos = filesystem.get_file_info(pafs.FileSelector(folder))
    except FileNotFoundError:
        return []
    return sorted(info.base_name for info in infos if info.is_file)


def names_behind(names: list[str], version: int) -> list[str]:
    """Those of the sorted names that belong to later versions."""
    return names[bisect_left(names, f"{version + 1:020d}") :]


def _commit_names(names: list[str]) -> dict[int, str]:
    return {int(found[1]): name for name in names if (found := _COMMIT.match(name))}


class _State:
    """What the actions read so far add up to; later ones win."""

    def __init__(self) -> None:
        self.transactions: dict[str, int] = {}
        self.properties: dict[str, str] = {}
        self.columns: dict[str, str] = {}
        self.fields: dict[str, tuple[str, ...]] = {}
        self.file_names = PLAIN_NAMES

    def take(self, actions: list[dict[str, Any]]) -> None:
        for action in actions:
            if txn := action.get("txn"):
                self.transactions[txn["appId"]] = txn["version"]
            if metadata := action.get("metaData"):
                self.properties = dict(metadata.get("configuration") or {})
                fields = json.loads(metadata["schemaString"])["fields"]
                self.columns = {one["name"]: _type_name(one["type"]) for one in fields}
                self.fields = {
                    one["name"]: tuple(part["name"] for part in one["type"]["fields"])
                    for one in fields
                    if _type_name(one["type"]) == "struct"
                }
                is_mapped = self.properties.get(MAPPING, "none") != "none"
                self.file_names = FileNames.of_fields(fields) if is_mapped else PLAIN_NAMES

    def take_checkpoint(self, filesystem: pafs.FileSystem, name: str) -> None:
        with storing(_READING, path=name), filesystem.open_input_file(name) as file:
            found = pq.read_table(file, columns=["txn", "metaData"])
        # Most rows of a checkpoint are files.
        rows = found.filter(
            pc.or_(found["txn"].is_valid(), found["metaData"].is_valid())
        ).to_pylist()
        for row in rows:
            if row["metaData"] is not None and row["metaData"]["id"] is not None:
                row["metaData"]["configuration"] = dict(row["metaData"]["configuration"] or [])
        self.take(rows)


def _type_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])


def newest_checkpoint(names: list[str]) -> tuple[int, list[str]]:
    """Version and files of the newest checkpoint that is complete; (-1, []) without one."""
    parts: dict[int, list[str]] = {}
    wanted: dict[int, int] = {}
    for name in names:
        if "checkpoint" in name and (found := _CHECKPOINT.match(name)):
            parts.setdefault(int(found[1]), []).append(name)
            wanted[int(found[1])] = int(found[2] or 1)
    complete = [version for version, files in parts.items() if len(files) == wanted[version]]
    return (max(complete), parts[max(complete)]) if complete else (-1, [])


def _actions(filesystem: pafs.FileSystem, name: str) -> Iterator[dict[str, Any]]:
    with storing(_READING, path=name), filesystem.open_input_stream(name) as file:
        content = file.read()
    for line in content.splitlines():
        if line.strip():
            yield json.loads(line)


def _commit(version: int, actions: list[dict[str, Any]]) -> DeltaCommit:
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    try:
        metadata = json.loads(info.get("userMetadata") or "{}")
    except ValueError:  # somebody else's words
        metadata = {}
    return DeltaCommit(
        version,
        info.get("operation", ""),
        metadata if isinstance(metadata, dict) else {},
        metrics=info.get("operationMetrics") or {},
        transactions={
            one["txn"]["appId"]: one["txn"]["version"] for one in actions if one.get("txn")
        },
    )


def filesystem_of(path: str) -> tuple[pafs.FileSystem, str]:
    if "://" not in path:
        return pafs.LocalFileSystem(), path.rstrip("/")
    filesystem, root = pafs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", path))
    return filesystem, root.rstrip("/")
