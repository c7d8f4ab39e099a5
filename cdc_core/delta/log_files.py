"""Which files has a Delta table's log, and what actions do they hold?

Source: the Delta transaction log protocol, sections "Delta log entries" and "Checkpoints".
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.fs as pafs

from cdc_core.delta.storage import storing
from cdc_core.errors import ANY_TABLE, DELTA_LOG_HINT, LakeError

if TYPE_CHECKING:
    from cdc_core.objects.store import ObjectStore

READING = "reading a Delta table's log"
"""What is under way, for errors."""

Action = dict[str, Any]

_COMMIT = re.compile(r"(\d{20})\.json\Z")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.parquet|\.\d{10}\.(?P<parts>\d{10})\.parquet|\.(?P<id>[0-9A-Fa-f-]{36})\.(?:parquet|json))\Z"
)
"""Whole, in parts, or named by a UUID, of which there may be several of one version."""


_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")


def is_in_folder(name: str) -> bool:
    """Does a data file lie in its table's folder? The log names others, such as those of a shallow
    clone, by an absolute path."""
    return _ABSOLUTE.match(name) is None


def data_file(root: str, name: str) -> str:
    """The path of a data file that the log of the Delta table in ``root`` names: relative to that
    folder, and percent-encoded (section "Add File and Remove File").

    Raises:
        LakeError: It lies elsewhere.
    """
    if not is_in_folder(name):
        raise LakeError(
            "a Delta table has a file outside of its folder",
            hint="Another writer put it there, such as a shallow clone. Copy the whole table into its folder (DEEP CLONE), or begin new Delta "
            f"tables with `redolake table resnapshot --fresh {ANY_TABLE}`.",
            path=root,
        )
    return f"{root}/{unquote(name)}"


def log_folder(root: str) -> str:
    """The folder of the log of the Delta table in ``root``."""
    return f"{root}/_delta_log"


def objects_of(filesystem: pafs.FileSystem) -> ObjectStore | None:
    """The objects of an object store, asked for one by one; None of another file system. boto3
    takes a third of a second to import: only those who use S3 pay for it."""
    if isinstance(filesystem, pafs.S3FileSystem):
        from cdc_core.objects.s3 import s3_objects

        return s3_objects(filesystem)
    handler = filesystem.handler if isinstance(filesystem, pafs.PyFileSystem) else None
    objects: ObjectStore | None = getattr(handler, "objects", None)
    return objects


def log_names(filesystem: pafs.FileSystem, root: str) -> list[str]:
    """Names of the log's files in their order; none without a table. Of thousands, asking about
    each would take most of the time."""
    folder = log_folder(root)
    try:
        with storing(READING, path=root):
            if isinstance(filesystem, pafs.LocalFileSystem):
                return sorted(os.listdir(folder))  # noqa: PTH208 - it makes no objects
            infos = filesystem.get_file_info(pafs.FileSelector(folder))
    except FileNotFoundError:
        return []
    return sorted(info.base_name for info in infos if info.is_file)


def newest_names(filesystem: pafs.FileSystem, root: str) -> list[str]:
    """Those of the log's files that tell the newest state, in their order: in an object store,
    where a listing gives a thousand names at a time, from the newest checkpoint on; all of them
    elsewhere."""
    if (objects := objects_of(filesystem)) is not None:
        folder = log_folder(root)
        version = _version_said(objects.read(f"{folder}/_last_checkpoint"))
        if version is not None:
            names = objects.names_behind(folder, f"{version:020d}")
            # What it says may be of a table that stood here before, or of a checkpoint that is
            # gone.
            if newest_checkpoint(names)[0] >= version:
                return names
    return log_names(filesystem, root)


def _version_said(last_checkpoint: bytes | None) -> int | None:
    try:
        return int(json.loads(last_checkpoint or b"")["version"])
    except (ValueError, KeyError, TypeError):
        return None


def names_behind(names: list[str], version: int) -> list[str]:
    """Those of the sorted names that belong to later versions."""
    return names[bisect_left(names, f"{version + 1:020d}") :]


def commit_name(version: int) -> str:
    """The file of one commit."""
    return f"{version:020d}.json"


def commit_names(names: list[str]) -> dict[int, str]:
    """By version: the file of each commit among the names."""
    return {int(found[1]): name for name in names if (found := _COMMIT.match(name))}


def newest_checkpoint(names: list[str]) -> tuple[int, list[str]]:
    """Version and files of the newest checkpoint that is complete; (-1, []) without one."""
    files: dict[tuple[int, str, int], list[str]] = {}
    for name in names:
        if "checkpoint" in name and (found := _CHECKPOINT.match(name)):
            one = int(found["version"]), found["id"] or "", int(found["parts"] or 1)
            files.setdefault(one, []).append(name)
    complete = [one for one, parts in files.items() if len(parts) == one[2]]
    if not complete:
        return -1, []
    newest = max(one[0] for one in complete)
    # A checkpoint without a UUID is one that every reader knows.
    chosen = min(one for one in complete if one[0] == newest)
    return newest, files[chosen]


def commits_behind(names: list[str], start: int, root: str) -> dict[int, str]:
    """By version, in their order: the files of the commits behind a checkpoint, or of all commits
    where ``start`` is -1.

    Raises:
        LakeError: One is missing, so that files or positions would be missing without an error.
    """
    commits = commit_names(names_behind(names, start))
    newest = max(commits, default=start)
    if missing := [version for version in range(start + 1, newest + 1) if version not in commits]:
        unknown = [name for name in names if "checkpoint" in name and not _is_known(name)]
        raise LakeError(
            "the Delta log has a gap",
            hint=f"Restore the missing file of _delta_log. {DELTA_LOG_HINT}",
            path=root,
            version=missing[0],
            **({"unreadable_checkpoint": unknown[-1]} if unknown else {}),
        )
    return commits


def _is_known(name: str) -> bool:
    return bool(_CHECKPOINT.match(name)) or not name[:1].isdigit() or name.endswith(".crc")


def actions_of(filesystem: pafs.FileSystem, name: str) -> list[Action]:
    """The actions of the commit in a file.

    Raises:
        FileNotFoundError: There is no such file.
        LakeError: The file is damaged.
        StoreUnavailableError: The storage does not give it back.
    """
    with reading_file(name):
        content = _content(filesystem, name)
        found = [json.loads(line) for line in content.splitlines() if line.strip()]
        if not all(map(_is_action, found)):
            raise ValueError("an action is no object")
        return found


def _is_action(found: Any) -> bool:
    """Does a line of a commit name actions by their kinds?"""
    return isinstance(found, dict) and all(isinstance(one, dict | None) for one in found.values())


def _content(filesystem: pafs.FileSystem, name: str) -> bytes:
    if (objects := objects_of(filesystem)) is not None:  # by one request: Arrow asks for the size
        found = objects.read(name)
        if found is None:
            raise FileNotFoundError(name)
        return found
    with filesystem.open_input_stream(name) as file:
        content: bytes = file.read()
        return content


@contextmanager
def reading_file(name: str) -> Iterator[None]:
    """Read a file of a log in the block.

    Raises:
        LakeError: The file is damaged.
        StoreUnavailableError: The storage does not give it back.
    """
    try:
        with storing(READING, path=name):
            yield
    except ValueError as error:  # JSON's, and Arrow's for Parquet
        raise LakeError(
            "a file of a Delta table's log is damaged",
            hint=f"Restore it. {DELTA_LOG_HINT}",
            path=name,
        ) from error
