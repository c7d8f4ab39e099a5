"""How tests put a table's record into a metadata store, whatever led to it."""

from __future__ import annotations

from cdc_core.model.records import TableRecord
from cdc_core.state.store import Store
from cdc_core.state.table_rows import put_table


def save_table(store: Store, record: TableRecord) -> None:
    """Write a table, new or not."""
    with store._database.writing() as connection:
        put_table(connection, record)
