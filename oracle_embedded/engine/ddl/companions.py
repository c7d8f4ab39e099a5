"""Which tables come and go with a table: those that store its nested tables, and what does not fit
into its index?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef
from oracle_embedded.engine.storage.companions import MAPPING, NESTED, OVERFLOW

_ROW_OF = SqlType(OraType.RAW, length=16)


def create_companions(run: DdlRun, table: TableDef, node: nodes.CreateTable) -> None:
    """Create what a new table comes with."""
    store_nested_tables(run, table, table.columns, node.nested)
    if node.has_overflow:
        _make(run, table, f"SYS_IOT_OVER_{table.object_id}", OVERFLOW, ())
    if node.has_mapping:
        _make(run, table, f"SYS_IOT_MAP_{table.object_id}", MAPPING, ())


def store_nested_tables(
    run: DdlRun,
    table: TableDef,
    columns: Iterable[ColumnDef],
    nested: Iterable[tuple[str, str]],
) -> None:
    """Create what stores the nested tables of new columns, and drop what stored those of columns
    that have gone.

    Raises:
        OracleError: ORA-22913 for a column of a nested table without NESTED TABLE … STORE AS,
            ORA-22912 for such a clause without one.
    """
    stored = dict(nested)
    for column in columns:
        name, element = stored.pop(column.name, None), column.nested_element
        if element is None:
            if name is not None:
                raise OracleError(22912, "specified column or attribute is not a nested table type")
            continue
        if name is None:
            raise OracleError(22913, "must specify table name for nested table column or attribute")
        run.must_be_new(table.owner, name)
        parts: tuple[tuple[str, SqlType], ...] = (("COLUMN_VALUE", element),)
        if element.user is not None and element.user.element is None:
            parts = element.user.attributes
        hidden = ColumnDef(internal_id=1, name="NESTED_TABLE_ID", type=_ROW_OF, is_invisible=True)
        shown = (
            ColumnDef(internal_id=at, name=part, type=kind)
            for at, (part, kind) in enumerate(parts, 2)
        )
        _make(run, table, name, NESTED, (hidden, *shown), column.internal_id)
    for unknown in stored:
        raise ora(904, f'"{unknown}"')
    there = {column.internal_id for column in (*table.columns, *table.unused)}
    for one in list(companions_of(run, table)):
        if one.companion == NESTED and one.parent_column not in there:
            run.drop(one)
            run.session.database.store.drop_table(one)


def companions_of(run: DdlRun, table: TableDef) -> Iterator[TableDef]:
    """The tables that store parts of this one."""
    for one in run.session.database.store.catalog.tables():
        if one.parent == table.object_id:
            yield one


def drop_companions(run: DdlRun, table: TableDef) -> None:
    """Drop what goes with a table."""
    for one in companions_of(run, table):
        run.drop(one)
        run.session.database.store.drop_table(one)


def rename_companions(run: DdlRun, table: TableDef, name_of: dict[str, str] | None = None) -> None:
    """Take what stores parts of a table into the recycle bin, under other names, or out of it,
    where there are none."""
    for one in companions_of(run, table):
        name = one.original_name if name_of is None else name_of[one.name]
        assert name is not None
        run.put(
            replace(
                one,
                name=name,
                original_name=None if name_of is None else one.name,
                changed=run.now,
                scn_from=run.scn,
            )
        )


def _make(
    run: DdlRun,
    table: TableDef,
    name: str,
    kind: str,
    columns: tuple[ColumnDef, ...],
    parent_column: int = 0,
) -> None:
    store = run.session.database.store
    number = store.catalog.new_id()
    made = TableDef(
        object_id=number,
        data_object_id=number,
        object_version=1,
        owner=table.owner,
        name=name,
        columns=columns,
        created=run.now,
        changed=run.now,
        structure_scn=run.scn,
        scn_from=run.scn,
        next_internal_id=len(columns) + 1,
        companion=kind,
        parent=table.object_id,
        parent_column=parent_column,
    )
    store.create_table(made)
    run.put(made)
