"""Generated schedules in which partitions and subpartitions are dropped and truncated, by name and by value, among everything else that happens to
them: what is followed leaves the tables equal, and nothing stops them (:mod:`tests.steps.test_partition_schedules`).
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of
from tests.steps.test_partition_schedules import CREATE, KEYS_MAX, STEPS, Schedule, attempt

KINDS = ("INTERVAL", "LIST", "LIST-RANGE", "RANGE", "RANGE-LIST")
SHORT = range(2)
LONG_PARTS = [range(first, first + 30) for first in range(2, 62, 30)]


class Emptying(Schedule):
    """Half of the DDL takes rows away."""

    followed = 0

    def alter(self) -> None:
        dice = self.dice
        if dice.random() < 0.5:
            super().alter()
            return
        verb = dice.choice(("TRUNCATE", "TRUNCATE", "DROP"))
        kind, part = "PARTITION", dice.choice(self.partitions())[0]
        choices = [part, f"FOR ({dice.randrange(KEYS_MAX)})"]
        if "-" in self.kind and dice.random() < 0.5:
            kind = "SUBPARTITION"
            choices = [
                dice.choice(self.subpartitions()),
                f"FOR ({dice.randrange(KEYS_MAX)}, {dice.randrange(40)})",
            ]
        with self.oracle.owner() as connection:
            before = self.count(connection)
            attempt(connection, f"ALTER TABLE {self.name} {verb} {kind} {dice.choice(choices)}")
            self.followed += self.count(connection) < before
        self.oracle.clock.ahead += 5

    def subpartitions(self) -> list[str]:
        query = (
            "SELECT SUBPARTITION_NAME FROM USER_TAB_SUBPARTITIONS WHERE TABLE_NAME = :1 ORDER BY 1"
        )
        with self.oracle.owner() as connection:
            return [name for (name,) in connection.cursor().execute(query, [self.name])]

    def count(self, connection: object) -> int:
        cursor = connection.cursor()  # type: ignore[attr-defined]
        [(rows,)] = cursor.execute(f"SELECT COUNT(*) FROM {self.name}")
        return int(rows)


def play(oracle: Oracle, path: Path, seed: int) -> tuple[str, int]:
    """One schedule to its end: what became of it, and how often rows went."""
    dice = Random(seed)
    kind, name = dice.choice(KINDS), f"E{seed}"
    oracle.run(
        f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, K NUMBER(9) NOT NULL, V VARCHAR2(40)) {CREATE[kind]}",
        *(f"INSERT INTO {name} VALUES ({at}, {at * 7 % KEYS_MAX}, 'first')" for at in range(12)),
    )
    capture = {"close_at": ("online", "completed_logs")[seed % 2]}
    policies = {"on_truncate": "follow"}
    with source_of(oracle, path / name, name, capture=capture, policies=policies) as source:
        source.run()
        schedule = Emptying(oracle, source, name, dice, kind)
        for _ in range(STEPS):
            schedule.step()
        schedule.finish()
        record = source.record(name)
        if record.state != "ready":
            return f"{kind}: {record.reason}", schedule.followed
        source.check_current(name)
    return "", schedule.followed


oracle = oracle_with(scope="module")


@pytest.mark.parametrize(
    "seeds",
    [SHORT, *(pytest.param(part, marks=pytest.mark.slow) for part in LONG_PARTS)],
    ids=str,
)
def test_tables_are_equal_whatever_partitions_go(
    oracle: Oracle, tmp_path: Path, seeds: range
) -> None:
    played = [(seed, *play(oracle, tmp_path, seed)) for seed in seeds]
    assert [(seed, found) for seed, found, _ in played if found] == []
    assert sum(followed for _, _, followed in played) >= len(seeds) // 2
