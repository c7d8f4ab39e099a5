"""How does the server tell how a call ended?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oracle_embedded.api import OracleError
from oracle_embedded.values import parts_from_rowid
from oracle_embedded.wire.ttc import clr_bytes, dlc_bytes, sb_bytes, ub_bytes

TRANSACTION_OPEN = 0x02
NO_MORE_ROWS = OracleError(1403, "no data found")
_COMPILED_WITH_ERRORS = b"\x20"
_BATCH_ERROR = OracleError(24381, "error(s) in array DML")


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call on a statement ended; what message 4 says. ``call_number`` is the third byte of
    the call's header."""

    call_status: int
    call_number: int = 0
    cursor_id: int = 0
    row_count: int = 0
    rowid: str | None = None
    error: OracleError | None = None
    batch_errors: Sequence[tuple[int, OracleError]] = field(default_factory=tuple)
    has_warning: bool = False


def status_message(call_status: int) -> bytes:
    """Encode message 9, the end of a call that is not about a statement."""
    return b"\x09" + ub_bytes(call_status) + b"\x00"


def version_message(banner: str, version: int, *, lengths_converted: bool) -> bytes:
    """Encode message 8 with the database's version."""
    text = banner.encode()
    framed = clr_bytes(text) if lengths_converted else text
    return b"\x08" + ub_bytes(len(text)) + framed + ub_bytes(version)


def end_message(end: CallEnd) -> bytes:
    """Encode message 4."""
    error = end.error
    if error is None and end.batch_errors:
        error = _BATCH_ERROR
    number = error.code if error else 0
    return b"".join(
        (
            b"\x04",
            ub_bytes(end.call_status),
            b"\x00",
            ub_bytes(min(end.row_count, 0xFFFFFFFF)),
            ub_bytes(number & 0xFFFF),
            b"\x00\x00",
            ub_bytes(end.cursor_id),
            sb_bytes(max(error.offset, 0) if error else 0),
            bytes(5),
            _COMPILED_WITH_ERRORS if end.has_warning else b"\x00",
            _rowid(end.rowid),
            bytes((0, 0, end.call_number, 0, 0, 0)),
            _batch_lists(end.batch_errors),
            ub_bytes(number),
            ub_bytes(end.row_count),
            clr_bytes(_text(error).encode()) if error else b"",
        )
    )


def _text(error: OracleError) -> str:
    return str(error)


def _rowid(rowid: str | None) -> bytes:
    if rowid is None:
        return bytes(5)
    data_object, file, block, slot = parts_from_rowid(rowid)
    return ub_bytes(data_object) + ub_bytes(file) + b"\x00" + ub_bytes(block) + ub_bytes(slot)


def _batch_lists(errors: Sequence[tuple[int, OracleError]]) -> bytes:
    if not errors:
        return b"\x00\x00\x00"
    count = ub_bytes(len(errors)) + b"\x01"
    parts = [count, *[ub_bytes(error.code) for _, error in errors]]
    parts += [count, *[ub_bytes(index) for index, _ in errors]]
    parts.append(count)
    for _, error in errors:
        text = _text(error).encode()
        parts += (ub_bytes(len(text)), clr_bytes(text), b"\x00\x00")
    return b"".join(parts)


CURRENT_SCHEMA_KEY, EDITION_KEY = 168, 172
"""Numbers of the settings that an execute tells of when it has changed them."""


def execute_message(
    cursor_id: int,
    row_counts: Sequence[int] | None = None,
    settings: Sequence[tuple[int, str]] = (),
) -> bytes:
    """Encode message 8 of an execute: two parts of an SCN, the cursor; changed settings of the
    session; the row count of each execution where they are wanted."""
    counts = b""
    if row_counts is not None:
        counts = ub_bytes(len(row_counts)) + b"".join(map(ub_bytes, row_counts))
    changed = b"".join(
        dlc_bytes(value.encode()) + b"\x00" + ub_bytes(key) for key, value in settings
    )
    pairs = ub_bytes(len(settings)) + changed
    return b"\x08\x01\x03\x00\x00" + ub_bytes(cursor_id) + b"\x00" + pairs + b"\x00" + counts


def directions_message(directions: Sequence[int]) -> bytes:
    """Encode message 11, the direction of every bind: 32 IN, 16 OUT, 48 IN OUT."""
    high, low = divmod(len(directions), 256)
    return b"".join(
        (b"\x0b\x00", ub_bytes(low), ub_bytes(high), b"\x01\x01\x00\x00\x00", bytes(directions))
    )


def results_message(cursors: Sequence[bytes]) -> bytes:
    """Encode message 27, queries that a block gives to the client besides its binds: each a
    cursor's value."""
    return b"\x1b" + ub_bytes(len(cursors)) + b"".join(b"\x00" + cursor[1:] for cursor in cursors)
