"""Keys that Oracle checks at the end of a transaction, or not at all: the mirror is the table, or the table stops.

The lake in memory merges by the pipeline's own reduction here: one row per key and window, found by ROW_IDs.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import oracledb
import pytest

from cdc_core.model.scn import SLACK_SECONDS
from cdc_core.stage.reduction import UNKNOWN_ROW
from tests.oracle.embedded import ADMIN, Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id
from tests.steps.test_partition_schedules import attempt

KEY = "NUMBER(9) PRIMARY KEY DEFERRABLE INITIALLY DEFERRED"
SHORT = range(2)
LONG = [range(first, first + 15) for first in range(2, 152, 15)]
STEPS = 50

oracle = oracle_with(
    f"CREATE TABLE T (ID {KEY}, V VARCHAR2(40))",
    *(f"INSERT INTO T VALUES ({number}, 'old{number}')" for number in (1, 2, 3)),
)


source = capturing("T")
"""T, whose rows 1, 2 and 3 have a deferred key, snapshotted."""


def check(source: Source, name: str = "T") -> None:
    record = source.record(name)
    assert (record.state, record.reason) == ("ready", None)
    source.check_current(name)


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(
            ("INSERT INTO T VALUES (1, 'new')", "DELETE FROM T WHERE V = 'old1'"),
            id="insert-before-delete",
        ),
        pytest.param(
            (
                "INSERT INTO T VALUES (1, 'new')",
                "UPDATE T SET V = V || '+' WHERE ID = 1",
                "DELETE FROM T WHERE V = 'old1+'",
            ),
            id="both-changed-while-they-share-it",
        ),
        pytest.param(
            ("INSERT INTO T VALUES (1, 'new')", "DELETE FROM T WHERE V = 'new'"),
            id="the-new-one-goes",
        ),
        pytest.param(
            ("UPDATE T SET ID = 2 WHERE V = 'old1'", "UPDATE T SET ID = 1 WHERE V = 'old2'"),
            id="swap",
        ),
        pytest.param(("UPDATE T SET ID = ID + 1",), id="all-move-up"),
        pytest.param(
            ("UPDATE T SET ID = 1", "UPDATE T SET ID = TO_NUMBER(SUBSTR(V, 4)) * 10"),
            id="all-in-one-key",
        ),
        pytest.param(
            (
                "SAVEPOINT HERE",
                "UPDATE T SET ID = 2 WHERE V = 'old1'",
                "DELETE FROM T WHERE V = 'old2'",
                "ROLLBACK TO SAVEPOINT HERE",
                "INSERT INTO T VALUES (2, 'new')",
                "SAVEPOINT THERE",
                "DELETE FROM T WHERE V = 'new'",
                "ROLLBACK TO SAVEPOINT THERE",
                "DELETE FROM T WHERE V = 'old2'",
            ),
            id="taken-back-in-between",
        ),
        pytest.param(
            ("DELETE FROM T WHERE ID = 1", "INSERT INTO T VALUES (2, 'new')", "UPDATE T SET ID = 1 WHERE V = 'old2'"),
            id="into-a-place-that-is-free",
        ),
    ],
)  # fmt: skip
def test_rows_that_share_a_key_for_a_while(
    oracle: Oracle, source: Source, statements: tuple[str, ...]
) -> None:
    """A window ends behind each statement; the last one has the commit."""
    with oracle.owner() as connection:
        for statement in statements:
            connection.cursor().execute(statement)
            source.windows()
        connection.commit()
    source.windows()
    check(source)


def test_a_key_that_is_double_at_the_commit_changes_nothing(oracle: Oracle, source: Source) -> None:
    with pytest.raises(oracledb.DatabaseError, match="ORA-02091"):
        oracle.run("UPDATE T SET V = 'x' WHERE ID = 2", "INSERT INTO T VALUES (1, 'new')")
    oracle.run("INSERT INTO T VALUES (4, 'four')")
    source.windows()
    check(source)


LOBS = ("INSERT INTO L VALUES (1, 'new', 'new text')", "DELETE FROM L WHERE V = 'old'")


@pytest.mark.parametrize(
    ("key", "is_deferred"), [(KEY, True), ("NUMBER(9) PRIMARY KEY", False)], ids=["deferred", "at-once"]
)  # fmt: skip
def test_of_a_table_with_lobs_a_shared_key_stops_that_table_alone(
    oracle: Oracle, source: Source, key: str, *, is_deferred: bool
) -> None:
    """LogMiner does not show the ROW_ID of a row that is inserted there: a delete behind it may be of either row."""
    oracle.run(f"CREATE TABLE L (ID {key}, V VARCHAR2(40), C CLOB)")
    oracle.run("INSERT INTO L VALUES (1, 'old', 'old text')")
    source.configure("T", "L")
    source.run()
    oracle.run(*(LOBS if is_deferred else LOBS[::-1]), "UPDATE T SET ID = ID + 1")
    source.windows()
    check(source, "T")
    if not is_deferred:
        check(source, "L")
        return
    failed = source.record("L")
    assert failed.state == "failed"
    assert UNKNOWN_ROW in (failed.reason or "")
    source.pipeline.resnapshot_tables([table_id("L")])
    source.run()
    check(source, "L")


def test_a_key_that_becomes_deferrable_is_a_new_version(oracle: Oracle, source: Source) -> None:
    """What the order of its changes said before is not enough any more."""
    oracle.run(
        "CREATE TABLE L (ID NUMBER(9) NOT NULL CONSTRAINT L_ID UNIQUE, V VARCHAR2(40), C CLOB)",
        "INSERT INTO L VALUES (1, 'old', 'old text')",
    )
    source.configure("T", {"name": "L", "key": ["ID"]})
    source.run()
    oracle.run("ALTER TABLE L DROP CONSTRAINT L_ID")
    oracle.run("ALTER TABLE L ADD CONSTRAINT L_ID UNIQUE (ID) DEFERRABLE INITIALLY DEFERRED", *LOBS)
    source.windows()
    failed = source.record("L")
    assert failed.state == "failed"
    assert UNKNOWN_ROW in (failed.reason or "")


@pytest.mark.parametrize(
    ("ddl", "reason"),
    [
        ("ALTER TABLE N DISABLE PRIMARY KEY", "no primary key and no unique index"),
        ("ALTER TABLE N MODIFY CONSTRAINT N_PK ENABLE NOVALIDATE", "no longer validated"),
    ],
    ids=["disabled", "not-validated"],
)
def test_a_key_that_oracle_does_not_keep_any_more_stops_the_table(
    oracle: Oracle, source: Source, ddl: str, reason: str
) -> None:
    """The one is told by the DDL's row, the other by the net of the window whose time covers it; older rows may share the key."""
    oracle.run("CREATE TABLE N (ID NUMBER(9) CONSTRAINT N_PK PRIMARY KEY, V VARCHAR2(40))")
    source.configure("T", "N")
    source.run()
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run("INSERT INTO T VALUES (8, 'eight')")
    source.windows()
    oracle.run(ddl, "INSERT INTO N VALUES (1, 'one')")
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run("INSERT INTO T VALUES (9, 'nine')")
    source.windows()
    failed = source.record("N")
    assert (failed.state, failed.trouble) == ("failed", "unsupported_ddl")
    assert reason in (failed.reason or "")
    check(source, "T")
    source.pipeline.resnapshot_tables([table_id("N")])
    source.run()
    assert source.record("N").state == "failed", "preflight does not let it join"


