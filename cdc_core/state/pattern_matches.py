"""Which tables did the patterns of the configuration match when they were last looked up?"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, insert, select

from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import FoundTable
from cdc_core.state.database import StorePart, cached
from cdc_core.state.sql_tables import FOUND_TABLES as FOUND
from cdc_core.state.sql_tables import values_of


class PatternMatches(StorePart):
    """What Oracle's dictionary said when the patterns were looked up last."""

    @cached
    def get(self) -> list[FoundTable]:
        """The tables that were found, by name; those that cannot be captured have the reason."""
        query = (
            select(FOUND)
            .where(FOUND.c.source == self._source)
            .order_by(FOUND.c.owner, FOUND.c.name)
        )
        with self._database.reading() as connection:
            return [
                FoundTable(
                    TableId(row["owner"], row["name"]),
                    columns_exclude=row["columns_exclude"],
                    left_out=row["left_out"],
                )
                for row in connection.execute(query).mappings()
            ]

    def save(self, found: Sequence[FoundTable]) -> None:
        """Put these tables in the place of those that were found before."""
        values = [values_of(FOUND, one, source=self._source) for one in found]
        with self._database.writing() as connection:
            connection.execute(delete(FOUND).where(FOUND.c.source == self._source))
            if values:
                connection.execute(insert(FOUND), values)
