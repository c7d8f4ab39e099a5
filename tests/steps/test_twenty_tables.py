"""Twenty tables under load: whatever one of them meets, the other nineteen are exact and current after every window.

One source goes through it all, one trouble after another, so that each table comes back into a company that has a history. The
comparison is the test's own: Oracle's rows AS OF SCN through a plain connection, the lake's as they lie there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import LakeError
from cdc_core.model.identifiers import TableId
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

NAMES = [f"T{number:02d}" for number in range(20)]
POLICIES = {
    "T00": {"on_widened_column": "stop"},
    "T11": {"on_truncate": "resnapshot"},
    "T12": {"on_widened_column": "resnapshot"},
    "T13": {"on_undecodable": "resnapshot"},
    "T14": {"on_drop": "remove"},
}
CREATE = (
    "CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40), N NUMBER(12,2), AT DATE DEFAULT DATE '2024-02-29', "
    "SECRET VARCHAR2(40))"
)
BEFORE_CHRIST = "TO_DATE('-0044-03-15', 'SYYYY-MM-DD')"
"""A value that Redolake refuses on both paths."""

Row = tuple[tuple[str, Any], ...]


@dataclass
class Company:
    """The tables, their load, and who of them is out of the stream. ``secret`` are tables whose column SECRET is left out."""

    oracle: Oracle
    source: Source
    dice: random.Random = field(default_factory=lambda: random.Random(20))
    names: list[str] = field(default_factory=lambda: list(NAMES))
    out: set[str] = field(default_factory=set)
    secret: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    last_id: int = 100

    def configure(self) -> None:
        """Go on under a configuration with the present tables, their policies and what is left out of them."""
        self.source.configure(
            *(
                {
                    "name": name,
                    **POLICIES.get(name, {}),
                    **({"columns_exclude": ["SECRET"]} if name in self.secret else {}),
                }
                for name in self.names
            )
        )

    def load(self, *always: str) -> None:
        """Transactions over some tables that Oracle has: of one table, of several, rolled back to a savepoint or whole."""
        there = [name for name in self.names if name not in self.gone]
        chosen = dict.fromkeys(
            [*(name for name in always if name in there), *self.dice.sample(there, 6)]
        )
        with self.oracle.owner() as connection:
            cursor = connection.cursor()
            for name in chosen:
                for statement in self._statements(name):
                    cursor.execute(statement)
                connection.commit()
            for name in self.dice.sample(there, 3):
                for statement in self._statements(name):
                    cursor.execute(statement)
                cursor.execute("SAVEPOINT S")
                cursor.execute(f"DELETE FROM {name} WHERE MOD(ID, 3) = 0")
                cursor.execute("ROLLBACK TO SAVEPOINT S")
            connection.commit()
            cursor.execute(f"UPDATE {there[0]} SET V = 'never committed'")
            connection.rollback()

    def _statements(self, name: str) -> list[str]:
        self.last_id += 1
        number = self.dice.randrange(1000)
        chosen = f"MOD(ID, 5) = {self.dice.randrange(5)}"
        return [
            f"INSERT INTO {name} (ID, V, N, SECRET) VALUES ({self.last_id}, 'v{number}', {number}.25, 'hidden {number}')",
            self.dice.choice(
                [
                    f"UPDATE {name} SET V = V || 'x', SECRET = 'hidden too' WHERE {chosen}",
                    f"UPDATE {name} SET N = NULL, AT = AT + 1 WHERE {chosen}",
                    f"UPDATE {name} SET ID = ID + 1000000 WHERE ID = {self.last_id}",
                    f"DELETE FROM {name} WHERE ID < {self.last_id} AND {chosen}",
                ]
            ),
        ]

    def windows(self) -> int:
        """Cut, capture and apply up to the present; all tables that are in have it, and nothing waits."""
        [high] = [window.scn_high for window in self.source.windows()][-1:]
        assert self.source.pipeline.pending_windows() == []
        return high

    def check(self, high: int) -> None:
        """Every table that is in stands at or behind the last window's end and equals Oracle there."""
        scns = {}
        status = {one.table: one for one in self.source.pipeline.status().tables}
        for name in self.names:
            if name not in self.out:
                one = status[f"{OWNER}.{name}"]
                assert one.state == "ready", (name, one.state, one.reason)
                assert one.position is not None
                assert one.position >= high, (
                    f"{name} stands at {one.position}, the others at {high}"
                )
                scns[name] = one.position
        with self.oracle.owner() as connection:
            for name, scn in scns.items():
                hidden = {"SECRET"} if name in self.secret else set()
                lake = lake_rows(self.source, table_id(name), hidden)
                assert lake == oracle_rows(connection, name, scn, hidden), f"{name} as of {scn}"

    def meets(self, name: str, trouble: Callable[[], object], *, is_out: bool = True) -> None:
        """One table meets a trouble amid the load; two windows later the others have gone on, and it has not moved."""
        self.load(name)
        trouble()
        self.out |= {name} if is_out else set()
        for _ in range(2):
            self.load(name)
            self.check(self.windows())
        assert len(self.names) - len(self.out) >= 19

    def is_back(self, name: str) -> None:
        """The table is in again, with what happened meanwhile. That it stays exact, the next trouble's windows show."""
        self.out.discard(name)
        self.gone.discard(name)
        self.source.run()
        [last] = self.source.pipeline.records.windows(newest_first=True, limit=1)
        self.check(last.window.scn_high)

    def state(self, name: str) -> str:
        return self.source.status(name).state


