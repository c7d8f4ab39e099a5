"""A mirror that is lost comes back from its change log, and both from landing; they take the windows that follow."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.errors import ConfigError, LakeError, LandingDamagedError
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.invariants.compare import Verdict, compare
from tests.oracle.embedded import ADMIN, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of

T = TableId("DEMO", "T")


def newest_commit(mirror: Path) -> Path:
    return max((mirror / "_delta_log").glob("*.json"))


def is_removed(mirror: Path) -> None:
    shutil.rmtree(mirror)


def loses_half_a_commit(mirror: Path) -> None:
    newest = newest_commit(mirror)
    newest.write_bytes(newest.read_bytes()[:40])


def loses_a_commit(mirror: Path) -> None:
    (mirror / "_delta_log" / f"{1:020}.json").unlink()


@pytest.mark.parametrize(
    ("damage", "aside"),
    [(is_removed, []), (loses_half_a_commit, [".damaged-1"]), (loses_a_commit, [".damaged-1"])],
    ids=["removed", "half-a-commit", "a-gap"],
)
def test_a_lost_mirror_comes_back(
    tmp_path: Path, damage: Callable[[Path], None], aside: list[str]
) -> None:
    """By the one command that the error names; what cannot be read is kept beside it."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(30))",
            *(f"INSERT INTO T VALUES ({i}, 'n{i}')" for i in range(20)),
        )
        config = oracle.config(tmp_path, "T")
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run("UPDATE T SET NOTE = 'new' WHERE ID < 3", "DELETE FROM T WHERE ID = 7")
            list(pipeline.run_once())
            [mirror] = (tmp_path / "lake" / "src" / "mirror").iterdir()
            damage(mirror)
            oracle.run("INSERT INTO T VALUES (7, 'again')", "UPDATE T SET NOTE = NULL WHERE ID = 1")
            with pytest.raises(LakeError, match="redolake table rebuild"):
                pipeline.reconcile()

            assert pipeline.rebuild_mirror(T).rows == 19
            beside = [one.name.removeprefix(mirror.name) for one in mirror.parent.iterdir()]
            assert sorted(beside) == ["", *aside]
            list(pipeline.run_once())
            found = pipeline.reconcile()
        with oracle.owner() as connection:
            verdict = compare(connection, "T", ("ID",), mirror, found.scn)
        assert verdict == Verdict(20, 20, 0, 0, 0, 0)


def test_a_mirror_that_somebody_restored_comes_back_by_the_words_that_name_it(
    tmp_path: Path,
) -> None:
    """The error's command, then the one that takes the table up again."""
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(30))", "INSERT INTO T VALUES (1, 'n')")  # fmt: skip
        config = oracle.config(tmp_path, "T")
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run("UPDATE T SET NOTE = 'new'", "INSERT INTO T VALUES (2, 'm')")
            list(pipeline.run_once())
            [mirror] = (tmp_path / "lake" / "src" / "mirror").iterdir()
            DeltaTable(mirror).restore(1)
            oracle.run("INSERT INTO T VALUES (3, 'k')")
            list(pipeline.run_once())
            [record] = pipeline.records.tables()
            assert record.state == "failed"
            assert f"redolake table rebuild {T}`" in (record.way_out or "")
            assert f"redolake table resume {T}`" in (record.way_out or "")
            pipeline.rebuild_mirror(T)
            pipeline.resume_tables([T])
            list(pipeline.run_once())
            assert [one.state for one in pipeline.records.tables()] == ["ready"]
        found = QueryBuilder().register("t", DeltaTable(mirror)).execute('SELECT "ID", "NOTE" FROM t')  # fmt: skip
        rows = sorted(tuple(one.values()) for one in pa.table(found.read_all()).to_pylist())
        assert rows == [(1, "new"), (2, "m"), (3, "k")]


def test_a_table_without_a_complete_snapshot_has_nothing_to_rebuild(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        with Pipeline(oracle.config(tmp_path, "T")) as pipeline:
            pipeline.start_snapshot([T])
            with pytest.raises(ConfigError, match="redolake snapshot"):
                pipeline.rebuild_mirror(T)


def test_both_tables_come_back_from_landing(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(30))",
            *(f"INSERT INTO T VALUES ({i}, 'n{i}')" for i in range(20)),
        )
        lake = tmp_path / "lake"
        config = oracle.config(tmp_path, "T")
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run("UPDATE T SET NOTE = 'new' WHERE ID < 3", "DELETE FROM T WHERE ID = 7")
            list(pipeline.run_once())
        [changelog] = (lake / "src" / "changelog").iterdir()
        [mirror] = (lake / "src" / "mirror").iterdir()
        (changelog / "_delta_log" / f"{1:020}.json").unlink()
        shutil.rmtree(mirror)
        with Pipeline(config) as pipeline:
            assert pipeline.rebuild_from_landing(T).facts == {"chunks": 1, "windows": 1}
            oracle.run("UPDATE T SET NOTE = 'later' WHERE ID = 2")
            list(pipeline.run_once())
            found = pipeline.reconcile()
        with oracle.owner() as connection:
            verdict = compare(connection, "T", ("ID",), mirror, found.scn)
        assert verdict == Verdict(19, 19, 0, 0, 0, 0)
        assert changelog.with_name(changelog.name + ".before-g2").is_dir()


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(30))",
    *(f"INSERT INTO T VALUES ({i}, 'n{i}')" for i in range(250)),
)


