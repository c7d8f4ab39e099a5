"""What does landing hold of a TRUNCATE that is followed?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow.parquet as pq

from cdc_core.lake.truncating import Truncation
from cdc_core.landing.manifest import SchemaChange, WindowManifest, moment_of
from cdc_core.stage.skipping import OPERATION


def truncation_of(
    change: SchemaChange,
    manifest: WindowManifest,
    paths: Sequence[str],
    skipped_operations: Collection[str],
) -> Truncation:
    """A TRUNCATE of a window's manifest with the facts of its redo row; ``paths`` are the window's
    redo files of the table, ``skipped_operations`` those that the configuration does not want among
    its events."""
    columns = ["xid", "scn", "timestamp", "rs_id", "thread"]
    rows = [
        row
        for path in paths
        for row in pq.read_table(
            path, columns=columns, filters=[("ordinal", "=", change.ordinal)]
        ).to_pylist()
    ]
    found = rows[0] if rows else {}
    return Truncation(
        scn=change.scn,
        ordinal=change.ordinal,
        partitions=change.partitions,
        skipped=OPERATION if "d" in skipped_operations else None,
        row_scn=found.get("scn"),
        xid=found.get("xid"),
        timestamp=found.get("timestamp"),
        rs_id=found.get("rs_id"),
        thread=found.get("thread"),
        landed=moment_of(manifest.landed),
    )
