"""The channel of a signal table in Oracle: which of its rows are signals that nobody has taken yet?

Debezium acts on rows that it meets in the redo behind its position. Here the table is queried, and
the same holds: rows that were in it at the source's position when it was looked at first are not
acted on, and are recorded as rejected; and rows that came since the last look count though they
were deleted, as long as Oracle has the undo, in the order of their commits (Flashback Version
Query).
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError, PreflightError, SnapshotTooOldError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.signals import Signal
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.segments import PAST_ERRORS
from cdc_core.signals.channels import KnownSignals, json_data, signal_from, used_before
from cdc_core.state.column_types import json_text
from cdc_core.state.texts import storable

_LOG = logging.getLogger(__name__)
ORACLE_CHANNEL = "oracle"
_LOOK = 0
"""Under which partition the store keeps the SCN of the last look."""
_NO_WATERMARKS = "(TYPE IS NULL OR TYPE NOT IN ('snapshot-window-open', 'snapshot-window-close'))"
"""Debezium leaves two rows in its signal table for each chunk that it reads."""

_ROWS = "SELECT ID, TYPE, DATA FROM {table} WHERE {signals} ORDER BY {order}"
_OLD = "SELECT ID FROM {table} AS OF SCN :scn WHERE {signals}"
_OLD_BY_BLOCK = "SELECT ID FROM {table} WHERE ORA_ROWSCN <= :scn AND {signals}"
"""ORA_ROWSCN is at or above the SCN at which a row committed: a table that was made later has no
old row."""

_INSERTED = (
    "SELECT ID, TYPE, DATA FROM {table} VERSIONS BETWEEN SCN :low AND :high"
    " WHERE VERSIONS_OPERATION = 'I' AND VERSIONS_STARTSCN > :low AND {signals}"
    " ORDER BY VERSIONS_STARTSCN, ID"
)
"""VERSIONS_STARTSCN is the SCN at which the row's version was committed. Source: Oracle Database
Development Guide 19c, "Using Oracle Flashback Version Query"."""

_PRESENT = "SELECT ID FROM {table} WHERE {signals}"
_COMMITTED = "SELECT ORA_ROWSCN FROM {table} WHERE ID = :id"


class OracleChannel:
    """Rows of the table ``signals.table``: those that came since the last look, in the order of
    their commits, and then those that are there. The table is only read.

    A row that cannot be a signal, one whose id was used for another request, and one that was there
    before the first look are rejected signals, with the reason.

    Args:
        session: Of the database of the table.
        config: The source, whose signal table is configured.
        position: Up to which SCN the source has captured. At the first look, rows that the table
            had then are old.
    """

    name = ORACLE_CHANNEL

    def __init__(self, session: OracleSession, config: SourceConfig, position: Scn) -> None:
        if config.signals.table is None:
            raise ConfigError("no signal table is configured", hint="Name one under signals.table.")
        self._session = session
        self._config = config
        self._position = position
        self._table = TableId.parse(config.signals.table)
        self._known: KnownSignals | None = None
        self._looked_at = position

    def read(self, known: KnownSignals) -> list[Signal]:
        """Every row that is not known yet.

        Raises:
            PreflightError: The table is not there or may not be read.
        """
        position = self._position
        begun = known.table_scn(str(self._table))
        old = frozenset[str]()
        if begun is None:
            old = _rows_before(self._session, self._table, position)
        before = {signal.id: signal for signal in known.find()}
        self._known, self._looked_at = known, current_scn(self._session)
        last = known.offsets(str(self._table)).get(_LOOK, position)
        came = self._came_since(Scn(last))
        ids = {one.id for one in came}
        there = read_signal_table(self._session, self._config)
        found = []
        for signal in [*came, *(one for one in there if one.id not in ids)]:
            if (one := before.get(signal.id)) is None:
                found.append(_as_old(signal, position) if signal.id in old else signal)
            elif is_another(signal, one):
                found.append(used_before(signal))
        return found

    def acknowledge(self) -> None:
        """Note the first look; rows stay, and their ids tell that they are known."""
        if self._known is not None:
            name = str(self._table)
            self._known.begin_table(name, self._position)
            self._known.keep_offsets(name, {_LOOK: self._looked_at})

    def _came_since(self, last: Scn) -> list[Signal]:
        """Signals that were inserted since the last look, deleted ones too; none where Oracle does
        not look back, as at a view."""
        if last >= self._looked_at:
            return []
        sql = _INSERTED.format(table=self._table.sql, signals=_NO_WATERMARKS)
        binds = {"low": last, "high": self._looked_at}
        try:
            rows = self._session.fetch_all(sql, binds)
        except PAST_ERRORS as error:
            _LOG.info("signals that were deleted since SCN %d are not seen: %s", last, error)
            return []
        return [_record(self._config.name, *row) for row in rows]


def read_signal_table(session: OracleSession, config: SourceConfig) -> list[Signal]:
    """Every row of the configured table but Debezium's watermarks, as a signal: rejected where it
    cannot be one.

    Raises:
        PreflightError: The table is not there or may not be read.
    """
    table = TableId.parse(str(config.signals.table))
    rows = _ordered_rows(session, table)
    return [_record(config.name, *row) for row in rows]


def committed_scn(session: OracleSession, config: SourceConfig, signal: Signal) -> Scn | None:
    """At or above which SCN did a row of the signal table commit? None where Oracle does not say.

    ORA_ROWSCN is that of the row's block, unless the table has ROWDEPENDENCIES: an upper bound (SQL
    Language Reference 19c).
    """
    if signal.channel != ORACLE_CHANNEL or config.signals.table is None:
        return None
    table = TableId.parse(config.signals.table)
    try:
        rows = session.fetch_all(_COMMITTED.format(table=table.sql), {"id": signal.id})
    except PreflightError:  # a view has none
        return None
    return Scn(int(rows[0][0])) if rows and rows[0][0] is not None else None


def _ordered_rows(session: OracleSession, table: TableId) -> list[tuple[Any, ...]]:
    try:
        return session.fetch_all(
            _ROWS.format(table=table.sql, signals=_NO_WATERMARKS, order="ORA_ROWSCN, ID")
        )
    except (
        PreflightError
    ):  # a view has no ORA_ROWSCN; of anything else this query says what is wrong
        return session.fetch_all(_ROWS.format(table=table.sql, signals=_NO_WATERMARKS, order="ID"))


def _rows_before(session: OracleSession, table: TableId, scn: Scn) -> frozenset[str]:
    """The ids that the table had as of an SCN, as well as Oracle can say; of a view, those that it
    has now."""
    words = {"table": table.sql, "signals": _NO_WATERMARKS}
    for query in (_OLD, _OLD_BY_BLOCK):
        try:
            rows = session.fetch_all(query.format(**words), {"scn": scn})
        except (SnapshotTooOldError, PreflightError):
            continue
        break
    else:
        rows = session.fetch_all(_PRESENT.format(**words))
    return frozenset(_record("", row[0], "", None).id for row in rows)


def _as_old(signal: Signal, scn: Scn) -> Signal:
    reason = f"its row was in the signal table before Redolake's position (SCN {scn})"
    return replace(
        signal, state="rejected", reason=f"{reason}; to act on it, insert it under a new id"
    )


def is_another(signal: Signal, before: Signal) -> bool:
    """Does a row ask for something else than the signal that had its id? What was taken may have an
    ``scn`` besides."""
    if before.channel != ORACLE_CHANNEL:
        return True
    if before.state == "rejected" and not before.data:
        return False
    asked = {key: value for key, value in before.data.items() if key != "scn"}
    kept = json.loads(storable(json_text(signal.data)))  # as the store gives it back
    asks = {key: value for key, value in kept.items() if key != "scn"}
    return (signal.type, asks) != (before.type, asked)


def _record(source: str, signal_id: Any, kind: Any, text: str | None) -> Signal:
    return signal_from(source, ORACLE_CHANNEL, str(signal_id), str(kind or ""), json_data(text))
