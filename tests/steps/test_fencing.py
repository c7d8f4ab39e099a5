"""A process stands still right before an effect; another takes its leases and does the work. When the first wakes, it changes nothing.

The effects are those that :mod:`cdc_core.state.fencing` lists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from cdc_core.errors import CdcError, LakeError
from cdc_core.lake.table_part import TablePart
from cdc_core.landing import fenced
from cdc_core.landing.fenced import FencedLanding
from cdc_core.model.signals import Signal
from cdc_core.state.captured_tables import CapturedTables
from cdc_core.state.chunks import Chunks
from cdc_core.state.images import Images
from cdc_core.state.signals import Signals
from cdc_core.state.source import SourceRow
from cdc_core.state.window_history import WindowHistory
from cdc_core.state.windows import Windows
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id
from tests.steps.memory_lake import MemoryLake

NAMES = ("ONE", "TWO")


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        for name in NAMES:
            running.run(
                f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))",
                *(f"INSERT INTO {name} VALUES ({10000 + key}, 'first')" for key in range(210)),
            )
        yield running


@pytest.fixture
def sources(oracle: Oracle, tmp_path: Path) -> Iterator[tuple[Source, Source]]:
    """Two processes of one source."""
    chunks = {"snapshot": {"chunk_rows": 100}, "lake": {"tables_at_once": 1}}
    with (
        source_of(oracle, tmp_path, *NAMES, **chunks) as one,
        source_of(oracle, tmp_path, *NAMES, **chunks) as other,
    ):
        other.lake = one.lake
        yield one, other


def switch(source: Source) -> None:
    source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)


def change(source: Source, key: int) -> None:
    source.oracle.run(
        f"INSERT INTO ONE VALUES ({key}, 'new')",
        "UPDATE ONE SET NOTE = NOTE || '.' WHERE ID = 10001",
        f"INSERT INTO TWO VALUES ({key}, 'new')",
    )
    switch(source)


def nothing(_source: Source) -> None:
    """There is no work before."""


def everything(source: Source) -> None:
    source.run()


def a_change(source: Source) -> None:
    source.run()
    change(source, 100)


def a_captured_change(source: Source) -> None:
    a_change(source)
    source.capture()


def old_windows(source: Source) -> None:
    """Idle windows that are applied and not retired."""
    source.run()
    for _ in range(3):
        switch(source)
        for window in source.pipeline.plan_windows():
            source.pipeline.capture_window(window)
            source.pipeline.apply_window(window)


def a_lost_window(source: Source) -> None:
    a_captured_change(source)
    [*_, record] = source.pipeline.records.windows(states=("captured",))
    folder = source.path / "landing" / "src" / "windows" / record.window.folder
    (folder / "transactions.parquet").write_bytes(b"cut")


def a_signal(source: Source) -> None:
    source.run()
    data = {"data-collections": [f"{OWNER}.ONE"]}
    source.pipeline.add_signal(Signal(id="asked", source="src", type="execute-snapshot", data=data))


def snapshots(source: Source) -> None:
    list(source.pipeline.run_snapshot())


def joins_again(source: Source) -> None:
    source.pipeline.resnapshot_tables([table_id("ONE")], fresh=True)


def joins_again_and_goes_on(source: Source) -> None:
    joins_again(source)
    change(source, 200)
    source.run()


def reads_again(source: Source) -> None:
    source.pipeline.start_snapshot([table_id("ONE")])


def goes_on(source: Source) -> None:
    change(source, 201)
    source.run()


def recaptures(source: Source) -> None:
    list(source.pipeline.recapture())


def fails_on_one(source: Source) -> None:
    apply, lake = source.lake.apply_window, source.lake

    def fail(part: TablePart, *args: Any, **given: Any) -> Any:
        if part.table == table_id("ONE"):
            raise LakeError("this process sees another table than there is")
        return apply(part, *args, **given)

    lake.apply_window = fail  # type: ignore[method-assign]
    try:
        source.windows()
    finally:
        lake.apply_window = apply  # type: ignore[method-assign]


def resumes_the_true_lake(source: Source) -> None:
    lake, broken = source.lake, source.lake.__dict__.pop("apply_window", None)
    try:
        source.run()
    finally:
        if broken is not None:
            lake.apply_window = broken  # type: ignore[method-assign]


def recaptures_and_goes_on(source: Source) -> None:
    recaptures(source)
    source.run()


def reads_again_and_goes_on(source: Source) -> None:
    reads_again(source)
    source.run()


def leaves(source: Source) -> None:
    source.pipeline.remove_tables([table_id("ONE")])


def leaves_and_comes_back(source: Source) -> None:
    leaves(source)
    source.pipeline.add_tables([table_id("ONE")])
    goes_on(source)


@dataclass(frozen=True)
class Effect:
    """What stands still right before ``method`` of ``owner``, for the ``nth`` time; what was done before; what the process does, and what the other
    one does meanwhile."""

    name: str
    owner: type
    method: str
    before: Callable[[Source], object]
    step: Callable[[Source], object]
    meanwhile: Callable[[Source], object]
    nth: int = 0


EFFECTS = [
    Effect("plan windows", Windows, "plan", a_change, lambda one: one.pipeline.plan_windows(), goes_on),
    Effect("join", CapturedTables, "begin_stream", everything, joins_again, joins_again_and_goes_on),
    Effect("join for the first time", CapturedTables, "begin_stream", nothing, snapshots, everything),
    Effect("begin the source", SourceRow, "save", nothing, snapshots, everything),
    Effect("plan the chunks of a first snapshot", CapturedTables, "plan_chunks", nothing, snapshots, everything),
    Effect("plan an ad hoc snapshot", Chunks, "plan", everything, reads_again, reads_again_and_goes_on),
    Effect("land a chunk's file", fenced._FencedWriter, "close", nothing, snapshots, everything),
    Effect("land a chunk's manifest", FencedLanding, "write_manifest", nothing, snapshots, everything, 5),
    Effect("record that a chunk landed", Chunks, "record_landed", nothing, snapshots, everything),
    Effect("commit a chunk", MemoryLake, "apply_chunk", nothing, snapshots, everything),
    Effect("record that a chunk is applied", Chunks, "record_applied", nothing, snapshots, everything),
    Effect("end a snapshot", CapturedTables, "finish_snapshot", nothing, snapshots, everything, 1),
    Effect("land a window's file", fenced._FencedWriter, "close", a_change, Source.windows, goes_on),
    Effect("land a window's manifest", FencedLanding, "write_manifest", a_change, Source.windows, goes_on),
    Effect("record that a window is captured", Windows, "record_captured", a_change, Source.windows, goes_on),
    Effect("commit a window", MemoryLake, "apply_window", a_captured_change, Source.windows, goes_on),
    Effect("advance a table", Windows, "advance_tables", a_captured_change, Source.windows, goes_on, 1),
    Effect("advance tables that join anew", Windows, "advance_tables", a_captured_change, Source.windows, joins_again, 0),
    Effect("record that a window is applied", Windows, "record_applied", a_captured_change, Source.windows, goes_on),
    Effect("stop a table", CapturedTables, "fail", a_captured_change, fails_on_one, resumes_the_true_lake),
    Effect("retire windows", WindowHistory, "retire", old_windows, lambda one: one.pipeline.retire_windows(), goes_on),
    Effect("remove a retired window", FencedLanding, "remove", old_windows, lambda one: one.pipeline.retire_windows(), lambda other: other.pipeline.retire_windows()),
    Effect("remove a window to read it again", FencedLanding, "remove", a_lost_window, recaptures, recaptures_and_goes_on),
    Effect("let windows be captured again", WindowHistory, "unrecord_captured", a_lost_window, recaptures, recaptures_and_goes_on),
    Effect("take a signal", Signals, "take", a_signal, lambda one: one.pipeline.take_signals(), everything),
    Effect("plan what a signal asks for", Chunks, "plan", a_signal, lambda one: one.pipeline.take_signals(), everything),
    Effect("end a signal", Signals, "finish", a_signal, lambda one: one.pipeline.take_signals(), everything),
    Effect("remove a table", CapturedTables, "end_stream", everything, leaves, leaves_and_comes_back),
    Effect("make the store anew", Images, "put", everything, lambda one: one.pipeline.rebuild_state(replace=True), goes_on),
]  # fmt: skip


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: effect.name)
def test_who_stood_still_changes_nothing(
    sources: tuple[Source, Source], effect: Effect, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = sources
    effect.before(one)
    seen: list[object] = []
    calls = [0]
    true = getattr(effect.owner, effect.method)

    def stands_still(*args: Any, **given: Any) -> Any:
        calls[0] += not seen
        if seen or calls[0] != effect.nth + 1:
            return true(*args, **given)
        expire_leases(other)
        seen.append(None)
        effect.meanwhile(other)
        seen.append(picture(other))
        try:
            return true(*args, **given)
        finally:
            seen.append(picture(other))

    monkeypatch.setattr(effect.owner, effect.method, stands_still)
    with suppress(CdcError):
        effect.step(one)
    assert len(seen) == 3, "it never came so far"
    assert seen[2] == seen[1]
    monkeypatch.undo()
    one.close()
    change(one, 300)
    one.run()
    one.check_current(*NAMES)
    for name in NAMES:
        changes = one.lake.tables[table_id(name)].changes
        places = [(change["_cdc_commit_scn"], change["_cdc_ordinal"]) for change in changes]
        assert len(set(places)) == len(places), "nothing is doubled"


def expire_leases(source: Source) -> None:
    """What a lease is whose holder gives no sign of life."""
    with source.pipeline.store._database.writing(leases_only=True) as connection:
        connection.execute(text("UPDATE leases SET expires = 0, expires_uptime = 0"))


def picture(source: Source) -> object:
    """All that lasts: the metadata store, the files of landing, and the Delta tables."""
    ctx = source.pipeline
    root = source.path / "landing"
    files = {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
    lake = {
        str(table): (sorted(map(repr, found.rows.values())), list(map(repr, found.changes)))
        for table, found in source.lake.tables.items()
    }
    return ctx.store.images.get(), ctx.store.signals.find(), files, lake
