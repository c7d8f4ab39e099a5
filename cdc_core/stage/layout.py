"""Which columns does a staged change have? They are those of the change log."""

from __future__ import annotations

from typing import get_args

import pyarrow as pa

from cdc_core.config import ChangeLogColumn
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema

COMMIT_SCN = "_cdc_commit_scn"
ORDINAL = "_cdc_ordinal"
CHUNK_ORDINAL = 2**63 - 1
"""Ordinal of rows that a chunk brought: behind every change of the same SCN, since the chunk has
seen them."""
WATERMARK_ORDINAL = CHUNK_ORDINAL - 1
"""Ordinal of rows that a chunk brought that was read between two watermarks, less the distance of
these: the rows have every change up to their SCN, and may have changes up to so many behind it."""

_DISTANCE_MAX = 2**32
CHUNK_ORDINAL_MIN = WATERMARK_ORDINAL - _DISTANCE_MAX
"""Ordinals from here on are those of chunks alone."""


def chunk_ordinal(scn: int, scn_high: int | None) -> int:
    """The ordinal of the rows of a chunk that was read as of an SCN, or between it and
    ``scn_high``."""
    if scn_high is None:
        return CHUNK_ORDINAL
    return WATERMARK_ORDINAL - min(scn_high - scn, _DISTANCE_MAX)


CHANGE_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("_cdc_op", pa.string()),
    (COMMIT_SCN, pa.int64()),
    (ORDINAL, pa.int64()),
    ("_cdc_scn", pa.int64()),
    ("_cdc_xid", pa.string()),
    ("_cdc_window", pa.int64()),
    ("_cdc_timestamp", pa.timestamp("us")),
    ("_cdc_commit_timestamp", pa.timestamp("us")),
    ("_cdc_username", pa.string()),
    ("_cdc_rs_id", pa.string()),
    ("_cdc_thread", pa.int32()),
    ("_cdc_row_id", pa.string()),
    ("_cdc_snapshot", pa.string()),
    ("_cdc_absent", pa.list_(pa.string())),
    ("_cdc_before_absent", pa.list_(pa.string())),
    ("_cdc_columns", pa.int32()),
    ("_cdc_ssn", pa.int64()),
    ("_cdc_start_scn", pa.int64()),
    ("_cdc_start_timestamp", pa.timestamp("us")),
    ("_cdc_client_id", pa.string()),
    ("_cdc_landed", pa.timestamp("us")),
    ("_cdc_redo_sql", pa.string()),
    ("_cdc_skipped", pa.string()),
)
"""Columns of the change log before ``before`` and ``after``; docs/reference/change-log.md has their
meaning.

``_cdc_absent`` and ``_cdc_before_absent`` name, as these fields do, the columns that ``after`` and
``before`` do not carry, which is not the same as NULL. ``_cdc_columns`` is the number of the change
log's user columns that the table had, or had had, when the row was written: columns that were added
later are not in the row, and Oracle gives them their default; a column that was there and that an
insert does not list is NULL."""


OPTIONAL: frozenset[str] = frozenset(get_args(ChangeLogColumn))
"""Columns that ``lake.change_log_columns`` names, without their prefix: NULL in all rows where it
does not, which costs no space."""


def change_schema(schema: TableSchema) -> pa.Schema:
    """Arrow schema of the change log: :data:`CHANGE_FIELDS`, then the structs ``before`` and
    ``after``, whose fields are what each column is stored as for life."""
    row = pa.struct(list(arrow_schema(schema.as_logged())))
    fields = [pa.field(name, kind) for name, kind in CHANGE_FIELDS]
    return pa.schema([*fields, pa.field("before", row), pa.field("after", row)])


def mirror_schema(schema: TableSchema) -> pa.Schema:
    """Arrow schema of the mirror: the table's columns, then the position of each row's last
    change."""
    place = [pa.field(COMMIT_SCN, pa.int64()), pa.field(ORDINAL, pa.int64())]
    return pa.schema([*arrow_schema(schema), *place])
