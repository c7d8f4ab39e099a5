"""Which rows were removed with a partition, where the embedded Oracle has no such table."""

from __future__ import annotations

import pytest

from cdc_core.capture.stream_ends.emptied_partitions import rows_of_partitions
from cdc_core.config import TableConfig
from cdc_core.errors import SchemaMismatchError
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.model.scn import Scn
from cdc_core.schema.ddl_reading import EmptiedPartitions, emptied_partitions
from cdc_core.schema.table import Column, TableSchema
from tests.oracle.fake_session import Answer, FakeSession

SCHEMA = TableSchema(
    table=TableId("SHOP", "ORDERS"),
    columns=(
        Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False),
        Column("REGION", "VARCHAR2", 9, 9, None, None, nullable=True),
    ),
    key=("ID",),
    scn_from=Scn(1),
)

EU = EmptiedPartitions(("EU",))
NOTHING: Answer = []


def rows_of(
    collation: Answer = NOTHING, emptied: EmptiedPartitions = EU
) -> tuple[PartitionRows, ...]:
    """The rows of a partition by LIST of a text, or of a subpartition by RANGE of a number; each partition has subpartitions of its own."""
    session = FakeSession(
        {
            "ALL_PART_TABLES": [("LIST", "RANGE")],
            "ALL_SUBPART_KEY_COLUMNS": [("ID",)],
            "ALL_TAB_SUBPARTITIONS": [
                ("EU", "EU_1", "10"),
                ("EU", "EU_2", "MAXVALUE"),
                ("US", "US_1", "50"),
                ("US", "US_2", "MAXVALUE"),
            ],
            "ALL_PART_KEY_COLUMNS": [("REGION",)],
            "ALL_TAB_PARTITIONS": [("EU", "'DE'"), ("US", "'US'")],
            "ALL_TAB_COLS": collation,
        }
    )
    config = TableConfig(name="SHOP.ORDERS")
    return rows_of_partitions(session, config, SCHEMA, emptied, row_scn=Scn(5), scn=Scn(6))


def test_texts_that_oracle_takes_for_equal_are_not_looked_for() -> None:
    """By BINARY_CI the rows of a partition 'DE' are those with 'de', too."""
    with pytest.raises(SchemaMismatchError, match=r"REGION, .* has the collation BINARY_CI"):
        rows_of([("BINARY_CI",)])
    found = (PartitionRows(partition="EU", column="REGION", listed=("DE",)),)
    assert rows_of([]) == found
    assert rows_of(SchemaMismatchError("no such column", hint="x", ora="ORA-00904")) == found
    with pytest.raises(SchemaMismatchError, match="another"):
        rows_of(SchemaMismatchError("another", hint="x", ora="ORA-00942"))


def test_a_subpartition_has_bounds_among_those_of_its_partition() -> None:
    """By its name, or by values that it takes: as many as there are key columns."""
    named = EmptiedPartitions(("EU_2",), is_sub=True)
    sub = PartitionRows(partition="EU_2", column="ID", low="10", has_null=True)
    found = (PartitionRows(partition="EU", column="REGION", listed=("DE",), sub=sub),)
    assert rows_of(emptied=named) == found
    assert from_json(PartitionRows, as_json(found[0])) == found[0]
    by_values = emptied_partitions("ALTER TABLE ORDERS DROP SUBPARTITION FOR ('DE', 30)")
    assert by_values is not None
    assert rows_of(emptied=by_values) == found
    for refused in ("EU_3", "FOR ('DE')", "FOR ('FR', 1)"):
        chosen = emptied_partitions(f"ALTER TABLE ORDERS DROP SUBPARTITION {refused}")
        assert chosen is not None
        with pytest.raises(SchemaMismatchError):
            rows_of(emptied=chosen)
