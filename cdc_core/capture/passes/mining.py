"""How is LogMiner started, asked and ended?

Source: Oracle Database PL/SQL Packages and Types Reference 19c, DBMS_LOGMNR; Oracle Database
Reference 19c, V$LOGMNR_CONTENTS and V$LOGMNR_LOGS.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

import pyarrow as pa

from cdc_core.capture.logs.coverage import RedoLog
from cdc_core.capture.logs.dictionaries import start_options
from cdc_core.capture.logs.naming import Call, naming_calls, refuse_unread_logs
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.wanted_rows import WantedRows, condition_of, wanted_batches
from cdc_core.config import LogMinerConfig, LogsBy
from cdc_core.errors import CdcError, OracleError
from cdc_core.model.operations import ENDS, Operation
from cdc_core.model.scn import Scn
from cdc_core.model.texts import readable_batch
from cdc_core.oracle.session import ROOT, Binds, OracleSession

_LOG = logging.getLogger(__name__)

CONTAINER = pa.field("container", pa.string())
"""Behind the columns of :data:`MINED_SCHEMA` where the rows are those of several pluggable
databases."""

MINED_SCHEMA = pa.schema(
    [
        pa.field("scn", pa.int64()),
        pa.field("operation_code", pa.int32()),
        pa.field("rollback", pa.int32()),
        pa.field("csf", pa.int32()),
        pa.field("status", pa.int32()),
        pa.field("thread", pa.int32()),
        pa.field("ssn", pa.int64()),
        pa.field("data_obj", pa.int64()),
        pa.field("data_objv", pa.int64()),
        pa.field("data_objd", pa.int64()),
        pa.field("sequence", pa.int64()),
        pa.field("start_scn", pa.int64()),
        pa.field("container_id", pa.int32()),
        pa.field("session_id", pa.int64()),
        pa.field("serial", pa.int64()),
        pa.field("timestamp", pa.timestamp("s")),
        pa.field("xid", pa.string()),
        pa.field("seg_owner", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("row_id", pa.string()),
        pa.field("info", pa.string()),
        pa.field("rs_id", pa.string()),
        pa.field("username", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("sql_redo", pa.large_string()),
    ]
)
"""Columns of the query, in its order. One row per row of V$LOGMNR_CONTENTS, in the view's own
order."""

_SELECT = """
SELECT SCN, OPERATION_CODE, ROLLBACK, CSF, STATUS, THREAD#, SSN, DATA_OBJ#, DATA_OBJV#, DATA_OBJD#, SEQUENCE#,
       START_SCN, SRC_CON_ID, SESSION#, SERIAL#, TIMESTAMP, RAWTOHEX(XID), SEG_OWNER, TABLE_NAME, ROW_ID, INFO, RS_ID, USERNAME, CLIENT_ID,
       SQL_REDO{more}
  FROM V$LOGMNR_CONTENTS
 WHERE SCN > :scn_low AND SCN <= :scn_high{container}"""
_UNREAD = """
   AND (SCN > :{low} OR OPERATION_CODE IN ({ends}){threads})"""
_IS_HOLE = f"OPERATION_CODE = {int(Operation.MISSING_SCN)}"
_START = (
    "SYS.DBMS_LOGMNR.START_LOGMNR(STARTSCN => :scn_low, ENDSCN => :scn_high,{file}"
    " OPTIONS => {options});"
)
_FILE = " DICTFILENAME => :dictionary,"
_NO_ROWID = "SYS.DBMS_LOGMNR.NO_ROWID_IN_STMT"
_END = "BEGIN SYS.DBMS_LOGMNR.END_LOGMNR(); END;"
_NO_SESSION = "ORA-01307"
_RS_ID_WIDTH = 32
_CALLS_MAX = 500
"""So many calls are in one block: one round trip for the logs of most ranges."""


@contextmanager
def mining(
    session: OracleSession,
    logs: Sequence[RedoLog],
    scn_low: Scn,
    scn_high: Scn,
    *,
    how: LogMinerConfig | None = None,
) -> Iterator[None]:
    """Hold a LogMiner session over ``logs`` for the block; the session must be where LogMiner runs.

    ``how`` says how LogMiner learns its logs, and which dictionary names the rows: by default it is
    told each file, and the online catalog does.

    Raises:
        LogsNotReadyError: Oracle misses or cannot open a log.
        PreflightError: The user may not use LogMiner.
    """
    if session.is_mining:  # a failure left it, and it could not be ended then
        _end(session)
    session.is_mining = True
    how = how or LogMinerConfig()
    try:
        calls = [*naming_calls(logs, how.logs), _start(how, scn_low, scn_high)]
        for at in range(0, len(calls), _CALLS_MAX):
            _call(session, calls[at : at + _CALLS_MAX])
        refuse_unread_logs(session)
        yield
    except BaseException:
        _end_after_error(session)
        raise
    _end(session)


def mined_batches(
    session: OracleSession,
    wanted: WantedRows,
    scn_high: Scn,
    *,
    rows: int,
    logs_by: LogsBy = "files",
) -> Generator[pa.RecordBatch]:
    """Rows of the started LogMiner session with ``wanted.reading.mining_low < SCN <= scn_high``:
    transaction control of all transactions, and every row of ``wanted.tables``.

    Which rows these are, whoever filters them (``wanted.query_filter``), says
    :mod:`~cdc_core.capture.passes.wanted_rows`; whose a row is, is decided by ``RowReader`` alone.
    Where redo is looked at again for what came late, most rows that were read before are left out
    here already; which of the others are new is decided by ``wanted.reading`` alone.

    Returns:
        Batches of :data:`MINED_SCHEMA`, in the view's order.
    """
    condition, named = condition_of(wanted)
    binds: dict[str, object] = {"scn_low": wanted.reading.mining_low, "scn_high": scn_high, **named}
    container = ""
    if session.is_cdb and session.container != ROOT:
        # A hole is one of the log, which is nobody's alone. Inside a pluggable database the view
        # has the rows of that one alone; that they name it is documented for the root.
        of_none = " OR SRC_CON_NAME IS NULL" if logs_by == "scn_range" else ""
        container = f" AND (SRC_CON_NAME = :container{of_none} OR {_IS_HOLE})"
        binds["container"] = session.container
    unread, unread_binds = _unread(wanted.reading)
    sql = _SELECT.format(more="", container=container) + condition + unread
    mined = _fetched(session, sql, {**binds, **unread_binds}, rows=rows, schema=MINED_SCHEMA)
    return wanted_batches(wanted, mined, rows)


def mined_of_all(
    session: OracleSession,
    wanted: Mapping[str, WantedRows],
    scn_low: Scn,
    scn_high: Scn,
    *,
    rows: int,
) -> Generator[pa.RecordBatch]:
    """The rows of several pluggable databases in one pass, with ``scn_low < SCN <= scn_high``: of
    each those that :func:`mined_batches` gives in a session that is in it; what was read before is
    left out for each by its own position. A hole in the redo is everybody's.

    Args:
        session: In the root.
        wanted: What is asked of each, by its name.

    Returns:
        Batches of :data:`MINED_SCHEMA` with :data:`CONTAINER` behind, in the view's order; of each
        those that the query lets through, which :meth:`WantedRows.selected_from` filters.
    """
    binds: dict[str, object] = {"scn_low": scn_low, "scn_high": scn_high}
    parts = []
    for number, (container, asked) in enumerate(wanted.items()):
        condition, named = condition_of(asked, f"p{number}_")
        unread, unread_binds = _unread(asked.reading, f"p{number}_")
        parts.append(f"(SRC_CON_NAME = :p{number}_container{condition}{unread})")
        binds |= {f"p{number}_container": container, **named, **unread_binds}
    select = _SELECT.format(more=", SRC_CON_NAME", container="")
    sql = f"{select}\n AND ({' OR '.join(parts)} OR {_IS_HOLE})"
    return _fetched(session, sql, binds, rows=rows, schema=MINED_SCHEMA.append(CONTAINER))


def _fetched(
    session: OracleSession, sql: str, binds: Binds, *, rows: int, schema: pa.Schema
) -> Generator[pa.RecordBatch]:
    """The batches of a query, in whose names and facts all is UTF-8. Statements are left as they
    are: a piece of one (CSF) may end inside a character."""
    with closing(session.fetch_batches(sql, binds, rows=rows, schema=schema)) as batches:
        for batch in batches:
            yield readable_batch(batch, but="sql_redo")


def _start(how: LogMinerConfig, scn_low: Scn, scn_high: Scn) -> Call:
    options = " + ".join((*start_options(how.strategy), _NO_ROWID))
    binds: dict[str, object] = {"scn_low": scn_low + 1, "scn_high": scn_high}
    if how.dictionary_file is None:
        return _START.format(file="", options=options), binds
    binds["dictionary"] = how.dictionary_file
    return _START.format(file=_FILE, options=options), binds


def _call(session: OracleSession, calls: Sequence[Call]) -> None:
    """Several calls in one block."""
    binds = {name: value for _, own in calls for name, value in own.items()}
    session.execute_block(f"BEGIN {' '.join(sql for sql, _ in calls)} END;", binds)


def _unread(reading: Reading, prefix: str = "") -> tuple[str, dict[str, object]]:
    """A condition that holds for every row that :meth:`Reading.take` calls new, and for few others;
    its binds. Of a hole it holds wherever that lies: rows that came late may be in it.

    Addresses are compared as texts of one length: padded with zeros, the one with more digits is
    the greater, since "x" sorts behind "0".
    """
    if reading.mining_low == reading.scn_low or reading.again_above is not None:
        return "", {}
    threads = ""
    binds: dict[str, object] = {f"{prefix}window_low": reading.scn_low}
    for number, position in enumerate(reading.before.values()):
        threads += f" OR THREAD# = :{prefix}t{number}"
        binds[f"{prefix}t{number}"] = position.thread
        if position.address is not None:
            threads += f" AND LPAD(LOWER(TRIM(RS_ID)), {_RS_ID_WIDTH}, '0') > :{prefix}a{number}"
            binds[f"{prefix}a{number}"] = position.address.rs_id.rjust(_RS_ID_WIDTH, "0")
    ends = _codes(*ENDS, Operation.MISSING_SCN)
    return _UNREAD.format(low=f"{prefix}window_low", ends=ends, threads=threads), binds


def _codes(*operations: Operation) -> str:
    return ", ".join(str(int(operation)) for operation in operations)


def _end(session: OracleSession) -> None:
    try:
        session.execute_block(_END)
    except OracleError as error:
        if error.facts.get("ora") != _NO_SESSION:
            raise
    session.is_mining = False


def _end_after_error(session: OracleSession) -> None:
    """End LogMiner while another error is on its way, which must not be hidden by one of this."""
    try:
        _end(session)
    except CdcError as error:
        _LOG.debug("LogMiner could not be ended: %s", error)
