"""Which rows of a mining pass are new, so that each row of the redo is read exactly once?

Redo of an open transaction can wait in memory (a private strand) until its transaction commits, the
strand is full, or the log is switched. It then enters the log behind redo with higher SCNs, and
keeps its own, lower SCN. A window that was read up to ``scn_high`` may thus get rows at or below
``scn_high`` later. Two cursors come to mind, and each alone loses rows:

* *By SCN* (``SCN > scn_low``): the late row lies below ``scn_low`` of every later window and is
  never read.
* *By address* (behind the highest address returned so far): a row **above** the upper bound of pass
  1 that lies **before** a late row below it is not returned by pass 1, since it is above the bound,
  and not by pass 2, since its address is lower than that of the late row.

**The rule.** A pass over the window ``(scn_low, scn_high]`` returns rows of the redo with SCN ≤
``scn_high``. A row of it is new iff

    ``SCN > scn_low``, or ``SCN <= scn_low`` and its address lies behind the mark of its thread,

where the mark is the highest address that any earlier pass returned of the thread.

**Proof.** Let ``r`` be a row of thread ``t``, and windows join: ``scn_low`` of a pass is
``scn_high`` of the one before.

1. *Never twice.* If an earlier pass returned ``r``, then ``SCN(r) <= scn_high`` of that pass
   ``<= scn_low`` of this one, so the first half is false; and the mark of ``t`` is at least the
   address of ``r``, so the second half is false.
2. *Never missed.* Let ``r`` be in the log when this pass reads, with ``SCN(r) <= scn_high``,
   returned by no earlier pass. If ``SCN(r) > scn_low``, it is new by the first half. Else take the
   earlier pass whose window was the first to reach ``SCN(r)``: ``r`` was not in the log when any
   pass from that one on read it, otherwise it would have been returned. Logs are only appended to,
   so ``r`` lies behind everything that those passes returned; the passes before returned only rows
   of earlier looks at the same log, which lie before it too. Hence its address is behind the mark.
3. *Reached.* LogMiner shows ``r`` only if it starts low enough. A log switch binds every waiting
   strand, so whatever waits after a pass was changed after the log began that was CURRENT before
   the pass: its SCN is at least that log's FIRST_CHANGE#. Starting at the lowest stored
   FIRST_CHANGE# of all threads is enough. (It is read before LogMiner starts; a log switch
   afterwards makes it lower than needed, never higher.) A thread that is not open has nothing
   waiting. Where the window ends at the end of switched logs, FIRST_CHANGE# lies above
   ``scn_high``, and nothing is read again.

**Edges.** A row below ``read_from``, where reading with positions began, is never new: it was read
without them, or belongs to transactions that ended before the first snapshot. A thread without a
stored position (one that was opened later, or a store of before there were positions) begins at
``scn_low``: only the first half holds for it. An all-zero address names no record: it never becomes
a mark, nor does one of thread 0. Both were seen on rows that end a transaction; those at or below
``scn_low`` are handed on, since the ledger knows by the transaction whether they were taken before.
On any other row it stops the window.

Source: measured on 23ai by others (rows late by SCN, complete after a switch and after COMMIT,
all-zero RS_ID); the schedules of tests/capture/test_schedules.py show the rule, and what each half
is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import DecodeError
from cdc_core.model.operations import CONTROL, ENDS
from cdc_core.model.redo_address import RedoAddress, ThreadPosition

Mask = npt.NDArray[np.bool_]
_NO_THREAD = 0
"""THREAD# of COMMIT rows of transactions that changed nothing."""


