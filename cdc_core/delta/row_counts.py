"""How many rows has a Delta table, by its log alone?

Each file's statistics say how many records it holds, its deletion vector how many of them are
deleted. No data is read and no Spark is started. Source: the Delta transaction log protocol,
sections "Add File", "Per-file Statistics", "Deletion Vectors".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from cdc_core.delta.added_files import take_added
from cdc_core.delta.checkpoints import added_files, counted_records
from cdc_core.delta.history import filesystem_of
from cdc_core.delta.log_cache import KnownLogs
from cdc_core.delta.log_files import (
    Action,
    actions_of,
    commits_behind,
    log_folder,
    newest_checkpoint,
)

FILES_KNOWN_MAX = 2_000
"""Of a table with more files the sum alone is kept in memory; it is counted anew when files go."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """Rows of a version, None where a file has no statistics; and of each file, unless there are
    many."""

    version: int
    rows: int | None
    files: Mapping[str, int | None] | None


def count_rows(path: str) -> int | None:
    """Rows of the newest version of the table at ``path``; None if there is no table, or a file has
    no statistics."""
    found = _known.newest(path, *filesystem_of(path))
    return None if found is None else found.rows


def _count_whole(filesystem: pafs.FileSystem, root: str, names: list[str]) -> _Counted | None:
    folder = log_folder(root)
    start, parts = newest_checkpoint(names)
    files: dict[str, int | None] = {}
    for added in added_files(filesystem, root, parts):
        _take_checkpoint(added, files)
    commits = commits_behind(names, start, root)
    if not commits and not parts:
        return None
    for _, name in sorted(commits.items()):
        take_added(files, actions_of(filesystem, f"{folder}/{name}"), _rows)
    return _counted(max(commits, default=start), files)


def _followed(counted: _Counted, version: int, actions: list[Action]) -> _Counted | None:
    if counted.files is not None:
        files = dict(counted.files)
        take_added(files, actions, _rows)
        return _counted(version, files)
    added = [one["add"] for one in actions if one.get("add")]
    # A file that is named again, for other statistics, brings no rows.
    if any(one.get("remove") for one in actions) or not all(one["dataChange"] for one in added):
        return None
    return _Counted(version, _sum([counted.rows, *map(_rows, added)]), None)


def _counted(version: int, files: dict[str, int | None]) -> _Counted:
    return _Counted(version, _sum(files.values()), files if len(files) <= FILES_KNOWN_MAX else None)


def _sum(counts: Iterable[int | None]) -> int | None:
    found = list(counts)
    return None if None in found else sum(count for count in found if count is not None)


_known = KnownLogs(_count_whole, _followed, lambda counted: 1 + len(counted.files or ()))


def _take_checkpoint(added: pa.StructArray, files: dict[str, int | None]) -> None:
    """By columns: a checkpoint has thousands of files."""
    rows = counted_records(added)
    if added.type.get_field_index("deletionVector") >= 0:
        deleted = pc.struct_field(added, ["deletionVector", "cardinality"]).cast(pa.int64())
        rows = pc.subtract(rows, pc.fill_null(deleted, 0))
    paths = pc.struct_field(added, "path").to_pylist()
    files.update(zip(paths, rows.to_pylist(), strict=True))


def _rows(added: dict[str, Any]) -> int | None:
    statistics = json.loads(added.get("stats") or "{}")
    if "numRecords" not in statistics:
        return None
    vector = added.get("deletionVector") or {}
    return int(statistics["numRecords"]) - int(vector.get("cardinality") or 0)
