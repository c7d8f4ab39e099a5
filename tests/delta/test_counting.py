"""Rows by the Delta log alone, beside an independent writer and reader."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from cdc_core.delta.row_counts import count_rows


def rows(first: int, last: int) -> pa.Table:
    return pa.table({"ID": pa.array(range(first, last), pa.int64())})


def test_no_table_has_no_count(tmp_path: Path) -> None:
    assert count_rows(str(tmp_path / "nothing")) is None


def test_appends_and_deletes_are_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, rows(0, 100))
    write_deltalake(path, rows(100, 130), mode="append")
    assert count_rows(path) == 130
    DeltaTable(path).delete("ID < 10")
    assert count_rows(path) == 120


def test_a_checkpoint_is_read_like_the_commits_before_it(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, rows(0, 100))
    DeltaTable(path).delete("ID < 10")
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, rows(100, 105), mode="append")
    assert count_rows(path) == 95
    for commit in sorted((tmp_path / "t" / "_delta_log").glob("*.json"))[:2]:
        commit.unlink()
    assert count_rows(path) == 95


def test_a_file_without_statistics_gives_no_guess(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(str(path), rows(0, 10))
    log = path / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace("numRecords", "numOthers"))
    assert count_rows(str(path)) is None
