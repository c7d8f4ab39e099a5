"""Where in a block of JSON records do the changed rows lie, and what does each record say of its
own? One row of int64 words a record."""

from __future__ import annotations

import numpy as np

from cdc_core.decode.kernels.cache import entry, inner
from cdc_core.decode.kernels.memory import copy_exactly, is_same, load64, store64

LINE, OPERATION, SCN, COMMIT_SCN, XID, TIME, THREAD, DATABASE, SCHEMA = 0, 1, 2, 3, 4, 6, 7, 8, 9
"""Offset of the record in its block; operation code, 0 where the plain form must read the record;
SCNs; sixteen digits of the transaction, in two words; time as the record has it; redo thread, -1
where it does not say; numbers of texts that records share, -1 where a record has none."""
ROW_ID, BEFORE_AT, BEFORE_END, AFTER_AT, AFTER_END, ORDINAL = 10, 11, 12, 13, 14, 15
"""Address of a ROWID; addresses of the images, 0 where there is none; its number in the source."""
WORDS = 16

ROW_ID_LENGTH, XID_LENGTH = 18, 16
SHARED_MAX = 64
"""So many texts may the records of a block share."""

IS_BASE64 = np.zeros(256, np.uint8)
IS_BASE64[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")] = 1


@inner
def number_shared(shared: int, at: int, length: int) -> int:
    """The number of a text among those that records share; -1 if there are too many.

    Args:
        shared: Address of words: how many there are, the last one's number, then address and length
            of each.
    """
    count, last = load64(shared), load64(shared + 8)
    for tried in range(-1, count):
        number = last if tried < 0 else tried
        known = shared + 16 + number * 16
        if number < count and load64(known + 8) == length and is_same(at, load64(known), length):
            store64(shared + 8, number)
            return number
    if count == SHARED_MAX:
        return -1
    store64(shared + 16 + count * 16, at)
    store64(shared + 16 + count * 16 + 8, length)
    store64(shared, count + 1)
    store64(shared + 8, count)
    return count


@inner
def find_shared(shared: int, at: int) -> int:
    """The number of the text that stands at an address, -1 where none does; none is the beginning
    of another."""
    count, last = load64(shared), load64(shared + 8)
    for tried in range(-1, count):
        number = last if tried < 0 else tried
        known = shared + 16 + number * 16
        if number < count and is_same(at, load64(known), load64(known + 8)):
            store64(shared + 8, number)
            return number
    return -1


@entry
def measure_kept(records: int, rows: int) -> int:
    """Bytes of the ROWIDs and images of rows."""
    total = 0
    for row in range(rows):
        record = records + row * WORDS * 8
        total += ROW_ID_LENGTH
        total += load64(record + BEFORE_END * 8) - load64(record + BEFORE_AT * 8)
        total += load64(record + AFTER_END * 8) - load64(record + AFTER_AT * 8)
    return total


@entry
def keep(records: int, rows: int, target: int) -> None:
    """Copy the ROWIDs and images of rows, and let their words say where they are now."""
    for row in range(rows):
        record = records + row * WORDS * 8
        copy_exactly(target, load64(record + ROW_ID * 8), ROW_ID_LENGTH)
        store64(record + ROW_ID * 8, target)
        target += ROW_ID_LENGTH
        for side in (BEFORE_AT, AFTER_AT):
            at = load64(record + side * 8)
            if at != 0:
                length = load64(record + side * 8 + 8) - at
                copy_exactly(target, at, length)
                store64(record + side * 8, target)
                target += length
                store64(record + side * 8 + 8, target)


@entry
def gather(records: int, rows: int, word: int, length: int, target: int) -> None:
    """Copy bytes of the same length from where a word of each row says; from the words themselves
    where it is the transaction."""
    for row in range(rows):
        record = records + row * WORDS * 8
        at = record + word * 8 if word == XID else load64(record + word * 8)
        copy_exactly(target + row * length, at, length)
