"""How does CREATE TABLE become a definition with constraints and indexes?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.compile.from_items import columns_in
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.compile.scopes import Scope, Source, SourceColumn
from oracle_embedded.engine.datatypes.types import DOCUMENTS, XML, SqlType, UserType, varchar
from oracle_embedded.engine.ddl.clusters import clustered
from oracle_embedded.engine.ddl.companions import create_companions
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.ddl.partitions import partitioning_of
from oracle_embedded.engine.ddl.sequences import sequence_from
from oracle_embedded.engine.ddl.types import known_type
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.run.constraints import check_columns
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.sql.queries import parse_expression
from oracle_embedded.engine.sql.types import RAW_MAX, TEXT_MAX
from oracle_embedded.engine.storage.catalog import (
    ARCHIVE_STATE,
    ColumnDef,
    Constraint,
    IndexDef,
    LogGroup,
    TableDef,
)
from oracle_embedded.engine.storage.companions import External, is_external_only

_COLUMNS_MAX = 1000
_ARCHIVE_COLUMN = nodes.ColumnSpec(
    ARCHIVE_STATE, varchar(4000), has_default=True, default_text="'0'", is_visible=False
)
"""What ROW ARCHIVAL adds to a table. Source: Oracle Database VLDB and Partitioning Guide 19c,
"In-Database Archiving"."""


def create_table(run: DdlRun, node: nodes.CreateTable) -> None:
    """CREATE TABLE, and what CREATE MATERIALIZED VIEW makes."""
    database = run.session.database
    word = "TABLE" if node.view_text is None else "MATERIALIZED VIEW"
    owner, name = run.own_name(node.name, f"CREATE {word}", f"CREATE ANY {word}")
    if node.temporary and any(spec.kind == "R" for spec in _all_specs(node)):
        raise OracleError(
            14455, "attempt to create referential integrity constraint on temporary table"
        )
    run.must_be_new(owner, name)
    row_type = None if node.object_type is None else _row_type(run, node.object_type)
    if row_type is not None:
        node = replace(node, columns=_object_columns(row_type))
    names = [column.name for column in node.columns]
    if len(set(names)) != len(names):
        raise ora(957)
    if len(names) > _COLUMNS_MAX:
        raise OracleError(1792, "maximum number of columns in a table or view is 1000")
    identifier = database.store.catalog.new_id()
    table = TableDef(
        object_id=identifier, data_object_id=identifier, object_version=1, owner=owner, name=name, columns=(), created=run.now, changed=run.now,
        structure_scn=run.scn, scn_from=run.scn, is_index_organized=node.is_index_organized,
        has_row_movement=node.has_row_movement, temporary=node.temporary, keeps_rows=node.keeps_rows, query=node.view_text,
        external=_external_of(node), object_type=None if row_type is None else (row_type.owner, row_type.name),
        tablespace=node.storage.tablespace, compression=node.storage.compression,
    )  # fmt: skip
    for column in node.columns:
        table = with_column(run, table, column)
    if node.has_row_archival:
        table = with_column(run, table, _ARCHIVE_COLUMN)
    if node.cluster is not None:
        table = clustered(run, table, node.cluster)
    if node.partitioning is not None:
        if node.is_index_organized:
            raise unsupported("partitioned index-organized tables")
        table = replace(table, partitioning=partitioning_of(run, table, node.partitioning))
    database.store.create_table(table)
    for column in node.columns:
        for spec in column.constraints:
            table = with_constraint(run, table, spec)
    for spec in node.constraints:
        table = with_constraint(run, table, spec)
    for group in node.log_groups:
        table = with_log_group(run, table, group)
    if node.is_index_organized and table.key is None:
        raise OracleError(25175, "no PRIMARY KEY constraint found")
    run.put(table)
    create_companions(run, table, node)
    run.about(owner, name, identifier)


_XMLTYPE = UserType(owner="SYS", name="XMLTYPE")


def _row_type(run: DdlRun, name: ast.Name) -> UserType:
    """The type of an object table's rows: an object type, or XMLTYPE.

    Raises:
        OracleError: ORA-00902, there is none of that name that the user may use.
    """
    if name[-1] == "XMLTYPE" and name[:-1] in ((), ("SYS",)):
        return _XMLTYPE
    owner = name[0] if len(name) > 1 else ""
    user = known_type(run, SqlType(OraType.OBJECT, user=UserType(owner=owner, name=name[-1]))).user
    if user is None or not user.attributes:
        raise OracleError(902, "invalid datatype")
    return user


def _object_columns(row_type: UserType) -> tuple[nodes.ColumnSpec, ...]:
    """What an object table's rows hold: the attributes of its type, or the document. Their object
    identifiers are left out here."""
    if row_type is _XMLTYPE:
        return (nodes.ColumnSpec("SYS_NC_ROWINFO$", XML),)
    return tuple(nodes.ColumnSpec(name, kind) for name, kind in row_type.attributes)


def _external_of(node: nodes.CreateTable) -> External | None:
    """ORA-30657 for keys and constraints, ORA-30656 for types that a file has no form of."""
    spec = node.external
    if spec is None:
        return None
    if node.constraints or any(column.constraints for column in node.columns):
        raise is_external_only()
    if any(column.type is not None and column.type.user is not None for column in node.columns):
        raise OracleError(30656, "column type not supported on external organized table")
    return External(
        driver=spec.driver,
        directory=spec.directory,
        parameters=spec.parameters,
        locations=spec.locations,
        reject_limit=spec.reject_limit,
    )


def _all_specs(node: nodes.CreateTable) -> list[nodes.ConstraintSpec]:
    own = [spec for column in node.columns for spec in column.constraints]
    return [*own, *node.constraints]


def with_column(run: DdlRun, table: TableDef, spec: nodes.ColumnSpec) -> TableDef:
    """The table with one more column; NOT NULL constraints come separately."""
    if spec.expression is not None:
        return _with_virtual(run, table, spec)
    if spec.type is None:
        raise OracleError(2263, "need to specify the datatype for this column")
    if any(column.name == spec.name for column in table.named):
        raise ora(1430 if table.columns and table.structure_scn != run.scn else 957)
    if spec.type.data_type() in ("LONG", "LONG RAW") and any(
        item.type.data_type() in ("LONG", "LONG RAW") for item in table.columns
    ):
        raise OracleError(1754, "a table may contain only one column of type LONG")
    if len(spec.name.encode()) > 128:
        raise ora(972)
    spec = replace(spec, type=known_type(run, spec.type))
    assert spec.type is not None
    spec = replace(spec, type=stored_type(run, spec.type))
    assert spec.type is not None
    check_string_size(run, spec.type)
    default, nullable = spec.default_text, spec.nullable is not False
    if default is not None:
        check_default(run, default, spec)
    if spec.identity is not None:
        default = _identity(run, table, spec)
        nullable = False
    column = ColumnDef(
        internal_id=table.next_internal_id,
        name=spec.name,
        type=spec.type,
        nullable=nullable,
        default_text=default,
        comment=None,
        identity=spec.identity,
        is_invisible=spec.is_visible is False,
    )
    return replace(
        table, columns=(*table.columns, column), next_internal_id=table.next_internal_id + 1
    )


def with_guard(table: TableDef) -> TableDef:
    """The table with the hidden column that tells a NULL from a DEFAULT that rows do not hold yet:
    NULL in these, a bit in others.

    Source: rows of real dictionaries and of redo in public reports.
    """
    number = table.next_internal_id
    column = ColumnDef(
        internal_id=number,
        name=f"SYS_NC{table.next_place:05d}$",
        type=SqlType(OraType.RAW, length=126),
        default_text="HEXTORAW('01')",
        is_invisible=True,
        is_guard=True,
    )
    return replace(table, columns=(*table.columns, column), next_internal_id=number + 1)


def _with_virtual(run: DdlRun, table: TableDef, spec: nodes.ColumnSpec) -> TableDef:
    """The table with one more column that no row holds. Source: SQL Language Reference 19c, CREATE
    TABLE, virtual_column_definition."""
    if any(column.name == spec.name for column in table.named):
        raise ora(1430 if table.columns and table.structure_scn != run.scn else 957)
    if spec.has_default or spec.identity or spec.constraints:
        raise unsupported("constraints of virtual columns")
    assert spec.expression is not None
    value = virtual_value(run, table, spec.expression)
    if spec.type is not None:
        check_string_size(run, spec.type)
    kind = spec.type or (varchar(TEXT_MAX) if value.family == "text" else value.type)
    convert(value, kind.family)
    column = ColumnDef(
        internal_id=table.next_internal_id,
        name=spec.name,
        type=kind,
        expression=spec.expression,
        is_invisible=spec.is_visible is False,
    )
    return replace(
        table, virtual=(*table.virtual, column), next_internal_id=table.next_internal_id + 1
    )


def virtual_value(run: DdlRun, table: TableDef, expression: str) -> Sql:
    """The expression of a virtual column over the stored columns, compiled.

    Raises:
        OracleError: ORA-54012 where it names a virtual column, ORA-00904 where it names none.
    """
    parsed = parse_expression(expression)
    names = {column.name[-1] for column in columns_in(parsed)}
    if any(column.name in names for column in table.virtual):
        raise OracleError(54012, "virtual column is referenced in a column expression")
    columns = {
        column.name: SourceColumn(column.name, f"c{column.internal_id}", column.type)
        for column in table.columns
    }
    source = Source("", table.name, table.owner, columns)
    return compilation(run.session, None).value(parsed, Scope([source]))


_AS_READ = frozenset({"AL32UTF8", "AL16UTF16"})
"""Sets for which the reader of types has counted already."""


def stored_type(run: DdlRun, kind: SqlType) -> SqlType:
    """A type with the bytes that its characters may take in the database's sets."""
    own = run.session.database.character_sets.of(kind.form)
    if kind.family != "text" or kind.char_used != "C" or own.name in _AS_READ:
        return kind
    most = RAW_MAX if kind.is_char else max(TEXT_MAX, kind.length)
    return replace(kind, length=min(kind.char_length * own.width, most))


