"""Which transactions of a batch begin, change rows and commit inside it, with nothing to decide
about them?

Most do. They are told from whole columns; :mod:`cdc_core.capture.transactions.ledger` follows the
others row by row. A transaction is whole here if

* its first row is its only START row, its last row its only COMMIT row, and neither a ROLLBACK nor
  a captured DDL is between;
* its changes are shown in the order of their SCNs;
* its COMMIT is not before its START, and lies above what is in the snapshot or was taken with an
  earlier window;
* nothing else can be meant by its undo slot: no transaction is open there, and all that the batch
  has of the slot are such transactions, one after the other. So no row without a full XID is about
  it, and it evicts nobody.

For these the rules of the ledger come to one record and nothing else; tests/capture/test_whole.py
holds both ways against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.capture.transactions.stream import UNKNOWN_USER
from cdc_core.landing.layout import ORDINAL_SHIFT, TRANSACTION_SCHEMA
from cdc_core.model.operations import Operation
from cdc_core.model.transactions import SLOT_DIGITS

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WholeTransactions:
    """``rows`` marks the rows of the batch that are theirs; ``ended`` has those that changed
    captured rows, as ``TRANSACTION_SCHEMA``; ``tables`` are the positions of the captured tables
    that they touched."""

    rows: Mask
    ended: pa.RecordBatch
    tables: list[int]


def whole_transactions(
    batch: MinedBatch,
    names: Sequence[str],
    *,
    is_known: Callable[[str], bool],
    above: int,
) -> WholeTransactions | None:
    """The whole transactions of a batch; None if it has none.

    Args:
        batch: Whole rows in the stream's order.
        names: The captured tables, by the positions in ``batch.tables``.
        is_known: Knows the ledger something of an XID, or of its undo slot, before the batch?
        above: Commits up to this SCN are left to the ledger.
    """
    encoded = batch.rows.column("xid").dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    xids: list[str] = encoded.dictionary.to_pylist()
    shape = _Shape(batch, codes, len(xids))
    scns = batch.rows.column("scn").to_numpy(zero_copy_only=False)
    begin, end = scns[shape.first], scns[shape.last]
    fine = shape.is_plain & (begin <= end) & (end > above)
    for code in np.flatnonzero(fine).tolist():
        fine[code] = not is_known(xids[code])
    if not fine.any():
        return None
    slot_of = pc.utf8_slice_codeunits(encoded.dictionary, 0, SLOT_DIGITS).dictionary_encode()
    fine = _alone(slot_of.indices.to_numpy(zero_copy_only=False), shape, fine)
    if not fine.any():
        return None
    rows = fine[codes]
    return WholeTransactions(rows, *_records(batch, codes, encoded.dictionary, shape, rows, names))


class _Shape:
    """Per XID of a batch: the places of its first and last row, and whether they are its START and
    its COMMIT."""

    def __init__(self, batch: MinedBatch, codes: npt.NDArray[np.int32], count: int) -> None:
        at = np.arange(len(codes))
        self.first: Ints = np.empty(count, dtype=np.int64)
        self.last: Ints = np.empty(count, dtype=np.int64)
        self.first[codes[::-1]] = at[::-1]
        self.last[codes] = at
        operations = batch.operations
        self.is_plain: Mask = (
            (operations[self.first] == Operation.START)
            & (operations[self.last] == Operation.COMMIT)
            & (np.bincount(codes[operations == Operation.START], minlength=count) == 1)
            & (np.bincount(codes[operations == Operation.COMMIT], minlength=count) == 1)
        )
        self.is_plain[codes[operations == Operation.ROLLBACK]] = False
        self.is_plain[codes[batch.ddl]] = False
        self.is_plain[_falling(batch, codes)] = False


def _falling(batch: MinedBatch, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The XIDs whose changes are shown against the order of their SCNs."""
    changes = np.flatnonzero(batch.is_change)
    scns = batch.rows.column("scn").to_numpy(zero_copy_only=False)[changes]
    if not (np.diff(scns) < 0).any():
        return codes[:0]
    order = np.argsort(codes[changes], kind="stable")
    owners, scns = codes[changes][order], scns[order]
    found: npt.NDArray[np.int32] = owners[1:][(np.diff(scns) < 0) & (np.diff(owners) == 0)]
    return found


