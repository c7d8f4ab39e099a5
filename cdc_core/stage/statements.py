"""Which redo rows of a table with LOBs are one statement's about one row, and what is that row's
ROWID?

In a table with LOBs most rows of a statement have a placeholder; the row that closes the statement
has the ROWID (measured on 23ai and 26ai by others). A statement shows, for each row that it
changes,

1. the row piece with a placeholder: an INSERT, or an UPDATE of the columns that are no LOBs, if
   there are any;
2. the rows that write each LOB outside of the row, with placeholders too. INSERT, UPDATE and what
   begins to write a LOB share one RS_ID;
3. what closes it, with the ROWID: an UPDATE of the LOBs that lie in the row or are NULL, or else an
   INTERNAL row with SEQUENCE# > 1.

A call of DBMS_LOB begins with a locator that has the ROWID; what it writes may have a placeholder,
and an INTERNAL row may end it. (Others saw an INTERNAL row there; what then comes without a locator
has no address.) Every other row has its ROWID and is a statement of its own.

An INSERT of several rows may show all row pieces first (seen on 26ai). What then closes one by
values is told by them; an INTERNAL row is not.

So rows of one transaction and table are cut into statements, in LogMiner's order. A statement whose
rows have one ROWID is about that row. It has no address if nothing closes it (a release may show no
INTERNAL rows), if it has two ROWIDs, or if its beginnings have different RS_IDs.

Source: rows of whole statements of Oracle Free 23.26 (Debezium's tests of partial rollbacks,
dbz#1960), the same of 23ai (ROW_ID of inserts, LOB rows and their undo). Of earlier
releases the probe ``lob.statement-undo`` asks; such tables are refused there: without INTERNAL rows
a statement could be closed by the next one, about another row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.model.operations import LOB_OPERATIONS, Operation

UNKNOWN_ROW_ID = "AAAAAAAAAAAAAAAAAA"
"""LogMiner's placeholder where it does not show the row's address."""

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_ROW_PIECES = (Operation.INSERT, Operation.UPDATE)
BEGINNINGS = (Operation.SELECT_LOB_LOCATOR, Operation.EXTENDED_BEGIN)
_CLOSING = (Operation.UPDATE, Operation.INTERNAL)


@dataclass(frozen=True, slots=True)
class Statements:
    """Rows of one table cut into statements: one entry per row, in the rows' order.

    Attributes:
        number: The row's statement, from 0 on in the order of the rows.
        address: The code of its statement's ROWID, -1 if it has none.
        place: Of each statement, the place of its first row.
    """

    number: Numbers
    address: Numbers
    place: Numbers


def statements_of(
    operation: npt.NDArray[np.int32],
    row_id: Numbers,
    rs_id: Numbers,
    transaction: Numbers,
    undo: Flags,
) -> Statements:
    """Cut rows into statements.

    Args:
        operation: Their operation codes. Transactions stand one after the other, each in LogMiner's
            order.
        row_id: Codes of their ROWIDs, -1 for the placeholder.
        rs_id: Codes of their RS_IDs.
        transaction: Codes of their transactions.
        undo: Numbers that take others back: each is a statement of its own.
    """
    is_known, is_piece = row_id >= 0, np.isin(operation, LOB_OPERATIONS)
    follows = np.zeros(len(operation), dtype=np.bool_)
    follows[1:] = (transaction[1:] == transaction[:-1]) & ~undo[1:] & ~undo[:-1]
    was_open, was_piece = np.zeros((2, len(operation)), dtype=np.bool_)
    was_open[1:], was_piece[1:] = ~is_known[:-1], is_piece[:-1]
    begins_known = is_known & np.isin(operation, BEGINNINGS)
    goes_on = is_piece & ~begins_known & (was_open | was_piece)
    goes_on |= is_known & np.isin(operation, _CLOSING) & was_open
    goes_on |= is_known & (operation == Operation.INTERNAL) & was_piece
    starts = ~(follows & goes_on)
    has_head = is_known | np.isin(operation, (*_ROW_PIECES, *BEGINNINGS))
    # What a call writes without a row that begins it is not closed, nor is it a part of the
    # statement behind it.
    first = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    starts |= ~has_head[first] & np.isin(operation, BEGINNINGS)
    first = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    starts |= ~has_head[first] & is_known & np.isin(operation, _CLOSING)
    # Behind a call, a locator without the ROWID begins a statement; further ones go on with it.
    first = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    after_call = np.flatnonzero(np.isin(operation, BEGINNINGS) & ~is_known & begins_known[first])
    _, once = np.unique(np.cumsum(starts)[after_call], return_index=True)
    starts[after_call[once]] = True
    first = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    # An UPDATE never closes what began with a ROWID: it is a statement behind a call of DBMS_LOB.
    starts |= (operation == Operation.UPDATE) & is_known & is_known[first]
    number = np.cumsum(starts) - 1
    place = np.flatnonzero(starts)
    address = _addresses(number, place, operation, row_id, rs_id)
    # An INTERNAL row names no values: behind row pieces that stand together it may close any of
    # them.
    behind = np.zeros(len(operation), dtype=np.bool_)
    behind[1:] = follows[1:] & is_unclosed(operation, row_id)[:-1]
    behind &= is_unclosed(operation, row_id)
    last = operation[np.append(place[1:], len(operation))[: len(place)] - 1]
    lost = behind[place] & (last == Operation.INTERNAL)
    return Statements(number, np.where(lost[number], -1, address), place)


def is_unclosed(operation: npt.NDArray[np.int32], row_id: Numbers) -> Flags:
    """Per row: is it the row piece of an INSERT, whose ROWID another row has?"""
    found: Flags = (operation == Operation.INSERT) & (row_id < 0)
    return found


def _addresses(
    number: Numbers,
    place: Numbers,
    operation: npt.NDArray[np.int32],
    row_id: Numbers,
    rs_id: Numbers,
) -> Numbers:
    """Per row the code of its statement's one ROWID; -1 if it has none, or the statement is
    none."""
    if len(place) == 0:
        return row_id[:0]
    highest = np.maximum.reduceat(row_id, place)
    never = np.iinfo(np.int64).max
    lowest = np.minimum.reduceat(np.where(row_id < 0, never, row_id), place)
    begins = np.isin(operation, BEGINNINGS) | np.isin(operation, _ROW_PIECES) & (row_id < 0)
    last = np.maximum.reduceat(np.where(begins, rs_id, -1), place)
    first = np.minimum.reduceat(np.where(begins, rs_id, never), place)
    is_one = (lowest == highest) & ((last < 0) | (first == last))
    found: Numbers = np.where(is_one, highest, -1)[number]
    return found


def known_row_ids(row_ids: pa.Array) -> pa.Array:
    """NULL where LogMiner did not know the row's address."""
    unknown = pc.equal(row_ids, UNKNOWN_ROW_ID)
    return pc.if_else(pc.fill_null(unknown, True), pa.scalar(None, row_ids.type), row_ids)


def without_closes(rows: pa.Table) -> pa.Table:
    """The redo rows but for INTERNAL ones, which only close a statement."""
    return rows.filter(pc.not_equal(rows["operation_code"], int(Operation.INTERNAL)))


def codes_of(column: pa.ChunkedArray) -> Numbers:
    """A number per distinct value, -1 for NULL."""
    encoded = column.combine_chunks().dictionary_encode()
    found: Numbers = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
    return found


def transactions_of(rows: pa.Table) -> Numbers:
    """A number per transaction; rows of one stand together."""
    xid = codes_of(rows["xid"])
    changed = np.zeros(rows.num_rows, dtype=np.bool_)
    changed[1:] = xid[1:] != xid[:-1]
    if "commit_scn" in rows.schema.names:
        scn = rows["commit_scn"].to_numpy()
        changed[1:] |= scn[1:] != scn[:-1]
    return np.cumsum(changed)