class Schedule:
    """Two who change rows of their own, by keys that their rows share for a while. What Oracle refuses is given up."""

    def __init__(self, oracle: Oracle, source: Source, name: str, dice: Random) -> None:
        self.source, self.name, self.dice = source, name, dice
        self.writers = [oracle.owner() for _ in range(2)]
        self.number = 0
        self.double = 0

    def step(self) -> None:
        writer, what = self.dice.randrange(2), self.dice.random()
        if what < 0.7:
            self.change(writer)
        elif what < 0.8:
            self.end(writer)
        elif what < 0.87:
            attempt(self.writers[writer], "SAVEPOINT HERE")
            self.change(writer)
            self.change(writer)
            attempt(self.writers[writer], "ROLLBACK TO SAVEPOINT HERE")
        elif what < 0.92:
            self.source.close()
        else:
            self.source.windows()
            check(self.source, self.name)

    def change(self, writer: int) -> None:
        """Of the writer's own keys, so that nobody waits."""
        dice, name, self.number = self.dice, self.name, self.number + 1
        key, other = (10 * writer + dice.randrange(4) for _ in range(2))
        attempt(
            self.writers[writer],
            dice.choice(
                [
                    f"INSERT INTO {name} VALUES ({key}, 'v{self.number}')",
                    f"UPDATE {name} SET ID = {other} WHERE ID = {key} AND ROWNUM = 1",
                    f"UPDATE {name} SET ID = CASE ID WHEN {key} THEN {other} ELSE {key} END WHERE ID IN ({key}, {other})",
                    f"UPDATE {name} SET V = 'v{self.number}' WHERE ID = {key}",
                    f"DELETE FROM {name} WHERE ID = {key} AND ROWNUM = 1",
                ]
            ),
        )

    def end(self, writer: int) -> None:
        """Rows that share a key go first, as a rule; if not, Oracle takes the transaction back."""
        connection, name = self.writers[writer], self.name
        if self.dice.random() < 0.8:
            attempt(
                connection,
                f"DELETE FROM {name} WHERE ID BETWEEN {10 * writer} AND {10 * writer + 9} AND"
                f" V NOT IN (SELECT {self.dice.choice(('MIN', 'MAX'))}(V) FROM {name} GROUP BY ID)",
            )
        try:
            connection.commit()
        except oracledb.DatabaseError as error:
            if "ORA-02091" not in str(error):
                raise
            self.double += 1

    def finish(self) -> None:
        for writer in range(2):
            self.end(writer)
            self.writers[writer].close()
        self.source.windows()
        check(self.source, self.name)


