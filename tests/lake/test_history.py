"""Delta's own log, read without Spark. The tables are written by another implementation."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from cdc_core.errors import LakeError
from cdc_core.lake.history import read_log


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
    assert [(c.version, c.metadata["scn_high"]) for c in log.commits] == [(2, 30), (3, 40)]


def test_a_log_with_a_gap_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    for version in range(1, 4):
        _write(path, version)
    (path / "_delta_log" / "00000000000000000001.json").unlink()
    with pytest.raises(LakeError, match="gap"):
        read_log(str(path))
