"""What do the views of sessions, their locks and their statements show?

Statements are those whose plans are kept: queries and changes, not blocks and DDL.

Source: Oracle Database Reference 19c, V$SESSION, V$LOCK, V$LOCKED_OBJECT, V$SQL. A SQL_ID is the
end of the MD5 of the text in base 32, as Oracle computes it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator

from oracle_embedded.api import session_address
from oracle_embedded.engine.dictionary.registry import Row, View, Views
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.prepared import PreparedStatement
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.transactions import Transaction

VIEWS = Views()
ROOT = "CDB$ROOT"
_NO_OWNER = 2147483644
"""V$SESSION.OWNERID of a session that does not migrate."""
_NO_OBJECT = -1
_MODES = {"RS": 2, "RX": 3, "S": 4, "SRX": 5, "X": 6}
_EXCLUSIVE = 6
_COMMANDS: dict[type, int] = {
    ast.Insert: 2, ast.MultiInsert: 2, ast.Query: 3, ast.Update: 6, ast.Delete: 7, ast.Merge: 189,
}  # fmt: skip
_SQL_ID_LETTERS = "0123456789abcdfghjkmnpqrstuvwxyz"
_SQL_ID_LENGTH = 13

_SESSION_COLUMNS = (
    "SADDR:r8 SID:n SERIAL#:n AUDSID:n PADDR:r8 USER#:n USERNAME:v128 COMMAND:n OWNERID:n TADDR:v16"
    " LOCKWAIT:v16 STATUS:v8 SERVER:v9 SCHEMA#:n SCHEMANAME:v128 OSUSER:v128 PROCESS:v24 MACHINE:v64"
    " PORT:n TERMINAL:v30 PROGRAM:v48 TYPE:v10 SQL_ADDRESS:r8 SQL_HASH_VALUE:n SQL_ID:v13"
    " SQL_CHILD_NUMBER:n SQL_EXEC_START:d SQL_EXEC_ID:n PREV_SQL_ADDR:r8 PREV_HASH_VALUE:n"
    " PREV_SQL_ID:v13 PREV_CHILD_NUMBER:n PREV_EXEC_START:d PREV_EXEC_ID:n PLSQL_ENTRY_OBJECT_ID:n"
    " PLSQL_ENTRY_SUBPROGRAM_ID:n PLSQL_OBJECT_ID:n PLSQL_SUBPROGRAM_ID:n MODULE:v64 MODULE_HASH:n"
    " ACTION:v64 ACTION_HASH:n CLIENT_INFO:v64 FIXED_TABLE_SEQUENCE:n ROW_WAIT_OBJ#:n"
    " ROW_WAIT_FILE#:n ROW_WAIT_BLOCK#:n ROW_WAIT_ROW#:n TOP_LEVEL_CALL#:n LOGON_TIME:d LAST_CALL_ET:n"
    " PDML_ENABLED:v3 FAILOVER_TYPE:v13 FAILOVER_METHOD:v10 FAILED_OVER:v3 RESOURCE_CONSUMER_GROUP:v32"
    " PDML_STATUS:v8 PDDL_STATUS:v8 PQ_STATUS:v8 CURRENT_QUEUE_DURATION:n CLIENT_IDENTIFIER:v64"
    " BLOCKING_SESSION_STATUS:v11 BLOCKING_INSTANCE:n BLOCKING_SESSION:n"
    " FINAL_BLOCKING_SESSION_STATUS:v11 FINAL_BLOCKING_INSTANCE:n FINAL_BLOCKING_SESSION:n SEQ#:n"
    " EVENT#:n EVENT:v64 P1TEXT:v64 P1:n P1RAW:r8 P2TEXT:v64 P2:n P2RAW:r8 P3TEXT:v64 P3:n P3RAW:r8"
    " WAIT_CLASS_ID:n WAIT_CLASS#:n WAIT_CLASS:v64 WAIT_TIME:n SECONDS_IN_WAIT:n STATE:v19"
    " WAIT_TIME_MICRO:n TIME_REMAINING_MICRO:n TIME_SINCE_LAST_WAIT_MICRO:n SERVICE_NAME:v64"
    " SQL_TRACE:v8 SQL_TRACE_WAITS:v5 SQL_TRACE_BINDS:v5 SQL_TRACE_PLAN_STATS:v10"
    " SESSION_EDITION_ID:n CREATOR_ADDR:r8 CREATOR_SERIAL#:n ECID:v64 SQL_TRANSLATION_PROFILE_ID:n"
    " PGA_TUNABLE_MEM:n SHARD_DDL_STATUS:v8 CON_ID:n EXTERNAL_NAME:v1024 PLSQL_DEBUGGER_CONNECTED:v5"
)
_ALWAYS: Row = {
    "COMMAND": 0, "OWNERID": _NO_OWNER, "SERVER": "DEDICATED", "TYPE": "USER", "FIXED_TABLE_SEQUENCE": 0,
    "ROW_WAIT_OBJ#": _NO_OBJECT, "ROW_WAIT_FILE#": 0, "ROW_WAIT_BLOCK#": 0, "ROW_WAIT_ROW#": 0, "PDML_ENABLED": "NO",
    "FAILOVER_TYPE": "NONE", "FAILOVER_METHOD": "NONE", "FAILED_OVER": "NO", "PDML_STATUS": "DISABLED",
    "PDDL_STATUS": "ENABLED", "PQ_STATUS": "ENABLED", "CURRENT_QUEUE_DURATION": 0, "STATE": "WAITING", "WAIT_TIME": 0,
    "SQL_TRACE": "DISABLED", "SQL_TRACE_WAITS": "FALSE", "SQL_TRACE_BINDS": "FALSE",
    "SQL_TRACE_PLAN_STATS": "FIRST EXEC", "SHARD_DDL_STATUS": "DISABLED", "PLSQL_DEBUGGER_CONNECTED": "FALSE",
}  # fmt: skip


def container_number(container: str) -> int:
    """CON_ID of a session's rows."""
    return 1 if container == ROOT else 3


