"""Which transactions were open after the last captured window?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from cdc_core.model.transactions import OVER, OpenTransaction
from cdc_core.state.database import StorePart
from cdc_core.state.sql_tables import OPEN_TRANSACTIONS, values_of


class Ledger(StorePart):
    """The ledger of open transactions."""

    def open_transactions(self) -> list[OpenTransaction]:
        """The ledger after the last captured window, oldest first."""
        query = select(OPEN_TRANSACTIONS).where(OPEN_TRANSACTIONS.c.source == self._source)
        return [
            _ledger_from_row(row)
            for row in self._rows(query.order_by(OPEN_TRANSACTIONS.c.first_ordinal))
        ]


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
    query = select(func.min(OPEN_TRANSACTIONS.c.first_ordinal)).where(
        OPEN_TRANSACTIONS.c.source == source, OPEN_TRANSACTIONS.c.state.not_in(OVER)
    )
    found = connection.execute(query).scalar()
    return None if found is None else int(found)


def same_ledger(connection: Connection, source: str, ledger: Sequence[OpenTransaction]) -> bool:
    """Is the source's ledger the same as another one?"""
    query = select(OPEN_TRANSACTIONS).where(OPEN_TRANSACTIONS.c.source == source)
    known = [_ledger_from_row(row) for row in connection.execute(query).mappings()]
    return {one.xid: one for one in known} == {one.xid: one for one in ledger}


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
