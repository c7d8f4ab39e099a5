"""A cluster of instances, each with a redo thread of its own: what all of them commit is captured, whichever is idle, closed or opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import RedoUnavailableError
from cdc_core.steps.source_checks import oracle_findings
from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import ADMIN, LOCAL_CAPTURE, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing
from tests.steps.ways import ARCHIVE, SWITCH, changes

COMPLETED = {"close_at": "completed_logs"}
READINGS = ["completed_logs", pytest.param("online", marks=pytest.mark.slow)]


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    *(f"INSERT INTO T VALUES ({key}, 'first')" for key in range(1, 5)),
    lambda oracle: oracle.run(
        "ALTER DATABASE ENABLE THREAD 3", fault("OPEN_THREAD(3)"), user=ADMIN
    ),
    threads=2,
    warts=DEFAULT_WARTS,
)
"""Threads 1 and 2 are open, thread 3 is private and open."""


source = capturing("T", capture=COMPLETED, runs=False)


def fault(call: str) -> str:
    return f"BEGIN DBMS_REDOLAKE_FAULTS.{call}; END;"


def on(oracle: Oracle, thread: int, *statements: str) -> Any:
    """A session of an instance, with what it has done and not committed yet."""
    connection = oracle.owner()
    cursor = connection.cursor()
    for statement in (fault(f"USE_THREAD({thread})"), *statements):
        cursor.execute(statement)
    return connection


def commit_on(oracle: Oracle, thread: int, *statements: str) -> None:
    with on(oracle, thread, *statements) as connection:
        connection.commit()


def archive(oracle: Oracle) -> None:
    oracle.run(ARCHIVE, user=ADMIN)


@pytest.mark.parametrize("close_at", READINGS)
def test_transactions_that_are_open_in_every_instance_at_the_snapshot_come_whole(
    oracle: Oracle, source: Source, close_at: str
) -> None:
    """They began before the snapshot: GV$TRANSACTION says where, V$TRANSACTION only for the instance that is asked."""
    source.more["capture"] = {"close_at": close_at}
    with (
        on(oracle, 2, "UPDATE T SET V = 'two' WHERE ID = 2") as two,
        on(oracle, 3, "UPDATE T SET V = 'three' WHERE ID = 3") as three,
    ):
        for _ in range(3):
            archive(oracle)
        one = on(oracle, 1, "UPDATE T SET V = 'one' WHERE ID = 1")
        source.run()
        for connection in (three, two):
            connection.commit()
        archive(oracle)
        source.windows()
        one.commit()
        one.close()
    archive(oracle)
    source.windows()
    source.check_current("T")
    found = {change["_cdc_thread"] for change in changes(source) if change["_cdc_op"] == "u"}
    assert found == {1, 2, 3}


def test_a_row_that_instances_change_in_turn_ends_as_the_last_left_it(
    oracle: Oracle, source: Source
) -> None:
    """Addresses of two threads mean nothing to each other: the order is that of the commits."""
    source.begin()
    for number in range(9):
        commit_on(oracle, number % 3 + 1, f"UPDATE T SET V = 'v{number}' WHERE ID = 1")
        if number == 4:
            archive(oracle)
            source.windows()
    archive(oracle)
    source.windows()
    source.check_current("T")
    scns = [change["_cdc_commit_scn"] for change in changes(source) if change["_cdc_op"] == "u"]
    assert scns == sorted(scns)


def test_an_idle_instance_holds_windows_back_until_it_switches_its_log(
    oracle: Oracle, source: Source
) -> None:
    """What it may still write lies below the bound: ARCHIVE_LAG_TARGET lets Oracle switch it."""
    source.begin()
    source.windows()
    commit_on(oracle, 1, "INSERT INTO T VALUES (5, 'new')")
    oracle.run(SWITCH, user=ADMIN)
    assert source.windows() == []
    archive(oracle)
    [_] = source.windows()
    source.check_current("T")


def test_an_instance_that_goes_and_comes_back_is_followed(oracle: Oracle, source: Source) -> None:
    """Its last redo is captured, windows go on without it, and what it writes later is captured too."""
    source.begin()
    commit_on(oracle, 2, "INSERT INTO T VALUES (5, 'last words')")
    oracle.run(fault("CLOSE_THREAD(2)"), user=ADMIN)
    archive(oracle)
    source.windows()
    source.check_current("T")
    commit_on(oracle, 1, "INSERT INTO T VALUES (6, 'alone')")
    archive(oracle)
    [_] = source.windows()
    source.check_current("T")
    oracle.run(fault("OPEN_THREAD(2)"), user=ADMIN)
    commit_on(oracle, 2, "DELETE FROM T WHERE ID = 6", "INSERT INTO T VALUES (7, 'back')")
    archive(oracle)
    source.windows()
    source.check_current("T")
    oracle.run(fault("CLOSE_THREAD(2)"), "ALTER DATABASE DISABLE THREAD 2", user=ADMIN)
    commit_on(oracle, 3, "INSERT INTO T VALUES (8, 'without it')")
    archive(oracle)
    source.windows()
    source.check_current("T")


def test_an_instance_that_is_added_is_captured(oracle: Oracle, source: Source) -> None:
    """Between the statement that enables its thread and its start it has no redo."""
    source.begin()
    oracle.run("ALTER DATABASE ENABLE PUBLIC THREAD 4", user=ADMIN)
    commit_on(oracle, 1, "INSERT INTO T VALUES (5, 'before')")
    oracle.run(fault("OPEN_THREAD(4)"), user=ADMIN)
    commit_on(oracle, 4, "INSERT INTO T VALUES (6, 'added')")
    archive(oracle)
    source.windows()
    source.check_current("T")


@pytest.mark.parametrize("thread", [2, 3])
def test_logs_of_one_instance_that_are_missing_stop_the_window(
    oracle: Oracle, source: Source, thread: int
) -> None:
    """Whether it is public or private; the others' logs do not stand for it."""
    source.begin()
    commit_on(oracle, thread, "INSERT INTO T VALUES (5, 'lost')")
    for _ in range(4):  # no online file holds the first one any more
        archive(oracle)
    oracle.database.redo.delete_archived_log(1, thread=thread)
    with pytest.raises(RedoUnavailableError, match=rf"deleted.*thread={thread}, sequence=1"):
        source.windows()
    assert changes(source) == []


