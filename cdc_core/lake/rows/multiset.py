"""How do the changes of a table whose rows are counted get into its mirror?

``multiset.copies`` says what becomes of the copies of each digest. Here the mirror is asked how
many there are now. Copy-on-write takes the version that was asked or none; a MERGE fails if the
mirror has other rows than it had then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.delta.deletion_vectors import places_of
from cdc_core.delta.history import filesystem_of, read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import LakeError
from cdc_core.lake.apply.truncation import truncated_scn
from cdc_core.lake.mirror.files import MirrorFiles, without
from cdc_core.lake.mirror.merge import ReplaceRule, run_merge
from cdc_core.lake.mirror.merge_audit import SentChunk, SentRows
from cdc_core.lake.rows.logged_changes import files_of, logged_changes, queried
from cdc_core.lake.rows.staging import StagedRows, staged_rows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import delta, quote_name, string_literal
from cdc_core.schema.table import ROW_COPY, ROW_DIGEST, TableSchema
from cdc_core.spark.session import packed_error, translated
from cdc_core.stage.changes import Bounds, LightChanges, LoggedChanges, of_window, since, up_to
from cdc_core.stage.difference import rows_of_keys, touching
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema
from cdc_core.stage.merge import Merge
from cdc_core.stage.multiset.copies import (
    Copies,
    copies_source,
    count_copies,
    different_copies,
    touched_digests,
)
from cdc_core.stage.multiset.merge import CopiesMerge, another_mirror

IN_HAND_ROWS_MAX = 500_000
"""A mirror of up to so many rows is asked without Spark."""

DIGESTS_AT_ONCE = 500_000
"""So many digests are counted at once. Measured with 2 million rows, each touched: 231 MiB
and 2.9 CPU s; all at once, row group by row group: 585 MiB and 18.5 s."""

GROUPS_AT_ONCE = 20
"""So many row groups are looked through at once: each look makes a table of all wanted digests."""

_SOURCE = "copies_source"
_REBUILD = "`redolake table rebuild OWNER.TABLE` writes the mirror from its change log. "


@dataclass(frozen=True, slots=True)
class CopiesRule:
    """What the copies of a change do to those of a mirror."""

    schema: TableSchema

    @property
    def columns(self) -> TableSchema:
        """The mirror's columns; a row's digest and number are its key."""
        return self.schema.with_copies()

    def near(self, bounds: Bounds) -> Bounds:
        """Digests have no bounds that say anything."""
        del bounds
        return {}

    def in_arrow(self, rows: pa.Table) -> Merge:
        """The rule for these rows, by columns."""
        return CopiesMerge(rows, self.schema)

    def statement(self, mirror: str, source: str, *, inserts: bool = True) -> str:
        """MERGE of a view into the Delta table in a folder."""
        del inserts
        return merge_copies_sql(mirror, source, self.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRows:
    """The copies that come and go with a window of ``count`` changes. ``read_scn`` and ``has_gaps``
    are as for :func:`cdc_core.stage.multiset.copies.count_copies`.

    Raises:
        LakeError: More copies go than are there, or the mirror's copies are not numbered without
            holes.
    """

    work: TableWork
    changes: LoggedChanges
    count: int
    schema: TableSchema
    read_scn: int
    has_gaps: bool
    facts: dict[str, object]

    @property
    def why_spark(self) -> str | None:
        """Why Spark alone can merge them."""
        is_large = self.changes.parts > 1 or self.work.executors_for(self.count) is not None
        return "the window is large" if is_large else None

    def inserted(self, mirror: MirrorFiles, covered_scn: int) -> None:
        """How many copies there are, the mirror has to be asked."""
        del mirror, covered_scn

    def in_hand(self, mirror: MirrorFiles) -> tuple[pa.Table, SentRows]:
        """All of them, for this version of the mirror."""
        light, sent = self.changes.light(), self._audit()
        copies = self._counted(light, _present_in(mirror, touched_digests(light)))
        [rows] = sent.counting(iter([copies_source(self.changes, copies, self.schema)]))
        return rows, sent

    @contextmanager
    def staged(self, work: TableWork) -> Iterator[StagedRows]:
        """All of them for a MERGE."""
        session, version = work.session_for(self.count), work.require_mirror().version
        changes, sent = self.changes, self._audit()

        def parts() -> Iterator[pa.Table]:
            for part in range(changes.parts):
                light = changes.light(part, changes.parts)
                present = _present(work, session, touched_digests(light))
                yield copies_source(changes, self._counted(light, present), self.schema)

        with staged_rows(work, session, sent.counting(parts()), sent, version) as staged:
            yield staged

    def _counted(self, light: LightChanges, present: pa.Table) -> Copies:
        read_scn, has_gaps = self.read_scn, self.has_gaps
        return count_copies(light, self.schema, present, read_scn=read_scn, has_gaps=has_gaps)

    def _audit(self) -> SentRows:
        return SentRows(self.schema.with_copies(), -1, self.facts)


def _present(work: TableWork, session: Any, digests: pa.BinaryArray) -> pa.Table:
    """How many copies the mirror has of some digests: ``_cdc_row_digest`` and ``copies``, for those
    of which it has any."""
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
    """The same of a mirror whose files are read as they are, for some digests after the others."""
    starts = range(0, max(1, len(digests)), DIGESTS_AT_ONCE)
    return pa.concat_tables(
        [_counted_in(mirror, digests.slice(at, DIGESTS_AT_ONCE)) for at in starts]
    )


def _counted_in(mirror: MirrorFiles, digests: pa.BinaryArray) -> pa.Table:
    columns = [ROW_DIGEST, ROW_COPY]
    kinds = pa.schema([(ROW_DIGEST, pa.binary()), (ROW_COPY, pa.int64())])
    parts = [kinds.empty_table()]
    filesystem, root = filesystem_of(mirror.work.mirror)
    with mirror.reading("counting equal rows"):
        for name in mirror.files["path"].to_pylist():
            gone, start = places_of(mirror.deleted(name)), 0
            with pq.ParquetFile(f"{root}/{name}", filesystem=filesystem) as file:
                for at in range(0, file.num_row_groups, GROUPS_AT_ONCE):
                    groups = range(at, min(at + GROUPS_AT_ONCE, file.num_row_groups))
                    read = file.read_row_groups(groups, columns=columns).select(columns).cast(kinds)
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
    """What the mirror has otherwise than the change log up to ``position`` says, of the digests
    that a window touches, in the columns of ``multiset.copies.copies_source``; None if the tables
    are large, and Spark has to find it. ``has_gaps`` is as for
    :func:`~cdc_core.stage.multiset.copies.count_copies`.

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
    """Number the rows anew of which chunks brought copies with one number, since none knows what
    the others have; how many were.

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
        found = int(frame.where("_cdc_kind = 'row'").count())
    if found:
        sent = SentChunk(found, found, work.facts(), gone=found)
        rule = ReplaceRule(schema.with_copies())
        run_merge(work, StagedRows(frame, sent), rule, work.info(doing, metadata, txn))
    return found


def merge_copies_sql(mirror: str, source: str, schema: TableSchema) -> str:
    """MERGE of ``source`` (columns of ``multiset.copies.copies_source``) into the Delta table at
    ``mirror``.

    The mirror was read before: which copies come is a fact about its version then. If a row that is
    to come is there, or one that is to go or to get another position is not, another writer has
    been at work, and the MERGE fails before its commit.
    """
    stop = f"CAST(RAISE_ERROR({string_literal(packed_error(another_mirror(schema)))}) AS BIGINT)"
    columns = [*schema.with_copies().column_names, COMMIT_SCN]
    names = ", ".join(map(quote_name, [*columns, ORDINAL]))
    values = ", ".join(f"s.{quote_name(column)}" for column in columns)
    return f"""
