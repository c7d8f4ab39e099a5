"""How does SELECT … FOR UPDATE run, by itself and in a block?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracle_embedded.api import OracleError, OraType, Value
from oracle_embedded.engine.compile.plan import Plan
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.query_run import ListRows, QueryRows, lob_places, open_query
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.transactions import Busy

_LOCK_BATCH = 1000
_LOBS = frozenset({OraType.CLOB, OraType.BLOB})


def locking_query(
    session: SessionState, query: ast.Query, plan: Plan, binds: Sequence[Value]
) -> ListRows:
    """SELECT … FOR UPDATE: lock all rows first, then give them out."""
    transactions = session.database.transactions
    assert query.for_update is not None
    columns = plan.shown
    width = len(columns)
    with session.database.store.lock:
        while True:
            transaction = session.need_transaction()
            opened = open_query(session, plan, binds, columns)
            opened.keep_contents()
            found: list[Any] = list(_all_rows(opened))
            try:
                kept = []
                for row in found:
                    keys = [
                        (use.table, rid)
                        for use, rid in zip(plan.locks, row[width:], strict=True)
                        if rid is not None
                    ]
                    try:
                        for table, rid in keys:
                            transactions.claim(transaction, table, [rid])
                    except Busy:
                        if query.for_update.skip_locked:
                            continue
                        raise
                    kept.append((row, keys))
            except Busy as busy:
                try:
                    transactions.wait(
                        transaction, busy.holder, session.is_interrupted, query.for_update.wait
                    )
                except OracleError:
                    session.drop_empty_transaction()
                    raise
                continue
            for _, keys in kept:
                for table, rid in keys:
                    transactions.lock_rows(transaction, table, [rid])
            transaction.changes += 1
            lobs = [at for at, column in enumerate(columns) if column.type in _LOBS]
            places = [lob_places(plan, row) for row, _ in kept]
            rows = [row[:width] for row, _ in kept]
            return ListRows(session.with_handles(rows, lobs, columns, places), columns)


def _all_rows(rows: QueryRows) -> list[Sequence[Value]]:
    found: list[Sequence[Value]] = []
    while True:
        batch = rows.fetch(_LOCK_BATCH)
        found.extend(batch)
        if len(batch) < _LOCK_BATCH:
            return found
