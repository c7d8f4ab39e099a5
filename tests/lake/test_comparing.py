"""Equality of a mirror with Oracle's rows, and the digest on both sides."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_core.errors import LakeError, LandingDamagedError
from cdc_core.lake.digest import table_digest
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_schema

pytestmark = pytest.mark.spark


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
    ),
    (2, "ü🔥", None, "0", 1e300, 0.001953125, datetime(1969, 12, 31, 23, 59, 59, 1), "x", None),
    (3, "x", TINY, "5", 1e-5, 1e10, None, None, None),
    (4, "x", Decimal("0.0000000000"), "5", 0.0, 123456.0, None, None, None),
]


class _Chunk:
    """What apply_chunk wants of a chunk."""

    def __init__(self, folder: Path, rows: list[tuple[Any, ...]], name: str) -> None:
        columns = [[row[i] for row in rows] for i in range(len(SCHEMA.columns))]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, arrow_schema(SCHEMA), strict=True)]
        self.path = str(folder / f"{name}.parquet")
        pq.write_table(pa.Table.from_arrays(arrays, schema=arrow_schema(SCHEMA)), self.path)


def test_equal_tables_have_equal_digests_and_differences_are_named(
    open_lake: Any, make_source: Any, tmp_path: Path, mirror: Any
) -> None:
    lake = open_lake()
    chunk = make_source(SCHEMA).chunk(scn=100)
    right = _Chunk(tmp_path, ROWS, "right")
    lake.apply_chunk(chunk.manifest, [right.path], first=True)
    version = lake.mirror_version_at(SCHEMA.table, 100)
    found = lake.compare(SCHEMA.table, SCHEMA, [right.path], version)
    assert (found.rows_oracle, found.rows_delta, found.differences) == (5, 5, 0)
    assert found.digest_oracle == found.digest_delta == table_digest(ROWS)

    changed = [*ROWS[:2], (*ROWS[2][:3], "1", *ROWS[2][4:]), ROWS[4], (9, "new", *ROWS[3][2:])]
    other = _Chunk(tmp_path, changed, "other")
    found = lake.compare(SCHEMA.table, SCHEMA, [other.path], version, keys_max=2)
    assert (found.rows_oracle, found.rows_delta, found.differences) == (5, 5, 3)
    assert found.keys == ("2,ü🔥", "3,x")
    assert found.digest_oracle == table_digest(changed) != found.digest_delta

    with pytest.raises(LakeError):
        lake.compare(SCHEMA.table, SCHEMA, [right.path], 99)
    with pytest.raises(LandingDamagedError):
        lake.compare(SCHEMA.table, SCHEMA, [str(tmp_path / "nowhere.parquet")], version)
    with pytest.raises(LakeError, match="no version for this SCN"):
        lake.mirror_version_at(SCHEMA.table, 99)
