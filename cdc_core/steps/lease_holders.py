"""Who holds the leases of a piece of work, and which holder has died without releasing them?"""

from __future__ import annotations

from cdc_core.model.records import Lease
from cdc_core.model.reports import Holder
from cdc_core.state.store import Store


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
