"""Into how many rows of V$LOGMNR_CONTENTS does a statement go?"""

from __future__ import annotations

from collections.abc import Iterator

SQL_BYTES_MAX = 4000
"""So much of SQL_REDO and SQL_UNDO a row holds."""


def continued(
    redo: bytes | None, undo: bytes | None
) -> Iterator[tuple[bytes | None, bytes | None, int]]:
    """Pieces of at most :data:`SQL_BYTES_MAX` bytes that split no character, with CSF: 1 on all but the last."""
    pieces = [_pieces(redo), _pieces(undo)]
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
