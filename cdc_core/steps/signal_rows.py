"""Which rows were inserted into a signal table that is captured, by the redo that has landed?

A signal table that stands under ``tables`` is read with the windows: its rows are signals in the
order of their commits, and may be deleted in the transaction that inserted them. The first look is
a query (:class:`~cdc_core.signals.oracle_channel.OracleChannel`), and so is every look while the
table is out of the stream, and the first one behind that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import CdcError, ConfigError, SignalsUnavailableError, TransientError
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.signals import Signal
from cdc_core.schema.table import TableSchema
from cdc_core.signals.channels import KnownSignals, json_data, signal_from, used_before
from cdc_core.signals.oracle_channel import ORACLE_CHANNEL, OracleChannel, is_another
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL
from cdc_core.stage.window import staged_changes
from cdc_core.steps.context import Context
from cdc_core.steps.windows.redo_inputs import late_commits_above, redo_inputs
from cdc_core.steps.windows.table_part import definition_of, versions_until

_LOG = logging.getLogger(__name__)
_WINDOW = 1
"""Under which partition the store keeps the number of the first window that was not looked into."""
_COLUMNS = ("ID", "TYPE", "DATA")


def captured_signal_table(ctx: Context) -> TableRecord | None:
    """The record of the signal table, if its redo is in the windows."""
    name = ctx.config.signals.table
    record = None if name is None else ctx.store.tables.get(TableId.parse(name))
    return record if record is not None and record.is_captured else None


def unread_signals_from(ctx: Context) -> int | None:
    """The number of the first window whose signals nobody has read; None where they are not taken
    from windows."""
    table = captured_signal_table(ctx)
    if table is None or ORACLE_CHANNEL not in ctx.config.signals.enabled:
        return None
    return ctx.store.signals.offsets(str(table.table)).get(_WINDOW)


class RedoChannel:
    """Rows of a captured signal table: at the first look those that a query gives, also of a table
    that is back in the stream, and from then on those that committed in the windows that were
    captured since, each once.

    Args:
        ctx: The source.
        table: The record of the signal table.
        first: The channel of the query.
    """

    name = ORACLE_CHANNEL

    def __init__(self, ctx: Context, table: TableRecord, first: OracleChannel) -> None:
        self._ctx, self._table, self._first = ctx, table, first
        self._next: int | None = None

    def read(self, known: KnownSignals) -> list[Signal]:
        """The rows that are not known yet.

        Raises:
            SignalsUnavailableError: A window's rows cannot be read as signals.
        """
        ctx = self._ctx
        newest = ctx.captured_windows()
        self._next = newest[0].ordinal + 1 if newest else 0
        begun = known.offsets(str(self._table.table)).get(_WINDOW)
        if begun is None:
            return self._first.read(known)
        found: list[Signal] = []
        if begun < self._table.first_ordinal:  # it was out of the stream since: no window has all
            found = self._first.read(known)
        before = {signal.id: signal for signal in (*found, *known.find())}
        for signal in self._inserted(begun):
            if (one := before.get(signal.id)) is None:
                found.append(signal)
            elif is_another(signal, one):
                found.append(used_before(signal))
        return found

    def acknowledge(self) -> None:
        """Note how far was read."""
        self._first.acknowledge()
        if self._next is not None:
            name = str(self._table.table)
            self._ctx.store.signals.keep_offsets(name, {_WINDOW: self._next})

    def _inserted(self, begun: int) -> Iterator[Signal]:
        ctx = self._ctx
        ordinals = range(max(begun, self._table.first_ordinal), self._next or 0)
        for record in ctx.store.windows.find(ordinals=ordinals):
            try:
                rows = list(_rows(ctx, record, self._table)) if not record.is_gap else []
            except TransientError:
                raise
            except CdcError as error:
                raise SignalsUnavailableError(
                    "rows of the signal table cannot be read from a window",
                    hint=error.hint,
                    table=self._table.table,
                    window=record.key,
                    reason=error.message,
                ) from error
            for signal_id, kind, text in rows:
                yield signal_from(
                    ctx.source, self.name, str(signal_id), str(kind or ""), json_data(text)
                )


def _rows(ctx: Context, record: WindowRecord, state: TableRecord) -> Iterator[tuple[Any, ...]]:
    """Id, type and data of the rows that committed in a window, in the order of their commits;
    without Debezium's watermarks."""
    manifest, _ = ctx.window_manifest(record.window)
    table = state.table
    if str(table) not in manifest.tables_committed:
        return
    covered = ctx.store.chunks.covered_scn(table)
    landed = redo_inputs(ctx, record, manifest, state, late_commits_above(manifest, state, covered))
    schema = ctx.visible(definition_of(ctx, manifest, table))
    earlier = versions_until(ctx, table, manifest.window.scn_high)
    decoder = ChangeDecoder(schema, manifest.window.scn_high, earlier=earlier)
    names = [_stored_name(schema, name) for name in _COLUMNS]
    changes: list[dict[str, Any]] = []
    for batch in staged_changes(landed.rows(landed.committed()), decoder):
        changes += batch.filter(pc.is_in(batch["_cdc_op"], pa.array(["c", "u"]))).to_pylist()
    inserted: dict[tuple[str, str], dict[str, Any]] = {}
    for change in sorted(changes, key=lambda one: (one[COMMIT_SCN], one[ORDINAL])):
        after = {name: change["after"][name] for name in names if name not in change["_cdc_absent"]}
        place = change["_cdc_xid"], str(change["after"][names[0]])
        if change["_cdc_op"] == "c":
            inserted[place] = dict.fromkeys(names) | after
        elif place in inserted:  # a LOB comes behind its insert
            inserted[place] |= after
    for row in inserted.values():
        signal_id, kind, text = (row[name] for name in names)
        if kind not in ("snapshot-window-open", "snapshot-window-close"):
            yield signal_id, kind, text


def _stored_name(schema: TableSchema, name: str) -> str:
    """What a column is stored as.

    Raises:
        ConfigError: The table has no such column.
    """
    if name not in schema.column_names:
        raise ConfigError(
            "the signal table lacks a column",
            hint="A signal table has the columns ID, TYPE and DATA, all of them captured.",
            table=schema.table,
            column=name,
        )
    return schema.column(name).stored_as
