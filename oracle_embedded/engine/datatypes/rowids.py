"""What is a ROWID, as a number, as bytes and as text?

A row's address inside its table is one integer: relative file, block and slot (10, 22 and 16 bits).
The printed ROWID adds the data object number. Inside expressions a ROWID is ten bytes: data object
(4) and address (6), which sort in Oracle's order. A restricted ROWID has data object 0.

A row of an index-organized table has no address: its logical ROWID holds the values of its primary
key. Inside expressions it is a mark of four bytes and the bytes that are printed, in base 64,
behind an asterisk: ``*BAFAAQgCwQL+`` is a guess of the block, a value of two bytes, the NUMBER 1,
and an end.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache

from oracle_embedded.values import bytes_from_logical_rowid, parts_from_rowid, rowid_from_parts

_LOGICAL = b"\xff\xff\xff\xff"
"""No data object has this number."""
_LOGICAL_START, _LOGICAL_END = b"\x04", b"\xfe"
_GUESS = b"\x01\x00\x00\x00"
"""The block of which the row's ROWID says that it may be there: always the same one, so that equal
keys make equal ROWIDs."""
_NULL_SIZE, _LONG_SIZE = b"\xff", b"\xfe"


def address(file: int, block: int, slot: int) -> int:
    """Pack file, block and slot."""
    return file << 38 | block << 16 | slot


def packed(data_object: int, rid: int) -> bytes:
    """The ten bytes of a ROWID."""
    return data_object.to_bytes(4, "big") + rid.to_bytes(6, "big")


def printed(data_object: int, rid: int) -> str:
    """The eighteen characters of a ROWID."""
    return _block_text(data_object, rid >> 16) + _slot_text(rid & 0xFFFF)


@lru_cache(maxsize=4096)
def _block_text(data_object: int, file_and_block: int) -> str:
    return rowid_from_parts(data_object, file_and_block >> 22, file_and_block & 0x3FFFFF, 0)[:15]


@lru_cache(maxsize=1024)
def _slot_text(slot: int) -> str:
    return rowid_from_parts(0, 0, 0, slot)[15:]


def logical(key: Iterable[bytes | None]) -> bytes:
    """The ROWID of a row of an index-organized table, by the values of its primary key."""
    parts = [_LOGICAL, _LOGICAL_START, _GUESS]
    for value in key:
        if value is None:
            parts.append(_NULL_SIZE)
        elif len(value) < _LONG_SIZE[0]:
            parts += (bytes((len(value),)), value)
        else:
            parts += (_LONG_SIZE, len(value).to_bytes(2, "big"), value)
    return b"".join((*parts, _LOGICAL_END))


def text_from_packed(value: bytes) -> str:
    """Print a ROWID."""
    if value.startswith(_LOGICAL):
        return "*" + b64encode(value[len(_LOGICAL) :]).decode().rstrip("=")
    data_object, rid = int.from_bytes(value[:4], "big"), int.from_bytes(value[4:], "big")
    if data_object:
        return printed(data_object, rid)
    return f"{rid >> 16 & 0x3FFFFF:08X}.{rid & 0xFFFF:04X}.{rid >> 38:04X}"


def packed_from_text(text: str) -> bytes:
    """Read a printed ROWID; ORA-01410 if it is none."""
    text = text.strip()
    if text.startswith("*"):
        return _LOGICAL + bytes_from_logical_rowid(text)
    data_object, file, block, slot = parts_from_rowid(text)
    return packed(data_object, address(file, block, slot))
