"""Which transactions of an export end in two ways? XIDs are unique in one container alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.capture.passes.reading_position import without_address
from cdc_core.model.operations import ENDS
from cdc_core.model.transactions import NO_XID, UNRESOLVED

_COLUMNS = ("xid", "operation_code", "scn")


@dataclass(slots=True)
class Ends:
    """The ends of an export's transactions that name them in full; some bytes for each."""

    _taken: list[pa.RecordBatch] = field(default_factory=list)

    def take(self, batch: MinedBatch) -> None:
        """Keep the ends of a batch. A ROLLBACK without an address may close a savepoint only."""
        xids = batch.rows.column("xid")
        full = pc.and_not(pc.not_equal(xids, NO_XID), pc.ends_with(xids, UNRESOLVED))
        ends = np.isin(batch.operations, ENDS) & full.to_numpy(zero_copy_only=False)
        ends &= ~without_address(batch.rows.column("rs_id"))
        if ends.any():
            self._taken.append(batch.rows.select(_COLUMNS).filter(pa.array(ends)))

    def contradictory(self) -> Iterator[str]:
        """The XIDs that end at several SCNs, or both with COMMIT and ROLLBACK, in order."""
        if not self._taken:
            return iter(())
        ends = pa.Table.from_batches(self._taken).group_by(_COLUMNS).aggregate([])
        counts = ends.group_by("xid").aggregate([("scn", "count")])
        twice = counts.filter(pc.greater(counts["scn_count"], 1))["xid"].to_pylist()
        return iter(sorted(twice))
