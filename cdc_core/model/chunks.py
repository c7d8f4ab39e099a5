"""What is a chunk of a snapshot, and how is it written as text?"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_core.errors import PartitionKeyError
from cdc_core.model.identifiers import TableId


@dataclass(frozen=True, slots=True, order=True)
class ChunkKey:
    """One chunk of one table's snapshot: a Dagster partition of that table."""

    table: TableId
    snapshot_id: str
    number: int

    @property
    def key(self) -> str:
        """The partition key, ``<snapshot id>:<number>``."""
        return f"{self.snapshot_id}:{self.number:06d}"

    @classmethod
    def parse(cls, table: TableId, text: str) -> ChunkKey:
        """Read what :attr:`key` printed.

        Raises:
            PartitionKeyError: The text is not a chunk.
        """
        snapshot_id, colon, number = text.rpartition(":")
        if not (colon and snapshot_id and number.isascii() and number.isdigit()):
            raise PartitionKeyError(
                "this is not a chunk key",
                hint="Write <snapshot id>:<number>, for example s12345:000003.",
                key=text[:80],
                table=table,
            )
        return cls(table, snapshot_id, int(number))
