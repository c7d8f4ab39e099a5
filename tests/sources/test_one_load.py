"""One load through three readers: LogMiner, OpenLogReplicator's files and recordings of XStream's LCRs give equal change logs, but for what
``DIFFERENCES`` says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from oracle_embedded.openlogreplicator import OpenLogReplicator
from tests.openlogreplicator.olr import olr_capture
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.sources.test_same_changes import DIFFERENCES, OF_XSTREAM
from tests.steps.harness import Source, source_of, table_id
from tests.xstream.lcrs import recorded, recorder_of

TRANSACTIONS, TRANSACTIONS_LONG = 60, 10_000
WINDOW_EVERY = 0.2
"""Windows are read behind such a part of the load, whoever is in the middle of a transaction then."""

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40), N NUMBER, DAY DATE)",
    "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10), C CLOB)",
    "CREATE TABLE G (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10))",
)
COUNTED_AS = {"L": "an insert of LogMiner's comes with updates of its LOBs; the rows are equal"}
"""Tables whose change logs have other rows in one reader, and why; their mirrors are equal."""


@dataclass
class Load:
    """Transactions: small ones beside long ones, with savepoints, LOBs, keys that change, and DDL."""

    oracle: Oracle
    rng: Random = field(default_factory=lambda: Random(23))
    keys: list[int] = field(default_factory=list)
    next_key: int = 1

    def change(self, cursor: Any) -> None:
        """One row of T, or of L."""
        dice = self.rng.random()
        if dice < 0.45 or not self.keys:
            cursor.execute("INSERT INTO T (ID, V, N, DAY) VALUES (:1, 'new', :2 / 7, DATE '2026-01-01')", [self.next_key, self.next_key])  # fmt: skip
            self.keys.append(self.next_key)
            self.next_key += 1
        elif dice < 0.7:
            cursor.execute("UPDATE T SET V = :1, N = N * 2 WHERE ID = :2", [str(self.rng.random()), self.rng.choice(self.keys)])  # fmt: skip
        elif dice < 0.8:
            at = self.rng.randrange(len(self.keys))
            cursor.execute("UPDATE T SET ID = :1 WHERE ID = :2", [self.next_key, self.keys[at]])
            self.keys[at] = self.next_key
            self.next_key += 1
        elif dice < 0.9:
            at = self.rng.randrange(len(self.keys))
            cursor.execute("DELETE FROM T WHERE ID = :1", [self.keys.pop(at)])
        else:
            cursor.execute("INSERT INTO L VALUES (:1, 'x', :2)", [self.next_key, "long text " * self.rng.randrange(9)])  # fmt: skip
            self.next_key += 1

    def run(self, count: int) -> Iterator[float]:
        """So many transactions; yields how far it is, where windows may be read."""
        marks = [WINDOW_EVERY * part for part in range(1, 5)]
        with self.oracle.owner() as one, self.oracle.owner() as long:
            cursor, beside = one.cursor(), long.cursor()
            for number in range(count):
                for _ in range(self.rng.randrange(1, 5)):
                    self.change(cursor)
                if self.rng.random() < 0.2:
                    self.take_back(cursor)
                one.commit()
                beside.execute("INSERT INTO G VALUES (:1, 'long')", [number])
                if self.rng.random() < 0.01:
                    long.commit()
                if marks and number >= marks[0] * count:
                    yield marks.pop(0)
            long.commit()
        self.oracle.run("ALTER TABLE T ADD (MORE NUMBER(5))")
        self.oracle.run("UPDATE T SET MORE = 1 WHERE MOD(ID, 50) = 0", "INSERT INTO T (ID, MORE) VALUES (0, 7)")  # fmt: skip
        yield 1.0

    def take_back(self, cursor: Any) -> None:
        """Changes of rows that exist, up to a savepoint."""
        cursor.execute("SAVEPOINT HERE")
        cursor.execute("INSERT INTO T (ID, V) VALUES (:1, 'gone')", [self.next_key])
        cursor.execute("UPDATE T SET V = 'gone' WHERE ID = :1", [self.rng.choice([0, *self.keys])])
        cursor.execute("ROLLBACK TO SAVEPOINT HERE")
        self.next_key += 1


def changes(source: Source, name: str) -> list[dict[str, Any]]:
    """A table's change log without what may differ."""
    logged = source.lake.tables[table_id(name)].changes
    return [
        {key: value for key, value in one.items() if key not in DIFFERENCES | OF_XSTREAM}
        for one in logged
        if one["_cdc_op"] != "r"
    ]


@pytest.mark.parametrize(
    "count", [TRANSACTIONS, pytest.param(TRANSACTIONS_LONG, marks=pytest.mark.slow)]
)
def test_three_readers_give_equal_change_logs(oracle: Oracle, tmp_path: Path, count: int) -> None:
    begun = time.monotonic()
    olr = OpenLogReplicator(oracle.database, tmp_path / "olr")
    olr.write()
    recorder = recorder_of(oracle, tmp_path / "lcrs")
    captures = {"logminer": {"close_at": "online"}, "openlogreplicator": olr_capture(olr), "xstream": recorded(recorder)}  # fmt: skip
    with ExitStack() as stack:
        sources = {
            name: stack.enter_context(source_of(oracle, tmp_path / name, "T", "L", "G", capture=one))
            for name, one in captures.items()
        }  # fmt: skip
        for source in sources.values():
            source.run()
        for _ in Load(oracle).run(count):
            olr.write()
            recorder.write()
            for source in sources.values():
                source.windows()
        for source in sources.values():
            source.check_exact("T", "L", "G")
        found = {name: {table: changes(source, table) for table in "TLG"} for name, source in sources.items()}  # fmt: skip
    for table in "TLG":
        if table not in COUNTED_AS:
            assert found["openlogreplicator"][table] == found["logminer"][table]
            assert found["xstream"][table] == found["logminer"][table]
    rows = {name: sum(map(len, one.values())) for name, one in found.items()}
    assert len(found["logminer"]["T"]) > count
    print(f"{count} transactions: changes {rows}, {time.monotonic() - begun:.0f} s")
