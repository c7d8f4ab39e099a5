"""Which data objects (DATA_OBJECT_ID) did a table have as of an SCN?

A table may have a million partitions, and a window knows the numbers of all tables: sums of the
numbers stand for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataObjects:
    """Fingerprint of a set of numbers: how many, their sum, the sum of their squares, and the
    newest one.

    Oracle gives each number once, in rising order. So the numbers up to ``newest`` are the old
    ones: if their fingerprint is the same at a later SCN, the table has lost none, whatever came
    since.
    """

    count: int
    total: int
    squares: int
    newest: int

    @classmethod
    def of(cls, numbers: Iterable[int]) -> DataObjects:
        """The fingerprint of numbers, of which there is at least one."""
        each = sorted(set(numbers))
        return cls(
            count=len(each),
            total=sum(each),
            squares=sum(one * one for one in each),
            newest=each[-1],
        )
