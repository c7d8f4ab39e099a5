"""A database in which captured tables do not change stays quiet, and its position moves on all the same."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdc_core.errors import StoreUnavailableError
from cdc_core.landing.layout import ORDINAL_SHIFT, window_folder
from cdc_core.landing.manifest import MANIFEST_NAME
from cdc_core.landing.open import open_landing
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import SourceRecord, TableRecord, WindowRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import LedgerState, OpenTransaction
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.state.schemas import SchemaVersion
from cdc_core.steps import Pipeline
from cdc_core.steps.windows import retire
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.state.writing import save_table

EMP = TableId(OWNER, "EMP")

oracle = oracle_with(
    "CREATE TABLE EMP (ID NUMBER(9) PRIMARY KEY)",
    "CREATE TABLE OTHER (ID NUMBER)",
    scope="module",
)


@pytest.fixture
def pipeline(oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    """A source behind its first snapshot and its first window, which may be long: it is not read ahead.
    Any later one is, however busy the machine is."""
    monkeypatch.setattr(retire, "READ_SECONDS_MAX", math.inf)
    from cdc_core.capture.logs.positions import read_start

    config = oracle.config(tmp_path, "EMP", capture={"close_at": "online"})
    with Pipeline(config) as pipeline:
        with oracle.capture_session(config) as session:
            start = read_start(session)
            schema = read_table_schema(session, config.tables[0], scn=start.snapshot_scn)
        pipeline.store.source.save(
            SourceRecord(
                name="src",
                snapshot_scn=start.snapshot_scn,
                mining_low=start.mining_low,
                resetlogs_change=start.resetlogs_change,
            )
        )
        pipeline.store.schemas.save(SchemaVersion("src", schema))
        scn = start.snapshot_scn
        save_table(
            pipeline.store,
            TableRecord(
                source="src",
                table=EMP,
                state="ready",
                snapshot_id="s1",
                snapshot_scn=scn,
                consistent_scn=scn,
                mirror_scn=scn,
            ),
        )
        first = look(oracle, pipeline)
        assert first is not None, "how long the first window takes to read is not known"
        pipeline.capture_window(first.window)
        assert look(oracle, pipeline) is None
        yield pipeline


def look(oracle: Oracle, pipeline: Pipeline) -> WindowRecord | None:
    """One look as the sensor takes it, after something that is not captured has moved the SCN."""
    oracle.run("INSERT INTO OTHER VALUES (1)")
    before = pipeline.store.windows.find(newest_first=True, limit=1)
    low = before[0].window.scn_high if before else 0
    for _ in range(100):
        if pipeline.plan_windows():
            break
        oracle.run("INSERT INTO OTHER VALUES (1)")
    assert pipeline.store.windows.find(newest_first=True, limit=1)[0].window.scn_high > low
    return pipeline.pass_idle_windows()


def position(pipeline: Pipeline) -> int:
    record = pipeline.store.tables.get(EMP)
    assert record is not None
    assert record.mirror_scn is not None
    return record.mirror_scn


def landed(pipeline: Pipeline, window: ScnWindow) -> bool:
    return open_landing(pipeline.config.landing).exists(window_folder("src", window), MANIFEST_NAME)


def test_idle_windows_move_the_position_without_spark_and_are_forgotten(
    oracle: Oracle, pipeline: Pipeline
) -> None:
    before = position(pipeline)
    for _ in range(3):
        assert look(oracle, pipeline) is None
    windows = pipeline.store.windows.find()
    assert all(window.is_idle and window.state == "applied" for window in windows)
    assert position(pipeline) == windows[-1].window.scn_high > before

    retired = pipeline.retire_windows()
    assert [one.window for one in retired] == [one.window for one in windows[:-1]]
    assert [one.window for one in pipeline.store.windows.find()] == [windows[-1].window]
    assert not any(landed(pipeline, one.window) for one in retired)
    assert landed(pipeline, windows[-1].window)
    assert pipeline.retire_windows() == []


def test_a_window_with_changes_waits_and_joins_the_last_idle_one(
    oracle: Oracle, pipeline: Pipeline
) -> None:
    assert look(oracle, pipeline) is None
    pipeline.retire_windows()
    reached = position(pipeline)
    oracle.run("INSERT INTO EMP VALUES (7)")
    waiting = look(oracle, pipeline)
    assert waiting is not None
    assert waiting.state == "captured"
    assert not waiting.is_idle
    assert waiting.window.scn_low == reached == position(pipeline)
    assert look(oracle, pipeline) == waiting, "what comes after it waits too"


def test_an_open_transaction_is_not_idleness(oracle: Oracle, pipeline: Pipeline) -> None:
    with oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO EMP VALUES (-1)")
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)  # binds what waits in its strand
        waiting = look(oracle, pipeline)
        assert waiting is not None
        assert not waiting.is_idle
        connection.rollback()


def test_windows_are_kept_as_long_as_they_are_configured_to_be(
    oracle: Oracle, pipeline: Pipeline
) -> None:
    """With retention a window goes by its end; never the newest, and none while another is half-way."""
    store = pipeline.store
    last = store.windows.find(newest_first=True, limit=1)[0]
    low = last.window.scn_high
    bounds = [ScnWindow(Scn(low + n), Scn(low + n + 1)) for n in range(3)]
    old = datetime.now(UTC) - timedelta(days=9)
    store.windows.plan(bounds, ends=[old, old, datetime.now(UTC)])
    from tests.state.test_store import manifest_of

    for record in store.windows.find(states=("planned",)):
        store.windows.record_captured(manifest_of(record.window, record.ordinal), "0" * 64, [])
    store.windows.record_applied(bounds[0], 0.1)
    store.windows.record_applied(bounds[1], 0.1)
    week_ago = datetime.now(UTC) - timedelta(days=7)
    kept = [one.window for one in store.windows.find() if not one.is_idle]
    store.history.retire(before=week_ago)
    assert [one.window for one in store.windows.find()] == kept, "one is captured, not applied"
    store.windows.record_applied(bounds[2], 0.1)
    store.history.retire(before=None)
    assert [one.window for one in store.windows.find()] == kept
    assert store.history.retire(before=week_ago) == [], "a table still wants them"
    for one in bounds:
        store.windows.advance_tables(one, {EMP: one.scn_high})
    retired = store.history.retire(before=week_ago)
    assert [one.window for one in retired] == bounds[:2]
    assert [one.window for one in store.windows.find()] == bounds[2:]


def test_windows_are_forgotten_only_when_landing_keeps_what_they_brought(
    oracle: Oracle, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket that answers 503 meanwhile: the store would not know which folders are to go."""
    for _ in range(2):
        assert look(oracle, pipeline) is None
    before = pipeline.store.windows.find()
    assert any(one.is_idle for one in pipeline.store.history.retirable(before=None))

    def failing(*_: object) -> None:
        raise StoreUnavailableError("the bucket answers 503")

    with monkeypatch.context() as away:
        away.setattr(retire, "keep_retired", failing)
        with pytest.raises(StoreUnavailableError):
            pipeline.retire_windows()
    assert pipeline.store.windows.find() == before
    gone = pipeline.retire_windows()
    assert gone
    assert not any(landed(pipeline, one.window) for one in gone)


