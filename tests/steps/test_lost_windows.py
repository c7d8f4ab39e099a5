"""Delta tables that are older than the metadata store says take what they lack again, or their table stops; no window is missing unnoticed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.config import LakeConfig
from cdc_core.errors import StoreUnavailableError
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.lake import Lake
from cdc_core.model.scn import Scn
from cdc_core.steps.snapshots.plan import plan_parts
from pipelines import doctor
from tests.lake.who_merges import no_spark
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.memory_lake import MemoryLake


class FolderLake:
    """Delta tables in a folder, as far as they need no Spark."""

    def open(self, config: LakeConfig, source: str) -> Lake:
        return DeltaLake(config, source, spark=no_spark)


oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))",
    *(f"INSERT INTO ONE VALUES ({number}, 'first')" for number in range(3)),
)


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "ONE", capture={"close_at": "online"}) as source:
        source.lake = cast("MemoryLake", FolderLake())
        yield source


def folders(source: Source) -> dict[str, Path]:
    root = Path(source.pipeline.config.lake.path) / "src"
    return {one: root / one / table_id("ONE").path for one in ("mirror", "changelog")}


def rows(source: Source, layer: str, columns: str) -> list[tuple[Any, ...]]:
    table = DeltaTable(str(folders(source)[layer]))
    query = QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t")
    return sorted(tuple(one.values()) for one in pa.table(query.read_all()).to_pylist())


def change(source: Source, *statements: str) -> None:
    source.oracle.run(*statements)
    source.windows()


def copied(source: Source) -> dict[str, Path]:
    """What a backup has of both tables now."""
    place = Path(tempfile.mkdtemp(prefix="backup", dir=source.path))
    return {
        layer: Path(shutil.copytree(folder, place / layer))
        for layer, folder in folders(source).items()
    }


def restored(source: Source, backup: dict[str, Path], *layers: str) -> None:
    source.close()
    for layer in layers:
        folder = folders(source)[layer]
        shutil.rmtree(folder)
        shutil.copytree(backup[layer], folder)
    source.close()


def examined(source: Source) -> list[tuple[bool, str, str]]:
    """What doctor says of the Delta tables."""
    config = source.pipeline.config
    source.close()
    return [(one.ok, one.found, one.remedy) for one in doctor.delta_tables(config)]


WORK = ("INSERT INTO ONE VALUES (10, 'x')", "UPDATE ONE SET NOTE = 'y' WHERE ID = 1", "DELETE FROM ONE WHERE ID = 2")  # fmt: skip
AT_LAST = [(0, "first"), (1, "y"), (10, "x"), (11, "z")]


@pytest.mark.parametrize(
    "layers",
    [
        pytest.param(("mirror", "changelog"), id="both"),
        pytest.param(("mirror",), id="mirror", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "has_window",
    [pytest.param(True, id="after-a-window"), pytest.param(False, id="after-the-snapshot", marks=pytest.mark.slow)],
)  # fmt: skip
def test_windows_that_restored_tables_lack_are_taken_again(
    source: Source, layers: tuple[str, ...], *, has_window: bool
) -> None:
    source.begin()
    if has_window:
        change(source, "UPDATE ONE SET NOTE = 'w' WHERE ID = 1")
    backup = copied(source)
    for statement in WORK:
        change(source, statement)
    assert [one[0] for one in examined(source)] == [True]
    restored(source, backup, *layers)
    [(is_fine, found, remedy)] = examined(source)
    keys = [one.key for one in source.pipeline.records.windows()]
    assert not is_fine
    assert f"{keys[-3]} to {keys[-1]}" in found
    assert f"table rebuild --from-landing {OWNER}.ONE" in remedy
    change(source, "INSERT INTO ONE VALUES (11, 'z')")
    assert [one[0] for one in examined(source)] == [True]
    assert rows(source, "mirror", '"ID", "NOTE"') == AT_LAST
    logged = rows(source, "changelog", "_cdc_commit_scn, _cdc_ordinal, _cdc_op")
    taken = [one for one in logged if one[2] != "r"]
    assert len(set(taken)) == len(taken) == has_window + len(WORK) + 1, "nothing is doubled"


def remove_commits(folder: Path, first: int) -> None:
    for file in (folder / "_delta_log").glob("*.json"):
        if int(file.stem) >= first:
            file.unlink()


@pytest.mark.parametrize(
    ("layers", "lost", "what"),
    [
        pytest.param(("changelog",), 3, "change log is older than its mirror", id="change-log"),
        pytest.param(("mirror", "changelog"), 1, "mirror is older than its snapshot", id="snapshot"),
    ],
)  # fmt: skip
def test_a_table_that_lost_more_than_landing_gives_back_stops(
    source: Source, layers: tuple[str, ...], lost: int, what: str
) -> None:
    """Its mirror stays as it is, and the error names the way out."""
    source.begin()
    for statement in WORK:
        change(source, statement)
    for layer in layers:
        remove_commits(folders(source)[layer], lost)
    before = rows(source, "mirror", '"ID", "NOTE"')
    [(is_fine, found, remedy)] = examined(source)
    assert (is_fine, what in found, "--from-landing" in remedy) == (False, True, True)
    change(source, "INSERT INTO ONE VALUES (11, 'z')")
    record = source.record("ONE")
    assert record.state == "failed"
    assert what in (record.reason or "")
    assert f"table rebuild --from-landing {OWNER}.ONE" in f"{record.reason} {record.way_out}"
    assert rows(source, "mirror", '"ID", "NOTE"') == before
    source.pipeline.rebuild_from_landing(table_id("ONE"))
    source.windows()
    assert rows(source, "mirror", '"ID", "NOTE"') == AT_LAST


@pytest.mark.slow
@pytest.mark.parametrize("is_newest", [True, False], ids=["and-the-newest", "all-of-its-own"])
def test_windows_that_were_retired_meanwhile_are_not_passed_over(
    source: Source, *, is_newest: bool
) -> None:
    source.oracle.run("CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY)")
    source.configure("ONE", "TWO")
    source.run()
    backup = copied(source)
    for statement in WORK:
        change(source, statement)
    if not is_newest:
        change(source, "INSERT INTO TWO VALUES (1)")
    source.close()
    source.more["retention"] = {"window_days": 1}
    with source.pipeline.store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE windows SET ended = ended - 200000")
    assert source.pipeline.retire_windows()
    restored(source, backup, "mirror", "changelog")
    change(source, "INSERT INTO ONE VALUES (11, 'z')")
    assert "older than windows that were retired" in (source.record("ONE").reason or "")


def test_a_window_whose_step_ended_before_the_store_heard_of_it_is_not_passed_over(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt finds it in the mirror, and tells the store what it has brought."""
    source.begin()
    backup = copied(source)

    def ends(*_: Any) -> None:
        raise KeyboardInterrupt

    source.oracle.run(*WORK)
    with monkeypatch.context() as patched:
        patched.setattr("cdc_core.steps.windows.apply.note_quarantine", ends)
        with pytest.raises(KeyboardInterrupt):
            source.windows()
    source.close()
    source.windows()
    restored(source, backup, "mirror", "changelog")
    change(source, "INSERT INTO ONE VALUES (11, 'z')")
    assert source.record("ONE").reason is None
    assert rows(source, "mirror", '"ID", "NOTE"') == AT_LAST


