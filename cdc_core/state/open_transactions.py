"""Which transactions were open after the last captured window?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from cdc_core.model.transactions import OVER, OpenTransaction
from cdc_core.state.database import StorePart, cached
from cdc_core.state.sql_tables import OPEN_TRANSACTIONS, values_of

_FIRST_OPEN = select(func.min(OPEN_TRANSACTIONS.c.first_ordinal)).where(
    OPEN_TRANSACTIONS.c.source == bindparam("of"), OPEN_TRANSACTIONS.c.state.not_in(OVER)
)
_LEDGER = (
    select(OPEN_TRANSACTIONS)
    .where(OPEN_TRANSACTIONS.c.source == bindparam("of"))
    .order_by(OPEN_TRANSACTIONS.c.first_ordinal)
)


class Ledger(StorePart):
    """The ledger of open transactions."""

    @cached
    def open_transactions(self) -> list[OpenTransaction]:
        """The ledger after the last captured window, oldest first."""
        with self._database.reading() as connection:
            return _ledger(connection, self._source)


def replace_ledger(connection: Connection, source: str, ledger: Sequence[OpenTransaction]) -> None:
    """Put another ledger in the place of the source's."""
    connection.execute(delete(OPEN_TRANSACTIONS).where(OPEN_TRANSACTIONS.c.source == source))
    if ledger:
        connection.execute(
            insert(OPEN_TRANSACTIONS), [_ledger_values(source, one) for one in ledger]
        )


def first_open_ordinal(connection: Connection, source: str) -> int | None:
    """The ordinal of the first row of any open transaction that was not given up; None if none is
    open."""
    found = connection.execute(_FIRST_OPEN, {"of": source}).scalar()
    return None if found is None else int(found)


def same_ledger(connection: Connection, source: str, ledger: Sequence[OpenTransaction]) -> bool:
    """Is the source's ledger the same as another one?"""
    known = _ledger(connection, source)
    return {one.xid: one for one in known} == {one.xid: one for one in ledger}


def _ledger(connection: Connection, source: str) -> list[OpenTransaction]:
    rows = connection.execute(_LEDGER, {"of": source}).mappings()
    return [_ledger_from_row(row) for row in rows]


def _ledger_values(source: str, one: OpenTransaction) -> dict[str, Any]:
    tables = tuple(zip(one.tables, one.table_rows, strict=True))
    return values_of(OPEN_TRANSACTIONS, one, source=source, tables=tables)


def _ledger_from_row(row: Any) -> OpenTransaction:
    values = dict(row)
    del values["source"]
    tables = values["tables"]
    values["tables"] = tuple(name for name, _ in tables)
    values["table_rows"] = tuple(rows for _, rows in tables)
    return OpenTransaction(**values)