# --- sessions -------------------------------------------------------------------------------------


@VIEWS.single("V$SESSION", _SESSION_COLUMNS)
def _sessions(view: View) -> Iterator[Row]:
    for session in list(view.database.sessions.values()):
        users = view.database.store.catalog
        user, schema = users.user(session.username), users.user(session.schema)
        address = session_address(session.session_id).hex()
        yield {
            **_ALWAYS,
            "SADDR": address, "SID": session.session_id, "SERIAL#": session.serial, "AUDSID": session.session_id * 1000,
            "PADDR": address, "USER#": user.object_id if user else 0, "USERNAME": session.username,
            "TADDR": _address(session.transaction), "STATUS": "ACTIVE" if session is view.session else "INACTIVE",
            "SCHEMA#": schema.object_id if schema else 0, "SCHEMANAME": session.schema, "OSUSER": session.logon.os_user,
            "TERMINAL": session.logon.terminal, "MACHINE": session.logon.machine, "PROGRAM": session.logon.program,
            "MODULE": session.attributes.get("MODULE", session.logon.program), "ACTION": session.attributes.get("ACTION"),
            "CLIENT_INFO": session.attributes.get("CLIENT_INFO"),
            "CLIENT_IDENTIFIER": session.attributes.get("CLIENT_IDENTIFIER"), "LOGON_TIME": session.logon_time,
            "SERVICE_NAME": session.container.lower(), "CON_ID": container_number(session.container),
            **_wait(view, session),
        }  # fmt: skip


@VIEWS.single("GV$SESSION", f"INST_ID:n {_SESSION_COLUMNS}")
def _all_sessions(view: View) -> Iterator[Row]:
    return ({"INST_ID": 1, **row} for row in _sessions(view))


