"""Rows on their way through keys, for tests: statements by a seed, of tables of which the redo does not carry every column."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import oracledb

from tests.oracle.embedded import Oracle

VALUES: dict[str, tuple[int, ...]] = {
    "CLOB": (0, 5, 1500, 4500, 9000),
    "BLOB": (0, 5, 1500, 9000),
    "VARCHAR2(32767)": (0, 5, 3000, 9000),
    "XMLTYPE": (0, 3, 900, 5000),
}
"""Sizes of values by type: some in the row, some beside it, and NULL."""

KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "clob-and-blob": ("NUMBER(9) PRIMARY KEY", {"C": "CLOB", "B": "BLOB"}),
    "extended-string": ("NUMBER(9) PRIMARY KEY", {"C": "CLOB", "E": "VARCHAR2(32767)"}),
    "document": ("NUMBER(9) PRIMARY KEY", {"X": "XMLTYPE", "C": "CLOB"}),
    "deferred-key": (
        "NUMBER(9) PRIMARY KEY DEFERRABLE INITIALLY DEFERRED",
        {"C": "CLOB", "B": "BLOB"},
    ),
}
"""Tables: what their key is, and their columns that changes lack."""

_INPUTS = {"c": oracledb.DB_TYPE_CLOB, "b": oracledb.DB_TYPE_BLOB}


def create(oracle: Oracle, table: str, kind: str, *, rows: int) -> None:
    """A table of the kind, with rows 1, 2, …"""
    key, columns = KINDS[kind]
    listed = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
    oracle.run(f"CREATE TABLE {table} (ID {key}, N NUMBER(9), {listed})")
    with oracle.owner() as connection:
        cursor, rng = connection.cursor(), random.Random(table)
        for number in range(1, rows + 1):
            values = {name.lower(): value(rng, type_) for name, type_ in columns.items()}
            _insert(cursor, table, number, columns, values)
        connection.commit()


def value(rng: random.Random, type_: str) -> str | bytes | None:
    """A value of one of the sizes, with what redo must quote."""
    size = rng.choice(VALUES[type_])
    if type_ == "BLOB":
        return rng.randbytes(size) or None
    text = "".join(rng.choices("ab'|();é日\n", k=size // 3 if type_[0] == "V" else size))
    if type_ == "XMLTYPE":
        return f"<a x='1'>{text}</a>" if size else None
    return text or None


def put(cursor: Any, sql: str, values: dict[str, Any]) -> None:
    """A statement; values of LOBs are bound as LOBs."""
    kinds = {name: kind for name, kind in _INPUTS.items() if name in values}
    cursor.setinputsizes(**kinds)
    cursor.execute(sql, values)


def _insert(
    cursor: Any, table: str, key: int, columns: dict[str, str], values: dict[str, Any]
) -> None:
    names = [name for name in columns if name.lower() in values]
    listed, bound = ", ".join(["ID", "N", *names]), "".join(f", :{name.lower()}" for name in names)
    put(cursor, f"INSERT INTO {table} ({listed}) VALUES (:id, 0{bound})", {"id": key, **values})


@dataclass
class Walk:
    """Statements on one table, in transactions of their own or together, of which some are taken back."""

    table: str
    kind: str
    rng: random.Random
    keys: list[int] = field(default_factory=lambda: [1, 2, 3, 4])
    log: list[str] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, str]:
        """The columns that changes lack."""
        return KINDS[self.kind][1]

    def transaction(self, connection: Any) -> None:
        """Some statements, and COMMIT or, rarely, ROLLBACK."""
        before = list(self.keys)
        cursor = connection.cursor()
        for _ in range(self.rng.randint(1, 4)):
            self.statement(cursor)
        if self.rng.random() < 0.1:
            connection.rollback()
            self.keys = before
            self.log.append("ROLLBACK")
        else:
            connection.commit()
            self.log.append("COMMIT")

    def statement(self, cursor: Any) -> None:
        """One that some row is changed by."""
        free = [key for key in range(1, 9) if key not in self.keys]
        one = self.rng.choice(self.keys) if self.keys else None
        which = self.rng.randrange(10)
        if which == 0 and free:
            self._insert(cursor, self.rng.choice(free))
        elif one is None:
            return
        elif which == 1:
            self._run(cursor, f"DELETE FROM {self.table} WHERE ID = {one}", {})
            self.keys.remove(one)
            if self.rng.random() < 0.5:
                self._insert(cursor, one)
        elif which == 2:
            self._shift(cursor)
        elif which == 3 and len(self.keys) > 1:
            self._swap(cursor)
        elif which < 7 and free:
            self._move(cursor, one, self.rng.choice(free))
        else:
            self._write(cursor, one)

    def _run(self, cursor: Any, sql: str, values: dict[str, Any]) -> None:
        sizes = {
            name: one if isinstance(one, int) else len(one or "") for name, one in values.items()
        }
        self.log.append(f"{sql} {sizes or ''}")
        put(cursor, sql, values)

    def _insert(self, cursor: Any, key: int) -> None:
        names = [name for name in self.columns if self.rng.random() < 0.8]
        values = {name.lower(): value(self.rng, self.columns[name]) for name in names}
        self.log.append(f"INSERT {key} {[(n, len(v or '')) for n, v in values.items()]}")
        _insert(cursor, self.table, key, self.columns, values)
        self.keys.append(key)

    def _shift(self, cursor: Any) -> None:
        if max(self.keys) < 8:
            self._run(cursor, f"UPDATE {self.table} SET ID = ID + 1", {})
            self.keys = [key + 1 for key in self.keys]
        elif min(self.keys) > 1:
            self._run(cursor, f"UPDATE {self.table} SET ID = ID - 1", {})
            self.keys = [key - 1 for key in self.keys]

    def _swap(self, cursor: Any) -> None:
        one, other = self.rng.sample(self.keys, 2)
        sql = f"UPDATE {self.table} SET ID = {one + other} - ID WHERE ID IN ({one}, {other})"
        self._run(cursor, sql, {})

    def _move(self, cursor: Any, key: int, to: int) -> None:
        also = self._sets() if self.rng.random() < 0.2 else {}
        more = "".join(f", {name} = :{name.lower()}" for name in also)
        values = {name.lower(): one for name, one in also.items()}
        self._run(cursor, f"UPDATE {self.table} SET ID = {to}{more} WHERE ID = {key}", values)
        self.keys[self.keys.index(key)] = to

    def _write(self, cursor: Any, key: int) -> None:
        sets = self._sets()
        if self.rng.random() < 0.3:
            self._run(cursor, f"UPDATE {self.table} SET N = N + 1 WHERE ID = {key}", {})
        listed = ", ".join(f"{name} = :{name.lower()}" for name in sets)
        values = {name.lower(): one for name, one in sets.items()}
        self._run(cursor, f"UPDATE {self.table} SET {listed} WHERE ID = {key}", values)

    def _sets(self) -> dict[str, Any]:
        names = self.rng.sample(sorted(self.columns), self.rng.randint(1, len(self.columns)))
        return {name: value(self.rng, self.columns[name]) for name in names}