def _alone(slot_of: npt.NDArray[np.int32], shape: _Shape, fine: Mask) -> Mask:
    """Of the fine ones, those in whose slot there are only fine ones, one after the other."""
    spoiled = np.zeros(int(slot_of.max()) + 1, dtype=np.bool_)
    spoiled[slot_of[~fine]] = True
    order = np.lexsort((shape.first, slot_of))
    same = slot_of[order][1:] == slot_of[order][:-1]
    overlaps = same & (shape.first[order][1:] < shape.last[order][:-1])
    spoiled[slot_of[order][1:][overlaps]] = True
    alone: Mask = fine & ~spoiled[slot_of]
    return alone


def _records(
    batch: MinedBatch,
    codes: npt.NDArray[np.int32],
    xids: pa.Array,
    shape: _Shape,
    rows: Mask,
    names: Sequence[str],
) -> tuple[pa.RecordBatch, list[int]]:
    """The records of the transactions with captured rows, in the order of their COMMIT rows, and
    the tables of these."""
    changes = rows & batch.is_change
    count = np.bincount(codes[changes], minlength=len(xids))
    undo = batch.rows.column("rollback").to_numpy(zero_copy_only=False) == 1
    undone = np.bincount(codes[changes & undo], minlength=len(xids))
    there = np.flatnonzero(count)
    there = there[np.argsort(shape.last[there])]
    begin, end = pa.array(shape.first[there]), pa.array(shape.last[there])
    tables, table_rows, touched = _tables(batch, codes, changes, there, names)
    user = batch.rows.column("username").take(begin)
    columns = {
        "xid": xids.take(pa.array(there)),
        "state": pa.repeat("commit", len(there)),
        "start_scn": batch.rows.column("scn").take(begin),
        "commit_scn": batch.rows.column("scn").take(end),
        "commit_ordinal": batch.ordinals[shape.last[there]],
        "commit_timestamp": batch.rows.column("timestamp").take(end),
        "username": pc.if_else(pc.equal(user, UNKNOWN_USER), None, user),
        "first_ordinal": batch.ordinals[shape.first[there]],
        "has_rollback": undone[there] > 0,
        "tables": tables,
        "table_rows": table_rows,
        "rows": count[there],
        "undone": undone[there],
        "late": pa.repeat(False, len(there)),
        "session_id": _known(batch.rows.column("session_id").take(begin)),
        "serial": _known(batch.rows.column("serial").take(begin)),
        "absent_scn": pa.nulls(len(there), pa.int64()),
        "start_timestamp": batch.rows.column("timestamp").take(begin),
        "client_id": batch.rows.column("client_id").take(begin),
        "windows": _one_window(batch, len(there)),
    }
    arrays = [pa.array(columns[field.name], field.type) for field in TRANSACTION_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=TRANSACTION_SCHEMA), touched


def _tables(
    batch: MinedBatch,
    codes: npt.NDArray[np.int32],
    changes: Mask,
    there: Ints,
    names: Sequence[str],
) -> tuple[pa.ListArray, pa.ListArray, list[int]]:
    """Per transaction the names of its tables, in order, and its changes of each; and the positions
    of all tables."""
    order = np.argsort(np.array(names))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    place = np.empty(int(codes.max()) + 1, dtype=np.int64)
    place[there] = np.arange(len(there))
    keys = place[codes[changes]] * len(names) + rank[batch.tables[changes]]
    pairs, rows = np.unique(keys, return_counts=True)
    of_transaction, ranks = np.divmod(pairs, len(names))
    offsets = pa.array(np.searchsorted(of_transaction, np.arange(len(there) + 1)), pa.int32())
    values = pa.array([names[at] for at in order.tolist()], pa.string()).take(pa.array(ranks))
    tables = pa.ListArray.from_arrays(offsets, values)
    counts = pa.ListArray.from_arrays(offsets, pa.array(rows, pa.int64()))
    return tables, counts, order[np.unique(ranks)].tolist()


def _one_window(batch: MinedBatch, transactions: int) -> pa.ListArray:
    """Each of so many transactions has all its rows in the window of the batch."""
    window = int(batch.ordinals[0]) >> ORDINAL_SHIFT
    offsets = pa.array(np.arange(transactions + 1, dtype=np.int32) * 2)
    runs = pa.array(np.full(2 * transactions, window, dtype=np.int64))
    return pa.ListArray.from_arrays(offsets, runs)


def _known(numbers: pa.Array) -> pa.Array:
    """Numbers that Oracle does not say are 0."""
    return pc.if_else(pc.equal(numbers, 0), None, numbers)
