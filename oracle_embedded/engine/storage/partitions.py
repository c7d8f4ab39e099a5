"""Into which segment of a partitioned table does a row go?

Bounds are stored values in hexadecimal digits: Oracle's own byte forms of numbers, dates and text
sort as the values do.

Source: Oracle Database VLDB and Partitioning Guide 19c, "Partitioning Concepts"; SQL Language
Reference 19c, CREATE TABLE.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from oracle_embedded.api import Value

MAXVALUE = "MAXVALUE"
DEFAULT = "DEFAULT"

Bound = tuple[str | None, ...]
"""One value per key column: hexadecimal digits, None for NULL, or one of the words."""


@dataclass(frozen=True)
class Partition:
    """A partition, or a subpartition. RANGE has one bound, which is not in it; LIST one per listed
    value; HASH none.

    ``object_id`` names the segment for ever, ``data_object_id`` where its rows lie: MOVE and
    TRUNCATE change it. ``high_value`` is the bound as it was typed. ``low`` is the lower bound of
    one that an interval made, below which the next such one may be missing. One with
    ``subpartitions`` has no segment of its own.
    """

    object_id: int
    data_object_id: int
    name: str
    high_value: str = ""
    bounds: tuple[Bound, ...] = ()
    low: str | None = None
    subpartitions: tuple[Partition, ...] = ()

    def holds(self, place: list[tuple[int, bytes]]) -> bool:
        """Does a RANGE partition take a key, if none before it does?"""
        is_above = self.low is None or place >= range_place((self.low,))
        return is_above and place < range_place(self.bounds[0])

    @property
    def leaves(self) -> tuple[Partition, ...]:
        """What of it has rows: its subpartitions, or itself."""
        return self.subpartitions or (self,)


@dataclass(frozen=True)
class Partitioning:
    """How a table is partitioned. ``interval`` is the distance of partitions that are made by
    themselves, as typed; ``sub_columns`` those by which partitions have ``sub_count``
    subpartitions: by hash, or as the template says."""

    kind: str
    columns: tuple[int, ...]
    partitions: tuple[Partition, ...]
    interval: str | None = None
    sub_columns: tuple[int, ...] = ()
    sub_count: int = 0
    sub_kind: str = "HASH"
    sub_template: tuple[Partition, ...] = ()

    @cached_property
    def leaves(self) -> tuple[Partition, ...]:
        """Everything that has rows, in order."""
        return tuple(leaf for one in self.partitions for leaf in one.leaves)

    @cached_property
    def _listed(self) -> dict[Bound, Partition]:
        return {bound: one for one in self.partitions for bound in one.bounds}

    def find(self, image: Mapping[int, Value]) -> Partition | None:
        """The segment of a row; None if no partition takes it."""
        key = [image[column] for column in self.columns]
        match self.kind:
            case "RANGE":
                place = [_place(value) for value in key]
                found = next((one for one in self.partitions if one.holds(place)), None)
            case "LIST":
                text = tuple(None if value is None else value.hex() for value in key)
                found = self._listed.get(text, self._listed.get((DEFAULT,)))
            case _:
                found = self.partitions[bucket(key, len(self.partitions))]
        if found is None or not found.subpartitions:
            return found
        return Partitioning(self.sub_kind, self.sub_columns, found.subpartitions).find(image)

    def named(self, name: str) -> Partition | None:
        """The partition of a name."""
        return next((one for one in self.partitions if one.name == name), None)


def bucket(key: Sequence[Value], count: int) -> int:
    """The number of the hash partition of a key, so that one partition more or less moves the rows
    of one other alone."""
    number = zlib.crc32(b"\0".join(b"" if value is None else b"\1" + value for value in key))
    power = 1 << (count - 1).bit_length()
    found = number % power
    return found if found < count else found - power // 2


def range_place(bound: Bound) -> list[tuple[int, bytes]]:
    """Where a bound lies among keys: MAXVALUE above NULL, and NULL above all values."""
    return [
        (2, b"") if one == MAXVALUE else _place(None if one is None else bytes.fromhex(one))
        for one in bound
    ]


def _place(value: Value) -> tuple[int, bytes]:
    return (1, b"") if value is None else (0, value)
