"""Which redo rows of a committed transaction did it take back itself?

A statement that fails, or ROLLBACK TO SAVEPOINT, makes Oracle undo rows inside a transaction that commits later: what is undone
is followed by inverse rows with ROLLBACK = 1, the newest first (LogMiner documentation, column ROLLBACK).

**By address.** In a table without LOBs each forward row has one undo row with its ROW_ID. Undo takes back the newest row that is not
taken back yet, so the rows of one ROW_ID nest like brackets: an undo row closes the newest open forward row, which must be its
inverse. One ROW_ID is enough of a key: undo of other rows does not change this row's brackets. A row that LogMiner does not support
(code 255) may be taken back by a row of any operation.

**By statement.** In a table with LOBs an INSERT, and every row that writes a LOB outside of the table's block, has a placeholder instead of its
ROW_ID, and a statement of several redo rows (INSERT, LOB pieces, UPDATEs of the values in the block) has *one* undo row, with the real
ROW_ID (measured on 23ai, SecureFile and BasicFile alike). So where a transaction has placeholders in a table:

* An undo row that deletes takes back the newest surviving INSERT, and with it all that survives after it: by newest-first every later
  statement is undone by then, so what is left are the INSERT's own rows. They must have the placeholder or the undo row's ROW_ID.
* An undo row that updates or inserts takes back the newest surviving row of its ROW_ID, which must be its inverse. If a row with
  a placeholder survives after that one, nothing shows which of the two is meant, and the transaction is not understood.

**By order.** Rows of an index-organized table have no address, their undo rows neither. Undo goes back through the whole transaction, so an
undo row takes back the table's newest surviving row, which must be its inverse. Each forward row has one undo row.

**By closed statements.** Where the ROWID identifies the rows of a table with LOBs, what closes a statement is read too, so its rows have one
address (:mod:`cdc_core.stage.statements`). The rule is the one by address, of statements instead of rows. An INSERT that nothing closes
failed in its middle: it can only be taken back next. Of anything else that nothing closes, nobody knows whether it is one call. One of which nothing but its close is there (what it wrote is left out) is not
understood where it is the newest of its address.

What is not understood gets a problem, and whoever decodes it stops the table: an undo row without its forward row (the
transaction's beginning is missing), with the wrong operation or order, or without a ROW_ID.

:func:`surviving` is the rule in plain Python; :func:`find_undone` applies it to the rows of many transactions, and reads brackets
by columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.model.operations import LOB_OPERATIONS, Operation
from cdc_core.stage.statements import (
    UNKNOWN_ROW_ID,
    Statements,
    codes_of,
    known_row_ids,
    statements_of,
    transactions_of,
)

UNDONE_BY = {
    Operation.DELETE: Operation.INSERT,
    Operation.INSERT: Operation.DELETE,
    Operation.UPDATE: Operation.UPDATE,
}
"""What an undo row of each operation takes back."""

UNMATCHED = "undo-unmatched"
ROW_ID_UNKNOWN = "undo-row-id-unknown"
COLUMNS = ("ordinal", "xid", "operation_code", "row_id", "rollback", "has_rollback")
"""What :func:`find_undone` reads of a redo row."""
STATEMENT_COLUMNS = (*COLUMNS, "rs_id")
"""What :func:`find_undone_statements` reads."""


class NotUnderstoodError(ValueError):
    """It cannot be shown which rows an undo row takes back; ``place`` is the undo row's, ``problem`` its name."""

    def __init__(self, message: str, problem: str = UNMATCHED) -> None:
        super().__init__(message)
        self.problem = problem
        self.place = -1


@dataclass(frozen=True, slots=True)
class RedoRow:
    """What the rule needs of one row of a transaction and table; ``row_id`` is None for the placeholder."""

    operation: int
    row_id: str | None
    is_undo: bool