def three_windows(source: Source) -> None:
    for number in range(3):
        source.oracle.run(
            f"UPDATE T SET NOTE = 'window {number}' WHERE ID = {number}",
            f"INSERT INTO T VALUES ({number + 1000}, 'new')",
        )
        source.run()
        source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        source.run()  # an idle window
        source.pipeline.retire_windows()


source = capturing("T", snapshot={"chunk_rows": 100}, then=three_windows)


def test_what_landed_is_taken_again_and_nothing_else(source: Source) -> None:
    source.pipeline.start_snapshot([T], condition="ID > 240")
    source.oracle.run("DELETE FROM T WHERE ID IN (1, 248)")
    source.run()
    source.pipeline.retire_windows()
    windows = source.pipeline.records.windows()
    assert any(b.ordinal - a.ordinal > 1 for a, b in pairwise(windows)), "with gaps"
    position, before = source.record("T").mirror_scn, source.lake.image(T)
    source.lake.tables.clear()
    source.lake.calls.clear()
    report = source.pipeline.rebuild_from_landing(T)
    assert (report.scn_high, source.lake.image(T)) == (position, before)
    assert {name for name, *_ in source.lake.calls} == {
        "set_aside", "apply_chunk", "delete_missing_keys", "apply_window",
    }  # fmt: skip
    source.check_current("T")
    assert source.record("T").generation == 2
    source.oracle.run("UPDATE T SET NOTE = 'after' WHERE ID = 2")
    source.run()
    source.check_current("T")


@pytest.mark.parametrize(
    "call", ["set_aside", "apply_chunk", "delete_missing_keys", "apply_window"]
)
def test_a_rebuild_that_was_cut_short_goes_on(source: Source, call: str) -> None:
    def dies(name: str, _table: TableId) -> None:
        if name == call:
            raise KeyboardInterrupt

    source.lake.before = dies
    with pytest.raises(KeyboardInterrupt):
        source.pipeline.rebuild_from_landing(T)
    source.close()
    source.lake.before = lambda _name, _table: None
    source.oracle.run("DELETE FROM T WHERE ID = 3")
    source.run()
    source.check_current("T")


@pytest.mark.parametrize("part", ["chunks", "windows"])
def test_landing_that_lacks_something_changes_nothing(source: Source, part: str) -> None:
    before = source.record("T")
    for folder in (source.path / "landing" / "src" / part).rglob("manifest.json"):
        folder.unlink()
    with pytest.raises(LandingDamagedError, match="landing lacks chunks or windows") as refused:
        source.pipeline.rebuild_from_landing(T)
    assert "resnapshot DEMO.T --fresh" in refused.value.hint
    assert source.record("T") == before


def test_windows_that_were_retired_cannot_be_taken_again(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.more["retention"] = {"window_days": 1}
    source.close()
    later = SimpleNamespace(now=lambda zone: datetime.now(zone) + timedelta(days=2))
    monkeypatch.setattr("cdc_core.steps.windows.retire.datetime", later)
    assert source.pipeline.retire_windows()
    with pytest.raises(LandingDamagedError, match="retired_up_to"):
        source.pipeline.rebuild_from_landing(T)


def test_a_table_that_left_is_not_taken_again(source: Source) -> None:
    source.pipeline.remove_tables([T])
    with pytest.raises(ConfigError, match="--fresh"):
        source.pipeline.rebuild_from_landing(T)


def test_a_rebuilt_mirror_is_said_to_be_as_of_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change log may be a window ahead of the metadata store; behind it are windows that brought the table nothing."""
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            lake, noted = source.pipeline.lake, source.record("T").mirror_scn
            assert noted is not None
            for written, said in ((noted + 500, noted + 500), (noted - 500, noted), (None, noted)):
                position = SimpleNamespace(mirror_scn=written)
                monkeypatch.setattr(lake, "rebuild_mirror", lambda *_, **__: 1, raising=False)
                monkeypatch.setattr(lake, "position", lambda *_, own=position, **__: own)
                assert source.pipeline.rebuild_mirror(T).scn_high == said
