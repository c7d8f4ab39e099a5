"""How does ALTER TABLE change a definition?"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.from_items import columns_in
from oracle_embedded.engine.ddl.companions import store_nested_tables
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.ddl.hidden import is_on, with_new_name, without_indexes
from oracle_embedded.engine.ddl.partitions import ACTIONS, MOVING, alter_partitions
from oracle_embedded.engine.ddl.tables import (
    check_default,
    check_string_size,
    not_null_columns,
    stored_type,
    with_column,
    with_constraint,
    with_guard,
    with_index,
    with_log_group,
)
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.run.constraints import (
    check_new_type,
    check_rows,
    check_unique_rows,
    constant_default,
    double_keys,
)
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.sql.queries import parse_expression
from oracle_embedded.engine.storage.catalog import ColumnDef, Constraint, TableDef
from oracle_embedded.engine.storage.fitting import fitter
from oracle_embedded.values import number_from_decimal

_COLUMNS = frozenset(
    {"add column", "modify column", "drop column", "set unused", "drop unused", "rename column"}
)
_GUARDED = frozenset(
    {"text", "number", "float", "double", "date", "timestamp", "ltz", "tz", "raw", "ids", "iym"}
)
_STRUCTURAL = (_COLUMNS - {"rename column"}) | {"add constraint"} | MOVING
"""What the past of a table cannot be looked back over. A column that was renamed is found in the
past as well, under its present name: RENAME COLUMN is not among what changes the structure of a
table. Source: SQL Language Reference 19c, FLASHBACK TABLE, "Restrictions"."""


def alter_table(run: DdlRun, node: nodes.AlterTable) -> None:
    """ALTER TABLE."""
    database = run.session.database
    before = run.table(node.name, "ALTER ANY TABLE")
    verbs = {verb for verb, _ in node.actions}
    if not verbs <= ACTIONS:  # DDL of partitions locks these alone
        database.transactions.check_no_locks(before.object_id, run.session.transaction)
    table = before
    for verb, argument in node.actions:
        table = _apply(run, table, verb, argument)
    new = [column for column in table.columns if column.internal_id not in before.by_id]
    nested: list[Any] = [argument for verb, argument in node.actions if verb == "nested table"]
    store_nested_tables(run, table, new, nested)
    table = replace(
        table,
        object_version=table.object_version + 1,
        column_version=table.column_version + bool(verbs & _COLUMNS),
        structure_scn=run.scn if verbs & _STRUCTURAL else table.structure_scn,
        changed=run.now,
        scn_from=run.scn,
    )
    run.put(table)
    run.about(table.owner, table.name, table.object_id)


def _apply(run: DdlRun, table: TableDef, verb: str, argument: Any) -> TableDef:
    if verb in ACTIONS:
        return alter_partitions(run, table, verb, argument)
    match verb:
        case "row movement":
            return replace(table, has_row_movement=argument)
        case "add column":
            return _add_column(run, table, argument)
        case "modify column":
            return _modify_column(run, table, argument)
        case "drop column":
            # What was set unused goes with it. Source: SQL Language Reference 19c, ALTER TABLE,
            # "DROP COLUMN".
            return replace(_drop_columns(run, table, argument), unused=())
        case "set unused":
            return _set_unused(run, table, argument)
        case "drop unused":
            return replace(table, unused=())
        case "rename column":
            return _rename_column(table, *argument)
        case "add constraint":
            return _add_constraint(run, table, argument)
        case "drop constraint":
            return _drop_constraint(run, table, argument)
        case "drop primary key":
            if table.key is None:
                raise OracleError(2441, "Cannot drop nonexistent primary key")
            return _drop_constraint(run, table, table.key.name)
        case "rename constraint":
            return _rename_constraint(table, *argument)
        case "constraint state":
            return _change_constraint(run, table, *argument)
        case "add log group":
            return with_log_group(run, table, argument)
        case "drop log group":
            return _drop_log_group(table, argument)
    return table


def _add_column(run: DdlRun, table: TableDef, spec: nodes.ColumnSpec) -> TableDef:
    store = run.session.database.store
    if _brings_guard(table, spec):
        table = with_guard(table)
        store.add_column(table.object_id, table.columns[-1].internal_id, None)
    changed = with_column(run, table, spec)
    if spec.expression is not None:
        return changed
    column = changed.columns[-1]
    has_rows = _has_rows(run, table)
    default = None
    if spec.identity is not None:
        store.add_column(table.object_id, column.internal_id, None)
        _number_rows(run, changed, column)
        return changed
    if spec.default_text is not None:
        default = constant_default(run.session, changed, column)
    if has_rows and not column.nullable and default is None:
        raise OracleError(1758, "table must be empty to add mandatory (NOT NULL) column")
    store.add_column(table.object_id, column.internal_id, default)
    for constraint in spec.constraints:
        changed = with_constraint(run, changed, constraint)
    return changed


def _brings_guard(table: TableDef, spec: nodes.ColumnSpec) -> bool:
    """Does the column come with the hidden one that tells a NULL from a DEFAULT that rows do not
    hold yet, as a nullable column with a DEFAULT does since 12c, once for each table?"""
    is_plain = not (table.is_index_organized or table.temporary or table.cluster)
    has_default = (spec.default_text or "NULL").upper() != "NULL" and spec.nullable is not False
    is_short = spec.type is not None and spec.type.family in _GUARDED
    has_none = not any(column.is_guard for column in table.columns)
    return is_plain and has_default and is_short and has_none and spec.identity is None


def _number_rows(run: DdlRun, table: TableDef, column: ColumnDef) -> None:
    """Give existing rows the values of a new identity column, which nothing but the table shows:
    Oracle documents that it fills them, and not in which order. Source: SQL Language Reference 19c,
    ALTER TABLE, add_column_clause."""
    database = run.session.database
    sequence = database.store.catalog.find(table.owner, f"ISEQ$$_{table.object_id}")
    assert sequence is not None
    sqlite = database.store.writer.sqlite
    fit = fitter(table, column, database.character_sets)
    for (rid,) in sqlite.execute(f"SELECT rid FROM t{table.object_id} ORDER BY rid").fetchall():
        value = database.sequences.next_value(sequence.object_id, {})
        sqlite.execute(
            f"UPDATE t{table.object_id} SET c{column.internal_id} = ? WHERE rid = ?",
            (fit(number_from_decimal(value)), rid),
        )


def _has_rows(run: DdlRun, table: TableDef) -> bool:
    sql = f"SELECT 1 FROM t{table.object_id} LIMIT 1"
    return run.session.database.store.writer.sqlite.execute(sql).fetchone() is not None


def _modify_column(run: DdlRun, table: TableDef, spec: nodes.ColumnSpec) -> TableDef:
    column = table.by_name.get(spec.name)
    if column is None and spec.name in {one.name for one in table.virtual}:
        return _modify_virtual(table, spec)
    if column is None:
        raise ora(904, f'"{spec.name}"')
    changed = column
    if spec.type is not None:
        _refuse_used(table, column.name)
        check_string_size(run, spec.type)
        kind = stored_type(run, spec.type)
        database = run.session.database
        check_new_type(database.store, table, column, kind, database.character_sets)
        changed = replace(changed, type=kind)
        if (column.type.family, kind.family) == ("date", "timestamp"):
            fit = fitter(table, changed, database.character_sets)
            database.store.refit_column(table.object_id, column.internal_id, fit)
    if spec.has_default:
        check_default(run, spec.default_text or "NULL", replace(spec, type=changed.type))
        text = spec.default_text
        changed = replace(
            changed, default_text=None if text is not None and text.upper() == "NULL" else text
        )
    if spec.is_visible is not None:
        changed = _with_visibility(table, changed, spec.is_visible)
        table = replace(table, next_internal_id=table.next_internal_id + 1)
    constraints = table.constraints
    if spec.nullable is True:
        if column.nullable:
            raise OracleError(1451, "column to be modified to NULL cannot be modified to NULL")
        if table.key is not None and column.internal_id in table.key.columns:
            raise OracleError(1451, "column to be modified to NULL cannot be modified to NULL")
        constraints = tuple(
            item
            for item in constraints
            if not (item.not_null and item.columns == (column.internal_id,))
        )
        changed = replace(changed, nullable=True)
    table = replace(
        table,
        columns=tuple(changed if item is column else item for item in table.columns),
        constraints=constraints,
    )
    for constraint in spec.constraints:
        if constraint.not_null and not column.nullable:
            raise OracleError(1442, "column to be modified to NOT NULL is already NOT NULL")
        table = _add_constraint(run, table, constraint)
    return table


def _with_visibility(table: TableDef, column: ColumnDef, is_visible: bool) -> ColumnDef:
    """A column that becomes visible is the last one. Source: Administrator's Guide 19c, "Invisible
    Columns and Column Ordering"."""
    if is_visible and column.is_invisible:
        return replace(column, is_invisible=False, position=table.next_internal_id)
    return column if is_visible else replace(column, is_invisible=True, position=0)


