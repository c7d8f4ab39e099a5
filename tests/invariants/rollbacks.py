"""Do tables equal Oracle after transactions that take rows back in every way, wherever windows cut them?

    python -m tests.invariants.rollbacks [--transactions N] [--seed N]

Sessions side by side run transactions with nested savepoints, statements of several rows, statements that Oracle refuses and undoes, rows that
grow, rows that move to another partition, keys that change, LOBs of any size that are written whole or in part, and transactions that
end in ROLLBACK. Windows end between any two statements. All oddities of the embedded Oracle's LogMiner are on. Each table is held against
Oracle AS OF SCN at ends of windows, by the prover's comparison (:mod:`tests.invariants.compare`); then each change log must have every change
once. Then the same for statements with LOBs of every shape (:mod:`tests.invariants.lob_statements`). Exits 1 where they differ, or where the
run met too little of its kinds.

The release is 23ai, which shows what closes a statement with LOBs. Left out is what stops a table, as ``docs/limits.md`` says: in tables with
LOBs, a key that one transaction gives to two rows.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import oracledb

from tests.invariants import lob_statements
from tests.invariants.compare import judge
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

STATEMENTS_EVERY = 60
"""Of so many transactions, one more of statements with LOBs, in each shape of the redo."""
SESSIONS = 3
KEYS = 240
TABLES = ("PLAIN", "DOCS", "PARTS")
CREATE = (
    "CREATE TABLE PLAIN (ID NUMBER(9) PRIMARY KEY, N NUMBER(9) CHECK (N < 60), V VARCHAR2(4000))",
    "CREATE TABLE DOCS (ID NUMBER(9) PRIMARY KEY, N NUMBER(9) CHECK (N < 60), V VARCHAR2(4000), C CLOB, B BLOB)",
    "CREATE TABLE PARTS (ID NUMBER(9) PRIMARY KEY, N NUMBER(9) CHECK (N < 60), V VARCHAR2(4000))"
    " PARTITION BY RANGE (N) (PARTITION LOW VALUES LESS THAN (20), PARTITION MID VALUES LESS THAN (40),"
    " PARTITION HIGH VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT",
)
SHARES = {
    "savepoints taken back": 0.25,
    "statements of several rows": 0.25,
    "statements refused": 0.05,
    "LOBs written whole": 0.02,
    "LOBs written in part": 0.04,
    "rows that grow": 0.05,
    "rows to other partitions": 0.05,
    "keys that change": 0.01,
    "rolled back": 0.01,
}
"""Of each, so many at least for each transaction."""
_REFUSED = (1, 2290)
_SIZES = (3, 900, 2500, 6000)


class Session:
    """One session's transactions. Its rows are those whose ID has its number as the remainder by :data:`SESSIONS`: nobody waits."""

    def __init__(self, number: int, connection: Any, rng: random.Random, met: Counter[str]) -> None:
        self._number, self._connection, self._rng, self._met = number, connection, rng, met
        self._cursor = connection.cursor()
        self._next_key = KEYS
        self._called: set[int] = set()
        self._moved: set[int] = set()

    def fill(self) -> None:
        """Give each table most of the session's rows."""
        for table in TABLES:
            for key in range(self._number, KEYS, SESSIONS):
                self._insert_row(table, key)
        self._connection.commit()

    def transactions(self) -> Iterator[bool]:
        """Run one transaction after the other; gives after each statement whether a transaction has ended."""
        while True:
            self._called.clear()
            self._moved.clear()
            is_lost = self._rng.random() < 0.06
            for _ in self._block(0):
                yield False
            if is_lost:
                self._connection.rollback()
                self._met["rolled back"] += 1
            else:
                self._connection.commit()
            self._met["transactions"] += 1
            yield True

    def _block(self, depth: int) -> Iterator[None]:
        """Statements and blocks of savepoints."""
        for _ in range(self._rng.randint(1, 4 - depth)):
            if depth < 2 and self._rng.random() < 0.35:
                name = f"S{depth}"
                takes_back = self._rng.random() < 0.6
                called, moved = set(self._called), set(self._moved)
                self._cursor.execute(f"SAVEPOINT {name}")
                yield from self._block(depth + 1)
                if takes_back:
                    self._cursor.execute(f"ROLLBACK TO SAVEPOINT {name}")
                    self._met["savepoints taken back"] += 1
                    self._called, self._moved = called, moved
                    yield None
            else:
                self._statement()
                yield None

    def _statement(self) -> None:
        table = self._rng.choice((*TABLES, "DOCS"))
        kinds: list[Callable[[str], None]] = [
            self._insert, self._insert, self._update, self._grow, self._several, self._several, self._move, self._delete, self._delete_some,
        ]  # fmt: skip
        if table == "DOCS":
            kinds += [self._small_lob]
            kinds += [self._whole_lob, self._whole_lob, self._part_of_lob, self._part_of_lob]
        if table == "PARTS":
            kinds += [self._to_other_partition, self._to_other_partition]
        try:
            self._rng.choice(kinds)(table)
        except oracledb.IntegrityError as error:
            if error.args[0].code not in _REFUSED:
                raise
            self._met["statements refused"] += 1

    def _key(self) -> int:
        return self._rng.randrange(KEYS // SESSIONS) * SESSIONS + self._number

    def _run(self, sql: str, *binds: Any, sizes: dict[str, Any] | None = None) -> int:
        if sizes:
            self._cursor.setinputsizes(**sizes)
        self._cursor.execute(sql, binds)
        return int(self._cursor.rowcount)

    def _text(self, size: int) -> str:
        return "".join(self._rng.choices("ab'|();é日 \n", k=size))

    def _insert(self, table: str) -> None:
        key = self._key()
        if key not in self._moved:
            self._insert_row(table, key)

    def _insert_row(self, table: str, key: int) -> None:
        n, text = self._rng.randrange(55), self._text(5)
        if table != "DOCS":
            self._run(f"INSERT INTO {table} VALUES (:1, :2, :3)", key, n, text)
            return
        clob, blob = (
            self._text(self._rng.choice(_SIZES)),
            self._rng.randbytes(self._rng.choice(_SIZES)),
        )
        self._cursor.setinputsizes(None, None, None, oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_BLOB)
        self._cursor.execute(
            "INSERT INTO DOCS VALUES (:1, :2, :3, :4, :5)", [key, n, text, clob, blob]
        )

    def _update(self, table: str) -> None:
        self._run(f"UPDATE {table} SET V = :1 WHERE ID = :2", self._text(20), self._key())

    def _grow(self, table: str) -> None:
        sql = f"UPDATE {table} SET V = RPAD(V, LENGTH(V) + 1500, 'g') WHERE ID = :1 AND LENGTH(V) < 2500"
        self._met["rows that grow"] += self._run(sql, self._key())

    def _several(self, table: str) -> None:
        """It fails as a whole where one row is refused: Oracle undoes the others."""
        low = self._key()
        sql = f"UPDATE {table} SET N = N + :1 WHERE MOD(ID, :2) = :3 AND ID BETWEEN :4 AND :5"
        step = self._rng.randint(1, 6)
        rows = self._run(sql, step, SESSIONS, self._number, low, low + 30)
        self._met["statements of several rows"] += rows > 1

    def _delete_some(self, table: str) -> None:
        low = self._key()
        sql = f"DELETE FROM {table} WHERE MOD(ID, :1) = :2 AND ID BETWEEN :3 AND :4"
        self._met["statements of several rows"] += (
            self._run(sql, SESSIONS, self._number, low, low + 6) > 1
        )

    def _delete(self, table: str) -> None:
        self._run(f"DELETE FROM {table} WHERE ID = :1", self._key())

    def _move(self, table: str) -> None:
        key = self._key()
        if self._rng.random() < 0.6 or key in self._called:
            return
        self._next_key += 1
        to = self._next_key * SESSIONS + self._number
        rows = self._run(f"UPDATE {table} SET ID = :1 WHERE ID = :2", to, key)
        self._met["keys that change"] += rows
        self._moved.add(key)

    def _to_other_partition(self, table: str) -> None:
        sql = f"UPDATE {table} SET N = MOD(N + 20, 60) WHERE ID = :1"
        self._met["rows to other partitions"] += self._run(sql, self._key())

    def _small_lob(self, table: str) -> None:
        self._run(f"UPDATE {table} SET C = :1, N = 1 WHERE ID = :2", self._text(30), self._key())

    def _whole_lob(self, table: str) -> None:
        self._cursor.setinputsizes(oracledb.DB_TYPE_CLOB, None)
        self._cursor.execute(
            f"UPDATE {table} SET C = :1 WHERE ID = :2",
            [self._text(self._rng.choice(_SIZES)), self._key()],
        )
        self._met["LOBs written whole"] += self._cursor.rowcount

    def _part_of_lob(self, table: str) -> None:
        key = self._key()
        self._cursor.execute(f"SELECT C, B FROM {table} WHERE ID = :1 FOR UPDATE", [key])
        found = self._cursor.fetchone()
        if found is None or found[0] is None or key in self._moved:
            return
        clob, blob = found
        match self._rng.randrange(3):
            case 0:
                clob.write(self._text(20), clob.size() + 1)
            case 1:
                blob.write(self._rng.randbytes(50), self._rng.randint(1, blob.size() + 1))
            case _:
                clob.trim(self._rng.randint(1, clob.size()))
        self._called.add(key)
        self._met["LOBs written in part"] += 1


def run(transactions: int, seed: int, folder: Path) -> Counter[str]:
    """Run so many transactions, and compare; returns what was met.

    Raises:
        AssertionError: A table is not equal, a change is there twice, or too little was met.
    """
    rng, met = random.Random(seed), Counter[str]()
    with running_oracle(release="23ai") as oracle:
        oracle.run(*CREATE)
        more = {"capture": {"close_at": "online", "lobs": "reselect"}}
        with source_of(oracle, folder, *TABLES, **more) as source, ExitStack() as stack:
            owners = [stack.enter_context(oracle.owner()) for _ in range(SESSIONS)]
            opened = [Session(number, owner, rng, met) for number, owner in enumerate(owners)]
            for session in opened:
                session.fill()
            source.run()
            sessions = [session.transactions() for session in opened]
            until_window = until_comparison = 0
            while met["transactions"] < transactions:
                next(rng.choice(sessions))
                until_window -= 1
                if until_window <= 0:
                    until_window = rng.choice((1, 5, 50, 400, 1200))
                    source.windows()
                    met["windows"] += 1
                    until_comparison -= 1
                    if until_comparison <= 0:
                        until_comparison = max(1, transactions // 400)
                        compare(oracle, source, met)
            for running in sessions:
                while not next(running):
                    pass
            source.windows()
            compare(oracle, source, met)
            check_change_logs(source, met)
    lacking = {
        kind: (met[kind], int(share * transactions))
        for kind, share in SHARES.items()
        if met[kind] < int(share * transactions)
    }
    assert not lacking, f"met, and wanted at least: {lacking}"
    return met


def compare(oracle: Oracle, source: Source, met: Counter[str]) -> None:
    """Hold each table against Oracle as of its position."""
    for name in TABLES:
        record = source.record(name)
        assert record.state == "ready", (name, record.reason)
        found = source.lake.tables[table_id(name)]
        rows = [values for values, _, _ in found.rows.values()]
        with oracle.owner() as connection:
            verdict = judge(
                connection,
                name,
                ["ID"],
                record.mirror_scn or 0,
                lambda names, rows=rows: [tuple(row[one] for one in names) for row in rows],  # type: ignore[misc]
            )
        assert verdict.is_equal, (name, record.mirror_scn, verdict)
        met["comparisons"] += 1
        met["rows compared"] += verdict.rows_oracle


def check_change_logs(source: Source, met: Counter[str]) -> None:
    """Each change is there once."""
    for name in TABLES:
        changes = source.lake.tables[table_id(name)].changes
        places = {one["_cdc_ordinal"] for one in changes}
        assert len(places) == len(changes), name
        met["changes"] += len(changes)


def main() -> int:
    """Run by the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    asked = parser.parse_args()
    print(f"--transactions {asked.transactions} --seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            met = run(asked.transactions, asked.seed, Path(folder, "rows"))
            statements = asked.transactions // STATEMENTS_EVERY
            met += lob_statements.run(statements, asked.seed, Path(folder, "statements"))
        except AssertionError as error:
            traceback.print_exception(error)
            return 1
    for kind, count in met.most_common():
        print(f"{count:>9,}  {kind}")
    print("every table equals Oracle, wherever it was compared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