def _wait(view: View, session: SessionState) -> Row:
    """For what a session waits, and who at the end of the chain of sessions makes it wait."""
    opened = view.database.transactions.open
    chain: list[Transaction] = []
    waiting = session.transaction
    while waiting is not None and waiting.waits_for is not None and len(chain) < len(opened):
        waiting = opened.get(waiting.waits_for)
        if waiting is not None:
            chain.append(waiting)
    if not chain:
        return {
            "BLOCKING_SESSION_STATUS": "NO HOLDER",
            "FINAL_BLOCKING_SESSION_STATUS": "NO HOLDER",
            "EVENT": "SQL*Net message from client",
            "WAIT_CLASS": "Idle",
        }
    return {
        "LOCKWAIT": _address(chain[0]), "BLOCKING_SESSION_STATUS": "VALID", "BLOCKING_INSTANCE": 1,
        "BLOCKING_SESSION": chain[0].info.session_id, "FINAL_BLOCKING_SESSION_STATUS": "VALID",
        "FINAL_BLOCKING_INSTANCE": 1, "FINAL_BLOCKING_SESSION": chain[-1].info.session_id,
        "EVENT": "enq: TX - row lock contention", "WAIT_CLASS": "Application",
    }  # fmt: skip


def _address(transaction: Transaction | None) -> str | None:
    """V$TRANSACTION.ADDR of a transaction, as text."""
    if transaction is None:
        return None
    return session_address(_slot(transaction)[2]).hex().upper()


def _slot(transaction: Transaction) -> tuple[int, int, int]:
    """Undo segment, slot and sequence of a transaction's XID."""
    xid = transaction.info.xid
    segment, slot, sequence = (int.from_bytes(xid[a:b], "little") for a, b in ((0, 2), (2, 4), (4, 8)))  # fmt: skip
    return segment, slot, sequence


@VIEWS.single("V$TEMPORARY_LOBS", "SID:n CACHE_LOBS:n NOCACHE_LOBS:n ABSTRACT_LOBS:n CON_ID:n")
def _temporary_lobs(view: View) -> Iterator[Row]:
    """How many temporary LOBs the client of each session has."""
    for session in list(view.database.sessions.values()):
        yield {
            "SID": session.session_id, "CACHE_LOBS": session.temporary_lobs, "NOCACHE_LOBS": 0, "ABSTRACT_LOBS": 0,
            "CON_ID": container_number(session.container),
        }  # fmt: skip


# --- locks ----------------------------------------------------------------------------------------

_LOCK_COLUMNS = "ADDR:r8 KADDR:r8 SID:n TYPE:v2 ID1:n ID2:n LMODE:n REQUEST:n CTIME:n BLOCK:n CON_ID:n"  # fmt: skip


@VIEWS.single("V$LOCK", _LOCK_COLUMNS)
def _locks(view: View) -> Iterator[Row]:
    """The locks of tables and of rows: those of rows are one, that of their transaction."""
    opened = dict(view.database.transactions.open)
    awaited = {item.waits_for for item in opened.values()}
    for number, transaction in opened.items():
        facts: Row = {
            "ADDR": _address(transaction), "KADDR": _address(transaction), "SID": transaction.info.session_id,
            "REQUEST": 0, "BLOCK": 0, "CTIME": int(view.database.store.now() - transaction.info.start_time),
            "CON_ID": view.database.container_id,
        }  # fmt: skip
        for table, mode in _table_locks(transaction).items():
            yield {**facts, "TYPE": "TM", "ID1": table, "ID2": 0, "LMODE": mode}
        if transaction.begun or transaction.row_locks:
            blocks = int(number in awaited)
            yield {**facts, **_rows_lock(transaction), "LMODE": _EXCLUSIVE, "BLOCK": blocks}
        holder = opened.get(transaction.waits_for or 0)
        if holder is not None:
            yield {**facts, **_rows_lock(holder), "LMODE": 0, "REQUEST": _EXCLUSIVE}


@VIEWS.single("GV$LOCK", f"INST_ID:n {_LOCK_COLUMNS}")
def _all_locks(view: View) -> Iterator[Row]:
    return ({"INST_ID": 1, **row} for row in _locks(view))


def _rows_lock(transaction: Transaction) -> Row:
    segment, slot, sequence = _slot(transaction)
    return {"TYPE": "TX", "ID1": segment << 16 | slot, "ID2": sequence}


