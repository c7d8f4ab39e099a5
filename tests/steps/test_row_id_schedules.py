"""Generated schedules on a table without a key: whatever is written, taken back, read again or moved, the mirror is the table.

Each schedule is a throw of dice over two writers with equal rows, savepoints and transactions that stay open, ROWIDs that rows get from
rows that are gone, windows that are planned and mined late or twice, new snapshots, and statements that give all rows other ROWIDs, after
which a policy has the table read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import oracledb
import pytest

from tests.oracle.embedded import ADMIN, Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_partition_schedules import attempt

SHORT = range(2)
LONG_PARTS = [range(first, first + 15) for first in range(2, 152, 15)]
STEPS = 40
POLICIES = {"on_unsupported_ddl": "resnapshot", "resnapshot_hours_min": 1e-9}
MOVING = ("MOVE", "SHRINK SPACE")


class Schedule:
    """One table and two who work on it. A statement that Oracle refuses is given up: DDL with an open transaction."""

    def __init__(self, oracle: Oracle, source: Source, name: str, dice: Random) -> None:
        self.oracle, self.source, self.name, self.dice = oracle, source, name, dice
        self.writers = [oracle.owner() for _ in range(2)]
        self.moved = 0

    def step(self) -> None:
        writer, what = self.dice.randrange(2), self.dice.random()
        if what < 0.5:
            self.change(writer)
        elif what < 0.65:
            connection = self.writers[writer]
            (connection.commit if self.dice.random() < 0.7 else connection.rollback)()
        elif what < 0.73:
            attempt(self.writers[writer], "SAVEPOINT HERE")
            self.change(writer)
            self.change(writer)
            attempt(self.writers[writer], "ROLLBACK TO SAVEPOINT HERE")
        elif what < 0.78:
            self.move()
        elif what < 0.83:
            self.source.pipeline.plan_windows()
        elif what < 0.88:
            self.read_again()
        elif what < 0.93:
            self.source.close()
        else:
            self.source.run()
            self.check()

    def change(self, writer: int) -> None:
        """Of rows of the writer's own, so that nobody waits."""
        dice, name = self.dice, self.name
        mine, value = f"W = {writer}", dice.randrange(4)
        attempt(
            self.writers[writer],
            dice.choice(
                [
                    f"INSERT INTO {name} VALUES ({writer}, {value}, 'same')",
                    f"INSERT INTO {name} SELECT W, A, B FROM {name} WHERE {mine} AND A = {value} AND ROWNUM <= 3",
                    f"UPDATE {name} SET A = {value} WHERE {mine} AND A <> {value} AND ROWNUM <= 2",
                    f"UPDATE {name} SET B = NULLIF('n{value}', 'n0') WHERE {mine} AND A = {value}",
                    f"DELETE FROM {name} WHERE {mine} AND A = {value} AND ROWNUM <= 2",
                ]
            ),
        )

    def move(self) -> None:
        for writer in self.writers:
            writer.commit()
        self.oracle.run(f"ALTER TABLE {self.name} {self.dice.choice(MOVING)}")
        self.moved += 1

    def read_again(self) -> None:
        """An ad hoc snapshot while the writers go on; a table that is out has none."""
        if self.source.record(self.name).state != "ready":
            return
        for chunk in self.source.pipeline.start_snapshot([table_id(self.name)]):
            self.change(0)
            self.source.pipeline.snapshot_chunk(chunk)
            self.change(1)
            self.source.pipeline.apply_chunk(chunk)

    def finish(self) -> None:
        for writer in self.writers:
            writer.commit()
            writer.close()
        for _ in range(2):  # a move is met, and the table is read again
            self.source.run()
        self.oracle.run(f"INSERT INTO {self.name} VALUES (9, 9, 'last')")
        self.source.run()
        assert self.source.record(self.name).state == "ready"
        self.check()

    def check(self) -> None:
        """Where the mirror is an image of one SCN, it is that of the table, by the driver alone."""
        record = self.source.record(self.name)
        scn = record.mirror_scn
        if scn is None or record.state != "ready" or (record.consistent_scn or 0) > scn:
            return
        with self.oracle.owner() as connection:
            query = f"SELECT ROWIDTOCHAR(ROWID), W, A, B FROM {self.name} AS OF SCN :scn"
            try:
                rows: list[tuple[Any, ...]] = connection.cursor().execute(query, scn=scn).fetchall()
            except oracledb.DatabaseError as error:
                if "ORA-01466" not in str(error):
                    raise
                return  # its rows have moved since, and Oracle does not show it as it was
        mirror = self.source.lake.tables[table_id(self.name)].rows.values()
        assert Counter(tuple(values.values()) for values, _, _ in mirror) == Counter(rows)


def play(oracle: Oracle, path: Path, seed: int) -> int:
    """One schedule to its end; how often its rows moved."""
    name = f"T{seed}"
    oracle.run(
        f"CREATE TABLE {name} (W NUMBER(1), A NUMBER(9), B VARCHAR2(9)) ENABLE ROW MOVEMENT",
        f"INSERT INTO {name} SELECT MOD(LEVEL, 2), MOD(LEVEL, 3), 'same' FROM DUAL CONNECT BY LEVEL <= 12",
    )
    with source_of(oracle, path / name, policies=POLICIES) as source:
        source.configure({"name": name, "identity": "rowid"})
        source.run()
        schedule = Schedule(oracle, source, name, Random(seed))
        for _ in range(STEPS):
            schedule.step()
        schedule.finish()
    return schedule.moved


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle(logging=False) as running:
        running.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)
        yield running


@pytest.mark.parametrize(
    "seeds",
    [SHORT, *(pytest.param(part, marks=pytest.mark.slow) for part in LONG_PARTS)],
    ids=str,
)
def test_the_mirror_is_the_table_whatever_becomes_of_its_rows(
    oracle: Oracle, tmp_path: Path, seeds: range
) -> None:
    moved = [play(oracle, tmp_path, seed) for seed in seeds]
    assert any(moved), "some of these schedules move rows"
