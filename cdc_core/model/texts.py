"""What becomes of a text whose bytes are no text in Oracle's character set?

Oracle keeps the bytes of a client whose character set is the database's own, and never looks at
them. Arrow, Parquet and Delta hold UTF-8 alone, and so does each of their readers. Such a text is
found where it enters, by whole columns: bytes that are no UTF-8 become U+FFFD, and whoever turns
the row into a change is told that they did.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.errors import ANY_TABLE
from cdc_core.model.patterns import name_fits

REPLACEMENT = "\ufffd"

TEXT_REPLACED = 1 << 16
"""Added to the STATUS of a redo row in landing: a U+FFFD in its text may stand for bytes that are
no UTF-8."""
STATUS_MASK = TEXT_REPLACED - 1
"""LogMiner's own STATUS in that of a redo row in landing."""

NOT_TEXT = "a text has bytes that are not UTF-8"

NOT_TEXT_IN_REDO = (
    "`on_invalid_text: replace` of the table puts U+FFFD in their place, but in columns of the key; `columns_exclude` leaves the column out; "
    f"`on_undecodable: quarantine` stores the row separately. After any of them, `redolake table resume {ANY_TABLE}` continues."
)
NOT_TEXT_IN_ROWS = (
    "Correct the value in Oracle, set `on_invalid_text: replace` of the table, which puts U+FFFD in their place but in columns of the key, or "
    f"name the column under `columns_exclude`. Then `redolake table resnapshot {ANY_TABLE}` reads the table again."
)
"""Ways out of :data:`NOT_TEXT`, where a redo row or a row of a chunk has it."""


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """In which columns of a table U+FFFD may replace bytes that are not UTF-8: in all
    (``everywhere``), or in those that names or patterns name. Never in those of its key, where two
    keys could become one."""

    everywhere: bool = False
    columns: frozenset[str] = frozenset()

    def takes(self, column: str, key: tuple[str, ...]) -> bool:
        """May it replace bytes in this column of a table with this key?"""
        is_named = any(name_fits(one, column) for one in self.columns)
        return column not in key and (self.everywhere or is_named)


NOTHING_REPLACED = TextReplacement()

_LOOKED_INTO = 64
"""So few texts, one of which is spoiled, are looked at one by one."""


def is_utf8(texts: pa.Array) -> bool:
    """Are all texts of a ``string`` or ``large_string`` array UTF-8? Without a loop in Python: a
    million texts of 120 bytes take 10 ms."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def spoiled_rows(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Per text: has it bytes that are no UTF-8? For an array that :func:`is_utf8` refused: halves
    that are fine are not looked into."""
    found = np.zeros(len(texts), dtype=np.bool_)
    parts = [(0, len(texts))]
    while parts:
        start, end = parts.pop()
        part = texts.slice(start, end - start)
        if is_utf8(part):
            continue
        if end - start > _LOOKED_INTO:
            middle = (start + end) // 2
            parts += [(start, middle), (middle, end)]
            continue
        found[start:end] = [_is_spoiled(one) for one in _bytes_of(part)]
    return found


def replaced(texts: pa.Array, rows: npt.NDArray[np.bool_]) -> pa.Array:
    """The texts, those of some rows with U+FFFD in place of the bytes that are no UTF-8."""
    own = _bytes_of(texts.filter(pa.array(rows)))
    readable = [None if one is None else one.decode("utf-8", "replace") for one in own]
    places = np.arange(len(texts))
    places[rows] = len(texts) + np.arange(len(own))
    return pa.concat_arrays([texts, pa.array(readable, texts.type)]).take(pa.array(places))


def _bytes_of(texts: pa.Array) -> list[bytes | None]:
    binary = pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()
    found: list[bytes | None] = texts.view(binary).to_pylist()
    return found


def _is_spoiled(text: bytes | None) -> bool:
    try:
        (text or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def readable_batch(batch: pa.RecordBatch, *, but: str | None = None) -> pa.RecordBatch:
    """A batch of names and facts with U+FFFD in place of bytes that are no UTF-8; the column
    ``but`` is left as it is."""
    for at, field in enumerate(batch.schema):
        is_text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        texts = batch.column(at)
        if is_text and field.name != but and not is_utf8(texts):
            batch = batch.set_column(at, field, replaced(texts, spoiled_rows(texts)))
    return batch
