"""Which policies of a table concern a session's statement?

Source: Oracle Database Security Guide 19c, "Using Oracle Virtual Private Database to Control Data
Access"; Oracle Database Advanced Security Guide 19c, "Exempting Users from Oracle Data Redaction
Policies".
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.compilation import Predicate
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.storage.catalog import TableDef
from oracle_embedded.engine.storage.policies import Redaction, RowPolicy


def redaction(session: SessionState, table: TableDef) -> Redaction | None:
    """The redaction that a session's queries of a table meet."""
    policy = table.redaction
    if policy is None or not policy.enabled or _is_exempt(session, "EXEMPT REDACTION POLICY"):
        return None
    return policy


def predicates(
    session: SessionState, table: TableDef, kind: str, checks: bool
) -> Sequence[Predicate]:
    """What the policy functions of a table demand of a kind of statement; with ``checks`` of the
    rows that it writes.

    Raises:
        OracleError: ORA-28108 for a function that reads its own table, ORA-28110 for one that is
            missing or does not fit, ORA-28112 for one that fails.
    """
    chosen = [
        policy
        for policy in table.policies
        if policy.enabled and kind in policy.kinds and (policy.update_check or not checks)
    ]
    if not chosen or _is_exempt(session, "EXEMPT ACCESS POLICY"):
        return ()
    if table.object_id in session.enforcing:
        raise OracleError(28108, "circular security policies detected")
    session.enforcing.add(table.object_id)
    try:
        found = [(policy, _called(session, table, policy)) for policy in chosen]
    finally:
        session.enforcing.discard(table.object_id)
    return [Predicate(policy.owner, text) for policy, text in found if text]


def _is_exempt(session: SessionState, privilege: str) -> bool:
    user = session.rights
    return user == "SYS" or privilege in session.database.security.all_of(user)


def _called(session: SessionState, table: TableDef, policy: RowPolicy) -> str:
    """What a policy function returns; it runs with its owner's rights."""
    name = (policy.owner, *policy.function.split("."))
    before = session.rights, session.schema
    session.rights, session.schema = policy.owner, policy.owner
    try:
        programs = session.database.programs
        function = programs.function(session, name)
        if function is None or len(function.parameters) < 2:
            raise OracleError(28110, f"policy function or package {'.'.join(name)} has error")
        schema, named = function.parameters[:2]
        given = {schema: table.owner.encode(), named: table.name.encode()}
        try:
            returned = programs.call(session, ".".join(name), given)
        except OracleError as error:
            if error.code == 28108:
                raise
            raise OracleError(28112, "failed to execute policy function") from error
    finally:
        session.rights, session.schema = before
    return returned.decode() if isinstance(returned, bytes) else returned or ""
