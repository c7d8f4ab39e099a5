"""Rows that a snapshot found gone, as rows of the change log: as many as there are, a bounded number at once."""

from __future__ import annotations

import pyarrow as pa

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage.snapshot import NAMES_MAX, deletions

SCHEMA = TableSchema(
    TableId("SHOP", "WIDE"),
    Scn(1),
    (
        Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False),
        *(Column(f"C{n:03d}", "VARCHAR2", 9, 9, None, None, nullable=True) for n in range(199)),
    ),
    ("ID",),
)


def test_deletions_hold_a_bounded_number_of_names_of_absent_columns() -> None:
    """Each row lists the columns that it lacks: of a wide table a batch has few rows, whatever the batches of keys are."""
    keys = pa.table({"ID": pa.array(range(30_000), pa.int32())})
    found = 0
    names = [column.name for column in SCHEMA.columns[1:]]
    for batch in deletions(keys.to_batches(), "s1/gone", 77, SCHEMA):
        for column in ("_cdc_absent", "_cdc_before_absent"):
            assert len(batch[column].values) <= NAMES_MAX
            assert batch[column][-1].as_py() == names
        assert set(batch["_cdc_op"].to_pylist()) == {"d"}
        own = [row["ID"] for row in batch["before"].to_pylist()]
        assert own == list(range(found, found + batch.num_rows))
        found += batch.num_rows
    assert found == keys.num_rows


def test_a_table_of_nothing_but_its_key_has_no_names() -> None:
    only = TableSchema(SCHEMA.table, SCHEMA.scn_from, SCHEMA.columns[:1], ("ID",))
    keys = pa.table({"ID": pa.array([1, 2], pa.int32())})
    [batch] = deletions(keys.to_batches(), "s1/gone", 77, only)
    assert batch["_cdc_absent"].to_pylist() == [[], []]
