"""What is known of a transaction that has not ended, or of one that is not whole?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

LedgerState = Literal["open", "undone", "released"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction without COMMIT or ROLLBACK at the end of the last captured window: one line of the ledger.

    ``first_ordinal`` names the window in which it was first seen, ``tables`` the captured tables ("OWNER.NAME") it touched so
    far, ``table_rows`` the captured redo rows of each of them (None, or no number at all, where a version that did not count by table
    saw it first), ``rows`` those of all, and ``undone`` those of them that take another one back. ``start_scn`` is None where no START
    row was seen.

    ``state`` is ``undone`` after a ROLLBACK row that may have closed the transaction or only a savepoint, with nothing left to
    apply; and ``released`` when Oracle no longer knows it and its end was never seen. ``absent_scn`` is the SCN at which Oracle
    was first found not to know it, ``session_id`` and ``serial`` name the session that began it, ``client_id`` is that session's
    CLIENT_IDENTIFIER, and ``start_timestamp`` the database's time then, without a zone.
    """

    xid: str
    start_scn: int | None
    first_ordinal: int
    has_rollback: bool = False
    tables: tuple[str, ...] = ()
    rows: int = 0
    username: str | None = None
    undone: int = 0
    state: LedgerState = "open"
    session_id: int | None = None
    serial: int | None = None
    absent_scn: int | None = None
    table_rows: tuple[int | None, ...] = ()
    start_timestamp: datetime | None = None
    client_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncompleteTransaction:
    """A committed transaction of which it cannot be shown that all its changes were read; ``tables`` are those it touched."""

    xid: str
    commit_scn: int | None
    start_scn: int | None
    tables: tuple[str, ...]
    reason: str
