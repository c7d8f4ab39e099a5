"""How do DDL statements change the catalog and the storage?

Each is a transaction of its own: what was open before is committed, and the statement is in the
redo as typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.policies import refuse_redacted
from oracle_embedded.engine.compile.queries import compile_select
from oracle_embedded.engine.datatypes.types import DOCUMENTS
from oracle_embedded.engine.ddl.alter import alter_table
from oracle_embedded.engine.ddl.clusters import (
    create_cluster,
    drop_cluster,
    end_cluster,
    index_cluster,
    truncate_cluster,
)
from oracle_embedded.engine.ddl.companions import drop_companions
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.ddl.editions import change_editions
from oracle_embedded.engine.ddl.hidden import with_hidden, without_indexes
from oracle_embedded.engine.ddl.partitions import truncated
from oracle_embedded.engine.ddl.programs import (
    alter_program,
    create_program,
    drop_program,
    drop_triggers,
)
from oracle_embedded.engine.ddl.recycle_bin import (
    bring_back,
    flash_rows_back,
    purge,
    put_into_bin,
)
from oracle_embedded.engine.ddl.sequences import create_sequence
from oracle_embedded.engine.ddl.session import alter_session, alter_system
from oracle_embedded.engine.ddl.tables import create_table
from oracle_embedded.engine.ddl.types import create_type, drop_type
from oracle_embedded.engine.ddl.users import create_user, drop_user, grant
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.run.constraints import check_unique_values
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.storage.catalog import (
    IndexDef,
    SequenceDef,
    SynonymDef,
    TableDef,
    ViewDef,
)
from oracle_embedded.engine.storage.companions import is_external_only


def run_ddl(session: SessionState, node: object, text: str) -> bool:
    """Execute a DDL, ALTER SESSION or ALTER SYSTEM statement; has it made a program that does not
    compile?

    Raises:
        OracleError: As Oracle would; the statement then leaves nothing behind.
    """
    if isinstance(node, nodes.AlterSession):
        alter_session(session, node)
        return False
    if session.standby is not None:
        raise ora(16000)
    session.commit()
    if isinstance(node, nodes.AlterSystem):
        alter_system(session, node, text)
        return False
    database = session.database
    if isinstance(node, nodes.FlashbackRows):
        flash_rows_back(session, node)
        return False
    if isinstance(node, nodes.CreateTable) and node.query is not None:
        _create_as_select(session, node, text)
        return False
    with database.changing_catalog():
        return _one(session, node, text).has_warning


def _one(session: SessionState, node: object, text: str) -> DdlRun:
    database = session.database
    transaction = session.need_transaction()
    try:
        run = DdlRun(session, database.store.clock.next(), database.store.now())
        if isinstance(node, nodes.Drop) and node.kind == "TABLE":
            _drop_table(run, node, text)
        else:
            _HANDLERS[type(node)](run, node)
        if database.store.sink is not None:
            # The dictionary shows what the DDL made of it from its commit on, never before.
            for at, one in enumerate(run.texts or (text,)):
                database.store.sink.ddl(
                    transaction.info,
                    database.store.clock.next() if at else run.scn,
                    run.now,
                    one,
                    run.subject_owner,
                    run.subject,
                    run.object_id,
                )
        return run
    finally:
        session.transaction = None
        database.transactions.abandon(transaction)


def _create_as_select(session: SessionState, node: nodes.CreateTable, text: str) -> None:
    """CREATE TABLE … AS SELECT: the definition from the query's columns, then its rows."""
    assert node.query is not None
    database = session.database
    plan = compile_select(compilation(session, None), node.query)
    refuse_redacted(column.mask for column in plan.columns)
    names = node.column_names or tuple(column.name for column in plan.columns)
    if len(names) != len(plan.columns):
        raise OracleError(1730, "invalid number of column names specified")
    columns = tuple(
        nodes.ColumnSpec(name, column.type, nullable=column.nullable)
        for name, column in zip(names, plan.columns, strict=True)
    )
    key = () if node.view_text is None else _key_kept(session, node.query, names)
    with database.changing_catalog():
        _one(session, replace(node, columns=columns, constraints=key, query=None), text)
    owner = node.name[0] if len(node.name) > 1 else session.schema
    start = node.query.pos
    fill_table(session, owner, node.name[-1], node.view_text or text[start:])
    session.commit()


