"""Which changed rows are in a block of JSON records, as columns?

Compiled loops find them; a record that they do not take is left to whoever reads records one by
one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_core.decode.batch import Operations
from cdc_core.decode.kernels import messages, records, table
from cdc_core.decode.kernels.memory import PADDING
from cdc_core.decode.text_source import Bytes, Words

_LINE_BYTES = 256
"""A line has more bytes, as a rule."""

Lines = bytes | memoryview
"""Whole lines. A view begins where its object does, which has ``PADDING`` bytes behind it and is
filled again with the next lines."""


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """The records of whole lines.

    Attributes:
        words: Per line, what :mod:`~cdc_core.decode.kernels.records` says.
        shared: Texts that stand for tables, by their number.
        databases: Names of databases, by their number.
        buffer: The bytes in which addresses lie.
    """

    words: Words
    shared: tuple[bytes, ...]
    databases: tuple[str, ...]
    buffer: Bytes


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Changed rows apart from their block: their words, and the bytes in which addresses lie."""

    words: Words
    buffers: tuple[Bytes, ...]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def operations(self) -> Operations:
        """LogMiner's operation code of each."""
        return self.words[:, records.OPERATION].astype(np.int8)

    def commit_scn(self, at: int) -> int:
        """SCN of the commit of the row with that number."""
        return int(self.words[at, records.COMMIT_SCN])

    def facts(self) -> list[pa.Array]:
        """Ordinals, SCNs, transactions, operation codes, ROWIDs, times and redo threads."""
        words = self.words
        threads = words[:, records.THREAD]
        return [
            pa.array(words[:, records.ORDINAL]),
            pa.array(words[:, records.SCN]),
            text_column(words, records.XID, records.XID_LENGTH),
            pa.array(words[:, records.OPERATION]),
            text_column(words, records.ROW_ID, records.ROW_ID_LENGTH),
            pa.array(words[:, records.TIME]),
            pa.array(np.where(threads < 0, 1, threads)),
        ]

    def image(self, row: int, word: int) -> bytes | None:
        """The bytes of an image, None where the row has none; ``word`` says which."""
        at, end = self.words[row, word : word + 2].tolist()
        return None if at == 0 else ctypes.string_at(at, end - at)

    def first(self, count: int) -> KeptRows:
        """The first rows."""
        return KeptRows(self.words[:count], self.buffers)

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return self.words.nbytes + sum(one.nbytes for one in self.buffers)

    @staticmethod
    def joined(parts: Sequence[KeptRows]) -> KeptRows:
        """The rows of all, in order."""
        words = np.concatenate([one.words for one in parts])
        return KeptRows(words, tuple(one for part in parts for one in part.buffers))


def read_messages(data: Lines) -> RecordBlock:
    """The records of whole lines of OpenLogReplicator's messages."""
    names, order = _names(messages.NAMES)
    padded: Any = data.obj if isinstance(data, memoryview) else data + bytes(PADDING)
    buffer = np.frombuffer(padded, np.uint8)
    start = buffer.ctypes.data
    room, count = len(data) // _LINE_BYTES + 1, -1
    while count < 0:
        words: Words = np.empty((room, records.WORDS), np.int64)
        schemas, databases = (np.zeros(2 + 2 * records.SHARED_MAX, np.int64) for _ in range(2))
        count = messages.scan_messages(
            start,
            start + len(data),
            words.ctypes.data,
            room,
            names.ctypes.data,
            order.copy().ctypes.data,
            schemas.ctypes.data,
            databases.ctypes.data,
        )
        room = len(data)
    return RecordBlock(
        words[:count],
        tuple(_texts(schemas, data, start)),
        tuple(one.decode() for one in _texts(databases, data, start)),
        buffer,
    )


def keep_rows(words: Words) -> KeptRows:
    """Copies of rows, so that they hold no block in memory."""
    words = words.copy()
    rows = len(words)
    size = records.measure_kept(words.ctypes.data, rows)
    buffer = np.empty(size + PADDING, np.uint8)
    records.keep(words.ctypes.data, rows, buffer.ctypes.data)
    return KeptRows(words, (buffer,))


def text_column(words: Words, word: int, length: int) -> pa.StringArray:
    """Texts of one length, as a column: ROWIDs or transactions."""
    rows = len(words)
    target = np.empty(rows * length, np.uint8)
    records.gather(words.ctypes.data, rows, word, length, target.ctypes.data)
    ends = np.arange(rows + 1, dtype=np.int32) * length
    return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(target))


def _texts(shared: Words, data: Lines, start: int) -> list[bytes]:
    places = shared[2:].reshape(-1, 2)[: int(shared[0])].tolist()
    return [bytes(data[at - start : at - start + length]) for at, length in places]


@lru_cache(maxsize=8)
def _names(names: tuple[str, ...]) -> tuple[Words, Words]:
    """The loops' table of members' names, and the order in which they are expected."""
    quoted = [f'"{name}"'.encode() for name in names]
    fields: Words = np.zeros((len(names), table.FIELDS), np.int64)
    text = np.frombuffer(b"".join(one + bytes(16) for one in quoted), np.uint8)
    _KEPT.append(text)
    at = text.ctypes.data
    for number, one in enumerate(quoted):
        fields[number, table.NAME], fields[number, table.NAME_LENGTH] = at, len(one)
        at += len(one) + 16
    return fields, np.arange(len(names), dtype=np.int64)


_KEPT: list[Bytes] = []
"""Texts whose addresses the loops know."""
