"""How do the columns of one Parquet file become the fields of a struct in another one, without
being encoded again?

In a struct that is never NULL, a field's pages are those of the same column alone, byte by byte:
only a level that may be missing has a definition level. So the new file has the pages of the other
columns, then those of the first file as they are, and a footer that names both.

The other columns come first, since one of them is the first column of the new file: whoever reads a
file in splits (Spark) takes a row group into the split that has its middle, counted from where the
pages of its first column begin, and into none if that is behind the end of the file. Source:
"Nested Encoding" of Apache Parquet's format; ``ParquetMetadataConverter`` of Apache Parquet for
Java, ``filterFileMetaDataByMidpoint``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO, TypeAlias

import pyarrow as pa

from cdc_core.delta.column_chunks import (
    COLUMN,
    COLUMNS,
    ELEMENT_CHILDREN,
    ELEMENT_NAME,
    FILE_ROWS,
    GROUPS,
    PATH,
    ROWS,
    SCHEMA,
    EncodedRows,
    Path,
    as_encoded,
    list_of,
    moved,
    pages_of,
    row_group,
    structs,
)
from cdc_core.delta.parquet_footer import MAGIC, Kind, Struct, footer_bytes, read_footer


@dataclass(frozen=True, slots=True)
class NestedFile:
    """A file: ``beginning``, the bytes of the source from ``start`` to ``end``, and ``ending``."""

    beginning: bytes
    start: int
    end: int
    ending: bytes

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.beginning) + self.end - self.start + len(self.ending)


def nested_file(
    source: BinaryIO,
    schema: pa.Schema,
    struct: str,
    others: Callable[[int], pa.RecordBatch],
) -> NestedFile | None:
    """A Parquet file that has the columns of another one as the fields of a struct. None if they
    are encoded otherwise than that struct's fields, or there is no row.

    Args:
        source: The file. Its columns are those of the struct, in their order, under any names;
            there may be more behind them.
        schema: The columns of the new file.
        struct: One of them, not the first, whose fields are no structs or lists. It is never NULL
            in the file.
        others: Gives so many rows of the other columns that are not NULL; a row group of the source
            is asked for at once.

    Raises:
        ValueError: It is no Parquet file.
    """
    footer, end = read_footer(source)
    at = schema.get_field_index(struct)
    # Where the struct may be NULL each value of its fields has one level more.
    schema = schema.set(at, schema.field(at).with_nullable(False))
    empty = _nulls(schema, 0).footer
    if not _are_alike(footer, empty, struct):
        return None
    made: dict[int, tuple[EncodedRows, EncodedRows]] = {}
    pages, added = bytearray(MAGIC), list[tuple[Struct, list[_Chunk]]]()
    for group in structs(footer, GROUPS):
        rows = group[ROWS][1]
        if rows == 0:
            continue
        if rows not in made:
            own = EncodedRows(pa.Table.from_batches([others(rows)]))
            made[rows] = own, _nulls(schema, rows)
        added.append((group, _added(*made[rows], struct, pages)))
    if not added:
        return None
    by = len(pages) - len(MAGIC)
    groups = [
        row_group(_joined(group, columns, by), group[ROWS][1], number)
        for number, (group, columns) in enumerate(added)
    ]
    found = {**empty, FILE_ROWS: footer[FILE_ROWS], GROUPS: list_of(groups)}
    return NestedFile(bytes(pages), len(MAGIC), end, footer_bytes(found))


@lru_cache(maxsize=64)
def _nulls(schema: pa.Schema, rows: int) -> EncodedRows:
    """Rows that are NULL in all columns, which the chunks of a table have in common."""
    arrays = [
        pa.nulls(rows, one.type) if one.nullable else _of_nulls(rows, one.type) for one in schema
    ]
    return EncodedRows(pa.Table.from_arrays(arrays, schema=schema))


def _of_nulls(rows: int, kind: pa.StructType) -> pa.StructArray:
    """Structs that are not NULL, of fields that are."""
    fields = [kind.field(at) for at in range(kind.num_fields)]
    return pa.StructArray.from_arrays([pa.nulls(rows, one.type) for one in fields], fields=fields)


def _are_alike(source: Struct, whole: Struct, struct: str) -> bool:
    """Are the struct's fields encoded as the source's first columns are?"""
    fields = _elements_below(whole, struct)
    columns = structs(source, SCHEMA)[1:]
    return len(columns) >= len(fields) > 0 and all(
        as_encoded(one) == as_encoded(other) and ELEMENT_CHILDREN not in other
        for one, other in zip(fields, columns, strict=False)
    )


def _elements_below(whole: Struct, struct: str) -> list[Struct]:
    """The elements of the schema that are fields of a struct of the first level."""
    elements, at = structs(whole, SCHEMA), 1
    while elements[at][ELEMENT_NAME][1] != struct.encode():
        at = _behind(elements, at)
    return elements[at + 1 : _behind(elements, at)]


def _behind(elements: list[Struct], at: int) -> int:
    """The place behind an element and all below it."""
    children = elements[at][ELEMENT_CHILDREN][1] if ELEMENT_CHILDREN in elements[at] else 0
    end = at + 1
    for _ in range(children):
        end = _behind(elements, end)
    return end


_Chunk: TypeAlias = tuple[Struct, bool]
"""A column of a row group, and whether it is a field of the struct."""


def _added(others: EncodedRows, nulls: EncodedRows, struct: str, pages: bytearray) -> list[_Chunk]:
    """The columns of a row group; the pages of all but the struct's fields are put behind
    ``pages``."""
    columns: list[_Chunk] = []
    for path, chunk in nulls.chunks.items():
        is_field = path[0] == struct.encode()
        rows = others if path in others.chunks else nulls
        columns.append((chunk if is_field else _put(rows, path, pages), is_field))
    return columns


def _put(rows: EncodedRows, path: Path, pages: bytearray) -> Struct:
    """A column with its pages behind those that the new file begins with."""
    chunk = rows.chunks[path]
    found = moved(chunk, len(pages) - pages_of(chunk)[0])
    pages += rows.pages(chunk)
    return found


def _joined(group: Struct, columns: list[_Chunk], by: int) -> list[Struct]:
    """The columns of a row group, of which the struct's fields are those of ``group``, whose pages
    are so many bytes further behind."""
    fields = iter(structs(group, COLUMNS))
    found = []
    for chunk, is_field in columns:
        if is_field:
            there = moved(next(fields), by)
            nested = {**there[COLUMN][1], PATH: chunk[COLUMN][1][PATH]}
            found.append({**there, COLUMN: (Kind.STRUCT, nested)})
        else:
            found.append(chunk)
    return found
