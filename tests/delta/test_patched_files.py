"""A file of a Delta table is written anew with the pages of the columns that stay: every reader finds the same values as in one that is encoded whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from cdc_core.delta.file_statistics import statistics_of
from cdc_core.delta.patched_files import RowGroup, write_patched
from tests.delta.test_nested_columns import GROUP, KINDS, ROWS, table, written

INDEXED = ("ID", "TEXT", "SMALL")
LIMIT = 10**6


def change(group: RowGroup) -> pa.Table:
    """The first row group stays, in the second two columns change, the third loses every third row."""
    if group.number == 0:
        return pa.table({})
    if group.number == 1:
        rows = group.read(["ID", "TEXT"])
        texts = pc.binary_join_element_wise(rows["TEXT"], "changed", " ")
        return pa.table({"TEXT": texts, "IS": pa.repeat(True, group.rows)})
    return group.read(KINDS.names).filter(pc.equal(pc.bit_wise_and(group.read(["ID"])["ID"], 1), 0))


def changed() -> pa.Table:
    """The rows that :func:`change` leaves."""
    first, second, third = (table().slice(at, GROUP) for at in range(0, ROWS, GROUP))
    texts = pc.binary_join_element_wise(second["TEXT"], "changed", " ")
    second = second.set_column(1, "TEXT", texts).set_column(7, "IS", [[True] * GROUP])
    third = third.filter(pc.equal(pc.bit_wise_and(third["ID"], 1), 0))
    return pa.concat_tables([first, second, third])


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="dictionaries"),
        pytest.param({"use_dictionary": False}, id="plain"),
        pytest.param({"data_page_version": "2.0"}, id="second-version-of-pages"),
        pytest.param({"data_page_size": 512}, id="many-pages"),
        pytest.param({"write_page_index": True, "dictionary_pagesize_limit": 64}, id="an-index-of-pages"),
    ],
)  # fmt: skip
def test_columns_that_stay_keep_their_pages_and_all_have_their_values(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    old = written(tmp_path / "old.parquet", **options)
    new = write_patched(str(tmp_path), "old.parquet", KINDS, change, INDEXED, group_bytes_max=LIMIT)
    assert new is not None
    path = tmp_path / new.name
    found, wanted = pq.read_table(path), changed()
    found.validate(full=True)
    assert found.schema.equals(pq.read_schema(old))
    assert found.to_pylist() == wanted.to_pylist()
    assert (new.rows, new.bytes) == (wanted.num_rows, path.stat().st_size)
    pq.write_table(wanted, tmp_path / "whole.parquet", row_group_size=GROUP)
    whole = pq.read_metadata(tmp_path / "whole.parquet")
    assert new.statistics == statistics_of(whole, KINDS, INDEXED)
    for number, copied in ((0, KINDS.names), (1, sorted({*KINDS.names} - {"TEXT", "IS"}))):
        assert _pages(path, number, copied) == _pages(old, number, copied)
    with duckdb.connect() as connection:
        sql = 'SELECT count(*), sum("ID"), max("TEXT"), sum("SMALL") FROM read_parquet(?) WHERE "ID" >= 900'
        assert (
            connection.execute(sql, [str(path)]).fetchone()
            == connection.execute(sql, [str(tmp_path / "whole.parquet")]).fetchone()
        )


def test_a_column_of_which_the_file_has_no_statistics_gets_none(tmp_path: Path) -> None:
    """Spark leaves them out of columns with long texts."""
    written(tmp_path / "old.parquet", write_statistics=["ID", "SMALL"])
    new = write_patched(str(tmp_path), "old.parquet", KINDS, change, INDEXED, group_bytes_max=LIMIT)
    assert new is not None
    said = json.loads(new.statistics)
    assert set(said["nullCount"]) == {"ID", "SMALL"}
    assert "TEXT" not in {**said["minValues"], **said["maxValues"]}
    assert said["numRecords"] == changed().num_rows


def test_columns_are_read_in_the_tables_types_whatever_the_file_calls_them(tmp_path: Path) -> None:
    """A file may say in which types of Arrow its writer held the columns."""
    at = KINDS.get_field_index("TEXT")
    rows = table().cast(KINDS.set(at, pa.field("TEXT", pa.large_string())))
    pq.write_table(rows, tmp_path / "old.parquet", row_group_size=GROUP)
    seen = []

    def read(group: RowGroup) -> pa.Table:
        seen.append(group.read(["TEXT", "ID"]).schema)
        return pa.table({})

    new = write_patched(str(tmp_path), "old.parquet", KINDS, read, INDEXED, group_bytes_max=LIMIT)
    assert new is not None
    assert set(seen) == {pa.schema([KINDS.field("TEXT"), KINDS.field("ID")])}


def _pages(path: Path, number: int, names: list[str]) -> dict[str, bytes]:
    """The pages of some columns of a row group."""
    data, group = path.read_bytes(), pq.read_metadata(path).row_group(number)
    columns = [group.column(at) for at in range(group.num_columns)]
    return {
        one.path_in_schema: data[start : start + one.total_compressed_size]
        for one in columns
        if one.path_in_schema in names
        and (start := one.dictionary_page_offset or one.data_page_offset)
    }


def test_each_row_group_is_in_a_split_by_its_middle(tmp_path: Path) -> None:
    """A reader in splits finds each row group between the beginning of its first column and the next one's."""
    written(tmp_path / "old.parquet")
    new = write_patched(str(tmp_path), "old.parquet", KINDS, change, INDEXED, group_bytes_max=LIMIT)
    assert new is not None
    found = pq.read_metadata(tmp_path / new.name)
    ends = 4
    for number in range(found.num_row_groups):
        group = found.row_group(number)
        columns = [group.column(at) for at in range(group.num_columns)]
        assert (columns[0].dictionary_page_offset or columns[0].data_page_offset) == ends
        ends += sum(one.total_compressed_size for one in columns)
    assert ends < new.bytes


