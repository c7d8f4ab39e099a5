"""Who compares a mirror with Oracle's rows: this process, or Spark?"""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc

from cdc_core.delta.history import read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.lake.comparison.in_process import ArrowComparison
from cdc_core.lake.comparison.in_spark import SparkComparison
from cdc_core.lake.comparison.sides import MirrorComparison
from cdc_core.lake.definitions.evolution import check_mirror, known_schema
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.table_context import TableWork
from cdc_core.schema.evolution import holding
from cdc_core.schema.table import TableSchema

ROWS_PER_BUCKET = 1024
BUCKETS_MAX = 2**16

IN_PROCESS_ROWS_MAX = 1_000_000
"""Mirrors of up to so many rows are compared without Spark, if their files …"""

IN_PROCESS_BYTES_MAX = 128 * 1024 * 1024
"""… have no more bytes: rows with long texts are held some thousands at a time."""


def of_mirror(work: TableWork, schema: TableSchema, version: int) -> MirrorComparison:
    """The comparison of a version of a mirror, with as many buckets as its size asks for.

    Raises:
        SchemaMismatchError: The mirror lacks columns of ``schema``.
        LakeError: There is no mirror.
    """
    own, schema = schema, _as_held(work, schema)
    if (log := work.require_mirror()).version == version:
        check_mirror(work, schema, log)
    rows = count_rows(work.mirror)
    if _is_small(work, rows):
        return ArrowComparison(work, schema, version, own)
    wanted = BUCKETS_MAX if rows is None else -(-rows // ROWS_PER_BUCKET)
    buckets = min(BUCKETS_MAX, 1 << max(0, wanted - 1).bit_length())
    return SparkComparison(work, schema, version, buckets, own)


def _is_small(work: TableWork, rows: int | None) -> bool:
    """Is the mirror compared in this process?"""
    if work.merges_by_spark or rows is None or rows > IN_PROCESS_ROWS_MAX:
        return False
    size = pc.sum(MirrorFiles.read(work).files["size_bytes"]).as_py() or 0
    return bool(size <= IN_PROCESS_BYTES_MAX)


def _as_held(work: TableWork, schema: TableSchema) -> TableSchema:
    """The definition with the types that the Delta tables have, which may be wider."""
    known = known_schema(read_log(work.changelog))
    if known is None:
        return schema
    held = {column.stored_as: column for column in holding(schema, known).columns}
    columns = tuple(replace(held[one.stored_as], name=one.name) for one in schema.columns)
    return replace(schema, columns=columns)
