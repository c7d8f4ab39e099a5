"""What somebody else does to Delta tables by hand is noticed by the next window and by doctor, named, and mended by the command that is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyarrow.fs import LocalFileSystem

from cdc_core.delta.commits import GUARD_FEATURE, put_commit
from cdc_core.delta.history import read_log
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
    assert f"replaced the rows of the {what} ({named})" in found
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


@pytest.mark.parametrize("layer", ["mirror", "changelog"])
def test_a_table_that_is_gone_is_named_by_doctor(source: Source, layer: str) -> None:
    filled(source)
    shutil.rmtree(folders(source)[layer])
    [(is_fine, found, remedy)] = examined(source)
    assert not is_fine
    assert "is not there" in found
    assert ("--from-landing" in remedy) == (layer == "changelog")


def test_a_log_with_anything_but_actions_is_damaged(source: Source) -> None:
    """It is an error about its table, not one that nobody knows."""
    filled(source)
    log = Path(folders(source)["mirror"]) / "_delta_log"
    kept = {file: file.read_text() for file in sorted(log.glob("*.json"))}
    for text in ("[1]", '"a"', '{"txn": 5}', '{"metaData": {"id": "x"}}', '{"add": [7]}'):
        for file in kept:
            file.write_text(f"{text}\n")
        [(is_fine, found, remedy)] = examined(source)
        assert not is_fine
        assert "of a Delta table's log" in found
        assert "DEMO.ONE" in remedy
        assert "OWNER.TABLE" not in remedy
    for file, text in kept.items():
        file.write_text(text)


def test_a_replay_names_the_file_of_the_change_log_that_is_gone(source: Source) -> None:
    """And the command that mends it, which works as it is typed."""
    filled(source)
    folder = folders(source)["changelog"]
    window = source.pipeline.records.windows()[-1].window
    for uri in DeltaTable(folder).file_uris():
        Path(uri).unlink()
    with pytest.raises(Exception, match="a file of the Delta table is missing") as caught:
        source.pipeline.replay_window(window)
    assert f"table rebuild --from-landing {table_id('ONE')}" in str(caught.value)
    source.pipeline.rebuild_from_landing(table_id("ONE"))
    assert source.pipeline.replay_window(window)
    assert rows(source, "mirror", '"ID", "NOTE"') == ROWS


def with_vectors(mirror: Path, *, is_guarded: bool) -> None:
    """Deletion vectors switched on, as `redolake maintain` does it with the guard, and an older release did without."""
    log = mirror / "_delta_log"
    actions = [json.loads(line) for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines()]  # fmt: skip
    protocol = [one["protocol"] for one in actions if "protocol" in one][-1]
    metadata = [one["metaData"] for one in actions if "metaData" in one][-1]
    features = {*protocol.get("writerFeatures", ()), "deletionVectors", "appendOnly", "invariants"}
    readers = [*{*protocol.get("readerFeatures", ()), "deletionVectors"}]
    writers = [*features, *([GUARD_FEATURE] if is_guarded else [])]
    properties = {**metadata["configuration"], "delta.enableDeletionVectors": "true"}
    commit = [
        {"commitInfo": {"timestamp": 1, "operation": "SET TBLPROPERTIES", "userMetadata": json.dumps({"kind": "maintenance"})}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers, "writerFeatures": writers}},
        {"metaData": {**metadata, "configuration": properties}},
    ]  # fmt: skip
    put_commit(LocalFileSystem(), str(mirror), DeltaTable(mirror).version() + 1, commit)


def vectored(source: Source, *, is_guarded: bool) -> Path:
    source.run()
    change(source, *(f"INSERT INTO ONE VALUES ({at}, 'n')" for at in range(20, 60)))
    mirror = folders(source)["mirror"]
    with_vectors(mirror, is_guarded=is_guarded)
    source.close()
    change(source, "UPDATE ONE SET NOTE = 'y' WHERE ID = 21")
    assert list(mirror.glob("deletion_vector_*.bin")), "the window marked a row"
    return mirror


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True), id="vacuum"),
        pytest.param(lambda table: table.optimize.compact(), id="optimize"),
        pytest.param(lambda table: table.delete('"ID" = 1'), id="delete"),
    ],
)  # fmt: skip
def test_delta_rs_keeps_its_hands_off_a_mirror_with_vectors(
    source: Source, call: Callable[[DeltaTable], object]
) -> None:
    """It refuses before it removes anything, reads the mirror as before, and windows are marked as before."""
    mirror = vectored(source, is_guarded=True)
    vectors, before = set(mirror.glob("*.bin")), rows(source, "mirror", '"ID", "NOTE"')
    with pytest.raises(CommitFailedError, match="DomainMetadata"):
        call(DeltaTable(mirror))
    assert set(mirror.glob("*.bin")) == vectors
    assert rows(source, "mirror", '"ID", "NOTE"') == before
    change(source, "UPDATE ONE SET NOTE = 'z' WHERE ID = 22", "DELETE FROM ONE WHERE ID = 23")
    after = dict(before) | {22: "z"}
    assert rows(source, "mirror", '"ID", "NOTE"') == sorted(one for one in after.items() if one[0] != 23)  # fmt: skip
    assert len(set(mirror.glob("*.bin"))) > len(vectors)


def test_without_the_guard_vacuum_of_delta_rs_removes_what_is_in_use_and_is_named(
    source: Source,
) -> None:
    mirror = vectored(source, is_guarded=False)
    DeltaTable(mirror).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert not list(mirror.glob("*.bin")), "or delta-rs has learned it, and the guard may go"
    change(source, "UPDATE ONE SET NOTE = 'z' WHERE ID = 22")
    record = source.record("ONE")
    assert record.state == "failed"
    assert "a deletion vector of the Delta table is missing" in (record.reason or "")
    assert "VACUUM of delta-rs" in (record.way_out or "")
    assert f"table rebuild {table_id('ONE')}" in (record.way_out or "")


@pytest.mark.parametrize("layer", ["mirror", "changelog"])
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda table: table.optimize.compact(), id="compact"),
        pytest.param(lambda table: table.optimize.z_order([table.schema().fields[0].name]), id="z-order"),
        pytest.param(lambda table: table.vacuum(168, dry_run=False), id="vacuum"),
        pytest.param(lambda table: table.vacuum(168, dry_run=False, full=True), id="vacuum-full"),
        pytest.param(lambda table: table.create_checkpoint(), id="checkpoint"),
        pytest.param(lambda table: table.cleanup_metadata(), id="clean-up"),
        pytest.param(lambda table: table.alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"}), id="properties"),
        pytest.param(lambda table: table.alter.set_table_properties({"delta.checkpointInterval": "1"}), id="checkpoints"),
    ],
)  # fmt: skip
def test_what_harms_nothing_of_a_table(
    source: Source, layer: str, call: Callable[[DeltaTable], object]
) -> None:
    filled(source)
    call(DeltaTable(folders(source)[layer]))
    assert [one[0] for one in examined(source)] == [True]
    change(source, "INSERT INTO ONE VALUES (11, 'z')", "DELETE FROM ONE WHERE ID = 10")
    assert source.record("ONE").state == "ready"
    assert rows(source, "mirror", '"ID", "NOTE"') == [*ROWS[:3], (11, "z")]
