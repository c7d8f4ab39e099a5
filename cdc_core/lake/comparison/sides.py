"""Is a mirror equal to Oracle's rows as of one SCN?

Each side is looked at by itself first: its rows are spread over buckets by a hash of their key, and
each bucket is counted, digested (the rule below) and searched for keys that more than one row has.
Only where the two sides' buckets differ are
keys held against each other: one row per key and side, with count and digest. Buckets by hash,
unlike ranges, are the same on both sides whatever the key's type and the database's sort order are.

Memory and disk stay bounded: Oracle's side comes in parts, of which only the sums are kept; and of
the buckets that differ no more rows than ``MirrorComparison.rows_at_once`` are held against each
other. Beyond that the number of differing keys is a lower bound.

**The digest.** A value's text: ``N`` for NULL, else ``V`` and: integers and decimals plainly with
the type's scale; text with backslash doubled and the separator U+001F as ``\\u``; binary in
upper-case hex; ``true`` and ``false``; timestamps as microseconds since 1970-01-01; floats as Java
prints the shortest text, with -0 as 0. A row's text joins its columns, in the table's order, with
U+001F. A row's number is the first 15 hex digits of the SHA-256 of its text. The digest is the sum
of all rows' numbers, which no order of the rows changes. ``tests/lake/plain_digest.py`` has the
rule in plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cdc_core.model.reports import ComparisonEngine

HEX_DIGITS = 15
"""60 bits of each row: a sum over a billion billion rows still fits into 38 decimal digits."""


@dataclass(frozen=True, slots=True)
class Sums:
    """One bucket of one side, or a side as a whole."""

    rows: int = 0
    digest: int = 0
    double_keys: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.rows + other.rows,
            self.digest + other.digest,
            self.double_keys + other.double_keys,
        )


Side = Mapping[int, Sums]
"""Sums by bucket; a bucket without rows is not there."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """The buckets in which the sides differ or a key is double, as far as they are looked into;
    ``differences_beyond`` is how many keys differ at least in those that are not."""

    buckets: tuple[int, ...]
    differences_beyond: int


@dataclass(frozen=True, slots=True)
class Differences:
    """Keys that are not the same on both sides. ``keys`` are the first ones, as values of the lake
    in the key's order: row values, which the caller shows to nobody who did not ask."""

    count: int
    keys: tuple[tuple[Any, ...], ...]


class MirrorComparison(Protocol):
    """A version of one mirror that is compared."""

    @property
    def rows_at_once(self) -> int:
        """So many rows of both sides are held against each other at most."""
        ...

    @property
    def engine(self) -> ComparisonEngine:
        """Who compares."""
        ...

    def sums_of_files(self, paths: Sequence[str], *, held_only: bool = False) -> Side:
        """Sums of rows of Oracle that lie in Parquet files; with ``held_only`` of those whose keys
        the mirror has.

        Raises:
            LandingDamagedError: A file is missing or cannot be read.
        """
        ...

    def sums_of_mirror(self) -> Side:
        """Sums of the mirror.

        Raises:
            LakeError: The mirror does not have the version, or lacks a column there.
        """
        ...

    def keep_keys(
        self, paths: Sequence[str], wanted: Suspects, folder: str, *, held_only: bool = False
    ) -> None:
        """Of rows of Oracle in Parquet files, write keys, counts and digests of the wanted buckets
        into a new folder; ``held_only`` as for :meth:`sums_of_files`."""
        ...

    def differing_keys(
        self, kept: Sequence[str], wanted: Suspects, *, keys_max: int
    ) -> Differences:
        """Hold what :meth:`keep_keys` wrote against the mirror, key by key."""
        ...


def total(side: Side) -> Sums:
    """A side as a whole."""
    return sum(side.values(), Sums())


def added(sides: Iterable[Side]) -> Side:
    """Parts of one side that have no key in common, as one."""
    found: dict[int, Sums] = {}
    for part in sides:
        for bucket, sums in part.items():
            found[bucket] = found.get(bucket, Sums()) + sums
    return found


def suspects(oracle: Side, delta_side: Side, *, rows_max: int) -> Suspects:
    """Which buckets are to be looked into: as many as have ``rows_max`` rows, at least one."""
    nothing = Sums()
    differing = [
        bucket
        for bucket in sorted(oracle.keys() | delta_side.keys())
        if oracle.get(bucket, nothing) != delta_side.get(bucket, nothing)
        or oracle.get(bucket, nothing).double_keys
    ]
    taken: list[int] = []
    left, beyond = rows_max, 0
    for bucket in differing:
        rows = oracle.get(bucket, nothing).rows + delta_side.get(bucket, nothing).rows
        if not taken or rows <= left:
            taken.append(bucket)
            left -= rows
        else:
            ours, theirs = oracle.get(bucket, nothing), delta_side.get(bucket, nothing)
            beyond += max(1, abs(ours.rows - theirs.rows))
    return Suspects(tuple(taken), beyond)
