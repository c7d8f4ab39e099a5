"""Generated schedules: whatever is written to partitions and done to them, before, within and after windows, no row is lost.

Each schedule is a throw of dice over transactions that stay open, savepoints, rows that move between partitions, DDL that makes, splits,
merges and moves partitions, other tables that are dropped, windows that are planned and mined late, and more of that. What the table
holds in the end is what Oracle says, and no such DDL stops it. Every other schedule closes its windows at the end of switched logs.
"""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from random import Random
from typing import Any

import oracledb
import pytest

from cdc_core.capture.passes.unnamed_rows import KnownSegments
from tests.oracle.embedded import ADMIN, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of

SHORT = range(2)
LONG_PARTS = [range(first, first + 40) for first in range(2, 302, 40)]
STEPS = 45
KEYS_MAX = 100

CREATE = {
    "RANGE": "PARTITION BY RANGE (K) (PARTITION P0 VALUES LESS THAN (30), PARTITION P1 VALUES LESS THAN (60),"
    " PARTITION P2 VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT",
    "INTERVAL": "PARTITION BY RANGE (K) INTERVAL (20) (PARTITION P0 VALUES LESS THAN (20)) ENABLE ROW MOVEMENT",
    "LIST": "PARTITION BY LIST (K) (PARTITION P0 VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9), PARTITION P1 VALUES (DEFAULT)) ENABLE ROW MOVEMENT",
    "HASH": "PARTITION BY HASH (K) PARTITIONS 3 ENABLE ROW MOVEMENT",
    "COMPOSITE": "PARTITION BY RANGE (K) SUBPARTITION BY HASH (ID) SUBPARTITIONS 2 (PARTITION P0 VALUES LESS THAN (50),"
    " PARTITION P1 VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT",
    "RANGE-LIST": "PARTITION BY RANGE (K) SUBPARTITION BY LIST (ID) SUBPARTITION TEMPLATE (SUBPARTITION A VALUES (0, 1, 2, 3),"
    " SUBPARTITION B VALUES (DEFAULT)) (PARTITION P0 VALUES LESS THAN (50), PARTITION P1 VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT",
    "LIST-RANGE": "PARTITION BY LIST (K) SUBPARTITION BY RANGE (ID) SUBPARTITION TEMPLATE (SUBPARTITION A VALUES LESS THAN (9),"
    " SUBPARTITION B VALUES LESS THAN (MAXVALUE)) (PARTITION P0 VALUES (1, 2, 3, 4, 5), PARTITION P1 VALUES (DEFAULT)) ENABLE ROW MOVEMENT",
    "INDEX": "ORGANIZATION INDEX",
}  # fmt: skip

COMPOSITE = ("COMPOSITE", "RANGE-LIST", "LIST-RANGE")
"""Whose partitions have no segment that could be moved."""


