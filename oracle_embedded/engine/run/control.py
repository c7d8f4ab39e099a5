"""How do transaction control and LOCK TABLE run?"""

from __future__ import annotations

from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import TableDef
from oracle_embedded.engine.storage.transactions import Busy


def run_control(session: SessionState, node: object) -> None:
    """Transaction control and LOCK TABLE."""
    match node:
        case ast.Simple():
            session.control(node)
        case ast.LockTable():
            _lock_tables(session, node)
        case _:
            raise AssertionError(f"no way to run {type(node)}")


def _lock_tables(session: SessionState, node: ast.LockTable) -> None:
    database = session.database
    transactions = database.transactions
    with database.store.lock:
        for reference in node.tables:
            owner = reference.name[0] if len(reference.name) > 1 else session.schema
            table = database.find(session, owner, reference.name[-1])
            if not isinstance(table, TableDef) or not database.security.may_select(
                session.username, table
            ):
                raise ora(942, offset=reference.pos)
            if not database.security.may_lock(session.username, table):
                raise ora(1031, offset=reference.pos)
            while True:
                transaction = session.need_transaction()
                try:
                    transactions.lock_table(transaction, table.object_id, node.mode)
                    transaction.changes += 1
                    break
                except Busy as busy:
                    transactions.wait(transaction, busy.holder, session.is_interrupted, node.wait)