def check_string_size(run: DdlRun, kind: SqlType) -> None:
    """ORA-00910 for a text or RAW that is longer than MAX_STRING_SIZE allows, ORA-00902 for
    BOOLEAN, JSON and VECTOR before 23ai."""
    if kind.family in ("bool", *DOCUMENTS) and run.session.database.release != "23ai":
        raise OracleError(902, "invalid datatype")
    most = RAW_MAX if kind.ora is OraType.RAW else TEXT_MAX
    is_string = kind.ora in (OraType.VARCHAR, OraType.RAW)
    if is_string and kind.length > most and not run.session.database.has_extended_strings:
        raise OracleError(910, "specified length too long for its datatype")


def _identity(run: DdlRun, table: TableDef, spec: nodes.ColumnSpec) -> str:
    if any(column.identity for column in table.columns):
        raise OracleError(30669, "table can have only one identity column")
    name = f"ISEQ$$_{table.object_id}"
    catalog = run.session.database.store.catalog
    run.put(
        sequence_from(catalog.new_id(), table.owner, name, dict(spec.identity_options), run.now)
    )
    return f'"{table.owner}"."{name}".nextval'


def check_default(run: DdlRun, default: str, spec: nodes.ColumnSpec) -> None:
    """Refuse a default that does not compile, or refers to columns."""
    state = compilation(run.session, None)
    try:
        value = state.value(parse_expression(default), Scope())
    except OracleError as error:
        if error.code == 904:
            raise OracleError(984, "column not allowed here") from error
        raise
    assert spec.type is not None
    convert(value, spec.type.family)


