"""Histories follow real change logs without Spark: each is held against the table as of each commit, as the generator of redo kept it."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from cdc_core.config import HistoryConfig, LakeConfig
from cdc_core.errors import SchemaMismatchError
from cdc_core.lake.history import table as history_table
from cdc_core.lake.history.files import HistoryFiles
from cdc_core.lake.history.layout import HistoryLayout
from cdc_core.lake.history.spread_changes import spread
from cdc_core.lake.history.table import HistoryTable
from cdc_core.lake.lake import Lake
from tests.lake.test_rewriting import _filled
from tests.lake.who_merges import plain_lake
from tests.stage.landed import Source, order, orders_schema

ORDERS = orders_schema().table
NAMES = ("ID", "NAME", "AMOUNT", "NOTE")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """An empty SHOP.ORDERS."""
    return Source(tmp_path / "landing", orders_schema())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which only what needs no Spark works."""
    return plain_lake(tmp_path)


@pytest.fixture
def history(tmp_path: Path) -> HistoryTable:
    return HistoryTable(LakeConfig(path=str(tmp_path / "lake")), "shop", ORDERS)


def states(history: HistoryTable) -> list[tuple[Any, ...]]:
    """Values, from, to, whether it is current, and what ended it."""
    found = DeltaTable(history.path).to_pyarrow_table().to_pylist()
    names = (*NAMES, "_cdc_valid_from_scn", "_cdc_valid_to_scn", "_cdc_is_current", "_cdc_op")
    return sorted((tuple(row[name] for name in names) for row in found), key=repr)


def walked(source: Source, first: int) -> list[tuple[Any, ...]]:
    """The same without the operations, from the SCN of the snapshot on."""
    found, live = [], dict[int, tuple[tuple[Any, ...], int]]()
    known = [scn for scn in sorted(source.states) if scn > first]
    for scn in (first, *known):
        rows = {row["ID"]: tuple(row[name] for name in NAMES) for row in source.state(scn)}
        for key in [one for one in live if rows.get(one) != live[one][0]]:
            row, since = live.pop(key)
            found.append((*row, since, scn, False))
        live.update({key: (row, scn) for key, row in rows.items() if key not in live})
    found += [(*row, since, None, True) for row, since in live.values()]
    return sorted(found, key=repr)


def check(history: HistoryTable, source: Source, first: int) -> None:
    found = states(history)
    assert sorted((row[:-1] for row in found), key=repr) == walked(source, first)
    assert all((row[-1] is None) == row[-2] for row in found)


def changes(rng: random.Random, source: Source, ids: dict[int, str]) -> None:
    """One transaction of several changes, some on one row."""
    tx = source.begin()
    for _ in range(rng.randint(1, 5)):
        key = rng.randint(1, 14)
        if key not in ids:
            ids[key] = tx.insert(order(key, f"new {rng.random():.3f}", note=rng.choice("xyz")))
            continue
        what = rng.choice(["name", "note", "move", "delete", "again"])
        if what in {"delete", "again"}:
            tx.delete(ids.pop(key))
            if what == "again":
                ids[key] = tx.insert(order(key, "again", note=None))
        elif what == "move":
            to = next(one for one in range(15, 200) if one not in ids)
            ids[to] = ids.pop(key)
            tx.update(ids[to], {"ID": to})
        else:
            tx.update(ids[key], {what.upper(): f"{rng.random():.3f}"})
    tx.commit()


