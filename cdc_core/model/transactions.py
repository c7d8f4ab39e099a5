"""What is known of a transaction that has not ended, or of one that is not whole?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

LedgerState = Literal["open", "undone", "ending", "released", "rolled_back", "displaced"]
OVER: tuple[LedgerState, ...] = ("released", "rolled_back", "displaced")
"""Kept only so that a COMMIT against all that is known stops its tables: nothing waits for them."""


NO_XID = "0" * 16
UNRESOLVED = "ffffffff"
"""The sequence part of an XID where LogMiner does not know it."""

SLOT_DIGITS = 8
"""The part of an XID that names undo segment and slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction without COMMIT or ROLLBACK at the end of the last captured window: one line of
    the ledger.

    ``first_ordinal`` names the window in which it was first seen, ``tables`` the captured tables
    ("OWNER.NAME") it touched so far, ``table_rows`` the captured redo rows of each of them,
    ``rows`` those of all, and ``undone`` those of them that take another one back. ``start_scn`` is
    None where no START row was seen.

    ``state`` is ``undone`` after a ROLLBACK row that may have closed the transaction or only a
    savepoint, with nothing left to apply; ``ending`` after such a row where nothing tells whether
    something is left, since one undo row of a table with LOBs stands for a statement;
    ``rolled_back`` when Oracle no longer knows one that was ``ending``; ``displaced`` when another
    one began in its undo slot and no end of it was seen; and ``released`` when Oracle no longer
    knows it and no end of it was ever seen. ``absent_scn`` is the SCN at which Oracle was first
    found not to know it, ``session_id`` and ``serial`` name the session that began it,
    ``client_id`` is that session's CLIENT_IDENTIFIER, and ``start_timestamp`` the database's time
    then, without a zone.

    ``windows`` are the windows in which its captured rows landed, as :func:`with_window` writes
    them.
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
    table_rows: tuple[int, ...] = ()
    start_timestamp: datetime | None = None
    client_id: str | None = None
    windows: tuple[int, ...] = ()

    @property
    def is_over(self) -> bool:
        """Has it ended, as far as anybody can know?"""
        return self.state in OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class IncompleteTransaction:
    """A committed transaction of which it cannot be shown that all its changes were read;
    ``tables`` are those it touched."""

    xid: str
    commit_scn: int | None
    start_scn: int | None
    tables: tuple[str, ...]
    reason: str


WINDOW_RUNS_MAX = 64
"""A transaction that comes and goes for longer has some windows noted that have no rows of it,
which costs reading them."""


def with_window(runs: Sequence[int], ordinal: int) -> tuple[int, ...]:
    """Windows as runs (first and last ordinal, first and last, …, ascending), with one more that is
    not below the last of them.

    At most :data:`WINDOW_RUNS_MAX` runs: of more, the two that lie closest to each other become
    one. No window is ever left out.
    """
    if runs and ordinal <= runs[-1] + 1:
        return (*runs[:-1], max(ordinal, runs[-1]))
    found = [*runs, ordinal, ordinal]
    if len(found) > 2 * WINDOW_RUNS_MAX:
        gaps = [found[at + 1] - found[at] for at in range(1, len(found) - 1, 2)]
        at = 1 + 2 * gaps.index(min(gaps))
        del found[at : at + 2]
    return tuple(found)


def windows_of(runs: Sequence[int]) -> list[range]:
    """The windows that :func:`with_window` noted."""
    return [range(first, last + 1) for first, last in zip(runs[::2], runs[1::2], strict=True)]


def slot_of(xid: str) -> str:
    """The undo segment and slot of a transaction: it has one open transaction at a time."""
    return xid[:SLOT_DIGITS]
