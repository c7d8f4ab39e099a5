"""Equal rows have one digest, and no others do."""

from __future__ import annotations

import math
import struct
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.stage.multiset.digests import row_digests

TYPES: dict[pa.DataType, Any] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.string(): st.text(max_size=4),
    pa.binary(): st.binary(max_size=4),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.decimal128(10, 2): st.decimals(-(10**7), 10**7, places=2),
    pa.timestamp("us"): st.datetimes(),
    pa.bool_(): st.booleans(),
}


def plain(row: tuple[Any, ...], kinds: list[pa.DataType]) -> bytes:
    """The bytes of a row by the rule's words, value by value."""
    pieces = []
    for value, kind in zip(row, kinds, strict=True):
        octets = None if value is None else _octets(value, kind)
        pieces.append(struct.pack(">I", 2**32 - 1 if octets is None else len(octets)))
        pieces.append(octets or b"")
    return b"".join(pieces)


def _octets(value: Any, kind: pa.DataType) -> bytes:
    if isinstance(value, float):
        value = math.nan if math.isnan(value) else value + 0.0
        return struct.pack(">d" if kind == pa.float64() else ">f", value)
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, int):
        return struct.pack(">q", value)
    if isinstance(value, Decimal):
        return int(value.scaleb(2)).to_bytes(16, "little", signed=True)
    if isinstance(value, datetime):
        since = value - datetime(1970, 1, 1)
        return struct.pack(">q", (since.days * 86400 + since.seconds) * 10**6 + since.microseconds)
    return value.encode() if isinstance(value, str) else bytes(value)


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[pa.DataType], list[tuple[Any, ...]]]:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
    row = st.tuples(*(st.none() | TYPES[kind] for kind in kinds))
    return kinds, draw(st.lists(row, max_size=5))


@given(_tables())
def test_a_digest_is_that_of_the_plain_form(
    table: tuple[list[pa.DataType], list[tuple[Any, ...]]],
) -> None:
    kinds, rows = table
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    wanted = [sha256(plain(row, kinds)).digest() for row in rows]
    assert row_digests(columns).to_pylist() == wanted
    assert row_digests([column.slice(1) for column in columns]).to_pylist() == wanted[1:]


def _digest(*values: Any, kinds: tuple[pa.DataType, ...]) -> bytes:
    columns = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    [digest] = row_digests(columns).to_pylist()
    return bytes(digest)


TWO_TEXTS = (pa.string(), pa.string())


@pytest.mark.parametrize(
    ("one", "other", "kinds"),
    [
        pytest.param(("ab", "c"), ("a", "bc"), TWO_TEXTS, id="the-border-between-columns"),
        pytest.param((None, "a"), ("a", None), TWO_TEXTS, id="the-place-of-null"),
        pytest.param((None,), ("",), (pa.string(),), id="an-empty-lob-and-null"),
        pytest.param((None,), (0,), (pa.int64(),), id="zero-and-null"),
        pytest.param(("a ",), ("a",), (pa.string(),), id="the-blanks-of-char"),
        pytest.param((math.nan,), (None,), (pa.float64(),), id="nan-and-null"),
    ],
)
def test_rows_that_differ_have_two_digests(
    one: tuple[Any, ...], other: tuple[Any, ...], kinds: tuple[pa.DataType, ...]
) -> None:
    assert _digest(*one, kinds=kinds) != _digest(*other, kinds=kinds)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_forms_of_one_number_have_one_digest(kind: pa.DataType) -> None:
    quiet = math.nan
    [other] = struct.unpack(">d", struct.pack(">Q", 0xFFF8_0000_0000_0001))
    assert _digest(-0.0, kinds=(kind,)) == _digest(0.0, kinds=(kind,))
    assert _digest(quiet, kinds=(kind,)) == _digest(other, kinds=(kind,))
