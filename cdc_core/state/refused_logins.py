"""Which passwords has Oracle refused, for all processes that share the metadata store?

No password is kept: a row has a slow hash of it, salted with the account that it was sent for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import ColumnElement, delete, insert, select, update

from cdc_core.model.logins import Login, Refusal
from cdc_core.state.database import StorePart, cached
from cdc_core.state.sql_tables import REFUSED_LOGINS

_ROUNDS = 100_000


class StoredRefusals(StorePart):
    """Refused logins of every source of the store: a
    :class:`~cdc_core.oracle.refused_logins.RefusalMemory`."""

    @contextmanager
    def turn(self, login: Login, seconds: float) -> Iterator[Refusal | None]:
        """Of all processes that log in to the account at once, one does so in the block, and knows
        what the others were told."""
        with self._database.turn(account := _account(login), seconds):
            known = self._known(account)
            yield known.get(_hash(login, account)) if known else None  # a hash takes long

    def add(self, login: Login, at: float) -> Refusal:
        """It was refused once more, ``at`` in seconds since 1970; what is remembered now."""
        account = _account(login)
        place = {"account": account, "password": _hash(login, account)}
        mine = _row(**place)
        # Whoever has lost a lease meanwhile was refused all the same.
        with self._database.writing(leases_only=True) as connection:
            found = connection.execute(select(REFUSED_LOGINS.c.count).where(mine)).scalar()
            refusal = Refusal(1 + (found or 0), at)
            values = {"count": refusal.count, "newest": at}
            if found is None:
                connection.execute(insert(REFUSED_LOGINS).values(**place, **values))
            else:
                connection.execute(update(REFUSED_LOGINS).where(mine).values(values))
        return refusal

    def forget(self, login: Login) -> None:
        """It was accepted."""
        account = _account(login)
        with self._database.writing(leases_only=True) as connection:
            connection.execute(delete(REFUSED_LOGINS).where(_row(account, _hash(login, account))))

    @cached
    def _known(self, account: str) -> dict[str, Refusal]:
        """The refusals of an account, by the hashes of passwords."""
        query = select(REFUSED_LOGINS).where(REFUSED_LOGINS.c.account == account)
        return {
            row["password"]: Refusal(row["count"], row["newest"].timestamp())
            for row in self._rows(query)
        }


def _row(account: str, password: str) -> ColumnElement[bool]:
    return (REFUSED_LOGINS.c.account == account) & (REFUSED_LOGINS.c.password == password)


def _account(login: Login) -> str:
    return hashlib.sha256(f"{login.dsn}\0{login.user}".encode()).hexdigest()


def _hash(login: Login, account: str) -> str:
    password = login.password.encode("utf-8", "surrogatepass")
    return hashlib.pbkdf2_hmac("sha256", password, account.encode(), _ROUNDS).hex()
