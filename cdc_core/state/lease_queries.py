"""Who holds which piece of work, and until when?

Nobody's own clock decides: between processes of one machine its uptime does, which nobody can set;
between machines the database's clock. So a host whose clock is wrong, or is put right, neither
steals a lease nor loses one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from cdc_core.errors import LeaseHeldError
from cdc_core.model.records import Lease
from cdc_core.state.database import StorePart
from cdc_core.state.fencing import IS_HELD, holding, lost, refuse_lost
from cdc_core.state.sql_tables import LEASES

_LEASE = select(LEASES).where(LEASES.c.name == bindparam("of_lease"))
_END: dict[str, Any] = {
    name: bindparam(name) for name in ("heartbeat", "expires", "expires_uptime")
}
_TAKE = (
    update(LEASES)
    .where(LEASES.c.name == bindparam("of_lease"))
    .values(_END | {name: bindparam(name) for name in ("holder", "token", "seconds")})
)
_RENEW = update(LEASES).where(IS_HELD).values(_END)
_RELEASE = update(LEASES).where(IS_HELD).values(holder=None)


class Leases(StorePart):
    """Leases with fencing tokens: each acquisition gets a higher token, and only the highest may
    renew."""

    def acquire(self, name: str, holder: str, seconds: float) -> Lease:
        """Take a lease that nobody holds, or whose holder gave no sign of life in time.

        Raises:
            LeaseHeldError: Somebody holds it (the same holder name too: take it once and renew it).
        """
        with self._database.writing(leases_only=True) as connection:
            now = self._database.now_for_all(connection)
            row = connection.execute(_LEASE, {"of_lease": name}).mappings().first()
            if row and row["holder"] is not None and self._seconds_left(row, now) > 0:
                raise LeaseHeldError(
                    "another process is working on this",
                    hint="Wait until it has finished. A process that died loses its lease automatically.",
                    lease=name,
                    holder=row["holder"],
                    seconds_left=round(self._seconds_left(row, now), 1),
                )
            values = {
                "holder": holder,
                "token": (row["token"] if row else 0) + 1,
                "seconds": seconds,
                "heartbeat": now,
                **self._end(holder, now, seconds),
            }
            if row:
                connection.execute(_TAKE, {"of_lease": name, **values})
            else:
                connection.execute(insert(LEASES), {"name": name, **values})
            return _lease(name, values)

    def renew(self, lease: Lease) -> Lease:
        """Give a sign of life. An expired lease that nobody took is still its holder's.

        Raises:
            FencedError: Somebody else has it, or had it.
        """
        with self._database.writing(leases_only=True) as connection:
            now = self._database.now_for_all(connection)
            values = {"heartbeat": now, **self._end(lease.holder, now, lease.seconds)}
            done = connection.execute(_RENEW, {**holding(lease), **values})
            if done.rowcount != 1:
                raise lost(lease)
            return _lease(
                lease.name,
                {
                    "holder": lease.holder,
                    "token": lease.token,
                    "seconds": lease.seconds,
                    **values,
                },
            )

    def release(self, lease: Lease) -> None:
        """Give a lease back. Does nothing if it is lost already."""
        with self._database.writing(leases_only=True) as connection:
            connection.execute(_RELEASE, holding(lease))

    def holding(self, lease: Lease) -> AbstractContextManager[None]:
        """For the block, each transaction in which the calling thread writes asks that the lease is
        still its own."""
        return self._database.held_leases.holding(lease)

    def fence(self) -> Callable[[], None]:
        """What asks that the leases that the calling thread holds now are still its own; raises
        FencedError if not."""
        leases = self._database.held_leases.here
        return lambda: self.confirm(*leases)

    def confirm(self, *leases: Lease) -> None:
        """Ask that leases are held still.

        Raises:
            FencedError: Somebody else has one, or had it.
        """

        def ask() -> None:
            with self._database.reading() as connection:
                refuse_lost(connection, leases)

        if leases:
            self._database.cached(leases, ask)

    def all(self) -> list[Lease]:
        """Leases that are held, expired ones too, by name."""
        query = select(LEASES).where(LEASES.c.holder.is_not(None)).order_by(LEASES.c.name)
        with self._database.reading() as connection:
            now = self._database.now_for_all(connection)
            return [
                _lease(row["name"], row, is_expired=self._seconds_left(row, now) <= 0)
                for row in connection.execute(query).mappings()
            ]

    def _end(self, holder: str, now: float, seconds: float) -> dict[str, float | None]:
        """When a lease ends that is taken or renewed now."""
        machine = self._database.machine
        uptime = machine.uptime() + seconds if machine.shares_uptime(holder) else None
        return {"expires": now + seconds, "expires_uptime": uptime}

    def _seconds_left(self, row: Any, now: float) -> float:
        """How long a lease is still its holder's."""
        machine = self._database.machine
        if row["expires_uptime"] is not None and machine.shares_uptime(row["holder"]):
            return float(row["expires_uptime"] - machine.uptime())
        return float(row["expires"] - now)


def _lease(name: str, values: Any, *, is_expired: bool = False) -> Lease:
    return Lease(
        name=name,
        holder=values["holder"],
        token=values["token"],
        seconds=values["seconds"],
        heartbeat=datetime.fromtimestamp(values["heartbeat"], UTC),
        expires=datetime.fromtimestamp(values["expires"], UTC),
        is_expired=is_expired,
    )