def _table_locks(transaction: Transaction) -> dict[int, int]:
    """The mode in which a transaction holds each table: row exclusive where it changed rows."""
    held = dict(transaction.table_locks)
    changed = transaction.tables | {table for table, _ in set(transaction.row_locks)}
    return {table: _MODES[held.get(table, "RX")] for table in sorted(changed | held.keys())}


@VIEWS.single(
    "V$LOCKED_OBJECT",
    "XIDUSN:n XIDSLOT:n XIDSQN:n OBJECT_ID:n SESSION_ID:n ORACLE_USERNAME:v128 OS_USER_NAME:v128 PROCESS:v24"
    " LOCKED_MODE:n CON_ID:n",
)  # fmt: skip
def _locked_objects(view: View) -> Iterator[Row]:
    for transaction in list(view.database.transactions.open.values()):
        segment, slot, sequence = _slot(transaction)
        session = view.database.sessions.get(transaction.info.session_id)
        for table, mode in _table_locks(transaction).items():
            yield {
                "XIDUSN": segment, "XIDSLOT": slot, "XIDSQN": sequence, "OBJECT_ID": table,
                "SESSION_ID": transaction.info.session_id, "ORACLE_USERNAME": transaction.info.username,
                "OS_USER_NAME": session.logon.os_user if session else None, "LOCKED_MODE": mode,
                "CON_ID": view.database.container_id,
            }  # fmt: skip


# --- statements -----------------------------------------------------------------------------------


