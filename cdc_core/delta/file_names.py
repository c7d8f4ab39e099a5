"""What are the columns of a Delta table called in its Parquet files?

A plain table's files have the names of its schema. With column mapping each column, and each field
of a struct, has a name and a number of its own there, and its name may hold anything. Source: the
Delta transaction log protocol, section "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from cdc_core.errors import FROM_LANDING_HINT, SchemaMismatchError

FILE_NUMBER = "delta.columnMapping.id"
FILE_NAME = "delta.columnMapping.physicalName"
"""What a field's metadata call its number and its name in files."""

_PART_NUMBERS = "delta.columnMapping.nested.ids"
_ELEMENT = "element"
"""Where readers of Iceberg tables know the files too, the elements of a list have a number."""

_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)


@dataclass(frozen=True, slots=True)
class FileNames:
    """``names`` maps the path of each column and field to its name in files, ``numbers`` to its
    number there. Without any, the table is plain."""

    names: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    numbers: Mapping[tuple[str, ...], int] = field(default_factory=dict)

    @classmethod
    def of_fields(cls, fields: Sequence[Mapping[str, Any]]) -> FileNames:
        """Read the fields of a Delta table's schema as its log has them."""
        names: dict[tuple[str, ...], str] = {}
        numbers: dict[tuple[str, ...], int] = {}
        _take(fields, (), names, numbers)
        return cls(names, numbers)

    @property
    def are_mapped(self) -> bool:
        """Have the files other names than the schema?"""
        return bool(self.names)

    def of(self, *path: str) -> str:
        """What a column, or a field of a struct, is called: names with a dot between them."""
        return ".".join(self._name(path[: depth + 1]) for depth in range(len(path)))

    def in_files(self, schema: pa.Schema) -> pa.Schema:
        """The schema that a file has.

        Raises:
            SchemaMismatchError: The table lacks a column.
        """
        return pa.schema([self._field(one, ()) for one in schema]) if self.are_mapped else schema

    def to_files(self, rows: _Rows) -> _Rows:
        """Rows as a file has them; nothing is copied."""
        if not self.are_mapped:
            return rows
        return _renamed(rows, self.in_files(rows.schema))

    def called(self, columns: Sequence[str]) -> list[str]:
        """What files call some columns."""
        return [self.of(name) for name in columns]

    def in_columns(self, rows: _Rows, columns: pa.Schema) -> _Rows:
        """Rows of a file in these columns of the table, none of which has fields, in their order
        and types: one that the file is older than is NULL."""
        there, count = set(rows.schema.names), rows.num_rows
        arrays = [
            rows[name].cast(one.type) if name in there else pa.nulls(count, one.type)
            for one, name in zip(columns, self.called(columns.names), strict=True)
        ]
        return type(rows).from_arrays(arrays, schema=columns)

    def from_files(self, rows: pa.Table) -> pa.Table:
        """What was read from a file, under the names of the table's schema; columns that it does
        not have any more are left out."""
        if not self.are_mapped:
            return rows
        known = {(path[:-1], name): path[-1] for path, name in self.names.items()}
        picked = rows.select([name for name in rows.column_names if ((), name) in known])
        return _renamed(picked, pa.schema([_back(one, (), known) for one in picked.schema]))

    def _name(self, path: tuple[str, ...]) -> str:
        return self.names.get(path, path[-1])

    def _field(self, one: pa.Field, above: tuple[str, ...]) -> pa.Field:
        path = (*above, one.name)
        if path not in self.numbers:
            raise SchemaMismatchError(
                "the Delta table lacks a column that is to be written: another writer changed it",
                hint=FROM_LANDING_HINT,
                column=".".join(path),
            )
        kind = one.type
        if pa.types.is_struct(kind):
            kind = pa.struct([self._field(part, path) for part in kind])
        elif pa.types.is_list(kind) and (element := (*path, _ELEMENT)) in self.numbers:
            metadata = {"PARQUET:field_id": str(self.numbers[element])}
            kind = pa.list_(pa.field(_ELEMENT, kind.value_type, metadata=metadata))
        number = str(self.numbers[path])
        return pa.field(self.names[path], kind, one.nullable, {"PARQUET:field_id": number})


PLAIN_NAMES = FileNames()
"""The names of a plain table."""


def _take(
    fields: Sequence[Mapping[str, Any]],
    above: tuple[str, ...],
    names: dict[tuple[str, ...], str],
    numbers: dict[tuple[str, ...], int],
) -> None:
    for one in fields:
        path = (*above, one["name"])
        metadata = one.get("metadata") or {}
        names[path], numbers[path] = metadata[FILE_NAME], int(metadata[FILE_NUMBER])
        for part, number in (metadata.get(_PART_NUMBERS) or {}).items():
            within = part.removeprefix(f"{metadata[FILE_NAME]}.").split(".")
            numbers[(*path, *within)] = int(number)
        if isinstance(one["type"], Mapping) and one["type"]["type"] == "struct":
            _take(one["type"]["fields"], path, names, numbers)


def _back(
    one: pa.Field, above: tuple[str, ...], known: Mapping[tuple[tuple[str, ...], str], str]
) -> pa.Field:
    """A field that was read. A field of a struct that the schema does not have any more keeps the
    file's name."""
    name = known.get((above, one.name), one.name)
    kind = one.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_back(part, (*above, name), known) for part in kind])
    return pa.field(name, kind, one.nullable)


def _renamed(rows: _Rows, schema: pa.Schema) -> _Rows:
    """The same rows in columns and fields with other names."""
    columns = [
        pa.chunked_array([chunk.view(one.type) for chunk in column.chunks], one.type)
        if isinstance(column, pa.ChunkedArray)
        else column.view(one.type)
        for column, one in zip(rows.columns, schema, strict=True)
    ]
    return type(rows).from_arrays(columns, schema=schema)
