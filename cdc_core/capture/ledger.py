"""Which transactions are open, and what is known of each when it ends?

Memory grows with the number of open transactions, not with their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.rows import MinedBatch
from cdc_core.landing.layout import TRANSACTION_SCHEMA
from cdc_core.model.operations import Operation
from cdc_core.model.scn import ScnWindow
from cdc_core.model.transactions import OpenTransaction

_PREFIX = 8
_UNRESOLVED = "ffffffff"
_UNKNOWN_USER = "UNKNOWN"


@dataclass(slots=True)
class _Entry:
    xid: str
    start_scn: int | None
    first_ordinal: int
    username: str | None
    has_rollback: bool = False
    rows: int = 0
    tables: set[str] = field(default_factory=set)


class TransactionLedger:
    """Open transactions while a window is read, and those that ended since they were last drained.

    ``committed``, ``rolled_back`` and ``tables_committed`` count transactions with captured rows that ended in the window.
    ``ends`` names the tables of which a transaction without a beginning committed: the first one's XID and commit SCN.
    """

    def __init__(
        self, opened: Iterable[OpenTransaction], window: ScnWindow, table_names: Sequence[str]
    ) -> None:
        self._window = window
        self._names = tuple(table_names)
        self._open = {
            one.xid: _Entry(
                one.xid, one.start_scn, one.first_ordinal, one.username,
                one.has_rollback, one.rows, set(one.tables),
            )
            for one in opened
        }  # fmt: skip
        # The newest transaction of an undo slot is the only one that can still be open.
        self._slots = {xid[:_PREFIX]: xid for xid in sorted(self._open)}
        self._ended: list[dict[str, object]] = []
        self._watched: dict[str, int | None] = {}
        self.committed = 0
        self.rolled_back = 0
        self.tables_committed: set[str] = set()
        self.ends: dict[str, tuple[str, int]] = {}

    def resolve(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Give rows of transactions that began before this LogMiner session their full XID.

        LogMiner shows the sequence part as ``ffffffff`` where it has not seen the transaction's first record; an undo slot
        has one open transaction at a time, so the ledger knows which it is.
        """
        xids = rows.column("xid")
        unresolved = pc.ends_with(xids, _UNRESOLVED)
        if not pc.any(unresolved).as_py():
            return rows
        encoded = xids.dictionary_encode()
        known = [
            self._slots.get(xid[:_PREFIX], xid) if xid.endswith(_UNRESOLVED) else xid
            for xid in encoded.dictionary.to_pylist()
        ]
        resolved = pa.array(known, pa.string()).take(encoded.indices)
        return rows.set_column(rows.schema.get_field_index("xid"), "xid", resolved)

    def watch(self, xid: str) -> None:
        """Remember at which SCN this transaction commits."""
        self._watched[xid] = None

    def commit_scn(self, xid: str) -> int | None:
        """Where a watched transaction committed; None while it is open."""
        return self._watched.get(xid)

    def observe(self, batch: MinedBatch) -> None:
        """Take notice of a batch, whose XIDs are resolved."""
        encoded = batch.rows.column("xid").dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        xids: list[str] = encoded.dictionary.to_pylist()
        first = np.empty(len(xids), dtype=np.int64)
        first[codes[::-1]] = batch.ordinals[::-1]
        entries = [
            self._entry(xid, ordinal) for xid, ordinal in zip(xids, first.tolist(), strict=True)
        ]
        self._begin(batch, codes, entries)
        self._count(batch, codes, entries)
        self._end(batch, codes, entries)

    def drain(self) -> pa.RecordBatch:
        """Transactions that ended since the last call and have captured rows, as ``TRANSACTION_SCHEMA``."""
        ended, self._ended = self._ended, []
        return pa.RecordBatch.from_pylist(ended, schema=TRANSACTION_SCHEMA)

    @property
    def ended_count(self) -> int:
        """How many transactions :meth:`drain` would give."""
        return len(self._ended)

    def open_transactions(self) -> list[OpenTransaction]:
        """The ledger after what was observed, oldest first."""
        return sorted(
            (
                OpenTransaction(
                    one.xid, one.start_scn, one.first_ordinal, one.has_rollback,
                    tuple(sorted(one.tables)), one.rows, one.username,
                )
                for one in self._open.values()
            ),
            key=lambda one: (one.first_ordinal, one.xid),
        )  # fmt: skip

    def open_batch(self) -> pa.RecordBatch:
        """The open transactions as ``TRANSACTION_SCHEMA``."""
        return pa.RecordBatch.from_pylist(
            [_row(one, "open") for one in self.open_transactions()], schema=TRANSACTION_SCHEMA
        )

    def _entry(self, xid: str, ordinal: int) -> _Entry:
        entry = self._open.get(xid)
        if entry is None:
            entry = self._open[xid] = _Entry(xid, None, ordinal, None)
        return entry

    def _begin(
        self, batch: MinedBatch, codes: npt.NDArray[np.int32], entries: list[_Entry]
    ) -> None:
        starts = np.flatnonzero(batch.operations == Operation.START)
        if not len(starts):
            return
        at = pa.array(starts)
        scns = batch.rows.column("scn").take(at).to_pylist()
        users = batch.rows.column("username").take(at).to_pylist()
        for code, scn, user in zip(codes[starts].tolist(), scns, users, strict=True):
            entry = entries[code]
            if entry.start_scn is None:
                entry.start_scn = scn
                entry.username = None if user == _UNKNOWN_USER else user

    def _count(
        self, batch: MinedBatch, codes: npt.NDArray[np.int32], entries: list[_Entry]
    ) -> None:
        captured = batch.is_change
        if not captured.any():
            return
        own = codes[captured]
        counts = np.bincount(own, minlength=len(entries))
        for code in np.flatnonzero(counts).tolist():
            entries[code].rows += int(counts[code])
        width = len(self._names)
        touched = np.unique(own.astype(np.int64) * width + batch.tables[captured])
        for code, table in zip(
            (touched // width).tolist(), (touched % width).tolist(), strict=True
        ):
            entries[code].tables.add(self._names[table])
        undone = captured & (batch.rows.column("rollback").to_numpy(zero_copy_only=False) == 1)
        for code in np.unique(codes[undone]).tolist():
            entries[code].has_rollback = True

    def _end(self, batch: MinedBatch, codes: npt.NDArray[np.int32], entries: list[_Entry]) -> None:
        ends = np.flatnonzero(
            (batch.operations == Operation.COMMIT) | (batch.operations == Operation.ROLLBACK)
        )
        if not len(ends):
            return
        at = pa.array(ends)
        scns = batch.rows.column("scn").take(at).to_pylist()
        times = batch.rows.column("timestamp").take(at).to_pylist()
        kinds = batch.operations[ends].tolist()
        ordinals = batch.ordinals[ends].tolist()
        for code, scn, time, kind, ordinal in zip(
            codes[ends].tolist(), scns, times, kinds, ordinals, strict=True
        ):
            entry = entries[code]
            self._open.pop(entry.xid, None)
            if entry.xid in self._watched and kind == Operation.COMMIT:
                self._watched[entry.xid] = scn
            if not entry.rows:
                continue
            if kind == Operation.ROLLBACK:
                self.rolled_back += 1
                self._ended.append(_row(entry, "rollback", scn, ordinal, time))
                continue
            if scn > self._window.scn_low:
                self._end_incomplete(entry, scn)
                self.committed += 1
                self.tables_committed |= entry.tables
            self._ended.append(_row(entry, "commit", scn, ordinal, time))

    def _end_incomplete(self, entry: _Entry, scn: int) -> None:
        """A transaction whose beginning was never seen may lack its first changes: its tables leave right before it."""
        if entry.start_scn is None:
            for table in sorted(entry.tables):
                self.ends.setdefault(table, (entry.xid, scn))


def _row(
    entry: _Entry | OpenTransaction,
    state: str,
    scn: int | None = None,
    ordinal: int | None = None,
    time: object = None,
) -> dict[str, object]:
    return {
        "xid": entry.xid,
        "state": state,
        "start_scn": entry.start_scn,
        "commit_scn": scn,
        "commit_ordinal": ordinal,
        "commit_timestamp": time,
        "username": entry.username,
        "first_ordinal": entry.first_ordinal,
        "has_rollback": entry.has_rollback,
        "tables": sorted(entry.tables),
        "rows": entry.rows,
    }