class Reading:
    """The position of reading during one pass: which of its rows are new, and where every thread
    stands after it.

    Args:
        scn_low: Where the window's own redo begins (exclusive).
        before: The threads' positions after the window before; None where they were not kept.
        first_scns: Per open thread, FIRST_CHANGE# of the log that is CURRENT before LogMiner
            starts.
        again_above: Rows above this SCN are handed on although they were read before, for tables
            that join with the window; None for none.
    """

    def __init__(
        self,
        scn_low: int,
        before: Iterable[ThreadPosition] | None,
        first_scns: Mapping[int, int],
        *,
        again_above: int | None = None,
    ) -> None:
        self.again_above = again_above
        self.scn_low = scn_low
        self.before = {one.thread: one for one in before or ()}
        self._first_scns = dict(first_scns)
        self._highest: dict[int, RedoAddress] = {}

    @property
    def mining_low(self) -> int:
        """Where LogMiner has to start (exclusive) so that late redo is seen, and what joining
        tables lack."""
        late = [_waiting_above(one) for one in self.before.values()]
        again = [] if self.again_above is None else [self.again_above]
        return min([self.scn_low, *late, *again])

    def take(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The new rows of a batch, and changes that are handed on again; all of them count for the
        marks.

        Args:
            rows: Columns ``scn, thread, rs_id, operation_code`` at least.

        Raises:
            DecodeError: A row that ends no transaction has no address.
        """
        self._raise(highest_addresses(rows))
        is_new = new_rows(rows, self.scn_low, self.before)
        if self.again_above is not None:
            is_change = ~np.isin(_ints(rows.column("operation_code")), CONTROL)
            is_new |= is_change & (_ints(rows.column("scn")) > self.again_above)
        return rows if is_new.all() else rows.filter(pa.array(is_new))

    def count(self, other: Reading) -> None:
        """Count the rows of another pass for the marks."""
        self._raise(other._highest)

    def after(self) -> tuple[ThreadPosition, ...]:
        """The positions to keep with the window, by thread."""
        threads = {*self.before, *self._first_scns, *self._highest}
        return tuple(self._position(thread) for thread in sorted(threads))

    def _raise(self, highest: Mapping[int, RedoAddress]) -> None:
        for thread, address in highest.items():
            known = self._highest.get(thread)
            self._highest[thread] = address if known is None else max(known, address)

    def _position(self, thread: int) -> ThreadPosition:
        before = self.before.get(thread)
        marks = [self._highest.get(thread), before.address if before else None]
        return ThreadPosition(
            thread=thread,
            first_scn=self._first_scns.get(thread),
            address=max((mark for mark in marks if mark is not None), default=None),
            read_from=before.read_from if before else self.scn_low,
        )


def new_rows(rows: pa.RecordBatch, scn_low: int, positions: Mapping[int, ThreadPosition]) -> Mask:
    """The rule, on whole columns: per row, is it new? Pure; the module says why it is right."""
    scns = rows.column("scn").to_numpy(zero_copy_only=False)
    is_new: Mask = scns > scn_low
    if is_new.all():
        return is_new
    late = np.flatnonzero(~is_new)
    addresses = _clean(rows.column("rs_id").take(pa.array(late)))
    threads = _ints(rows.column("thread"))[late]
    for thread, position in positions.items():
        own = (threads == thread) & (scns[late] > position.read_from)
        if own.any():
            is_new[late[own]] = _is_behind(addresses.filter(pa.array(own)), position.address)
    operations = _ints(rows.column("operation_code"))[late]
    nowhere = _is_zero(addresses) | (threads == _NO_THREAD)
    is_new[late[np.isin(operations, ENDS) & nowhere]] = True
    return is_new


def highest_addresses(rows: pa.RecordBatch) -> dict[int, RedoAddress]:
    """The highest address of each thread in a batch; all-zero addresses do not count.

    Raises:
        DecodeError: A row that ends no transaction has no address.
    """
    addresses = _clean(rows.column("rs_id"))
    zero = _is_zero(addresses)
    if zero.any():
        _refuse_lost(rows, zero)
    threads = _ints(rows.column("thread"))
    found = {}
    for thread in np.unique(threads[~zero & (threads != _NO_THREAD)]).tolist():
        own = (
            addresses
            if (threads == thread).all()
            else addresses.filter(pa.array(threads == thread))
        )
        highest = _highest(own)
        if not highest.is_zero:
            found[thread] = highest
    return found


def _waiting_above(position: ThreadPosition) -> int:
    """The SCN above which the thread may still get redo, as far as it was read with a position."""
    if position.first_scn is None:
        return 2**63 - 1
    return max(position.first_scn - 1, position.read_from)


def _clean(rs_ids: pa.Array) -> pa.Array:
    return pc.ascii_lower(pc.utf8_trim_whitespace(rs_ids.fill_null("")))


def without_address(rs_ids: pa.Array) -> Mask:
    """Per row: does it name no record of the redo?"""
    return _is_zero(_clean(rs_ids))


def _is_zero(addresses: pa.Array) -> Mask:
    """Empty counts as zero: there is no address either way."""
    digits = pc.utf8_ltrim(addresses, characters="0x.")
    zero: Mask = pc.equal(pc.binary_length(digits), 0).to_numpy(zero_copy_only=False)
    return zero


def _refuse_lost(rows: pa.RecordBatch, zero: Mask) -> None:
    operations = _ints(rows.column("operation_code"))
    lost = np.flatnonzero(zero & ~np.isin(operations, ENDS))
    if len(lost):
        at = int(lost[0])
        raise DecodeError(
            "LogMiner shows a row without its redo address (RS_ID)",
            hint="Capture the window again; if it persists, report it with Oracle's version.",
            scn=rows.column("scn")[at].as_py(),
            operation=int(operations[at]),
        )


def _is_behind(addresses: pa.Array, mark: RedoAddress | None) -> Mask:
    """Which addresses lie behind the mark? Texts of one length compare like their numbers."""
    if mark is None:
        return np.ones(len(addresses), dtype=np.bool_)
    lengths = pc.unique(pc.binary_length(addresses)).to_pylist()
    if lengths == [len(mark.rs_id)]:
        behind: Mask = pc.greater(addresses, mark.rs_id).to_numpy(zero_copy_only=False)
        return behind
    parsed = [_parsed(text) for text in addresses.to_pylist()]
    return np.array([address > mark for address in parsed], dtype=np.bool_)


def _highest(addresses: pa.Array) -> RedoAddress:
    if len(pc.unique(pc.binary_length(addresses))) == 1:
        return _parsed(pc.max(addresses).as_py())
    return max(_parsed(text) for text in addresses.to_pylist())


def _parsed(text: str) -> RedoAddress:
    if not text:
        return RedoAddress(sequence=0, block=0, byte=0)
    try:
        return RedoAddress.parse(text)
    except ValueError as error:
        raise DecodeError(
            "LogMiner shows an RS_ID of an unknown form",
            hint="Report it with Oracle's version.",
            rs_id=text[:40],
        ) from error


def _ints(column: pa.Array) -> npt.NDArray[np.int64]:
    filled: npt.NDArray[np.int64] = column.fill_null(0).to_numpy(zero_copy_only=False)
    return filled
