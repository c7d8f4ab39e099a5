"""A window's redo is laid out by table: each reads its own rows alone, in LogMiner's order, and none gets lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_core.config import LocalLandingConfig
from cdc_core.landing import redo_files
from cdc_core.landing.layout import REDO_SCHEMA
from cdc_core.landing.manifest import LandedFile
from cdc_core.landing.open import open_landing
from cdc_core.landing.redo_files import RedoFiles
from cdc_core.landing.store import LandingStore
from cdc_core.model.identifiers import TableId
from cdc_core.stage.committed import groups_of

TABLES = [TableId("HR", "EMP"), TableId("HR", "Dept"), TableId("SHOP", "EMP"), TableId("A", "Z")]


@pytest.fixture
def landing(tmp_path: Path) -> LandingStore:
    return open_landing(LocalLandingConfig(path=str(tmp_path)))


def batch(rows: list[tuple[TableId, int]], *, text: str = "insert") -> pa.RecordBatch:
    """Redo rows: table and ordinal of each."""
    values: list[dict[str, Any]] = [
        {
            "ordinal": ordinal, "scn": ordinal, "xid": "00", "operation_code": 1, "rollback": False,
            "seg_owner": table.owner, "table_name": table.name, "sql_redo": text,
        }
        for table, ordinal in rows
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(values, schema=REDO_SCHEMA)


def landed_rows(
    landing: LandingStore, files: list[LandedFile], numbers: tuple[int, ...], table: TableId
) -> list[int]:
    """The ordinals that a table reads, of which each must be its own."""
    found = []
    for path in landing.local_paths("w", [files[number] for number in numbers]):
        with pq.ParquetFile(path) as file:
            for group in groups_of(file, table):
                rows = file.read_row_group(group, columns=["ordinal", "seg_owner", "table_name"])
                names = {(one["seg_owner"], one["table_name"]) for one in rows.to_pylist()}
                assert names == {(table.owner, table.name)}
                found += rows["ordinal"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("held", "own"),
    [
        pytest.param(7, 1, id="files-of-their-own"),
        pytest.param(7, 1 << 40, id="one-file-for-all"),
        pytest.param(1 << 40, 1 << 40, id="a-small-window"),
    ],
)
def test_each_table_reads_its_own_rows_alone_and_in_order(
    landing: LandingStore, monkeypatch: pytest.MonkeyPatch, held: int, own: int
) -> None:
    monkeypatch.setattr(redo_files, "HELD_ROWS_MAX", held)
    monkeypatch.setattr(redo_files, "OWN_FILE_BYTES", own)
    monkeypatch.setattr(redo_files, "FILE_ROWS_MAX", 20)
    rng = random.Random(5)
    rows = [(rng.choice(TABLES[:3]), ordinal) for ordinal in range(100)] + [(TABLES[3], 100)]
    with RedoFiles(landing, "w") as writing:
        for start in range(0, len(rows), 5):
            writing.write(batch(rows[start : start + 5]))
        files = writing.close()
    assert [file.name for file in files] == [f"redo-{at:05d}.parquet" for at in range(len(files))]
    assert sum(file.rows for file in files) == len(rows)
    assert set(writing.by_table) == set(map(str, TABLES))
    for table in TABLES:
        numbers = writing.by_table[str(table)]
        own_rows = [ordinal for one, ordinal in rows if one == table]
        assert landed_rows(landing, files, numbers, table) == own_rows


def test_a_table_with_a_file_of_its_own_does_not_go_back_to_the_shared_one(
    landing: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows would stand before and behind those of its own file, which no order of files says."""
    monkeypatch.setattr(redo_files, "HELD_ROWS_MAX", 1)
    monkeypatch.setattr(redo_files, "FILE_ROWS_MAX", 3)
    few, many = batch([(TABLES[0], 1)]), batch([(TABLES[0], 2), (TABLES[0], 3), (TABLES[0], 4)])
    monkeypatch.setattr(redo_files, "OWN_FILE_BYTES", many.nbytes)
    with RedoFiles(landing, "w") as writing:
        writing.write(few)
        writing.write(many)
        writing.write(batch([(TABLES[0], 5)]))
        files = writing.close()
    numbers = writing.by_table[str(TABLES[0])]
    assert landed_rows(landing, files, numbers, TABLES[0]) == [1, 2, 3, 4, 5]


def test_small_tables_share_a_file_and_a_large_one_has_its_own(
    landing: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redo_files, "OWN_FILE_BYTES", 10_000)
    with RedoFiles(landing, "w") as writing:
        writing.write(batch([(TABLES[0], at) for at in range(100)], text="x" * 100))
        writing.write(batch([(TABLES[1], 100), (TABLES[2], 101)]))
        files = writing.close()
    assert [file.rows for file in files] == [2, 100]
    assert writing.by_table == {'HR."Dept"': (0,), "HR.EMP": (1,), "SHOP.EMP": (0,)}


def test_a_table_with_many_rows_is_written_while_others_wait(
    landing: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to be encoded at the end but the last rows; tables with few wait for more."""
    monkeypatch.setattr(redo_files, "FULL_GROUP_ROWS", 10)
    many, few = TABLES[:2]
    with RedoFiles(landing, "w") as writing:
        for start in range(0, 32, 4):
            writing.write(batch([(few, start), *((many, start + at) for at in (1, 2, 3))]))
            assert writing._rows_of[many] < 10
        assert dict(writing._rows_of) == {few: 8}
        assert writing._held_rows == 8
        files = writing.close()
    for table, wanted in ((few, [*range(0, 32, 4)]), (many, [at for at in range(32) if at % 4])):
        assert landed_rows(landing, files, writing.by_table[str(table)], table) == wanted


def test_no_more_is_held_than_is_allowed(
    landing: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the rows are spread over tables."""
    monkeypatch.setattr(redo_files, "HELD_ROWS_MAX", 50)
    tables = [TableId("HR", f"T{number}") for number in range(40)]
    rng = random.Random(3)
    with RedoFiles(landing, "w") as writing:
        for ordinal in range(400):
            writing.write(batch([(rng.choice(tables), ordinal)]))
            held = [own.num_rows for one in writing._held.values() for own in one]
            assert sum(held) == writing._held_rows < 50
        files = writing.close()
    assert sum(file.rows for file in files) == 400


def test_so_many_tables_have_files_of_their_own(
    landing: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others share one, so that no process opens more files than it may."""
    monkeypatch.setattr(redo_files, "OWN_FILE_BYTES", 1)
    monkeypatch.setattr(redo_files, "OWN_FILES_MAX", 2)
    with RedoFiles(landing, "w") as writing:
        writing.write(batch([(table, at) for at, table in enumerate(TABLES)]))
        files = writing.close()
    assert [file.rows for file in files] == [1, 1, 2]


def fail_within(landing: LandingStore) -> None:
    with RedoFiles(landing, "w") as writing:
        writing._write(TABLES[0], pa.Table.from_batches([batch([(TABLES[0], 1)])]))
        raise ZeroDivisionError


def test_an_exception_gives_the_open_files_up(landing: LandingStore, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_within(landing)
    assert not list((tmp_path / "w").iterdir())
