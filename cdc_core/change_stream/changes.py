"""How do the events of a window become change files and the ledger of its transactions?

A transaction comes whole, from ``begin`` to ``commit``, and no other between: so only one is open
here at a time, and what was sent in part before the writer was killed is sent again. A
transaction counts once, by its id and the SCN of its commit. One that committed below the window
and was never read came late: it lands with the window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cdc_core.change_stream.form import Event, RunEvent, Wording
from cdc_core.change_stream.landed import LandedTransactions
from cdc_core.change_stream.table_changes import TableChanges
from cdc_core.errors import DecodeError
from cdc_core.landing.change_files import ChangeFiles
from cdc_core.landing.layout import TRANSACTION_SCHEMA
from cdc_core.landing.store import LandingWriter
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.model.streams import StreamEnd

_TABLE_ROWS_MAX = 20_000
_HELD_BYTES_MAX = 48 * 1024**2
_LEDGER_ROWS = 10_000


@dataclass(slots=True)
class Transaction:
    """The transaction whose events come. It ``counts`` unless it was read before; None until its
    first captured row asks."""

    xid: str
    commit_scn: int
    first_ordinal: int
    begin: Event
    counts: bool | None = None
    rows: dict[str, int] = field(default_factory=dict)


class WindowChanges:
    """The changes and transactions of one window, while they are read.

    Args:
        window: Its bounds.
        files: Where its changes land.
        ledger: Where its transactions land, rows of ``TRANSACTION_SCHEMA``.
        landed: What windows before it have.
        wording: Of errors.
    """

    def __init__(
        self,
        window: ScnWindow,
        files: ChangeFiles,
        ledger: LandingWriter,
        landed: LandedTransactions,
        wording: Wording,
    ) -> None:
        self._wording = wording
        self._window, self._files, self._ledger, self._landed = window, files, ledger, landed
        self._current: Transaction | None = None
        self._done: set[tuple[str, int]] = set()
        self._headless: set[tuple[str, int]] = set()
        self._rows: list[dict[str, Any]] = []
        self._held = 0
        self._holding: dict[str, TableChanges] = {}
        self.ends: dict[str, StreamEnd] = {}
        self.rows_by_table: dict[str, int] = {}
        self.unfit_values: dict[str, int] = {}
        self.tables_committed: set[str] = set()
        self.tables_late: set[str] = set()
        self.committed = 0
        self.late: list[int] = []
        self.went_back = 0
        self._newest = 0

    def begin(self, event: Event) -> None:
        """A transaction begins. One that was open until now was cut off, and comes again."""
        xid = event.xid
        self._current = Transaction(xid, event.commit_scn, event.ordinal, event)
        if (xid, event.commit_scn) in self._done:
            self._current.counts = False
        self.went_back += event.commit_scn < self._newest
        self._newest = event.commit_scn

    def change(self, event: Event, changes: TableChanges) -> None:
        """A row of a captured table was changed.

        Raises:
            PreflightError: The record lacks the row's ROWID.
        """
        row_id = event.row_id
        transaction = self._counted(event, changes.name, 1)
        if transaction is not None:
            self._hold(changes, changes.add(event, transaction.xid, row_id))

    def commit(self, event: Event) -> None:
        """The transaction has ended."""
        transaction = self._transaction_of(event)
        if transaction is None:
            return
        self._current = None
        if transaction.counts is False:
            return
        self._done.add((transaction.xid, transaction.commit_scn))
        if not transaction.rows:
            return
        self._note(transaction, event)

    def rows(self, event: RunEvent, changes: TableChanges) -> None:
        """Rows of a captured table were changed."""
        if self._counted(event, changes.name, len(event)) is not None:
            self._hold(changes, changes.add_run(event))

    def _counted(self, event: Event | RunEvent, table: str, rows: int) -> Transaction | None:
        """The event's transaction, which counts these rows; None where they are not wanted."""
        transaction = self._transaction_of(event)
        if transaction is None or not self._is_wanted(transaction):
            return None
        end = self.ends.get(table)
        if end is not None and event.commit_scn > end.scn:
            return None
        transaction.rows[table] = transaction.rows.get(table, 0) + rows
        return transaction

    def _hold(self, changes: TableChanges, size: int) -> None:
        self._holding[changes.name] = changes
        self._held += size
        if changes.count >= _TABLE_ROWS_MAX:
            self.write(changes)
        elif self._held >= _HELD_BYTES_MAX:
            self.write(max(self._holding.values(), key=lambda one: one.bytes))

    def write(self, changes: TableChanges) -> None:
        """Write what is held back of a table."""
        table = changes.name
        self._holding.pop(table, None)
        if not changes.count:
            return
        self._held -= changes.bytes
        rows, error, failed = changes.take()
        self.unfit_values[table] = self.unfit_values.get(table, 0) + changes.take_unfit()
        if rows.num_rows:
            self._files.write(changes.schema, rows)
            self.rows_by_table[table] = self.rows_by_table.get(table, 0) + rows.num_rows
        if error is not None:
            self.ends.setdefault(table, self._end(changes.schema.table, error, failed))

    def close(self) -> None:
        """Write all that is held back.

        Raises:
            DecodeError: A transaction lacks its beginning, and not again with it.
        """
        if lost := self._headless - self._done:
            xid, scn = min(lost, key=lambda one: one[1])
            raise DecodeError(
                f"a transaction of {self._wording.name} lacks its beginning",
                hint=self._wording.whole,
                xid=xid,
                commit_scn=scn,
            )
        for changes in list(self._holding.values()):
            self.write(changes)
        self._write_ledger()

    def _transaction_of(self, event: Event | RunEvent) -> Transaction | None:
        """The open transaction; None where the event's is another, whose beginning did not come: a
        part of one that was sent before, or comes again."""
        if self._current and event.is_of(self._current.begin):
            return self._current
        if event.commit_scn > self._window.scn_low:
            self._headless.add((event.xid, event.commit_scn))
        return None

    def _is_wanted(self, transaction: Transaction) -> bool:
        if transaction.counts is None:
            below = transaction.commit_scn <= self._window.scn_low
            transaction.counts = not (
                below and self._landed.has(transaction.xid, transaction.commit_scn)
            )
        return transaction.counts

    def _note(self, transaction: Transaction, end: Event) -> None:
        is_late = transaction.commit_scn <= self._window.scn_low
        names = list(transaction.rows)
        self.committed += 1
        self.tables_committed.update(names)
        if is_late:
            self.late.append(transaction.commit_scn)
            self.tables_late.update(names)
        self._rows.append(
            {
                **transaction.begin.transaction(),
                **end.transaction(),
                "xid": transaction.xid,
                "state": "commit",
                "commit_scn": transaction.commit_scn,
                "commit_ordinal": end.ordinal,
                "first_ordinal": transaction.first_ordinal,
                "has_rollback": False,
                "tables": names,
                "table_rows": list(transaction.rows.values()),
                "rows": sum(transaction.rows.values()),
                "undone": 0,
                "late": is_late,
                "windows": [],
            }
        )
        if len(self._rows) >= _LEDGER_ROWS:
            self._write_ledger()

    def _write_ledger(self) -> None:
        if self._rows:
            self._ledger.write(pa.RecordBatch.from_pylist(self._rows, schema=TRANSACTION_SCHEMA))
            self._rows = []

    def _end(self, table: TableId, error: DecodeError, commit_scn: int) -> StreamEnd:
        facts = {name: value for name, value in error.facts.items() if name != "row"}
        told = type(error)(error.message, hint=error.hint, **facts, commit_scn=commit_scn)
        scn = max(int(self._window.scn_low), commit_scn - 1)
        return StreamEnd(table, scn, told.what_happened, told.hint, "undecodable")
