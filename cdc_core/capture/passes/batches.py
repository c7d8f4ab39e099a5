"""What is a batch of whole, numbered redo rows?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.model.operations import Operation

NO_TABLE = -1
"""In place of a captured table."""


@dataclass(frozen=True, slots=True)
class MinedBatch:
    """A batch of whole redo rows.

    ``rows`` has the columns of ``MINED_SCHEMA`` with XIDs in lower case. ``ordinals`` numbers the
    rows; ``tables`` holds per row the position of its captured table, or -1 for transaction
    control, internal DDL and rows of no captured table.
    """

    rows: pa.RecordBatch
    ordinals: npt.NDArray[np.int64]
    operations: npt.NDArray[np.int32]
    tables: npt.NDArray[np.int32]

    @property
    def is_change(self) -> npt.NDArray[np.bool_]:
        """Per row: does it belong to a captured table and to a transaction's changes? DDL does
        not."""
        changes: npt.NDArray[np.bool_] = (self.tables != NO_TABLE) & (
            self.operations != Operation.DDL
        )
        return changes

    def filter(self, kept: npt.NDArray[np.bool_]) -> MinedBatch:
        """The rows for which ``kept`` is true, under their numbers."""
        if kept.all():
            return self
        rows = self.rows.filter(pa.array(kept))
        return MinedBatch(rows, self.ordinals[kept], self.operations[kept], self.tables[kept])

    def slice(self, offset: int, length: int | None = None) -> MinedBatch:
        """Some of the rows, without a copy."""
        rows = self.rows.slice(offset, length)
        these = slice(offset, offset + rows.num_rows)
        return MinedBatch(rows, self.ordinals[these], self.operations[these], self.tables[these])

    @property
    def ddl(self) -> npt.NDArray[np.int64]:
        """Positions of the DDL rows of captured tables that users sent."""
        return np.flatnonzero((self.tables != NO_TABLE) & (self.operations == Operation.DDL))


def joined_batches(*batches: MinedBatch) -> MinedBatch:
    """Batches that follow each other as one."""
    [rows] = pa.Table.from_batches([one.rows for one in batches]).combine_chunks().to_batches()
    return MinedBatch(
        rows,
        np.concatenate([one.ordinals for one in batches]),
        np.concatenate([one.operations for one in batches]),
        np.concatenate([one.tables for one in batches]),
    )


def merged_batches(one: MinedBatch, other: MinedBatch) -> MinedBatch:
    """Two parts of a batch as one, in the order of their ordinals."""
    if not one.rows.num_rows or not other.rows.num_rows:
        return one if one.rows.num_rows else other
    both = joined_batches(one, other)
    order = np.argsort(both.ordinals)
    rows = both.rows.take(pa.array(order))
    return MinedBatch(rows, both.ordinals[order], both.operations[order], both.tables[order])