@dataclass(slots=True)
class _Left:
    """The forward rows that nothing has taken back so far, newest last; places that are gone leave the lists when they are met."""

    rows: Sequence[RedoRow]
    alive: list[bool]
    by_statement: bool
    order: list[int] = field(default_factory=list)
    of_row_id: dict[str | None, list[int]] = field(default_factory=dict)
    inserts: list[int] = field(default_factory=list)
    unplaced: list[int] = field(default_factory=list)

    def add(self, place: int) -> None:
        row = self.rows[place]
        is_insert = self.by_statement and row.operation == Operation.INSERT
        self.order.append(place)
        if is_insert:
            self.inserts.append(place)
        else:
            self.of_row_id.setdefault(row.row_id, []).append(place)
        if is_insert or row.row_id is None:
            self.unplaced.append(place)

    def newest(self, places: list[int]) -> int:
        """The newest of the places that is still there.

        Raises:
            NotUnderstoodError: None is.
        """
        self._forget_gone(places)
        if not places:
            raise NotUnderstoodError("an undo row has no forward row")
        return places[-1]

    def is_behind(self, places: list[int], place: int) -> bool:
        """Is one of the places still there that came later than ``place``?"""
        self._forget_gone(places)
        return bool(places) and places[-1] > place

    def _forget_gone(self, places: list[int]) -> None:
        while places and not self.alive[places[-1]]:
            places.pop()

    def since(self, place: int) -> list[int]:
        """The rows from a place on that are still there; they leave the order."""
        found = []
        while self.order and self.order[-1] >= place:
            if self.alive[at := self.order.pop()]:
                found.append(at)
        return found


def surviving(rows: Sequence[RedoRow]) -> list[int]:
    """Which rows of one (transaction, table), in LogMiner's order, remain: their places.

    Raises:
        NotUnderstoodError: There is an undo row of which that cannot be said.
    """
    by_statement = any(row.row_id is None and not row.is_undo for row in rows)
    by_order = by_statement and all(row.row_id is None for row in rows)
    take_back: Callable[[_Left, RedoRow], None] = _by_statement if by_statement else _by_address
    if by_order:
        take_back = _by_order
    left = _Left(rows, [not row.is_undo for row in rows], by_statement)
    for place, row in enumerate(rows):
        if not row.is_undo:
            left.add(place)
            continue
        try:
            if row.row_id is None and not by_order:
                raise NotUnderstoodError("an undo row has no ROW_ID", ROW_ID_UNKNOWN)
            take_back(left, row)
        except NotUnderstoodError as error:
            error.place = place
            raise
    return [place for place, is_left in enumerate(left.alive) if is_left]


def _by_address(left: _Left, undo: RedoRow) -> None:
    at = left.newest(left.of_row_id.get(undo.row_id, []))
    if Operation.UNSUPPORTED not in (undo.operation, left.rows[at].operation):
        _refuse_other(left, at, undo)
    left.alive[at] = False


def _by_order(left: _Left, undo: RedoRow) -> None:
    at = left.newest(left.order)
    _refuse_other(left, at, undo)
    left.alive[at] = False


def _by_statement(left: _Left, undo: RedoRow) -> None:
    if undo.operation == Operation.DELETE:
        at = left.newest(left.inserts)
        own = left.since(at)
        if any(
            left.rows[place].row_id not in (None, undo.row_id)
            or left.rows[place].operation == Operation.DELETE
            for place in own
        ):
            raise NotUnderstoodError("rows of other statements survive an INSERT that is undone")
        for place in own:
            left.alive[place] = False
        return
    at = left.newest(left.of_row_id.get(undo.row_id, []))
    if left.is_behind(left.unplaced, at):
        raise NotUnderstoodError("a row without ROW_ID survives the one that is undone")
    _refuse_other(left, at, undo)
    left.alive[at] = False


def _refuse_other(left: _Left, at: int, undo: RedoRow) -> None:
    if left.rows[at].operation != UNDONE_BY.get(Operation(undo.operation)):
        raise NotUnderstoodError("an undo row is not the inverse of its forward row")


@dataclass(frozen=True, slots=True)
class Undone:
    """``ordinals`` of the rows that are not applied, sorted: those that were taken back, and those that did it. ``problems`` are
    rows of which that cannot be said, by ordinal."""

    ordinals: npt.NDArray[np.int64]
    problems: dict[int, str]

    def left_of(self, rows: pa.Table) -> pa.Table:
        """The rows that remain, with the column ``problem``."""
        ordinals = rows["ordinal"].to_numpy()
        gone = np.isin(ordinals, self.ordinals)
        if gone.any():
            rows = rows.filter(pa.array(~gone))
        problems = pa.nulls(rows.num_rows, pa.string())
        if self.problems:
            known = [self.problems.get(ordinal) for ordinal in rows["ordinal"].to_pylist()]
            problems = pa.array(known, pa.string())
        return rows.append_column("problem", problems)


