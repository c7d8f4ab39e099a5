"""How does a column of a row group get from one Parquet file into another one, without being
encoded again?

Its pages are bytes of the file, and the footer says where they begin and how many there are. So
they are copied as they are, and a footer that is written names their new place. Source: "Metadata"
of Apache Parquet's format, and ``parquet.thrift``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.parquet_footer import Kind, Struct, read_footer

DICTIONARY_BYTES_MAX = 64 * 1024
"""A column whose different values take more than this in a row group is written without a
dictionary. Measured: at Arrow's limit of 1 MiB, columns of keys, times and amounts are looked up in
vain, files are a fifth larger and take a third more CPU."""

# Numbers of fields in parquet.thrift, by the struct that has them.
SCHEMA, FILE_ROWS, GROUPS = 2, 3, 4
ELEMENT_NAME, ELEMENT_CHILDREN, _ELEMENT_FIELD_ID = 4, 5, 9
COLUMNS, GROUP_BYTES, ROWS, _GROUP_OFFSET, _COMPRESSED, _ORDINAL = 1, 2, 3, 5, 6, 7
_COLUMN_OFFSET, COLUMN = 2, 3
_PAGE_INDEX = 4, 5, 6, 7
PATH, _COLUMN_BYTES, _COLUMN_COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 3, 6, 7, 9, 11
_INDEX_PAGE_AND_FILTER = 10, 14, 15

Path = tuple[bytes, ...]
"""The names of a column of a file, from the schema's root on."""


def structs(of: Struct, field: int) -> list[Struct]:
    """A field of the footer that is a list of structs."""
    found: list[Struct] = of[field][1][1] if field in of else []
    return found


def list_of(items: Sequence[Struct]) -> tuple[int, tuple[int, list[Struct]]]:
    """Structs as a field of the footer."""
    return Kind.LIST, (Kind.STRUCT, list(items))


def path_of(chunk: Struct) -> Path:
    """The path of a column of a row group."""
    return tuple(chunk[COLUMN][1][PATH][1][1])


def pages_of(chunk: Struct) -> tuple[int, int]:
    """Where the pages of a column of a row group begin, and how many bytes they have."""
    column = chunk[COLUMN][1]
    places = [column[field][1] for field in (_DICTIONARY_PAGE, _DATA_PAGE) if field in column]
    return min(place for place in places if place > 0), column[_COLUMN_COMPRESSED][1]


def moved(chunk: Struct, by: int) -> Struct:
    """A column of a row group whose pages are so many bytes further behind, without what else says
    where something is: indexes and filters are not taken along."""
    column = dict(chunk[COLUMN][1])
    for field in (_DICTIONARY_PAGE, _DATA_PAGE):
        if field in column and column[field][1] > 0:
            column[field] = (Kind.I64, column[field][1] + by)
    found = {**chunk, COLUMN: (Kind.STRUCT, _left(column, _INDEX_PAGE_AND_FILTER))}
    if _COLUMN_OFFSET in chunk and chunk[_COLUMN_OFFSET][1] > 0:
        found[_COLUMN_OFFSET] = (Kind.I64, chunk[_COLUMN_OFFSET][1] + by)
    return _left(found, _PAGE_INDEX)


def _left(fields: Struct, without: tuple[int, ...]) -> Struct:
    return {number: value for number, value in fields.items() if number not in without}


def row_group(chunks: Sequence[Struct], rows: int, number: int) -> Struct:
    """A row group with these columns, the ``number``-th of its file."""
    found = [chunk[COLUMN][1] for chunk in chunks]
    return {
        COLUMNS: list_of(chunks),
        GROUP_BYTES: (Kind.I64, sum(one[_COLUMN_BYTES][1] for one in found)),
        ROWS: (Kind.I64, rows),
        _GROUP_OFFSET: (Kind.I64, pages_of(chunks[0])[0]),
        _COMPRESSED: (Kind.I64, sum(one[_COLUMN_COMPRESSED][1] for one in found)),
        _ORDINAL: (Kind.I16, number),
    }


def as_encoded(element: Struct) -> Struct:
    """An element of the schema without what it is called."""
    return _left(as_named(element), (ELEMENT_NAME,))


def as_named(element: Struct) -> Struct:
    """An element of the schema without its number, which readers by name do not ask for."""
    return _left(element, (_ELEMENT_FIELD_ID,))


class EncodedRows:
    """Rows as a file with one row group, which is made in memory."""

    def __init__(self, rows: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink, rows.schema, compression="zstd", dictionary_pagesize_limit=DICTIONARY_BYTES_MAX
        ) as writer:
            writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._data = sink.getvalue()
        self.footer, _ = read_footer(pa.BufferReader(self._data))
        chunks = [one for group in structs(self.footer, GROUPS) for one in structs(group, COLUMNS)]
        self.chunks = {path_of(one): one for one in chunks}

    def pages(self, chunk: Struct) -> pa.Buffer:
        """The pages of one of its columns."""
        return self._data.slice(*pages_of(chunk))
