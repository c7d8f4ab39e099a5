"""May a chunk be read at another SCN than the other chunks of its snapshot, and under the
definition that its table has by then?"""

from __future__ import annotations

from cdc_core.errors import SchemaMismatchError, SnapshotBrokenError
from cdc_core.model.records import ChunkRecord
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.ddl_times import unchanged_since
from cdc_core.schema.evolution import identified, judge
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import is_snapshot_only
from cdc_core.snapshot.plan import ChunkPart, ChunkRange, chunk_part
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.shared import need_windows

_ROW_MOVEMENT = "SELECT ROW_MOVEMENT FROM ALL_TABLES WHERE OWNER = :owner AND TABLE_NAME = :name"


def rows_may_leave(
    ctx: Context, session: OracleSession, record: ChunkRecord, schema: TableSchema
) -> bool:
    """May a row have left the chunk's range since the SCN at which its snapshot was planned, for
    one of another chunk, or have come among those that the table's snapshots read, without redo
    that has all of it? A DDL moves rows without any."""
    part = chunk_part(record.range)
    if may_move_unseen(ctx, session, schema, part):
        return True
    if not isinstance(part, ChunkRange) or part.is_whole or part.kind != "rowid":
        return False
    return record.table not in unchanged_since(session, [record.table], record.scn)


def may_move_unseen(
    ctx: Context, session: OracleSession, schema: TableSchema, part: ChunkPart
) -> bool:
    """May an UPDATE move a row out of such a part without redo that has all of it? Redo does not
    carry LOBs and LONGs that an UPDATE leaves alone. A change of key is no question: it is an
    error where no chunk has the row."""
    if not isinstance(part, ChunkRange) or part.is_whole:
        return False
    if not any(column.is_lob or is_snapshot_only(column) for column in schema.columns):
        return False
    known = ctx.store.tables.get(schema.table)
    if known is not None and known.row_filter is not None:
        return True
    if part.kind != "rowid":
        return part.column is not None
    binds = {"owner": schema.table.owner, "name": schema.table.name}
    return session.fetch_all(_ROW_MOVEMENT, binds) != [("DISABLED",)]


def refuse_altered(record: ChunkRecord, known: TableSchema, now: TableSchema) -> None:
    """Refuse a definition of which nothing that was captured says how the table came to it: another
    table under the name, or columns that may be others under new names."""
    evolution = judge(known, identified(known, now.without(known.excluded)))
    if evolution.trouble == "drop":
        raise SchemaMismatchError(
            f"a chunk cannot be read: {evolution.refusal}",
            hint=f"`redolake table resnapshot {record.table.argument}` reads the table as it is now.",
            table=record.table,
            scn=record.scn,
        )
    if evolution.refusal is not None:
        raise altered(record)


def altered(record: ChunkRecord) -> SnapshotBrokenError:
    """The error where no SCN is left as of which the chunk could be read."""
    return SnapshotBrokenError(
        "the table was altered after the SCN as of which this snapshot is read, and Oracle does not "
        "look back over that",
        hint=f"`redolake table resnapshot {record.table.argument}` starts its snapshot again.",
        table=record.table,
        scn=record.scn,
    )


def moved(record: ChunkRecord) -> SnapshotBrokenError:
    """The error where a DDL came since the snapshot was planned, and ranges are of ROWIDs."""
    return SnapshotBrokenError(
        "the table was altered after its chunks were planned, which may have moved rows into a range"
        " of ROWIDs that was read",
        hint=f"`redolake table resnapshot {record.table.argument}` starts its snapshot again.",
        table=record.table,
        scn=record.scn,
    )


def broken(record: ChunkRecord, why: str) -> SnapshotBrokenError:
    """The error where the chunk had to be read as of its planned SCN, and cannot be."""
    return SnapshotBrokenError(
        "Oracle has no undo any more for the SCN as of which all chunks of this table are read,"
        f" since {why}",
        hint="Raise UNDO_RETENTION (and the undo tablespace) to the time that the whole table takes, or read it when little is written. "
        f"`redolake table resnapshot {record.table.argument}` then starts its snapshot again.",
        table=record.table,
        scn=record.scn,
    )


def refuse_changed_key(ctx: Context, schema: TableSchema, scn: Scn) -> None:
    """Refuse a chunk whose key is not that of the table's Delta tables. One from before a column of
    the key got its name has the older one."""
    table = schema.table
    versions = ctx.store.schemas.versions(table)
    newest = versions[-1].schema if versions else None
    if newest is not None and newest.as_logged().key != schema.as_logged().key:
        need_windows(ctx, table, scn, "its key has other columns")
        raise SchemaMismatchError(
            "the table's key has changed since it was first captured",
            hint=f"`redolake table resnapshot {table.argument} --fresh` puts it into new Delta tables.",
            table=table,
            key_before=", ".join(newest.key),
            key_now=", ".join(schema.key),
        )
