"""How do the columns of one Parquet file become the fields of a struct in another one, without
being encoded again?

A column of a Parquet file is some pages in each row group, and the footer says where they are. In a
struct that is never NULL, a field's pages are those of the same column alone, byte by byte: only a
level that may be missing has a definition level. So the new file has the pages of the other
columns, then those of the first file as they are, and a footer that names both.

The other columns come first, since one of them is the first column of the new file: whoever reads a
file in splits (Spark) takes a row group into the split that has its middle, counted from where the
pages of its first column begin, and into none if that is behind the end of the file. Source:
"Nested Encoding" and "Metadata" of Apache Parquet's format; ``ParquetMetadataConverter`` of Apache
Parquet for Java, ``filterFileMetaDataByMidpoint``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.parquet_footer import MAGIC, Kind, Struct, footer_bytes, read_footer

# Numbers of fields in parquet.thrift, by the struct that has them.
_SCHEMA, _FILE_ROWS, _GROUPS = 2, 3, 4
_ELEMENT_NAME, _ELEMENT_CHILDREN, _ELEMENT_FIELD_ID = 4, 5, 9
_COLUMNS, _BYTES, _ROWS, _GROUP_OFFSET, _COMPRESSED, _ORDINAL = 1, 2, 3, 5, 6, 7
_COLUMN_OFFSET, _COLUMN = 2, 3
_PAGE_INDEX = 4, 5, 6, 7
_PATH, _COLUMN_BYTES, _COLUMN_COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 3, 6, 7, 9, 11
_INDEX_PAGE_AND_FILTER = 10, 14, 15


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
    whole, _ = _nulls(schema, 0)
    if not _are_alike(footer, whole, struct):
        return None
    made: dict[int, tuple[_Columns, _Columns]] = {}
    pages, added = bytearray(MAGIC), list[tuple[Struct, list[_Chunk]]]()
    for group in _structs(footer, _GROUPS):
        rows = group[_ROWS][1]
        if rows == 0:
            continue
        if rows not in made:
            made[rows] = (
                _Columns(*_encoded_alone(others(rows))),
                _Columns(*_nulls(schema, rows)),
            )
        added.append((group, _added(*made[rows], struct, pages)))
    if not added:
        return None
    by = len(pages) - len(MAGIC)
    groups = [
        _group(_joined(group, columns, by), group[_ROWS][1], number)
        for number, (group, columns) in enumerate(added)
    ]
    found = {
        **whole,
        _FILE_ROWS: footer[_FILE_ROWS],
        _GROUPS: (Kind.LIST, (Kind.STRUCT, groups)),
    }
    return NestedFile(bytes(pages), len(MAGIC), end, footer_bytes(found))


@lru_cache(maxsize=64)
def _nulls(schema: pa.Schema, rows: int) -> tuple[Struct, bytes]:
    """A file of rows that are NULL in all columns, which the chunks of a table have in common."""
    arrays = [
        pa.nulls(rows, one.type) if one.nullable else _of_nulls(rows, one.type) for one in schema
    ]
    return _encoded_alone(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _of_nulls(rows: int, kind: pa.StructType) -> pa.StructArray:
    """Structs that are not NULL, of fields that are."""
    fields = [kind.field(at) for at in range(kind.num_fields)]
    return pa.StructArray.from_arrays([pa.nulls(rows, one.type) for one in fields], fields=fields)


def _encoded_alone(rows: pa.RecordBatch) -> tuple[Struct, bytes]:
    """A file with one row group: its footer, and all of it."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, compression="zstd") as writer:
        writer.write_batch(rows, row_group_size=max(1, rows.num_rows))
    data = sink.getvalue().to_pybytes()
    return read_footer(BytesIO(data))[0], data


class _Columns:
    """The columns of a file with one row group, by their paths."""

    def __init__(self, footer: Struct, data: bytes) -> None:
        [group] = _structs(footer, _GROUPS)
        self.in_order = [(_path(chunk), chunk) for chunk in _structs(group, _COLUMNS)]
        self._chunks = dict(self.in_order)
        self._data = data

    def put(self, path: tuple[bytes, ...], pages: bytearray) -> Struct | None:
        """The column with its pages behind those that the new file begins with; None if there is no
        such column."""
        chunk = self._chunks.get(path)
        if chunk is None:
            return None
        start = _start(chunk[_COLUMN][1])
        moved = _moved(chunk, len(pages) - start)
        pages += self._data[start : start + chunk[_COLUMN][1][_COLUMN_COMPRESSED][1]]
        return moved


def _path(chunk: Struct) -> tuple[bytes, ...]:
    return tuple(chunk[_COLUMN][1][_PATH][1][1])


