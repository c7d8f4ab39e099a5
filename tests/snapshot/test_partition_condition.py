"""The condition by which the rows of partitions are read."""

from __future__ import annotations

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.snapshot.conditions import checked_condition
from cdc_core.snapshot.partition_condition import partition_condition

SCHEMA = TableSchema(
    table=TableId("DEMO", "P"),
    columns=(
        Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False),
        Column("an amount", "NUMBER", 22, 0, 12, 2, nullable=True),
        Column("R", "VARCHAR2", 9, 9, None, None, nullable=True),
        Column("D", "DATE", 7, 0, None, None, nullable=True),
        Column("T", "TIMESTAMP(6)", 11, 0, None, 6, nullable=True),
    ),
    key=("ID",),
    scn_from=Scn(0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "condition"),
    [
        pytest.param({"column": "an amount", "low": "-5.25", "high": "10"}, '"an amount" IS NOT NULL AND "an amount" >= -5.25 AND "an amount" < 10', id="numbers"),
        pytest.param({"column": "ID", "low": "7", "has_null": True}, '("ID" IS NOT NULL AND "ID" >= 7) OR "ID" IS NULL', id="the-last-range"),
        pytest.param(
            {"column": "D", "high": "2026-03-01 00:00:00"}, "\"D\" IS NOT NULL AND \"D\" < TO_DATE('2026-03-01 00:00:00', 'YYYY-MM-DD HH24:MI:SS')", id="days",
        ),
        pytest.param(
            {"column": "T", "low": "0987-03-01 00:00:00.5"},
            "\"T\" IS NOT NULL AND \"T\" >= TO_TIMESTAMP('0987-03-01 00:00:00.500000', 'YYYY-MM-DD HH24:MI:SS.FF6')", id="moments",
        ),
        pytest.param({"column": "R", "listed": ("it's", "\u00c4")}, "\"R\" IS NOT NULL AND \"R\" IN ('it''s', '\u00c4')", id="texts"),
        pytest.param({"column": "R", "listed": (), "has_null": True}, '("R" IS NOT NULL AND 1 = 0) OR "R" IS NULL', id="null-alone"),
        pytest.param({"column": "R", "unlisted": ("DE",), "has_null": True}, "(\"R\" IS NOT NULL AND \"R\" NOT IN ('DE')) OR \"R\" IS NULL", id="the-default"),
        pytest.param(
            {"column": "ID", "high": "7", "sub": PartitionRows(partition="S", column="R", listed=("DE",))},
            "(\"ID\" IS NOT NULL AND \"ID\" < 7) AND (\"R\" IS NOT NULL AND \"R\" IN ('DE'))", id="subpartition",
        ),
    ],
)  # fmt: skip
def test_bounds_become_a_condition_like_those_of_people(
    rows: dict[str, object], condition: str
) -> None:
    found = partition_condition([PartitionRows(partition="P1", **rows)], SCHEMA)  # type: ignore[arg-type]
    assert found == f"({condition})"
    assert checked_condition(found, SCHEMA) == found


def test_several_partitions_are_read_together() -> None:
    parts = [PartitionRows(partition=name, column="ID", high=name) for name in ("1", "2")]
    found = partition_condition(parts, SCHEMA)
    assert found == '("ID" IS NOT NULL AND "ID" < 1) OR ("ID" IS NOT NULL AND "ID" < 2)'
    assert checked_condition(found, SCHEMA) == found
