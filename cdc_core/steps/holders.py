"""Who holds a piece of a source's work, and who of them has died without giving it back?"""

from __future__ import annotations

from datetime import UTC, datetime

from cdc_core.leases import is_dead
from cdc_core.model.records import Lease
from cdc_core.model.reports import Holder
from cdc_core.state.store import Store


def holders(store: Store, source: str, work: str) -> list[Holder]:
    """The holders of ``<source>/<work>`` and of what is below it (``…/``)."""
    name = f"{source}/{work}"
    return [
        Holder(lease, _death(lease))
        for lease in store.leases()
        if f"{lease.name}/".startswith(f"{name}/")
    ]


def is_gone(lease: Lease) -> bool:
    """Does nobody hold the lease any more, whatever the store says?"""
    return _death(lease) is not None


def _death(lease: Lease) -> str | None:
    """Why a lease's holder counts as dead; None while it lives."""
    if is_dead(lease.holder):
        return "the process that ran it is gone"
    if lease.expires < datetime.now(UTC):
        return f"no sign of life since {lease.heartbeat:%Y-%m-%d %H:%M:%S} UTC"
    return None
