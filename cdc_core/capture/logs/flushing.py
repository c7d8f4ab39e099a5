"""How are the instances of a database made to write their redo buffers, where the user names a
table for it (``capture.flush_table``)?

A window under ``close_at: online`` ends at the lowest SCN up to which every open redo thread is on
disk. A COMMIT makes an instance write what its buffer holds, also one in which nobody else works.
It binds no redo of other sessions' open transactions: what comes late is read with a later window,
flush row or not. So nothing is lost without the row, and nothing depends on it: an instance that
cannot be reached is a warning.

Source: Debezium's flush table (``log.mining.flush.table.name``, ``rac.nodes``), whose form the
table has; Oracle Database Concepts 19c, "Log Writer Process".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from cdc_core.config import LogMinerConfig
from cdc_core.errors import CdcError, OracleUnavailableError, PreflightError, TransientError
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import OracleSession, flush_statement

_LOG = logging.getLogger(__name__)
_COUNT = "SELECT COUNT(*) FROM {table}"
_HELD = "ORA-00054"
_SCRIPT = "deploy/oracle/optional.sql"


def flush(session: OracleSession, database: OracleDatabase, how: LogMinerConfig) -> None:
    """Make the instances write their redo buffers: those of ``flush_dsns``, or the session's own;
    nothing without a flush table.

    Raises:
        PreflightError: The table is not there, the user may not update it, or it has not one row.
    """
    table = how.flushed
    if table is None:
        return
    if not how.flush_dsns:
        _flush_one(session, table)
    for dsn in how.flush_dsns:
        try:
            with database.beside(dsn).new_session() as other:
                _flush_one(other, table)
        except OracleUnavailableError as error:
            _LOG.warning("redo buffer is not flushed dsn=%s reason=%s", dsn, error.what_happened)


def check_flush_table(session: OracleSession, how: LogMinerConfig) -> Iterator[Finding]:
    """Can the row be updated? Nothing is written to find out."""
    table = how.flushed
    if table is None:
        return
    try:
        [(rows,)] = session.fetch_all(_COUNT.format(table=table.sql))
        session.check_statement(flush_statement(table))
    except CdcError as error:
        if isinstance(error, OracleUnavailableError):
            raise
        yield Finding(
            f"capture.flush_table: {table} cannot be updated: {error.what_happened}",
            f"Create the table and grant SELECT and UPDATE on it to {session.user} ({_SCRIPT})",
        )
        return
    if rows != 1:
        yield Finding(_not_one(table, rows), _one_row(table))


def _flush_one(session: OracleSession, table: TableId) -> None:
    try:
        rows = session.write_flush_row(table)
    except TransientError as error:
        if error.facts.get("ora") == _HELD:
            return  # whoever holds the row commits it, and so makes the instance write
        raise
    if rows != 1:
        raise PreflightError(_not_one(table, rows), hint=_one_row(table))


def _not_one(table: TableId, rows: int) -> str:
    return f"capture.flush_table: {table} has {rows} rows, and needs one"


def _one_row(table: TableId) -> str:
    return f"DELETE FROM {table.sql}; INSERT INTO {table.sql} (LAST_SCN) VALUES (0); COMMIT"
