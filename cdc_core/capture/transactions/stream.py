"""Which rows of a batch say something about transactions, and which transaction does each row
belong to?

The working arrays of one batch, for the ledger: rows are looked at one by one only where a
transaction begins, ends, is first seen, or is not named in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.capture.passes.batches import NO_TABLE, MinedBatch
from cdc_core.capture.passes.reading_position import without_address
from cdc_core.model.operations import CONTROL, ENDS, Operation
from cdc_core.model.transactions import NO_XID, UNRESOLVED, slot_of

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

UNKNOWN_USER = "UNKNOWN"
"""The user of a transaction whose beginning LogMiner has not read."""

_NOBODY = -1


class Event(NamedTuple):
    """A row that is looked at by itself. ``at`` is its place in the batch, ``code`` that of its XID
    in :attr:`Stream.entries`; ``timestamp`` is in seconds since 1970. Numbers are 0 where Oracle
    says nothing."""

    at: int
    ordinal: int
    code: int
    xid: str
    slot: str
    operation: int
    scn: int
    timestamp: int
    username: str | None
    client_id: str | None
    session_id: int
    serial: int
    start_scn: int
    is_partial: bool
    is_undo: bool
    has_no_address: bool


class StreamTransaction(Protocol):
    """What the stream must know of a transaction."""

    xid: str
    rows: int
    undone: int


E = TypeVar("E", bound=StreamTransaction)


class Stream(Generic[E]):
    """One batch and the transactions of its rows. ``entries`` has the open transaction of each
    code, or None."""

    def __init__(self, batch: MinedBatch, opened: Mapping[str, E]) -> None:
        encoded = batch.rows.column("xid").dictionary_encode()
        self._batch = batch
        self._codes: npt.NDArray[np.int32] = encoded.indices.to_numpy(zero_copy_only=False)
        self._xids: list[str] = encoded.dictionary.to_pylist()
        self.entries: list[E | None] = [opened.get(xid) for xid in self._xids]
        partial = np.array([xid.endswith(UNRESOLVED) for xid in self._xids], dtype=np.bool_)
        # Nobody's rows, and those that are given to their transactions one by one, need no cut.
        self._never_cut: Mask = partial | np.array([xid == NO_XID for xid in self._xids], np.bool_)
        self._partial: Mask = partial[self._codes] if partial.any() else np.zeros(0, np.bool_)
        self._owners = self._codes.copy() if len(self._partial) else self._codes
        self._undo: Mask = batch.rows.column("rollback").to_numpy(zero_copy_only=False) == 1
        self._changes = batch.is_change
        self._scns: Ints = batch.rows.column("scn").to_numpy(zero_copy_only=False)

    def events(self) -> Iterator[Event]:
        """In the stream's order: transaction control, rows without a full XID, and the first row of
        each transaction that is not open."""
        batch = self._batch
        wanted: Mask = np.isin(batch.operations, CONTROL)
        if len(self._partial):
            wanted |= self._partial
        first = np.empty(len(self._xids), dtype=np.int64)
        first[self._codes[::-1]] = np.arange(len(self._codes) - 1, -1, -1)
        wanted[
            [at for at, entry in zip(first.tolist(), self.entries, strict=True) if entry is None]
        ] = True
        at = np.flatnonzero(wanted)
        codes = self._codes[at].tolist()
        slots = [slot_of(xid) for xid in self._xids]
        rows = batch.rows.take(pa.array(at))
        return map(
            Event._make,
            zip(
                at.tolist(),
                batch.ordinals[at].tolist(),
                codes,
                [self._xids[code] for code in codes],
                [slots[code] for code in codes],
                batch.operations[at].tolist(),
                rows.column("scn").to_numpy().tolist(),
                _ints(rows.column("timestamp").cast(pa.int64())),
                _texts(rows.column("username")),
                _texts(rows.column("client_id")),
                _ints(rows.column("session_id")),
                _ints(rows.column("serial")),
                _ints(rows.column("start_scn")),
                (self._partial[at] if len(self._partial) else np.zeros(len(at), np.bool_)).tolist(),
                self._undo[at].tolist(),
                _rollbacks_without_address(rows).tolist(),
                strict=True,
            ),
        )

    def cut(self) -> int | None:
        """Where the batch must be cut so that no piece has rows of a transaction behind its end;
        None if it has none."""
        ends = np.flatnonzero(np.isin(self._batch.operations, ENDS))
        last = np.empty(len(self._xids), dtype=np.int64)
        last[self._codes] = np.arange(len(self._codes))
        codes = self._codes[ends]
        goes_on = (last[codes] > ends) & ~self._never_cut[codes]
        return int(ends[np.argmax(goes_on)]) + 1 if goes_on.any() else None

    def open(self, event: Event, entry: E) -> None:
        """The row's transaction is open from here on."""
        if event.is_partial:
            # The same text may name another transaction later in the batch.
            self._owners[event.at] = self._add(entry)
        else:
            self.entries[event.code] = entry

    def give(self, event: Event, entry: E) -> None:
        """The row belongs to this transaction."""
        self._owners[event.at] = self._code_of(entry)

    def leave_out(self, event: Event) -> None:
        """The row belongs to no transaction that has captured changes."""
        self._owners[event.at] = _NOBODY

    def has_changes(self, entry: E, at: int) -> bool:
        """Are captured changes of the transaction left before this row that were not taken back?"""
        own = self._is_of(entry)[:at] & self._changes[:at]
        rows = int(np.count_nonzero(own))
        undone = int(np.count_nonzero(own & self._undo[:at]))
        return entry.rows + rows > 2 * (entry.undone + undone)

    def touches(self, entry: E, at: int, places: npt.NDArray[np.int32]) -> bool:
        """Are captured changes of the transaction before this row in one of these tables?"""
        own = self._is_of(entry)[:at] & self._changes[:at]
        return bool((own & np.isin(self._batch.tables[:at], places)).any())

    def has_changes_after(self, entry: E, ordinal: int) -> bool:
        """Has the transaction a captured change behind this ordinal?"""
        own = self._is_of(entry) & self._changes
        return bool((own & (self._batch.ordinals > ordinal)).any())

    def counts(self) -> Iterator[tuple[E | None, str, int, int]]:
        """Per transaction with captured changes in the batch: it, its XID, their number, and how
        many of them are undo rows."""
        own = self._owners[self._counted()]
        if not len(own):
            return iter(())
        rows = np.bincount(own, minlength=len(self.entries))
        undone = np.bincount(self._owners[self._counted() & self._undo], minlength=len(rows))
        there = np.flatnonzero(rows)
        codes = there.tolist()
        return zip(
            [self.entries[code] for code in codes],
            [self._xids[code] for code in codes],
            rows[there].tolist(),
            undone[there].tolist(),
            strict=True,
        )

    def change_scns(self) -> Iterator[tuple[E | None, int, int, bool]]:
        """Per transaction with captured changes in the batch: it, the lowest and the highest SCN of
        these, and whether the SCNs fall somewhere."""
        mine = np.flatnonzero(self._counted())
        if not len(mine):
            return iter(())
        mine = mine[np.argsort(self._owners[mine], kind="stable")]
        owners, scns = self._owners[mine], self._scns[mine]
        starts = np.flatnonzero(np.diff(owners, prepend=-2))
        steps = np.diff(scns, prepend=scns[0])
        steps[starts] = 0
        return zip(
            [self.entries[code] for code in owners[starts].tolist()],
            np.minimum.reduceat(scns, starts).tolist(),
            np.maximum.reduceat(scns, starts).tolist(),
            (np.minimum.reduceat(steps, starts) < 0).tolist(),
            strict=True,
        )

    def touched(self, tables: int) -> Iterator[tuple[E | None, str, int, int]]:
        """Per transaction and captured table that it changed in the batch, of so many: it, its XID,
        the table, and the number of its changes."""
        mine = self._counted()
        keys, rows = np.unique(
            self._owners[mine].astype(np.int64) * tables + self._batch.tables[mine],
            return_counts=True,
        )
        codes = (keys // tables).tolist()
        return zip(
            [self.entries[code] for code in codes],
            [self._xids[code] for code in codes],
            (keys % tables).tolist(),
            rows.tolist(),
            strict=True,
        )

    def resolved(self) -> MinedBatch:
        """The batch with the XIDs of the transactions that its rows belong to; what belongs to none
        is of no table."""
        if not len(self._partial):
            return self._batch
        batch = self._batch
        out = self._owners == _NOBODY
        names = pa.array(self._xids, pa.string())
        xids = names.take(pa.array(np.where(out, self._codes, self._owners)))
        at = batch.rows.schema.get_field_index("xid")
        rows = batch.rows.set_column(at, "xid", xids)
        tables = np.where(out, np.int32(NO_TABLE), batch.tables)
        return MinedBatch(rows, batch.ordinals, batch.operations, tables)

    def _counted(self) -> Mask:
        return self._changes & (self._owners != _NOBODY) if len(self._partial) else self._changes

    def _code_of(self, entry: E) -> int:
        for code, known in enumerate(self.entries):
            if known is entry and self._xids[code] == entry.xid:
                return code
        return self._add(entry)

    def _is_of(self, entry: E) -> Mask:
        """Per row: is it of this transaction, so far? One that had no full XID at first has two
        names."""
        codes = [code for code, known in enumerate(self.entries) if known is entry]
        found: Mask = np.isin(self._owners, codes)
        return found

    def _add(self, entry: E) -> int:
        self._xids.append(entry.xid)
        self.entries.append(entry)
        return len(self.entries) - 1


def _ints(column: pa.Array) -> list[int]:
    found: list[int] = column.fill_null(0).to_numpy(zero_copy_only=False).tolist()
    return found


def _texts(column: pa.Array) -> list[str | None]:
    """As ``to_pylist``, for columns of few values."""
    encoded = column.dictionary_encode()
    values = [*encoded.dictionary.to_pylist(), None]
    codes = encoded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
    return [values[code] for code in codes.tolist()]


def _rollbacks_without_address(rows: pa.RecordBatch) -> Mask:
    found: Mask = rows.column("operation_code").to_numpy() == Operation.ROLLBACK
    if found.any():
        at = np.flatnonzero(found)
        found[at] = without_address(rows.column("rs_id").take(pa.array(at)))
    return found