def _modify_virtual(table: TableDef, spec: nodes.ColumnSpec) -> TableDef:
    if spec.is_visible is None or spec.type is not None or spec.expression is not None:
        raise unsupported("MODIFY of a virtual column")
    changed = tuple(
        _with_visibility(table, one, spec.is_visible) if one.name == spec.name else one
        for one in table.virtual
    )
    return replace(table, virtual=changed, next_internal_id=table.next_internal_id + 1)


def _refuse_used(table: TableDef, name: str) -> None:
    for one in table.virtual:
        if any(
            column.name[-1] == name for column in columns_in(parse_expression(one.expression or ""))
        ):
            raise OracleError(54033, "column to be modified is used in a virtual column expression")


def _drop_columns(run: DdlRun, table: TableDef, names: tuple[str, ...]) -> TableDef:
    for name in names:
        if name in {one.name for one in table.virtual}:
            virtual = tuple(one for one in table.virtual if one.name != name)
            table = replace(table, virtual=virtual)
            continue
        _refuse_used(table, name)
        column = table.by_name.get(name)
        if column is None:
            raise ora(904, f'"{name}"')
        if len(table.columns) == 1:
            raise OracleError(12983, "cannot drop all columns in a table")
        touching = [item for item in table.constraints if column.internal_id in item.columns]
        if any(len(item.columns) > 1 for item in touching):
            raise OracleError(12991, "column is referenced in a multi-column constraint")
        for item in touching:
            table = _drop_constraint(run, table, item.name)
        going = [index for index in table.indexes if is_on(table, index, column)]
        for index in going:
            run.session.database.store.drop_index(index.object_id)
        table = without_indexes(table, going)
        table = replace(
            table,
            columns=tuple(item for item in table.columns if item.internal_id != column.internal_id),
            log_groups=tuple(
                group for group in table.log_groups if column.internal_id not in group.columns
            ),
        )
    return table


