"""Which columns and fields do landing files, manifests and change logs have? Names and types come
from the code, meanings from here.

A column without a meaning is an error: whoever adds one says here what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import pyarrow as pa

from cdc_core.lake.tables import spark_type
from cdc_core.landing.layout import REDO_SCHEMA, TRANSACTION_SCHEMA
from cdc_core.landing.manifest import ChunkManifest, WindowManifest
from cdc_core.stage.definitions import SCHEMA_CHANGES
from cdc_core.stage.layout import CHANGE_FIELDS
from cdc_core.stage.transactions import TRANSACTIONS
from docs.tools.markdown import code, table

REDO: Mapping[str, str] = {
    "ordinal": "Order in the source: the window's number shifted left by 40 bits, plus the row's number in LogMiner's order. Unique in the source.",
    "scn": "SCN of the redo row, not of its commit.",
    "xid": "Transaction: undo segment, slot and sequence as 16 lower-case hex digits.",
    "operation_code": "V$LOGMNR_CONTENTS.OPERATION_CODE: 1 INSERT, 2 DELETE, 3 UPDATE, 5 DDL, others as Oracle has them. 1001 is Redolake's own: an UPDATE with a LOB that the redo carries in part and Oracle has told (`capture.lobs: reselect`); its `ordinal` is that of the redo row for which it stands.",
    "rollback": "True for a row that undoes an earlier one of the same transaction (ROLLBACK = 1).",
    "seg_owner": "Owner of the segment.",
    "table_name": "Name of the table.",
    "row_id": "ROWID of the row, as LogMiner shows it.",
    "sql_redo": "The statement that redoes the change, with continuation pieces (CSF) joined. It holds row values.",
    "status": "V$LOGMNR_CONTENTS.STATUS: 0 is translated; 2 and 3 are not.",
    "info": "V$LOGMNR_CONTENTS.INFO.",
    "timestamp": "Database time of the change, without a zone.",
    "thread": "Redo thread.",
    "rs_id": "Address of the redo record in its thread.",
    "ssn": "With `rs_id` the identity of a logical row.",
    "data_obj": "Object number of the segment (DATA_OBJ#).",
    "data_objv": "Version of the object (DATA_OBJV#): grows with DDL.",
    "data_objd": "Physical object number (DATA_OBJD#): changes with TRUNCATE and MOVE.",
}
TRANSACTION: Mapping[str, str] = {
    "xid": "Transaction, as in the redo files.",
    "state": "`commit`, `rollback` or `evicted` for one that ended; `open`, `undone`, `ending`, `rolled_back`, `displaced` (kept beside its `evicted`) or `released` for one of the ledger after the window.",
    "start_scn": "SCN at which it began, if that was seen.",
    "commit_scn": "SCN of its COMMIT or ROLLBACK; NULL while it is open.",
    "commit_ordinal": "Ordinal of that row: orders transactions with one commit SCN.",
    "commit_timestamp": "Database time of that row, without a zone.",
    "username": "User who ran it.",
    "first_ordinal": "Ordinal of its first row: names the first window in which its rows landed.",
    "has_rollback": "True if any of its rows undoes another one.",
    "tables": "Captured tables that it touched so far.",
    "table_rows": "Captured redo rows so far of each of these tables, over all windows; apply must find as many.",
    "rows": "Captured redo rows so far of all tables.",
    "undone": "Those of them that take another one back.",
    "late": "True if its COMMIT appeared for the first time at or below the window's lower end.",
    "session_id": "SID of the session that began it.",
    "serial": "Serial number of that session.",
    "absent_scn": "SCN at which Oracle was first found to no longer know it.",
    "start_timestamp": "Database time at which it began, without a zone, if that was seen.",
    "client_id": "CLIENT_IDENTIFIER of the session that began it.",
    "windows": "The windows in which its captured rows landed, as runs of ordinals (first, last, first, last …): apply reads these. At most 64 runs, so a window may be named that has none.",
}
CHANGE: Mapping[str, str] = {
    "_cdc_op": "`c` insert, `u` update, `d` delete, `r` row read by a snapshot chunk, `t` TRUNCATE of the table (with `on_truncate: follow`), without images.",
    "_cdc_commit_scn": "SCN of the transaction's COMMIT; for `r` the SCN as of which the chunk was read.",
    "_cdc_ordinal": "Order among changes of one commit SCN; for `r` the highest value of all (slightly lower for chunks between watermarks), so that a chunk's row comes after all changes of its SCN.",
    "_cdc_scn": "SCN of the redo row.",
    "_cdc_xid": "Transaction.",
    "_cdc_window": "`scn_high` of the window that brought the change; for `r` the chunk's SCN.",
    "_cdc_timestamp": "Database time of the change, without a zone.",
    "_cdc_commit_timestamp": "Database time of the COMMIT, without a zone.",
    "_cdc_username": "User who ran the transaction.",
    "_cdc_rs_id": "Address of the redo record.",
    "_cdc_thread": "Redo thread.",
    "_cdc_row_id": "ROWID of the row.",
    "_cdc_snapshot": "Snapshot and chunk for rows that a chunk wrote (`r`, and `d` for rows that a chunk no longer found); NULL for changes from redo.",
    "_cdc_absent": "Columns that the change does not carry in `after` (for `d` in `before`): unknown, not NULL. Usually empty.",
    "_cdc_before_absent": "Columns that the change does not carry in `before`: unknown, not NULL.",
    "_cdc_columns": "Number of the change log's user columns that the table had, or had had, when the row was written, so that a column added later differs from NULL.",
    "_cdc_ssn": "With `_cdc_rs_id` the identity of a logical redo row (SSN). Optional.",
    "_cdc_start_scn": "SCN at which the transaction began; NULL if its beginning was not seen. Optional.",
    "_cdc_start_timestamp": "Database time at which the transaction began, without a zone. Optional.",
    "_cdc_client_id": "CLIENT_IDENTIFIER of the session that began the transaction. Optional.",
    "_cdc_landed": "When Redolake had read the window, or began to read the chunk, in UTC. Optional.",
    "_cdc_redo_sql": "The statement as LogMiner showed it, without the values of columns that are left out or masked. Optional, and not filled by default.",
    "_cdc_skipped": "Why the configuration (`events`) does not want the change among the events: `user`, `client`, `operation` or `unchanged`; NULL where it does.",
}
TRANSACTIONS_TABLE: Mapping[str, str] = {
    "id": "Transaction: `_cdc_xid` of its changes.",
    "status": "`END`: it has committed.",
    "event_count": "Its changes in all change logs.",
    "data_collections": "The same per table (`OWNER.TABLE`).",
    "start_scn": "SCN at which it began; NULL if that was not seen.",
    "commit_scn": "SCN of its COMMIT.",
    "start_timestamp": "Database time at which it began, without a zone.",
    "commit_timestamp": "Database time of its COMMIT, without a zone.",
    "username": "User who ran it.",
    "client_id": "CLIENT_IDENTIFIER of the session that began it.",
    "scn_high": "Upper end of the window that brought it.",
    "commit_ordinal": "Orders transactions with one commit SCN.",
    "landed": "When Redolake had read that window, in UTC.",
}
SCHEMA_CHANGES_TABLE: Mapping[str, str] = {
    "owner": "Owner of the table.",
    "table_name": "Its name.",
    "scn": "SCN from which the definition holds; with the three columns around it the row's name.",
    "type": "`CREATE` for the first definition, `ALTER`, `DROP`, `TRUNCATE`.",
    "timestamp": "Database time of the DDL, without a zone; NULL for what a snapshot read.",
    "ddl": "The statement as Oracle logged it; NULL for what a snapshot read.",
    "changes": "What became of the table, in words.",
    "is_followed": "False where the table left the stream with it.",
    "columns": "The captured columns from then on: name, Oracle's type, whether it may be NULL, and the text of its default; then the type's parts (its name, a number's digits or a text's characters, the scale), the column's place, the name that the change replaced, whether it is GENERATED … AS IDENTITY, and the character set in which Oracle stores its text. NULL where the table left.",
    "key": "The columns of its key.",
    "scn_high": "Upper end of the window that brought the row.",
}
WINDOW_MANIFEST: Mapping[str, str] = {
    "source": "Name of the source.",
    "window": "`scn_low` and `scn_high`.",
    "ordinal": "The window's number in the source, from 0.",
    "mining_low": "Redo with `mining_low < SCN <= scn_high` was looked at.",
    "redo_files": "Each redo file, or change file: name, rows, bytes, SHA-256.",
    "transactions_file": "The transactions file, likewise.",
    "files_by_table": "Per table the redo files with rows of it, by their place in `redo_files`.",
    "rows_by_table": "Redo rows per captured table.",
    "tables_committed": "Tables that transactions committed in this window touched: the only ones that the lake visits.",
    "transactions_committed": "Number of transactions that committed.",
    "transactions_rolled_back": "Number of transactions that rolled back.",
    "transactions_open": "Number of transactions open at the end.",
    "logs": "Each redo log that was read: thread, sequence, name, first and next SCN.",
    "schemas": "Definition of each captured table at `scn_high`. Where these are many (64 kB), the field `definitions` stands in its place: the digest of a set in `<source>/kept/definitions/<digest>/manifest.json`, which all windows with the same definitions name.",
    "schema_changes": "DDL of captured tables inside the window, in order, with the definition that each leads to. `empties`: a TRUNCATE that is followed; `partitions`: of these partitions alone, with the bounds of their rows (`sub`: and of their subpartition); `has_new_rows`: other rows came into them, which a chunk of the snapshot `x<SCN of the DDL>` reads. A definition that a signal gave has the ordinal -1, and names the signal in place of the DDL.",
    "signals": "What became of the definitions that signals gave: the signal's id, the SCN, and in `refusal` why one does not hold.",
    "is_gap": "No table takes part in the window, so nothing was read: its redo is gone, or no table was captured.",
    "unfit_values": "By table: values of changes that landed typed, and are NULL because the form of their column does not hold them (`on_unfit_value`).",
    "resetlogs_change": "Incarnation of the database.",
    "positions": "How far each redo thread was read: the next pass takes redo that entered the log late from there.",
    "transactions_released": "Transactions that were given up in the window: Oracle no longer knows them, and no end of them was mined.",
    "transactions_evicted": "Transactions that left the ledger without an end, since another one began in their slot.",
    "rows_mined": "Rows that the LogMiner pass gave: those of captured tables, and ends of transactions.",
    "mining_start_seconds": "Seconds until LogMiner had started.",
    "mining_fetch_seconds": "Seconds in which Redolake waited for its rows.",
    "transactions_late": "Transactions whose COMMIT appeared for the first time at or below the window's lower end.",
    "late_scn": "Lowest SCN of such a COMMIT.",
    "tables_late": "Captured tables that such transactions touched.",
    "seconds": "Time that capture took.",
    "joined": "Tables whose stream begins with the window, each with the SCN above which its redo was read again.",
    "data_objects": "The numbers of each table's data objects (DATA_OBJECT_ID) as of the window's end, as sums: how many, their total, the total of their squares, and the newest. A table is left out where the dictionary did not show them.",
    "planned": "What the metadata store knew of the window: its partition key, when it was planned and when it ended, from which ordinal on all windows before it are idle, and the digest of the manifest before it.",
    "left": "Tables whose stream ends in the window: up to which SCN, why, and the way out.",
    "landed": "When the window landed, in UTC.",
    "reader": "Where a reader of typed changes continues with the next window; empty with LogMiner.",
}
CHUNK_MANIFEST: Mapping[str, str] = {
    "source": "Name of the source.",
    "schema": "Definition of the table as of the chunk's SCN.",
    "snapshot_id": "Snapshot that the chunk belongs to.",
    "number": "Number of the chunk in the snapshot, from 0.",
    "scn": "SCN as of which the rows were read, or the lower watermark.",
    "files": "Each file: name, rows, bytes, SHA-256.",
    "rows": "Rows in all files.",
    "condition": "Condition of an ad hoc snapshot; null for a whole table.",
    "seconds": "Time that reading took.",
    "landed": "When reading of the chunk began, in UTC.",
    "unfit_values": "Values of the chunk that are NULL because the form of their column does not hold them (`on_unfit_value`).",
    "scn_high": "Highest SCN as of which the rows may have been read; null for `scn`.",
    "have_own_keys": "Does no other chunk of the snapshot have one of its keys, of whatever SCN?",
}


def redo_columns() -> str:
    """Columns of redo files."""
    return _arrow(REDO_SCHEMA, REDO)


def transaction_columns() -> str:
    """Columns of transaction files."""
    return _arrow(TRANSACTION_SCHEMA, TRANSACTION)


def change_columns() -> str:
    """Columns of a change log before ``before`` and ``after``."""
    rows = [
        (code(name), code(spark_type(kind)), _meaning(CHANGE, name)) for name, kind in CHANGE_FIELDS
    ]
    return table(("column", "Delta type", "meaning"), rows)


def transactions_columns() -> str:
    """Columns of the table of transactions."""
    return _delta(TRANSACTIONS, TRANSACTIONS_TABLE)


def schema_changes_columns() -> str:
    """Columns of the table of schema changes."""
    return _delta(SCHEMA_CHANGES, SCHEMA_CHANGES_TABLE)


def window_manifest() -> str:
    """Fields of a window's manifest."""
    return _manifest(WindowManifest, WINDOW_MANIFEST)


def chunk_manifest() -> str:
    """Fields of a chunk's manifest."""
    return _manifest(ChunkManifest, CHUNK_MANIFEST)


def _arrow(schema: pa.Schema, meanings: Mapping[str, str]) -> str:
    rows = [
        (code(field.name), code(str(field.type)), "yes" if field.nullable else "no", _meaning(meanings, field.name))
        for field in schema
    ]  # fmt: skip
    return table(("column", "Arrow type", "may be NULL", "meaning"), rows)


def _delta(schema: pa.Schema, meanings: Mapping[str, str]) -> str:
    rows = [
        (code(field.name), code(spark_type(field.type)), _meaning(meanings, field.name))
        for field in schema
    ]
    return table(("column", "Delta type", "meaning"), rows)


def _manifest(kind: type[WindowManifest | ChunkManifest], meanings: Mapping[str, str]) -> str:
    rows = [(code(field.name), _meaning(meanings, field.name)) for field in fields(kind)]
    return table(("field", "meaning"), rows)


def _meaning(meanings: Mapping[str, str], name: str) -> str:
    if name not in meanings:
        raise LookupError(f"{name} is new: say in docs/tools/formats.py what it means")
    return meanings[name]