def _key_kept(
    session: SessionState, query: ast.Query, names: Sequence[str]
) -> tuple[nodes.ConstraintSpec, ...]:
    """The primary key of a materialized view, WITH PRIMARY KEY unless it says otherwise: that of
    the table of which it selects rows, if it selects all its columns."""
    block = query.body
    if not isinstance(block, ast.Select) or block.group is not None or block.distinct:
        return ()
    if len(block.sources) != 1 or not isinstance(block.sources[0], ast.FromTable):
        return ()
    name = block.sources[0].name
    table = session.database.find(session, name[0] if len(name) > 1 else session.schema, name[-1])
    if not isinstance(table, TableDef) or table.key is None:
        return ()
    selected = [
        item.expr.name[-1] if isinstance(item.expr, ast.Column) else None for item in block.items
    ]
    if len(selected) != len(names):
        selected = [column.name for column in table.shown]  # of a star
    key = [table.by_id[number].name for number in table.key.columns]
    if len(selected) != len(names) or not set(key) <= set(selected):
        return ()
    return (nodes.ConstraintSpec("P", None, tuple(names[selected.index(one)] for one in key)),)


def fill_table(session: SessionState, owner: str, name: str, query: str) -> None:
    """Insert the rows of a query, into a materialized view as well."""
    made = session.database.store.catalog.find(owner, name)
    session.filling = made.object_id if made is not None else 0
    try:
        session.run(f'INSERT INTO "{owner}"."{name}" {query}')
    finally:
        session.filling = 0


# --- statements -----------------------------------------------------------------------------------


def _create_index(run: DdlRun, node: nodes.CreateIndex) -> None:
    if node.is_of_cluster:
        index_cluster(run, node)
        return
    session = run.session
    table = run.table(node.table, "CREATE ANY INDEX")
    owner, name = (node.name[0] if len(node.name) > 1 else session.schema), node.name[-1]
    if any(
        index.name == name
        for item in session.database.store.catalog.tables()
        for index in item.indexes
        if index.owner == owner
    ):
        raise ora(955)
    columns = []
    expressions: tuple[str, ...] = ()
    if node.has_expressions:
        expressions = tuple(text for text, _ in node.columns)
    for column_name, _ in () if expressions else node.columns:
        column = table.by_name.get(column_name)
        if column is None:
            raise ora(904, f'"{column_name}"')
        if column.type.family in DOCUMENTS:
            datatype = column.type.data_type()
            raise OracleError(2327, f"cannot create index on expression with datatype {datatype}")
        columns.append(column.internal_id)
    descending = tuple(flag for _, flag in node.columns)
    table, keys, values = with_hidden(run, table, node.columns)
    if any((index.keys or index.columns) == (keys or tuple(columns)) for index in table.indexes):
        raise OracleError(1408, "such column list already indexed")
    session.database.transactions.check_no_locks(table.object_id, session.transaction)
    if node.unique:
        check_unique_values(
            session,
            table,
            values if expressions else tuple(f"c{internal_id}" for internal_id in columns),
            OracleError(1452, "cannot CREATE UNIQUE INDEX; duplicate keys found"),
        )
    index = IndexDef(
        object_id=session.database.store.catalog.new_id(),
        owner=owner,
        name=name,
        columns=tuple(columns),
        descending=descending,
        unique=node.unique,
        expressions=expressions,
        keys=keys,
        values=values if node.unique and expressions else (),
        is_bitmap=node.bitmap,
        tablespace=node.storage.tablespace,
        compression=node.storage.compression,
    )
    if columns:
        session.database.store.create_index(table.object_id, index.object_id, index.columns)
    run.put(replace(table, indexes=(*table.indexes, index)))
    run.about(owner, name, index.object_id)


def _create_view(run: DdlRun, node: nodes.CreateView) -> None:
    owner, name = run.own_name(node.name, "CREATE VIEW", "CREATE ANY VIEW")
    catalog = run.session.database.store.catalog
    existing = catalog.find(owner, name)
    if existing is not None and not (node.replace and isinstance(existing, ViewDef)):
        raise ora(955)
    plan = compile_select(compilation(run.session, None), node.query)
    if node.columns and len(node.columns) != len(plan.columns):
        raise OracleError(1730, "invalid number of column names specified")
    names = node.columns or tuple(column.name for column in plan.columns)
    if len(set(names)) != len(names):
        raise ora(957)
    if not node.columns and any(
        not name.replace("_", "").replace("$", "").replace("#", "").isalnum() for name in names
    ):
        raise OracleError(998, "must name this expression with a column alias")
    object_id = existing.object_id if existing is not None else catalog.new_id()
    created = existing.created if isinstance(existing, ViewDef) else run.now
    run.put(
        ViewDef(
            object_id=object_id,
            owner=owner,
            name=name,
            text=node.text,
            columns=names,
            comment=None,
            created=created,
            changed=run.now,
        )
    )
    run.about(owner, name, object_id)


