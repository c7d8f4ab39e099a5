"""The prover's tables of other shapes: partitioned with rows that move, index-organized, in a cluster, and with names that SQL has to quote.

Those with odd names share a cluster, so that rows of one have the ROWIDs of rows of the other.
Two of them have the same columns and names that differ by their case alone, so that a quote that is lost reads and writes the other one. The
longest name and a column of that table have 30 bytes: LogMiner does not support longer ones, and preflight refuses them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, Protocol

NAME_BYTES = 30
PARTS = "PARTS"
CAME = "came"
INDEXED, TWIN = "PLACES", "places"
CLUSTER = "REGIONS"
WORD = "SELECT"
LONGEST = "no. 1/Größe "
LONGEST += "ö" * ((NAME_BYTES - len(LONGEST.encode())) // 2)
LONG_COLUMN = "it's; a.b "
LONG_COLUMN += "€" * ((NAME_BYTES - len(LONG_COLUMN.encode())) // 3)
PLAIN = re.compile(r"[A-Z][A-Z0-9_$#]*\Z")
HIGHS = {"P1": 100, "P2": 200, "P3": 300}
"""The partitions of PARTS below the last one, each with the number of K at which it ends."""
LAST = "PX"
K_MAX = 400
FIRST_ROWS = 18
FIRST_PARTS = 48
ROWS_KEPT = 30
"""Of PARTS no row is deleted when there are fewer, since a partition may go with a quarter of them."""


def quoted(name: str) -> str:
    """A name for SQL."""
    return f'"{name}"'


def written(name: str) -> str:
    """A name as people write it: in quotes where it needs them."""
    return name if PLAIN.match(name) else quoted(name)


@dataclass(frozen=True, slots=True)
class Shape:
    """A table with a key of two columns, a text and a number."""

    table: str
    columns: tuple[str, str, str, str]
    tail: str = ""

    @property
    def ddl(self) -> str:
        first, second, text, number = map(quoted, self.columns)
        return (
            f"CREATE TABLE {quoted(self.table)} ({first} NUMBER(9), {second} VARCHAR2(20), {text} VARCHAR2(60), {number} NUMBER,"
            f" PRIMARY KEY ({first}, {second})) {self.tail}"
        )

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that name a row."""
        return self.columns[:2]


SHAPES = (
    Shape(INDEXED, ("AREA", "SPOT", "NOTE", "N"), "ORGANIZATION INDEX"),
    Shape(TWIN, ("AREA", "SPOT", "NOTE", "N")),
    Shape(WORD, ("order id", "from", "a.b c", "Größe €"), f'CLUSTER {CLUSTER} ("order id")'),
    Shape(LONGEST, ("Key", "WHERE", LONG_COLUMN, "{,}"), f'CLUSTER {CLUSTER} ("Key")'),
)
CLUSTER_DDL = (
    f"CREATE CLUSTER {CLUSTER} (AREA NUMBER(9)) SIZE 512",
    f"CREATE INDEX {CLUSTER}_INDEX ON CLUSTER {CLUSTER}",
)
PARTS_DDL = (
    f"CREATE TABLE {PARTS} (ID NUMBER(9) PRIMARY KEY, K NUMBER(9), V VARCHAR2(30)) PARTITION BY RANGE (K) ("
    + ", ".join(f"PARTITION {name} VALUES LESS THAN ({high})" for name, high in HIGHS.items())
    + f", PARTITION {LAST} VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT"
)
DDL = (PARTS_DDL, *CLUSTER_DDL, *(shape.ddl for shape in SHAPES))
TABLES = (PARTS, *(shape.table for shape in SHAPES))
KEYS: dict[str, tuple[str, ...]] = {PARTS: ("ID",), **{one.table: one.key for one in SHAPES}}


class Statements(Protocol):
    """The load that the changes are part of."""

    def one(self, table: str, op: str, sql: str) -> None:
        """A statement that changes one row."""

    def many(self, table: str, op: str, sql: str) -> None:
        """A statement that changes any number of rows."""

    def count(self, changes: Counter[tuple[str, str]]) -> None:
        """Changes of a statement that counts them otherwise."""

    def run(self, sql: str) -> int:
        """Any statement; the number of its rows."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query finds."""

    def undone(self) -> AbstractContextManager[None]:
        """What the block changes is rolled back to a savepoint."""


