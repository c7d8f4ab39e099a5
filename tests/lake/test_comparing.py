"""Equality of a mirror with Oracle's rows, and the digest on both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from cdc_core.errors import LakeError, LandingDamagedError
from cdc_core.lake.comparison.sides import Differences, Sums, added, suspects, total
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_schema
from tests.lake.plain_digest import table_digest
from tests.lake.who_merges import BY_BOTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_core.lake.lake import Lake
    from tests.stage.landed import Row, Source


def _column(name: str, data_type: str, **more: Any) -> Column:
    return Column(name, data_type, 22, 30, more.get("p"), more.get("s"), nullable=True)


SCHEMA = TableSchema(
    TableId("SHOP", "Odd Ones"),
    Scn(1),
    (
        _column("A", "NUMBER", p=9, s=0),
        _column("B", "VARCHAR2"),
        _column("BIG", "NUMBER", p=38, s=10),
        _column("ANY", "NUMBER"),
        _column("D", "BINARY_DOUBLE"),
        _column("F", "BINARY_FLOAT"),
        _column("AT", "TIMESTAMP(6)"),
        _column("NANOS", "TIMESTAMP(9)"),
        _column("RAWS", "RAW"),
        replace(_column("FLAG", "NUMBER", p=1, s=0), held_as="boolean"),
    ),
    ("A", "B"),
)
TINY = Decimal("0.0000000001")
ROWS: list[tuple[Any, ...]] = [
    (
        1,
        "x",
        TINY,
        "1E+100",
        float("nan"),
        1.5,
        datetime(1, 1, 1),
        "0001-01-01 00:00:00.000000001",
        b"\x00\xff",
        True,
    ),
    (
        1,
        "y\x1f\\'",
        Decimal("-1234567890123456789012345678.0123456789"),
        None,
        -0.0,
        None,
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        None,
        b"",
        False,
    ),
    (
        2,
        "ü🔥",
        None,
        "0",
        1e300,
        0.001953125,
        datetime(1969, 12, 31, 23, 59, 59, 1),
        "x",
        None,
        None,
    ),
    (3, "x", TINY, "5", 1e-5, 1e10, None, None, None, True),
    (4, "x", Decimal("0.0000000000"), "5", 0.0, 123456.0, None, None, None, None),
]


by_both = pytest.mark.parametrize("open_lake", BY_BOTH, indirect=True)
"""In this process, and by Spark."""


class _Chunk:
    """What apply_chunk wants of a chunk."""

    def __init__(self, folder: Path, rows: list[tuple[Any, ...]], name: str) -> None:
        columns = [[row[i] for row in rows] for i in range(len(SCHEMA.columns))]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, arrow_schema(SCHEMA), strict=True)]
        self.path = str(folder / f"{name}.parquet")
        pq.write_table(pa.Table.from_arrays(arrays, schema=arrow_schema(SCHEMA)), self.path)


@by_both
def test_equal_tables_have_equal_digests_and_differences_are_named(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., Source],
    tmp_path: Path,
    mirror: Callable[..., list[Row]],
) -> None:
    lake = open_lake()
    chunk = make_source(SCHEMA).chunk(scn=100)
    right = _Chunk(tmp_path, ROWS, "right")
    lake.table(SCHEMA.table).apply_chunk(replace(chunk.manifest, rows=len(ROWS)), [right.path])
    version = lake.table(SCHEMA.table).mirror_version_at(100)
    found = look(lake, [[right.path]], version, tmp_path / "1")
    assert found.oracle == found.delta == Sums(5, int(table_digest(ROWS), 16), 0)
    assert found.keys == ()

    changed = [*ROWS[:2], (*ROWS[2][:3], "1", *ROWS[2][4:]), ROWS[4], (9, "new", *ROWS[3][2:])]
    parts = [
        [_Chunk(tmp_path, part, f"part {at}").path]
        for at, part in enumerate((changed[:2], [], changed[2:]))
    ]
    found = look(lake, parts, version, tmp_path / "2", keys_max=2)
    assert (found.oracle.rows, found.delta.rows, found.count) == (5, 5, 3)
    assert found.keys == ((2, "ü🔥"), (3, "x"))
    assert found.oracle.digest == int(table_digest(changed), 16) != found.delta.digest

    with pytest.raises(LakeError):
        look(lake, parts, 99, tmp_path / "3")
    with pytest.raises(LandingDamagedError):
        look(lake, [[str(tmp_path / "nowhere.parquet")]], version, tmp_path / "4")
    with pytest.raises(LakeError, match="no version for this SCN"):
        lake.table(SCHEMA.table).mirror_version_at(99)


@by_both
def test_rows_that_are_double_are_seen_on_either_side(
    open_lake: Callable[..., Lake], make_source: Callable[..., Source], tmp_path: Path
) -> None:
    """Counts, digests and double keys are those of each side by itself, whatever the other one has."""
    lake = open_lake()
    chunk = make_source(SCHEMA).chunk(scn=100)
    right = _Chunk(tmp_path, ROWS, "right")
    lake.table(SCHEMA.table).apply_chunk(replace(chunk.manifest, rows=len(ROWS)), [right.path])
    path = str(tmp_path / "lake" / "shop" / "mirror" / SCHEMA.table.path)
    rows = pa.table(
        QueryBuilder().register("t", DeltaTable(path)).execute("select * from t").read_all()
    )
    write_deltalake(path, rows, mode="append")
    version = lake.table(SCHEMA.table).mirror_version_at(100)
    found = look(lake, [[right.path]], version, tmp_path / "1")
    digest = int(table_digest(ROWS), 16)
    assert found.oracle == Sums(5, digest, 0)
    assert found.delta == Sums(10, 2 * digest, 5)
    assert (found.count, len(found.keys)) == (5, 5)
    twice = _Chunk(tmp_path, ROWS * 2, "twice")
    found = look(lake, [[twice.path]], version, tmp_path / "2")
    assert found.oracle == found.delta
    assert found.count == 5


@dataclass(frozen=True)
class _Found:
    oracle: Sums
    delta: Sums
    count: int
    keys: tuple[tuple[Any, ...], ...]


def look(
    lake: Any, parts: list[list[str]], version: int, folder: Path, *, keys_max: int = 20
) -> _Found:
    """Compare as the steps do it."""
    comparison = lake.table(SCHEMA.table).comparison(SCHEMA, version)
    delta = comparison.sums_of_mirror()
    oracle = added(comparison.sums_of_files(paths) for paths in parts)
    wanted = suspects(oracle, delta, rows_max=comparison.rows_at_once)
    differences = Differences(0, ())
    if wanted.buckets:
        kept = [str(folder / str(number)) for number in range(len(parts))]
        for paths, where in zip(parts, kept, strict=True):
            comparison.keep_keys(paths, wanted, where)
        differences = comparison.differing_keys(kept, wanted, keys_max=keys_max)
    return _Found(total(oracle), total(delta), differences.count, differences.keys)
