"""What must not be done is refused before anything is changed: out of order, without a lease, from damaged files, at a wrong SCN."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_core.errors import (
    CdcError,
    ConfigError,
    FencedError,
    LakeError,
    LandingDamagedError,
    NotYetError,
)
from cdc_core.model.chunks import ChunkKey
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

ONE = table_id("ONE")

oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO ONE SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 250",
)
source = capturing("ONE", snapshot={"chunk_rows": 100}, runs=False)


def test_windows_are_captured_applied_and_replayed_in_order(oracle: Oracle, source: Source) -> None:
    list(source.pipeline.run_snapshot())
    windows = []
    for number in (1000, 1001, 1002):
        oracle.run(f"INSERT INTO ONE VALUES ({number}, 'new')")
        windows += source.pipeline.plan_windows()
    first, second, third = windows
    with pytest.raises(NotYetError, match="before this one is not captured"):
        source.pipeline.capture_window(second)
    for window in windows:
        source.pipeline.capture_window(window)
    with pytest.raises(NotYetError, match="have not applied the previous window"):
        source.pipeline.apply_window(second)
    with pytest.raises(NotYetError, match="applied can be replayed"):
        source.pipeline.replay_window(first)
    assert not [call for call in source.lake.calls if call[0] == "apply_window"]
    for window in (first, second, third):
        source.pipeline.apply_window(window)
    source.check_current("ONE")


def test_a_damaged_window_file_stops_the_window(oracle: Oracle, source: Source) -> None:
    """Also when it is damaged between capture and apply; and the window says why it waits."""
    list(source.pipeline.run_snapshot())
    oracle.run("INSERT INTO ONE VALUES (1000, 'new')")
    [window] = source.pipeline.plan_windows()
    source.pipeline.capture_window(window)
    [path] = (source.path / "landing").rglob("redo-*.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 255]) + whole[41:])
    for step in (source.pipeline.capture_window, source.pipeline.apply_window):
        with pytest.raises(LandingDamagedError):
            step(window)
        found = source.pipeline.store.windows.get(window)
        assert found is not None
        assert "its manifest" in (found.last_error or "")
    path.write_bytes(whole)
    source.pipeline.apply_window(window)
    source.check_current("ONE")


@pytest.mark.parametrize("meets", [None, LakeError], ids=["commits-nothing", "stops-nothing"])
def test_a_process_that_lost_its_lease_commits_nothing(
    oracle: Oracle, source: Source, meets: type[CdcError] | None
) -> None:
    """It loses it to another one right before it would commit, or find a table wrong that the other one has changed."""
    list(source.pipeline.run_snapshot())
    oracle.run("INSERT INTO ONE VALUES (1000, 'new')")

    def lose(call: str, _table: object) -> None:
        store = source.pipeline.store
        for lease in store.leases.all():
            if "/table/" in lease.name and call == "apply_window":
                store.leases.release(lease)
                store.leases.acquire(lease.name, "elsewhere/1/1/1", 60)

    source.lake.before = lose
    if meets is not None:
        source.lake.fail(table_id("ONE"), meets("has changed since it was read", hint="-"))
    with pytest.raises(FencedError):
        source.windows()
    assert source.record("ONE").state == "ready"
    assert not [call for call in source.lake.calls if call[0] == "apply_window"]
    source.lake.before = lambda _call, _table: None
    [taken] = [one for one in source.pipeline.store.leases.all() if one.holder == "elsewhere/1/1/1"]
    source.pipeline.store.leases.release(taken)
    source.windows()
    source.check_current("ONE")


def test_a_chunk_without_undo_is_read_as_of_a_newer_scn(oracle: Oracle, source: Source) -> None:
    """The rows that it then has are those of the newer SCN, and the mirror says so until the log has caught up."""
    keys = source.pipeline.start_snapshot()
    planned = source.pipeline.store.chunks.find(ONE)[0].scn
    oracle.run("UPDATE ONE SET V = 'second'")
    oracle.server.faults.arm(
        Fault(FaultKind.ORA_ERROR, sql_contains='FROM "DEMO"."ONE" AS OF SCN', code=1555)
    )
    for key in keys:
        source.pipeline.snapshot_chunk(key)
        source.pipeline.apply_chunk(key)
    [moved] = [one.scn for one in source.pipeline.store.chunks.find(ONE) if one.scn != planned]
    assert moved > planned
    assert source.record("ONE").consistent_scn == moved
    with pytest.raises(NotYetError, match="newer SCN"):
        source.pipeline.reconcile()
    assert source.pipeline.store.chunks.covered_scn(ONE) == planned
    source.windows()
    source.check_current("ONE")


@pytest.mark.parametrize(
    ("times", "state"), [pytest.param(2, "snapshotting", id="twice"), pytest.param(3, "failed", id="again-and-again")]
)  # fmt: skip
def test_chunks_whose_scn_has_no_undo_any_more_are_planned_at_a_newer_one(
    oracle: Oracle, source: Source, times: int, state: str
) -> None:
    """Large tables take long to plan. Where newer SCNs do not help, that table is out, with a way back."""
    planning = 'SELECT COUNT(*) FROM (SELECT 1 FROM "DEMO"."ONE"'
    oracle.server.faults.arm(
        Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, planning, times=times, code=1555)
    )
    source.pipeline.start_snapshot()
    chunks = source.pipeline.store.chunks.find(ONE)
    record = source.record("ONE")
    assert record.state == state
    if state == "failed":
        assert chunks == []
        assert "undo" in (record.reason or "")
        source.pipeline.resnapshot_tables([ONE])
    else:
        [scn] = {one.scn for one in chunks}
        assert scn > source.pipeline.source_record().snapshot_scn
    source.run()
    oracle.run("UPDATE ONE SET V = 'second'")
    source.windows()
    source.check_current("ONE")


def test_a_mirror_is_compared_at_ends_of_applied_windows_only(
    oracle: Oracle, source: Source
) -> None:
    source.begin()
    oracle.run("INSERT INTO ONE VALUES (1000, 'new')", "UPDATE ONE SET V = 'x' WHERE ID < 9")
    [window] = source.windows()
    for scn in (window.scn_high - 1, window.scn_high + 1):
        with pytest.raises(ConfigError, match="ends of applied windows"):
            source.pipeline.reconcile(scn=scn)


def test_a_mirror_that_has_rows_of_a_newer_snapshot_is_not_compared_before_it(
    oracle: Oracle, source: Source
) -> None:
    """However long Delta's log reaches back: the metadata store has the SCN of the newest chunk, also when the position has passed it."""
    source.begin()
    oracle.run("UPDATE ONE SET V = 'first'")
    [before] = source.windows()
    oracle.run("UPDATE ONE SET V = 'second'")
    for key in source.pipeline.start_snapshot([ONE]):
        source.pipeline.snapshot_chunk(key)
        source.pipeline.apply_chunk(key)
    oracle.run("UPDATE ONE SET V = 'third'")
    for _ in range(2):
        with pytest.raises(NotYetError, match="newer SCN"):
            source.pipeline.reconcile([ONE], scn=before.scn_high)
        source.windows()


def test_a_chunk_that_has_not_landed_is_not_applied(source: Source) -> None:
    [key, *_] = source.pipeline.start_snapshot()
    assert isinstance(key, ChunkKey)
    with pytest.raises(NotYetError, match="not landed"):
        source.pipeline.apply_chunk(key)


def test_windows_that_a_paused_table_will_take_are_not_retired(
    oracle: Oracle, source: Source
) -> None:
    source.begin()
    source.pipeline.pause_tables([ONE])
    for number in (1000, 1001, 1002):
        oracle.run(f"INSERT INTO ONE VALUES ({number}, 'new')")
        source.run()
    later = datetime.now(UTC) + timedelta(days=1)
    retired = source.pipeline.store.history.retire(before=later)
    position = source.record("ONE").mirror_scn
    assert position is not None
    assert all(one.window.scn_high <= position for one in retired)
    source.pipeline.resume_tables([ONE])
    source.run()
    source.check_current("ONE")
