"""What fails around the pipeline stops a step with an error that may pass, and the next run finishes the work: nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import oracledb
import pyarrow.parquet as pq
import pytest

from cdc_core.errors import (
    CommitConflictError,
    LandingDamagedError,
    LeaseHeldError,
    OracleUnavailableError,
    StoreUnavailableError,
    TransientError,
)
from cdc_core.landing import store_parquet
from cdc_core.landing.store_parquet import _HashedFile
from cdc_core.model.scn import ScnWindow
from cdc_core.steps import Pipeline
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.server import EmbeddedServer
from tests.lake.full_disk import room_for
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

NAMES = ("ONE", "TWO")
ROWS = 300

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in NAMES),
    *(
        f"INSERT INTO {name} SELECT LEVEL, 'a' FROM DUAL CONNECT BY LEVEL <= {ROWS}"
        for name in NAMES
    ),
)


source = capturing(*NAMES, oracle={"fetch_rows": 100}, runs=False)


def change(oracle: Oracle) -> None:
    oracle.run(
        "UPDATE ONE SET V = 'b'",
        f"INSERT INTO TWO SELECT LEVEL + {ROWS}, 'b' FROM DUAL CONNECT BY LEVEL <= 250",
        "DELETE FROM TWO WHERE ID <= 40",
    )


def check_whole(source: Source) -> None:
    """Everything is there, once."""
    source.check_current(*NAMES)
    for name in NAMES:
        changes = source.lake.tables[table_id(name)].changes
        assert len({one["_cdc_ordinal"] for one in changes}) == len(changes)
    assert len(source.lake.tables[table_id("ONE")].changes) == ROWS


@contextmanager
def refusing(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, code: int, nth: int
) -> Iterator[None]:
    """The operating system refuses the nth call and all further ones."""
    original, calls = getattr(owner, name), 0

    def refuse(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= nth:
            raise OSError(code, os.strerror(code))
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, refuse)
        yield
    assert calls >= nth


@pytest.mark.parametrize(
    ("owner", "name", "code", "nth"),
    [
        pytest.param(_HashedFile, "write", errno.ENOSPC, 1, id="no-room-for-the-first-byte"),
        pytest.param(_HashedFile, "write", errno.ENOSPC, 9, id="no-room-in-the-middle-of-a-file"),
        pytest.param(_HashedFile, "sync_and_close", errno.EIO, 1, id="the-disk-fails-at-the-end"),
        pytest.param(Path, "mkdir", errno.EROFS, 1, id="read-only"),
        pytest.param(os, "link", errno.ENOSPC, 1, id="no-room-for-the-manifest"),
    ],
)
def test_landing_that_takes_nothing_stops_the_window_and_loses_nothing(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, code: int, nth: int
) -> None:  # fmt: skip
    source.run()
    change(oracle)
    with (
        refusing(monkeypatch, owner, name, code, nth),
        pytest.raises(StoreUnavailableError) as caught,
    ):
        source.run()
    assert caught.value.facts["reason"] == os.strerror(code)
    assert "landing store" in caught.value.hint
    assert source.pipeline.status().last_error == str(caught.value), "what the window waits for"
    source.close()
    source.run()
    assert source.pipeline.status().last_error is None
    assert not any(one.last_error for one in source.pipeline.records.windows())
    check_whole(source)


def test_landing_that_is_full_stops_a_chunk_and_loses_nothing(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        refusing(monkeypatch, _HashedFile, "write", errno.ENOSPC, 3),
        pytest.raises(StoreUnavailableError),
    ):
        source.run()
    source.close()
    source.run()
    change(oracle)
    source.run()
    check_whole(source)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(store_parquet, "_digest", id="before-it-is-read"),
        pytest.param(pq, "ParquetFile", id="while-it-is-read"),
    ],
)
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EMFILE])
def test_landing_that_cannot_be_read_now_is_not_taken_for_damaged(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, code: int
) -> None:  # fmt: skip
    """A share that does not answer: nobody is told to restore files, and the next run reads them."""
    source.run()
    change(oracle)
    assert list(source.pipeline.run_capture())
    source.close()
    with (
        refusing(monkeypatch, owner, name, code, 1),
        pytest.raises(StoreUnavailableError) as caught,
    ):
        source.run()
    assert "landing store" in caught.value.hint
    source.close()
    source.run()
    check_whole(source)


@pytest.mark.parametrize("nth", [1, 2, 4, 6])
def test_a_connection_that_is_lost_at_any_fetch_of_the_redo_loses_nothing(
    oracle: Oracle, source: Source, nth: int
) -> None:
    source.begin()
    change(oracle)
    fault = Fault(FaultKind.LOST_CONNECTION, FaultEvent.FETCH, "V$LOGMNR_CONTENTS", nth=nth)
    oracle.server.faults.arm(fault)
    source.run()
    assert fault.seen > nth, "the window was read again from its beginning"
    check_whole(source)


def test_a_listener_that_is_down_is_waited_for(oracle: Oracle, source: Source) -> None:
    source.begin()
    change(oracle)
    server = oracle.server
    pipeline, port = source.pipeline, server.port
    server.stop()
    with pytest.raises(OracleUnavailableError):
        pipeline.plan_windows()
    source.close()
    with EmbeddedServer(oracle.database.engine, port=port, faults=oracle.database.faults) as again:
        oracle.server = again
        source.run()
        check_whole(source)
        source.close()


@pytest.mark.parametrize(
    "said",
    [
        "ORA-00257: Archiver error. Connect AS SYSDBA only until resolved.",
        "ORA-01035: ORACLE only available to users with RESTRICTED SESSION privilege",
    ],
)
def test_a_database_that_lets_nobody_in_is_waited_for(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """Its archiver is stuck, or it is patched: a loop goes on when that is over."""

    def refuse(**_: object) -> None:
        raise oracledb.DatabaseError(said)

    source.begin()
    change(oracle)
    source.close()
    with monkeypatch.context() as patch:
        patch.setattr(oracledb, "connect", refuse)
        with pytest.raises(OracleUnavailableError):
            source.run()
    source.close()
    source.run()
    check_whole(source)


def test_chunks_that_cannot_be_read_now_keep_no_window_from_the_others(
    oracle: Oracle, source: Source
) -> None:
    """A profile's limit ends each query of a large table: redo must not age meanwhile."""
    source.run()
    source.pipeline.start_snapshot([table_id("TWO")])
    change(oracle)
    fault = Fault(FaultKind.ORA_ERROR, FaultEvent.FETCH, '"TWO"', times=0, code=2395)
    oracle.server.faults.arm(fault)
    for _ in range(2):
        with pytest.raises(TransientError, match="a limit of the database for one call"):
            source.run()
    assert {value for _, value in source.lake.image(table_id("ONE"))} == {"b"}
    oracle.server.faults.disarm_all()
    source.run()
    source.check_current(*NAMES)


