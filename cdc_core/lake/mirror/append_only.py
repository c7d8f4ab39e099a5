"""When does a window need no MERGE? When none of its keys can be in the mirror: then its rows are
appended, without Spark.

Delta's log says of each file between which values its key columns lie. A window whose keys all lie
outside of every file finds nothing to update or delete, so MERGE would insert its rows and do
nothing else. That is so of tables whose keys come from a sequence, and whose new rows are
changed soon: one row per key is left of a window, whatever happened to it in between. Whoever
cannot be sure merges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.appending import CommitInfo, FileChanges, NewFile, commit_files, write_file
from cdc_core.delta.commits import MAPPING_FEATURE, PLAIN_FEATURES, RULE_FEATURES
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.merge_audit import SentRows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import MIRROR_INDEXED
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import Bounds
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """Files of a mirror's folder that no commit names yet, and what went into them."""

    files: Sequence[NewFile]
    sent: SentRows


@dataclass(frozen=True, slots=True)
class UnseenKeys:
    """A mirror, in a version in which it has none of a window's keys."""

    work: TableWork
    schema: TableSchema
    version: int

    def append(self, files: Sequence[NewFile], commit: CommitInfo) -> int | None:
        """Append the rows that MERGE would insert, in one commit; their number, None if there are
        none and nothing was committed. ``files`` are those that :func:`write_inserted` wrote.

        Raises:
            CommitConflictError: Another writer committed since the keys were looked for.
        """
        rows = sum(file.rows for file in files)
        if rows == 0:
            return None
        commit_files(
            self.work.mirror,
            FileChanges(schema=mirror_schema(self.schema), added=files),
            replace(commit.saying(inserted=rows), doing="appending a window to the mirror"),
            fence=self.work.fence,
            version=self.version,
        )
        return rows


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


def unseen_keys(mirror: MirrorFiles, schema: TableSchema, bounds: Bounds) -> UnseenKeys | None:
    """The mirror, if by its log none of its rows can have a key between these bounds, and it needs
    no Spark; else None."""
    own = mirror.log.features - PLAIN_FEATURES
    is_known = own <= RULE_FEATURES | {MAPPING_FEATURE} and mirror.are_named
    if own:
        is_known &= mirror.takes_commits(())
    if not bounds or not is_known or not pc.all(mirror.apart(bounds), min_count=0).as_py():
        return None
    return UnseenKeys(mirror.work, schema, mirror.version)


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
