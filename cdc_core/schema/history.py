"""Which definition of a table is valid at an SCN, while DDL goes by?"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from cdc_core.errors import SchemaMismatchError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema


class SchemaHistory:
    """Versions of tables in the order of their SCNs; grows as DDL is met."""

    def __init__(self, versions: Iterable[TableSchema]) -> None:
        self._versions: dict[TableId, list[TableSchema]] = {}
        for version in sorted(versions, key=lambda schema: schema.scn_from):
            self.add(version)

    @property
    def tables(self) -> tuple[TableId, ...]:
        """The tables that are known, in the order in which they were added."""
        return tuple(self._versions)

    def add(self, version: TableSchema) -> None:
        """Add a version that is newer than those known; one of the same SCN takes the place of the
        last.

        Raises:
            SchemaMismatchError: A newer version is known already.
        """
        known = self._versions.setdefault(version.table, [])
        if known and known[-1].scn_from > version.scn_from:
            raise SchemaMismatchError(
                "a newer definition of the table is known already",
                hint="Capture the window again: definitions are read in the order of the redo.",
                table=version.table,
                scn=version.scn_from,
                newest=known[-1].scn_from,
            )
        if known and known[-1].scn_from == version.scn_from:
            known.pop()
        known.append(version)

    def at(self, table: TableId, scn: Scn) -> TableSchema | None:
        """The version valid at an SCN; None before the first one."""
        known = self._versions.get(table, [])
        place = bisect_right(known, scn, key=lambda schema: schema.scn_from)
        return known[place - 1] if place else None

    def latest(self, table: TableId) -> TableSchema:
        """The newest version; KeyError for an unknown table."""
        return self._versions[table][-1]