def _structs(of: Struct, field: int) -> list[Struct]:
    """A field that is a list of structs."""
    found: list[Struct] = of[field][1][1] if field in of else []
    return found


def _are_alike(source: Struct, whole: Struct, struct: str) -> bool:
    """Are the struct's fields encoded as the source's first columns are?"""
    fields = _elements_below(whole, struct)
    columns = _structs(source, _SCHEMA)[1:]
    return len(columns) >= len(fields) > 0 and all(
        _as_encoded(one) == _as_encoded(other) and _ELEMENT_CHILDREN not in other
        for one, other in zip(fields, columns, strict=False)
    )


def _elements_below(whole: Struct, struct: str) -> list[Struct]:
    """The elements of the schema that are fields of a struct of the first level."""
    elements, at = _structs(whole, _SCHEMA), 1
    while elements[at][_ELEMENT_NAME][1] != struct.encode():
        at = _behind(elements, at)
    return elements[at + 1 : _behind(elements, at)]


def _behind(elements: list[Struct], at: int) -> int:
    """The place behind an element and all below it."""
    children = elements[at][_ELEMENT_CHILDREN][1] if _ELEMENT_CHILDREN in elements[at] else 0
    end = at + 1
    for _ in range(children):
        end = _behind(elements, end)
    return end


def _as_encoded(element: Struct) -> Struct:
    """An element of the schema without what it is called."""
    names = (_ELEMENT_NAME, _ELEMENT_FIELD_ID)
    return {field: value for field, value in element.items() if field not in names}


_Chunk: TypeAlias = tuple[Struct, bool]
"""A column of a row group, and whether it is a field of the struct."""


def _added(others: _Columns, nulls: _Columns, struct: str, pages: bytearray) -> list[_Chunk]:
    """The columns of a row group; the pages of all but the struct's fields are put behind
    ``pages``."""
    columns: list[_Chunk] = []
    for path, chunk in nulls.in_order:
        if path[0] == struct.encode():
            columns.append((chunk, True))
            continue
        found = others.put(path, pages) or nulls.put(path, pages)
        assert found is not None
        columns.append((found, False))
    return columns


def _joined(group: Struct, columns: list[_Chunk], by: int) -> list[Struct]:
    """The columns of a row group, of which the struct's fields are those of ``group``, whose pages
    are so many bytes further behind."""
    fields = iter(_structs(group, _COLUMNS))
    found = []
    for chunk, is_field in columns:
        if is_field:
            there = _moved(next(fields), by)
            nested = {**there[_COLUMN][1], _PATH: chunk[_COLUMN][1][_PATH]}
            found.append({**there, _COLUMN: (Kind.STRUCT, nested)})
        else:
            found.append(chunk)
    return found


def _start(column: Struct) -> int:
    """Where the pages of a column of a row group begin."""
    places = [column[field][1] for field in (_DICTIONARY_PAGE, _DATA_PAGE) if field in column]
    start: int = min(place for place in places if place > 0)
    return start


def _moved(chunk: Struct, by: int) -> Struct:
    """A column of a row group whose pages are elsewhere, without what else says where something
    is: indexes and filters are not taken along."""
    column = dict(chunk[_COLUMN][1])
    for field in (_DICTIONARY_PAGE, _DATA_PAGE):
        if field in column and column[field][1] > 0:
            column[field] = (Kind.I64, column[field][1] + by)
    moved = {**chunk, _COLUMN: (Kind.STRUCT, _left(column, _INDEX_PAGE_AND_FILTER))}
    if _COLUMN_OFFSET in chunk and chunk[_COLUMN_OFFSET][1] > 0:
        moved[_COLUMN_OFFSET] = (Kind.I64, chunk[_COLUMN_OFFSET][1] + by)
    return _left(moved, _PAGE_INDEX)


def _left(fields: Struct, without: tuple[int, ...]) -> Struct:
    return {number: value for number, value in fields.items() if number not in without}


def _group(columns: list[Struct], rows: int, number: int) -> Struct:
    found = [chunk[_COLUMN][1] for chunk in columns]
    return {
        _COLUMNS: (Kind.LIST, (Kind.STRUCT, columns)),
        _BYTES: (Kind.I64, sum(one[_COLUMN_BYTES][1] for one in found)),
        _ROWS: (Kind.I64, rows),
        _GROUP_OFFSET: (Kind.I64, _start(found[0])),
        _COMPRESSED: (Kind.I64, sum(one[_COLUMN_COMPRESSED][1] for one in found)),
        _ORDINAL: (Kind.I16, number),
    }
