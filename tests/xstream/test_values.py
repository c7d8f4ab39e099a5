"""Values of LCRs by their types, character sets and flags, and what becomes of an empty LOB."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.change_stream.images import ABSENT, RefusedValueError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.xstream.events import RowImage, old_image
from cdc_core.xstream.lcrs import AL16UTF16, EMPTY_LOB, LAST_CHUNK, LOB_DATA, Value
from cdc_core.xstream.values import LcrRows

ID = Column("ID", "NUMBER", 22, 0, 9, 0, False)


def rows_of(data_type: str) -> LcrRows:
    """Reads a table in AL32UTF8 with a column X, whose time zone is two hours ahead of UTC."""
    precision, scale = (10, 2) if data_type == "NUMBER" else (None, None)
    column = Column("X", data_type, 4000, 1000, precision, scale, True)
    schema = TableSchema(
        TableId("HR", "EMP"), Scn(1), (ID, column), ("ID",), 7, charset="AL32UTF8", ncharset="AL16UTF16", time_zone="+02:00",
    )  # fmt: skip
    return LcrRows(schema, schema.columns)


def read(data_type: str, *values: Value, chunks: tuple[Value, ...] = ()) -> Any:
    """The value of column X."""
    rows = rows_of(data_type)
    _, found = rows.by_column([RowImage(values, chunks)])
    return rows.convert(1, [None if not isinstance(one, Value) else one for one in found]).to_pylist()[0]  # fmt: skip


def value(kind: int, stored: str | None, **more: Any) -> Value:
    return Value("X", kind, stored, **more)


@pytest.mark.parametrize(
    ("data_type", "given", "expected"),
    [
        pytest.param("NUMBER", value(2, "3e6466"), Decimal(-1), id="number"),
        pytest.param("NUMBER", value(2, None), None, id="null"),
        pytest.param("VARCHAR2", value(1, "c3a4"), "ä", id="the-databases-own-set"),
        pytest.param("VARCHAR2", value(1, "e4", charset=178), "ä", id="windows-1252"),
        pytest.param("VARCHAR2", value(1, "eda0bdedb4a5", charset=871), "\U0001f525", id="cesu-8"),
        pytest.param("NVARCHAR2", value(1, "591c"), "夜", id="the-national-set"),
        pytest.param("NVARCHAR2", value(1, "e5a49c", charset=873), "夜", id="converted"),
        pytest.param("VARCHAR2", value(1, "591c", charset=2000), "夜", id="utf-16"),
        pytest.param("DATE", value(12, "787e0102040506"), datetime(2026, 1, 2, 3, 4, 5), id="date"),
        pytest.param(
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            value(231, "787e0102040506"), "2026-01-02 01:04:05.000000000 +00:00", id="local",
        ),
        pytest.param(
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            value(181, "787e010204050600000000143c"), "2026-01-02 03:04:05.000000000 +00:00", id="local-in-utc",
        ),
        pytest.param("CLOB", value(112, None, flags=LOB_DATA), None, id="no-lob"),
        pytest.param("CLOB", value(112, None, flags=LOB_DATA | EMPTY_LOB), "", id="empty-clob"),
        pytest.param("BLOB", value(113, None, flags=LOB_DATA | EMPTY_LOB), b"", id="empty-blob"),
    ],
)  # fmt: skip
def test_a_value_is_read(data_type: str, given: Value, expected: Any) -> None:
    assert read(data_type, given) == expected


def test_chunks_are_joined_before_they_are_read() -> None:
    """A character may lie in two of them."""
    chunks = tuple(
        value(1, one, flags=LOB_DATA | AL16UTF16 | last)
        for one, last in (("0061d8", 0), ("3ddd25", LAST_CHUNK))
    )
    assert (
        read("CLOB", value(112, None, flags=LOB_DATA | EMPTY_LOB), chunks=chunks) == "a\U0001f525"
    )
    long = (value(1, "6162", flags=0x400), value(1, "63", flags=0x400 | LAST_CHUNK))
    assert read("VARCHAR2", value(1, None), chunks=long) == "abc"
    assert read("BLOB", chunks=(value(23, "", flags=LOB_DATA | LAST_CHUNK),)) == b""


@pytest.mark.parametrize(
    ("data_type", "given", "says"),
    [
        pytest.param("VARCHAR2", value(1, "c3", charset=9999), "character set", id="unknown-set"),
        pytest.param("NUMBER", value(1, "31"), "type 1", id="text-in-a-number"),
        pytest.param("XMLTYPE", value(58, "3c61", flags=0x80), "difference", id="difference"),
        pytest.param("TIMESTAMP(6) WITH LOCAL TIME ZONE", value(181, "787e010204050600000000163c"), "not in UTC", id="local-elsewhere"),
    ],
)  # fmt: skip
def test_a_value_is_refused(data_type: str, given: Value, says: str) -> None:
    with pytest.raises(RefusedValueError, match=says):
        read(data_type, given)


@pytest.mark.parametrize(
    ("data_type", "kind", "stored"),
    [
        pytest.param("NUMBER", 2, ("80", "c102", "c10233", "3e6466", "c40d2338", None, "c033"), id="number"),
        pytest.param("FLOAT", 2, ("80", "c00a", "3e6466", "ca02", "c1020202", None), id="text-of-a-number"),
        pytest.param("VARCHAR2", 1, ("61", None, "c3a4", "f09f94a5", "20"), id="text"),
        pytest.param("CHAR", 96, ("612020", None), id="padded"),
        pytest.param("RAW", 23, ("00ff", None, "00"), id="bytes"),
        pytest.param("DATE", 12, ("787e0102040506", "65650101010101", None, "c7c70c1f183c3c", "64a8021d010101"), id="date"),
        pytest.param("TIMESTAMP(6)", 180, ("787e01020405060754d4c0", "787e0102040506000003e8", None), id="fractions"),
        pytest.param("TIMESTAMP(6)", 180, ("787e0102040506", None), id="no-fractions"),
        pytest.param("TIMESTAMP(6)", 180, ("787e0102040506", "787e0102040506000003e8"), id="two-lengths"),
        pytest.param("BINARY_DOUBLE", 101, ("c000000000000000", "3fffffffffffffff", "bff0000000000000", None, "fff0000000000000"), id="double"),
        pytest.param("BINARY_FLOAT", 100, ("c0490fdb", "3fb6f024", None, "00800000"), id="float"),
    ],
)  # fmt: skip
def test_columns_are_read_at_once_as_one_by_one(
    data_type: str, kind: int, stored: tuple[str | None, ...]
) -> None:
    """Values that are not alike are read one by one: one more of another character set."""
    rows, values = rows_of(data_type), [value(kind, one) for one in stored]
    other = value(kind, None, charset=178)
    assert rows.convert(1, values).equals(rows.convert(1, [*values, other])[:-1])


@pytest.mark.parametrize(
    ("data_type", "kind", "stored"),
    [
        pytest.param("NUMBER", 2, "c1", id="half-a-number"),
        pytest.param("NUMBER", 2, "c0020202", id="too-many-places"),
        pytest.param("VARCHAR2", 1, "c3", id="half-a-character"),
        pytest.param("RAW", 23, "0", id="half-a-byte"),
        pytest.param("RAW", 23, "0g", id="no-digit"),
        pytest.param("DATE", 12, "787e021f010101", id="no-day"),
        pytest.param("DATE", 12, "5a640101010101", id="before-christ"),
        pytest.param("DATE", 12, "787e01020405", id="too-short"),
        pytest.param("TIMESTAMP(6)", 180, "787e01020405063b9aca00", id="too-many-nanoseconds"),
        pytest.param("BINARY_DOUBLE", 101, "c000", id="half-a-double"),
    ],
)  # fmt: skip
def test_a_value_among_others_is_refused(data_type: str, kind: int, stored: str) -> None:
    with pytest.raises((RefusedValueError, pa.ArrowInvalid)):
        rows_of(data_type).convert(1, [value(kind, None), value(kind, stored)])


def test_an_old_column_that_comes_in_chunks_is_not_null() -> None:
    """A server may name it in the old row without a value; what the new row does not carry stays as it was."""
    rows = rows_of("VARCHAR2")
    for flags in (0x400, LOB_DATA):
        _, [found] = rows.by_column([old_image([value(1, None, flags=flags)])])
        assert found is ABSENT
    _, [null] = rows.by_column([old_image([value(1, None)])])
    assert null == value(1, None)
