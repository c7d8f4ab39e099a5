"""What somebody else does to Delta tables by hand is noticed by the next window and by doctor, named, and mended by the command that is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.lake.history import read_log
from tests.steps.harness import Source, table_id
from tests.steps.test_lost_windows import (
    FolderLake,
    change,
    examined,
    folders,
    oracle,
    rows,
    source,
)

__all__ = ["FolderLake", "oracle", "source"]

ROWS = [(0, "first"), (1, "y"), (2, "first"), (10, "x")]


def filled(source: Source) -> None:
    """Two windows behind the snapshot."""
    source.run()
    change(source, "INSERT INTO ONE VALUES (10, 'x')")
    change(source, "UPDATE ONE SET NOTE = 'y' WHERE ID = 1")
    assert rows(source, "mirror", '"ID", "NOTE"') == ROWS


def restore(folder: Path) -> None:
    table = DeltaTable(folder)
    table.restore(table.version() - 1)


def overwrite(folder: Path) -> None:
    schema = pa.schema(DeltaTable(folder).schema().to_arrow())
    write_deltalake(folder, schema.empty_table(), mode="overwrite")


def cleaned_up(folder: Path) -> None:
    """A checkpoint behind what happened, in a process that knows nothing of it."""
    DeltaTable(folder).create_checkpoint()
    for log in (folder / "_delta_log").glob("*.json"):
        if int(log.stem) < DeltaTable(folder).version() - 1:
            log.unlink()


@pytest.mark.parametrize("layer", ["mirror", "changelog"])
@pytest.mark.parametrize(
    ("done", "named"), [(restore, "RESTORE"), (overwrite, "WRITE")], ids=["restore", "overwrite"]
)
@pytest.mark.parametrize("has_checkpoint", [False, True], ids=["by-its-log", "by-a-checkpoint"])
def test_rows_that_were_put_in_the_place_of_all_stop_the_table(
    source: Source, layer: str, done: Callable[[Path], None], named: str, *, has_checkpoint: bool
) -> None:
    """Its position stays in Delta's log, so nothing else would tell that windows are gone."""
    filled(source)
    folder = folders(source)[layer]
    done(folder)
    if has_checkpoint:
        cleaned_up(folder)
    [(is_fine, found, remedy)] = examined(source)
    assert not is_fine
    what = "mirror" if layer == "mirror" else "change log"
    assert f"in the place of the {what}'s ({named})" in found
    command = "table rebuild " if layer == "mirror" else "table rebuild --from-landing "
    assert command in remedy
    before = {one: DeltaTable(path).version() for one, path in folders(source).items()}
    change(source, "INSERT INTO ONE VALUES (11, 'z')")
    record = source.record("ONE")
    assert record.state == "failed"
    assert found.partition(" (")[0] in (record.reason or "")
    assert command in (record.way_out or "")
    assert before == {one: DeltaTable(path).version() for one, path in folders(source).items()}
    if layer == "changelog":
        source.pipeline.rebuild_from_landing(table_id("ONE"))
        source.windows()
        assert [one[0] for one in examined(source)] == [True]
        assert rows(source, "mirror", '"ID", "NOTE"') == [*ROWS, (11, "z")]


@pytest.mark.parametrize("layer", ["mirror", "changelog"])
def test_a_restore_to_our_newest_rows_takes_nothing(source: Source, layer: str) -> None:
    """Somebody undoes what somebody has done."""
    filled(source)
    folder = folders(source)[layer]
    ours = DeltaTable(folder).version()
    DeltaTable(folder).restore(ours - 1)
    DeltaTable(folder).restore(ours)
    assert [one[0] for one in examined(source)] == [True]
    change(source, "INSERT INTO ONE VALUES (11, 'z')")
    assert rows(source, "mirror", '"ID", "NOTE"') == [*ROWS, (11, "z")]


def test_a_change_of_rows_is_named_and_stops_nothing(
    source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody may fill columns of their own."""
    filled(source)
    mirror = folders(source)["mirror"]
    DeltaTable(mirror).update({"NOTE": "'by hand'"}, predicate='"ID" = 0')
    [note, fine] = examined(source)
    assert note[0]
    assert fine[0]
    assert "somebody else changed rows of the mirror since its last window: UPDATE" in note[1]
    assert "redolake reconcile" in note[2]
    change(source, "INSERT INTO ONE VALUES (11, 'z')")
    assert any("somebody else changed rows of the mirror" in one.message for one in caplog.records)
    assert source.record("ONE").state == "ready"
    assert [one[1] for one in examined(source)] == [fine[1]]


def test_compaction_is_no_change_of_rows(source: Source) -> None:
    filled(source)
    for folder in folders(source).values():
        write_deltalake(folder, pa.schema(DeltaTable(folder).schema().to_arrow()).empty_table(), mode="append")  # fmt: skip
        DeltaTable(folder).optimize.compact()
        log = read_log(str(folder))
        assert log is not None
        assert log.foreign.changes == ()


@pytest.mark.parametrize("layer", ["mirror", "changelog"])
def test_a_table_that_is_to_forget_positions_stops_before_it_does(
    source: Source, layer: str
) -> None:
    filled(source)
    folder = folders(source)[layer]
    name = "delta.setTransactionRetentionDuration"
    DeltaTable(folder).alter.set_table_properties(
        {name: "interval 1 hours"}, raise_if_not_exists=False
    )
    [(is_fine, found, remedy)] = examined(source)
    assert not is_fine
    assert name in found
    assert "redolake maintain --table" in remedy
    change(source, "INSERT INTO ONE VALUES (11, 'z')")
    assert source.record("ONE").state == "failed"
    assert name in (source.record("ONE").reason or "")


@pytest.mark.parametrize("layer", ["mirror", "changelog"])
def test_a_file_that_is_gone_is_named_by_doctor(source: Source, layer: str) -> None:
    filled(source)
    folder = folders(source)[layer]
    [name, *_] = sorted(DeltaTable(folder).file_uris())
    Path(name).unlink()
    [(is_fine, found, remedy)] = examined(source)
    assert not is_fine
    assert Path(name).name in found
    assert ("--from-landing" in remedy) == (layer == "changelog")


def test_a_replay_names_the_file_of_the_change_log_that_is_gone(source: Source) -> None:
    """And the command that mends it, which works as it is typed."""
    filled(source)
    folder = folders(source)["changelog"]
    window = source.pipeline.records.windows()[-1].window
    for uri in DeltaTable(folder).file_uris():
        Path(uri).unlink()
    with pytest.raises(Exception, match="a file of the Delta table is gone") as caught:
        source.pipeline.replay_window(window)
    assert f"table rebuild --from-landing {table_id('ONE')}" in str(caught.value)
    source.pipeline.rebuild_from_landing(table_id("ONE"))
    assert source.pipeline.replay_window(window)
    assert rows(source, "mirror", '"ID", "NOTE"') == ROWS
