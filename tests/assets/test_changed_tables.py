"""Runs over the tables that windows change alone: what a run costs follows the changes, and not the number of captured tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.settings import (
    ALL_TABLES_MAX,
    DagsterConfig,
    FreshnessConfig,
    WindowsSensorConfig,
)
from assets.shown import Shown, shown_now
from assets.translator import Layer
from tests.assets.site import MemorySite
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

NAMES = ("ONE", "TWO", "THREE")
LAYERS: tuple[Layer, ...] = ("changelog", "mirror")
CHANGED = DagsterConfig(windows=WindowsSensorConfig(assets="changed"))

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in NAMES)
)


@pytest.fixture
def site(oracle: Oracle, tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[MemorySite]:
    """Three tables, snapshotted, with no window; their code location runs what changes."""
    with source_of(oracle, tmp_path, *NAMES) as source:
        source.begin(first=Source.snapshot)
        yield MemorySite(source, instance, CHANGED)


@pytest.fixture
def warm(oracle: Oracle, site: MemorySite) -> MemorySite:
    """Behind its first window, so that the sensor knows how long a window takes and reads the next ahead."""
    change(oracle, 1, *NAMES)
    for _ in range(2):
        assert site.windows().success
    assert site.tick() == []
    return site


def change(oracle: Oracle, number: int, *names: str) -> None:
    oracle.run(*(f"INSERT INTO {name} VALUES ({number}, 'x')" for name in names))


def layers(site: MemorySite, *names: str) -> list[dg.AssetKey]:
    """The assets of these tables, and the table of schema changes, to which any window may bring something."""
    own = (site.names.key(layer, table_id(name)) for name in names for layer in LAYERS)
    return sorted([*own, site.names.side_table_key("schema_changes")])


def counts(site: MemorySite) -> dict[str, int]:
    """How many windows each table's mirror is materialized for."""
    return {name: len(site.partitions(name)) for name in NAMES}


def test_a_run_takes_the_tables_that_its_windows_change(oracle: Oracle, warm: MemorySite) -> None:
    before = counts(warm)
    change(oracle, 2, "ONE")
    [request] = warm.tick()
    assert sorted(request.asset_selection or ()) == layers(warm, "ONE")
    assert warm.run(request).success
    assert counts(warm) == before | {"ONE": before["ONE"] + 1}
    assert warm.tick() == []
    warm.source.check_current(*NAMES)
    assert warm.check("TWO").passed


def test_windows_that_are_not_captured_are_captured_by_a_run_of_their_own(
    oracle: Oracle, site: MemorySite
) -> None:
    """How long the first window takes to read is not known, so that no tick reads it ahead."""
    change(oracle, 1, "TWO")
    [request] = site.tick()
    assert request.asset_selection == [site.names.redo_key]
    assert site.run(request).success
    assert counts(site) == dict.fromkeys(NAMES, 0)
    [request] = site.tick()
    assert sorted(request.asset_selection or ()) == layers(site, "TWO")
    assert site.run(request).success
    assert site.tick() == []
    site.source.check_current(*NAMES)


def test_a_range_of_windows_takes_the_tables_of_all_of_them(
    oracle: Oracle, warm: MemorySite
) -> None:
    for number, name in enumerate(("ONE", "THREE"), start=2):
        change(oracle, number, name)
        [window] = warm.source.pipeline.plan_windows()
        warm.source.pipeline.capture_window(window)
    before = counts(warm)
    [request] = warm.tick()
    assert sorted(request.asset_selection or ()) == layers(warm, "ONE", "THREE")
    assert warm.run(request).success
    assert counts(warm)["TWO"] == before["TWO"]
    assert warm.tick() == []
    warm.source.check_current(*NAMES)


def test_windows_that_change_no_table_that_takes_them_are_applied_by_the_tick(
    oracle: Oracle, warm: MemorySite
) -> None:
    """A paused table's changes wait in landing; when it is resumed a run brings them, and no other table has a part in it."""
    warm.source.pipeline.pause_tables([table_id("ONE")])
    change(oracle, 2, "ONE")
    found = warm.evaluate("windows")
    assert not found.run_requests
    assert "change no active table" in (found.skip_message or "")
    assert warm.source.pipeline.pending_windows() == []
    warm.source.check_current("TWO", "THREE")
    before = counts(warm)
    warm.source.pipeline.resume_tables([table_id("ONE")])
    [request] = warm.tick()
    assert sorted(request.asset_selection or ()) == layers(warm, "ONE")
    assert warm.run(request).success
    assert counts(warm) == before | {"ONE": before["ONE"] + 1}
    assert warm.tick() == []
    warm.source.check_current(*NAMES)


