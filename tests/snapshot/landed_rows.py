"""The rows of a chunk's file, without where the mirror places them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.stage.layout import COMMIT_SCN, ORDINAL


def user_columns(path: str) -> pa.Table:
    """What was read of Oracle."""
    rows = pq.read_table(path)
    assert rows.column_names[-2:] == [COMMIT_SCN, ORDINAL]
    return rows.drop_columns([COMMIT_SCN, ORDINAL])
