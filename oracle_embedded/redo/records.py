"""Which records of the redo does a query of the view need, and in which order?"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from typing import Any

from oracle_embedded.api import RowOp
from oracle_embedded.redo import sink as s
from oracle_embedded.redo import store
from oracle_embedded.redo.contents_row import ObjectFacts
from oracle_embedded.redo.filters import Filter
from oracle_embedded.redo.miner import Mining

Row = Sequence[Any]
"""A row of ``redo_record``, whose columns are those of
:class:`~oracle_embedded.redo.store.Record`."""

_SCN = store.Record._fields.index("scn")
_ENDS = f"{s.OP_COMMIT}, {s.OP_ROLLBACK}"
_SCN_MAX = 2**63 - 1


class Records:
    """The records of one query.

    Args:
        connection: What it reads stays as it was when the query began.
        mining: The range, and the logs that were added.
        wanted: What the query's conditions leave.
        shown: A stored definition (its number, and it packed) as the session's dictionary shows it.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        mining: Mining,
        wanted: Filter,
        shown: Callable[[int, bytes], ObjectFacts],
    ) -> None:
        self._connection = connection
        self._mining = mining
        self._wanted = wanted
        self._shown = shown

    def in_order(self) -> Iterator[Row]:
        """All of the range: each thread's in the order of its redo, the threads merged by SCN.

        The order within a thread is not the SCNs': redo that was bound late has old ones. Source:
        stated by others of a real LogMiner; Oracle's manual speaks of SCN order only.
        """
        by_thread: dict[int, list[int]] = {}
        for added in self._mining.logs:
            by_thread.setdefault(added.log.thread, []).append(added.log.log_id)
        select, binds = self._selection()
        if len(by_thread) == 1:
            return self._connection.execute(f"{select} ORDER BY id", binds)
        return _merged(
            [
                self._connection.execute(
                    f"{select} AND log_id IN ({', '.join(map(str, own))}) ORDER BY id", binds
                )
                for own in by_thread.values()
            ]
        )

    def committed(self) -> Iterator[store.Transaction]:
        """Transactions that began and ended in the range, in the order of their commits."""
        transactions = self._connection.execute(
            f"SELECT {store.TRANSACTION_COLUMNS} FROM redo_transaction"
            " WHERE committed = 1 AND first_id >= ? AND start_scn >= ?"
            " AND end_scn BETWEEN ? AND ? ORDER BY last_id",
            (
                self._first_id,
                self._mining.scn_low,
                self._wanted.commit_low,
                min(self._mining.scn_high, self._wanted.commit_high),
            ),
        )
        return map(store.transaction_from, transactions)

    def of(self, transaction: store.Transaction) -> Iterator[store.Record]:
        """A transaction's records, in the order of the redo."""
        rows = self._connection.execute(
            f"SELECT {store.RECORD_COLUMNS} FROM redo_record"
            f" WHERE id BETWEEN ? AND ? AND tx = ? ORDER BY op <> {s.OP_START}, op IN ({_ENDS}), id",
            (transaction.first_id, transaction.last_id, transaction.tx),
        )
        return map(store.Record._make, rows)

    def undone(self, transaction: store.Transaction) -> frozenset[int]:
        """Ids of records that were undone within the transaction, and of those that undid them."""
        undone: set[int] = set()
        done: dict[bytes, list[int]] = {}
        for record in self.of(transaction):
            if record.op > RowOp.UPDATE or record.row_id is None:
                continue
            if not record.flags & s.FLAG_ROLLBACK:
                done.setdefault(record.row_id, []).append(record.id)
                continue
            undone.add(record.id)
            if done.get(record.row_id):
                undone.add(done[record.row_id].pop())
        return frozenset(undone)

    @property
    def _first_id(self) -> int:
        """Before it no log that was added has a record."""
        return min(added.log.first_id for added in self._mining.logs)

    def _selection(self) -> tuple[str, list[object]]:
        low = max(self._mining.scn_low, self._wanted.scn_low)
        high = min(self._mining.scn_high, self._wanted.scn_high, _SCN_MAX)
        first, end = store.ids_between(self._connection, low, high)
        clauses = ["id >= ?", "scn BETWEEN ? AND ?"]
        binds: list[object] = [max(first, self._first_id), low, high]
        if end is not None:
            clauses.append("id < ?")
            binds.append(end)
        for bound, sign in ((self._mining.start_time, ">="), (self._mining.end_time, "<=")):
            if bound is not None:
                clauses.append(f"time {sign} ?")
                binds.append(int(bound.replace(tzinfo=UTC).timestamp()))
        if self._wanted.ops is not None:
            clauses.append(f"op IN ({', '.join(map(str, sorted(self._wanted.ops)))})")
        objects = self._wanted_objects()
        if objects is not None:
            clauses.append(f"(op = {s.OP_DDL} OR object IN ({', '.join(map(str, objects))}))")
        return (
            f"SELECT {store.RECORD_COLUMNS} FROM redo_record WHERE {' AND '.join(clauses)}",
            binds,
        )

    def _wanted_objects(self) -> list[int] | None:
        """Numbers of the objects whose name the query asks for; None for all."""
        if not self._wanted.names:
            return None
        definitions = self._connection.execute("SELECT object, definition FROM redo_object")
        return [
            number
            for number, packed in definitions
            if self._wanted.accepts(self._shown(number, packed))
        ]


def _merged(threads: Sequence[Iterator[Row]]) -> Iterator[Row]:
    """Records of several threads: always the one of the lowest SCN among those that come next."""
    heads = [(head, records) for records in threads if (head := next(records, None)) is not None]
    while heads:
        at = min(range(len(heads)), key=lambda index: heads[index][0][_SCN])
        head, records = heads[at]
        yield head
        following = next(records, None)
        if following is None:
            del heads[at]
        else:
            heads[at] = (following, records)
