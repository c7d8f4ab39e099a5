"""What is a ROWID, as a number, as bytes and as text?

A row's address inside its table is one integer: relative file, block and slot (10, 22 and 16 bits).
The printed ROWID adds the data object number. Inside expressions a ROWID is ten bytes: data object
(4) and address (6), which sort in Oracle's order.
"""

from __future__ import annotations

from functools import lru_cache

from oracle_embedded.values import parts_from_rowid, rowid_from_parts


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


def text_from_packed(value: bytes) -> str:
    """Print ten bytes."""
    return printed(int.from_bytes(value[:4], "big"), int.from_bytes(value[4:], "big"))


def packed_from_text(text: str) -> bytes:
    """Read a printed ROWID; ORA-01410 if it is none."""
    data_object, file, block, slot = parts_from_rowid(text.strip())
    return packed(data_object, address(file, block, slot))