def _set_unused(run: DdlRun, table: TableDef, names: tuple[str, ...]) -> TableDef:
    """The columns go from the table, under names of the system's; its rows hold them still."""
    left = _drop_columns(run, table, names)
    gone = [column for column in table.columns if column.internal_id not in left.by_id]
    day = time.strftime("%y%m%d%H:%M:%S", time.gmtime(run.now))
    hidden = tuple(
        replace(column, name=f"SYS_C{table.segment_ids[column.internal_id]:05d}_{day}$")
        for column in gone
    )
    return replace(left, unused=(*table.unused, *hidden))


def _rename_column(table: TableDef, old: str, new: str) -> TableDef:
    column = table.by_name.get(old)
    if column is None:
        raise ora(904, f'"{old}"')
    if new in {one.name for one in table.named}:
        raise ora(957)
    _refuse_used(table, old)
    return replace(
        with_new_name(table, old, new),
        columns=tuple(
            replace(item, name=new) if item is column else item for item in table.columns
        ),
    )


def _add_constraint(run: DdlRun, table: TableDef, spec: nodes.ConstraintSpec) -> TableDef:
    changed = with_constraint(run, table, spec)
    _check_new_state(run, changed, changed.constraints[-1])
    return changed


def _check_new_state(run: DdlRun, table: TableDef, constraint: Constraint) -> None:
    """Check the rows of a constraint that is validated; a unique index refuses double keys all the
    same."""
    if constraint.validated:
        check_rows(run.session, table, constraint)
    elif constraint.enabled and constraint.kind in "PU" and not constraint.deferrable:
        index = next((item for item in table.indexes if item.name == constraint.index_name), None)
        if index is None or index.unique:
            check_unique_rows(
                run.session.database.store,
                table,
                constraint.columns,
                double_keys(table, constraint),
            )


