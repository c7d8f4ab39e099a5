"""The type ledger: how wide values have been, kept by the commits that append them, without Spark."""

from __future__ import annotations

import logging
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_core.delta.appending import write_file
from cdc_core.lake.apply.chunks import apply_chunk
from cdc_core.lake.apply.windows import _append_changes
from cdc_core.lake.definitions.column_widths import widths_in
from cdc_core.lake.rows.executors import StagedWindow
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import CHANGELOG_INDEXED
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.layout import change_schema
from cdc_core.stage.snapshot import ChunkRows
from cdc_core.stage.widths import (
    Width,
    WidthCounter,
    room_of,
    width_of,
    widths_as_json,
    widths_of,
)
from tests.landing.facts import LANDED

T = TableId("SHOP", "T")


def column(name: str, data_type: str, p: int | None = None, s: int | None = None) -> Column:
    return Column(name, data_type, 40, 40, p, s, nullable=True)


ID = column("ID", "NUMBER", 9, 0)
AMOUNT = replace(column("AMOUNT", "NUMBER"), held_as="decimal(6,3)")
SCHEMA = TableSchema(
    T, Scn(1), (ID, column("NAME", "VARCHAR2"), AMOUNT, column("ANY", "NUMBER")), ("ID",)
)


def no_session() -> Any:
    raise AssertionError("appending needs no Spark")


@pytest.fixture
def work(tmp_path: Path) -> TableWork:
    return TableWork(str(tmp_path / "lake"), "shop", T, 1, lambda: None, no_session)


def landed(tmp_path: Path, number: int, *rows: tuple[Any, ...]) -> tuple[ChunkManifest, list[str]]:
    path = str(tmp_path / f"{number}.parquet")
    kinds = arrow_schema(SCHEMA)
    columns = [[row[at] for row in rows] for at in range(len(kinds))]
    arrays = [pa.array(values, one.type) for values, one in zip(columns, kinds, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=kinds), path)
    widths = widths_as_json({one.name: width for one, width in widths_of(SCHEMA.columns, arrays)})
    manifest = ChunkManifest(
        source="shop", schema=SCHEMA, snapshot_id="s", number=number, scn=Scn(100), files=(), rows=len(rows),
        condition=None, seconds=0.0, landed=LANDED, widths=widths,
    )  # fmt: skip
    return manifest, [path]


def take(work: TableWork, tmp_path: Path, number: int, *rows: tuple[Any, ...]) -> None:
    apply_chunk(work, *landed(tmp_path, number, *rows), position=None, asked=None)


def test_chunks_and_windows_add_to_one_ledger(work: TableWork, tmp_path: Path) -> None:
    """The newest commit of the change log has the widest of all."""
    take(work, tmp_path, 1, (12, "café", Decimal("1.25"), "-12.5"), (3, None, None, None))
    assert widths_in(work.changelog) == {
        "ID": Width(whole=2),
        "NAME": Width(length=4),
        "AMOUNT": Width(whole=1, fraction=2),
        "ANY": Width(whole=2, fraction=1),
    }
    take(work, tmp_path, 2, (5, "x", Decimal("10.000"), "1" * 40))
    assert widths_in(work.changelog)["AMOUNT"] == Width(whole=2, fraction=2)
    assert widths_in(work.changelog)["ANY"] == Width(whole=40, fraction=1)
    _, paths = landed(tmp_path, 3, (123456789, "longest", None, "0.125"))
    changes = ChunkRows(paths, SCHEMA, SCHEMA).as_changes("s/3", 200)
    window = ScnWindow(Scn(100), Scn(200))
    counter = WidthCounter(SCHEMA)
    batches = counter.passing(changes)
    file = write_file(work.changelog, change_schema(SCHEMA), batches, CHANGELOG_INDEXED)
    assert file is not None
    staged = StagedWindow((file,), counter.seen)
    _append_changes(work, window, SCHEMA, staged, QuarantineTable(work), None)
    found = widths_in(work.changelog)
    assert (found["ID"], found["NAME"]) == (Width(whole=9), Width(length=7))
    assert found["ANY"] == Width(whole=40, fraction=3)


def test_a_decimal_with_hardly_any_room_is_told_once(
    work: TableWork, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before a value does not fit; a column that Delta holds as wide as Oracle is never told."""
    caplog.set_level(logging.WARNING)
    take(work, tmp_path, 1, (999999999, "a", Decimal("9"), None))
    assert caplog.records == []
    take(work, tmp_path, 2, (1, "a", Decimal("-10"), None))
    [told] = caplog.messages
    assert "column=AMOUNT held_as=decimal(6,3) digits=2 room=1" in told
    take(work, tmp_path, 3, (2, "a", Decimal("77"), None))
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("one", "width", "room"),
    [
        pytest.param(column("C", "NUMBER", 9, 2), Width(whole=7), None, id="as-wide-as-oracle"),
        pytest.param(column("C", "NUMBER", None, 3), Width(whole=35), 0, id="40-digits-in-a-decimal-of-38"),
        pytest.param(column("C", "NUMBER"), Width(whole=40), None, id="text"),
        pytest.param(replace(column("C", "FLOAT"), held_as="decimal(9,2)"), Width(whole=3), 4, id="float-as-decimal"),
        pytest.param(replace(column("C", "NUMBER", 9, 2), held_as="decimal(20,4)"), Width(whole=7), None, id="wider-than-oracle"),
    ],
)  # fmt: skip
def test_how_much_room_is_left(one: Column, width: Width, room: int | None) -> None:
    assert room_of(one, width) == room


@pytest.mark.parametrize(
    ("one", "values", "width"),
    [
        pytest.param(column("C", "RAW"), [b"abc", None], Width(length=3), id="bytes"),
        pytest.param(column("C", "NUMBER"), ["-0.5", "7"], Width(1, 1), id="number-text"),
        pytest.param(column("C", "NUMBER", 9, 0), [-100, 7], Width(3), id="the-longer-may-be-negative"),
        pytest.param(column("C", "NUMBER", 9, 0), [None], None, id="nothing"),
        pytest.param(column("C", "BINARY_DOUBLE"), [1e300], None, id="one-width-alone"),
        pytest.param(column("C", "NUMBER", None, 3), [Decimal("0.125")], Width(0, 3), id="fraction-alone"),
        pytest.param(column("C", "NUMBER", 38, 0), [Decimal("-" + "9" * 38)], Width(38), id="more-digits-than-python-rounds-to"),
    ],
)  # fmt: skip
def test_what_a_column_s_width_is(one: Column, values: list[Any], width: Width | None) -> None:
    kind = arrow_schema(replace(SCHEMA, columns=(one,))).field("C").type
    assert width_of(pa.array(values, kind), one) == width