def test_a_damaged_chunk_keeps_no_window_from_the_other_tables(
    oracle: Oracle, source: Source, tmp_path: Path
) -> None:
    source.run()
    [key] = source.pipeline.start_snapshot([table_id("TWO")])
    source.pipeline.snapshot_chunk(key)
    source.close()
    [file] = (tmp_path / "landing" / "src" / "chunks").glob(f"*/{key.snapshot_id}/*/*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    change(oracle)
    with pytest.raises(LandingDamagedError):
        source.run()
    assert {value for _, value in source.lake.image(table_id("ONE"))} == {"b"}


@pytest.mark.parametrize("code", [1555, 8103])
def test_a_chunk_whose_segment_goes_while_it_is_read_is_read_again(
    oracle: Oracle, source: Source, code: int
) -> None:
    """TRUNCATE, MOVE or a dropped partition in the middle of a query."""
    fault = Fault(FaultKind.ORA_ERROR, FaultEvent.FETCH, '"V"', nth=2, code=code)
    oracle.server.faults.arm(fault)
    source.run()
    assert fault.seen > 2, "the chunk was read again from its beginning"
    assert {source.record(name).state for name in NAMES} == {"ready"}
    change(oracle)
    source.run()
    check_whole(source)


def test_a_metadata_store_that_another_program_holds_is_waited_for(
    oracle: Oracle, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup program may hold the file's lock."""
    source.begin()
    change(oracle)
    source.close()
    with monkeypatch.context() as patch, closing(sqlite3.connect(tmp_path / "state.db")) as other:
        patch.setattr("cdc_core.state.database._BUSY_SECONDS", 0.01)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailableError, match="locked"):
            source.run()
        other.rollback()
    source.close()
    source.run()
    check_whole(source)


def test_a_metadata_store_without_room_is_waited_for(oracle: Oracle, source: Source) -> None:
    source.begin()
    change(oracle)
    with room_for(4096), pytest.raises(StoreUnavailableError, match="metadata store") as caught:
        source.pipeline.plan_windows()
    assert "state.url" in caught.value.hint
    source.close()
    source.run()
    check_whole(source)


def test_landing_that_somebody_dropped_is_missed_before_anything_is_lost(
    oracle: Oracle, source: Source, tmp_path: Path
) -> None:
    """With a window that no table has taken; what the tables have needs no landing."""
    source.begin()
    change(oracle)
    source.capture()
    shutil.rmtree(tmp_path / "landing")
    source.close()
    with pytest.raises(LandingDamagedError) as caught:
        source.run()
    assert "recapture" in caught.value.hint
    source.close()
    list(source.pipeline.recapture())
    source.run()
    check_whole(source)


def test_a_window_of_which_half_was_written_is_written_anew(
    oracle: Oracle, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files without a manifest have not landed, whole ones and cut ones alike."""
    source.begin()
    change(oracle)
    with refusing(monkeypatch, os, "link", errno.EIO, 1), pytest.raises(StoreUnavailableError):
        source.run()
    [redo] = [path for path in (tmp_path / "landing").rglob("redo-00000.parquet") if not (path.parent / "manifest.json").exists()]  # fmt: skip
    redo.write_bytes(redo.read_bytes()[:100])
    shutil.copyfile(redo, redo.with_name("redo-00001.parquet"))
    source.close()
    source.run()
    check_whole(source)


def test_a_commit_that_meets_anothers_is_tried_with_the_next_run(
    oracle: Oracle, source: Source
) -> None:
    source.begin()
    change(oracle)
    source.lake.fail(table_id("ONE"), CommitConflictError("another writer committed"))
    with pytest.raises(CommitConflictError):
        source.run()
    source.run()
    check_whole(source)


@pytest.mark.parametrize("seconds", [-7200, 7200])
def test_a_clock_that_steps_changes_no_order(oracle: Oracle, source: Source, seconds: int) -> None:
    """SCNs say what comes first; partition keys, which begin with a time, still sort as windows do."""
    source.begin()
    for step in (0, seconds, seconds):
        oracle.clock.ahead += step
        oracle.run(
            f"INSERT INTO TWO VALUES ({1000 + oracle.clock.ahead * 7 + step}, 'x')".replace("-", "")
        )
        source.windows()
    change(oracle)
    source.windows()
    check_whole(source)
    records = source.pipeline.store.windows.find()
    assert [one.key for one in records] == sorted(one.key for one in records)


def test_two_processes_on_one_source_take_turns(
    oracle: Oracle, source: Source, tmp_path: Path
) -> None:
    """As two Dagster instances on one metadata store would: what one holds the other leaves alone, and no window is planned twice."""
    source.begin()
    change(oracle)
    with Pipeline(source.written(), open_lake=source.lake.open) as other:
        windows = other.plan_windows()
        assert windows
        assert not set(windows) & set(source.pipeline.plan_windows())
        for window in windows:
            source.pipeline.capture_window(window)
            assert other.capture_window(window).repeated
            other.apply_window(window)
            source.pipeline.apply_window(window)
    source.windows()
    check_whole(source)


def test_of_two_runs_of_one_window_at_once_one_is_refused_and_told_what_to_do(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two Dagster instances on one metadata store: each meets the other in the middle of its work."""
    source.begin()
    change(oracle)
    [window] = source.pipeline.plan_windows()
    refused: list[LeaseHeldError] = []
    hours = SimpleNamespace(monotonic=count(0, 3600).__next__, sleep=lambda _seconds: None)
    monkeypatch.setattr("cdc_core.leases.time", hours)
    with Pipeline(source.written(), open_lake=source.lake.open) as other:

        def tries(step: Callable[[ScnWindow], Any]) -> None:
            with pytest.raises(LeaseHeldError) as caught:
                step(window)
            refused.append(caught.value)

        changes = source.pipeline.change_reader
        capture = changes.capture_window
        with monkeypatch.context() as patched:

            def captured_twice(*work: Any) -> None:
                capture(*work)
                tries(other.capture_window)

            patched.setattr(changes, "capture_window", captured_twice)
            source.pipeline.capture_window(window)
        source.lake.before = lambda call, _table: (
            tries(other.apply_window) if call == "apply_window" else None
        )
        source.pipeline.apply_window(window, [table_id("ONE")])
        source.lake.before = lambda _call, _table: None
        assert len(refused) == 2
        for error in refused:
            assert error.facts["holder"]
            assert "Wait until it has finished" in str(error.hint)
        assert other.capture_window(window).repeated
        other.apply_window(window)
    source.windows()
    check_whole(source)