NOTHING_UNDONE = Undone(np.empty(0, np.int64), {})


def find_undone(rows: pa.Table) -> Undone:
    """Apply the rule to rows of one table (columns :data:`COLUMNS`) of transactions that took something back.

    Raises nothing: what is not understood is a problem of its undo row.
    """
    rows = rows.filter(rows["has_rollback"]).sort_by(
        [("xid", "ascending"), ("ordinal", "ascending")]
    )
    if rows.num_rows == 0:
        return NOTHING_UNDONE
    ordinals = rows["ordinal"].to_numpy()
    undo = rows["rollback"].to_numpy().astype(np.bool_)
    row_ids = rows["row_id"]
    unknown = pc.fill_null(pc.equal(row_ids, UNKNOWN_ROW_ID), True).to_numpy()
    xid = rows["xid"].combine_chunks().dictionary_encode().indices.to_numpy()
    # Sorted by XID, so the codes of dictionary_encode grow.
    starts = np.flatnonzero(np.diff(xid, prepend=-1))
    by_statement = np.logical_or.reduceat(unknown & ~undo, starts)[xid]
    problems = {int(at): ROW_ID_UNKNOWN for at in ordinals[undo & unknown & ~by_statement]}
    gone = [
        _brackets(
            rows.select(["row_id", "operation_code"]),
            xid,
            ordinals,
            undo,
            ~by_statement & ~unknown,
            problems,
        )
    ]
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(xid)], strict=True):
        if by_statement[start]:
            gone.append(_of_one(rows.slice(start, end - start), problems))
    left_out = np.concatenate(gone)
    left_out = left_out[~np.isin(left_out, list(problems))] if problems else left_out
    return Undone(np.sort(left_out), problems)


def find_undone_statements(rows: pa.Table) -> Undone:
    """The rule by closed statements for rows of one table (columns :data:`STATEMENT_COLUMNS`) of transactions that took something back.

    Raises nothing: what is not understood is a problem of its undo row.
    """
    rows = rows.filter(rows["has_rollback"]).sort_by(
        [("xid", "ascending"), ("commit_scn", "ascending"), ("ordinal", "ascending")]
    )
    if rows.num_rows == 0:
        return NOTHING_UNDONE
    ordinals, operation = rows["ordinal"].to_numpy(), rows["operation_code"].to_numpy()
    undo = rows["rollback"].to_numpy().astype(np.bool_)
    transaction = transactions_of(rows)
    row_id = codes_of(pa.chunked_array([known_row_ids(rows["row_id"].combine_chunks())]))
    cut = statements_of(operation, row_id, codes_of(rows["rs_id"]), transaction, undo)
    numbers = np.arange(len(cut.place))
    gone = np.zeros(len(numbers), dtype=np.bool_)
    problems: dict[int, str] = {}
    starts = np.flatnonzero(np.diff(transaction[cut.place], prepend=-1))
    for own in np.split(numbers, starts[1:]):
        try:
            gone[_taken_back(own.tolist(), cut, operation, row_id, undo)] = True
        except NotUnderstoodError as error:
            problems[int(ordinals[error.place])] = error.problem
    return Undone(np.sort(ordinals[gone[cut.number]]), problems)


def _taken_back(
    statements: Sequence[int],
    cut: Statements,
    operation: npt.NDArray[np.int32],
    row_id: npt.NDArray[np.int64],
    undo: npt.NDArray[np.bool_],
) -> list[int]:
    """Which statements of one transaction are not applied.

    Raises:
        NotUnderstoodError: There is an undo row of which that cannot be said.
    """
    alive: list[int] = []
    of_address: dict[int, list[int]] = {}
    gone: set[int] = set()
    for number in statements:
        place = int(cut.place[number])
        if not undo[place]:
            alive.append(number)
            of_address.setdefault(int(cut.address[place]), []).append(number)
            continue
        while alive and alive[-1] in gone:
            alive.pop()
        try:
            found = _newest(alive, of_address, int(row_id[place]))
            first = cut.place[found]
            if cut.address[first] < 0 and operation[first] != Operation.INSERT:
                raise NotUnderstoodError("what an undo row takes back may be more than one call")
            _refuse_other_statement(int(operation[first]), int(operation[place]))
        except NotUnderstoodError as error:
            error.place = place
            raise
        of_address[int(cut.address[first])].pop()
        gone |= {found, number}
    return sorted(gone)


