"""What became of each table's last comparison with Oracle?"""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from cdc_core.model.identifiers import TableId
from cdc_core.model.records import Comparison
from cdc_core.model.scn import Scn
from cdc_core.state.database import StorePart
from cdc_core.state.sql_tables import COMPARISONS


class Comparisons(StorePart):
    """The newest comparison of each table, by its SCN."""

    def newest(self) -> dict[TableId, Comparison]:
        """The last comparison of each table that was compared."""
        query = select(COMPARISONS).where(COMPARISONS.c.source == self._source)
        return {
            TableId(row["owner"], row["name"]): Comparison(
                scn=Scn(row["scn"]),
                compared=row["compared"],
                rows=row["rows_compared"],
                differences=row["differences"],
            )
            for row in self._rows(query)
        }

    def keep(self, table: TableId, *, scn: Scn, rows: int, differences: int) -> None:
        """Note a comparison, unless one as of a later SCN is known."""
        place = {"source": self._source, "owner": table.owner, "name": table.name}
        known = select(COMPARISONS.c.scn).filter_by(**place)
        with self._database.writing() as connection:
            newest = connection.execute(known).scalar_one_or_none()
            if newest is not None and newest > scn:
                return
            connection.execute(delete(COMPARISONS).filter_by(**place))
            values = {
                "scn": scn,
                "compared": self._database.now(),
                "rows_compared": rows,
                "differences": differences,
            }
            connection.execute(insert(COMPARISONS).values(**place, **values))
