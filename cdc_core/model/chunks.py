"""What is a chunk of a snapshot, and how is it written as text?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdc_core.errors import PartitionKeyError
from cdc_core.model.identifiers import TableId

NEW_ROWS = "x"
"""With this begins the id of a snapshot that reads rows which came into a table without redo."""

BLOCKING = "b"
"""The same of a snapshot until whose end its table takes no windows: a signal asked for that."""

NO_ROWS = "n"
"""The same of a snapshot with which a table joins without its rows."""

AD_HOC = "a"
"""The same of a snapshot that was asked for while its table takes windows."""

REPAIR = "r"
"""The same of a snapshot that reads what a comparison found wrong."""

INCREMENTAL = (AD_HOC, REPAIR, NEW_ROWS)
"""Those that read rows beside their table's stream of windows."""

_KEY = re.compile(r"([^:]+):([0-9]+)")
_PARTITION_KEY = re.compile(r"([^:]+)_([0-9]+)-of-([0-9]+)")


@dataclass(frozen=True, slots=True, order=True)
class ChunkKey:
    """One chunk of one table's snapshot: a Dagster partition of that table. Its texts never hold
    values of the table's key."""

    table: TableId
    snapshot_id: str
    number: int

    @property
    def key(self) -> str:
        """The chunk in reports and leases, ``<snapshot id>:<number>``; numbers begin with 0."""
        return f"{self.snapshot_id}:{self.number:06d}"

    def place(self, total: int) -> str:
        """For people: ``3 of 12``."""
        return f"{self.number + 1} of {total}"

    def partition_key(self, total: int) -> str:
        """The Dagster partition key, ``<snapshot id>_<03>-of-<120>``: keys of a snapshot sort as
        its chunks do."""
        width = len(str(total))
        return f"{self.snapshot_id}_{self.number + 1:0{width}d}-of-{total}"

    @classmethod
    def parse(cls, table: TableId, text: str) -> ChunkKey:
        """Read what :attr:`key` or :meth:`partition_key` printed.

        Raises:
            PartitionKeyError: The text is not a chunk.
        """
        if found := _KEY.fullmatch(text):
            return cls(table, found[1], int(found[2]))
        found = _PARTITION_KEY.fullmatch(text)
        if not found or not 1 <= int(found[2]) <= int(found[3]):
            raise PartitionKeyError(
                "this is not a chunk key",
                hint="Write <snapshot id>_<number>-of-<total>, for example s12345_03-of-12.",
                key=text[:80],
                table=table,
            )
        return cls(table, found[1], int(found[2]) - 1)
