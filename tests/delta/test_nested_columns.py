"""Columns of a file become fields of a struct of another one, with the same pages: every reader finds the same values."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.delta.appending import CommitInfo, FileChanges, commit_files, create_table
from cdc_core.delta.nested_columns import nested_file
from cdc_core.delta.parquet_footer import footer_bytes, read_footer
from cdc_core.delta.placed_files import place_file, place_nested
from cdc_core.errors import StoreUnavailableError

KINDS = pa.schema(
    [
        ("ID", pa.int64()),
        ("TEXT", pa.string()),
        ("AMOUNT", pa.decimal128(38, 10)),
        ("SMALL", pa.decimal128(9, 2)),
        ("AT", pa.timestamp("us")),
        ("BYTES", pa.binary()),
        ("SHARE", pa.float64()),
        ("IS", pa.bool_()),
        ("after", pa.string()),
        ("NEVER", pa.string()),
    ]
)
ROWS, GROUP = 2_500, 1_000


def table() -> pa.Table:
    rows = [
        {
            "ID": at,
            "TEXT": None if at % 7 == 0 else f"text {at} é",
            "AMOUNT": Decimal(at) / 8,
            "SMALL": None if at % 2 else Decimal("-0.25"),
            "AT": datetime(2013, 1, 1, 0, 0, at % 60, at),
            "BYTES": at.to_bytes(4, "little"),
            "SHARE": at / 3,
            "IS": at % 3 == 0,
            "after": "x" if at > GROUP else None,
            "NEVER": None,
        }
        for at in range(ROWS)
    ]
    return pa.Table.from_pylist(rows, KINDS)


def written(path: Path, **options: Any) -> Path:
    pq.write_table(table(), path, row_group_size=GROUP, compression="zstd", **options)
    return path


def envelope(kinds: pa.Schema = KINDS, *, nullable: bool = False) -> pa.Schema:
    """``before`` has a field that is called as the struct is."""
    return pa.schema(
        [
            pa.field("OP", pa.string()),
            pa.field("ABSENT", pa.list_(pa.string())),
            pa.field("before", pa.struct(list(KINDS))),
            pa.field("after", pa.struct(list(kinds)), nullable=nullable),
            pa.field("SCN", pa.int64()),
        ]
    )


def others(rows: int) -> pa.RecordBatch:
    values: dict[str, Any] = {"OP": "r", "ABSENT": ["A", "B"], "SCN": 12}
    schema = pa.schema([envelope().field(name) for name in values])
    return pa.RecordBatch.from_pylist([values] * rows, schema)


def nested(path: Path) -> bytes:
    with path.open("rb") as file:
        made = nested_file(file, envelope(), "after", others)
    assert made is not None
    data = made.beginning + path.read_bytes()[made.start : made.end] + made.ending
    assert len(data) == made.size
    return data


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
def test_the_struct_has_the_columns_values(tmp_path: Path, options: dict[str, Any]) -> None:
    data = nested(written(tmp_path / "flat.parquet", **options))
    found = pq.read_table(BytesIO(data))
    assert found.schema.equals(envelope())
    assert pa.Table.from_struct_array(found["after"]).to_pylist() == table().to_pylist()
    assert found.drop_columns("after").to_pylist() == [
        {"OP": "r", "ABSENT": ["A", "B"], "before": None, "SCN": 12}
    ] * ROWS  # fmt: skip
    assert [pq.read_metadata(BytesIO(data)).row_group(at).num_rows for at in range(3)] == [1000, 1000, 500]  # fmt: skip


def test_each_row_group_is_in_a_split_by_its_middle(tmp_path: Path) -> None:
    """Readers in splits skip a group whose middle is in none of them, without a word; few bytes stand beside many here, and many beside few."""
    wide = pa.table({"ID": range(ROWS), "TEXT": [f"{at * 7919**3:x}" * 40 for at in range(ROWS)]})
    narrow = pa.table({"ID": pa.nulls(ROWS, pa.int64()), "TEXT": pa.nulls(ROWS, pa.string())})
    for rows in (wide, narrow):
        pq.write_table(rows, tmp_path / "flat.parquet", row_group_size=GROUP, compression="zstd")
        fields = pa.schema([("ID", pa.int64()), ("TEXT", pa.string())])
        with (tmp_path / "flat.parquet").open("rb") as file:
            made = nested_file(file, envelope(fields), "after", others)
        assert made is not None
        data = made.beginning + (tmp_path / "flat.parquet").read_bytes()[made.start : made.end]
        found = pq.read_metadata(BytesIO(data + made.ending))
        for at in range(found.num_row_groups):
            group = found.row_group(at)
            columns = [group.column(place) for place in range(group.num_columns)]
            first = columns[0].dictionary_page_offset or columns[0].data_page_offset
            size = sum(one.total_compressed_size for one in columns)
            assert first >= 4
            assert first + size // 2 < len(data)


def test_duckdb_and_delta_rs_read_it_and_skip_by_its_statistics(tmp_path: Path) -> None:
    """In a Delta table whose struct may be NULL, beside files that have it so."""
    path = str(tmp_path / "t")
    columns = envelope(nullable=True)
    create_table(path, columns, {}, doing="creating", facts={})
    source = str(written(tmp_path / "flat.parquet"))
    file = place_nested(path, source, columns, "after", others, ["OP", "SCN"])
    assert file is not None
    assert (file.rows, file.bytes) == (ROWS, (Path(path) / file.name).stat().st_size)
    info = CommitInfo(doing="appending", metadata="{}")
    commit_files(path, FileChanges(added=[file]), info, fence=lambda: None)
    sql = "SELECT count(*) AS n, sum(after.\"ID\") AS ids, max(after.\"after\") AS x FROM {} WHERE \"SCN\" = 12 AND after.\"ID\" >= 2000"  # fmt: skip
    wanted = (500, sum(range(2000, ROWS)), "x")
    query = QueryBuilder().register("t", DeltaTable(path)).execute(sql.format("t"))
    [row] = pa.table(query.read_all()).to_pylist()
    assert (row["n"], row["ids"], row["x"]) == wanted
    with duckdb.connect() as connection:
        read = connection.execute(sql.format(f"read_parquet('{path}/{file.name}')"))
        assert read.fetchone() == wanted
    [action] = pa.table(DeltaTable(path).get_add_actions(flatten=True)).to_pylist()
    assert (action["num_records"], action["min.SCN"], action["max.OP"]) == (ROWS, 12, "r")


def test_a_footer_goes_through_as_it_is(tmp_path: Path) -> None:
    content = written(tmp_path / "flat.parquet", write_page_index=True).read_bytes()
    footer, start = read_footer(BytesIO(content))
    assert content[start:] == footer_bytes(footer)


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(KINDS.set(0, pa.field("ID", pa.int32())), id="another-type"),
        pytest.param(KINDS.set(2, pa.field("AMOUNT", pa.decimal128(38, 9))), id="another-scale"),
        pytest.param(KINDS.set(0, pa.field("ID", pa.int64(), nullable=False)), id="never-null"),
        pytest.param(pa.schema([*KINDS, pa.field("MORE", pa.int64())]), id="a-column-more"),
    ],
)
def test_columns_that_are_encoded_otherwise_are_not_taken(tmp_path: Path, kinds: pa.Schema) -> None:
    with written(tmp_path / "flat.parquet").open("rb") as file:
        assert nested_file(file, envelope(kinds), "after", others) is None


def test_a_file_without_rows_gives_none_and_another_file_is_refused(tmp_path: Path) -> None:
    pq.write_table(KINDS.empty_table(), tmp_path / "empty.parquet")
    with (tmp_path / "empty.parquet").open("rb") as file:
        assert nested_file(file, envelope(), "after", others) is None
    with pytest.raises(ValueError, match="no Parquet footer"):
        nested_file(BytesIO(b"PAR1 and something else"), envelope(), "after", others)


def test_a_placed_file_is_the_same_file_and_copied_where_names_cannot_be_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").mkdir()
    source = written(tmp_path / "flat.parquet")
    linked = place_file(str(tmp_path / "t"), str(source), KINDS, ["ID", "TEXT", "AMOUNT"])
    assert (tmp_path / "t" / linked.name).samefile(source)

    def refused(*_names: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refused)
    copied = place_file(str(tmp_path / "t"), str(source), KINDS, ["ID", "TEXT", "AMOUNT"])
    there = tmp_path / "t" / copied.name
    assert not there.samefile(source)
    assert there.read_bytes() == source.read_bytes()
    assert (copied.rows, copied.bytes, copied.statistics) == (linked.rows, linked.bytes, linked.statistics)  # fmt: skip


def test_a_disk_that_is_full_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").mkdir()
    source = written(tmp_path / "flat.parquet")

    def full(*_given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cdc_core.delta.placed_files.make_durable", full)
    with pytest.raises(StoreUnavailableError, match="No space left"):
        place_nested(str(tmp_path / "t"), str(source), envelope(), "after", others, ["SCN"])
    assert list((tmp_path / "t").iterdir()) == []
