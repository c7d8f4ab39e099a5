"""Do tables with LOBs equal Oracle after statements of every shape were taken back, for every identity, or do they stop by name?

    python -m tests.invariants.rollbacks [--transactions N] [--seed N]

A transaction runs statements on a few rows: LOBs large, small, NULL, EMPTY, written through a locator in chunks; one row or several; some
fail in their middle (ORA-01438, ORA-00001); inside nested savepoints of which some are taken back. Its tables are identified by key and by
ROWID; all columns cannot identify rows with LOBs. The embedded Oracle shows the rows as 23ai does, and
in the shapes of its other switches. After each transaction a window ends, and each table must equal Oracle, or have stopped with a problem of a
partial rollback: then it is read again (:data:`REASONS`).
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import oracledb

from oracle_embedded.redo import LobRows, Wart
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of

COLUMNS = "ID NUMBER(9) PRIMARY KEY, TXT VARCHAR2(100), N NUMBER(3), CL CLOB, NCL NCLOB, BL BLOB"
ROWS = 6
SHAPES: tuple[tuple[LobRows, frozenset[Wart]], ...] = (
    (LobRows.BLOCKS, frozenset()),
    (LobRows.PIECES, frozenset()),
    (LobRows.BLOCKS, frozenset({Wart.LOB_INSERTS_TOGETHER})),
    (LobRows.BLOCKS, frozenset({Wart.LOB_INSERTS_TOGETHER, Wart.LOB_UPDATES_UNPLACED})),
    (LobRows.PIECES, frozenset({Wart.LOB_UPDATES_UNPLACED})),
)
"""How rows are written, and which switches are on."""
REASONS = {
    "key": ("does not show which rows are of that statement", "the redo carries a part of a LOB"),
    "rowid": (
        "does not show the ROWID of a row of a table with LOBs",
        "the redo carries a part of a LOB",
    ),
}
"""What may stop a table of each kind, where row pieces of an INSERT of several rows stand together. A part of a LOB is not read from Oracle where
something else of its transaction is not understood."""
_KINDS = {"CL": oracledb.DB_TYPE_CLOB, "NCL": oracledb.DB_TYPE_NCLOB, "BL": oracledb.DB_TYPE_BLOB}
_FAILS = (1, 1438)


@dataclass
class Load:
    """The transactions of one table."""

    table: str
    connection: Any
    rng: random.Random
    met: Counter[str] = field(default_factory=Counter)
    next_key: int = 1000

    def transaction(self) -> None:
        """Run one, and commit it."""
        self._block(0)
        self._run(f"UPDATE {self.table} SET TXT = :1 WHERE ID = 0", str(self.rng.random()))
        self.connection.commit()
        self.met["transactions"] += 1

    def _block(self, depth: int) -> None:
        for _ in range(self.rng.randint(1, 3)):
            if depth < 2 and self.rng.random() < 0.5:
                cursor = self.connection.cursor()
                cursor.execute(f"SAVEPOINT S{depth}")
                self._block(depth + 1)
                if self.rng.random() < 0.65:
                    cursor.execute(f"ROLLBACK TO SAVEPOINT S{depth}")
                    self.met["savepoints taken back"] += 1
            else:
                self._statement()

    def _statement(self) -> None:
        chosen = self.rng.choice(
            (self._update, self._update, self._update, self._plain, self._insert, self._copy, self._copy, self._delete, self._call)
        )  # fmt: skip
        try:
            chosen()
        except oracledb.DatabaseError as error:
            if error.args[0].code not in _FAILS:
                raise
            self.met["statements that failed"] += 1

    def _run(self, sql: str, *values: Any, kinds: tuple[Any, ...] = ()) -> int:
        cursor = self.connection.cursor()
        if kinds:
            cursor.setinputsizes(*kinds)
        cursor.execute(sql, list(values))
        return int(cursor.rowcount)

    def _value(self, column: str) -> Any:
        """A LOB of any size; one above a chunk has several pieces."""
        size = self.rng.choice((None, 0, 3, 1500, 5000, 9000, 20_000))
        self.met[f"LOB of {size}"] += 1
        if size is None:
            return None
        if column == "BL":
            return self.rng.randbytes(size)
        return "".join(self.rng.choices("ab'é\n;", k=size))

    def _rows(self) -> str:
        """A condition for one row or several; the last ones make N too large."""
        low = self.rng.randrange(1, ROWS)
        return f"ID BETWEEN {low} AND {low + self.rng.choice((0, 0, 1, 3))}"

    def _update(self) -> None:
        lobs = self.rng.sample(sorted(_KINDS), self.rng.randint(1, 3))
        values = [self._value(column) for column in lobs]
        sets = [f"{column} = :{at}" for at, column in enumerate(lobs, 1)]
        kinds = [_KINDS[column] for column in lobs]
        for at, column in enumerate(lobs):
            if values[at] in ("", b""):
                sets[at] = f"{column} = EMPTY_{'BLOB' if column == 'BL' else 'CLOB'}()"
        kept = [at for at, value in enumerate(values) if value not in ("", b"")]
        if self.rng.random() < 0.4:
            sets.append("N = N + 1")
        names = {at: number for number, at in enumerate(kept, 1)}
        sets = [
            one if at not in names else f"{lobs[at]} = :{names[at]}" for at, one in enumerate(sets)
        ]
        sql = f"UPDATE {self.table} SET {', '.join(sets)} WHERE {self._rows()}"
        self._run(sql, *(values[at] for at in kept), kinds=tuple(kinds[at] for at in kept))

    def _plain(self) -> None:
        self._run(f"UPDATE {self.table} SET TXT = :1 WHERE {self._rows()}", str(self.rng.random()))

    def _insert(self) -> None:
        self.next_key += 1
        key = self.rng.choice((self.next_key, self.next_key, 1))
        values = [self._value(column) for column in _KINDS]
        kinds = (None, *_KINDS.values())
        self._run(
            f"INSERT INTO {self.table} VALUES (:1, 'new', 1, :2, :3, :4)", key, *values, kinds=kinds
        )

    def _copy(self) -> None:
        """Several rows at once; they fail at their end where one key is there."""
        low = self.next_key + 1
        self.next_key += 10
        last = self.rng.choice(("ID", "ID", f"CASE ID WHEN 3 THEN 1 - {low} ELSE ID END"))
        large = self.rng.choice(("CL", "NULL", "EMPTY_CLOB()"))
        sql = f"INSERT INTO {self.table} SELECT {last} + {low}, TXT, N, {large}, NCL, BL FROM {self.table} WHERE {self._rows()}"
        self.met["INSERTs of several rows"] += self._run(sql) > 1

    def _delete(self) -> None:
        key = self.rng.randrange(1001, max(1002, self.next_key + 1))
        self._run(f"DELETE FROM {self.table} WHERE ID = :1", key)

    def _call(self) -> None:
        """What is written through a locator, in chunks."""
        cursor = self.connection.cursor()
        key = self.rng.randrange(1, ROWS)
        cursor.execute(f"SELECT CL, BL FROM {self.table} WHERE ID = :1 FOR UPDATE", [key])
        found = cursor.fetchone()
        if found is None or found[0] is None or found[1] is None:
            return
        clob, blob = found
        if self.rng.random() < 0.5:
            clob.write("call " * self.rng.choice((1, 1000)), clob.size() + 1)
        else:
            blob.write(self.rng.randbytes(self.rng.choice((10, 9000))), 1)
        self.met["calls"] += 1


def run(transactions: int, seed: int, folder: Path) -> Counter[str]:
    """Run so many transactions in each shape of the redo, on a table of each kind; returns what was met.

    Raises:
        AssertionError: A table is not equal, or stopped for another reason than it may.
    """
    met = Counter[str]()
    for number, (lob_rows, shown) in enumerate(SHAPES):
        rng = random.Random(f"{seed}/{number}")
        with running_oracle(lob_rows=lob_rows, release="23ai") as oracle:
            for wart in (Wart.LOB_INSERTS_TOGETHER, Wart.LOB_UPDATES_UNPLACED):
                oracle.database.redo.set_wart(wart, shown=wart in shown)
            may_stop = Wart.LOB_INSERTS_TOGETHER in shown
            _run_shape(oracle, transactions, rng, folder / str(number), met, may_stop=may_stop)
    return met


def _run_shape(
    oracle: Oracle,
    transactions: int,
    rng: random.Random,
    folder: Path,
    met: Counter[str],
    *,
    may_stop: bool,
) -> None:
    loads = {}
    with ExitStack() as stack:
        for kind in REASONS:
            table = f"T_{kind.upper()}"
            oracle.run(f"CREATE TABLE {table} ({COLUMNS})")
            filled = [
                f"INSERT INTO {table} VALUES ({key}, 'old', {999 if key == ROWS - 1 else 1}, 'c', 'n', HEXTORAW('01'))"
                for key in range(ROWS)
            ]
            oracle.run(*filled)
            owner = stack.enter_context(oracle.owner())
            loads[kind] = Load(table, owner, rng, met)
        sources = {kind: stack.enter_context(_source(oracle, kind, folder)) for kind in REASONS}
        for source in sources.values():
            list(source.pipeline.run_snapshot())
        for _ in range(transactions):
            for kind, load in loads.items():
                load.transaction()
                list(sources[kind].pipeline.run_windows())
                _judge(sources[kind], kind, load.table, met, may_stop=may_stop)


def _source(oracle: Oracle, kind: str, folder: Path) -> Any:
    capture: dict[str, Any] = {"close_at": "online", "lobs": "reselect"}
    source = source_of(oracle, folder / kind, f"T_{kind.upper()}", capture=capture)
    return _identified(source, kind)


class _identified:
    """A source whose table is identified as its kind says."""

    def __init__(self, source: Any, kind: str) -> None:
        self._source, self._kind = source, kind

    def __enter__(self) -> Source:
        opened: Source = self._source.__enter__()
        if self._kind == "rowid":
            opened.configure({"name": f"T_{self._kind.upper()}", "identity": "rowid"})
        return opened

    def __exit__(self, *raised: Any) -> None:
        self._source.__exit__(*raised)


def _judge(source: Source, kind: str, table: str, met: Counter[str], *, may_stop: bool) -> None:
    record = source.record(table)
    if record.state == "ready":
        source.check_current(table)
        met[f"{kind}: equal"] += 1
        return
    reasons = REASONS[kind] if may_stop else ()
    assert any(reason in (record.reason or "") for reason in reasons), (kind, record.reason)
    met[f"{kind}: stopped"] += 1
    source.pipeline.resnapshot_tables([source.written().tables[0].table])
    list(source.pipeline.run_once())
    source.check_exact(table)
