"""How do the columns of one Parquet file become the fields of a struct in another one, without
being encoded again?

A column of a Parquet file is some pages in each row group, and the footer says where they are. In a
struct that is never NULL, a field's pages are those of the same column alone, byte by byte: only a
level that may be missing has a definition level. So the new file begins with the pages of the first
one as they are; behind them come the pages of the other columns, and a footer that names both.
Source: "Nested Encoding" and "Metadata" of Apache Parquet's format.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.parquet_footer import Kind, Struct, footer_bytes, read_footer

# Numbers of fields in parquet.thrift, by the struct that has them.
_SCHEMA, _FILE_ROWS, _GROUPS = 2, 3, 4
_ELEMENT_NAME, _ELEMENT_CHILDREN, _ELEMENT_FIELD_ID = 4, 5, 9
_COLUMNS, _BYTES, _ROWS, _GROUP_OFFSET, _COMPRESSED, _ORDINAL = 1, 2, 3, 5, 6, 7
_COLUMN_OFFSET, _COLUMN = 2, 3
_PATH, _COLUMN_BYTES, _COLUMN_COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 3, 6, 7, 9, 11


def nested_ending(
    source: BinaryIO,
    schema: pa.Schema,
    struct: str,
    others: Callable[[int], pa.RecordBatch],
) -> tuple[int, bytes] | None:
    """What makes a Parquet file whose first columns are the fields of a struct: so many first bytes
    of ``source`` go before the bytes that are returned. None if its columns are encoded otherwise
    than that struct's fields, or it has no row.

    Args:
        source: The file. Its columns are those of the struct, in their order, under any names;
            there may be more behind them.
        schema: The columns of the new file.
        struct: One of them, whose fields are no structs or lists. It is never NULL in the file.
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
    pages, groups = bytearray(), list[Struct]()
    for group in _structs(footer, _GROUPS):
        rows = group[_ROWS][1]
        if rows == 0:
            continue
        if rows not in made:
            made[rows] = (
                _Columns(*_encoded_alone(others(rows))),
                _Columns(*_nulls(schema, rows)),
            )
        columns = _joined(*made[rows], group, struct, pages, end)
        groups.append(_group(columns, rows, len(groups)))
    if not groups:
        return None
    found = {
        **whole,
        _FILE_ROWS: footer[_FILE_ROWS],
        _GROUPS: (Kind.LIST, (Kind.STRUCT, groups)),
    }
    return end, bytes(pages) + footer_bytes(found)


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

    def put(self, path: tuple[bytes, ...], pages: bytearray, end: int) -> Struct | None:
        """The column with its pages behind others, of which the first is at ``end``; None if there
        is no such column."""
        chunk = self._chunks.get(path)
        if chunk is None:
            return None
        start = _start(chunk[_COLUMN][1])
        moved = _moved(chunk, end + len(pages) - start)
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


def _joined(
    others: _Columns, nulls: _Columns, group: Struct, struct: str, pages: bytearray, end: int
) -> list[Struct]:
    """The columns of a row group: the struct's fields are those of ``group``, where they are; the
    pages of the others go behind ``pages``, of which the first is at ``end``."""
    fields = iter(_structs(group, _COLUMNS))
    columns = []
    for path, chunk in nulls.in_order:
        if path[0] == struct.encode():
            there = next(fields)
            nested = {**there[_COLUMN][1], _PATH: chunk[_COLUMN][1][_PATH]}
            columns.append({**there, _COLUMN: (Kind.STRUCT, nested)})
            continue
        found = others.put(path, pages, end) or nulls.put(path, pages, end)
        assert found is not None
        columns.append(found)
    return columns


def _start(column: Struct) -> int:
    """Where the pages of a column of a row group begin."""
    places = [column[field][1] for field in (_DICTIONARY_PAGE, _DATA_PAGE) if field in column]
    start: int = min(place for place in places if place > 0)
    return start


def _moved(chunk: Struct, by: int) -> Struct:
    """A column of a row group whose pages are elsewhere."""
    column = dict(chunk[_COLUMN][1])
    for field in (_DICTIONARY_PAGE, _DATA_PAGE):
        if field in column and column[field][1] > 0:
            column[field] = (Kind.I64, column[field][1] + by)
    moved = {**chunk, _COLUMN: (Kind.STRUCT, column)}
    if _COLUMN_OFFSET in chunk and chunk[_COLUMN_OFFSET][1] > 0:
        moved[_COLUMN_OFFSET] = (Kind.I64, chunk[_COLUMN_OFFSET][1] + by)
    return moved


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
