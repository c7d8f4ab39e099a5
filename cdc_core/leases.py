"""How does a process hold a piece of work while it does it, and how is a dead holder noticed?

A lease is a row of the metadata store. Its holder renews it from a thread; a holder that stopped
doing so, or that this process would see if it ran (:mod:`cdc_core.state.machine`), loses it.
Whoever takes over gets a higher token, and the former holder is refused at its next effect
(:class:`~cdc_core.errors.FencedError`); :mod:`cdc_core.state.fencing` lists all of them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from cdc_core.errors import FencedError, LeaseHeldError, TransientError
from cdc_core.model.records import Lease
from cdc_core.model.reports import Holder
from cdc_core.state.machine import this_process

if TYPE_CHECKING:
    from cdc_core.state.store import Store

_LOG = logging.getLogger(__name__)
RENEWALS_PER_LEASE = 3
POLL_SECONDS = 0.5


class HeldLease:
    """A lease in use. ``check`` raises as soon as it is known to be lost.

    Args:
        store: Where it is held.
        lease: What was acquired.
        seconds: How long it lasts without a renewal.
        since: The machine's uptime before it was acquired.
    """

    def __init__(self, store: Store, lease: Lease, seconds: float, since: float) -> None:
        self._store = store
        self._lease = lease
        self._seconds = seconds
        self._renewal_due = since + seconds / RENEWALS_PER_LEASE
        self._lost: FencedError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True, name=f"lease {lease.name}")
        self._thread.start()

    def check(self) -> None:
        """Ask the store that the lease is still ours, and renew it when that is due; called right
        before every commit.

        Raises:
            FencedError: Another process has it.
        """
        if self._lost is not None:
            raise self._lost
        if self._store.machine.uptime() < self._renewal_due:
            self._store.leases.confirm(self._lease)
        else:
            self._renewed()

    def release(self) -> None:
        """Stop renewing and give the lease back; as soon as the store answers, if it does not
        now."""
        self._stop.set()
        self._thread.join()
        try:
            self._store.leases.release(self._lease)
        except TransientError as error:
            _LOG.warning("the lease could not be released, trying again: %s", error)
            name = f"give back {self._lease.name}"
            threading.Thread(target=self._give_back, daemon=True, name=name).start()

    def give_up(self) -> None:
        """Give the lease back while the work under it may still go on: at its next effect it is
        refused, as after a lease that was lost."""
        self._lost = given_up(self._lease.name)
        self.release()

    def _give_back(self) -> None:
        """Until the lease has expired: this process lives on, so nobody may take it for a dead
        holder's before."""
        deadline = time.monotonic() + self._seconds
        while time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            with suppress(TransientError):
                self._store.leases.release(self._lease)
                return

    def _renewed(self) -> None:
        since = self._store.machine.uptime()
        self._lease = self._store.leases.renew(self._lease)
        self._renewal_due = since + self._seconds / RENEWALS_PER_LEASE

    def _renew(self) -> None:
        while not self._stop.wait(self._seconds / RENEWALS_PER_LEASE):
            try:
                self._renewed()
            except FencedError as error:
                self._lost = error
                return
            except TransientError as error:
                _LOG.warning("the lease could not be renewed, trying again: %s", error)


def given_up(lease: str) -> FencedError:
    """What a step is told that goes on in the background of a source that was closed."""
    return FencedError(
        "the lease was released, because the source was closed",
        hint="Run the same command to continue.",
        lease=lease,
    )


def _take_from_dead(store: Store, name: str) -> bool:
    """Give back a lease whose holder is dead."""
    dead = [
        lease
        for lease in store.leases.all()
        if lease.name == name and store.machine.is_dead(lease.holder)
    ]
    for lease in dead:
        store.leases.release(lease)
    return bool(dead)


@contextmanager
def held(
    store: Store, name: str, *, seconds: float, wait_seconds: float = 0, of_process: bool = False
) -> Iterator[HeldLease]:
    """Hold the lease ``name`` for the block, waiting up to ``wait_seconds`` for a living holder to
    give it back.

    What the calling thread writes to the store in the block asks for the lease, unless it is one
    ``of_process``.

    Raises:
        LeaseHeldError: A living holder has it still.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        since = store.machine.uptime()
        try:
            lease = store.leases.acquire(name, this_process(store.machine), seconds)
            break
        except LeaseHeldError:
            if _take_from_dead(store, name):
                continue
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_SECONDS)
    holding = HeldLease(store, lease, seconds, since)
    try:
        with nullcontext() if of_process else store.leases.holding(lease):
            yield holding
    finally:
        holding.release()


CARRIERS = "windows"
"""What processes hold that carry a source's windows: the lowest number below it that is free."""


def holders(store: Store, source: str, work: str) -> list[Holder]:
    """The holders of ``<source>/<work>`` and of what is below it (``…/``)."""
    name = f"{source}/{work}"
    return [
        Holder(lease, _death(store, lease))
        for lease in store.leases.all()
        if f"{lease.name}/".startswith(f"{name}/")
    ]


def is_abandoned(store: Store, lease: Lease) -> bool:
    """Does nobody hold the lease any more, whatever the store says?"""
    return _death(store, lease) is not None


def _death(store: Store, lease: Lease) -> str | None:
    """Why a lease's holder counts as dead; None while it lives."""
    if store.machine.is_dead(lease.holder):
        return "the process that ran it is gone"
    if lease.is_expired:
        return f"no sign of life since {lease.heartbeat:%Y-%m-%d %H:%M:%S} UTC"
    return None
