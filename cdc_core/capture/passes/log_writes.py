"""In which order are rows followed, where the view shows those of one log write in another one than
they came about in?

One write of the log gathers the strands of several transactions, and nothing says in what order,
nor whether LogMiner sorts it. So inside a log write a START can stand behind the first row of its
transaction, a COMMIT in front of its last one, and a slot's next transaction in front of the end of
the one that had it. No SCN tells either: rows of one write lie in each other's ranges.

What tells is the XID: a transaction's rows stand between its START and its COMMIT or ROLLBACK.
:class:`LogWrites` holds rows back until a log write's worth of rows has come behind them, and moves
the rows that begin or end a transaction to where their own rows are; no other row changes its
place. Batch borders mean nothing here.

* An end counts if it names its transaction in full and has an address; a ROLLBACK row without one
  may close a savepoint only.
* Where a row or an end has no full XID, the row belongs in front of an end of its undo slot with a
  higher SCN: what begins later in the slot has higher ones. With equal SCNs the view's order
  counts.

What comes still later is named by the ledger
(:meth:`~cdc_core.capture.transactions.ledger.TransactionLedger.finish`).

Source: said by maintainers of a redo parser, with SCNs and XIDs of real redo
(`tests/capture/test_log_writes.py` has the shapes).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.capture.passes.batches import MinedBatch, joined_batches
from cdc_core.capture.passes.reading_position import without_address
from cdc_core.model.operations import ENDS, Operation
from cdc_core.model.transactions import NO_XID, SLOT_DIGITS, UNRESOLVED

ROWS_HELD = 20_000
BYTES_HELD = 32 * 1024**2
"""So many rows, or bytes of them, are held back. A log write is as long as the log buffer at most,
some MiB by default."""

_NEVER = np.iinfo(np.int64).max

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class LogWrites:
    """Batches on their way to the ledger; each comes out with as many rows as it had."""

    _held: deque[MinedBatch] = field(default_factory=deque)

    def take(self, batch: MinedBatch) -> Iterator[MinedBatch]:
        """Hold a batch back; give those behind which enough has come."""
        self._held.append(batch)
        self._put_in_order()
        rows = sum(len(one.ordinals) for one in self._held)
        size = sum(one.rows.nbytes for one in self._held)
        while len(self._held) > 1:
            first = self._held[0]
            rows, size = rows - len(first.ordinals), size - first.rows.nbytes
            if rows < ROWS_HELD and size < BYTES_HELD:
                return
            yield self._held.popleft()

    def end(self) -> Iterator[MinedBatch]:
        """All batches were taken: give those that are left."""
        while self._held:
            yield self._held.popleft()

    def _put_in_order(self) -> None:
        order = order_of(self._held)
        if order is None:
            return
        whole = joined_batches(*self._held)
        moved = MinedBatch(
            whole.rows.take(pa.array(order)),
            whole.ordinals,  # an ordinal is a place
            whole.operations[order],
            whole.tables[order],
        )
        ends = np.cumsum([len(one.ordinals) for one in self._held]).tolist()
        starts = [0, *ends[:-1]]
        self._held = deque(
            moved.slice(start, end - start) for start, end in zip(starts, ends, strict=True)
        )


def order_of(batches: Collection[MinedBatch]) -> Ints | None:
    """The places of the rows of some batches in the order in which they are followed; None where
    that is theirs. Pure."""
    encoded = _column(batches, "xid").dictionary_encode()
    codes: npt.NDArray[np.int32] = encoded.indices.to_numpy(zero_copy_only=False)
    xids: list[str] = encoded.dictionary.to_pylist()
    operations = np.concatenate([one.operations for one in batches])
    is_partial = np.array([xid.endswith(UNRESOLVED) for xid in xids], dtype=np.bool_)
    is_full = ~is_partial & np.array([xid != NO_XID for xid in xids], dtype=np.bool_)
    full = is_full[codes]
    is_commit = operations == Operation.COMMIT
    is_start = full & (operations == Operation.START)
    is_end = full & (is_commit | _rollbacks_with_address(batches, operations))
    at = np.arange(len(codes), dtype=np.int64)
    last = np.full(len(xids), -1, dtype=np.int64)
    last[codes[~is_end]] = at[~is_end]
    first = np.full(len(xids), len(codes), dtype=np.int64)
    others = at[~is_start][::-1]
    first[codes[others]] = others
    place = 4 * at
    early = is_end & (last[codes] > at)
    place[early] = 4 * last[codes[early]] + 2
    late = is_start & (first[codes] < at)
    place[late] = 4 * first[codes[late]] - 1
    moves = bool(early.any() or late.any())
    if is_partial.any():
        ends = is_end | (is_partial[codes] & is_commit)
        moves |= _behind_their_slots(batches, xids, codes, is_partial, ends, operations, place)
    return np.argsort(place, kind="stable") if moves else None


def _behind_their_slots(
    batches: Collection[MinedBatch],
    xids: list[str],
    codes: npt.NDArray[np.int32],
    is_partial: Mask,
    is_end: Mask,
    operations: npt.NDArray[np.int32],
    place: Ints,
) -> bool:
    """Move ends behind a START and changes of their slot with lower SCNs, of which one or the other
    has no full XID; is there any?"""
    slots = {xid[:SLOT_DIGITS] for xid, partial in zip(xids, is_partial, strict=True) if partial}
    number = {slot: at for at, slot in enumerate(sorted(slots))}
    slot_of = np.array([number.get(xid[:SLOT_DIGITS], -1) for xid in xids], dtype=np.int64)[codes]
    scns = np.concatenate(
        [one.rows.column("scn").to_numpy(zero_copy_only=False) for one in batches]
    )
    is_before = ~np.isin(operations, ENDS)
    partial, moves = is_partial[codes], False
    for slot in number.values():
        own = np.flatnonzero((slot_of == slot) & (is_end | is_before))
        lowest = np.where(is_before[own], scns[own], _NEVER)
        lowest = np.minimum.accumulate(lowest[::-1])[::-1]
        for at in np.flatnonzero(is_end[own] & (lowest < scns[own])).tolist():
            end, behind = own[at], own[at + 1 :]
            its = is_before[behind] & (scns[behind] < scns[end])
            its &= partial[behind] | partial[end]
            if its.any():
                place[end] = max(place[end], 4 * behind[its][-1] + 2)
                moves = True
    return moves


def _rollbacks_with_address(
    batches: Collection[MinedBatch], operations: npt.NDArray[np.int32]
) -> Mask:
    found: Mask = operations == Operation.ROLLBACK
    if found.any():
        at = np.flatnonzero(found)
        found[at] = ~without_address(_column(batches, "rs_id").take(pa.array(at)))
    return found


def _column(batches: Collection[MinedBatch], name: str) -> pa.Array:
    return pa.concat_arrays([one.rows.column(name) for one in batches])