def oracle_rows(connection: Any, name: str, scn: int, hidden: set[str]) -> list[Row]:
    cursor = connection.cursor()
    cursor.execute(f"SELECT * FROM {name} AS OF SCN {scn}")
    columns = [column.name for column in cursor.description]
    return ordered((dict(zip(columns, row, strict=True)) for row in cursor), hidden)


def lake_rows(source: Source, table: TableId, hidden: set[str]) -> list[Row]:
    return ordered((values for values, _, _ in source.lake.tables[table].rows.values()), hidden)


def ordered(rows: Iterator[dict[str, Any]], hidden: set[str]) -> list[Row]:
    """Rows with typed values in one order: numbers by their value, everything else as it is."""
    return sorted(
        (
            tuple(
                (
                    column,
                    round(float(value) * 100)
                    if column in {"ID", "N"} and value is not None
                    else value,
                )
                for column, value in sorted(row.items())
                if column not in hidden
            )
            for row in rows
        ),
        key=repr,
    )


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company]:
    with running_oracle() as oracle, source_of(oracle, tmp_path) as source:
        oracle.run(*(CREATE.format(name=name) for name in [*NAMES, "LATE"]))
        made = Company(oracle, source)
        made.configure()
        made.load(*NAMES)
        source.run()
        yield made


@pytest.mark.slow  # each trouble alone, beside one other table: test_fates.py, test_policies.py, test_excluded.py
def test_each_trouble_is_its_tables_own(company: Company) -> None:
    """The list of troubles; each table but the last five has one."""
    oracle, source = company.oracle, company.source
    pipeline = lambda: source.pipeline  # noqa: E731  another one after each change of the configuration
    run = oracle.run

    # A DDL that is not followed: one command.
    company.meets("T00", lambda: run("ALTER TABLE T00 MODIFY (N NUMBER(30,2))"))
    pipeline().resnapshot_tables([table_id("T00")])
    company.is_back("T00")
    assert source.record("T00").generation == 2

    # A row that cannot be decoded: one command, when it is gone from Oracle.
    company.meets("T01", lambda: run(f"INSERT INTO T01 (ID, AT) VALUES (1, {BEFORE_CHRIST})"))
    run("DELETE FROM T01 WHERE ID = 1")
    pipeline().resnapshot_tables([table_id("T01")])
    company.is_back("T01")

    # Dropped, and created again later with other columns: one command.
    def drop(name: str) -> None:
        run(f"DROP TABLE {name} PURGE")
        company.gone.add(name)

    company.meets("T02", lambda: drop("T02"))
    run(
        "CREATE TABLE T02 (ID NUMBER(9) PRIMARY KEY, N NUMBER(9,2), V VARCHAR2(20), SECRET VARCHAR2(40), AT DATE)"
    )
    pipeline().resnapshot_tables([table_id("T02")])
    company.is_back("T02")

    # Truncated: one command.
    company.meets("T03", lambda: run("TRUNCATE TABLE T03"))
    pipeline().resnapshot_tables([table_id("T03")])
    company.is_back("T03")

    # A column is left out while the source runs: the table goes on, without its values.
    def exclude() -> None:
        company.secret.add("T04")
        company.configure()
        run("INSERT INTO T04 (ID, SECRET) VALUES (1, 'top secret')")

    company.meets("T04", exclude, is_out=False)
    assert "top secret" not in repr(source.lake.tables[table_id("T04")])

    # Removed and taken in again by commands.
    company.meets("T05", lambda: pipeline().remove_tables([table_id("T05")]))
    pipeline().add_tables([table_id("T05")])
    company.is_back("T05")

    # Paused and resumed: nothing is read from Oracle for it.
    company.meets("T06", lambda: pipeline().pause_tables([table_id("T06")]))
    pipeline().resume_tables([table_id("T06")])
    company.is_back("T06")

    # Its Delta tables fail: resumed where it stood.
    company.meets("T07", lambda: source.lake.fail(table_id("T07"), LakeError("no such file")))
    pipeline().resume_tables([table_id("T07")])
    company.is_back("T07")

    # Its key goes: one command, when it has one again.
    company.meets("T08", lambda: run("ALTER TABLE T08 DROP PRIMARY KEY"))
    run("ALTER TABLE T08 ADD PRIMARY KEY (ID)")
    pipeline().resnapshot_tables([table_id("T08")])
    company.is_back("T08")

    # Taken out of the configuration, and named there again.
    def take_out() -> None:
        company.names.remove("T09")
        company.configure()

    company.meets("T09", take_out, is_out=False)
    company.names.append("T09")
    company.configure()
    company.is_back("T09")

    # Added late, with a transaction that was open before.
    with oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO LATE (ID, V) VALUES (1, 'open since before')")
        company.load()
        company.check(company.windows())
        company.names.append("LATE")
        company.configure()
        connection.cursor().execute("UPDATE LATE SET V = 'and on'")
        company.is_back("LATE")
        connection.commit()
    company.check(company.windows())

    # The same by policies: nobody does anything but run.
    for name, statement in {
        "T11": "TRUNCATE TABLE T11",
        "T12": "ALTER TABLE T12 MODIFY (N NUMBER(30,2))",
        "T13": f"INSERT INTO T13 (ID, AT) VALUES (1, {BEFORE_CHRIST})",
    }.items():
        company.load(name)
        run(statement)
        if name == "T13":
            run("DELETE FROM T13 WHERE ID = 1")
        company.is_back(name)
        assert [one.policy for one in source.status(name).read_again] == list(POLICIES[name])
    company.meets("T14", lambda: drop("T14"))
    assert company.state("T14") == "removed"
    run(CREATE.format(name="T14"))
    pipeline().add_tables([table_id("T14")])
    company.is_back("T14")
    assert not company.out
    assert {company.state(name) for name in company.names} == {"ready"}
