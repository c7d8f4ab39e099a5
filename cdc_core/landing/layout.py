"""Which landing files exist, what are their columns, and what does a manifest say?

Folders below the landing root; SCNs have 20 digits, chunk numbers 6, revisions and ordinals 12::

    <source>/windows/<scn_low>-<scn_high>/
        redo-00000.parquet …         rows of REDO_SCHEMA, from a reader that gives redo text
        changes-00000.parquet …      rows of change_file_schema, from one that gives typed values
        reselected-00001.parquet …   rows of REDO_SCHEMA that no redo has: LOBs as of a commit
        changed-00001.parquet …      rows of change_file_schema that no redo has, as of commits
        transactions.parquet         rows of TRANSACTION_SCHEMA
        manifest.json                written last: the window has landed
    <source>/chunks/<owner.table>/<snapshot id>/<chunk>/
        rows-00000.parquet …         the mirror's columns, as it takes the file
        manifest.json                written last: the chunk has landed
    <source>/kept/                   each folder has a manifest.json
        source                                  where the source's windows begin
        tables/<owner.table>/<revision>         a table's record and definitions; the newest counts
        plans/<owner.table>/<snapshot id>       plan.parquet, rows of PLAN_SCHEMA: planned chunks
        applied/<owner.table>/<snapshot id>     all chunks of the snapshot are applied
        definitions/<digest>                    definitions that many windows share
        retired/<ordinal>                       windows below were retired; the highest counts
    <source>/signals/<id>/manifest.json         a signal that somebody sends; removed once kept

Files are written under a temporary name, synced and renamed; a folder without a manifest has not
landed and may be overwritten, one with a manifest is immutable.
"""

from __future__ import annotations

import pyarrow as pa

from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema

REDO_SCHEMA = pa.schema(
    [
        pa.field(
            "ordinal", pa.int64(), nullable=False
        ),  # source-wide order: window ordinal << 40 | row number
        pa.field("scn", pa.int64(), nullable=False),
        pa.field("xid", pa.string(), nullable=False),  # 16 lower-case hex digits
        pa.field("operation_code", pa.int32(), nullable=False),
        pa.field("rollback", pa.bool_(), nullable=False),
        pa.field("seg_owner", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("row_id", pa.string()),
        pa.field("sql_redo", pa.large_string()),  # CSF pieces already joined
        pa.field("status", pa.int32()),  # with TEXT_REPLACED of model/texts.py
        pa.field("info", pa.string()),
        pa.field("timestamp", pa.timestamp("s")),  # database time, no zone
        pa.field("thread", pa.int32()),
        pa.field("rs_id", pa.string()),
        pa.field("ssn", pa.int64()),
        pa.field("data_obj", pa.int64()),
        pa.field("data_objv", pa.int64()),
        pa.field("data_objd", pa.int64()),
    ]
)
"""One row per redo row of a captured table (operation codes 1, 2, 3, 5 and all that are neither
these nor transaction control); each row group has rows of one table, sorted by ``ordinal``:
LogMiner's own order."""

IMAGES = ("before", "after", "absent", "before_absent")
"""The columns that a change file has behind those of a redo file."""


def change_file_schema(schema: TableSchema) -> pa.Schema:
    """Columns of a change file, which holds committed changes of one version of one table.

    Those of ``REDO_SCHEMA``, with ``sql_redo`` NULL: transactions, order and counts of both forms
    are alike. Then the structs ``before`` and ``after``, NULL where a change has no such image, and
    the columns that each does not carry: all by what a column is stored as for life.
    """
    row = pa.struct(list(arrow_schema(schema.as_in_rows().as_logged())))
    names = pa.list_(pa.string())
    kinds = (row, row, names, names)
    return pa.schema([*REDO_SCHEMA, *map(pa.field, IMAGES, kinds)])


TRANSACTION_SCHEMA = pa.schema(
    [
        pa.field("xid", pa.string(), nullable=False),
        pa.field(
            "state", pa.string(), nullable=False
        ),  # commit | rollback | evicted; of the ledger: open | undone | released
        pa.field("start_scn", pa.int64()),
        pa.field("commit_scn", pa.int64()),  # SCN of the COMMIT or ROLLBACK row, NULL while open
        pa.field(
            "commit_ordinal", pa.int64()
        ),  # ordinal of that row: orders transactions with one commit SCN
        pa.field("commit_timestamp", pa.timestamp("s")),
        pa.field("username", pa.string()),
        pa.field(
            "first_ordinal", pa.int64(), nullable=False
        ),  # of its first row: names the first window
        pa.field("has_rollback", pa.bool_(), nullable=False),  # any ROLLBACK = 1 row so far
        pa.field(
            "tables", pa.list_(pa.string()), nullable=False
        ),  # "OWNER.NAME" of captured tables touched so far
        pa.field(
            "table_rows", pa.list_(pa.int64()), nullable=False
        ),  # their captured redo rows so far
        pa.field("rows", pa.int64(), nullable=False),  # of all of them, over all windows
        pa.field("undone", pa.int64()),  # those of them that take another one back
        pa.field(
            "late", pa.bool_()
        ),  # its COMMIT was first seen at or below the window's lower end
        pa.field("session_id", pa.int64()),  # who began it: V$SESSION.SID and SERIAL#
        pa.field("serial", pa.int64()),
        pa.field("absent_scn", pa.int64()),  # where Oracle was first found not to know it
        pa.field("start_timestamp", pa.timestamp("s")),  # database time of its START row, no zone
        pa.field("client_id", pa.string()),  # CLIENT_IDENTIFIER of the session that began it
        pa.field(
            "windows", pa.list_(pa.int64()), nullable=False
        ),  # runs of windows in which its captured rows landed
    ]
)
"""One row per transaction that ended in the window's redo, or is open at its end: the ledger after
the window."""

PLAN_SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("scn", pa.int64(), nullable=False),
        pa.field("range", pa.string(), nullable=False),  # JSON; bounds are values of key columns
    ]
)
"""One row per chunk of a snapshot, as it was planned."""

ORDINAL_SHIFT = 40
"""``ordinal >> ORDINAL_SHIFT`` is the ordinal of the window that landed the row."""


def window_folder(source: str, window: ScnWindow) -> str:
    """The landing folder of a window."""
    return f"{source}/windows/{window.folder}"


def chunk_folder(source: str, key: ChunkKey) -> str:
    """The landing folder of a chunk."""
    return f"{chunks_folder(source, key.table)}/{key.snapshot_id}/{key.number:06d}"


def chunks_folder(source: str, table: TableId) -> str:
    """The landing folder of all chunks of a table."""
    return f"{source}/chunks/{table.path}"


def signals_folder(source: str) -> str:
    """The landing folder above the signals that senders put there."""
    return f"{source}/signals"


def windows_folder(source: str) -> str:
    """The landing folder above all windows of a source."""
    return f"{source}/windows"


def kept_folder(source: str, *parts: str) -> str:
    """A landing folder of what is kept for a metadata store that gets lost."""
    return "/".join((source, "kept", *parts))
