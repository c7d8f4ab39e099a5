"""Would a snapshot's SELECT give the same rows and values of a table as its redo, and does the key
name one row?

What stands between the two: temporary tables, whose rows belong to sessions; row-level security and
Data Redaction, which hide rows and values (``oracle.hidden_rows``); row archival, which hides rows
from sessions that do not ask for them (ours do, see ``oracle.session``); and constraints that
Oracle does not enforce, or not yet.

Source: Oracle Database Reference 19c, ALL_TABLES, ALL_CONSTRAINTS.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import quote
from cdc_core.oracle.hidden_rows import policies_on
from cdc_core.preflight.checks import Check, CheckInput
from cdc_core.schema.dictionary_queries import rows_about

_TEMPORARY = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE TEMPORARY = 'Y' AND {tables}"
_LOOSE_KEYS = """
SELECT C.OWNER, C.TABLE_NAME, C.CONSTRAINT_NAME, C.STATUS, C.VALIDATED, C.DEFERRABLE
  FROM ALL_CONSTRAINTS C
 WHERE C.CONSTRAINT_TYPE = 'P' AND {tables}
   AND (C.STATUS <> 'ENABLED' OR C.VALIDATED <> 'VALIDATED' OR C.DEFERRABLE = 'DEFERRABLE')"""


def _check_temporary(given: CheckInput) -> Iterator[Finding]:
    for (table,) in rows_about(given.session, _TEMPORARY, given.tables):
        yield Finding(
            f"{table} is a temporary table: its rows belong to sessions and are not in the redo",
            "Leave it out of `tables`",
            table,
        )


def _check_policies(given: CheckInput) -> list[Finding]:
    return policies_on(given.session, given.tables)


def _check_keys(given: CheckInput) -> Iterator[Finding]:
    rows = rows_about(
        given.session, _LOOSE_KEYS, given.tables, owner="C.OWNER", name="C.TABLE_NAME"
    )
    for table, name, status, validated, deferrable in rows:
        change = f"ALTER TABLE {table.sql} MODIFY CONSTRAINT {quote(name)} ENABLE VALIDATE"
        if status != "ENABLED":
            yield Finding(
                f"{table}: its primary key {name} is disabled, so rows may duplicate it",
                change,
                table,
                is_problem=False,
            )
        elif validated != "VALIDATED":
            yield Finding(
                f"{table}: its primary key {name} is not validated, so older rows may duplicate it",
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


ROW_CHECKS: tuple[Check[CheckInput], ...] = (
    Check("temporary tables", "Leave the table out", "concepts/tables.md", _check_temporary),
    Check(
        "row-level security and Data Redaction",
        "GRANT EXEMPT ACCESS POLICY, EXEMPT REDACTION POLICY",
        "limits.md",
        _check_policies,
    ),
    Check(
        "primary keys that Oracle does not enforce, or not yet",
        "ALTER TABLE … MODIFY CONSTRAINT … ENABLE VALIDATE",
        "concepts/tables.md",
        _check_keys,
    ),
)
"""What would make a snapshot differ from the redo, or a key name more than one row."""
