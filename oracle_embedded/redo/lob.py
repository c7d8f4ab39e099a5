"""How does LogMiner show what was written into a LOB column?

A small LOB lies in the row and appears as a literal; a larger one is written through a locator, in pieces.

Source: logminer.md, sections 2.7, 3.7 and 3.8; the in-line limit is from the SecureFiles and Large Objects guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from oracle_embedded.api import OraType, StoredColumn
from oracle_embedded.redo.literals import hextoraw, quoted, unistr

OP_SELECT_LOB_LOCATOR = 9
OP_LOB_WRITE = 10
OP_LOB_TRIM = 11

INLINE_BYTES_MAX = 3964
_BLOB_PIECE = 8132
_CLOB_PIECE = 4066

_DECLARE = (
    b"DECLARE \n loc_c CLOB; \n buf_c VARCHAR2(6150); \n loc_b BLOB; \n buf_b RAW(6150); \n"
    b" loc_nc NCLOB; \n buf_nc NVARCHAR2(6150); \nBEGIN\n"
)


def empty_literal(column: StoredColumn) -> bytes:
    """What an INSERT shows for a LOB that is not NULL."""
    return b"EMPTY_BLOB()" if column.type is OraType.BLOB else b"EMPTY_CLOB()"


def lob_literal(column: StoredColumn, value: bytes | None) -> bytes:
    """A small LOB as a literal."""
    if value is None:
        return b"NULL"
    if not value:
        return empty_literal(column)
    if column.type is OraType.BLOB:
        return hextoraw(value)
    return unistr(value) if column.charset_form == 2 else quoted(value)


def is_large(column: StoredColumn, value: bytes | None) -> bool:
    """Is the value written outside of the row? Characters take two bytes each, as in every Unicode database."""
    if value is None or len(value) * 2 <= INLINE_BYTES_MAX:
        return False
    if column.type is OraType.BLOB:
        return len(value) > INLINE_BYTES_MAX
    return len(value.decode().encode("utf-16-be")) > INLINE_BYTES_MAX


def write_rows(
    column: StoredColumn, value: bytes, target: bytes, where: bytes
) -> Iterator[tuple[int, bytes]]:
    """The rows that write a large LOB: locator, pieces, and the trim that SECUREFILE storage ends with.

    Args:
        column: The LOB column.
        value: Its new value.
        target: ``"OWNER"."TABLE"``.
        where: `` where …`` of the row, or nothing.
    """
    locator, buffer = _variables(column)
    name = f'"{column.name}"'.encode()
    yield (
        OP_SELECT_LOB_LOCATOR,
        _DECLARE + b" select %b into %b from %b%b for update;\n" % (name, locator, target, where),
    )
    length = 0
    for literal, size in _pieces(column, value):
        text = b" %b := %b; \n  dbms_lob.write(%b, %d, %d, %b);\nEND;"
        yield OP_LOB_WRITE, text % (buffer, literal, locator, size, length + 1, buffer)
        length += size
    yield OP_LOB_TRIM, b"  dbms_lob.trim(%b, %d);\nEND;" % (locator, length)


def _variables(column: StoredColumn) -> tuple[bytes, bytes]:
    if column.type is OraType.BLOB:
        return b"loc_b", b"buf_b"
    return (b"loc_nc", b"buf_nc") if column.charset_form == 2 else (b"loc_c", b"buf_c")


def _pieces(column: StoredColumn, value: bytes) -> Iterator[tuple[bytes, int]]:
    if column.type is OraType.BLOB:
        for at in range(0, len(value), _BLOB_PIECE):
            piece = value[at : at + _BLOB_PIECE]
            yield hextoraw(piece), len(piece)
        return
    text = value.decode()
    for at in range(0, len(text), _CLOB_PIECE):
        part = text[at : at + _CLOB_PIECE]
        yield quoted(part.encode()), len(part)