def test_tables_that_lost_nothing_take_nothing_again(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not after a TRUNCATE, windows that left nothing behind, new Delta tables, or a position that windows without changes moved."""
    with source_of(
        oracle, tmp_path, "ONE", capture={"close_at": "online"}, policies={"on_truncate": "follow"}
    ) as source:
        source.begin()
        change(source, "INSERT INTO ONE VALUES (10, 'x')", "DELETE FROM ONE WHERE ID = 10")
        change(source, "TRUNCATE TABLE ONE")
        change(source, "INSERT INTO ONE VALUES (11, 'x')")
        change(source, "CREATE TABLE TWO (ID NUMBER)")
        change(source, "UPDATE ONE SET NOTE = 'y' WHERE ID = 11")
        source.pipeline.resnapshot_tables([table_id("ONE")], fresh=True)
        source.run()
        change(source, "INSERT INTO ONE VALUES (12, 'z')")
        source.check_current("ONE")
    assert "takes windows again" not in caplog.text


class SparkLake:
    """Delta tables in a folder, with Spark where rows are read again."""

    def open(self, config: LakeConfig, source: str) -> Lake:
        return DeltaLake(config, source)


def read_again(source: Source) -> None:
    """What a signal does: the whole table is read once more."""
    ctx = source.pipeline
    scn = Scn(source.oracle.database.engine.current_scn())
    plan_parts(ctx, table_id("ONE"), scn, prefix="a", parts=None)
    source.run()


@pytest.mark.parametrize("layers", [("mirror", "changelog"), ("mirror",)], ids=["both", "mirror"])
def test_rows_that_were_read_again_and_lost_stop_the_table(
    source: Source, layers: tuple[str, ...]
) -> None:
    """No window is lost with them, so nothing else says that they are."""
    source.lake = cast("MemoryLake", SparkLake())
    source.run()
    read_again(source)
    change(source, "INSERT INTO ONE VALUES (10, 'x')")
    backup = copied(source)
    read_again(source)
    assert [one[0] for one in examined(source)] == [True]
    later = copied(source) if len(layers) == 1 else {}
    change(source, "CREATE TABLE TWO (ID NUMBER)")
    assert source.record("ONE").reason is None
    restored(source, backup, *layers)
    [(is_fine, found, remedy)] = examined(source)
    assert not is_fine
    assert (
        f"{'change log' if len(layers) == 2 else 'mirror'} is older than rows that were read again"
        in found
    )
    assert f"table rebuild --from-landing {OWNER}.ONE" in remedy
    if later:
        restored(source, later, *layers)
        assert [one[0] for one in examined(source)] == [True]


def test_a_snapshot_without_rows_has_no_commit_that_could_be_lost(source: Source) -> None:
    source.oracle.run("DELETE FROM ONE")
    source.run()
    change(source, "INSERT INTO ONE VALUES (1, 'a')")
    backup = copied(source)
    change(source, "INSERT INTO ONE VALUES (2, 'b')")
    restored(source, backup, "mirror", "changelog")
    change(source, "INSERT INTO ONE VALUES (3, 'c')")
    assert source.record("ONE").reason is None
    assert rows(source, "mirror", '"ID", "NOTE"') == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("changed", [("ONE",), ("ONE", "TWO")])
def test_a_lake_that_is_not_mounted_stops_no_table(
    oracle: Oracle, tmp_path: Path, changed: tuple[str, ...]
) -> None:
    """After a restart of the machine an empty folder stands in the place of the disk."""
    oracle.run("CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))")
    with source_of(oracle, tmp_path, "ONE", "TWO", capture={"close_at": "online"}) as source:
        source.lake = cast("MemoryLake", FolderLake())
        source.run()
        change(source, "INSERT INTO ONE VALUES (10, 'x')", "INSERT INTO TWO VALUES (1, 'x')")
        lake, away = Path(source.pipeline.config.lake.path), tmp_path / "away"
        source.close()
        lake.rename(away)
        lake.mkdir()
        oracle.run(*(f"INSERT INTO {name} VALUES (11, 'y')" for name in changed))
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="none of the source's Delta tables"):
                source.windows()
            source.close()
        assert {source.record(name).state for name in ("ONE", "TWO")} == {"ready"}
        source.close()
        shutil.rmtree(lake)
        away.rename(lake)
        source.windows()
        found = rows(source, "mirror", "ID, NOTE")
    assert found == [(0, "first"), (1, "first"), (2, "first"), (10, "x"), (11, "y")]
