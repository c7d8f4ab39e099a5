"""A table that changes by transactions (``tests.stage.landed``), and readers of its Delta tables that share no code with the lake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.schema.table import TableSchema
from tests.stage.landed import Row, Source, number, order, orders_schema, varchar


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """An empty SHOP.ORDERS (ID, NAME, AMOUNT, NOTE CLOB) at SCN 100."""
    return Source(tmp_path / "landing", orders_schema())


@pytest.fixture
def make_source(tmp_path: Path) -> Callable[..., Source]:
    """A source with another table."""

    def make(schema: TableSchema, **more: Any) -> Source:
        return Source(tmp_path / "landing", schema, **more)

    return make


@pytest.fixture
def row() -> Callable[..., Row]:
    """A row of SHOP.ORDERS."""
    return order


class Columns:
    """Builders of columns."""

    number = staticmethod(number)
    varchar = staticmethod(varchar)


@pytest.fixture
def columns() -> type[Columns]:
    """Builders of columns."""
    return Columns


@pytest.fixture
def mirror(tmp_path: Path) -> Callable[..., list[Row]]:
    """The mirror's rows in key order, read by delta-rs."""

    def read(schema: TableSchema, version: int | None = None, *, hidden: bool = False) -> list[Row]:
        names = list(schema.column_names)
        if hidden:
            names += ["_cdc_commit_scn", "_cdc_ordinal"]
        listed = ", ".join(f'"{c}"' for c in names)
        table = DeltaTable(
            str(tmp_path / "lake" / "shop" / "mirror" / schema.table.path), version=version
        )
        rows = QueryBuilder().register("t", table).execute(f"select {listed} from t").read_all()
        found = pa.table(rows).to_pylist()
        return sorted(found, key=lambda row: tuple(str(row[k]).zfill(30) for k in schema.key))

    return read


@pytest.fixture
def changelog(tmp_path: Path) -> Callable[[TableSchema], list[Row]]:
    """The change log's rows in order, read by delta-rs."""

    def read(schema: TableSchema) -> list[Row]:
        table = DeltaTable(str(tmp_path / "lake" / "shop" / "changelog" / schema.table.path))
        rows = QueryBuilder().register("t", table).execute("select * from t").read_all()
        found = pa.table(rows).to_pylist()
        return sorted(found, key=lambda row: (row["_cdc_commit_scn"], row["_cdc_ordinal"]))

    return read


@pytest.fixture
def delta_version(tmp_path: Path) -> Callable[[TableSchema], int]:
    """The mirror's newest version."""

    def read(schema: TableSchema) -> int:
        return DeltaTable(str(tmp_path / "lake" / "shop" / "mirror" / schema.table.path)).version()

    return read