def with_constraint(run: DdlRun, table: TableDef, spec: nodes.ConstraintSpec) -> TableDef:
    """The table with one more constraint, its index and its effect on columns."""
    database = run.session.database
    generated = spec.name is None
    name = spec.name or f"SYS_C{database.store.catalog.new_id():07d}"
    if spec.kind == "P" and spec.name is None and table.is_index_organized:
        name = f"SYS_IOT_TOP_{table.object_id}"
    if any(
        item.name == name
        for other in [*database.store.catalog.tables(), table]
        if other.owner == table.owner
        for item in other.constraints
    ):
        raise OracleError(2264, "name already used by an existing constraint")
    columns = _column_ids(table, spec.columns)
    if len(set(columns)) != len(columns):
        raise OracleError(957, "duplicate column name")
    if spec.not_null:
        table = replace(
            table,
            columns=tuple(
                replace(item, nullable=False) if item.internal_id in columns else item
                for item in table.columns
            ),
        )
    if spec.kind == "C":
        if not spec.not_null:
            columns = check_columns(run.session, table, spec.condition or "")
        made = Constraint(
            name=name,
            kind="C",
            columns=columns,
            condition=spec.condition,
            not_null=spec.not_null,
            enabled=spec.enabled,
            generated=generated,
            validated=spec.validated,
            deferrable=spec.deferrable,
        )
        return replace(table, constraints=(*table.constraints, made))
    if spec.kind == "R":
        return replace(
            table,
            constraints=(
                *table.constraints,
                _foreign_key(run, table, spec, name, columns, generated),
            ),
        )
    return _with_key(run, table, spec, name, columns, generated)


