"""How do transaction control, SET CONSTRAINTS and LOCK TABLE run?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import TableDef
from oracle_embedded.engine.storage.deferred import ConstraintId, violation
from oracle_embedded.engine.storage.transactions import Busy


def run_control(session: SessionState, node: object) -> None:
    """Transaction control, SET CONSTRAINTS and LOCK TABLE."""
    match node:
        case ast.Simple():
            session.control(node)
        case ast.SetConstraints():
            _set_constraints(session, node)
        case ast.LockTable():
            _lock_tables(session, node)
        case _:
            raise AssertionError(f"no way to run {type(node)}")


def _set_constraints(session: SessionState, node: ast.SetConstraints) -> None:
    """Defer keys to the end of the transaction, or check them now.

    Raises:
        OracleError: ORA-02447 or ORA-02448 for what cannot be deferred, ORA-00001 if rows share a
            key that is to be checked; it stays deferred then.
    """
    database = session.database
    with database.store.lock:
        chosen = [_deferrable(session, name) for name in node.names]
        transaction = session.need_transaction()
        if not node.deferred:
            found = violation(database.store, transaction.deferral, transaction.number, chosen)
            if found is not None:
                raise found
        transaction.deferral.set_mode(chosen, deferred=node.deferred)


def _deferrable(session: SessionState, name: ast.Name) -> ConstraintId:
    owner = name[0] if len(name) > 1 else session.schema
    for table in session.database.store.catalog.tables():
        for constraint in table.constraints if table.owner == owner else ():
            if constraint.name == name[-1]:
                if not constraint.deferrable:
                    raise OracleError(2447, "cannot defer a constraint that is not deferrable")
                return table.object_id, constraint.name
    raise OracleError(2448, "constraint does not exist")


def _lock_tables(session: SessionState, node: ast.LockTable) -> None:
    database = session.database
    transactions = database.transactions
    with database.store.lock:
        for reference in node.tables:
            owner = reference.name[0] if len(reference.name) > 1 else session.schema
            table = database.find(session, owner, reference.name[-1])
            if not isinstance(table, TableDef) or not database.security.may_select(
                session.rights, table
            ):
                raise ora(942, offset=reference.pos)
            if not database.security.may_lock(session.rights, table):
                raise ora(1031, offset=reference.pos)
            while True:
                transaction = session.need_transaction()
                try:
                    transactions.lock_table(transaction, table.object_id, node.mode)
                    transaction.changes += 1
                    break
                except Busy as busy:
                    transactions.wait(transaction, busy.holder, session.is_interrupted, node.wait)
