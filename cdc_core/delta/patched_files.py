"""How is a file of a Delta table written anew of which few columns change?

An update sets some columns, and the file has as many rows in the same order afterwards. So of each
row group the columns that change are encoded, and the pages of all others are copied as they are
(:mod:`~cdc_core.delta.column_chunks`). Measured, 250,000 rows of 19 columns, of
which three change in three rows of ten: 0.08 CPU seconds to encode what changes, 0.19 for all
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.appending import NewFile, make_durable, new_file_name
from cdc_core.delta.column_chunks import (
    COLUMNS,
    FILE_ROWS,
    GROUP_BYTES,
    GROUPS,
    ROWS,
    SCHEMA,
    EncodedRows,
    as_named,
    list_of,
    moved,
    pages_of,
    path_of,
    row_group,
    structs,
)
from cdc_core.delta.file_names import FileNames
from cdc_core.delta.file_statistics import statistics_of
from cdc_core.delta.history import file_names_of, filesystem_of
from cdc_core.delta.parquet_footer import MAGIC, Kind, Struct, footer_bytes, read_footer


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Some rows of a file that follow each other: the first is the ``start``-th of the file."""

    file: pq.ParquetFile
    names: FileNames
    schema: pa.Schema
    number: int
    start: int
    rows: int

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some of their columns, in the table's types: what wrote the file may have held them in
        others, which it names there."""
        called = self.names.called(columns)
        rows = self.file.read_row_group(self.number, columns=called, use_threads=False)
        wanted = pa.schema([self.schema.field(name) for name in columns])
        return self.names.in_columns(rows, wanted)


def write_patched(
    table: str,
    old: str,
    schema: pa.Schema,
    changed: Callable[[RowGroup], pa.Table],
    indexed: Sequence[str],
    *,
    group_bytes_max: int,
) -> NewFile | None:
    """Write a file of a Delta table anew; None if its columns are encoded otherwise than this
    process would, or a row group is larger.

    Args:
        table: The table's folder.
        old: The file.
        schema: The table's columns, none of which is a struct or a list.
        changed: Gives what is to be encoded of a row group: some columns of as many rows, none
            where all stay as they are, or all columns of any number of rows.
        indexed: Columns of which the commit shall have statistics.
        group_bytes_max: So many bytes may a row group have that are not compressed.

    Raises:
        OSError, pyarrow.ArrowInvalid: The file is gone or damaged, or the new one cannot be
            written.
    """
    filesystem, root = filesystem_of(table)
    names = file_names_of(table)
    own = names.in_files(schema)
    elements = structs(EncodedRows(own.empty_table()).footer, SCHEMA)[1:]
    name = new_file_name()
    path = f"{root}/{name}"
    with filesystem.open_input_file(f"{root}/{old}") as source, pq.ParquetFile(source) as file:
        footer, _ = read_footer(source)
        if not _is_alike(footer, elements) or any(
            group[GROUP_BYTES][1] > group_bytes_max for group in structs(footer, GROUPS)
        ):
            return None
        # Files from before the table had column mapping do not number their columns.
        footer = {**footer, SCHEMA: list_of([*structs(footer, SCHEMA)[:1], *elements])}

        def encoded(number: int, start: int, rows: int) -> pa.Table:
            return names.to_files(changed(RowGroup(file, names, schema, number, start, rows)))

        try:
            with filesystem.open_output_stream(path) as target:
                size = _write(source, footer, encoded, target)
            make_durable(filesystem, path)
            found = pq.read_metadata(path, filesystem=filesystem)
        except BaseException:
            with suppress(OSError):
                filesystem.delete_file(path)
            raise
    statistics = statistics_of(found, own, names.called(indexed))
    return NewFile(name, found.num_rows, size, statistics, names.are_mapped)


def _write(
    source: pa.NativeFile,
    footer: Struct,
    changed: Callable[[int, int, int], pa.Table],
    target: pa.NativeFile,
) -> int:
    """The new file's bytes. ``changed`` gives what is to be encoded of the row group of a number
    that begins with a row of the file and has so many."""
    groups: list[Struct] = []
    start = file_rows = 0
    target.write(MAGIC)
    for number, group in enumerate(structs(footer, GROUPS)):
        rows = group[ROWS][1]
        new = changed(number, start, rows)
        start += rows
        if new.num_columns:
            rows = new.num_rows
        if not rows:
            continue
        encoded = EncodedRows(new) if new.num_columns else None
        chunks = []
        for chunk in structs(group, COLUMNS):
            own = None if encoded is None else encoded.chunks.get(path_of(chunk))
            if encoded is None or own is None:
                at, size = pages_of(chunk)
                chunks.append(moved(chunk, target.tell() - at))
                target.write(source.read_at(size, at))
            else:
                chunks.append(moved(own, target.tell() - pages_of(own)[0]))
                target.write(encoded.pages(own))
        groups.append(row_group(chunks, rows, len(groups)))
        file_rows += rows
    ending = {**footer, FILE_ROWS: (Kind.I64, file_rows), GROUPS: list_of(groups)}
    target.write(footer_bytes(ending))
    return int(target.tell())


def _is_alike(footer: Struct, elements: Sequence[Struct]) -> bool:
    """Has the file the columns in the form in which this process encodes them?"""
    found = structs(footer, SCHEMA)[1:]
    return list(map(as_named, found)) == list(map(as_named, elements))
