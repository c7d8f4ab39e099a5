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

import pyarrow.fs as pafs

from cdc_core.errors import LakeError
from cdc_core.lake.storage import storing

if TYPE_CHECKING:
    from cdc_core.landing.s3_objects import S3Objects

READING = "reading a Delta table's log"
"""What is under way, for errors."""

Action = dict[str, Any]

_COMMIT = re.compile(r"(\d{20})\.json\Z")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet\Z")


def log_folder(root: str) -> str:
    """The folder of the log of the Delta table in ``root``."""
    return f"{root}/_delta_log"


def objects_of(filesystem: pafs.S3FileSystem) -> S3Objects:
    """The objects of S3, asked for one by one. boto3 takes a third of a second to import: only those who use S3 pay for it."""
    from cdc_core.landing.s3_objects import s3_objects

    return s3_objects(filesystem)


def log_names(filesystem: pafs.FileSystem, root: str) -> list[str]:
    """Names of the log's files in their order; none without a table. Of thousands, asking about each would take most of the time."""
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
    """Those of the log's files that tell the newest state, in their order: in S3, where a listing gives a thousand names at a time, from the
    newest checkpoint on; all of them elsewhere."""
    if isinstance(filesystem, pafs.S3FileSystem):
        objects, folder = objects_of(filesystem), log_folder(root)
        version = _version_said(objects.read(f"{folder}/_last_checkpoint"))
        if version is not None:
            names = objects.names_behind(folder, f"{version:020d}")
            # What it says may be of a table that stood here before, or of a checkpoint that is gone.
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
    parts: dict[int, list[str]] = {}
    wanted: dict[int, int] = {}
    for name in names:
        if "checkpoint" in name and (found := _CHECKPOINT.match(name)):
            parts.setdefault(int(found[1]), []).append(name)
            wanted[int(found[1])] = int(found[2] or 1)
    complete = [version for version, files in parts.items() if len(files) == wanted[version]]
    return (max(complete), parts[max(complete)]) if complete else (-1, [])


def actions_of(filesystem: pafs.FileSystem, name: str) -> list[Action]:
    """The actions of the commit in a file.

    Raises:
        FileNotFoundError: There is no such file.
        LakeError: The file is damaged.
        StoreUnavailableError: The storage does not give it back.
    """
    with reading_file(name):
        content = _content(filesystem, name)
        return [json.loads(line) for line in content.splitlines() if line.strip()]


def _content(filesystem: pafs.FileSystem, name: str) -> bytes:
    if isinstance(filesystem, pafs.S3FileSystem):  # by one request: Arrow asks for the size first
        found = objects_of(filesystem).read(name)
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
            hint="Restore it, or move the table's folder aside: `redolake table rebuild OWNER.TABLE` writes a mirror from its change log, and "
            "`redolake table rebuild --from-landing OWNER.TABLE` both tables from landing.",
            path=name,
        ) from error
