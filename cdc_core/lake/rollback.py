"""Which redo rows of a committed transaction did it take back itself?

A statement that fails, or ROLLBACK TO SAVEPOINT, makes Oracle undo rows inside a transaction that commits later: each undone
row is followed by an inverse row with ROLLBACK = 1 and the same ROW_ID, in reverse order (Debezium 3.x, partial rollback;
LogMiner documentation, column ROLLBACK).

**The rule.** Per (transaction, table, ROW_ID), in LogMiner's order, a forward row counts +1 and an undo row −1; ``depth`` is
the running sum including the row itself. A forward row is cancelled iff some later row has a depth below the row's own.

**Why it is right.** Undo takes back the newest row that is not taken back yet, so forward and undo rows nest like brackets.
A forward row opens a bracket and lifts the sum to its own depth; the sum falls below that depth for the first time
exactly at the bracket's closing undo row, since everything between them is balanced. If the sum never falls below, the
bracket was never closed. One ROW_ID is enough of a key: undo of other rows does not change this row's brackets.
A sum below zero is an undo without its forward row: the transaction's beginning is missing, and the window must stop.

:func:`surviving` is the rule in plain Python and the test oracle of :func:`surviving_sql`.
"""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN_ROW_ID = "AAAAAAAAAAAAAAAAAA"
"""LogMiner prints this where it does not know the row's address (first row of an insert into a table with LOBs)."""


def surviving(rollback: Sequence[bool]) -> list[bool]:
    """Which rows of one (transaction, table, ROW_ID) remain, in order: False for undo rows and what they undid.

    Raises:
        ValueError: There is an undo row without its forward row.
    """
    depths: list[int] = []
    for is_undo in rollback:
        depths.append((depths[-1] if depths else 0) + (-1 if is_undo else 1))
    if depths and min(depths) < 0:
        raise ValueError("an undo row has no forward row")
    return [
        not is_undo and min(depths[index:]) >= depths[index]
        for index, is_undo in enumerate(rollback)
    ]


def surviving_sql(rows: str) -> str:
    """The rule as Spark SQL windows over the view ``rows`` (columns ``xid, row_id, ordinal, rollback, …`` of one table).

    Returns:
        A SELECT of all columns of the rows that remain, and ``problem``: NULL, ``undo-unmatched`` or
        ``undo-row-id-unknown``. Rows with a problem remain, so that whoever decodes them stops the window.
    """
    return f"""
        WITH depths AS (
          SELECT *, SUM(IF(rollback, -1, 1)) OVER (PARTITION BY xid, row_id ORDER BY ordinal) AS depth
          FROM {rows}
        ), marked AS (
          SELECT *,
            MIN(depth) OVER (
              PARTITION BY xid, row_id ORDER BY ordinal ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
            ) AS lowest_later
          FROM depths
        )
        SELECT * EXCEPT (depth, lowest_later),
          CASE
            WHEN rollback AND (row_id IS NULL OR row_id = '{UNKNOWN_ROW_ID}') THEN 'undo-row-id-unknown'
            WHEN depth < 0 THEN 'undo-unmatched'
          END AS problem
        FROM marked
        WHERE (NOT rollback AND COALESCE(lowest_later, depth) >= depth)
           OR depth < 0
           OR (rollback AND (row_id IS NULL OR row_id = '{UNKNOWN_ROW_ID}'))
    """