@pytest.mark.parametrize(
    "seeds", [SHORT, *(pytest.param(part, marks=pytest.mark.slow) for part in LONG)], ids=str
)
def test_the_mirror_is_the_table_whatever_its_rows_share(tmp_path: Path, seeds: range) -> None:
    double = 0
    with running_oracle(logging=False) as oracle:
        oracle.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS", user=ADMIN)
        for seed in seeds:
            name = f"T{seed}"
            oracle.run(
                f"CREATE TABLE {name} (ID {KEY}, V VARCHAR2(9))",
                *(f"INSERT INTO {name} VALUES ({key}, 'old')" for key in (0, 1, 2, 10, 11, 12)),
            )
            with source_of(oracle, tmp_path / name, name) as source:
                source.run()
                schedule = Schedule(oracle, source, name, Random(seed))
                for _ in range(STEPS):
                    schedule.step()
                schedule.finish()
            double += schedule.double
    assert double, "some of these transactions are taken back by their commit"


def test_a_child_whose_redo_comes_before_its_parent_s(tmp_path: Path) -> None:
    """A foreign key that is checked at the commit; a transaction that it takes back leaves nothing."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE PARENT (ID NUMBER(9) PRIMARY KEY)",
            "CREATE TABLE CHILD (ID NUMBER(9) PRIMARY KEY, PARENT_ID NUMBER(9)"
            " REFERENCES PARENT DEFERRABLE INITIALLY DEFERRED)",
        )
        with source_of(oracle, tmp_path, "PARENT", "CHILD") as source:
            source.run()
            with oracle.owner() as connection:
                cursor = connection.cursor()
                cursor.execute("INSERT INTO CHILD VALUES (1, 7)")
                cursor.execute("INSERT INTO PARENT VALUES (7)")
                connection.commit()
                cursor.execute("UPDATE CHILD SET PARENT_ID = 8")
                cursor.execute("UPDATE PARENT SET ID = 8")
                connection.commit()
                cursor.execute("INSERT INTO CHILD VALUES (2, 99)")
                with pytest.raises(Exception, match="ORA-02091"):
                    connection.commit()
            source.run()
            source.check_current("PARENT", "CHILD")
            assert source.lake.image(table_id("CHILD")) == [(1, 8)]