def _create_synonym(run: DdlRun, node: nodes.CreateSynonym) -> None:
    if node.public:
        if not run.session.has_privilege("CREATE PUBLIC SYNONYM"):
            raise ora(1031)
        owner, name = "PUBLIC", node.name[-1]
    else:
        owner, name = run.own_name(node.name, "CREATE SYNONYM", "CREATE ANY SYNONYM")
    catalog = run.session.database.store.catalog
    existing = catalog.find(owner, name)
    if existing is not None and not (node.replace and isinstance(existing, SynonymDef)):
        raise ora(955)
    target_owner = node.target[0] if len(node.target) > 1 else run.session.schema
    object_id = existing.object_id if existing is not None else catalog.new_id()
    run.put(
        SynonymDef(
            object_id=object_id,
            owner=owner,
            name=name,
            target_owner=target_owner,
            target_name=node.target[-1],
            created=run.now,
            changed=run.now,
        )
    )
    run.about(owner, name, object_id)


def _truncate(run: DdlRun, node: nodes.Truncate) -> None:
    database = run.session.database
    if node.is_cluster:
        truncate_cluster(run, node)
        return
    table = run.table(node.name, "DROP ANY TABLE")
    if table.external is not None:
        raise is_external_only()
    if table.cluster:
        raise OracleError(3292, "Table to be truncated is part of a cluster")
    if table.temporary:
        run.session.empty_private(table)
        return
    children = _truncated_with(run, table, cascade=node.cascade)
    for one in (table, *children):
        database.transactions.check_no_locks(one.object_id, run.session.transaction)
    for child in children:
        _empty(run, child)
    _empty(run, table, changed=run.now)
    run.about(table.owner, table.name, table.object_id)


def _truncated_with(run: DdlRun, table: TableDef, *, cascade: bool) -> list[TableDef]:
    """The tables that lose their rows with a parent: those whose enabled foreign keys say ON DELETE
    CASCADE, and their children. No redo row names them.

    Source: Oracle Database SQL Language Reference 19c, TRUNCATE TABLE (CASCADE); Error Messages,
    ORA-02266, ORA-14705.
    """
    tables = run.session.database.store.catalog.tables()
    found, waiting = {table.object_id: table}, [table]
    while waiting:
        parent = waiting.pop()
        for child in tables:
            keys = [key for key in child.foreign_keys if key.referenced == parent.object_id]
            if not keys or child.object_id in found:
                continue
            if not cascade:
                raise OracleError(
                    2266, "unique/primary keys in table referenced by enabled foreign keys"
                )
            if any(key.delete_rule != "CASCADE" for key in keys):
                raise OracleError(
                    14705, "unique or primary keys referenced by enabled foreign keys in table"
                )
            found[child.object_id] = child
            waiting.append(child)
    return [one for one in found.values() if one is not table]


def _empty(run: DdlRun, table: TableDef, **changes: float) -> None:
    """All rows go, and the segments get other numbers."""
    database = run.session.database
    database.store.empty_table(table)
    database.store.activity[table.object_id].last_commit = run.scn
    run.put(
        replace(
            table,
            data_object_id=database.store.catalog.new_id(),
            partitioning=truncated(run, table),
            object_version=table.object_version + 1,
            structure_scn=run.scn,
            scn_from=run.scn,
            **changes,  # type: ignore[arg-type]
        )
    )


def _drop(run: DdlRun, node: nodes.Drop) -> None:
    if node.kind in ("USER", "ROLE"):
        drop_user(run, node)
        return
    session = run.session
    catalog = session.database.store.catalog
    if node.kind == "MATERIALIZED VIEW":
        _drop_table(run, node, "")
        return
    if node.kind == "CLUSTER":
        for table in drop_cluster(run, node):
            name = (table.owner, table.name)
            _drop_table(run, nodes.Drop("TABLE", name, node.cascade, purge=True), "")
        end_cluster(run, node)
        return
    if node.kind == "INDEX":
        _drop_index(run, node)
        return
    if node.kind in ("PROCEDURE", "FUNCTION", "PACKAGE", "PACKAGE BODY", "TRIGGER"):
        drop_program(run, node)
        return
    if node.kind == "TYPE":
        drop_type(run, node)
        return
    classes: dict[str, tuple[type, int, str]] = {
        "VIEW": (ViewDef, 942, "table or view does not exist"),
        "SEQUENCE": (SequenceDef, 2289, "sequence does not exist"),
        "SYNONYM": (SynonymDef, 1434, "private synonym to be dropped does not exist"),
    }
    cls, code, message = classes[node.kind]
    owner = node.name[0] if len(node.name) > 1 else session.schema
    found = catalog.find(owner, node.name[-1])
    if not isinstance(found, cls) or isinstance(found, TableDef):
        raise OracleError(code, message)
    if owner != session.username and not session.has_privilege(
        f"DROP ANY {node.kind}" if owner != "PUBLIC" else "DROP PUBLIC SYNONYM"
    ):
        raise ora(1031)
    assert found is not None
    run.drop(found)
    if isinstance(found, SequenceDef):
        session.database.sequences.forget(found.object_id)
    run.about(owner, node.name[-1], found.object_id)


