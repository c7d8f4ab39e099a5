"""What are the bounds of partitions worth, and which partition does a row need that has none?

An interval-partitioned table makes a partition when the first row comes that belongs into it; it
stays when that row is undone.

Source: Oracle Database VLDB and Partitioning Guide 19c, "Interval Partitioning".
"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.run.query_run import evaluate
from oracle_embedded.engine.sql.queries import parse_expression
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef
from oracle_embedded.engine.storage.fitting import fitter
from oracle_embedded.engine.storage.partitions import Partition, range_place
from oracle_embedded.engine.storage.rows import Image

_PARTITIONS_MAX = 1024 * 1024 - 1


def stored_value(
    session: SessionState, table: TableDef, column: ColumnDef, text: str
) -> str | None:
    """What a constant is worth in a column: hexadecimal digits, None for NULL."""
    value = _value(session, table, column, text)
    return None if value is None else value.hex()


def with_partition_for(session: SessionState, table: TableDef, image: Image) -> TableDef:
    """The table with the partition that a row needs, if it has an interval and none takes the row.
    Under the store's lock."""
    made = table.partitioning
    if made is None or made.interval is None or table.leaf_of(image) is not None:
        return table
    column = table.by_id[made.columns[0]]
    value = image[column.internal_id]
    if value is None:
        return table
    store = session.database.store
    last = next(one for one in reversed(made.partitions) if one.low is None)
    low = last.bounds[0][0]
    for count in range(1, _PARTITIONS_MAX):
        text = f"({last.high_value}) + {count} * ({made.interval})"
        high = stored_value(session, table, column, text)
        if high is not None and value < bytes.fromhex(high):
            break
        low = high
    else:
        raise OracleError(
            14300,
            "partitioning key maps to a partition outside maximum permitted number of partitions",
        )
    if made.sub_count:
        raise unsupported("interval partitions with subpartitions")
    number = store.catalog.new_id()
    new = Partition(number, number, f"SYS_P{number}", text, ((high,),), low)
    partitions = sorted((*made.partitions, new), key=lambda one: range_place(one.bounds[0]))
    changed = replace(
        table,
        partitioning=replace(made, partitions=tuple(partitions)),
        object_version=table.object_version + 1,
    )
    store.new_segment(number)
    store.catalog.put(changed, store.clock.next())
    return changed


def _value(session: SessionState, table: TableDef, column: ColumnDef, text: str) -> Value:
    state = compilation(session, None)
    value = convert(state.value(parse_expression(text), Scope()), column.type.family)
    connection = session.database.store.writer
    session.enter(connection.context)
    found = evaluate(connection, value.text, [])
    if found is None:
        return None
    return fitter(table, column, session.database.character_sets)(found)
