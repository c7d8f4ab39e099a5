"""Old windows again, in any order; crashes between the two commits; damage."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from cdc_core.errors import LandingDamagedError, NotYetError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_core.lake.lake import Lake
    from cdc_core.schema.table import TableSchema
    from tests.stage.landed import Row, Source


def _random_work(
    source: Source, row: Callable[..., Row], rng: random.Random, transactions: int
) -> None:
    """Interleaved transactions of inserts, updates, deletes, re-inserts, changes of key and savepoints, each on own keys."""
    for _ in range(transactions):
        tx = source.begin()
        points = []
        for _ in range(rng.randint(1, 12)):
            mine = list(source.rows)
            used = {r["ID"] for r in source.rows.values()}
            action = rng.choice(
                ["insert", "insert", "update", "update", "delete", "key", "save", "undo"]
            )
            free = next(i for i in (rng.randint(1, 200) for _ in range(1000)) if i not in used)
            if action == "insert" or not mine:
                tx.insert(row(free, f"n{rng.randint(0, 99)}", note=rng.choice([None, "a", "ü'"])))
            elif action == "update":
                some: dict[str, Any] = rng.choice(
                    [
                        {"NAME": f"u{rng.randint(0, 99)}"},
                        {"NOTE": "lob"},
                        {"AMOUNT": Decimal(rng.randint(0, 99))},
                    ]
                )
                tx.update(rng.choice(mine), some)
            elif action == "delete":
                tx.delete(rng.choice(mine))
            elif action == "key":
                tx.update(rng.choice(mine), {"ID": free})
            elif action == "save":
                points.append(tx.savepoint())
            elif points:
                tx.rollback_to(points.pop())
        if rng.random() < 0.15:
            tx.rollback()
        else:
            tx.commit()


@pytest.mark.spark
def test_random_load_replays_crashes_and_damage(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    delta_version: Callable[[TableSchema], int],
    tmp_path: Path,
) -> None:
    rng = random.Random(7)
    lake = open_lake()
    _random_work(source, row, rng, 12)
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    windows = []
    for crash_at in (0, 2):
        _random_work(source, row, rng, 25)
        window = source.cut()
        windows.append(window)
        if crash_at:
            calls = iter(range(1, 10))

            def fence(calls: Any = calls, crash_at: int = crash_at) -> None:
                if next(calls) == crash_at:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                window.apply(lake, fence=fence)  # the change log has it, the mirror not
            position = lake.table(source.schema.table).position()
            assert (position.changelog_scn, position.mirror_scn) == (
                window.scn_high,
                windows[0].scn_high,
            )
        window.apply(lake)
        assert mirror(source.schema) == source.state(window.scn_high)

    before, version = mirror(source.schema, hidden=True), delta_version(source.schema)
    for window in rng.sample(windows, 2):
        assert window.replay(lake).skipped
    assert (mirror(source.schema, hidden=True), delta_version(source.schema)) == (before, version)
    for window in windows:
        at = lake.table(source.schema.table).mirror_version_at(window.scn_high)
        assert mirror(source.schema, at) == source.state(window.scn_high)

    table = DeltaTable(str(tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path))
    table.update({"NAME": "'damaged'"})
    table.delete('"ID" % 2 = 0')
    assert windows[1].replay(lake).rows_inserted > 0
    lake.table(source.schema.table).rebuild_mirror(source.schema)
    assert mirror(source.schema, hidden=True) == before


@pytest.mark.spark(merges=False)
def test_small_tables_are_looked_through_in_hand(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit that comes late, a replay of the mirror as it is, and one that mends it; Spark derives the same rows."""
    lake, table = open_lake(), source.schema.table
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 8)}
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    late = source.begin()
    late.update(ids[1], {"NAME": "came late"})
    late.update(ids[2], {"NOTE": "a LOB that came late"})
    late.insert(row(8, "came late"))
    late.commit()
    hidden = source.hide(late)
    tx = source.begin()
    tx.update(ids[1], {"NAME": "newer"})
    tx.delete(ids[3])
    tx.commit()
    first = source.cut()
    first.apply(lake)
    source.show(hidden)
    second = source.cut()
    sessions: list[object] = []
    with monkeypatch.context() as patched:
        patched.setattr("cdc_core.lake.apply.mirror_repair.rederived", sessions.append)
        second.apply(lake, late_above=first.manifest.window.scn_low)
        assert mirror(source.schema) == source.state(second.scn_high)
        before = mirror(source.schema, hidden=True)
        patched.setattr("cdc_core.lake.table_context.TableWork.session_for", sessions.append)
        assert first.replay(lake).skipped
        assert second.replay(lake).skipped
    assert sessions == []

    damaged = DeltaTable(str(tmp_path / "lake" / "shop" / "mirror" / table.path))
    damaged.update({"NAME": "'damaged'"}, predicate='"ID" = 1')
    damaged.update({"NOTE": "'damaged'"}, predicate='"ID" = 2')
    damaged.delete('"ID" = 8')
    done = second.replay(lake)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 2, 0)
    assert mirror(source.schema, hidden=True) == before
    monkeypatch.setattr("cdc_core.lake.apply.mirror_repair.IN_HAND_ROWS_MAX", 0)
    assert second.replay(lake).skipped


def test_a_window_that_was_not_applied_is_not_replayed(
    open_lake: Callable[..., Lake], source: Source, row: Callable[..., Row]
) -> None:
    tx = source.begin()
    tx.insert(row(1))
    tx.commit()
    with pytest.raises(NotYetError, match="only a window that was applied"):
        source.cut().replay(open_lake())


def test_a_damaged_landing_file_stops_the_window(
    open_lake: Callable[..., Lake], source: Source, row: Callable[..., Row]
) -> None:
    tx = source.begin()
    tx.insert(row(1))
    tx.commit()
    window = source.cut()
    Path(window.redo_paths[0]).write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(LandingDamagedError, match="missing or cannot be read"):
        window.apply(open_lake())
    Path(window.transactions_paths[0]).unlink()
    with pytest.raises(LandingDamagedError, match="a landing file is missing"):
        window.apply(open_lake())
