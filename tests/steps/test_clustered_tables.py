"""Tables in a cluster are captured like others, although rows of two of them may have one ROWID; what empties their cluster stops them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cdc_core.errors import PreflightError
from cdc_core.model.scn import SLACK_SECONDS
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

NAMES = ("DEPTS", "EMPS", "HASHED")

oracle = oracle_with(
    "CREATE CLUSTER C (DEPT NUMBER(4)) SIZE 512",
    "CREATE INDEX C_INDEX ON CLUSTER C",
    "CREATE TABLE DEPTS (DEPT NUMBER(4) PRIMARY KEY, V VARCHAR2(20)) CLUSTER C (DEPT)",
    "CREATE TABLE EMPS (ID NUMBER(9) PRIMARY KEY, DEPT NUMBER(4), V VARCHAR2(20)) CLUSTER C (DEPT)",
    "CREATE CLUSTER H (ID NUMBER(9)) HASHKEYS 100",
    "CREATE TABLE HASHED (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20)) CLUSTER H (ID)",
    *(f"INSERT INTO DEPTS VALUES ({n}, 'dept')" for n in (10, 20)),
    *(f"INSERT INTO EMPS VALUES ({n}, {10 * n}, 'emp')" for n in (1, 2)),
    "INSERT INTO HASHED VALUES (1, 'hashed')",
)
source = capturing(*NAMES)


def later(oracle: Oracle, source: Source) -> None:
    """Some time passes, and a window."""
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run("INSERT INTO HASHED SELECT MAX(ID) + 1, 'later' FROM HASHED")
    source.windows()


def test_the_rows_of_two_tables_have_one_rowid(oracle: Oracle, source: Source) -> None:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        found = cursor.execute(
            "SELECT ROWIDTOCHAR(ROWID) FROM DEPTS INTERSECT SELECT ROWIDTOCHAR(ROWID) FROM EMPS"
        ).fetchall()
    assert found, "otherwise the tests below show nothing"
    source.check_current(*NAMES)


def test_changes_and_partial_rollbacks_of_rows_with_one_rowid(
    oracle: Oracle, source: Source
) -> None:
    """Which row a rollback to a savepoint takes back is a matter of its table, and then of its ROWID."""
    with oracle.owner() as connection:
        cursor = connection.cursor()
        for number, last in enumerate(("EMPS", "DEPTS")):
            cursor.execute("UPDATE DEPTS SET V = 'kept'")
            cursor.execute("UPDATE EMPS SET V = 'kept'")
            cursor.execute("SAVEPOINT S")
            for name in sorted(("EMPS", "DEPTS"), key=lambda one: one == last):
                cursor.execute(f"UPDATE {name} SET V = 'taken back {number}'")
            cursor.execute(f"INSERT INTO EMPS VALUES ({90 + number}, 20, 'taken back')")
            cursor.execute("DELETE FROM DEPTS WHERE DEPT = 20")
            cursor.execute("ROLLBACK TO SAVEPOINT S")
            cursor.execute(f"UPDATE EMPS SET DEPT = 20, V = 'moved {number}' WHERE ID = 1")
            connection.commit()
    source.windows()
    source.check_current(*NAMES)


@pytest.mark.parametrize("seed", range(3))
def test_generated_transactions(oracle: Oracle, source: Source, seed: int) -> None:
    rng = random.Random(seed)
    with oracle.owner() as connection:
        cursor = connection.cursor()
        for round_ in range(30):
            for _ in range(rng.randint(1, 8)):
                name, key = rng.choice(
                    [("DEPTS", "DEPT"), ("EMPS", "ID"), ("EMPS", "ID"), ("HASHED", "ID")]
                )
                number, text = rng.randint(1, 30), f"r{round_}"
                there = cursor.execute(f"SELECT 1 FROM {name} WHERE {key} = {number}").fetchone()
                dept = f", {rng.randint(1, 9)}" if name == "EMPS" else ""
                match rng.randint(0, 3), there:
                    case _, None:
                        cursor.execute(f"INSERT INTO {name} VALUES ({number}{dept}, '{text}')")
                    case 0, _:
                        cursor.execute(f"DELETE FROM {name} WHERE {key} = {number}")
                    case _:
                        cursor.execute(f"UPDATE {name} SET V = '{text}' WHERE {key} >= {number}")
                match rng.randint(0, 5):
                    case 0:
                        cursor.execute("SAVEPOINT S")
                        cursor.execute("DELETE FROM EMPS WHERE ID < 15")
                        cursor.execute("UPDATE DEPTS SET V = 'no'")
                        cursor.execute("ROLLBACK TO SAVEPOINT S")
            connection.rollback() if rng.random() < 0.2 else connection.commit()
            if not round_ % 10:
                source.windows()
    source.windows()
    source.check_current(*NAMES)


@pytest.mark.parametrize("captured", [("DEPTS", "EMPS"), ("EMPS",)], ids=["both", "one-of-two"])
def test_a_truncated_cluster_stops_its_tables_and_no_other(
    oracle: Oracle, tmp_path: Path, captured: tuple[str, ...]
) -> None:
    """The redo names the cluster, and no table: what the dictionary says of their segments tells."""
    with source_of(oracle, tmp_path / "own", *captured, "HASHED") as source:
        source.begin()
        later(oracle, source)
        before = {name: source.lake.image(table_id(name)) for name in captured}
        oracle.run("TRUNCATE CLUSTER C", "INSERT INTO EMPS VALUES (7, 70, 'behind')")
        later(oracle, source)
        for name in captured:
            record = source.record(name)
            assert record.state == "failed", name
            assert "others in theirs" in (record.reason or "")
            assert source.lake.image(table_id(name)) == before[name]
        source.check_current("HASHED")
        source.pipeline.resnapshot_tables([table_id(name) for name in captured])
        source.run()
        later(oracle, source)
        source.check_current(*captured, "HASHED")


def test_a_truncated_cluster_is_answered_by_the_policy_for_truncate(
    oracle: Oracle, source: Source
) -> None:
    source.configure(*({"name": name, "on_truncate": "resnapshot"} for name in NAMES))
    later(oracle, source)
    oracle.run("TRUNCATE CLUSTER C", "INSERT INTO EMPS VALUES (7, 70, 'behind')")
    later(oracle, source)
    source.run()
    later(oracle, source)
    source.check_current(*NAMES)
    assert source.lake.image(table_id("DEPTS")) == []


def test_tables_that_go_with_their_cluster_leave_and_no_other_does(
    oracle: Oracle, source: Source
) -> None:
    """No DDL row says of either table that it is gone."""
    later(oracle, source)
    oracle.run("DROP CLUSTER C INCLUDING TABLES")
    for _ in range(2):
        later(oracle, source)
    for name in ("DEPTS", "EMPS"):
        record = source.record(name)
        assert record.state in ("failed", "ended", "dropped"), name
        assert record.reason
    source.check_current("HASHED")


def test_rows_of_a_cluster_are_not_known_by_their_rowids(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path / "own") as source:
        source.configure({"name": "EMPS", "identity": "rowid"})
        with pytest.raises(PreflightError, match="not for a table in a cluster"):
            source.run()
