"""Into how many rows of V$LOGMNR_CONTENTS does a statement go?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from oracle_embedded.charsets import CharacterSet

SQL_BYTES_MAX = 4000
"""So much of SQL_REDO and SQL_UNDO a row holds."""


def continued(
    redo: bytes | None, undo: bytes | None, own: CharacterSet
) -> Iterator[tuple[bytes | None, bytes | None, int]]:
    """Pieces of at most :data:`SQL_BYTES_MAX` bytes of the database's character set that split no
    character, with CSF: 1 on all but the last."""
    cut = _pieces if own.is_utf8 else partial(_recoded_pieces, own)
    pieces = [cut(redo), cut(undo)]
    count = max(len(part) for part in pieces)
    for at in range(count):
        redo_part, undo_part = (part[at] if at < len(part) else None for part in pieces)
        yield redo_part, undo_part, int(at + 1 < count)


def _pieces(text: bytes | None) -> list[bytes | None]:
    if text is None or len(text) <= SQL_BYTES_MAX:
        return [text]
    pieces: list[bytes | None] = []
    at = 0
    while at < len(text):
        end = min(at + SQL_BYTES_MAX, len(text))
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(text[at:end])
        at = end
    return pieces


def _recoded_pieces(own: CharacterSet, text: bytes | None) -> list[bytes | None]:
    """The same where a byte of the set may be several here."""
    if text is None or len(text) <= SQL_BYTES_MAX:
        return [text]
    whole = text.decode()
    room = SQL_BYTES_MAX // own.width
    return [whole[at : at + room].encode() for at in range(0, len(whole), room)]