def _drop_constraint(run: DdlRun, table: TableDef, name: str) -> TableDef:
    found = next((item for item in table.constraints if item.name == name), None)
    if found is None:
        raise OracleError(2443, "Cannot drop constraint  - nonexistent constraint")
    if found.kind in "PU":
        for child in run.session.database.store.catalog.tables():
            if any(
                key.referenced == table.object_id and key.referenced_constraint == name
                for key in child.foreign_keys
            ):
                raise OracleError(
                    2273, "this unique/primary key is referenced by some foreign keys"
                )
    table = _without_index(run, table, found)
    columns = table.columns
    if found.not_null:
        columns = tuple(
            replace(item, nullable=True) if item.internal_id in found.columns else item
            for item in columns
        )
    elif found.kind == "P":
        columns = _with_nulls(table, found)
    constraints = tuple(item for item in table.constraints if item is not found)
    return replace(table, constraints=constraints, columns=columns)


def _without_index(run: DdlRun, table: TableDef, key: Constraint) -> TableDef:
    """The table without the index that came with a key."""
    for index in table.indexes:
        if index.name == key.index_name and index.of_key:
            run.session.database.store.drop_index(index.object_id)
            return replace(table, indexes=tuple(one for one in table.indexes if one is not index))
    return table


def _with_nulls(table: TableDef, key: Constraint) -> tuple[ColumnDef, ...]:
    """The columns without what a primary key forbids: NULL where nothing else does."""
    kept = {item.columns[0] for item in table.constraints if item.not_null}
    return tuple(
        replace(item, nullable=item.internal_id not in kept)
        if item.internal_id in key.columns
        else item
        for item in table.columns
    )


def _rename_constraint(table: TableDef, old: str, new: str) -> TableDef:
    found = next((item for item in table.constraints if item.name == old), None)
    if found is None:
        raise OracleError(23292, f"The constraint does not exist ({old})")
    return _with_changed(table, found, replace(found, name=new, generated=False))


def _change_constraint(
    run: DdlRun, table: TableDef, name: str | None, state: tuple[bool, bool]
) -> TableDef:
    wanted = [
        item
        for item in table.constraints
        if (item.kind == "P" if name is None else item.name == name)
    ]
    if not wanted:
        code = 2431 if not state[0] else 2430
        raise OracleError(
            code,
            f"cannot {'enable' if state[0] else 'disable'} constraint ({name}) - no such constraint",
        )
    changed = replace(wanted[0], enabled=state[0], validated=state[1])
    table = _with_changed(table, wanted[0], changed)
    _check_new_state(run, table, changed)
    if changed.kind in "PU" and changed.enabled != wanted[0].enabled:
        table = _switched_key(run, table, changed)
    return table


def _switched_key(run: DdlRun, table: TableDef, key: Constraint) -> TableDef:
    """A key that is disabled loses its unique index; one that is enabled gets one. Source: SQL
    Language Reference 19c, constraint, "DISABLE"."""
    index = next((item for item in table.indexes if item.name == key.index_name), None)
    if key.enabled:
        if index is None:
            table = with_index(run, table, key)
        columns = not_null_columns(table, key.columns) if key.kind == "P" else table.columns
        return replace(table, columns=columns)
    if index is not None and index.unique:
        if table.is_index_organized and key.kind == "P":
            raise OracleError(
                25188,
                "cannot drop/disable/defer the primary key constraint for index-organized tables or sorted hash cluster",
            )
        table = _without_index(run, table, key)
    return replace(table, columns=_with_nulls(table, key)) if key.kind == "P" else table


def _with_changed(table: TableDef, old: Constraint, new: Constraint) -> TableDef:
    return replace(
        table, constraints=tuple(new if item is old else item for item in table.constraints)
    )


def _drop_log_group(table: TableDef, spec: nodes.LogGroupSpec) -> TableDef:
    groups = list(table.log_groups)
    for kind in spec.kind.split("+"):
        matching = [
            group for group in groups if group.kind == kind and spec.name in (None, group.name)
        ]
        if not matching:
            raise OracleError(32587, "Cannot drop nonexistent supplemental logging")
        groups.remove(matching[0])
    return replace(table, log_groups=tuple(groups))