def test_a_row_group_that_loses_all_its_rows_goes(tmp_path: Path) -> None:
    written(tmp_path / "old.parquet")

    def without_the_second(group: RowGroup) -> pa.Table:
        return KINDS.empty_table() if group.number == 1 else pa.table({})

    new = write_patched(
        str(tmp_path), "old.parquet", KINDS, without_the_second, INDEXED, group_bytes_max=LIMIT
    )
    assert new is not None
    found = pq.ParquetFile(tmp_path / new.name)
    assert found.num_row_groups == 2
    assert found.read()["ID"].to_pylist() == [*range(GROUP), *range(2 * GROUP, ROWS)]


@pytest.mark.parametrize(
    ("kinds", "limit"),
    [
        pytest.param(KINDS.set(0, pa.field("ID", pa.int32())), LIMIT, id="another-type"),
        pytest.param(KINDS.set(0, pa.field("NO", pa.int64())), LIMIT, id="another-name"),
        pytest.param(KINDS.set(2, pa.field("AMOUNT", pa.decimal128(38, 9))), LIMIT, id="another-scale"),
        pytest.param(KINDS.set(0, pa.field("ID", pa.int64(), nullable=False)), LIMIT, id="never-null"),
        pytest.param(pa.schema([*KINDS, pa.field("MORE", pa.int64())]), LIMIT, id="a-column-more"),
        pytest.param(pa.schema([*KINDS][1:]), LIMIT, id="a-column-less"),
        pytest.param(pa.schema([KINDS[1], KINDS[0], *[*KINDS][2:]]), LIMIT, id="another-order"),
        pytest.param(KINDS, 1000, id="a-large-row-group"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_left_to_others(
    tmp_path: Path, kinds: pa.Schema, limit: int
) -> None:
    old = written(tmp_path / "old.parquet")
    found = write_patched(
        str(tmp_path), "old.parquet", kinds, change, INDEXED, group_bytes_max=limit
    )
    assert found is None
    assert list(tmp_path.iterdir()) == [old]


def test_a_disk_that_is_full_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = written(tmp_path / "old.parquet")

    def full(*_given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cdc_core.delta.patched_files.make_durable", full)
    with pytest.raises(OSError, match="No space left"):
        write_patched(str(tmp_path), "old.parquet", KINDS, change, INDEXED, group_bytes_max=LIMIT)
    assert list(tmp_path.iterdir()) == [old]
