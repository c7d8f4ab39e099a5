"""When does a window need no MERGE? When none of its keys can be in the mirror: then its rows are
appended, without Spark.

Delta's log says of each file between which values its key columns lie. A window whose keys all lie
outside of every file finds nothing to update or delete, so MERGE would insert its rows and do
nothing else. That is so of tables whose keys come from a sequence, and whose new rows are
changed soon: one row per key is left of a window, whatever happened to it in between. Whoever
cannot be sure merges.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.appending import NewFile, write_file
from cdc_core.delta.commits import MAPPING_FEATURE, PLAIN_FEATURES, RULE_FEATURES
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.tables import MIRROR_INDEXED
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import Bounds
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema


def write_inserted(
    mirror: str, schema: TableSchema, parts: Iterator[pa.Table], covered_scn: int
) -> NewFile | None:
    """Write the rows that MERGE would insert into a file of the mirror's folder; None if there are
    none.

    Args:
        mirror: The folder.
        schema: The table.
        parts: The source of the MERGE, in the columns of ``stage.reduction.merge_source``.
        covered_scn: As for ``merge.merge_sql``.
    """
    columns = mirror_schema(schema)
    rows = _inserted(parts, columns, covered_scn)
    return write_file(mirror, columns, rows, columns.names[:MIRROR_INDEXED])


def unseen_keys(mirror: MirrorFiles, bounds: Bounds) -> bool:
    """Can none of the mirror's rows have a key between these bounds, by its log, and needs it no
    Spark?"""
    own = mirror.log.features - PLAIN_FEATURES
    is_known = own <= RULE_FEATURES | {MAPPING_FEATURE} and mirror.are_named
    if own:
        is_known &= mirror.takes_commits(())
    return bool(bounds and is_known and pc.all(mirror.apart(bounds), min_count=0).as_py())


def _inserted(
    parts: Iterator[pa.Table], columns: pa.Schema, covered_scn: int
) -> Iterator[pa.RecordBatch]:
    """What ``merge.merge_sql`` inserts of keys that are not there, where no change lacks a
    column."""
    for part in parts:
        comes = pc.and_(
            pc.equal(part["_cdc_kind"], "row"), pc.greater(part[COMMIT_SCN], covered_scn)
        )
        rows = part.filter(comes).select([*columns.names[:-2], COMMIT_SCN, ORDINAL])
        yield from rows.cast(columns).combine_chunks().to_batches()