class Schedule:
    """One table and two who work on it, each on rows of its own, so that nobody waits. A statement that Oracle refuses is given up: DDL of
    partitions with an open transaction, a key that is there."""

    def __init__(self, oracle: Oracle, source: Source, name: str, dice: Random, kind: str) -> None:
        self.oracle, self.source, self.name, self.dice, self.kind = oracle, source, name, dice, kind
        self.writers = [oracle.owner() for _ in range(2)]
        self.others = itertools.count()
        self.names = itertools.count()

    def step(self) -> None:
        dice = self.dice
        writer = dice.randrange(2)
        what = dice.random()
        if what < 0.45:
            self.change(writer)
        elif what < 0.6:
            connection = self.writers[writer]
            (connection.commit if dice.random() < 0.7 else connection.rollback)()
        elif what < 0.68:
            self.undo_a_part(writer)
        elif what < 0.86:
            self.alter()
        elif what < 0.9:
            self.drop_another()
        elif what < 0.95:
            self.end_logs()
            self.source.pipeline.plan_windows()
        else:
            self.end_logs()
            self.source.windows()

    def end_logs(self) -> None:
        """Where windows end with switched logs, the logs that are written end here."""
        if self.source.pipeline.config.logminer.close_at == "completed_logs":
            self.oracle.run("ALTER SYSTEM ARCHIVE LOG CURRENT", user=ADMIN)

    def change(self, writer: int) -> None:
        dice, name = self.dice, self.name
        identifier, key = 2 * dice.randrange(20) + writer, dice.randrange(KEYS_MAX)
        attempt(
            self.writers[writer],
            dice.choice(
                [
                    f"INSERT INTO {name} VALUES ({identifier}, {key}, 'i{dice.randrange(1000)}')",
                    f"UPDATE {name} SET K = {key}, V = 'k{dice.randrange(1000)}' WHERE ID = {identifier}",
                    f"UPDATE {name} SET ID = ID + 100 WHERE ID = {identifier}",
                    f"UPDATE {name} SET V = V || 'v' WHERE K > {key} AND MOD(ID, 2) = {writer} AND LENGTH(V) < 30",
                    f"DELETE FROM {name} WHERE ID = {identifier}",
                ]
            ),
        )

    def undo_a_part(self, writer: int) -> None:
        attempt(self.writers[writer], "SAVEPOINT HERE")
        self.change(writer)
        self.change(writer)
        attempt(self.writers[writer], "ROLLBACK TO SAVEPOINT HERE")

    def alter(self) -> None:
        if self.kind == "INDEX":
            return
        made = self.partitions()
        one = self.dice.choice(made)[0]
        fresh = [f"N{next(self.names)}" for _ in range(2)]
        choices = [f"RENAME PARTITION {one} TO {fresh[0]}"]
        if self.kind not in COMPOSITE:
            choices.append(f"MOVE PARTITION {one}")
        if self.kind == "HASH":
            choices += ["ADD PARTITION", "COALESCE PARTITION"]
        else:
            at = self.dice.randrange(1, KEYS_MAX)
            where = f"VALUES ({at})" if self.kind.startswith("LIST") else f"AT ({at})"
            into = f"INTO (PARTITION {fresh[0]}, PARTITION {fresh[1]})"
            choices += [f"SPLIT PARTITION {name} {where} {into}" for name, _ in made]
            pairs = [", ".join(pair) for pair in itertools.pairwise(name for name, _ in made)]
            choices += [f"MERGE PARTITIONS {pair} INTO PARTITION {fresh[0]}" for pair in pairs]
        with self.oracle.owner() as connection:
            attempt(connection, f"ALTER TABLE {self.name} {self.dice.choice(choices)}")
        self.oracle.clock.ahead += 5

    def partitions(self) -> list[tuple[str, int]]:
        with self.oracle.owner() as connection:
            cursor = connection.cursor()
            cursor.execute(
                "SELECT PARTITION_NAME, PARTITION_POSITION FROM USER_TAB_PARTITIONS WHERE TABLE_NAME = :1 ORDER BY 2",
                [self.name],
            )
            return cursor.fetchall()

    def drop_another(self) -> None:
        other = f"{self.name}_{next(self.others)}"
        self.oracle.run(
            f"CREATE TABLE {other} (ID NUMBER) PARTITION BY HASH (ID) PARTITIONS 2",
            f"INSERT INTO {other} VALUES (1)",
            f"DROP TABLE {other} PURGE",
        )

    def finish(self) -> None:
        for writer in self.writers:
            writer.commit()
            writer.close()
        self.end_logs()
        self.source.windows()


def attempt(connection: Any, statement: str) -> None:
    """Run a statement that may be refused."""
    with contextlib.suppress(oracledb.Error):
        connection.cursor().execute(statement)


def play(
    oracle: Oracle, path: Path, seed: int, name: str = "T", kinds: tuple[str, ...] = tuple(CREATE)
) -> str:
    """One schedule to its end; what became of it."""
    dice = Random(seed)
    kind = dice.choice(sorted(kinds))
    name += str(seed)
    columns = "(ID NUMBER(9) PRIMARY KEY, K NUMBER(9) NOT NULL, V VARCHAR2(40))"
    oracle.run(
        f"CREATE TABLE {name} {columns} {CREATE[kind]}",
        *(f"INSERT INTO {name} VALUES ({at}, {at * 7 % KEYS_MAX}, 'first')" for at in range(12)),
    )
    capture = {"close_at": ("online", "completed_logs")[seed % 2]}
    with source_of(oracle, path / name, name, capture=capture) as source:
        source.run()
        schedule = Schedule(oracle, source, name, dice, kind)
        for _ in range(STEPS):
            schedule.step()
        schedule.finish()
        record = source.record(name)
        if record.state != "ready":
            return f"{kind}: {record.reason}"
        source.check_current(name)
    return ""


oracle = oracle_with(scope="module")


@pytest.mark.parametrize(
    "seeds",
    [SHORT, *(pytest.param(part, marks=pytest.mark.slow) for part in LONG_PARTS)],
    ids=str,
)
def test_no_row_is_lost_whatever_becomes_of_partitions(
    oracle: Oracle, tmp_path: Path, seeds: range
) -> None:
    assert [(seed, found) for seed in seeds if (found := play(oracle, tmp_path, seed))] == []


def test_rows_without_a_name_are_what_these_schedules_are_about(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the rule, the first schedules lose rows already."""
    monkeypatch.setattr(KnownSegments, "look", lambda *_: None)
    monkeypatch.setattr(KnownSegments, "resolve", lambda *_: (False, {}))
    for seed in range(10):
        try:
            if play(oracle, tmp_path, seed, "WITHOUT", ("LIST", "RANGE")):
                return
        except AssertionError:
            return
    pytest.fail("no schedule lost a row")