@VIEWS.single(
    "V$SQL",
    "SQL_TEXT:v1000 SQL_FULLTEXT:c SQL_ID:v13 SHARABLE_MEM:n PERSISTENT_MEM:n RUNTIME_MEM:n SORTS:n"
    " LOADED_VERSIONS:n OPEN_VERSIONS:n USERS_OPENING:n FETCHES:n EXECUTIONS:n PX_SERVERS_EXECUTIONS:n"
    " END_OF_FETCH_COUNT:n USERS_EXECUTING:n LOADS:n FIRST_LOAD_TIME:v76 INVALIDATIONS:n PARSE_CALLS:n"
    " DISK_READS:n DIRECT_WRITES:n DIRECT_READS:n BUFFER_GETS:n APPLICATION_WAIT_TIME:n"
    " CONCURRENCY_WAIT_TIME:n CLUSTER_WAIT_TIME:n USER_IO_WAIT_TIME:n PLSQL_EXEC_TIME:n JAVA_EXEC_TIME:n"
    " ROWS_PROCESSED:n COMMAND_TYPE:n OPTIMIZER_MODE:v10 OPTIMIZER_COST:n OPTIMIZER_ENV:r2000"
    " OPTIMIZER_ENV_HASH_VALUE:n PARSING_USER_ID:n PARSING_SCHEMA_ID:n PARSING_SCHEMA_NAME:v128"
    " KEPT_VERSIONS:n ADDRESS:r8 TYPE_CHK_HEAP:r8 HASH_VALUE:n OLD_HASH_VALUE:n PLAN_HASH_VALUE:n"
    " FULL_PLAN_HASH_VALUE:n CHILD_NUMBER:n SERVICE:v64 SERVICE_HASH:n MODULE:v64 MODULE_HASH:n"
    " ACTION:v64 ACTION_HASH:n SERIALIZABLE_ABORTS:n OUTLINE_CATEGORY:v64 CPU_TIME:n ELAPSED_TIME:n"
    " OUTLINE_SID:n CHILD_ADDRESS:r8 SQLTYPE:n REMOTE:v1 OBJECT_STATUS:v19 LITERAL_HASH_VALUE:n"
    " LAST_LOAD_TIME:v76 IS_OBSOLETE:v1 IS_BIND_SENSITIVE:v1 IS_BIND_AWARE:v1 IS_SHAREABLE:v1"
    " CHILD_LATCH:n SQL_PROFILE:v64 SQL_PATCH:v128 SQL_PLAN_BASELINE:v128 PROGRAM_ID:n PROGRAM_LINE#:n"
    " EXACT_MATCHING_SIGNATURE:n FORCE_MATCHING_SIGNATURE:n LAST_ACTIVE_TIME:d BIND_DATA:r2000"
    " TYPECHECK_MEM:n IO_CELL_OFFLOAD_ELIGIBLE_BYTES:n IO_INTERCONNECT_BYTES:n PHYSICAL_READ_REQUESTS:n"
    " PHYSICAL_READ_BYTES:n PHYSICAL_WRITE_REQUESTS:n PHYSICAL_WRITE_BYTES:n"
    " OPTIMIZED_PHY_READ_REQUESTS:n LOCKED_TOTAL:n PINNED_TOTAL:n IO_CELL_UNCOMPRESSED_BYTES:n"
    " IO_CELL_OFFLOAD_RETURNED_BYTES:n CON_ID:n IS_REOPTIMIZABLE:v1 IS_RESOLVED_ADAPTIVE_PLAN:v1"
    " IM_SCANS:n IM_SCAN_BYTES_UNCOMPRESSED:n IM_SCAN_BYTES_INMEMORY:n DDL_NO_INVALIDATE:v1"
    " IS_ROLLING_INVALID:v1 IS_ROLLING_REFRESH_INVALID:v1 RESULT_CACHE:v1 SQL_QUARANTINE:v128"
    " AVOIDED_EXECUTIONS:n",
)
def _statements(view: View) -> Iterator[Row]:
    """Statements whose plans are kept. How long they took, and how much they read, is not known."""
    users = view.database.store.catalog
    children: dict[str, int] = {}
    for (sql, rights, schema, container), (_, statement) in list(view.database.prepared.items()):
        if view.session.container not in (container, ROOT):
            continue
        child = children[sql] = children.get(sql, -1) + 1
        name = schema.partition("/")[0]
        parsing, owner = users.user(rights), users.user(name)
        loaded = _load_time(statement)
        yield {
            "SQL_TEXT": sql[:1000], "SQL_FULLTEXT": sql, "SQL_ID": sql_id(sql), "HASH_VALUE": _hash_value(sql),
            "CHILD_NUMBER": child, "LOADED_VERSIONS": 1, "LOADS": 1, "INVALIDATIONS": 0,
            "EXECUTIONS": statement.executions, "PARSE_CALLS": statement.parses, "FIRST_LOAD_TIME": loaded,
            "LAST_LOAD_TIME": loaded, "LAST_ACTIVE_TIME": statement.active_at or statement.loaded_at,
            "COMMAND_TYPE": _COMMANDS.get(type(statement.node)), "OPTIMIZER_MODE": "ALL_ROWS",
            "PARSING_USER_ID": parsing.object_id if parsing else None,
            "PARSING_SCHEMA_ID": owner.object_id if owner else None, "PARSING_SCHEMA_NAME": name,
            "OBJECT_STATUS": "VALID", "REMOTE": "N", "IS_OBSOLETE": "N", "IS_BIND_SENSITIVE": "N",
            "IS_BIND_AWARE": "N", "IS_SHAREABLE": "Y", "CON_ID": container_number(container),
        }  # fmt: skip


def _load_time(statement: PreparedStatement) -> str:
    return time.strftime("%Y-%m-%d/%H:%M:%S", time.gmtime(statement.loaded_at))


def _digest(sql: str) -> bytes:
    return hashlib.md5(sql.encode() + b"\0", usedforsecurity=False).digest()


def sql_id(sql: str) -> str:
    """The identifier of a statement: the last eight bytes of its text's MD5, in base 32."""
    digest = _digest(sql)
    number = int.from_bytes(digest[8:12], "little") << 32 | int.from_bytes(digest[12:], "little")
    letters = [_SQL_ID_LETTERS[number >> 5 * at & 31] for at in range(_SQL_ID_LENGTH)]
    return "".join(reversed(letters))


def _hash_value(sql: str) -> int:
    return int.from_bytes(_digest(sql)[12:], "little")
