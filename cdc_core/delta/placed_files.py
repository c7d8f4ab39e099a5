"""How does a Parquet file that is there already get into the folder of a Delta table, without being
encoded again?

On one file system it gets a second name there; elsewhere its bytes are copied. Neither reads its
rows, and no commit names the result yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from cdc_core.delta.appending import NewFile, make_durable, new_file_name
from cdc_core.delta.file_statistics import statistics_of
from cdc_core.delta.history import filesystem_of
from cdc_core.delta.nested_columns import NestedFile, nested_file
from cdc_core.delta.storage import storing

_COPIED_BYTES = 8 * 1024**2


def place_file(table: str, source: str, schema: pa.Schema, indexed: Sequence[str]) -> NewFile:
    """Put a file of this machine into the folder of a Delta table.

    Args:
        table: The table's folder.
        source: The file, which nobody changes any more.
        schema: Its columns, which are the table's.
        indexed: Columns of which the commit shall have statistics.

    Raises:
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
    """
    filesystem, root = filesystem_of(table)
    name = new_file_name()
    with storing("writing a file of a Delta table", path=table):
        if not _linked(filesystem, source, f"{root}/{name}"):
            whole = NestedFile(b"", 0, Path(source).stat().st_size, b"")
            _copy_bytes(filesystem, source, f"{root}/{name}", whole)
        found = pq.read_metadata(source)
    size = Path(source).stat().st_size
    return NewFile(name, found.num_rows, size, statistics_of(found, schema, indexed))


def place_nested(
    table: str,
    source: str,
    schema: pa.Schema,
    struct: str,
    others: Callable[[int], pa.RecordBatch],
    indexed: Sequence[str],
) -> NewFile | None:
    """Put a file into the folder of a Delta table whose struct has the columns of a file of this
    machine (:func:`~cdc_core.delta.nested_columns.nested_file`); None if they are encoded
    otherwise, or there is no row. ``schema`` is the table's.

    Raises:
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
        ValueError: The source is no Parquet file.
    """
    with Path(source).open("rb") as file:
        made = nested_file(file, schema, struct, others)
    if made is None:
        return None
    filesystem, root = filesystem_of(table)
    name = new_file_name()
    path = f"{root}/{name}"
    with storing("writing a file of a Delta table", path=table):
        _copy_bytes(filesystem, source, path, made)
        found = pq.read_metadata(path, filesystem=filesystem)
    return NewFile(name, found.num_rows, made.size, statistics_of(found, schema, indexed))


def _linked(filesystem: pafs.FileSystem, source: str, path: str) -> bool:
    """Give the file a second name, where the file system is one and knows such names. It is as new
    as the name: VACUUM removes what is old and no commit names, and a chunk may have landed weeks
    ago."""
    if not isinstance(filesystem, pafs.LocalFileSystem):
        return False
    try:
        os.link(source, path)
    except OSError:
        return False
    try:
        os.utime(path)
        make_durable(filesystem, path)
    except OSError:  # of a file that is somebody else's
        Path(path).unlink(missing_ok=True)
        return False
    return True


def _copy_bytes(filesystem: pafs.FileSystem, source: str, path: str, made: NestedFile) -> None:
    try:
        with Path(source).open("rb") as file, filesystem.open_output_stream(path) as target:
            target.write(made.beginning)
            file.seek(made.start)
            count = made.end - made.start
            while count > 0 and (data := file.read(min(count, _COPIED_BYTES))):
                target.write(data)
                count -= len(data)
            target.write(made.ending)
        make_durable(filesystem, path)
    except BaseException:
        with suppress(OSError):
            filesystem.delete_file(path)
        raise
