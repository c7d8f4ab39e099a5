"""Batches of rows are encoded as one row after the other would be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oracle_embedded.api import OraType, Value
from oracle_embedded.wire.lobs import LobStore
from oracle_embedded.wire.rows import RowEncoder
from oracle_embedded.wire.ttc import clr_bytes
from tests.oracle_embedded.wire.fake_engine import FakeEngine, FakeSession, column

_LOBS = LobStore(FakeSession(FakeEngine(), 1, "SCOTT", "test"))
_TYPES = (OraType.NUMBER, OraType.BOOLEAN, OraType.LONG, OraType.RAW)
_VALUES = st.one_of(
    st.none(),
    st.binary(min_size=1, max_size=6),
    st.integers(250, 40000).map(lambda size: b"x" * size),
)


def _plainly(types: list[OraType], row: list[Value]) -> bytes:
    parts = [b"\x07"]
    for ora_type, value in zip(types, row, strict=True):
        if ora_type is OraType.BOOLEAN:
            parts.append({None: b"\x00", b"\x01": b"\x02\x01\x01"}.get(value, b"\x01\x00"))
        else:
            end = b"\x00\x00" if ora_type is OraType.LONG else b""
            parts.append(clr_bytes(value or b"") + end)
    return b"".join(parts)


@given(data=st.data(), types=st.lists(st.sampled_from(_TYPES), min_size=1, max_size=5))
def test_batches_equal_rows_one_by_one(data: st.DataObject, types: list[OraType]) -> None:
    row = st.lists(_VALUES, min_size=len(types), max_size=len(types))
    rows = data.draw(st.lists(row, max_size=6))
    encoder = RowEncoder(
        [column("C", ora_type) for ora_type in types], [], _LOBS, lambda _handle: b""
    )
    assert encoder.encode(rows) == b"".join(_plainly(types, row) for row in rows)


def test_what_the_row_before_has_is_left_out() -> None:
    """Message 21: how many columns follow, and which, the first column being the lowest bit. A whole
    row has one too behind a row that is not whole."""
    columns = [column("A", OraType.VARCHAR), column("B", OraType.VARCHAR)]
    encoder = RowEncoder(columns, [], _LOBS, lambda _handle: b"", leaves_out=True)
    first = encoder.encode([(b"a", b"b"), (b"a", b"c"), (b"a", b"c"), (b"d", None)])
    assert first == b"".join(
        (
            b"\x07\x01a\x01b",
            b"\x15\x01\x01\x02\x07\x01c",
            b"\x15\x00\x00\x07",
            b"\x15\x01\x02\x03\x07\x01d\x00",
        )
    )
    assert encoder.encode([(b"e", None)]) == b"\x15\x01\x01\x01\x07\x01e", "over two fetches"
    encoder.begin()
    assert encoder.encode([(b"e", None)]) == b"\x07\x01e\x00", "another execution"


def test_values_of_one_row_alone_are_always_sent() -> None:
    columns = [column("A", OraType.LONG), column("B", OraType.VARCHAR)]
    encoder = RowEncoder(columns, [], _LOBS, lambda _handle: b"", leaves_out=True)
    encoder.encode([(b"a", b"b")])
    assert encoder.encode([(b"a", b"b")]) == b"\x15\x01\x01\x01\x07\x01a\x00\x00"
