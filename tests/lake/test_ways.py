"""The way of a change into its mirror: the quickest that is open, and deletion vectors from the first window on that would copy much."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from cdc_core.config import DeletionVectors, LakeConfig
from cdc_core.delta.altering import commit_change
from cdc_core.errors import CommitConflictError, FencedError
from cdc_core.lake.lake import Lake
from cdc_core.lake.mirror import copy_on_write, ways
from cdc_core.lake.mirror.ways import (
    MergeSize,
    marking_seconds,
    rewriting_seconds,
    spark_seconds,
)
from tests.jvm import small_session
from tests.lake.test_marking import ROWS, _is_of, _then_crash, _vectors
from tests.lake.test_rewriting import Mirror, _path, _window
from tests.lake.who_merges import SparkAskedError, plain_lake
from tests.stage.landed import Row, Source, order

MIB = 1024 * 1024


def _filled(source: Source, lake: Lake) -> None:
    """Orders 0 to 59 by a first snapshot in two files, without vectors; the next window begins behind it."""
    tx = source.begin()
    source.ids = {i: tx.insert(order(i, f"name {i}", note=f"note {i}")) for i in range(ROWS)}
    tx.commit()
    scn = source.tick()
    for number in range(2):
        source.chunk(scn=scn, number=number, keep=partial(_is_of, number, 2)).apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []


def _renames(source: Source, *ids: int) -> Any:
    return _window(source, *(partial(_rename, source.ids[at], f"at {source.scn}") for at in ids))


def _rename(row_id: str, name: str, tx: Any) -> None:
    tx.update(row_id, {"NAME": name})


FEW, MANY = (MergeSize(one, 2, 3_000_000, 195 * MIB) for one in (1_000, 300_000))
HUGE = MergeSize(1_000, 100, 300_000_000, 20_000 * MIB)
NARROW = MergeSize(1_000, 20, 100_000_000, 130 * MIB)
"""Two columns that compress well: measured 1.2 CPU seconds for ten million rows, and 72 by Spark for all."""
ALL, ONE = (MergeSize(one, 8, 2_000_000, 900 * MIB) for one in (500, 1))
"""Rows that change each of the eight files, and one row."""


@pytest.mark.parametrize(
    ("size", "cores", "is_warm", "order"),
    [
        pytest.param(FEW, 2, True, "vectors rewriting spark", id="few-in-a-middle-mirror"),
        pytest.param(MANY, 2, True, "vectors rewriting spark", id="many-in-a-middle-mirror"),
        pytest.param(NARROW, 2, True, "vectors rewriting spark", id="large-and-narrow"),
        pytest.param(HUGE, 64, True, "spark vectors rewriting", id="huge-and-a-cluster"),
        pytest.param(ALL, 64, False, "vectors rewriting spark", id="no-jvm-is-started-for-it"),
        pytest.param(ALL, 64, True, "vectors spark rewriting", id="a-cluster-copies-quicker"),
        pytest.param(ONE, 2, True, "vectors rewriting spark", id="one-row-touches-one-file"),
    ],
)
def test_the_estimates_are_in_the_order_of_what_was_measured(
    size: MergeSize, cores: int, order: str, *, is_warm: bool
) -> None:
    seconds = {
        "vectors": marking_seconds(size),
        "rewriting": rewriting_seconds(size),
        "spark": spark_seconds(size, cores, is_warm=is_warm),
    }
    assert " ".join(sorted(seconds, key=lambda way: seconds[way])) == order


def test_a_running_spark_takes_what_would_take_longer_without_it(
    tmp_path: Path,
    source: Source,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lake = plain_lake(tmp_path)
    _filled(source, lake)
    monkeypatch.setattr(ways, "rewriting_seconds", lambda _: 60.0)
    monkeypatch.setattr(ways, "is_running", lambda: True)
    with pytest.raises(SparkAskedError), caplog.at_level("DEBUG"):
        _renames(source, 1).apply(lake)
    assert "copy-on-write would take about 60 s" in caplog.text


@pytest.mark.parametrize(
    ("setting", "rows_min", "ids", "switches"),
    [
        pytest.param("auto", ROWS, (1, 40), True, id="large-and-scattered"),
        pytest.param("auto", ROWS, tuple(range(0, 60, 4)), False, id="most-of-it-changes"),
        pytest.param("auto", ROWS + 1, (1, 40), False, id="small"),
        pytest.param("always", 10**9, (1, 40), True, id="always"),
        pytest.param("never", 1, (1, 40), False, id="never"),
    ],
)
def test_a_window_that_would_copy_much_switches_vectors_on(
    tmp_path: Path,
    source: Source,
    mirror: Mirror,
    monkeypatch: pytest.MonkeyPatch,
    setting: DeletionVectors,
    rows_min: int,
    ids: tuple[int, ...],
    *,
    switches: bool,
) -> None:
    """It marks rows then itself, and the next windows do; delta-rs's VACUUM is kept from the vectors."""
    monkeypatch.setattr(ways, "VECTORS_ROWS_MIN", rows_min)
    lake = plain_lake(tmp_path)
    _filled(source, lake)
    first = _renames(source, *ids)
    done = first.apply(lake, vectors=setting)
    assert done.write.way == ("deletion vectors" if switches else "copy-on-write")
    assert done.write.expected_seconds is not None
    assert bool(_vectors(tmp_path)) is switches
    assert mirror(source.schema) == source.state(first.scn_high)
    assert (
        lake.table(source.schema.table).mirror_version_at(first.scn_high)
        == DeltaTable(_path(tmp_path)).version()
    )
    second = _renames(source, 5)
    again = second.apply(lake, position=first.scn_high, vectors=setting)
    assert again.write.way == ("copy-on-write" if setting == "never" or (rows_min > ROWS and setting == "auto") else "deletion vectors")  # fmt: skip
    assert mirror(source.schema) == source.state(second.scn_high)
    if switches:
        with pytest.raises(CommitFailedError, match="DomainMetadata"):
            DeltaTable(_path(tmp_path)).vacuum(
                0, dry_run=False, enforce_retention_duration=False, full=True
            )


