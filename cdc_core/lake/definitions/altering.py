"""How is a captured table's Delta table altered? By a commit of this process where it knows all
that the table asks of its writers, else by Spark's ALTER TABLE.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from cdc_core.delta.altering import Change, commit_change, takes_changes
from cdc_core.delta.appending import CommitInfo
from cdc_core.delta.history import read_log
from cdc_core.errors import DEBUG_HINT, FROM_LANDING_HINT, MIRROR_HINT, LakeError
from cdc_core.lake.definitions.defaults import sql_literal
from cdc_core.lake.mirror.copy_on_write import rewrite_column
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.ways import why_rewritten_by_spark
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import (
    MAPPED,
    delta,
    field_ddl,
    properties_sql,
    quote_name,
    string_literal,
)
from cdc_core.schema.table import TableSchema

_TIMESTAMPS = {"delta.feature.timestampNtz": "supported"}
"""The table feature of columns without a time zone. Spark adds it by itself when a table is made,
and not for a later column."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """One change of a Delta table: what Delta calls it, what it makes of the table's metadata, and
    the statements of Spark that do the same, behind ``ALTER TABLE …``. One that ``keeps_columns``
    leaves the table an image of what it was."""

    operation: str
    change: Change
    sql: tuple[str, ...]
    keeps_columns: bool = False


def set_properties(properties: dict[str, str]) -> Alteration:
    """Give the table these properties, which ask for no feature."""
    return Alteration(
        "SET TBLPROPERTIES",
        lambda table: table.with_properties(properties),
        (f"SET TBLPROPERTIES {properties_sql(properties)}",),
    )


def add_columns(columns: Sequence[pa.Field], structs: Sequence[str] = ()) -> Alteration:
    """Add columns behind the others, or fields of these structs; a field's ``comment`` becomes the
    column's."""
    has_times = any(one.type == pa.timestamp("us") for one in columns)
    feature = (f"SET TBLPROPERTIES {properties_sql(_TIMESTAMPS)}",) if has_times else ()
    ddl = [
        f"{struct}.{field_ddl(one)}" if struct else field_ddl(one)
        for one in columns
        for struct in structs or ("",)
    ]
    return Alteration(
        "ADD COLUMNS",
        lambda table: table.with_columns(columns, structs),
        (*feature, f"ADD COLUMNS ({', '.join(ddl)})"),
    )


def rename_column(old: str, new: str) -> Alteration:
    """Give a column another name, of a table with column mapping."""
    return Alteration(
        "RENAME COLUMN",
        lambda table: table.renamed(old, new),
        (f"RENAME COLUMN {quote_name(old)} TO {quote_name(new)}",),
    )


def comment_column(path: Sequence[str], comment: str) -> Alteration:
    """Say something of a column, or of a field of a struct."""
    column = ".".join(map(quote_name, path))
    return Alteration(
        "CHANGE COLUMN",
        lambda table: table.commented(path, comment),
        (f"ALTER COLUMN {column} COMMENT {string_literal(comment)}",),
        keeps_columns=True,
    )


def comment_table(comment: str) -> Alteration:
    """Say something of the table."""
    return Alteration(
        "SET TBLPROPERTIES",
        lambda table: table.described(comment),
        (f"SET TBLPROPERTIES {properties_sql({'comment': comment})}",),
        keeps_columns=True,
    )


def map_columns() -> Alteration:
    """Turn column mapping on; the columns that are there keep their names in files."""
    sql = f"SET TBLPROPERTIES {properties_sql(MAPPED)}"
    return Alteration("SET TBLPROPERTIES", lambda table: table.mapped(), (sql,))


def alter(
    work: TableWork, path: str, alteration: Alteration, reached: TableSchema | None = None
) -> None:
    """Alter one of the table's Delta tables; ``reached`` is the definition whose columns the mirror
    has afterwards.

    Raises:
        CommitConflictError: Another writer committed meanwhile.
        LakeError: The table does not take it: somebody else has changed its columns.
    """
    facts = {"source": work.source, "table": str(work.table), "kind": "schema"}
    since = 0 if alteration.keeps_columns else None if reached is None else reached.scn_from
    metadata = json.dumps(facts if since is None else {**facts, "definition_scn": since})
    try:
        _commit(work, path, alteration, work.info("altering a Delta table", metadata))
    except LakeError as error:
        if error.hint != DEBUG_HINT:
            raise
        # Another writer renamed a column: its name in files is taken, so none of that name can
        # come.
        hint = FROM_LANDING_HINT if path == work.changelog else MIRROR_HINT
        raise LakeError(error.message, hint=hint, **error.facts) from error


def commit_properties(
    work: TableWork, path: str, properties: dict[str, str], info: CommitInfo
) -> None:
    """Give one of the table's Delta tables these properties, which ask for no feature, in a commit
    that says what ``info`` says.

    Raises:
        CommitConflictError: Another writer committed meanwhile.
        LakeError: Delta refused.
    """
    _commit(work, path, set_properties(properties), info)


def _commit(work: TableWork, path: str, alteration: Alteration, info: CommitInfo) -> None:
    log = read_log(path)
    if log is not None and takes_changes(path, log):
        commit_change(path, alteration.operation, alteration.change, info, fence=work.fence)
        return
    session = work.session_for()
    for statement in alteration.sql:
        with work.commit(session, info.doing, info.metadata):
            session.sql(f"ALTER TABLE {delta(path)} {statement}")


def fill_column(
    work: TableWork, schema: TableSchema, column: str, value: pa.Scalar, txn: tuple[str, int]
) -> None:
    """Give all rows of the mirror one value in a column, in one commit: in this process where the
    mirror is small enough to be written anew, else by Spark's UPDATE.

    Args:
        work: The table.
        schema: The mirror's columns.
        column: The name of one of them.
        value: What its rows get.
        txn: The commit's transaction identifier.
    """
    metadata = json.dumps({"source": work.source, "table": str(work.table), "kind": "default"})
    info = work.info("filling a new column's default", metadata, txn)
    if not work.merges_by_spark and work.rewrite_bytes_max:
        mirror = MirrorFiles.read(work)
        if why_rewritten_by_spark(mirror, schema) is None:
            rewrite_column(mirror, schema, column, value, info)
            return
    session = work.session_for()
    with work.commit(session, info.doing, metadata, txn):
        sql = sql_literal(value.as_py(), value.type)
        session.sql(f"UPDATE {delta(work.mirror)} SET {quote_name(column)} = {sql}")
