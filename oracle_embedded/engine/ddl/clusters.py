"""How are clusters created, indexed, truncated and dropped, and how does a table get into one?

Rows of all tables of a cluster lie in its segment: they have its data object number, in the
dictionary and in their ROWIDs, and rows of two tables may have one ROWID. TRUNCATE CLUSTER removes
the rows of all of them, and is about the cluster alone: no table is in its redo.

Source: Oracle Database Concepts 19c, "Overview of Table Clusters"; SQL Language Reference 19c,
CREATE CLUSTER, TRUNCATE CLUSTER, DROP CLUSTER; Error Messages, ORA-00943, ORA-00944, ORA-00951,
ORA-01753, ORA-02032, ORA-03292.
"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.storage.catalog import ClusterDef, ColumnDef, IndexDef, TableDef


def create_cluster(run: DdlRun, node: nodes.CreateCluster) -> None:
    """CREATE CLUSTER."""
    owner, name = run.own_name(node.name, "CREATE CLUSTER", "CREATE ANY CLUSTER")
    run.must_be_new(owner, name)
    number = run.session.database.store.catalog.new_id()
    columns = []
    for at, column in enumerate(node.columns, 1):
        assert column.type is not None
        columns.append(ColumnDef(internal_id=at, name=column.name, type=column.type))
    run.put(
        ClusterDef(
            object_id=number,
            data_object_id=number,
            owner=owner,
            name=name,
            columns=tuple(columns),
            is_hash=node.is_hash,
            created=run.now,
            changed=run.now,
        )
    )
    run.session.database.store.new_segment(number)
    run.about(owner, name, number)


def index_cluster(run: DdlRun, node: nodes.CreateIndex) -> None:
    """CREATE INDEX … ON CLUSTER, without which an index cluster takes no rows."""
    cluster = _cluster(run, node.table, "CREATE ANY INDEX")
    if cluster.index is not None or cluster.is_hash:
        raise OracleError(
            2033 if cluster.index is not None else 2445,
            "a cluster index for this cluster already exists"
            if cluster.index is not None
            else "a cluster index cannot be created for a hash cluster",
        )
    owner, name = (node.name[0] if len(node.name) > 1 else run.session.schema), node.name[-1]
    ids = tuple(column.internal_id for column in cluster.columns)
    number = run.session.database.store.catalog.new_id()
    index = IndexDef(
        object_id=number,
        owner=owner,
        name=name,
        columns=ids,
        descending=(False,) * len(ids),
        unique=False,
    )
    run.put(replace(cluster, index=index, changed=run.now))
    run.about(owner, name, number)


def clustered(run: DdlRun, table: TableDef, spec: nodes.ClusterSpec) -> TableDef:
    """A new table, in the cluster that its CLUSTER clause names."""
    cluster = _cluster(run, spec.cluster, "CREATE ANY TABLE")
    if len(spec.columns) != len(cluster.columns):
        raise OracleError(944, "insufficient number of clustered columns")
    for name, wanted in zip(spec.columns, cluster.columns, strict=True):
        column = table.by_name.get(name)
        if column is None:
            raise ora(904, f'"{name}"')
        if column.type != wanted.type:
            raise OracleError(
                1753, "column definition incompatible with clustered column definition"
            )
    return replace(table, cluster=cluster.object_id, data_object_id=cluster.data_object_id)


def truncate_cluster(run: DdlRun, node: nodes.Truncate) -> None:
    """TRUNCATE CLUSTER: all rows of all its tables go, and the segment gets another number. When a
    table was last altered stays."""
    cluster = _cluster(run, node.name, "DROP ANY TABLE")
    if cluster.is_hash:
        raise OracleError(3293, "Cluster to be truncated is a HASH CLUSTER")
    store = run.session.database.store
    number = store.catalog.new_id()
    store.new_segment(cluster.object_id)
    for table in tables_of(run, cluster):
        run.session.database.transactions.check_no_locks(table.object_id, run.session.transaction)
        store.empty_table(table)
        store.activity[table.object_id].last_commit = run.scn
        run.put(
            replace(
                table,
                data_object_id=number,
                object_version=table.object_version + 1,
                structure_scn=run.scn,
                scn_from=run.scn,
            )
        )
    run.put(replace(cluster, data_object_id=number, changed=run.now))
    run.about(cluster.owner, cluster.name, cluster.object_id)


def drop_cluster(run: DdlRun, node: nodes.Drop) -> list[TableDef]:
    """DROP CLUSTER: the tables that go with it, which the caller drops first."""
    cluster = _cluster(run, node.name, "DROP ANY CLUSTER")
    tables = tables_of(run, cluster)
    if tables and not node.including_tables:
        raise OracleError(951, "cluster not empty")
    return tables


def end_cluster(run: DdlRun, node: nodes.Drop) -> None:
    """The cluster itself goes, behind its tables."""
    cluster = _cluster(run, node.name, "DROP ANY CLUSTER")
    run.drop(cluster)
    run.session.database.store.drop_segment(cluster.object_id)
    run.about(cluster.owner, cluster.name, cluster.object_id)


def tables_of(run: DdlRun, cluster: ClusterDef) -> list[TableDef]:
    """The tables in a cluster."""
    tables = run.session.database.store.catalog.tables()
    return [one for one in tables if one.cluster == cluster.object_id]


def _cluster(run: DdlRun, name: ast.Name, any_privilege: str) -> ClusterDef:
    owner = name[0] if len(name) > 1 else run.session.schema
    found = run.session.database.store.catalog.find(owner, name[-1])
    if not isinstance(found, ClusterDef):
        raise OracleError(943, "cluster does not exist")
    if owner != run.session.username and not run.session.has_privilege(any_privilege):
        raise ora(1031)
    return found