def test_the_switch_is_made_once_and_by_whom_the_mirror_belongs_to(
    tmp_path: Path, source: Source, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a crash the window finds it done; a process without its lease does not make it; where another one commits in between, the window begins again."""
    lake = plain_lake(tmp_path)
    _filled(source, lake)
    window = _renames(source, 1, 40)

    def lost() -> None:
        raise FencedError("lost", hint="-")

    with pytest.raises(FencedError):
        window.apply(lake, vectors="always", fence=lost)
    assert _properties(tmp_path)["delta.enableDeletionVectors"] == "false"
    looked = copy_on_write._looked_through

    def late(*given: Any) -> Any:
        found = looked(*given)
        DeltaTable(_path(tmp_path)).alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})  # fmt: skip
        return found

    with monkeypatch.context() as patched:
        patched.setattr(copy_on_write, "_looked_through", late)
        with pytest.raises(CommitConflictError):
            window.apply(lake, vectors="always")
    assert _properties(tmp_path)["delta.enableDeletionVectors"] == "false"
    with monkeypatch.context() as patched:
        patched.setattr(copy_on_write, "commit_change", _then_crash(commit_change))
        with pytest.raises(KeyboardInterrupt):
            window.apply(lake, vectors="always")
    assert _properties(tmp_path)["delta.enableDeletionVectors"] == "true"
    switched = DeltaTable(_path(tmp_path)).version()
    assert window.apply(lake, vectors="always").write.way == "deletion vectors"
    assert DeltaTable(_path(tmp_path)).version() == switched + 1
    assert mirror(source.schema) == source.state(window.scn_high)


def test_files_that_another_one_exchanges_behind_the_switch_are_looked_through_again(
    tmp_path: Path, source: Source, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = plain_lake(tmp_path)
    _filled(source, lake)
    window = _renames(source, 1, 40)

    def then_another(*given: Any, **more: Any) -> None:
        commit_change(*given, **more)
        other = {"delta.logRetentionDuration": "interval 9 days"}
        path, operation, _, info = given
        commit_change(
            path, operation, lambda one: one.with_properties(other), info, fence=more["fence"]
        )

    with monkeypatch.context() as patched:
        patched.setattr(copy_on_write, "commit_change", then_another)
        with pytest.raises(CommitConflictError):
            window.apply(lake, vectors="always")
    assert window.apply(lake, vectors="always").write.way == "deletion vectors"
    assert len(mirror(source.schema)) == ROWS


def _properties(folder: Path) -> dict[str, str]:
    found: dict[str, str] = DeltaTable(_path(folder)).metadata().configuration
    return found


@pytest.mark.spark
def test_spark_reads_and_merges_what_was_switched_here(
    tmp_path: Path,
    open_lake: Callable[..., Lake],
    source: Source,
    mirror: Callable[..., list[Row]],
) -> None:
    lake, spark = plain_lake(tmp_path), open_lake()
    _filled(source, lake)
    DeltaTable(_path(tmp_path)).create_checkpoint()
    first = _renames(source, 1, 40)
    first.apply(lake, vectors="always")
    session = small_session(tmp_path / "lake")
    read = session.read.format("delta").load(_path(tmp_path))
    assert read.filter(f"NAME = '{source.rows[source.ids[1]]['NAME']}'").count() == 2
    assert read.count() == ROWS
    second = _renames(source, 2, 41)
    assert second.apply(spark, position=first.scn_high).write.way == "merge"
    assert mirror(source.schema) == source.state(second.scn_high)
    newest = max((Path(_path(tmp_path)) / "_delta_log").glob("*.json"))
    added = [one["add"] for one in map(json.loads, newest.read_text().splitlines()) if "add" in one]
    assert any("deletionVector" in one for one in added), "Spark marks rows too"


def test_a_lake_says_how_many_cores_its_spark_has() -> None:
    def cores(master: str, **settings: str) -> int:
        named = {f"spark.{name}": value for name, value in settings.items()}
        return LakeConfig(path="/lake", spark_master=master, spark_config=named).spark_cores

    assert cores("local[3]") == 3
    assert cores("local[4,2]") == 4
    assert cores("local") >= 1
    assert cores("spark://host:7077") == 8
    assert cores("spark://host:7077", **{"cores.max": "24"}) == 24
    assert cores("yarn", **{"executor.instances": "5", "executor.cores": "4"}) == 20
