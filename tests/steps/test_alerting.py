"""What is an alert, and who hears of it."""

from __future__ import annotations

import os
from dataclasses import replace

from cdc_core.model.alerts import Alert
from cdc_core.steps.alerts import alerts, tell_changes
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import ADMIN, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

T = table_id("T")
oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T VALUES (1)",
)


source = capturing("T", "U", alerts={"lag_minutes": 30}, notifications={"channels": ["store"]})


def kinds(source: Source) -> list[tuple[str, bool]]:
    return [(one.key, one.is_error) for one in alerts(source.pipeline)]


def test_all_is_well_after_a_run(source: Source) -> None:
    assert kinds(source) == []


def test_a_table_that_left_is_told_once_and_its_return_too(oracle: Oracle, source: Source) -> None:
    oracle.run("TRUNCATE TABLE T", "INSERT INTO T VALUES (5)")
    source.run()
    first = tell_changes(source.pipeline, ())
    assert [(one.key, one.is_error) for one in first] == [("table:DEMO.T", True)]
    assert "redolake table resnapshot" in first[0].what_to_do
    assert tell_changes(source.pipeline, first) == first
    source.pipeline.resnapshot_tables([T])
    source.run()
    assert tell_changes(source.pipeline, first) == ()
    told = [
        one
        for one in source.pipeline.records.notifications(limit=50)
        if one.aggregate_type == "Alert"
    ]
    assert [(one.type, one.id) for one in told] == [
        ("RAISED", "table:DEMO.T"),
        ("RESOLVED", "table:DEMO.T"),
    ]
    assert told[0].data["severity"] == "error"
    assert told[0].data["scanned_collection"] == "DEMO.T"


def test_a_table_that_is_late_is_a_warning(source: Source) -> None:
    found = source.pipeline.status()
    late = replace(found, tables=tuple(replace(one, lag_seconds=1801.0) for one in found.tables))
    assert [one.key for one in alerts(source.pipeline, late)] == ["lag:DEMO.T", "lag:DEMO.U"]
    paused = replace(late, tables=(replace(late.tables[0], state="paused"),))
    assert alerts(source.pipeline, paused) == ()


def test_a_database_that_does_not_answer_and_a_window_that_waits(source: Source) -> None:
    found = replace(
        source.pipeline.status(), scn_oracle=None, oracle_error="no listener", last_error="no redo"
    )
    assert [(one.key, one.is_error) for one in alerts(source.pipeline, found)] == [
        ("oracle", True),
        ("window", True),
    ]


def test_a_right_that_was_revoked_is_an_alert_and_hides_no_table(
    oracle: Oracle, source: Source
) -> None:
    """Whoever watches alone would hear nothing, and the command would show nothing."""
    fault = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "CURRENT_SCN", code=942, times=0)
    oracle.server.faults.arm(fault)
    found = source.pipeline.status()
    assert found.scn_oracle is None
    assert "ORA-00942" in (found.oracle_error or "")
    assert [one.state for one in found.tables] == ["ready", "ready"]
    [alert] = tell_changes(source.pipeline, ())
    assert (alert.key, alert.is_error) == ("oracle", True)
    [told] = source.pipeline.records.notifications(limit=50)[-1:]
    assert (told.type, told.id) == ("RAISED", "oracle")


def test_headroom_counts_once_oracle_deletes_archived_logs(oracle: Oracle, source: Source) -> None:
    """The oldest log that is left is as young as the one that is needed: no time is left."""
    before = source.pipeline.log_headroom()
    assert before is not None
    assert before.hours is None, "nothing was deleted so far"
    for number in range(3):
        oracle.run(f"INSERT INTO U VALUES ({number})")
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    waits = source.pipeline.log_headroom()
    assert waits is not None
    assert waits.logs >= 3
    assert waits.bytes > 0
    source.run()
    with source.pipeline.database.session() as session:
        logs = session.fetch_all("SELECT SEQUENCE# FROM V$ARCHIVED_LOG")
    for (sequence,) in sorted(logs)[:-1]:
        oracle.database.redo.delete_archived_log(sequence)
    [found] = [one for one in alerts(source.pipeline) if one.kind == "archived_logs"]
    assert found.is_error
    assert "redolake lag" in found.what_to_do


def test_two_processes_that_carry_one_source_are_a_warning(source: Source) -> None:
    """Each step is safe; but they take work from each other, and nobody meant that."""
    source.run()
    with source.pipeline.carrying_windows():
        assert kinds(source) == []
        with source.pipeline.carrying_windows():
            [found] = told = tell_changes(source.pipeline, ())
            who = source.pipeline.status().carriers
            assert len(who) == 2
            assert (found.key, found.is_error) == ("lease", False)
            assert found.what.startswith("2 processes carry the windows of this source")
            assert f"process {os.getpid()} on " in found.what
            assert "redolake run --loop" in found.what_to_do
        assert tell_changes(source.pipeline, told) == ()
    assert source.pipeline.status().carriers == ()


def test_a_process_that_died_over_its_windows_is_a_warning(source: Source) -> None:
    """Its number is free for the next one at once."""
    machine = source.pipeline.store.machine
    gone = machine.holder(os.getpid(), 1).replace(f"/{os.getpid()}/", "/4194303/")
    source.pipeline.store.leases.acquire("src/windows/1", gone, 600)
    [found] = alerts(source.pipeline)
    assert (found.key, found.is_error) == ("lease", False)
    assert "a process died while it held src/windows/1" in found.what
    with source.pipeline.carrying_windows():
        assert alerts(source.pipeline) == ()
        assert [one.lease.name for one in source.pipeline.holders("windows")] == ["src/windows/1"]


def test_alerts_are_the_same_whatever_numbers_they_have() -> None:
    one, other = (
        Alert(kind="lag", table="DEMO.T", what=f"{minutes} minutes", what_to_do="")
        for minutes in (1, 2)
    )
    assert one.key == other.key
