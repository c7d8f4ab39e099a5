"""What is known of a transaction that has not ended?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction without COMMIT or ROLLBACK at the end of the last captured window: one line of the ledger.

    ``first_ordinal`` names the window in which it was first seen, ``tables`` the captured tables ("OWNER.NAME") it touched so
    far, ``rows`` its captured redo rows so far. ``start_scn`` is None where no START row was seen.
    """

    xid: str
    start_scn: int | None
    first_ordinal: int
    has_rollback: bool = False
    tables: tuple[str, ...] = ()
    rows: int = 0
    username: str | None = None
