"""What keeps rows and values of a table from those who query it: row-level security and redaction.

Source: Oracle Database Security Guide 19c, "Using Oracle Virtual Private Database to Control Data
Access"; Oracle Database Advanced Security Guide 19c, "Configuring Oracle Data Redaction Policies".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RowPolicy:
    """A policy of DBMS_RLS: the function that gives a predicate for each statement of some kinds.

    ``function`` is ``[package.]name``. With ``update_check`` rows must meet the predicate after
    INSERT and UPDATE as well.
    """

    name: str
    owner: str
    function: str
    kinds: tuple[str, ...]
    update_check: bool = False
    enabled: bool = True


@dataclass(frozen=True, kw_only=True)
class RedactedColumn:
    """What queries get in place of a column's values; ``kind`` as DBMS_REDACT numbers it."""

    internal_id: int
    kind: int
    parameters: str | None = None


@dataclass(frozen=True, kw_only=True)
class Redaction:
    """The one policy of DBMS_REDACT that a table may have: values are redacted where ``expression``
    is true."""

    name: str
    expression: str
    columns: tuple[RedactedColumn, ...] = ()
    enabled: bool = True
    description: str | None = None