def _newest(alive: Sequence[int], of_address: Mapping[int, list[int]], address: int) -> int:
    """The statement that an undo row of this address takes back."""
    if address < 0:
        raise NotUnderstoodError("an undo row has no ROW_ID", ROW_ID_UNKNOWN)
    own, unclosed = of_address.get(address), of_address.get(-1)
    if unclosed and unclosed[-1] == alive[-1]:
        return unclosed[-1]
    if not own or (unclosed and unclosed[-1] > own[-1]):
        raise NotUnderstoodError("an undo row has no forward row")
    return own[-1]


def _refuse_other_statement(forward: int, undo: int) -> None:
    if forward in LOB_OPERATIONS:
        forward = Operation.UPDATE
    if Operation.UNSUPPORTED not in (forward, undo) and forward != UNDONE_BY.get(Operation(undo)):
        raise NotUnderstoodError("an undo row is not the inverse of its forward row")


def _of_one(rows: pa.Table, problems: dict[int, str]) -> npt.NDArray[np.int64]:
    """Ordinals of one transaction's rows that are not applied; its problem is added to ``problems``."""
    ordinals = rows["ordinal"].to_numpy()
    row_ids = [None if found == UNKNOWN_ROW_ID else found for found in rows["row_id"].to_pylist()]
    facts = zip(
        rows["operation_code"].to_pylist(), row_ids, rows["rollback"].to_pylist(), strict=True
    )
    try:
        left = surviving([RedoRow(*fact) for fact in facts])
    except NotUnderstoodError as error:
        problems[int(ordinals[error.place])] = error.problem
        return np.empty(0, np.int64)
    found: npt.NDArray[np.int64] = np.delete(ordinals, left)
    return found


def _brackets(
    rows: pa.Table,
    xid: npt.NDArray[np.int32],
    ordinals: npt.NDArray[np.int64],
    undo: npt.NDArray[np.bool_],
    taken: npt.NDArray[np.bool_],
    problems: dict[int, str],
) -> npt.NDArray[np.int64]:
    """The rule by address for all rows of ``taken`` at once: forward and undo rows of one depth alternate, so the next row of the
    same depth closes a forward row."""
    at = np.flatnonzero(taken)
    if not undo[at].any():
        return ordinals[:0]
    row_id = rows["row_id"].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    at = at[np.lexsort((ordinals[at], row_id[at], xid[at]))]
    line = np.flatnonzero(
        (np.diff(xid[at], prepend=-1) != 0) | (np.diff(row_id[at], prepend=-2) != 0)
    )
    lengths = np.diff(np.append(line, len(at)))
    steps = np.where(undo[at], -1, 1)
    total = np.cumsum(steps)
    depth = total - np.repeat(total[line] - steps[line], lengths)
    for ordinal in ordinals[at[depth < 0]]:
        problems[int(ordinal)] = UNMATCHED
    group = np.repeat(np.arange(len(line)), lengths)
    level = depth + undo[at]
    order = np.lexsort((ordinals[at], level, group))
    at, group, level = at[order], group[order], level[order]
    closes = undo[at]
    closed = np.zeros(len(at), dtype=np.bool_)
    same = (group[1:] == group[:-1]) & (level[1:] == level[:-1])
    closed[:-1] = ~closes[:-1] & same & closes[1:]
    operations = rows["operation_code"].to_numpy()[at]
    other = closed[:-1] & ~_are_inverse(operations[:-1], operations[1:])
    for ordinal in ordinals[at[1:][other]]:
        problems[int(ordinal)] = UNMATCHED
    found: npt.NDArray[np.int64] = ordinals[at[closes | closed]]
    return found


def _are_inverse(
    forward: npt.NDArray[np.int64], undo: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Row by row: does an undo row of this operation take back a forward row of that one?"""
    found: npt.NDArray[np.bool_] = forward == Operation.UNSUPPORTED
    found |= undo == Operation.UNSUPPORTED
    for one, other in UNDONE_BY.items():
        found |= (undo == one) & (forward == other)
    return found