def test_what_was_done_outside_is_shown_for_the_tables_that_it_changed(
    oracle: Oracle, warm: MemorySite
) -> None:
    before = counts(warm)
    change(oracle, 2, "TWO")
    assert warm.source.windows()
    change(oracle, 3, "ONE")
    [request] = warm.tick()
    assert counts(warm) == before | {"TWO": before["TWO"] + 1}
    assert warm.run(request).success
    warm.source.check_current(*NAMES)


def test_windows_that_a_table_takes_later_outside_are_shown_for_it(
    oracle: Oracle, warm: MemorySite
) -> None:
    """What every other table had, and was shown, is not behind a table that was paused."""
    warm.source.pipeline.pause_tables([table_id("ONE")])
    change(oracle, 2, "ONE", "TWO")
    assert warm.windows().success
    change(oracle, 3, "TWO")
    assert warm.windows().success
    before = counts(warm)
    warm.source.pipeline.resume_tables([table_id("ONE")])
    warm.source.windows()
    change(oracle, 4, "TWO")
    assert warm.windows().success
    assert counts(warm) == before | {"ONE": before["ONE"] + 1, "TWO": before["TWO"] + 1}


def test_a_tick_looks_at_what_came_since_the_last(
    oracle: Oracle, warm: MemorySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An asset costs a query: those of tables with nothing new are not asked for."""
    change(oracle, 2, "ONE")
    assert warm.windows().success
    asked: list[dg.AssetKey] = []
    real = warm.instance.get_materialized_partitions

    def spied(key: dg.AssetKey, *more: object) -> set[str]:
        asked.append(key)
        return real(key, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(warm.instance, "get_materialized_partitions", spied)
    change(oracle, 3, "ONE")
    assert len(warm.tick()) == 1
    assert not {key for key in asked if key.path[-1] in {"two", "three"}}
    warm.cursors.clear()
    assert len(warm.tick()) == 1
    assert {key.path[-1] for key in asked} >= {"one", "two", "three"}


def test_what_was_shown_is_known_by_windows_and_chunks(oracle: Oracle, warm: MemorySite) -> None:
    records = warm.source.pipeline.records
    first = shown_now(records)
    assert Shown.of(first.as_json) == first
    assert shown_now(records) == first
    newest = records.windows(newest_first=True, limit=1)[0].window
    assert first.above == newest.scn_high
    change(oracle, 2, "ONE")
    [window] = warm.source.pipeline.plan_windows()
    assert shown_now(records).above <= window.scn_low, "a window that waits was not shown"
    warm.source.pipeline.capture_window(window)
    warm.source.pipeline.apply_window(window)
    assert shown_now(records).above == window.scn_high
    tables = [table_id(name) for name in NAMES]
    assert first.tables_with_news(shown_now(records), tables) == []
    warm.source.pipeline.resnapshot_tables([table_id("TWO")])
    assert table_id("TWO") in first.tables_with_news(shown_now(records), tables)
    assert Shown().tables_with_news(first, tables) == tables


def test_a_window_that_waits_was_not_shown_though_no_table_wants_it(
    oracle: Oracle, warm: MemorySite
) -> None:
    """Its redo lands all the same."""
    pipeline = warm.source.pipeline
    pipeline.remove_tables([table_id(name) for name in NAMES])
    change(oracle, 2, "ONE")
    [window] = pipeline.plan_windows()
    assert shown_now(pipeline.records).above == window.scn_low


def test_all_tables_up_to_a_number_and_those_that_change_above_it() -> None:
    """A table at rest would be stale to who watches the age of its windows."""
    assert DagsterConfig().takes_all(ALL_TABLES_MAX)
    assert not DagsterConfig().takes_all(ALL_TABLES_MAX + 1)
    watched = DagsterConfig(freshness=FreshnessConfig(fail_minutes=60))
    assert watched.takes_all(ALL_TABLES_MAX + 1)
    every = DagsterConfig(windows=WindowsSensorConfig(assets="all"))
    assert every.takes_all(10 * ALL_TABLES_MAX)
    assert not CHANGED.takes_all(1)
