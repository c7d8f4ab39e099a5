"""What the columns of a Delta table are called in its files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cdc_core.delta.file_names import PLAIN_NAMES, FileNames
from cdc_core.errors import SchemaMismatchError
from cdc_core.schema.names import need_mapping


def _field(name: str, called: str, number: int, kind: object = "string") -> dict[str, object]:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": called}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


# A field of the struct has the same name as a column, and the other way round in files.
NAMES = FileNames.of_fields(
    [
        _field("ID", "col-1", 1, "long"),
        _field("a b", "ID", 2),
        _field(
            "after", "col-3", 3,
            {"type": "struct", "fields": [_field("ID", "x", 4), _field("a.b", "col-1", 5)]},
        ),
        _field("absent", "absent", 6, {"type": "array", "elementType": "string"}),
    ]
)  # fmt: skip
IMAGE = pa.struct([("ID", pa.string()), ("a.b", pa.string())])
SCHEMA = pa.schema(
    [("ID", pa.int64()), ("a b", pa.string()), ("after", IMAGE), ("absent", pa.list_(pa.string()))]
)
ROWS = [
    {"ID": 1, "a b": "x", "after": {"ID": "1", "a.b": None}, "absent": ["N"]},
    {"ID": None, "a b": None, "after": None, "absent": []},
    {"ID": 3, "a b": "z", "after": {"ID": None, "a.b": "3"}, "absent": None},
]


def test_rows_are_written_under_the_names_of_files_and_read_back() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, SCHEMA).slice(1)
    written = NAMES.to_files(batch)
    assert written.schema.names == ["col-1", "ID", "col-3", "absent"]
    assert [one.name for one in written.schema.field("col-3").type] == ["x", "col-1"]
    numbers = [int(one.metadata[b"PARQUET:field_id"]) for one in NAMES.in_files(SCHEMA)]
    assert numbers == [1, 2, 3, 6]
    back = NAMES.from_files(pa.table(written))
    assert back.schema == SCHEMA
    assert back.to_pylist() == ROWS[1:]


def test_a_nested_field_is_asked_for_by_the_names_of_files() -> None:
    assert NAMES.of("after", "a.b") == "col-3.col-1"
    assert NAMES.of("not there yet") == "not there yet"


def test_what_the_schema_does_not_have_any_more_is_left_out() -> None:
    rows = pa.table({"gone": pa.array([1]), "col-1": pa.array([2])})
    assert NAMES.from_files(rows).to_pylist() == [{"ID": 2}]


def test_a_column_that_the_table_lacks_is_not_written() -> None:
    with pytest.raises(SchemaMismatchError, match="lacks a column"):
        NAMES.in_files(pa.schema([("after", pa.struct([("b", pa.string())]))]))


def test_a_plain_table_has_its_own_names() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, SCHEMA)
    assert PLAIN_NAMES.to_files(batch) is batch
    assert PLAIN_NAMES.from_files(pa.table(batch)).to_pylist() == ROWS
    assert (PLAIN_NAMES.are_mapped, NAMES.are_mapped) == (False, True)


@pytest.mark.parametrize(
    "name", ["a b", "a,b", "a;b", "a{b", "a}b", "a(b", "a)b", "a\tb", "a=b", "a.b"]
)
def test_names_that_a_plain_table_refuses_need_mapping(name: str) -> None:
    assert need_mapping(["ID", name])
    assert not need_mapping(["ID", "a/b", "Größe€", "SELECT", "a`b", "a'b", "a-b"])


@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch])
def test_columns_are_picked_from_a_file_by_the_names_that_it_has(kind: Any) -> None:
    """In the table's types; one that the file is older than is NULL, and one that the table dropped
    is left out."""
    rows = kind.from_pydict({"ID": ["x"], "gone": [True], "col-1": pa.array([1], pa.int32())})
    columns = pa.schema([("ID", pa.int64()), ("absent", pa.string()), ("a b", pa.string())])
    found = NAMES.in_columns(rows, columns)
    assert (type(found), found.schema) == (kind, columns)
    assert found.to_pylist() == [{"ID": 1, "absent": None, "a b": "x"}]
