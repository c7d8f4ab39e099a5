"""Which rows go with a partition, or a subpartition, that is dropped or truncated?

They go without redo for each. Where the table is partitioned by RANGE or LIST of one captured
column, the bounds of its partitions say which they are, and those of subpartitions by RANGE or LIST
of one column which of these; a statement that gives values in place of names means the partition
that takes them. The dictionary is asked for them as of right before the DDL, since partitions may
have been split, merged or dropped after it.

Who changed a row of the partition has committed before: the DDL locks it. (SQL Language Reference
19c, ALTER TABLE; VLDB and Partitioning Guide 19c, "About Dropping Partitions and Subpartitions",
"About Truncating Partitions and Subpartitions".)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cdc_core.config import TableConfig
from cdc_core.errors import (
    OracleError,
    PreflightError,
    SchemaMismatchError,
    SnapshotTooOldError,
)
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.model.scn import Scn
from cdc_core.schema.ddl_reading import EmptiedPartitions, PartitionChoice
from cdc_core.schema.ddl_tokens import Token
from cdc_core.schema.dictionary_queries import Queries
from cdc_core.schema.partition_bounds import partition_of_value, rows_of_partition
from cdc_core.schema.table import Column, TableSchema

_HINT = "A new snapshot brings the table back as it is now."
_OF_TABLE = "AS OF SCN :scn WHERE {owner} = :owner AND {name} = :name"
_METHOD = "SELECT PARTITIONING_TYPE, SUBPARTITIONING_TYPE FROM ALL_PART_TABLES " + _OF_TABLE.format(
    owner="OWNER", name="TABLE_NAME"
)
_COLUMNS = (
    f"SELECT COLUMN_NAME FROM ALL_{{kind}}_KEY_COLUMNS {_OF_TABLE.format(owner='OWNER', name='NAME')}"
    " AND OBJECT_TYPE = 'TABLE' ORDER BY COLUMN_POSITION"
)
_PARTITIONS = "SELECT PARTITION_NAME, HIGH_VALUE FROM ALL_TAB_PARTITIONS " + _OF_TABLE.format(
    owner="TABLE_OWNER", name="TABLE_NAME"
)

_SUBPARTITIONS = (
    "SELECT PARTITION_NAME, SUBPARTITION_NAME, HIGH_VALUE FROM ALL_TAB_SUBPARTITIONS "
    + _OF_TABLE.format(owner="TABLE_OWNER", name="TABLE_NAME")
)
_COLLATION = (
    "SELECT COLLATION FROM ALL_TAB_COLS WHERE OWNER = :owner AND TABLE_NAME = :name AND COLUMN_NAME = :column"
    " AND COLLATION NOT IN ('BINARY', 'USING_NLS_COMP', 'USING_NLS_SORT', 'USING_NLS_SORT_CS')"
)
_NO_SUCH_COLUMN = "ORA-00904"


def rows_of_partitions(
    session: Queries,
    config: TableConfig,
    schema: TableSchema,
    emptied: EmptiedPartitions,
    *,
    row_scn: Scn,
    scn: Scn,
) -> tuple[PartitionRows, ...]:
    """The rows that partitions had right before the DDL whose row has the SCN ``row_scn``, and that
    committed at ``scn``.

    The partitions themselves are taken from before its row. Others count that came up to its
    commit: an insert makes a partition of an interval at any time, next to the one that goes.

    Raises:
        SchemaMismatchError: Nothing says which they were.
    """
    if schema.is_by_row_id:
        raise _unknown("no key identifies the table's rows")
    table = schema.table
    binds = {"owner": table.owner, "name": table.name, "scn": row_scn - 1}
    subs: list[tuple[Any, ...]] = []
    sub_columns: list[str] = []
    try:
        methods = session.fetch_all(_METHOD, binds)
        columns = [name for (name,) in session.fetch_all(_COLUMNS.format(kind="PART"), binds)]
        before = dict(session.fetch_all(_PARTITIONS, binds))
        after = session.fetch_all(_PARTITIONS, {**binds, "scn": scn})
        if emptied.is_sub:
            found = session.fetch_all(_COLUMNS.format(kind="SUBPART"), binds)
            sub_columns = [name for (name,) in found]
            subs = [*session.fetch_all(_SUBPARTITIONS, binds)]
    except (OracleError, PreflightError, SchemaMismatchError, SnapshotTooOldError) as error:
        # No FLASHBACK right on the views, or no undo any more.
        raise _unknown(
            f"Oracle does not show its partitions as of right before it ({error.facts.get('ora', error.what_happened)})"
        ) from error
    if len(methods) != 1:
        raise _unknown("the table is not partitioned")
    [(method, sub_method)] = methods
    column = _key_column(session, config, schema, columns)
    others = [high for _, high in after]

    def of_partition(name: str) -> PartitionRows:
        return rows_of_partition(name, method, column, before, others)

    def of_subpartition(choice: PartitionChoice) -> PartitionRows:
        own = _key_column(session, config, schema, sub_columns)
        if isinstance(choice, str):
            parent = next((part for part, name, _ in subs if name == choice), None)
            if parent is None:
                raise _unknown(f"the dictionary shows no subpartition {choice} right before it")
        else:
            parent = partition_of_value(_values(choice, 2)[0], method, column, before)
        beside = {name: high for part, name, high in subs if part == parent}
        if not isinstance(choice, str):
            choice = partition_of_value(choice[1], sub_method, own, beside)
        rows = rows_of_partition(choice, sub_method, own, beside)
        return replace(of_partition(parent), sub=rows)

    if emptied.is_sub:
        return tuple(map(of_subpartition, emptied.chosen))
    named = (
        one
        if isinstance(one, str)
        else partition_of_value(_values(one, 1)[0], method, column, before)
        for one in emptied.chosen
    )
    return tuple(map(of_partition, named))


def _values(choice: tuple[tuple[Token, ...], ...], count: int) -> tuple[tuple[Token, ...], ...]:
    """The values of ``FOR (…)``, one for each key column."""
    if len(choice) != count:
        raise _unknown("the number of values that name a partition differs from its key columns")
    return choice


def _key_column(
    session: Queries, config: TableConfig, schema: TableSchema, names: Sequence[str]
) -> Column:
    """The one column by which a table is partitioned, whose values tell its partitions apart."""
    if len(names) != 1:
        raise _unknown("the table is not partitioned by one column")
    name = names[0].strip('"')
    if name not in schema.column_names or config.mask_of(name) is not None:
        raise _unknown(f"the values of column {name}, by which it is partitioned, are not captured")
    column = schema.column(name)
    if column.data_type == "VARCHAR2" and (found := _own_collation(session, schema, name)):
        raise _unknown(f"column {name}, by which it is partitioned, has the collation {found}")
    return column


def _own_collation(session: Queries, schema: TableSchema, column: str) -> str | None:
    """The collation by which Oracle compares a column's texts other than by their bytes. The
    present one says it: that of a partitioning key can only become one that compares alike
    (ORA-43923). Before 12.2 there is none."""
    table = schema.table
    try:
        found = session.fetch_all(
            _COLLATION, {"owner": table.owner, "name": table.name, "column": column}
        )
    except SchemaMismatchError as error:
        if error.facts.get("ora") != _NO_SUCH_COLUMN:
            raise
        return None
    return str(found[0][0]) if found else None


def _unknown(what: str) -> SchemaMismatchError:
    return SchemaMismatchError(what, hint=_HINT)
