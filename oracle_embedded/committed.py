"""Which transactions has this database committed, and what of them was not undone? For what gives
others committed changes only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from oracle_embedded.api import RowOp, TableVersion, Value
from oracle_embedded.redo import sink as s
from oracle_embedded.redo import store

ROW_OPS = frozenset({RowOp.INSERT, RowOp.UPDATE, RowOp.DELETE})


def transactions(connection: sqlite3.Connection, after: int) -> Iterator[store.Transaction]:
    """Transactions in the order of their COMMIT records."""
    query = (
        f"SELECT {store.TRANSACTION_COLUMNS} FROM redo_transaction"
        " WHERE committed = 1 AND last_id > ? ORDER BY last_id"
    )
    rows = connection.execute(query, (after,)).fetchall()
    return map(store.transaction_from, rows)


def records(
    connection: sqlite3.Connection, transaction: store.Transaction
) -> Iterator[store.Record]:
    """The records of a transaction in the order of the redo."""
    query = (
        f"SELECT {store.RECORD_COLUMNS} FROM redo_record"
        " WHERE id BETWEEN ? AND ? AND tx = ? ORDER BY id"
    )
    bounds = (transaction.first_id, transaction.last_id, transaction.tx)
    return map(store.Record._make, connection.execute(query, bounds))


def redo_end(connection: sqlite3.Connection) -> int:
    """Every COMMIT that is still to come has a higher SCN than the newest record's."""
    (scn,) = connection.execute("SELECT coalesce(max(scn), 0) FROM redo_record").fetchone()
    return int(scn)


def undone(records: Sequence[store.Record]) -> set[int]:
    """Records that were undone, and those that undid them: the newest of a row goes first."""
    gone: set[int] = set()
    left: dict[bytes | None, list[int]] = {}
    for record in records:
        if record.op not in ROW_OPS:
            continue
        own = left.setdefault(record.row_id, [])
        if not record.flags & s.FLAG_ROLLBACK:
            own.append(record.id)
            continue
        gone.add(record.id)
        if own:
            gone.add(own.pop())
    return gone


def table(connection: sqlite3.Connection, number: int) -> TableVersion:
    """The version of a table that a record names by number."""
    query = "SELECT definition FROM redo_object WHERE object = ?"
    (packed,) = connection.execute(query, (number,)).fetchone()
    return store.unpack_table(packed)


def image(packed: bytes | None) -> dict[int, Value]:
    """Values by the column's internal id; empty where there is no image."""
    return {} if packed is None else store.unpack_image(packed)
