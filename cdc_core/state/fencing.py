"""How does a process that stood still notice, before it changes anything, that its leases are
somebody else's by now?

A thread's leases stand in a list of its own. Each transaction that writes to the metadata store
asks for all of them inside itself
(:meth:`Database.writing <cdc_core.state.database.Database.writing>`), each effect on landing right
before it (:mod:`cdc_core.landing.fenced`), each Delta commit right before it (``fence``). So no
step has to think of it, and none can forget it.

==============================  ==================================================================
effect                          asks
==============================  ==================================================================
windows are planned             ``window-plan``
a table joins                   ``snapshot-plan``, ``window-plan``; its stream begins with the
                                window planned next, or not at all
chunks are planned              ``snapshot-plan``; all chunks of a snapshot, or none
a chunk lands                   ``chunk/…``, for the record as well
a window lands                  ``capture``, for the record as well
a chunk or window is committed  ``table/…``; tables that a window does not touch move by
                                conditions of the same transaction
a table stops by its own error  nothing; only while its record is as it was when it failed
a policy answers                nothing; only while the record is as it was when it was asked
windows are read again          ``window-plan``, ``capture``
windows and chunks are retired  ``retire``
signals are taken and end       ``signals``; what they ask for as above
a table is removed              ``capture``
a table is paused or resumed    nothing; the transaction decides by what it finds
the store is rebuilt            all of these
==============================  ==================================================================
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, and_, bindparam, select

from cdc_core.errors import FencedError
from cdc_core.model.records import Lease
from cdc_core.state.sql_tables import LEASES


class HeldLeases:
    """The leases that each thread of this process holds of one store."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    @property
    def here(self) -> tuple[Lease, ...]:
        """Those of the calling thread."""
        return tuple(self._list())

    @contextmanager
    def holding(self, lease: Lease) -> Iterator[None]:
        """Let the calling thread's effects ask for a lease, for the block; another thread may end
        it."""
        own = self._list()
        own.append(lease)
        try:
            yield
        finally:
            own.remove(lease)

    def _list(self) -> list[Lease]:
        found: list[Lease] | None = getattr(self._of_thread, "leases", None)
        if found is None:
            found = self._of_thread.leases = []
        return found


def refuse_lost(connection: Connection, leases: Sequence[Lease]) -> None:
    """Ask inside the caller's transaction that leases are held still.

    Raises:
        FencedError: Somebody else has one, or had it.
    """
    if not leases:
        return
    for lease in leases:
        if connection.execute(_HELD, holding(lease)).first() is None:
            raise lost(lease)


IS_HELD = and_(
    LEASES.c.name == bindparam("of_lease"),
    LEASES.c.token == bindparam("of_token"),
    LEASES.c.holder == bindparam("of_holder"),
)
"""Is the row of a lease its holder's still? With :func:`holding`; each write asks, and to build a
query takes longer than to run it."""
_HELD = select(LEASES.c.token).where(IS_HELD)


def holding(lease: Lease) -> dict[str, Any]:
    """The parameters of :data:`IS_HELD` for a lease."""
    return {"of_lease": lease.name, "of_token": lease.token, "of_holder": lease.holder}


def lost(lease: Lease) -> FencedError:
    """The error of who has lost a lease."""
    return FencedError(
        "this process lost its lease to another one",
        hint="Nothing was damaged: the other process continues the work.",
        lease=lease.name,
        token=lease.token,
    )