def _with_key(
    run: DdlRun,
    table: TableDef,
    spec: nodes.ConstraintSpec,
    name: str,
    columns: tuple[int, ...],
    generated: bool,
) -> TableDef:
    for internal_id in columns:
        if table.by_id[internal_id].type.family in ("clob", "blob", "tz", *DOCUMENTS):
            raise OracleError(
                2329,
                "column of datatype LOB or TIMESTAMP WITH TIME ZONE cannot be unique or a primary key",
            )
    if spec.kind == "P":
        if table.key is not None:
            raise OracleError(2260, "table can have only one primary key")
        if spec.enabled:
            table = replace(table, columns=not_null_columns(table, columns))
    elif any(item.kind in "PU" and item.columns == columns for item in table.constraints):
        raise OracleError(2261, "such unique or primary key already exists in the table")
    if spec.deferrable and spec.kind == "P" and table.is_index_organized:
        raise OracleError(
            25188,
            "cannot drop/disable/defer the primary key constraint for index-organized tables or sorted hash cluster",
        )
    existing = next((one for one in table.indexes if one.columns == columns and not one.keys), None)
    if spec.deferrable and existing is not None and existing.unique:
        raise OracleError(1408, "such column list already indexed")
    made = Constraint(
        name=name,
        kind=spec.kind,
        columns=columns,
        enabled=spec.enabled,
        generated=generated,
        index_name=name if existing is None else existing.name,
        validated=spec.validated,
        deferrable=spec.deferrable,
        deferred=spec.deferred,
    )
    if existing is None and (spec.enabled or spec.deferrable):
        table = with_index(run, table, made)
    return replace(table, constraints=(*table.constraints, made))


def with_index(run: DdlRun, table: TableDef, key: Constraint) -> TableDef:
    """The table with the index that holds a key."""
    store = run.session.database.store
    made = IndexDef(
        object_id=store.catalog.new_id(),
        owner=table.owner,
        name=key.index_name or key.name,
        columns=key.columns,
        descending=(False,) * len(key.columns),
        unique=not key.deferrable,
        generated=key.generated,
        of_key=True,
    )
    store.create_index(table.object_id, made.object_id, key.columns)
    return replace(table, indexes=(*table.indexes, made))


def not_null_columns(table: TableDef, columns: Collection[int]) -> tuple[ColumnDef, ...]:
    """The table's columns, of which these (internal ids) take no NULL."""
    return tuple(
        replace(item, nullable=False) if item.internal_id in columns else item
        for item in table.columns
    )


def _foreign_key(
    run: DdlRun,
    table: TableDef,
    spec: nodes.ConstraintSpec,
    name: str,
    columns: tuple[int, ...],
    generated: bool,
) -> Constraint:
    owner = spec.referenced[0] if len(spec.referenced) > 1 else table.owner
    parent: object = run.session.database.store.catalog.find(owner, spec.referenced[-1])
    if owner == table.owner and spec.referenced[-1] == table.name:
        parent = table
    if not isinstance(parent, TableDef):
        raise ora(942)
    if spec.referenced_columns:
        wanted = _column_ids(parent, spec.referenced_columns)
        keys = [item for item in parent.constraints if item.kind in "PU" and item.columns == wanted]
        if not keys:
            raise OracleError(2270, "no matching unique or primary key for this column-list")
        key = keys[0]
    else:
        if parent.key is None:
            raise OracleError(2268, "referenced table does not have a primary key")
        key = parent.key
    if len(key.columns) != len(columns):
        raise OracleError(2256, "number of referencing columns must match referenced columns")
    for child_id, parent_id in zip(columns, key.columns, strict=True):
        if table.by_id[child_id].type.family != parent.by_id[parent_id].type.family:
            raise OracleError(2267, "column type incompatible with referenced column type")
    return Constraint(
        name=name, kind="R", columns=columns, referenced=parent.object_id, referenced_constraint=key.name,
        delete_rule=spec.delete_rule or "NO ACTION", enabled=spec.enabled, generated=generated,
        validated=spec.validated, deferrable=spec.deferrable, deferred=spec.deferred,
    )  # fmt: skip


def _column_ids(table: TableDef, names: Sequence[str]) -> tuple[int, ...]:
    found = []
    virtual = {column.name for column in table.virtual}
    for name in names:
        column = table.by_name.get(name)
        if name in virtual:
            raise unsupported("constraints of virtual columns")
        if column is None:
            raise ora(904, f'"{name}"')
        found.append(column.internal_id)
    return tuple(found)


def with_log_group(run: DdlRun, table: TableDef, spec: nodes.LogGroupSpec) -> TableDef:
    """The table with more supplemental logging."""
    groups = list(table.log_groups)
    for kind in spec.kind.split("+"):
        if kind != "USER LOG GROUP" and any(group.kind == kind for group in groups):
            raise OracleError(32588, "supplemental logging attribute exists")
        if spec.name is not None and any(group.name == spec.name for group in groups):
            raise ora(955)
        name = spec.name or f"SYS_C{run.session.database.store.catalog.new_id():07d}"
        groups.append(
            LogGroup(
                name,
                kind,
                spec.always or kind != "USER LOG GROUP",
                _column_ids(table, spec.columns),
                spec.name is None,
            )
        )
    return replace(table, log_groups=tuple(groups))
