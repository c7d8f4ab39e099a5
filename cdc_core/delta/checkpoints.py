"""What does a checkpoint of a Delta table's log hold: facts about the table, and its files?

One file or several parts, or a file of version 2 (Parquet or JSON) whose sidecars name the files.
Source: the Delta transaction log protocol, sections "Checkpoints", "Sidecar Files" and "Checkpoint
Schema".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.delta.log_files import (
    Action,
    actions_of,
    log_folder,
    reading_file,
)
from cdc_core.errors import DELTA_LOG_HINT, LakeError

_OF_TABLES = ["txn", "metaData", "protocol", "domainMetadata"]
"""The actions that are about a table as a whole."""

_OF_FILES = ("path", "stats", "stats_parsed", "deletionVector")
"""What is asked of a file."""

_SIDECARS = "_sidecars"


def table_actions(filesystem: pafs.FileSystem, root: str, files: Sequence[str]) -> list[Action]:
    """The actions of a checkpoint that are about the table as a whole; ``files`` are those of the
    checkpoint.

    Raises:
        FileNotFoundError: The log was cleaned up meanwhile.
        LakeError: It is damaged.
    """
    found: list[Action] = []
    for name in files:
        path = f"{log_folder(root)}/{name}"
        if name.endswith(".json"):
            found += actions_of(filesystem, path)
            continue
        table = _columns(filesystem, path, _OF_TABLES)
        # Most rows of a checkpoint are files.
        is_of_table = reduce(pc.or_, (table[one].is_valid() for one in table.column_names))
        found += table.filter(is_of_table).to_pylist()
    for action in found:
        metadata = action.get("metaData")
        if metadata is not None and metadata["id"] is not None:
            metadata["configuration"] = dict(metadata["configuration"] or [])
    return found


def added_files(
    filesystem: pafs.FileSystem, root: str, files: Sequence[str]
) -> Iterator[pa.StructArray]:
    """The files that a checkpoint names, part by part: the fields ``path``, and ``stats``,
    ``stats_parsed`` and ``deletionVector`` where it has them. Errors as for
    :func:`table_actions`."""
    sidecars: list[str] = []
    for name in files:
        path = f"{log_folder(root)}/{name}"
        if name.endswith(".json"):
            actions = actions_of(filesystem, path)
            sidecars += [one["sidecar"]["path"] for one in actions if one.get("sidecar")]
            yield _as_array([one["add"] for one in actions if one.get("add")])
            continue
        table = _columns(filesystem, path, ["add", "sidecar"])
        if "add" in table.column_names:
            yield _valid(table["add"])
        if "sidecar" in table.column_names:
            named = _valid(table["sidecar"])
            sidecars += pc.struct_field(named, "path").to_pylist()
    for name in sidecars:
        if "/" in name:
            raise LakeError(
                "a checkpoint names files outside of the Delta table's log, which Redolake does not read",
                hint=DELTA_LOG_HINT,
                path=root,
            )
        path = f"{log_folder(root)}/{_SIDECARS}/{name}"
        yield _valid(_columns(filesystem, path, ["add"])["add"])


def _columns(filesystem: pafs.FileSystem, path: str, wanted: Sequence[str]) -> pa.Table:
    """Those of the wanted columns that a file has."""
    with (
        reading_file(path),
        filesystem.open_input_file(path) as file,
        pq.ParquetFile(file) as parquet,
    ):
        there = set(parquet.schema_arrow.names)
        return parquet.read(columns=[name for name in wanted if name in there])


def _valid(column: pa.ChunkedArray) -> pa.StructArray:
    """Those rows of a column that have a path: some writers have a struct of NULLs where there is
    none."""
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):  # Arrow's answer to a column without rows
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    return found.filter(pc.is_valid(pc.struct_field(found, "path")))


def _as_array(added: Sequence[dict[str, Any]]) -> pa.StructArray:
    kind = pa.struct(
        [
            ("path", pa.string()),
            ("stats", pa.string()),
            (
                "deletionVector",
                pa.struct(
                    [
                        ("storageType", pa.string()),
                        ("pathOrInlineDv", pa.string()),
                        ("offset", pa.int64()),
                        ("sizeInBytes", pa.int64()),
                        ("cardinality", pa.int64()),
                    ]
                ),
            ),
        ]
    )
    rows = [{name: one.get(name) for name in _OF_FILES if name in kind.names} for one in added]
    return pa.array(rows, kind)


def counted_records(added: pa.StructArray) -> pa.Array:
    """How many records each file has by its statistics, as text or as columns; NULL where it has
    none."""
    there = set(added.type.names)
    rows = pa.nulls(len(added), pa.int64())
    if "stats" in there:
        said = pc.extract_regex(
            pc.struct_field(added, "stats"), r'"numRecords"\s*:\s*(?P<rows>\d+)'
        )
        rows = pc.struct_field(said, "rows").cast(pa.int64())
    if "stats_parsed" in there:
        kind = added.type.field("stats_parsed").type
        if "numRecords" in kind.names:
            parsed = pc.struct_field(added, ["stats_parsed", "numRecords"]).cast(pa.int64())
            rows = pc.coalesce(rows, parsed)
    return rows
