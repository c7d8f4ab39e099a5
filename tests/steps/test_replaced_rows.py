"""Rows that are replaced by a statement about another table stop their table, whatever DDL of its own stands beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.model.scn import SLACK_SECONDS
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

FOLLOW = {"policies": {"on_truncate": "follow"}}
EXCHANGE = "ALTER TABLE OTHER EXCHANGE PARTITION P WITH TABLE ONE WITHOUT VALIDATION"
MOVE = "ALTER TABLE ONE MOVE"
EMPTY = "TRUNCATE TABLE ONE"
CASCADE = "TRUNCATE TABLE PARENT CASCADE"
LOAD = "INSERT INTO ONE VALUES (5, 'loaded')"
TIME = ""
"""Some time passes."""
WINDOW = "window"


@pytest.fixture(
    params=[
        pytest.param(True, id="past-is-shown"),
        pytest.param(False, id="past-is-not-shown", marks=pytest.mark.slow),
    ]
)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """OTHER is not captured; the user may look back at objects, or may not."""
    with running_oracle(
        "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
        "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
        "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40)) PARTITION BY RANGE (ID) (PARTITION P VALUES LESS THAN (1000))",
        "INSERT INTO ONE VALUES (1, 'first')",
        "INSERT INTO TWO VALUES (1, 'first')",
        "INSERT INTO OTHER VALUES (7, 'of the partition')",
    ) as running:
        if not request.param:
            running.server.faults.arm(
                Fault(FaultKind.ORA_ERROR, sql_contains="DBA_OBJECTS AS OF", code=1031, times=0)
            )
        yield running


def wait(oracle: Oracle) -> None:
    oracle.clock.ahead += 3 * SLACK_SECONDS


def go(oracle: Oracle, source: Source, *steps: str) -> None:
    """Run statements, and windows and time between them; at last all is captured."""
    for step in (*steps, TIME, WINDOW, TIME, WINDOW):
        if step == TIME:
            wait(oracle)
        elif step == WINDOW:
            oracle.run("UPDATE TWO SET V = V || '.'")
            source.windows()
        else:
            oracle.run(step)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([WINDOW, EXCHANGE], id="the-first-thing"),
        pytest.param([EXCHANGE], id="before-the-first-window"),
        pytest.param([MOVE, EXCHANGE], id="before-the-first-window-behind-a-move"),
        pytest.param([WINDOW, MOVE, WINDOW, EXCHANGE], id="in-the-window-behind-a-move"),
        pytest.param([WINDOW, MOVE, TIME, WINDOW, EXCHANGE], id="behind-a-move-that-is-settled"),
        pytest.param([WINDOW, MOVE, WINDOW, TIME, EXCHANGE], id="some-time-behind-a-move"),
        pytest.param([WINDOW, EMPTY, WINDOW, LOAD, EXCHANGE], id="in-the-window-behind-a-truncate"),
        pytest.param([WINDOW, EMPTY, TIME, WINDOW, LOAD, EXCHANGE], id="behind-a-truncate-that-is-settled"),
        pytest.param([WINDOW, EMPTY, LOAD, EXCHANGE], id="in-the-window-of-a-truncate"),
        pytest.param([EMPTY, WINDOW, EMPTY, LOAD, EXCHANGE], id="beside-the-second-of-two-truncates"),
        pytest.param([WINDOW, EMPTY, WINDOW, EMPTY, WINDOW, LOAD, EXCHANGE], id="behind-two-truncates"),
        pytest.param([WINDOW, EXCHANGE, WINDOW, MOVE, WINDOW, EXCHANGE], id="twice"),
        pytest.param([WINDOW, MOVE, EXCHANGE, MOVE, EXCHANGE, MOVE], id="between-moves"),
    ],
)  # fmt: skip
def test_an_exchange_is_noticed(oracle: Oracle, tmp_path: Path, steps: list[str]) -> None:
    with source_of(oracle, tmp_path, "ONE", "TWO", **FOLLOW) as source:
        source.begin()
        go(oracle, source, *steps)
        one = source.record("ONE")
        assert (one.state, one.trouble) == ("failed", "truncate"), one.reason
        source.check_current("TWO")
        source.pipeline.resnapshot_tables([table_id("ONE")])
        source.run()
        go(oracle, source)
        source.check_current("ONE", "TWO")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([MOVE], id="moved-before-the-first-window"),
        pytest.param([WINDOW, MOVE, WINDOW, MOVE, LOAD, WINDOW, EMPTY], id="moved-and-emptied"),
        pytest.param([WINDOW, EMPTY, LOAD, WINDOW, "ALTER TABLE ONE ADD (W NUMBER(9))"], id="emptied-and-more-columns"),
        pytest.param([WINDOW, "ALTER TABLE OTHER ADD PARTITION Q VALUES LESS THAN (2000)", LOAD], id="partitions-of-others"),
    ],
)  # fmt: skip
def test_its_own_ddl_stops_no_table(oracle: Oracle, tmp_path: Path, steps: list[str]) -> None:
    wait(oracle)
    with source_of(oracle, tmp_path, "ONE", "TWO", **FOLLOW) as source:
        source.begin()
        go(oracle, source, *steps)
        assert source.record("ONE").state == "ready", source.record("ONE").reason
        source.check_current("ONE", "TWO")


CHILDREN = {
    "heap": "",
    "partitioned": "PARTITION BY RANGE (ID) (PARTITION LOW VALUES LESS THAN (10), PARTITION REST VALUES LESS THAN (MAXVALUE))",
    "composite": "PARTITION BY RANGE (ID) SUBPARTITION BY HASH (ID) SUBPARTITIONS 2 (PARTITION REST VALUES LESS THAN (MAXVALUE))",
    "index-organized": "ORGANIZATION INDEX",
}


def family(oracle: Oracle, kind: str, *, far: bool = False) -> None:
    """CHILD goes with PARENT; a far one through another table, which is not captured."""
    key = "ID NUMBER(9) PRIMARY KEY, P NUMBER(9) REFERENCES {} ON DELETE CASCADE, V VARCHAR2(40)"
    oracle.run(
        "CREATE TABLE PARENT (ID NUMBER(9) PRIMARY KEY)",
        *([f"CREATE TABLE MIDDLE ({key.format('PARENT')})"] if far else []),
        f"CREATE TABLE CHILD ({key.format('MIDDLE' if far else 'PARENT')}) {CHILDREN[kind]}",
        "INSERT INTO PARENT VALUES (1)",
        *(["INSERT INTO MIDDLE VALUES (1, 1, 'x')"] if far else []),
        *(f"INSERT INTO CHILD VALUES ({key}, 1, 'first')" for key in (1, 2, 30)),
    )


OWN = "ALTER TABLE CHILD ADD PARTITION LAST VALUES LESS THAN (100)"


@pytest.mark.parametrize(
    "far",
    [
        pytest.param(False, id="child"),
        pytest.param(True, id="grandchild", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", CHILDREN)
def test_rows_that_go_with_those_of_a_parent_stop_their_table(
    oracle: Oracle, tmp_path: Path, kind: str, *, far: bool
) -> None:
    """TRUNCATE … CASCADE: no row of the redo names the child."""
    family(oracle, kind, far=far)
    with source_of(oracle, tmp_path, "CHILD", "TWO", **FOLLOW) as source:
        source.begin()
        go(oracle, source, "UPDATE CHILD SET V = 'before'", WINDOW, CASCADE, "INSERT INTO PARENT VALUES (2)")  # fmt: skip
        child = source.record("CHILD")
        assert (child.state, child.trouble) == ("failed", "truncate"), child.reason
        source.check_current("TWO")
        source.pipeline.resnapshot_tables([table_id("CHILD")])
        source.run()
        go(oracle, source)
        source.check_current("CHILD", "TWO")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(["TRUNCATE TABLE CHILD", CASCADE], id="behind-its-own-truncate"),
        pytest.param([CASCADE, "TRUNCATE TABLE CHILD"], id="in-front-of-its-own-truncate"),
        pytest.param(["ALTER TABLE CHILD MOVE PARTITION LOW", CASCADE], id="behind-its-own-move"),
        pytest.param([WINDOW, "ALTER TABLE CHILD TRUNCATE PARTITION LOW", WINDOW, CASCADE], id="behind-a-window-with-its-own"),
        pytest.param([CASCADE], id="before-the-first-window"),
    ],
)  # fmt: skip
def test_ddl_of_the_child_hides_no_truncate_of_its_parent(
    oracle: Oracle, tmp_path: Path, steps: list[str]
) -> None:
    family(oracle, "partitioned")
    with source_of(oracle, tmp_path, "CHILD", "TWO", **FOLLOW) as source:
        source.begin()
        go(oracle, source, *steps)
        child = source.record("CHILD")
        assert (child.state, child.trouble) == ("failed", "truncate"), child.reason
        source.check_current("TWO")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE CHILD SPLIT PARTITION REST AT (20) INTO (PARTITION A, PARTITION B)",
        "ALTER TABLE CHILD MERGE PARTITIONS LOW, REST INTO PARTITION ALL_OF_THEM",
        "ALTER TABLE CHILD MOVE PARTITION LOW",
        "ALTER TABLE CHILD TRUNCATE PARTITION LOW",
        "ALTER TABLE CHILD DROP PARTITION REST",
        "ALTER TABLE CHILD RENAME PARTITION LOW TO LOWER",
        "TRUNCATE TABLE CHILD",
    ],
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside-others"])
def test_partitions_that_its_own_ddl_changes_stop_no_table(
    oracle: Oracle, tmp_path: Path, statement: str, *, beside: bool
) -> None:
    """Every night all partitioned tables get other partitions, in one window."""
    family(oracle, "partitioned")
    wait(oracle)
    others = ["ALTER TABLE OTHER ADD PARTITION Q VALUES LESS THAN (2000)"] if beside else []
    with source_of(oracle, tmp_path, "CHILD", "TWO", **FOLLOW) as source:
        source.begin()
        go(oracle, source, statement, *others, "INSERT INTO CHILD VALUES (3, 1, 'next')", WINDOW)
        go(oracle, source, "UPDATE CHILD SET V = 'later'")
        assert source.record("CHILD").state == "ready", source.record("CHILD").reason
        source.check_current("CHILD", "TWO")


def test_a_partition_that_coalesces_or_comes_by_itself_stops_no_table(
    oracle: Oracle, tmp_path: Path
) -> None:
    columns = "(ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))"
    oracle.run(
        f"CREATE TABLE H {columns} PARTITION BY HASH (ID) PARTITIONS 3",
        f"CREATE TABLE I {columns} PARTITION BY RANGE (ID) INTERVAL (10) (PARTITION P VALUES LESS THAN (10))",
    )
    with source_of(oracle, tmp_path, "H", "I", "TWO") as source:
        source.run()
        for number in (5, 15, 25):
            go(oracle, source, *(f"INSERT INTO {name} VALUES ({number}, 'x')" for name in "HI"))
        go(oracle, source, "ALTER TABLE H COALESCE PARTITION", "UPDATE H SET V = 'later'")
        assert {source.record(name).state for name in "HI"} == {"ready"}
        source.check_current("H", "I", "TWO")


def test_a_snapshot_that_took_long_has_what_happened_before_it(
    oracle: Oracle, tmp_path: Path
) -> None:
    """The chunks are planned as of a newer SCN than the one with which the table joined, and the exchange lies between."""
    with source_of(oracle, tmp_path, "ONE", "TWO", **FOLLOW) as source:
        source.begin()
        go(oracle, source)
        source.pipeline.remove_tables([table_id("ONE")])
        wait(oracle)
        oracle.server.faults.arm(
            Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, sql_contains='FROM "DEMO"."ONE" AS OF', nth=2, code=1555)
        )  # fmt: skip
        source.pipeline.add_tables([table_id("ONE")])
        source.run()
        go(oracle, source, MOVE, WINDOW)
        assert source.record("ONE").state == "ready", source.record("ONE").reason
        source.check_current("ONE", "TWO")
