"""How many rows has a Delta table, by its log alone?

Each file's statistics say how many records it holds, its deletion vector how many of them are deleted. No data is read and no
Spark is started. Source: the Delta transaction log protocol, sections "Add File", "Per-file Statistics", "Deletion Vectors".
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.lake.history import (
    _COMMIT,
    _actions,
    filesystem_of,
    log_names,
    names_behind,
    newest_checkpoint,
)


def count_rows(path: str) -> int | None:
    """Rows of the newest version of the table at ``path``; None if there is no table, or a file has no statistics."""
    filesystem, root = filesystem_of(path)
    folder = f"{root}/_delta_log"
    names = log_names(filesystem, root)
    start, parts = newest_checkpoint(names)
    files: dict[str, int | None] = {}
    for part in parts:
        _take_checkpoint(filesystem, f"{folder}/{part}", files)
    commits = [name for name in names_behind(names, start) if _COMMIT.match(name)]
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
    """By columns: a checkpoint has thousands of files."""
    with filesystem.open_input_file(name) as file:
        added = pq.read_table(file, columns=["add"])["add"].combine_chunks()
    added = added.filter(pc.is_valid(pc.struct_field(added, "path")))
    found = pc.extract_regex(pc.struct_field(added, "stats"), r'"numRecords"\s*:\s*(?P<rows>\d+)')
    rows = pc.struct_field(found, "rows").cast(pa.int64())
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
