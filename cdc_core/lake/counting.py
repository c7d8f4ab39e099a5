"""How many rows has a Delta table, by its log alone?

Each file's statistics say how many records it holds, its deletion vector how many of them are deleted. No data is read and no
Spark is started. Source: the Delta transaction log protocol, sections "Add File", "Per-file Statistics", "Deletion Vectors".
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.lake.history import _COMMIT, _actions, _newest_checkpoint, filesystem_of


def count_rows(path: str) -> int | None:
    """Rows of the newest version of the table at ``path``; None if there is no table, or a file has no statistics."""
    filesystem, root = filesystem_of(path)
    folder = f"{root}/_delta_log"
    try:
        infos = filesystem.get_file_info(pafs.FileSelector(folder))
    except FileNotFoundError:
        return None
    names = sorted(info.base_name for info in infos if info.is_file)
    start, parts = _newest_checkpoint(names)
    files: dict[str, int | None] = {}
    for part in parts:
        _take_checkpoint(filesystem, f"{folder}/{part}", files)
    commits = [name for name in names if (found := _COMMIT.match(name)) and int(found[1]) > start]
    if not commits and not parts:
        return None
    for name in commits:
        for action in _actions(filesystem, f"{folder}/{name}"):
            if removed := action.get("remove"):
                files.pop(removed["path"], None)
        for action in _actions(filesystem, f"{folder}/{name}"):
            if added := action.get("add"):
                files[added["path"]] = _rows(added)
    counts = list(files.values())
    return None if None in counts else sum(count for count in counts if count is not None)


def _take_checkpoint(filesystem: pafs.FileSystem, name: str, files: dict[str, int | None]) -> None:
    with filesystem.open_input_file(name) as file:
        rows = pq.read_table(file, columns=["add"]).to_pylist()
    for row in rows:
        added = row["add"]
        if added is not None and added["path"] is not None:
            files[added["path"]] = _rows(added)


def _rows(added: dict[str, Any]) -> int | None:
    statistics = json.loads(added.get("stats") or "{}")
    if "numRecords" not in statistics:
        return None
    vector = added.get("deletionVector") or {}
    return int(statistics["numRecords"]) - int(vector.get("cardinality") or 0)
