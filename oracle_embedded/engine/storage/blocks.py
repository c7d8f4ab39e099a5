"""Which block and slot does a new row go to?

The address that comes out is a number as :mod:`oracle_embedded.engine.datatypes.rowids` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oracle_embedded.api import Value
from oracle_embedded.engine.datatypes.rowids import address

BLOCK_SIZE = 8192
_BLOCK_USABLE = 7280
_ROW_OVERHEAD = 5
_INLINE_MAX = 3964
_SLOTS_MAX = 700
_SMALL_EXTENT = 8
_LARGE_EXTENT = 128
_SMALL_EXTENTS = 16
DATA_FILE = 12
FREE_MAX = 1000
"""So many addresses of deleted rows a segment remembers."""


def row_bytes(values: Sequence[Value]) -> int:
    """About how many bytes of a block a row takes; long values live elsewhere but for a locator."""
    size = _ROW_OVERHEAD
    for value in values:
        if value is None:
            size += 1
        else:
            length = len(value)
            size += length + 1 if length < 250 else min(length, _INLINE_MAX) + 3
    return size


def first_block(extents: Sequence[tuple[int, int]]) -> int:
    """The first block that has rows, behind those of the segment's header."""
    return extents[0][0] + 3


class Extents(Protocol):
    """Where segments get their blocks."""

    def take(self, blocks: int) -> int:
        """The first of so many blocks that nobody else has."""


@dataclass(slots=True)
class Segment:
    """The extents of one table: (first block, blocks) each, how full the current block is, and
    addresses of rows that are gone.

    As in Oracle, a later row takes the address of a deleted one whose transaction has committed.
    How long either row is does not matter here, and free addresses are forgotten when the database
    is closed.
    """

    extents: list[tuple[int, int]] = field(default_factory=list)
    extent: int = 0
    block: int = 0
    slot: int = 0
    used: int = 0
    free: list[int] = field(default_factory=list)

    def place(self, size: int, allocate: Extents) -> int:
        """The address of a new row of so many bytes; takes a new extent when the last is full."""
        if self.free:
            return self.free.pop()
        if not self.extents:
            self._grow(allocate)
            self.extent, self.block, self.slot, self.used = 0, first_block(self.extents), 0, 0
        elif self.slot and (self.used + size > _BLOCK_USABLE or self.slot >= _SLOTS_MAX):
            first, blocks = self.extents[self.extent]
            if self.block + 1 >= first + blocks:
                self._grow(allocate)
                self.extent += 1
                self.block = self.extents[self.extent][0]
            else:
                self.block += 1
            self.slot = self.used = 0
        rid = address(DATA_FILE, self.block, self.slot)
        self.slot += 1
        self.used += size
        return rid

    def _grow(self, allocate: Extents) -> None:
        blocks = _SMALL_EXTENT if len(self.extents) < _SMALL_EXTENTS else _LARGE_EXTENT
        self.extents.append((allocate.take(blocks), blocks))


@dataclass(frozen=True, slots=True)
class ClusterExtents:
    """Extents for a table of a cluster, which are the cluster's: the next one that the table has
    not, or a new one of both."""

    cluster: Segment
    taken: int
    allocate: Extents

    def take(self, blocks: int) -> int:
        """The first block of an extent of so many blocks."""
        if self.taken == len(self.cluster.extents):
            self.cluster.extents.append((self.allocate.take(blocks), blocks))
        return self.cluster.extents[self.taken][0]


@dataclass(slots=True)
class BlockAllocator:
    """Hands out blocks of the one data file."""

    next_block: int = 128

    def take(self, blocks: int) -> int:
        """The first of so many new blocks."""
        first = self.next_block
        self.next_block += blocks
        return first
