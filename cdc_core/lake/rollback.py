"""Which redo rows of a committed transaction did it take back itself?

A statement that fails, or ROLLBACK TO SAVEPOINT, makes Oracle undo rows inside a transaction that commits later: what is undone
is followed by inverse rows with ROLLBACK = 1, the newest first (LogMiner documentation, column ROLLBACK).

**By address.** In a table without LOBs each forward row has one undo row with its ROW_ID. Undo takes back the newest row that is not
taken back yet, so the rows of one ROW_ID nest like brackets: an undo row closes the newest open forward row. One ROW_ID is enough
of a key: undo of other rows does not change this row's brackets.

**By statement.** In a table with LOBs an INSERT, and every row that writes a LOB outside of the table's block, has a placeholder instead of its
ROW_ID, and a statement of several redo rows (INSERT, LOB pieces, UPDATEs of the values in the block) has *one* undo row, with the real
ROW_ID (measured on 23ai, SecureFile and BasicFile alike). So where a transaction has placeholders in a table:

* An undo row that deletes takes back the newest surviving INSERT, and with it all that survives after it: by newest-first every later
  statement is undone by then, so what is left are the INSERT's own rows. They must have the placeholder or the undo row's ROW_ID.
* An undo row that updates or inserts takes back the newest surviving row of its ROW_ID, which must be its inverse. If a row with
  a placeholder survives after that one, nothing shows which of the two is meant, and the transaction is not understood.

What is not understood gets a problem, and whoever decodes it stops the table: an undo row without its forward row (the
transaction's beginning is missing), with the wrong operation or order, or without a ROW_ID.

:func:`surviving` is the rule in plain Python, and the test oracle of :func:`surviving_sql`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.model.operations import Operation

UNKNOWN_ROW_ID = "AAAAAAAAAAAAAAAAAA"
"""LogMiner's placeholder where it does not show the row's address."""

UNDONE_BY = {
    Operation.DELETE: Operation.INSERT,
    Operation.INSERT: Operation.DELETE,
    Operation.UPDATE: Operation.UPDATE,
}
"""What an undo row of each operation takes back."""


class NotUnderstoodError(ValueError):
    """It cannot be shown which rows an undo row takes back."""


@dataclass(frozen=True, slots=True)
class RedoRow:
    """What the rule needs of one row of a transaction and table; ``row_id`` is None for the placeholder."""

    operation: int
    row_id: str | None
    is_undo: bool


def surviving(rows: Sequence[RedoRow]) -> list[int]:
    """Which rows of one (transaction, table), in LogMiner's order, remain: their places.

    Raises:
        NotUnderstoodError: There is an undo row of which that cannot be said.
    """
    by_statement = any(row.row_id is None and not row.is_undo for row in rows)
    take_back = _by_statement if by_statement else _by_address
    left: list[int] = []
    for place, row in enumerate(rows):
        if not row.is_undo:
            left.append(place)
        elif row.row_id is None:
            raise NotUnderstoodError("an undo row has no ROW_ID")
        else:
            take_back(left, rows, row)
    return left


def _by_address(left: list[int], rows: Sequence[RedoRow], undo: RedoRow) -> None:
    at = _newest(left, [rows[place].row_id == undo.row_id for place in left])
    del left[at]


def _by_statement(left: list[int], rows: Sequence[RedoRow], undo: RedoRow) -> None:
    if undo.operation == Operation.DELETE:
        at = _newest(left, [rows[place].operation == Operation.INSERT for place in left])
        own = [rows[place] for place in left[at:]]
        if any(row.row_id not in (None, undo.row_id) for row in own) or any(
            row.operation == Operation.DELETE for row in own
        ):
            raise NotUnderstoodError("rows of other statements survive an INSERT that is undone")
        del left[at:]
        return
    candidates = [
        rows[place].row_id == undo.row_id and rows[place].operation != Operation.INSERT
        for place in left
    ]
    at = _newest(left, candidates)
    above = [rows[place] for place in left[at + 1 :]]
    if any(row.row_id is None or row.operation == Operation.INSERT for row in above):
        raise NotUnderstoodError("a row without ROW_ID survives the one that is undone")
    if rows[left[at]].operation != UNDONE_BY.get(Operation(undo.operation)):
        raise NotUnderstoodError("an undo row is not the inverse of its forward row")
    del left[at]


def _newest(left: list[int], wanted: list[bool]) -> int:
    if True not in wanted:
        raise NotUnderstoodError("an undo row has no forward row")
    return len(left) - 1 - wanted[::-1].index(True)


def surviving_sql(rows: str) -> str:
    """The rule as Spark SQL windows over the view ``rows`` (columns ``xid, row_id, ordinal, operation_code, rollback, …`` of one table).

    Brackets are paired without looking at more than a row's neighbours: forward and undo rows of one depth alternate, so the next row
    of the same depth closes a forward row. ``_statement`` is the newest INSERT that is open at a row, with the undo row that closes it;
    rows of one ROW_ID are paired inside one such statement, and ``_piece`` is the last row with a placeholder before a row there.

    Returns:
        A SELECT of all columns of the rows that remain, and ``problem``: NULL, ``undo-unmatched`` or
        ``undo-row-id-unknown``. Rows with a problem remain, so that whoever decodes them stops the table.
    """
    insert, delete = int(Operation.INSERT), int(Operation.DELETE)
    inverse = " ".join(
        f"WHEN {int(undo)} THEN {int(forward)}" for undo, forward in UNDONE_BY.items()
    )
    own = "_blind, _step, _depth, _level, _until, _until_row_id, _statement, _line_depth, _line_level, _pair, _piece"
    return f"""
        WITH seen AS (
          SELECT *, COALESCE(row_id = '{UNKNOWN_ROW_ID}', TRUE) AS _unknown,
            MAX(COALESCE(row_id = '{UNKNOWN_ROW_ID}', TRUE) AND NOT rollback) OVER (PARTITION BY xid) AS _blind
          FROM {rows}
        ), stepped AS (
          SELECT *, CASE
            WHEN NOT _blind THEN 0
            WHEN NOT rollback AND operation_code = {insert} THEN 1
            WHEN rollback AND operation_code = {delete} THEN -1
            ELSE 0 END AS _step
          FROM seen
        ), deep AS (
          SELECT *, SUM(_step) OVER (PARTITION BY xid ORDER BY ordinal) AS _depth FROM stepped
        ), levelled AS (
          SELECT *, _depth + IF(_step < 0, 1, 0) AS _level FROM deep
        ), closed AS (
          SELECT *,
            IF(_step > 0, LEAD(ordinal) OVER level, NULL) AS _until,
            IF(_step > 0, LEAD(row_id) OVER level, NULL) AS _until_row_id
          FROM levelled WINDOW level AS (PARTITION BY xid, _level, _step <> 0 ORDER BY ordinal)
        ), placed AS (
          SELECT *,
            LAST_VALUE(IF(_step > 0, NAMED_STRUCT('at', ordinal, 'until', _until, 'row_id', _until_row_id), NULL), TRUE)
              OVER (PARTITION BY xid, _level ORDER BY ordinal) AS _last_statement
          FROM closed
        ), in_statements AS (
          SELECT * EXCEPT (_last_statement), IF(_step = 0 AND _level > 0, _last_statement, NULL) AS _statement
          FROM placed
        ), lined AS (
          SELECT *,
            IF(_step <> 0 OR _unknown, NULL,
              SUM(IF(rollback, -1, 1)) OVER (PARTITION BY xid, row_id, _statement.at, _step <> 0 ORDER BY ordinal)) AS _line_depth
          FROM in_statements
        ), paired AS (
          SELECT *, IF(_unknown OR _step <> 0, NULL, IF(rollback, LAG(here) OVER line, LEAD(here) OVER line)) AS _pair FROM (
            SELECT *, _line_depth + IF(rollback, 1, 0) AS _line_level,
              NAMED_STRUCT('o', ordinal, 'op', operation_code) AS here
            FROM lined
          ) WINDOW line AS (PARTITION BY xid, row_id, _statement.at, _step <> 0, _line_level ORDER BY ordinal)
        ), judged AS (
          SELECT * EXCEPT (here),
            MAX(IF(_unknown AND NOT rollback AND _step = 0, ordinal, NULL))
              OVER (PARTITION BY xid, _statement.at, _step <> 0 ORDER BY ordinal) AS _piece
          FROM paired
        ), told AS (
          SELECT *, CASE
            WHEN rollback AND _unknown THEN 'undo-row-id-unknown'
            WHEN _depth < 0 OR _line_depth < 0 THEN 'undo-unmatched'
            WHEN _step > 0 AND NOT _unknown AND row_id <> _until_row_id THEN 'undo-unmatched'
            WHEN NOT _blind OR _step <> 0 THEN NULL
            WHEN rollback AND (
              _pair.op <> (CASE operation_code {inverse} ELSE -1 END)
              OR COALESCE(_piece > _pair.o, FALSE)
            ) THEN 'undo-unmatched'
            WHEN NOT rollback AND _pair.o IS NULL AND _statement.until IS NOT NULL
              AND ((NOT _unknown AND row_id <> _statement.row_id) OR operation_code = {delete}) THEN 'undo-unmatched'
          END AS problem
          FROM judged
        )
        SELECT * EXCEPT ({own}, _unknown) FROM told
        WHERE problem IS NOT NULL
          OR NOT (rollback OR _until IS NOT NULL OR _statement.until IS NOT NULL OR _pair.o IS NOT NULL)
    """