def test_logs_of_one_instance_that_are_not_archived_make_the_window_wait(
    oracle: Oracle, source: Source
) -> None:
    source.more["capture"] = {**COMPLETED, "archived_only": True}
    archive(oracle)
    source.run()
    commit_on(oracle, 2, "INSERT INTO T VALUES (5, 'waits')")
    oracle.database.redo.hold_archiver(held=True)
    archive(oracle)
    assert source.windows() == []
    oracle.database.redo.hold_archiver(held=False)
    source.windows()
    source.check_current("T")


def test_doctor_names_the_view_that_a_cluster_needs(oracle: Oracle, tmp_path: Path) -> None:
    """With one instance V$TRANSACTION is enough."""
    oracle.add_local_capture()
    config = oracle.config(
        tmp_path, "T", oracle=oracle.login(LOCAL_CAPTURE), capture={"logs": "scn_range"}
    )

    def lacking() -> list[str]:
        return [one.remedy for one in oracle_findings(config)[0] if "GV$TRANSACTION" in one.problem]

    oracle.run(f"REVOKE SELECT ON SYS.GV_$TRANSACTION FROM {LOCAL_CAPTURE}", user=ADMIN)
    assert lacking() == [f"GRANT SELECT ON SYS.GV_$TRANSACTION TO {LOCAL_CAPTURE}"]
    oracle.run(fault("CLOSE_THREAD(2)"), fault("CLOSE_THREAD(3)"), user=ADMIN)
    assert lacking() == []
