"""Delta's own log, read without Spark. The tables are written by another implementation."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from cdc_core.delta import history, log_files
from cdc_core.delta.history import read_commits, read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import LakeError


def _write(path: Path, version: int) -> None:
    write_deltalake(
        str(path),
        pa.table({"ID": pa.array([version], pa.int64())}),
        mode="append",
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": json.dumps({"scn_high": version * 10})},
            app_transactions=[
                Transaction("redolake/shop/t/0", version),
                Transaction(f"chunk/{version}", 1),
            ],
        ),
    )


def test_transactions_survive_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "table"
    assert read_log(str(path)) is None
    for version in range(1, 4):
        _write(path, version)
    DeltaTable(str(path)).create_checkpoint()
    _write(path, 4)
    for part in (path / "_delta_log").glob("0000000000000000000[01].json"):
        part.unlink()  # as Delta's clean-up does
    log = read_log(str(path))
    assert log is not None
    assert log.version == 3
    assert log.transactions == {"redolake/shop/t/0": 4, **{f"chunk/{n}": 1 for n in range(1, 5)}}
    assert log.columns == {"ID": "long"}
    commits = read_commits(str(path))
    assert [(c.version, c.metadata["scn_high"]) for c in commits] == [(2, 30), (3, 40)]


def test_a_checkpoint_of_which_parts_are_missing_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "table"
    for version in range(1, 4):
        _write(path, version)
    DeltaTable(str(path)).create_checkpoint()
    log = path / "_delta_log"
    [whole] = log.glob("*.checkpoint.parquet")
    whole.rename(log / whole.name.replace("checkpoint", "checkpoint.0000000001.0000000002"))
    (log / "00000000000000000000.json").unlink()
    with pytest.raises(LakeError, match="gap"):
        read_log(str(path))


def test_a_log_with_a_gap_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    for version in range(1, 4):
        _write(path, version)
    (path / "_delta_log" / "00000000000000000001.json").unlink()
    with pytest.raises(LakeError, match="gap"):
        read_log(str(path))


def test_a_log_that_is_cleaned_up_while_it_is_read_has_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits go between the listing and the reading, not always in their order."""
    path = tmp_path / "table"
    for version in range(1, 6):
        _write(path, version)
    log = path / "_delta_log"
    actions_of = log_files.actions_of

    def cleaned_up(filesystem: pafs.FileSystem, name: str) -> list[log_files.Action]:
        if name.endswith(f"{0:020d}.json"):
            found = actions_of(filesystem, name)
            DeltaTable(str(path)).create_checkpoint()
            for gone in (1, 2):
                (log / f"{gone:020d}.json").unlink()
            return found
        return actions_of(filesystem, name)

    with monkeypatch.context() as patched:
        patched.setattr(history, "actions_of", cleaned_up)
        assert [one.version for one in read_commits(str(path))] == [3, 4]


@pytest.mark.parametrize("damaged", [f"{1:020d}.checkpoint.parquet", f"{2:020d}.json"])
def test_a_damaged_file_of_a_log_is_an_error_with_a_way_out(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "table"
    _write(path, 1)
    _write(path, 2)
    DeltaTable(str(path)).create_checkpoint()
    _write(path, 3)
    file = path / "_delta_log" / damaged
    file.write_bytes(file.read_bytes()[:-20])
    for read in (read_log, count_rows):
        with pytest.raises(LakeError, match=r"is damaged.*table rebuild"):
            read(str(path))
