"""How do the loops see a table? As rows of int64 fields, one per name, the captured columns
first."""

from __future__ import annotations

from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.memory import is_same, load64, store64

KIND, PRECISION, SCALE, NAME, NAME_LENGTH, STRIDE = 0, 1, 2, 3, 4, 5
"""Kind of the literals; decimal's precision and scale; address and length of the quoted name; bytes
of an entry."""
ENTRIES, STATES, VALID, OFFSETS, BYTES = 6, 8, 10, 12, 14
"""Addresses, each for before and, one further, for after: entries, states; bitmap, Arrow offsets
and bytes to be written.

An entry is the value itself (8 bytes, decimals 16), or for text and bytes (source address * 4 +
form, length).
"""
SCRATCH, CAPACITY, TOTAL, NEEDED = 16, 18, 20, 22
"""Of text and bytes, for both sides again: address of a block's entries; how many bytes may be
written, were written, and will be with this block."""
FIELDS = 24

BEFORE, AFTER = 0, 1
"""The side: offset to the fields above."""

ABSENT, NULL, PRESENT = 0, 1, 2
"""States of a column in a row."""

FORM_AS_IS, FORM_DOUBLED, FORM_PARTS, FORM_REWRITTEN = 0, 1, 2, 3
"""How an entry's source becomes its bytes: as it stands; quotes undoubled; parts joined; by the
column's kind."""

SKIPPED, TEXT, CLOB, INT64, DECIMAL, NUMBER = 0, 1, 2, 3, 4, 5
FLOAT64, FLOAT32, TIMESTAMP, TIMESTAMP_TEXT, RAW, DATE = 6, 7, 8, 9, 10, 11
ZONED, INTERVAL_YM, INTERVAL_DS, BLOB, TOKEN = 12, 13, 14, 15, 16
"""The kinds of plan.Kind, as plain numbers for Numba; a test holds that they are equal."""


@inner
def field(table: int, column: int, name: int) -> int:
    """One field of a column."""
    return load64(table + (column * FIELDS + name) * 8)


@inner
def set_field(table: int, column: int, name: int, value: int) -> None:
    """Change one field of a column."""
    store64(table + (column * FIELDS + name) * 8, value)


@inner
def is_measured(kind: int) -> bool:
    """Is the value text or bytes, so that an entry says where it is?"""
    return kind in (TEXT, CLOB, NUMBER, TIMESTAMP_TEXT, RAW) or kind >= ZONED


@inner
def find_column(table: int, names: int, at: int, guess: int) -> int:
    """Number of the name whose quoted form stands at an address, ``guess`` tried first; -1 if there
    is none."""
    if guess < names and is_same(at, field(table, guess, NAME), field(table, guess, NAME_LENGTH)):
        return guess
    for column in range(names):
        if is_same(at, field(table, column, NAME), field(table, column, NAME_LENGTH)):
            return column
    return -1
