"""Which transactions of the ledger does Oracle no longer know, though the end of them was never
mined?

A session that was killed can leave a transaction of which LogMiner shows no end. Its line in the
ledger would keep landing files for ever. It is given up, ``released``, by a strict rule: Oracle was
found twice not to know it; all redo up to the SCN of the first time was mined, by whole windows,
without its end; and the session that began it is gone. What is not known speaks against it: a
transaction whose session was never seen, or whose absence cannot be asked for, stays open.

A released transaction stays in the ledger until its undo slot is used again. If it commits after
all, the tables that it changed leave the stream before that commit
(:mod:`cdc_core.capture.transactions.ledger`).

One of which a ROLLBACK row was seen that may have closed a savepoint only has ended by that row as
soon as Oracle does not know it and what was mined reaches past that: its session may live on.
Nobody need know. If all its changes were taken back (``undone``), it leaves the ledger; should it
go on after all, it is met again without what it took back. If nothing tells that (``ending``), it
becomes ``rolled_back``, and a COMMIT of it stops its tables like that of a released one.

Source: measured on 23ai by others (transactions of killed sessions); Oracle Database Reference 19c,
V$TRANSACTION, V$SESSION.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from cdc_core.errors import PreflightError
from cdc_core.model.scn import Scn
from cdc_core.model.transactions import UNRESOLVED, OpenTransaction
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession

_TRANSACTIONS = "SELECT RAWTOHEX(XID) FROM {view}"
_SESSIONS = "SELECT SID, SERIAL#, (SELECT CURRENT_SCN FROM V$DATABASE) FROM GV$SESSION"


@dataclass(frozen=True, slots=True)
class LivingTransactions:
    """What Oracle knows at one moment: the XIDs of open transactions, and sessions by SID and
    SERIAL# (None where the capture user may not see them). Whatever is not among the transactions
    ended at or below ``scn``."""

    transactions: frozenset[str]
    sessions: frozenset[tuple[int, int]] | None
    scn: Scn


def read_living(session: OracleSession, instances: int) -> LivingTransactions:
    """Ask Oracle. The SCN is read after the transactions, so that it lies above the ends of all
    that are not shown.

    Args:
        instances: So many write redo.
    """
    # V$TRANSACTION shows this instance only.
    view = "GV$TRANSACTION" if instances > 1 else "V$TRANSACTION"
    transactions = frozenset(
        str(xid).lower() for (xid,) in session.fetch_all(_TRANSACTIONS.format(view=view))
    )
    try:
        rows = session.fetch_all(_SESSIONS)
    except PreflightError:
        return LivingTransactions(transactions, None, current_scn(session))
    sessions = frozenset((int(sid), int(serial)) for sid, serial, _ in rows)
    scn = Scn(int(rows[0][-1])) if rows else current_scn(session)
    return LivingTransactions(transactions, sessions, scn)


def judged(
    ledger: Sequence[OpenTransaction], living: LivingTransactions, *, before: Set[str], scn_low: Scn
) -> list[OpenTransaction]:
    """The ledger after a window, with what Oracle no longer knows noted or released, and without
    what has ended. Pure.

    Args:
        living: What Oracle knew before the window's redo was read.
        before: XIDs that were open at the end of the window before as well; the others have time.
        scn_low: The window's lower end: windows up to there, and this one, were mined without an
            end of the transaction.
    """
    found = (_judged(one, living, scn_low) if one.xid in before else one for one in ledger)
    return [one for one in found if one is not None]


def _judged(
    one: OpenTransaction, living: LivingTransactions, scn_low: Scn
) -> OpenTransaction | None:
    if one.is_over or one.xid.endswith(UNRESOLVED):
        return one
    if one.xid in living.transactions:
        return one if one.absent_scn is None else replace(one, absent_scn=None)
    if one.absent_scn is None:
        return replace(one, absent_scn=living.scn)
    if one.absent_scn > scn_low:  # not mined past it
        return one
    if one.state == "undone":
        return None
    if one.state == "ending":
        return replace(one, state="rolled_back")
    return replace(one, state="released") if _is_ownerless(one, living) else one


def _is_ownerless(one: OpenTransaction, living: LivingTransactions) -> bool:
    if living.sessions is None or one.session_id is None or one.serial is None:
        return False
    return (one.session_id, one.serial) not in living.sessions
