"""Which redo rows of a committed transaction did it take back itself?

A statement that fails, or ROLLBACK TO SAVEPOINT, makes Oracle undo rows inside a transaction that
commits later: what is undone is followed by inverse rows with ROLLBACK = 1, the newest first
(LogMiner documentation, column ROLLBACK).

**By address.** In a table without LOBs each forward row has one undo row with its ROW_ID. Undo
takes back the newest row that is not taken back yet, so the rows of one ROW_ID nest like brackets:
an undo row closes the newest open forward row, which must be its inverse. One ROW_ID is enough of a
key: undo of other rows does not change this row's brackets. A row that LogMiner does not support
(code 255) may be taken back by a row of any operation.

**By statement.** In a table with LOBs an INSERT, and every row that writes a LOB outside of the
table's block, has a placeholder instead of its ROW_ID, and a statement of several redo rows has
*one* undo row, with the real ROW_ID. So where a transaction has placeholders in a table, a run of
undo rows takes back so many statements from the end of what survives
(:mod:`cdc_core.stage.undone_statements`).

**By order.** Rows of an index-organized table have no address, their undo rows neither. Undo goes
back through the whole transaction, so an undo row takes back the table's newest surviving row,
which must be its inverse. Each forward row has one undo row.

What is not understood gets a problem, and whoever decodes it stops the table: an undo row without
its forward row (the transaction's beginning is missing), with the wrong operation or order, or
without a ROW_ID, and one of which the redo does not show how many rows it takes back.

:func:`find_undone` applies the rule to the rows of many transactions, and reads brackets by
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.model.operations import Operation
from cdc_core.runtime.arrow import whole
from cdc_core.stage.statements import codes_of, known_row_ids, transactions_of
from cdc_core.stage.undone_statements import (
    INVERSE,
    ROW_ID_UNKNOWN,
    UNMATCHED,
    NotUnderstoodError,
    Rows,
    closing_candidates,
    taken_back,
)

COLUMNS = ("ordinal", "xid", "operation_code", "row_id", "rollback", "has_rollback")
"""What :func:`find_undone` reads of a redo row."""
STATEMENT_COLUMNS = (*COLUMNS, "rs_id")
"""What it reads too of a table with LOBs."""
_NO_RECORD = r"^[\s0x.]*$"
"""An RS_ID that names no redo record."""
_NAMING_ROWS = 3
"""So many rows from the beginning of a statement on are asked which row it is about: one of them
says so, if any does."""

Apart = Callable[[Mapping[int, Sequence[int]]], set[int]]
"""Which UPDATEs close no statement, of those that may: by ordinal, with the ordinals of rows of
that statement."""


def _by_order(rows: Rows) -> list[int]:
    """The rule by order: the places of what was taken back, and of what did it.

    Raises:
        NotUnderstoodError: An undo row is not the inverse of the newest row that is left.
    """
    left: list[int] = []
    gone: list[int] = []
    for place, is_undo in enumerate(rows.undo):
        if not is_undo:
            left.append(place)
            continue
        inverse = INVERSE.get(Operation(rows.operation[place]))
        if not left or rows.operation[left[-1]] != inverse:
            raise NotUnderstoodError("an undo row has no forward row that it inverts", place=place)
        gone += [left.pop(), place]
    return gone


@dataclass(frozen=True, slots=True)
class RolledBackRows:
    """``ordinals`` of the rows that are not applied, sorted: those that were taken back, and those
    that did it. ``problems`` are rows of which that cannot be said, by ordinal."""

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


NOTHING_UNDONE = RolledBackRows(np.empty(0, np.int64), {})


def find_undone(
    rows: pa.Table, *, apart: Apart | None = None, closes_shown: bool = False
) -> RolledBackRows:
    """Apply the rule to rows of one table of transactions that took something back. Raises nothing:
    what is not understood is a problem of its undo row.

    Args:
        rows: Columns :data:`COLUMNS`; with :data:`STATEMENT_COLUMNS` more is understood of a table
            with LOBs.
        apart: Asked for UPDATEs of which the columns do not say whether they close a statement;
            without it each may.
        closes_shown: INTERNAL rows that close statements are among the rows.
    """
    order = [
        (name, "ascending")
        for name in ("xid", "commit_scn", "ordinal")
        if name in rows.schema.names
    ]
    rows = rows.filter(rows["has_rollback"]).sort_by(order).combine_chunks()
    if rows.num_rows == 0:
        return NOTHING_UNDONE
    ordinals = rows["ordinal"].to_numpy()
    undo = rows["rollback"].to_numpy().astype(np.bool_)
    operation = rows["operation_code"].to_numpy()
    row_id = codes_of(pa.chunked_array([known_row_ids(whole(rows["row_id"]))]))
    transaction = transactions_of(rows)
    starts = np.flatnonzero(np.diff(transaction, prepend=-1))
    of_statements = (row_id < 0) & ~undo | (operation == Operation.INTERNAL)
    by_statement = np.logical_or.reduceat(of_statements, starts)[transaction]
    unknown = undo & (row_id < 0) & ~by_statement
    problems = {int(at): ROW_ID_UNKNOWN for at in ordinals[unknown]}
    gone = [
        _brackets(
            operation, row_id, transaction, ordinals, undo, ~by_statement & (row_id >= 0), problems
        )
    ]
    cut = _Cut(operation, row_id, _records(rows), undo, ordinals)
    ends = [*starts[1:].tolist(), len(ordinals)]
    own = [pair for pair in zip(starts.tolist(), ends, strict=True) if by_statement[pair[0]]]
    closing_nothing = apart(_candidates(cut, own)) if apart is not None and own else set()
    for start, end in own:
        part = cut.rows(start, end)
        try:
            if all(code < 0 for code in part.row_id):
                places = _by_order(part)
            else:
                of_part = ordinals[start:end].tolist()
                free = {at for at, one in enumerate(of_part) if one in closing_nothing}
                places = taken_back(part, free, closes_shown=closes_shown)
        except NotUnderstoodError as error:
            problems[int(ordinals[start + error.place])] = error.problem
            continue
        gone.append(ordinals[start:end][places])
    left_out = np.concatenate(gone)
    left_out = left_out[~np.isin(left_out, list(problems))] if problems else left_out
    return RolledBackRows(np.sort(left_out), problems)


@dataclass(frozen=True, slots=True)
class _Cut:
    """The columns of the rows of many transactions, cut into those of one."""

    operation: npt.NDArray[np.int32]
    row_id: npt.NDArray[np.int64]
    record: npt.NDArray[np.int64]
    undo: npt.NDArray[np.bool_]
    ordinals: npt.NDArray[np.int64]

    def rows(self, start: int, end: int) -> Rows:
        """Those from a place on, up to another."""
        these = slice(start, end)
        columns = (self.operation, self.row_id, self.record, self.undo)
        return Rows(*(column[these].tolist() for column in columns))


def _records(rows: pa.Table) -> npt.NDArray[np.int64]:
    """A number for each redo record; -1 where the RS_ID names none."""
    if "rs_id" not in rows.schema.names:
        return np.full(rows.num_rows, -1)
    texts = whole(rows["rs_id"]).cast(pa.string())  # none at all: of type null
    names_none = pc.fill_null(pc.match_substring_regex(texts, _NO_RECORD), True)
    return codes_of(pa.chunked_array([pc.if_else(names_none, pa.scalar(None, texts.type), texts)]))


def _candidates(cut: _Cut, spans: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """The UPDATEs of which the columns do not say whether they close a statement, each with rows
    that may say which row that is about."""
    found = {}
    for start, end in spans:
        for place, head in closing_candidates(cut.rows(start, end)):
            naming = range(start + head, start + min(head + _NAMING_ROWS, place))
            found[int(cut.ordinals[start + place])] = cut.ordinals[naming].tolist()
    return found


def _brackets(
    operation: npt.NDArray[np.int32],
    row_id: npt.NDArray[np.int64],
    transaction: npt.NDArray[np.int64],
    ordinals: npt.NDArray[np.int64],
    undo: npt.NDArray[np.bool_],
    taken: npt.NDArray[np.bool_],
    problems: dict[int, str],
) -> npt.NDArray[np.int64]:
    """The rule by address for all rows of ``taken`` at once: forward and undo rows of one depth
    alternate, so the next row of the same depth closes a forward row."""
    at = np.flatnonzero(taken)
    if not undo[at].any():
        return ordinals[:0]
    at = at[np.lexsort((ordinals[at], row_id[at], transaction[at]))]
    line = np.flatnonzero(
        (np.diff(transaction[at], prepend=-1) != 0) | (np.diff(row_id[at], prepend=-2) != 0)
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
    operations = operation[at]
    other = closed[:-1] & ~_are_inverse(operations[:-1], operations[1:])
    for ordinal in ordinals[at[1:][other]]:
        problems[int(ordinal)] = UNMATCHED
    closed[:-1] &= ~other  # what it takes back, nobody knows
    found: npt.NDArray[np.int64] = ordinals[at[closes | closed]]
    return found


def _are_inverse(
    forward: npt.NDArray[np.int32], undo: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Row by row: does an undo row of this operation take back a forward row of that one?"""
    found: npt.NDArray[np.bool_] = forward == Operation.UNSUPPORTED
    found |= undo == Operation.UNSUPPORTED
    for one, other in INVERSE.items():
        found |= (undo == one) & (forward == other)
    return found
