"""Would a snapshot's SELECT give the same rows and values of a table as its redo, and does the key name one row?

What stands between the two: temporary tables, whose rows belong to sessions; row-level security (VPD), which hides rows; Data
Redaction, which masks values; row archival, which hides rows from sessions that do not ask for them (ours do, see
``oracle.session``); and constraints that Oracle does not enforce, or not yet.

Source: Oracle Database Reference 19c, ALL_TABLES, ALL_POLICIES, REDACTION_POLICIES, ALL_CONSTRAINTS, SESSION_PRIVS; Security Guide
19c, "Using Oracle Virtual Private Database"; Advanced Security Guide 19c, "Exempting Users from Oracle Data Redaction Policies".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_core.errors import PreflightError
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId, quote
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import tables_condition

_TEMPORARY = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE TEMPORARY = 'Y' AND {tables}"
_POLICIES = """
SELECT OBJECT_OWNER, OBJECT_NAME, POLICY_NAME
  FROM ALL_POLICIES
 WHERE ENABLE = 'YES' AND SEL = 'YES' AND {tables}"""
_REDACTIONS = """
SELECT OBJECT_OWNER, OBJECT_NAME, POLICY_NAME
  FROM REDACTION_POLICIES
 WHERE TRIM(ENABLE) = 'YES' AND {tables}"""
_EXEMPTIONS = """
SELECT PRIVILEGE FROM SESSION_PRIVS WHERE PRIVILEGE IN ('EXEMPT ACCESS POLICY', 'EXEMPT REDACTION POLICY')"""
_LOOSE_KEYS = """
SELECT C.OWNER, C.TABLE_NAME, C.CONSTRAINT_NAME, C.STATUS, C.VALIDATED, C.DEFERRABLE
  FROM ALL_CONSTRAINTS C
 WHERE C.CONSTRAINT_TYPE = 'P' AND {tables}
   AND (C.STATUS <> 'ENABLED' OR C.VALIDATED <> 'VALIDATED' OR C.DEFERRABLE = 'DEFERRABLE')"""


def check_rows(session: OracleSession, tables: Sequence[TableId]) -> list[Finding]:
    """What would make a snapshot differ from the redo, or a key name more than one row."""
    privileges = {privilege for (privilege,) in session.fetch_all(_EXEMPTIONS)}
    found = [
        Finding(
            f"{table} is a temporary table: its rows belong to sessions and are not in the redo",
            "Leave it out of `tables`",
            table,
        )
        for table in _rows(session, _TEMPORARY, tables, "OWNER", "TABLE_NAME")
    ]
    if "EXEMPT ACCESS POLICY" not in privileges:
        found += _check_policies(session, tables)
    if "EXEMPT REDACTION POLICY" not in privileges:
        found += _check_redaction(session, tables)
    return [*found, *_check_keys(session, tables)]


def _check_policies(session: OracleSession, tables: Sequence[TableId]) -> Iterator[Finding]:
    for table, policies in _rows(session, _POLICIES, tables, "OBJECT_OWNER", "OBJECT_NAME").items():
        names = ", ".join(sorted({str(name) for (name,) in policies}))
        yield Finding(
            f"{table} has row-level security ({names}): queries of the capture user may miss rows that the redo has",
            f"GRANT EXEMPT ACCESS POLICY TO {session.user}",
            table,
        )


def _check_redaction(session: OracleSession, tables: Sequence[TableId]) -> Iterator[Finding]:
    try:
        found = _rows(session, _REDACTIONS, tables, "OBJECT_OWNER", "OBJECT_NAME")
    except PreflightError:
        yield Finding(
            "the capture user may not see whether Data Redaction masks columns of the tables",
            f"GRANT SELECT ON SYS.REDACTION_POLICIES TO {session.user}, or GRANT EXEMPT REDACTION POLICY TO {session.user}",
            is_problem=False,
        )
        return
    for table, policies in found.items():
        names = ", ".join(sorted({str(name) for (name,) in policies}))
        yield Finding(
            f"{table} has Data Redaction ({names}): queries of the capture user may give masked values, the redo true ones",
            f"GRANT EXEMPT REDACTION POLICY TO {session.user}",
            table,
        )


def _check_keys(session: OracleSession, tables: Sequence[TableId]) -> Iterator[Finding]:
    for table, constraints in _rows(
        session, _LOOSE_KEYS, tables, "C.OWNER", "C.TABLE_NAME"
    ).items():
        for name, status, validated, deferrable in constraints:
            change = f"ALTER TABLE {table.sql} MODIFY CONSTRAINT {quote(name)} ENABLE VALIDATE"
            if status != "ENABLED":
                yield Finding(
                    f"{table}: its primary key {name} is disabled, so it may be double",
                    change,
                    table,
                    is_problem=False,
                )
            elif validated != "VALIDATED":
                yield Finding(
                    f"{table}: its primary key {name} is not validated, so older rows may have it twice",
                    change,
                    table,
                )
            elif deferrable == "DEFERRABLE":
                yield Finding(
                    f"{table}: its primary key {name} is deferrable: rows may share it until they are committed",
                    "Nothing needs to be done. If the table has LOBs, a transaction that inserts a key and then deletes a row of that key stops "
                    "it, since LogMiner does not show which row went",
                    table,
                    is_problem=False,
                )


def _rows(
    session: OracleSession, sql: str, tables: Sequence[TableId], owner: str, name: str
) -> dict[TableId, list[tuple[str, ...]]]:
    """A query's rows by table, without the table's two columns."""
    condition, binds = tables_condition(tables, owner, name)
    found: dict[TableId, list[tuple[str, ...]]] = {}
    for row in session.fetch_all(sql.format(tables=condition), binds):
        found.setdefault(TableId(row[0], row[1]), []).append(row[2:])
    return found