MERGE INTO {delta(mirror)} t USING {source} s ON t.{ROW_DIGEST} = s.{ROW_DIGEST} AND t.{ROW_COPY} = s.{ROW_COPY}
WHEN MATCHED AND s._cdc_kind = 'del' THEN DELETE
WHEN MATCHED THEN UPDATE SET t.{COMMIT_SCN} = IF(s._cdc_new, {stop}, s.{COMMIT_SCN}), t.{ORDINAL} = s.{ORDINAL}
WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values}, IF(s._cdc_new AND s._cdc_kind = 'row', s.{ORDINAL}, {stop}))
"""


def doubled_copies_sql(mirror: str, schema: TableSchema) -> str:
    """SELECT for ``merge.replace_sql`` that numbers the rows anew of digests of which chunks
    brought copies with one number."""
    columns = [*schema.as_in_rows().column_names, COMMIT_SCN, ORDINAL]
    values = ", ".join(map(quote_name, columns))
    return f"""
WITH doubled AS (
  SELECT {ROW_DIGEST} FROM {delta(mirror)} GROUP BY {ROW_DIGEST} HAVING COUNT(*) > COUNT(DISTINCT {ROW_COPY})
), own AS (
  SELECT m.*, ROW_NUMBER() OVER (PARTITION BY m.{ROW_DIGEST} ORDER BY m.{ROW_COPY}) AS _cdc_number
  FROM {delta(mirror)} m LEFT SEMI JOIN doubled d ON m.{ROW_DIGEST} = d.{ROW_DIGEST}
)
SELECT {ROW_DIGEST}, CAST(_cdc_number AS BIGINT) AS {ROW_COPY}, {values}, 'row' AS _cdc_kind FROM own
UNION ALL
SELECT {ROW_DIGEST}, {ROW_COPY}, {", ".join(f"FIRST({quote_name(column)})" for column in columns)}, 'del' FROM own GROUP BY {ROW_DIGEST}, {ROW_COPY}
"""