class Emptied(NamedTuple):
    """What takes the rows of a partition: the statements before it, itself, and those behind it, with the number of these rows. Of those
    that ``came`` by an EXCHANGE, a chunk may not have read all before they go."""

    before: list[str]
    ddl: str
    behind: list[str]
    rows: int
    came: int


@dataclass
class Shapes:
    """What happens to these tables. Draws from dice of its own, so that the rest of the load is the same with and without it."""

    load: Statements
    dice: Random = field(default_factory=Random)
    highs: dict[str, int] = field(default_factory=lambda: dict(HIGHS))
    _number: int = 1000

    def fill(self) -> None:
        """The first rows."""
        for shape in SHAPES:
            for number in range(FIRST_ROWS):
                self._insert(shape, number % 3, f"s{number}")
        for _ in range(FIRST_PARTS):
            self._insert_part(self.dice.randrange(K_MAX))

    def change(self) -> None:
        """Some changes of each table, of which some are taken back."""
        for shape in SHAPES:
            self._change_row(shape)
            if self.dice.random() < 0.4:
                with self.load.undone():
                    for _ in range(self.dice.randint(1, 3)):
                        self._change_row(shape)
            if self.dice.random() < 0.5:
                self._change_row(shape)
        for _ in range(self.dice.randint(1, 3)):
            self._change_part()
        if self.dice.random() < 0.4:
            with self.load.undone():
                self._change_part()
                self._change_part()

    # -- keys of two columns -----------------------------------------------------------------------------------------

    def _change_row(self, shape: Shape) -> None:
        table = quoted(shape.table)
        first, second, text, number = map(quoted, shape.columns)
        keys = self.load.rows(f"SELECT {first}, {second} FROM {table} ORDER BY {first}, {second}")
        a, b = self.dice.choice(keys)
        where = f"WHERE {first} = {a} AND {second} = '{b}'"
        match self.dice.randrange(7):
            case 0:
                self._insert(shape, a, self._fresh())
            case 1 if len(keys) > FIRST_ROWS:
                self.load.one(shape.table, "d", f"DELETE FROM {table} {where}")
            case 2:
                self.load.one(shape.table, "d", f"DELETE FROM {table} {where}")
                self._insert(shape, a, b)
            case 3:
                self._rekey(shape, f"{second} = '{self._fresh()}' {where}")
            case 4:
                self._rekey(shape, f"{first} = {first} + 1")
            case 5:
                self.load.many(shape.table, "u", f"UPDATE {table} SET {number} = {self.dice.randrange(99)}.5 WHERE {first} = {a}")  # fmt: skip
            case _:
                self.load.one(shape.table, "u", f"UPDATE {table} SET {text} = 'it''s {self._fresh()}' {where}")  # fmt: skip

    def _rekey(self, shape: Shape, sets: str) -> None:
        """Keys change; in an index-organized table such a row is deleted there and inserted here."""
        rows = self.load.run(f"UPDATE {quoted(shape.table)} SET {sets}")
        ops = "dc" if shape.table == INDEXED else "u"
        self.load.count(Counter({(shape.table, op): rows for op in ops}))

    def _insert(self, shape: Shape, first: int, second: str) -> None:
        names = ", ".join(map(quoted, shape.columns))
        values = (
            f"{first}, '{second}', '{shape.table[:20]}', {self.dice.choice(('NULL', '1', '0.25'))}"
        )
        self.load.one(
            shape.table, "c", f"INSERT INTO {quoted(shape.table)} ({names}) VALUES ({values})"
        )

    def _fresh(self) -> str:
        self._number += 1
        return f"f{self._number}"

    # -- partitions --------------------------------------------------------------------------------------------------

    def _change_part(self) -> None:
        found = self.load.rows(f"SELECT ID, K FROM {PARTS} ORDER BY ID")
        number, k = self.dice.choice(found)
        match self.dice.randrange(6):
            case 0:
                self._insert_part(self.dice.randrange(K_MAX))
            case 1 if len(found) > ROWS_KEPT:
                self.load.one(PARTS, "d", f"DELETE FROM {PARTS} WHERE ID = {number}")
            case 2:
                self._number += 1
                self.load.one(PARTS, "u", f"UPDATE {PARTS} SET ID = {self._number} WHERE ID = {number}")  # fmt: skip
            case 3:
                self._move([(number, k)], lambda _: self.dice.randrange(K_MAX))
            case 4:
                some = self.dice.sample(found, 3)
                self._move(some, lambda k: (k + 100) % K_MAX)
            case _:
                self.load.one(PARTS, "u", f"UPDATE {PARTS} SET V = 'v{number}', K = K WHERE ID = {number}")  # fmt: skip

    def _move(self, rows: list[tuple[Any, ...]], place: Callable[[int], int]) -> None:
        """Rows get another K: each that goes to another partition is deleted there and inserted here."""
        for number, k in rows:
            new = place(k)
            moves = self._partition_of(k) != self._partition_of(new)
            self.load.run(f"UPDATE {PARTS} SET K = {new}, V = 'moved' WHERE ID = {number}")
            ops = "dc" if moves else "u"
            self.load.count(Counter({(PARTS, op): 1 for op in ops}))

    def _insert_part(self, k: int) -> None:
        self._number += 1
        self.load.one(PARTS, "c", f"INSERT INTO {PARTS} VALUES ({self._number}, {k}, 'first')")

    def _partition_of(self, k: int) -> str:
        names = (name for name, high in self.highs.items() if k < high)
        return next(names, LAST)

    def empty_partition(self) -> Emptied:
        """DDL that takes the rows of a partition. An EXCHANGE brings others in their place, a DROP is followed by a partition in the place of the one
        that went."""
        name = self.dice.choice([*self.highs, LAST])
        found = self.load.rows(f"SELECT K, V FROM {PARTS}")
        own = [text for k, text in found if self._partition_of(k) == name]
        rows, came_before = len(own), own.count(CAME)
        how = self.dice.choice(("TRUNCATE", "EXCHANGE", "DROP"))
        if how == "EXCHANGE":
            came = f"CAME_{self._fresh()}".upper()
            exchange = (
                f"ALTER TABLE {PARTS} EXCHANGE PARTITION {name} WITH TABLE {came} INCLUDING INDEXES"
            )
            gone = [f"DROP TABLE {came} PURGE"]
            return Emptied(self._coming(came, name), exchange, gone, rows, came_before)
        if name == LAST or how == "TRUNCATE":
            truncate = f"ALTER TABLE {PARTS} TRUNCATE PARTITION {name}"
            return Emptied([], truncate, [], rows, came_before)
        names = list(self.highs)
        after = [*names, LAST][names.index(name) + 1]
        fresh, high = f"P{self._fresh()}".upper(), self.highs[name]
        self.highs = {fresh if one == name else one: top for one, top in self.highs.items()}
        split = f"ALTER TABLE {PARTS} SPLIT PARTITION {after} AT ({high}) INTO (PARTITION {fresh}, PARTITION {after})"
        drop = f"ALTER TABLE {PARTS} DROP PARTITION {name}"
        return Emptied([], drop, [split], rows, came_before)

    def _coming(self, table: str, partition: str) -> list[str]:
        """A table with some rows of a partition, under keys that PARTS has not had."""
        fitting = [k for k in range(K_MAX) if self._partition_of(k) == partition]
        made = [f"CREATE TABLE {table} (ID NUMBER(9) PRIMARY KEY, K NUMBER(9), V VARCHAR2(30))"]
        for k in self.dice.sample(fitting, min(5, len(fitting))):
            self._number += 1
            made.append(f"INSERT INTO {table} VALUES ({self._number}, {k}, '{CAME}')")
        return made

    def refill(self) -> None:
        """Rows in all partitions again."""
        for low in range(0, K_MAX, 20):
            self._insert_part(low + self.dice.randrange(20))
