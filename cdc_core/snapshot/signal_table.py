"""Which rows of a signal table in Oracle are signals that nobody has taken yet?

Debezium acts on rows that it meets in the redo behind its position. Here the table is queried, and the same holds: rows that
were in it at the source's position when it was looked at first are not acted on, and are recorded as rejected.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError, PreflightError, SnapshotTooOldError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.signals import SIGNAL_TYPE_MAX, Signal
from cdc_core.oracle.session import OracleSession
from cdc_core.snapshot.signals import refusal_of_id, shortened_id
from cdc_core.state.json_text import json_from_text, text_from_json
from cdc_core.state.texts import storable

ORACLE_CHANNEL = "oracle"
_NO_WATERMARKS = "(TYPE IS NULL OR TYPE NOT IN ('snapshot-window-open', 'snapshot-window-close'))"
"""Debezium leaves two rows in its signal table for each chunk that it reads."""

_ROWS = "SELECT ID, TYPE, DATA FROM {table} WHERE {signals} ORDER BY {order}"
_OLD = "SELECT ID FROM {table} AS OF SCN :scn WHERE {signals}"
_OLD_BY_BLOCK = "SELECT ID FROM {table} WHERE ORA_ROWSCN <= :scn AND {signals}"
"""ORA_ROWSCN is at or above the SCN at which a row committed: a table that was made later has no old row."""

_PRESENT = "SELECT ID FROM {table} WHERE {signals}"
_COMMITTED = "SELECT ORA_ROWSCN FROM {table} WHERE ID = :id"


class KnownSignals(Protocol):
    """What reading a signal table needs of the metadata store."""

    def find(self, source: str) -> Sequence[Signal]:
        """All signals of a source."""

    def table_scn(self, source: str, name: str) -> Scn | None:
        """The SCN from which on rows of a signal table are signals; None before the first look."""

    def begin_table(self, source: str, name: str, scn: Scn) -> None:
        """Note the first look."""

    def add(self, record: Signal) -> bool:
        """Add a signal unless its id is known."""


def take_rows(
    session: OracleSession, config: SourceConfig, kept: KnownSignals, position: Scn
) -> None:
    """Put every new row of the configured table into the store, in the order of commits as far as ORA_ROWSCN tells.

    The table is only read. A row that cannot be a signal, one whose id was used for another request, and one that was there
    before the first look are put there as rejected signals, with the reason.

    Args:
        position: Up to which SCN the source has captured. At the first look, rows that the table had then are old.

    Raises:
        ConfigError: No signal table is configured.
        PreflightError: It is not there or may not be read.
    """
    if config.signals.table is None:
        raise ConfigError("no signal table is configured", hint="Name one under signals.table.")
    table = TableId.parse(config.signals.table)
    begun = kept.table_scn(config.name, str(table))
    old = _rows_before(session, table, position) if begun is None else frozenset[str]()
    known = {signal.id: signal for signal in kept.find(config.name)}
    for signal in read_signal_table(session, config):
        before = known.get(signal.id)
        if before is None:
            kept.add(_as_old(signal, position) if signal.id in old else signal)
        elif _is_another(signal, before):
            kept.add(_as_used(signal))
    kept.begin_table(config.name, str(table), position)


def read_signal_table(session: OracleSession, config: SourceConfig) -> list[Signal]:
    """Every row of the configured table but Debezium's watermarks, as a signal: rejected where it cannot be one.

    Raises:
        PreflightError: The table is not there or may not be read.
    """
    table = TableId.parse(str(config.signals.table))
    rows = _ordered_rows(session, table)
    return [_record(config.name, str(row[0]), str(row[1] or ""), row[2]) for row in rows]


def committed_scn(session: OracleSession, config: SourceConfig, signal: Signal) -> Scn | None:
    """At or above which SCN did a row of the signal table commit? None where Oracle does not say.

    ORA_ROWSCN is that of the row's block, unless the table has ROWDEPENDENCIES: an upper bound (SQL Language Reference 19c).
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
    """The ids that the table had as of an SCN, as well as Oracle can say; of a view, those that it has now."""
    words = {"table": table.sql, "signals": _NO_WATERMARKS}
    for query in (_OLD, _OLD_BY_BLOCK):
        try:
            rows = session.fetch_all(query.format(**words), {"scn": scn})
        except (SnapshotTooOldError, PreflightError):
            continue
        break
    else:
        rows = session.fetch_all(_PRESENT.format(**words))
    return frozenset(_record("", str(row[0]), "", None).id for row in rows)


def _as_old(signal: Signal, scn: Scn) -> Signal:
    return _rejected(
        signal,
        signal.id,
        f"its row was in the signal table before Redolake's position (SCN {scn}); to act on it, insert it under a new id",
    )


def _is_another(signal: Signal, before: Signal) -> bool:
    """Does a row ask for something else than the signal that had its id? What was taken may have an ``scn`` besides."""
    if before.channel != ORACLE_CHANNEL:
        return True
    if before.state == "rejected" and not before.data:
        return False
    asked = {key: value for key, value in before.data.items() if key != "scn"}
    kept = json_from_text(storable(text_from_json(signal.data)))  # as the store gives it back
    asks = {key: value for key, value in kept.items() if key != "scn"}
    return (signal.type, asks) != (before.type, asked)


def _as_used(signal: Signal) -> Signal:
    content = json.dumps([signal.id, signal.type, signal.data], sort_keys=True)
    return _rejected(
        signal,
        shortened_id(signal.id, content),
        "its id was used for another signal before; insert the row under a new id",
    )


def _rejected(signal: Signal, signal_id: str, reason: str) -> Signal:
    return Signal(
        id=signal_id,
        source=signal.source,
        type=signal.type,
        data=signal.data,
        channel=signal.channel,
        state="rejected",
        reason=reason,
    )


def _record(source: str, signal_id: str, kind: str, text: str | None) -> Signal:
    """A row of the table, whatever is in it: what cannot be a signal is a rejected one, under an id that the store can hold."""
    refusal = refusal_of_id(signal_id)
    try:
        data = json.loads(text or "{}")
    except (ValueError, RecursionError):
        data = None
    if len(kind) > SIGNAL_TYPE_MAX:
        refusal = refusal or f"its type has more than {SIGNAL_TYPE_MAX} characters"
    if not isinstance(data, dict):
        refusal = refusal or "its data is not a JSON object"
    if refusal is None:
        return Signal(id=signal_id, source=source, type=kind, data=data, channel=ORACLE_CHANNEL)
    return Signal(
        id=signal_id if refusal_of_id(signal_id) is None else shortened_id(signal_id, signal_id),
        source=source,
        type=storable(kind)[:SIGNAL_TYPE_MAX],
        data={},
        channel=ORACLE_CHANNEL,
        state="rejected",
        reason=refusal,
    )
