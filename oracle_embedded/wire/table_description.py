"""How is function 119 answered, by which JDBC asks for the columns of a table before it returns
generated keys by name?

A description is a header and a row of flags, behind each of which its part follows: a list of
descriptions, a table, a column. Only those three occur here. Source: what ojdbc11 21 and 23 read.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.api import ColumnMeta
from oracle_embedded.wire.ttc import TtcReader, dlc_bytes, sb_bytes, ub_bytes

_TABLE = 1
_FLAGS = 21
_LIST_AT, _TABLE_AT, _COLUMN_AT = 0, 1, 7


def read_description_request(reader: TtcReader) -> str:
    """Read the body of function 119: the name of an object, as typed."""
    has_name = reader.u8()
    size = reader.ub()
    reader.u8()
    reader.ub()
    reader.u8()
    reader.ub()
    return reader.raw(size).decode("utf-8", "replace") if has_name else ""


def table_description(columns: Sequence[ColumnMeta]) -> bytes:
    """Encode message 8 with the columns of a table."""
    described = [_description(_COLUMN_AT, _column(column)) for column in columns]
    listed = b"\x00\x00" + ub_bytes(len(columns)) + b"\x00" + b"".join(described)
    head = b"\x01\x01" + bytes((0, _TABLE)) + bytes(5)
    table = b"".join(
        (
            b"\x00\x00\x00",  # no owner, no name
            b"\x01\x01\x00" + _description(_LIST_AT, listed),
            ub_bytes(len(columns)),
            bytes(18),
        )
    )
    return b"\x08\x00" + _description(_TABLE_AT, table, head)


def _description(place: int, part: bytes, head: bytes = b"\x00") -> bytes:
    """One description with one part; without a header of its own unless it is given."""
    flags = b"".join(b"\x01\x01" + part if at == place else b"\x00" for at in range(_FLAGS))
    return head + b"\x00\x00" + flags


def _column(column: ColumnMeta) -> bytes:
    return b"".join(
        (
            b"\x00",
            ub_bytes(column.size),
            ub_bytes(column.type),
            dlc_bytes(column.name.encode()),
            bytes((column.precision,)),
            sb_bytes(column.scale),
            bytes((column.nullable,)),
            bytes(4),
            bytes((column.charset_form,)),
            bytes(9),
        )
    )
