"""How do the changes of a table whose rows are counted get into its mirror?

``stage.copies`` says what becomes of the copies of each digest, ``counting_copies`` does so in SQL. Here the mirror is asked how many there
are now, and what is left to do goes into one commit: small files of the mirror are written anew (``rewriting``), which takes the version that
was asked or none; else one MERGE fails if the mirror has other rows than it had then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.delta.deletion_vectors import places_of
from cdc_core.delta.history import filesystem_of, read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import REPORT_HINT, CommitConflictError, LakeError, RowCountError
from cdc_core.lake.changes import files_of, logged_changes, queried
from cdc_core.lake.copy_on_write import rewrite_files
from cdc_core.lake.counting_copies import doubled_copies_sql, merge_copies_sql
from cdc_core.lake.merge import replace_sql
from cdc_core.lake.merge_audit import Sent
from cdc_core.lake.mirror_files import MirrorFiles, without
from cdc_core.lake.staging import staged_frame
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import delta
from cdc_core.lake.truncating import truncated_scn
from cdc_core.schema.table import ROW_COPY, ROW_DIGEST, TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.changes import LoggedChanges, of_window, since, up_to
from cdc_core.stage.copies import (
    copies_source,
    count_copies,
    different_copies,
    touched_digests,
)
from cdc_core.stage.differing import rows_of_keys, touching
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema
from cdc_core.stage.merging_copies import CopiesMerge

IN_HAND_ROWS_MAX = 500_000
"""A mirror of up to so many rows is asked without Spark."""

_SOURCE = "copies_source"
_REBUILD = "`redolake table rebuild OWNER.TABLE` writes the mirror from its change log. "


def merge_counted(
    work: TableWork,
    changes: LoggedChanges,
    schema: TableSchema,
    *,
    rows: int,
    read_scn: int,
    has_gaps: bool,
    metadata: str,
    txn: tuple[str, int],
    facts: dict[str, object],
) -> list[Any]:
    """Merge a window's changes, of which there are ``rows``; MERGE's counts. Other arguments as for :func:`cdc_core.stage.copies.count_copies`.

    Raises:
        LakeError: More copies go than are there, or the mirror's copies are not numbered without holes.
    """
    session, version = work.session_for(rows), work.require_mirror().version

    def parts() -> Iterator[pa.Table]:
        for part in range(changes.parts):
            light = changes.light(part, changes.parts)
            present = _present(work, session, touched_digests(light))
            copies = count_copies(light, schema, present, read_scn=read_scn, has_gaps=has_gaps)
            yield copies_source(changes, copies, schema)

    sent = Sent(schema.with_copies(), -1, facts)
    with staged_frame(work, session, sent.counting(parts())) as frame:
        return merge_copies(
            work, frame, schema, sent,
            version=version, doing="merging a window into the mirror", metadata=metadata, txn=txn,
        )  # fmt: skip


def rewrite_counted(
    mirror: MirrorFiles,
    changes: LoggedChanges,
    schema: TableSchema,
    *,
    read_scn: int,
    has_gaps: bool,
    metadata: str,
    txn: tuple[str, int],
    facts: dict[str, object],
) -> dict[str, int]:
    """Merge a window's changes without Spark, into a mirror of which ``rewriting.why_merged`` says nothing; MERGE's counts. Arguments and errors
    are those of :func:`merge_counted`.

    Raises:
        CommitConflictError: Another writer committed since the mirror was read.
    """
    light = changes.light()
    present = _present_in(mirror, touched_digests(light))
    copies = count_copies(light, schema, present, read_scn=read_scn, has_gaps=has_gaps)
    sent = Sent(schema.with_copies(), -1, facts)
    [rows] = sent.counting(iter([copies_source(changes, copies, schema)]))
    return rewrite_copies(mirror, rows, schema, sent, metadata=metadata, txn=txn)


def rewrite_copies(
    mirror: MirrorFiles,
    rows: pa.Table,
    schema: TableSchema,
    sent: Sent,
    *,
    metadata: str,
    txn: tuple[str, int],
) -> dict[str, int]:
    """The same of copies that were found out for this version of the mirror."""
    return rewrite_files(
        mirror,
        schema.with_copies(),
        CopiesMerge(rows, schema),
        {},  # digests have no bounds that say anything
        check=lambda found: sent.check([found]),
        metadata=metadata,
        txn=txn,
        doing="merging a window into the mirror",
    )


def merge_copies(
    work: TableWork,
    frame: Any,
    schema: TableSchema,
    sent: Sent,
    *,
    version: int,
    doing: str,
    metadata: str,
    txn: tuple[str, int] | None = None,
) -> list[Any]:
    """Merge copies that come, change their position or go, in one commit; MERGE's counts, held against what was sent.

    What they are was found out by the mirror's ``version``. If a newer one is there before the MERGE begins, nothing is committed; one that comes
    while it runs meets Delta's own check for conflicts, and what :func:`~cdc_core.lake.counting_copies.merge_copies_sql` checks.

    Raises:
        CommitConflictError: There is a newer version.
    """
    with translated(doing, **work.facts()):
        frame.createOrReplaceTempView(_SOURCE)
    sql = merge_copies_sql(work.mirror, _SOURCE, schema)
    with work.commit(frame.sparkSession, doing, metadata, txn):
        if (newer := work.require_mirror().version) != version:
            raise CommitConflictError(
                "another writer committed to the mirror after its equal rows were counted",
                hint="Run the command again; check that one process at a time serves this source.",
                **work.facts(version=version, newer=newer),
            )
        counts = list(frame.sparkSession.sql(sql).collect())
    sent.check(counts)
    return counts


def _present(work: TableWork, session: Any, digests: pa.BinaryArray) -> pa.Table:
    """How many copies the mirror has of some digests: ``_cdc_row_digest`` and ``copies``, for those of which it has any."""
    counts = (
        f"COUNT(*) AS copies, COUNT(DISTINCT {ROW_COPY}) AS numbers, MAX({ROW_COPY}) AS highest"
    )
    rows = count_rows(work.mirror)
    if rows is not None and rows <= IN_HAND_ROWS_MAX:
        found = queried(
            work, "mirror", f"SELECT {ROW_DIGEST}, {counts} FROM mirror GROUP BY {ROW_DIGEST}"
        )
        digest = found[ROW_DIGEST].cast(pa.binary())
        found = found.set_column(0, ROW_DIGEST, digest).filter(pc.is_in(digest, digests))
    else:
        with translated("counting equal rows", **work.facts()):
            named = session.createDataFrame(pa.table({ROW_DIGEST: digests}), f"{ROW_DIGEST} BINARY")
            named.createOrReplaceTempView(_SOURCE)
            found = session.sql(
                f"SELECT m.{ROW_DIGEST}, {counts} FROM {delta(work.mirror)} m "
                f"LEFT SEMI JOIN {_SOURCE} s ON m.{ROW_DIGEST} = s.{ROW_DIGEST} GROUP BY m.{ROW_DIGEST}"
            ).toArrow()
    return _whole(work, found)


def _present_in(mirror: MirrorFiles, digests: pa.BinaryArray) -> pa.Table:
    """The same of a mirror whose files are read as they are, row group by row group."""
    columns = [ROW_DIGEST, ROW_COPY]
    kinds = pa.schema([(ROW_DIGEST, pa.binary()), (ROW_COPY, pa.int64())])
    parts = [kinds.empty_table()]
    filesystem, root = filesystem_of(mirror.work.mirror)
    with mirror.reading("counting equal rows"):
        for name in mirror.files["path"].to_pylist():
            gone, start = places_of(mirror.deleted(name)), 0
            with pq.ParquetFile(f"{root}/{name}", filesystem=filesystem) as file:
                for group in range(file.num_row_groups):
                    read = file.read_row_group(group, columns=columns).select(columns).cast(kinds)
                    rows = without(read, gone, start)
                    start += read.num_rows
                    parts.append(rows.filter(pc.is_in(rows[ROW_DIGEST], digests)))
    wanted = [(ROW_COPY, "count"), (ROW_COPY, "count_distinct"), (ROW_COPY, "max")]
    found = pa.concat_tables(parts).group_by(ROW_DIGEST).aggregate(wanted)
    return _whole(
        mirror.work,
        found.select([ROW_DIGEST, *(f"{ROW_COPY}_{how}" for _, how in wanted)]).rename_columns(
            [ROW_DIGEST, "copies", "numbers", "highest"]
        ),
    )


def _whole(work: TableWork, found: pa.Table) -> pa.Table:
    """Digests and ``copies`` of a count, whose ``numbers`` are without holes.

    Raises:
        LakeError: They are not.
    """
    is_whole = pc.and_(
        pc.equal(found["copies"], found["numbers"]), pc.equal(found["copies"], found["highest"])
    )
    if not pc.all(is_whole).as_py() and found.num_rows:
        raise _damaged(work)
    return found.select([ROW_DIGEST, "copies"])


def _damaged(work: TableWork) -> LakeError:
    return LakeError(
        "the mirror's equal rows are not numbered from 1 without gaps or duplicates",
        hint=_REBUILD,
        **work.facts(),
    )


def copies_in_hand(
    work: TableWork, schema: TableSchema, scn_high: int, *, position: int, has_gaps: bool = False
) -> pa.Table | None:
    """What the mirror has otherwise than the change log up to ``position`` says, of the digests that a window touches, in the columns of
    ``stage.copies.copies_source``; None if the tables are large, and Spark has to find it. ``has_gaps`` is as for
    :func:`~cdc_core.stage.copies.count_copies`.

    Raises:
        LakeError: More copies go than were there, or the mirror has one twice.
    """
    counts = [count_rows(path) for path in (work.changelog, work.mirror)]
    if None in counts or sum(count or 0 for count in counts) > IN_HAND_ROWS_MAX:
        return None
    path = work.changelog
    with logged_changes(path, schema, of_window(scn_high), files_of(work, scn_high)) as changes:
        window = changes.light()
    counts_from = truncated_scn(work, read_log(path))
    known = since(counts_from, up_to(position)) if counts_from else up_to(position)
    with logged_changes(path, schema, known, files_of(work)) as history:
        light = history.light()
        of_chunks = light.table.filter(pc.equal(light.table["_cdc_op"], "r"))[COMMIT_SCN]
        wanted = count_copies(
            touching(light, window),
            schema,
            read_scn=pc.max(of_chunks).as_py() or 0,
            has_gaps=has_gaps,
        )
        columns = [ROW_DIGEST, ROW_COPY, COMMIT_SCN, ORDINAL]
        kinds = mirror_schema(schema)
        rows = queried(work, "mirror", f"SELECT {', '.join(columns)} FROM mirror")
        rows = rows.cast(pa.schema([kinds.field(name) for name in columns]))
        digests = pa.table({ROW_DIGEST: touched_digests(window)})
        different = different_copies(wanted, rows_of_keys([rows], digests))
        if different is None:
            raise _damaged(work)
        return copies_source(history, different, schema)


def number_copies(work: TableWork, schema: TableSchema, metadata: str, txn: tuple[str, int]) -> int:
    """Number the rows anew of which chunks brought copies with one number, since none knows what the others have; how many were.

    Raises:
        RowCountError: MERGE has put other rows in their place.
    """
    rows = count_rows(work.mirror)
    if rows is not None and rows <= IN_HAND_ROWS_MAX:
        doubled = (
            f"SELECT 1 FROM mirror GROUP BY {ROW_DIGEST}, {ROW_COPY} HAVING COUNT(*) > 1 LIMIT 1"
        )
        if queried(work, "mirror", doubled).num_rows == 0:
            return 0
    session, doing = work.session_for(), "numbering equal rows"
    with translated(doing, **work.facts()):
        frame = session.sql(doubled_copies_sql(work.mirror, schema)).localCheckpoint()
        found = frame.where("_cdc_kind = 'row'").count()
        frame.createOrReplaceTempView(_SOURCE)
    if not found:
        return 0
    with work.commit(session, doing, metadata, txn):
        counts: Sequence[Any] = session.sql(
            replace_sql(work.mirror, _SOURCE, schema.with_copies())
        ).collect()
    for row in counts:
        if not row["num_inserted_rows"] == row["num_deleted_rows"] == found:
            raise RowCountError(
                "MERGE reported other row counts than Redolake sent",
                hint=_REBUILD + REPORT_HINT,
                **work.facts(rows=found, inserted=row["num_inserted_rows"], deleted=row["num_deleted_rows"]),
            )  # fmt: skip
    return int(found)