def _drop_table(run: DdlRun, node: nodes.Drop, text: str) -> None:
    database = run.session.database
    catalog = database.store.catalog
    table = run.table(node.name, f"DROP ANY {node.kind}")
    if table.query is not None and node.kind == "TABLE":
        raise OracleError(
            12083, f'must use DROP MATERIALIZED VIEW to drop "{table.owner}"."{table.name}"'
        )
    if table.query is None and node.kind != "TABLE":
        raise OracleError(12003, f'materialized view "{table.owner}"."{table.name}" does not exist')
    if node.preserves_table:
        run.put(replace(table, query=None))
        return
    if table.companion:
        raise OracleError(22914, "DROP of nested tables not supported")
    database.transactions.check_no_locks(table.object_id, run.session.transaction)
    for child in list(catalog.tables()):
        keys = [
            key
            for key in child.constraints
            if key.kind == "R" and key.referenced == table.object_id
        ]
        if keys and child.object_id != table.object_id:
            if not node.cascade:
                raise OracleError(2449, "unique/primary keys in table referenced by foreign keys")
            run.put(
                replace(
                    child, constraints=tuple(item for item in child.constraints if item not in keys)
                )
            )
    drop_triggers(run, table)
    if (
        not (node.purge or table.temporary or table.external or table.query is not None)
        and run.session.has_recycle_bin
    ):
        put_into_bin(run, table, text)
        return
    run.drop(table)
    drop_companions(run, table)
    for column in table.columns:
        if column.identity:
            sequence = catalog.find(table.owner, f"ISEQ$$_{table.object_id}")
            if sequence is not None:
                run.drop(sequence)
    database.store.drop_table(table)
    run.about(table.owner, table.name, table.object_id)


def _drop_index(run: DdlRun, node: nodes.Drop) -> None:
    owner = node.name[0] if len(node.name) > 1 else run.session.schema
    for table in run.session.database.store.catalog.tables():
        for index in table.indexes:
            if index.owner == owner and index.name == node.name[-1]:
                if any(item.index_name == index.name for item in table.constraints):
                    raise OracleError(
                        2429, "cannot drop index used for enforcement of unique/primary key"
                    )
                if owner != run.session.username and not run.session.has_privilege(
                    "DROP ANY INDEX"
                ):
                    raise ora(1031)
                run.put(replace(without_indexes(table, [index]), changed=run.now))
                run.session.database.store.drop_index(index.object_id)
                run.about(owner, index.name, index.object_id)
                return
    raise OracleError(1418, "specified index does not exist")


def _comment(run: DdlRun, node: nodes.Comment) -> None:
    text = node.text or None
    if node.kind == "TABLE":
        owner = node.name[0] if len(node.name) > 1 else run.session.schema
        view = run.session.database.store.catalog.find(owner, node.name[-1])
        if isinstance(view, ViewDef):
            run.put(replace(view, comment=text))
            run.about(owner, view.name, view.object_id)
            return
        table = run.table(node.name, "COMMENT ANY TABLE")
        run.put(replace(table, comment=text))
    else:
        if len(node.name) < 2:
            raise ora(1747)
        table = run.table(node.name[:-1], "COMMENT ANY TABLE")
        column = table.by_name.get(node.name[-1])
        if column is None:
            raise ora(904, f'"{node.name[-1]}"')
        changed = tuple(
            replace(item, comment=text) if item is column else item for item in table.columns
        )
        run.put(replace(table, columns=changed))
    run.about(table.owner, table.name, table.object_id)


def _rename(run: DdlRun, node: nodes.RenameTable) -> None:
    table = run.table(node.name, "ALTER ANY TABLE")
    run.must_be_new(table.owner, node.new_name)
    run.session.database.transactions.check_no_locks(table.object_id, run.session.transaction)
    run.put(
        replace(
            table,
            name=node.new_name,
            object_version=table.object_version + 1,
            changed=run.now,
            scn_from=run.scn,
        )
    )
    run.about(table.owner, table.name, table.object_id)


_HANDLERS: dict[type, Callable[..., None]] = {
    nodes.CreateTable: create_table,
    nodes.AlterTable: alter_table,
    nodes.CreateCluster: create_cluster,
    nodes.CreateIndex: _create_index,
    nodes.CreateView: _create_view,
    nodes.CreateSequence: create_sequence,
    nodes.CreateSynonym: _create_synonym,
    nodes.CreateUser: create_user,
    nodes.Edition: change_editions,
    nodes.CreateType: create_type,
    nodes.FlashbackDrop: bring_back,
    nodes.Purge: purge,
    nodes.Drop: _drop,
    nodes.Truncate: _truncate,
    nodes.Grant: grant,
    nodes.Comment: _comment,
    nodes.RenameTable: _rename,
    nodes.CreateProgram: create_program,
    nodes.AlterProgram: alter_program,
}