@pytest.mark.parametrize(("state", "is_kept"), [("open", True), ("released", False)])
def test_a_transaction_that_was_given_up_keeps_no_window(
    pipeline: Pipeline, state: LedgerState, is_kept: bool
) -> None:
    store = pipeline.store
    last = store.windows.find(newest_first=True, limit=1)[0]
    low = last.window.scn_high
    bounds = [ScnWindow(Scn(low + n), Scn(low + n + 1)) for n in range(3)]
    old = datetime.now(UTC) - timedelta(days=9)
    store.windows.plan(bounds, ends=[old, old, datetime.now(UTC)])
    from tests.state.test_store import manifest_of

    planned = store.windows.find(states=("planned",))
    first = planned[0].ordinal << ORDINAL_SHIFT
    open_one = OpenTransaction(
        xid="0100020003000000", start_scn=1, first_ordinal=first, state=state
    )
    for record in planned:
        store.windows.record_captured(
            manifest_of(record.window, record.ordinal), "0" * 64, [open_one]
        )
        store.windows.advance_tables(record.window, {EMP: record.window.scn_high})
        store.windows.record_applied(record.window, 0.1)
    store.history.retire(before=None)  # the idle window before them, which is young
    store.history.retire(before=datetime.now(UTC) - timedelta(days=7))
    assert (bounds[0] in [one.window for one in store.windows.find()]) == is_kept
    assert pipeline.status(ask_oracle=False).open_transactions == is_kept
    assert len(pipeline.status(ask_oracle=False).transactions_released) == 1 - is_kept