@pytest.mark.parametrize("seed", range(6))
def test_a_history_is_a_walk_through_the_table(
    source: Source, lake: Lake, history: HistoryTable, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each window, and the same derived anew; a process that dies in front of the commit leaves nothing."""
    assert history.follow() is None
    _filled(source, lake)
    chunk, rng, ids = source.low, random.Random(seed), dict(source.ids)
    for at in range(6):
        for _ in range(rng.randint(1, 3)):
            changes(rng, source, ids)
        position = None if at == 0 else source.low
        source.cut().apply(lake, position=position)
        if at == 3:
            before = states(history)
            with monkeypatch.context() as patch:
                patch.setattr(history_table, "commit_files", _killed)
                with pytest.raises(KeyboardInterrupt):
                    history.follow()
            assert states(history) == before
        done = history.follow()
        assert done is not None
        assert done.is_whole == (at == 0)
        check(history, source, chunk)
        assert history.follow() is None
    ours = states(history)
    whole = history.follow(anew=True)
    assert whole is not None
    assert whole.is_whole
    assert states(history) == ours
    history.maintain(None)
    assert states(history) == ours
    assert history.follow() is None
    assert history.scn() == source.low


@pytest.mark.parametrize("seed", range(4))
def test_a_large_change_log_is_looked_through_once_for_all_parts_of_the_keys(
    source: Source, lake: Lake, history: HistoryTable, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states are the same in parts of a few changes, whatever files hold them; where a change of key lacks a LOB, none is spread."""
    _filled(source, lake)
    chunk, rng, ids = source.low, random.Random(seed), dict(source.ids)
    lake_config = LakeConfig(path=history.path.split("/shop/history/")[0])
    soft = HistoryTable(
        lake_config, "shop", ORDERS, layout=HistoryLayout.of_soft_deletes(HistoryConfig())
    )
    spread_over: list[int] = []

    def counted(changes: Any, parts: int, **facts: Any) -> Any:
        spread_over.append(parts)
        return spread(changes, parts, **facts)

    for _ in range(3):
        for _ in range(2):
            tx = source.begin()
            for key in rng.sample(sorted(ids), 3):
                tx.update(ids[key], {"NAME": f"{rng.random():.3f}"})
            gone = rng.choice(sorted(ids))
            tx.delete(ids.pop(gone))
            ids[gone + 100] = tx.insert(order(gone + 100, "moved"))
            tx.commit()
        source.cut().apply(lake, position=None)
    soft.follow()
    whole = rows(soft)
    with monkeypatch.context() as patch:
        patch.setattr("cdc_core.stage.changes.PART_CHANGES_MAX", 5)
        patch.setattr("cdc_core.lake.history.spread_changes._HELD_BYTES", 2000)
        patch.setattr("cdc_core.lake.history.derived_states.spread", counted)
        history.follow(anew=True)
        check(history, source, chunk)
        soft.follow(anew=True)
        assert rows(soft) == whole
        assert len(spread_over) == 2
        assert min(spread_over) > 3
        tx = source.begin()
        tx.update(next(iter(ids.values())), {"ID": 500})
        tx.commit()
        source.cut().apply(lake, position=None)
        history.follow(anew=True)
        check(history, source, chunk)
        assert len(spread_over) == 2


def _killed(*_args: Any, **_more: Any) -> None:
    raise KeyboardInterrupt


def kept(history: HistoryTable, **more: Any) -> HistoryTable:
    """The same table as another configuration has it."""
    config = HistoryConfig(**more.pop("config", {}))
    lake = LakeConfig(path=history.path.split("/shop/history/")[0])
    return HistoryTable(lake, "shop", ORDERS, layout=HistoryLayout.of(config, **more))


def rows(history: HistoryTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(history.path).to_pyarrow_table().to_pylist()
    return sorted(found, key=repr)


def live(source: Source, lake: Lake, rng: random.Random, ids: dict[int, str]) -> None:
    """Two windows of two transactions."""
    for _ in range(2):
        changes(rng, source, ids)
        changes(rng, source, ids)
        source.cut().apply(lake, position=None)


@pytest.mark.parametrize("seed", range(3))
def test_the_columns_of_auto_cdc_say_the_same(
    source: Source, lake: Lake, history: HistoryTable, seed: int
) -> None:
    """A table of `create_auto_cdc_flow` can be gone on with, or the other way round: only names and types are others."""
    _filled(source, lake)
    chunk, rng, ids = source.low, random.Random(seed), dict(source.ids)
    history.follow()
    auto = kept(history, config={"names": "auto_cdc"})
    done = auto.follow()
    assert done is not None
    assert done.is_whole, "another configuration"
    for _ in range(3):
        live(source, lake, rng, ids)
        done = auto.follow()
        assert done is not None
        assert not done.is_whole
        found = rows(auto)
        assert all(list(row) == [*NAMES, "__START_AT", "__END_AT"] for row in found)
        states_ = [(*row.values(), row["__END_AT"] is None) for row in found]
        assert sorted(states_, key=repr) == walked(source, chunk)
    schema = DeltaTable(auto.path).schema().to_json()
    assert schema.count('"type":"long"') == 3
    history.follow()
    check(history, source, chunk)


@pytest.mark.parametrize("seed", range(3))
def test_ends_can_be_the_last_scn_of_a_state(
    source: Source, lake: Lake, history: HistoryTable, seed: int
) -> None:
    _filled(source, lake)
    chunk, rng, ids = source.low, random.Random(seed), dict(source.ids)
    names = {"valid_to_scn": "TO_SCN", "valid_to": None, "op": None, "is_current": "CURRENT"}
    own = kept(history, config={"end": "inclusive", "columns": names})
    for _ in range(2):
        live(source, lake, rng, ids)
        own.follow()
        found = [
            (*(row[name] for name in NAMES), row["_cdc_valid_from_scn"],
             None if row["CURRENT"] else row["TO_SCN"] + 1, row["CURRENT"])
            for row in rows(own)
        ]  # fmt: skip
        assert sorted(found, key=repr) == walked(source, chunk)


def test_what_makes_a_state_is_configured(
    source: Source, lake: Lake, history: HistoryTable
) -> None:
    """By column, and by change; with each update as anew."""
    _filled(source, lake)
    rng, ids = random.Random(5), dict(source.ids)
    ways = (
        {"tracked": ("NA*",)},
        {"config": {"changes": "all"}},
        {"tracked": ("AMOUNT", "NOTE"), "config": {"changes": "all", "names": "auto_cdc"}},
    )
    for way in ways:
        own = kept(history, **way)
        for _ in range(3):
            live(source, lake, rng, ids)
            own.follow()
            found = rows(own)
            own.follow(anew=True)
            assert rows(own) == found
    with pytest.raises(SchemaMismatchError, match="none of the columns"):
        kept(history, tracked=("ID",)).follow()
    with pytest.raises(SchemaMismatchError, match="the same names as columns of the table"):
        kept(history, config={"columns": {"op": "Note"}}).follow()
    tx = source.begin()
    tx.update(ids[next(iter(ids))], {"NAME": "one"})
    tx.update(ids[next(iter(ids))], {"NAME": "two"})
    tx.update(ids[next(iter(ids))], {"NOTE": "three"})
    tx.commit()
    source.cut().apply(lake, position=None)
    for way, count in (({"config": {"changes": "all"}}, 3), ({}, 1), ({"tracked": ("NAME",)}, 1)):
        own = kept(history, **way)
        own.follow(anew=True)
        newest = max(row["_cdc_valid_from_scn"] for row in rows(own))
        new = [row for row in rows(own) if row["_cdc_valid_from_scn"] == newest]
        assert len(new) == count, way
        assert sorted(row["NAME"] for row in new)[-1] == "two"


def test_ended_states_are_kept_for_some_days(
    source: Source, lake: Lake, history: HistoryTable
) -> None:
    """Counted from the newest change. What is gone does not come back with late commits or another derivation, unless states are
    kept for ever again."""
    _filled(source, lake)
    rng, ids, start = random.Random(3), dict(source.ids), source.low
    own = kept(history, days=7)
    for _ in range(4):
        live(source, lake, rng, ids)
        source.time += timedelta(days=3)
        own.follow()
    whole = rows(own)
    newest = source.time - timedelta(days=3)
    # A state that ended seven days before the newest change, or earlier.
    ends = [one["_cdc_valid_to"] for one in whole]
    wanted = [one for one, at in zip(whole, ends, strict=True) if at is None or at > newest - timedelta(days=7)]  # fmt: skip
    assert len(wanted) < len(whole)
    own.maintain(None)
    assert rows(own) == wanted
    own.follow(anew=True)
    assert rows(own) == wanted
    live(source, lake, rng, ids)
    own.follow()
    assert min(one["_cdc_valid_to_scn"] or source.low for one in rows(own)) == min(one["_cdc_valid_to_scn"] or source.low for one in wanted)  # fmt: skip
    history.follow(anew=True)
    check(history, source, start)


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_were_deleted_stay_on_wish(
    source: Source, lake: Lake, history: HistoryTable, seed: int
) -> None:
    """One row per key, as it is or was last, with each update as by a walk, and derived anew; some days later they are gone."""
    _filled(source, lake)
    chunk, rng, ids = source.low, random.Random(seed), dict(source.ids)
    lake_config = LakeConfig(path=history.path.split("/shop/history/")[0])
    soft = HistoryLayout.of_soft_deletes(HistoryConfig(), days=2)
    own = HistoryTable(lake_config, "shop", ORDERS, layout=soft)
    history.follow()
    for at in range(4):
        live(source, lake, rng, ids)
        source.time += timedelta(days=1)
        done = own.follow()
        assert done is not None
        assert done.is_whole == (at == 0)
        last: dict[int, tuple[Any, ...]] = {}
        for one in sorted(walked(source, chunk), key=lambda row: row[4]):
            last[one[0]] = one
        found = rows(own)
        told = [
            (*(row[name] for name in NAMES), row["_cdc_changed_scn"], row["_cdc_deleted_scn"],
             row["_cdc_deleted_by"] is None)
            for row in found
        ]  # fmt: skip
        assert sorted(told, key=repr) == sorted(last.values(), key=repr)
        living = {row["ID"] for row in found if row["_cdc_deleted_scn"] is None}
        assert living == {row["ID"] for row in source.state(source.low)}
        own.follow(anew=True)
        assert rows(own) == found
    newest = source.time - timedelta(days=1)
    own.maintain(None)
    limit = newest - timedelta(days=2)
    assert rows(own) == [one for one in found if not one["_cdc_deleted_at"] or one["_cdc_deleted_at"] > limit]  # fmt: skip


def test_files_whose_states_stay_are_left_alone(
    source: Source, lake: Lake, history: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a state that ends, the open row goes and the ended one comes; nothing else is exchanged."""
    _filled(source, lake)
    assert history.follow() is not None
    tx = source.begin()
    tx.update(source.ids[1], {"NAME": "one"})
    tx.update(source.ids[1], {"NAME": "two"})
    tx.commit()
    source.cut().apply(lake, position=None)
    done = history.follow()
    assert done is not None
    assert (done.added, done.removed, done.is_whole) == (2, 1, False)
    [ended] = [row for row in states(history) if not row[-2]]
    assert (ended[1], ended[-1]) == ("name 1", "u")


def test_a_late_commit_gets_where_it_belongs(
    source: Source, lake: Lake, history: HistoryTable
) -> None:
    """States in the middle of a history begin, end and go, also of a key to which a later change of key carried what came late."""
    _filled(source, lake)
    start, ids = source.low, source.ids
    assert history.follow() is not None
    late = source.begin()
    late.insert(order(20, "late"))
    late.update(ids[1], {"NAME": "late"})
    late.update(ids[3], {"NOTE": "a LOB that came late"})
    late.delete(ids[2])
    late.commit()
    hidden = source.hide(late)
    newer = source.begin()
    newer.update(ids[1], {"NAME": "newer"})
    newer.update(ids[3], {"ID": 30})
    newer.commit()
    source.cut().apply(lake, position=None)
    early = history.follow()
    assert early is not None
    assert not early.is_whole

    source.show(hidden)
    third = source.cut()
    third.apply(lake, position=third.manifest.window.scn_low, late_above=start)
    done = history.follow()
    assert done is not None
    assert done.is_whole
    check(history, source, start)


def test_an_update_opens_what_is_new_and_what_it_meets(
    source: Source, lake: Lake, history: HistoryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same number of files however long the change log and the history have become."""
    _filled(source, lake)
    history.follow()
    opened: list[str] = []
    open_file = pq.ParquetFile.__init__

    def counted(self: pq.ParquetFile, where: Any, **more: Any) -> None:
        opened.append(str(where))
        open_file(self, where, **more)

    counts: dict[int, set[int]] = {10: set(), 40: set()}
    with monkeypatch.context() as patch:
        for at in range(50):
            tx = source.begin()
            tx.update(source.ids[1 + at % 3], {"NAME": f"name {at}"})
            tx.commit()
            position = source.low if at else None
            source.cut().apply(lake, position=position)
            patch.setattr(pq.ParquetFile, "__init__", counted)
            done = history.follow()
            patch.undo()
            assert done is not None
            assert (done.added, done.removed, done.is_whole) == (2, 1, False)
            assert sum("/changelog/" in one for one in opened) == 1
            counts.setdefault(at // 10 * 10, set()).add(len(opened))
            opened.clear()
    # Small files of ended states are put together: now and then there is one more, or a few.
    assert min(counts[40]) == min(counts[10])
    assert max(counts[40]) <= 8
    ended = [one for one in states(history) if not one[-2]]
    assert len(ended) == 50
    assert len(files(history, "history")) <= 8
    history.maintain(None)
    assert len(files(history, "history")) == 2
    assert [one for one in states(history) if not one[-2]] == ended


def test_ended_states_are_known_by_the_log_in_a_table_of_many_columns(
    make_source: Any, columns: Any, lake: Lake, history: HistoryTable
) -> None:
    """Delta's statistics end with the first 32 columns where a table says nothing."""
    narrow = orders_schema()
    more = tuple(columns.number(f"N{number}", 9, 0) for number in range(40))
    wide = replace(narrow, columns=(*narrow.columns, *more))
    source = make_source(wide)
    tx = source.begin()
    ids = [tx.insert({**order(key), **dict.fromkeys(f"N{number}" for number in range(40))}) for key in (1, 2)]  # fmt: skip
    tx.commit()
    source.cut().apply(lake, position=None)
    history.follow()
    tx = source.begin()
    tx.update(ids[0], {"N39": 7})
    tx.commit()
    source.cut().apply(lake, position=None)
    history.follow()
    layout = HistoryLayout.of(HistoryConfig())
    own = HistoryFiles(history.path, layout.columns(wide), wide.key, layout.ends, {})
    assert sorted(one.has_current for one in own.listed()) == [False, True]


def files(history: HistoryTable, layer: str) -> list[str]:
    return [str(one) for one in DeltaTable(history.path.replace("/history/", f"/{layer}/")).file_uris()]  # fmt: skip


def test_compaction_of_the_change_log_costs_the_history_nothing(
    source: Source, lake: Lake, history: HistoryTable
) -> None:
    """Files that were replaced are read as long as they are there; then all states are derived."""
    _filled(source, lake)
    start, ids = source.low, dict(source.ids)
    history.follow()
    changelog = history.path.replace("/history/", "/changelog/")
    for at, is_removed in enumerate((False, True)):
        for _ in range(2):
            changes(random.Random(at), source, ids)
            source.cut().apply(lake, position=None)
        DeltaTable(changelog).optimize.compact()
        if is_removed:
            DeltaTable(changelog).vacuum(0, dry_run=False, enforce_retention_duration=False)
        done = history.follow()
        assert done is not None
        assert done.is_whole == is_removed
        check(history, source, start)
