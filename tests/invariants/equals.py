"""The prover's table without a key whose rows nothing but their values tells apart: what happens to it, and what its change log may say.

Some of its rows are equal at any time. Both judges see it as a multiset: the one of its rows in :mod:`tests.invariants.compare`, and here
the one of its change log, a number of copies for each row of values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Protocol

TABLE = "EQUALS"
DDL = f"CREATE TABLE {TABLE} (N NUMBER(3), V VARCHAR2(12), W NUMBER) ENABLE ROW MOVEMENT"
COLUMNS = ("N", "V", "W")
FIRST_ROWS = 40
KINDS = 7
"""Values of N: with so few, rows are equal again and again."""

Values = tuple[Any, ...]
Image = dict[str, Any]


class Statements(Protocol):
    """The load that the changes are part of."""

    random: Random

    def one(self, table: str, op: str, sql: str) -> None:
        """A statement that changes one row."""

    def many(self, table: str, op: str, sql: str) -> None:
        """A statement that changes any number of rows."""


def fill(load: Statements) -> None:
    """The first rows; most of them have equals."""
    for number in range(FIRST_ROWS):
        load.one(TABLE, "c", f"INSERT INTO {TABLE} VALUES ({number % KINDS}, 'first', NULL)")


def change(load: Statements) -> None:
    """Copies come, one of several goes, rows become equal to others, and rows are written as they were."""
    for _ in range(load.random.randint(1, 4)):
        n = load.random.randrange(KINDS)
        match load.random.randrange(6):
            case 0:
                for _ in range(load.random.randint(1, 3)):
                    load.one(TABLE, "c", f"INSERT INTO {TABLE} VALUES ({n}, 'again', 0.5)")
            case 1:
                load.one(TABLE, "c", f"INSERT INTO {TABLE} VALUES ({n}, NULL, NULL)")
            case 2:
                place = f"SELECT MIN(ROWID) FROM {TABLE} WHERE N = {n}"
                load.many(TABLE, "d", f"DELETE FROM {TABLE} WHERE ROWID = ({place})")
            case 3:
                load.many(TABLE, "u", f"UPDATE {TABLE} SET V = 'again', W = 0.5 WHERE N = {n}")
            case 4:
                load.many(
                    TABLE,
                    "u",
                    f"UPDATE {TABLE} SET N = {n}, V = V WHERE MOD(N, 3) = 1 AND ROWNUM <= 3",
                )
            case _:
                load.many(TABLE, "d", f"DELETE FROM {TABLE} WHERE N = {n} AND ROWNUM <= 2")
                load.one(TABLE, "c", f"INSERT INTO {TABLE} VALUES ({n}, 'first', NULL)")


def values_of(image: Mapping[str, Any]) -> Values:
    """What identifies a row."""
    return tuple(image[name] for name in COLUMNS)


class Piles:
    """The copies of each row as the change log tells of them. The snapshot's rows have what committed up to its SCN."""

    def __init__(self, changelog: Sequence[Mapping[str, Any]]) -> None:
        self.found: list[str] = []
        read = {row["_cdc_commit_scn"] for row in changelog if row["_cdc_op"] == "r"}
        if len(read) > 1:
            self.found.append(f"{TABLE}: chunks of one snapshot were read as of {len(read)} SCNs")
        self._read_scn = max(read, default=0)
        self._copies: Counter[Values] = Counter()

    def step(self, row: Mapping[str, Any]) -> None:
        """Take the next row of the log."""
        op, scn = row["_cdc_op"], row["_cdc_commit_scn"]
        if op != "r" and scn <= self._read_scn:
            return
        if op in "ud":
            values = values_of(row["before"])
            if not self._copies[values]:
                self.found.append(
                    f"{TABLE} at {scn}/{row['_cdc_ordinal']}: a copy goes that is not there"
                )
            else:
                self._copies[values] -= 1
        if op in "cur":
            self._copies[values_of(row["after"])] += 1

    def end_transaction(self) -> None:
        """Any number of rows may be equal."""

    def image(self) -> dict[Values, Image]:
        """How many copies of each row the log leads to."""
        return _counts(+self._copies)

    @staticmethod
    def image_of(_table: str, rows: Sequence[Image]) -> dict[Values, Image]:
        """The same of a mirror's rows."""
        return _counts(Counter(map(values_of, rows)))


def _counts(copies: Counter[Values]) -> dict[Values, Image]:
    return {values: {"copies": count} for values, count in copies.items()}
