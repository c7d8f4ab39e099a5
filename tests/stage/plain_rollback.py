"""The rule for partial rollbacks in plain Python, which ``stage.rollback.find_undone`` applies by columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.model.operations import Operation
from cdc_core.stage.undone_statements import (
    INVERSE,
    ROW_ID_UNKNOWN,
    NotUnderstoodError,
    Rows,
    taken_back,
)


@dataclass(frozen=True, slots=True)
class RedoRow:
    """What the rule needs of one row of a transaction and table; ``row_id`` is None for the placeholder."""

    operation: int
    row_id: str | None
    is_undo: bool
    rs_id: str | None = None


def surviving(rows: Sequence[RedoRow], *, closes_shown: bool = False) -> list[int]:
    """Which rows of one (transaction, table), in LogMiner's order, remain: their places.

    Raises:
        NotUnderstoodError: There is an undo row of which that cannot be said.
    """
    if not any(row.row_id is None and not row.is_undo for row in rows):
        gone = _brackets(rows, by_order=False)
    elif all(row.row_id is None for row in rows):
        gone = _brackets(rows, by_order=True)
    else:
        codes: dict[str | None, int] = {None: -1}
        table = Rows(
            [row.operation for row in rows],
            [codes.setdefault(row.row_id, len(codes)) for row in rows],
            [codes.setdefault(row.rs_id, len(codes)) for row in rows],
            [row.is_undo for row in rows],
        )
        gone = taken_back(table, closes_shown=closes_shown)
    return [place for place in range(len(rows)) if place not in set(gone)]


def _brackets(rows: Sequence[RedoRow], *, by_order: bool) -> list[int]:
    """An undo row takes back the newest row that is left, by address of the same ROW_ID."""
    left: dict[str | None, list[int]] = {}
    gone: list[int] = []
    for place, row in enumerate(rows):
        own = left.setdefault(row.row_id, [])
        if not row.is_undo:
            own.append(place)
            continue
        if row.row_id is None and not by_order:
            raise NotUnderstoodError("an undo row has no ROW_ID", ROW_ID_UNKNOWN, place)
        if not own:
            raise NotUnderstoodError("an undo row has no forward row", place=place)
        at = own.pop()
        is_unsupported = Operation.UNSUPPORTED in (row.operation, rows[at].operation)
        is_inverse = rows[at].operation == INVERSE.get(Operation(row.operation))
        if not (is_inverse or (is_unsupported and not by_order)):
            raise NotUnderstoodError("an undo row is not the inverse of its row", place=place)
        gone += [at, place]
    return gone
