"""Do a session's queries give all rows of a table, and their true values?

Row-level security (VPD) hides rows from queries and Data Redaction replaces values in their
results; the redo has all rows as they are. Past data is read under the policies of the present. A
policy may come at any time, and no DDL says so, so every read of a table's rows is held against the
policies before it and after it.

Source: Oracle Database Security Guide 19c, "Oracle Virtual Private Database Policies and Flashback
UserQueries"; Database Reference 19c, ALL_POLICIES, REDACTION_POLICIES, SESSION_PRIVS; Advanced
Security Guide 19c, "Exempting Users from Oracle Data Redaction Policies".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cdc_core.errors import PreflightError
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.schema.dictionary_queries import UserQueries, tables_condition

_POLICIES = """
SELECT PRIVILEGE, NULL, NULL, 'exempt'
  FROM SESSION_PRIVS
 WHERE PRIVILEGE IN ('EXEMPT ACCESS POLICY', 'EXEMPT REDACTION POLICY')
 UNION ALL
SELECT OBJECT_OWNER, OBJECT_NAME, POLICY_NAME, 'policy'
  FROM ALL_POLICIES
 WHERE ENABLE = 'YES' AND SEL = 'YES' AND {tables}"""
_POLICIES_AND_REDACTIONS = f"""{_POLICIES}
 UNION ALL
SELECT OBJECT_OWNER, OBJECT_NAME, POLICY_NAME, 'redaction'
  FROM REDACTION_POLICIES
 WHERE TRIM(ENABLE) = 'YES' AND {{tables}}"""


@contextmanager
def seeing_all(session: UserQueries, table: TableId) -> Iterator[None]:
    """Read rows of a table in the block, and let them count only if no policy stood between,
    neither when it began nor when it ended.

    Raises:
        PreflightError: The table has row-level security or Data Redaction, and the user is not
            exempt.
    """
    refuse_hidden(session, table)
    yield
    refuse_hidden(session, table)


def refuse_hidden(session: UserQueries, table: TableId) -> None:
    """Let the rows of a table be read only if no policy stands between now.

    Raises:
        PreflightError: As for :func:`seeing_all`.
    """
    found = [one for one in policies_on(session, [table]) if one.is_problem]
    if found:
        raise PreflightError(
            "; ".join(one.problem for one in found),
            hint="; ".join(one.remedy for one in found) + ".",
            table=table,
        )


def policies_on(session: UserQueries, tables: Sequence[TableId]) -> list[Finding]:
    """The policies that would hide rows or values of tables from this session's queries, each with
    its remedy."""
    condition, binds = tables_condition(tables, "OBJECT_OWNER", "OBJECT_NAME")
    sees_redactions = True
    try:
        rows = session.fetch_all(_POLICIES_AND_REDACTIONS.format(tables=condition), binds)
    except PreflightError:
        sees_redactions = False
        rows = session.fetch_all(_POLICIES.format(tables=condition), binds)
    exempt = {row[0] for row in rows if row[-1] == "exempt"}
    found: list[Finding] = []
    if "EXEMPT ACCESS POLICY" not in exempt:
        found += _row_policies(session, _by_table(rows, "policy"))
    if "EXEMPT REDACTION POLICY" not in exempt:
        seen = _by_table(rows, "redaction") if sees_redactions else None
        found += _redactions(session, seen)
    return found


def _row_policies(session: UserQueries, found: Mapping[TableId, str]) -> Iterator[Finding]:
    for table, names in found.items():
        yield Finding(
            f"{table} has row-level security ({names}): queries of the capture user may miss rows that the redo has",
            f"GRANT EXEMPT ACCESS POLICY TO {session.user}",
            table,
        )


def _redactions(session: UserQueries, found: Mapping[TableId, str] | None) -> Iterator[Finding]:
    """None stands for policies that one may not see."""
    if found is None:
        yield Finding(
            "the capture user may not see whether Data Redaction masks columns of the tables",
            f"GRANT SELECT ON SYS.REDACTION_POLICIES TO {session.user}, or GRANT EXEMPT REDACTION POLICY TO {session.user}",
            is_problem=False,
        )
        return
    for table, names in found.items():
        yield Finding(
            f"{table} has Data Redaction ({names}): queries of the capture user may give masked values, the redo true ones",
            f"GRANT EXEMPT REDACTION POLICY TO {session.user}",
            table,
        )


def _by_table(rows: Sequence[tuple[Any, ...]], wanted: str) -> dict[TableId, str]:
    """Names of policies of a kind, by table."""
    found: dict[TableId, set[str]] = {}
    for owner, name, policy, kind in rows:
        if kind == wanted:
            found.setdefault(TableId(owner, name), set()).add(str(policy))
    return {table: ", ".join(sorted(names)) for table, names in found.items()}
