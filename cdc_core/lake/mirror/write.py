"""How does a change get into a mirror? Windows, late commits, replays and chunks say what is to
become of which rows; :func:`write` alone chooses how, and says why.

It appends where the mirror has none of the keys, exchanges small files without Spark
(copy-on-write, or deletion vectors where they are switched on), and lets Spark MERGE everything
else. Each way takes the same rows by the same rule, in one commit with the change's metadata and
transaction identifier, and holds the counts of what was written against what was sent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.appending import CommitInfo, FileChanges, NewFile, commit_files
from cdc_core.errors import CommitConflictError
from cdc_core.lake.mirror.append_only import unseen_keys
from cdc_core.lake.mirror.copy_on_write import rewrite_files
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.merge import KeyRule, MergeRule, ReplaceRule, run_merge
from cdc_core.lake.mirror.merge_audit import Audit
from cdc_core.lake.mirror.ways import Choice, choose
from cdc_core.lake.rows.staging import StagedRows
from cdc_core.lake.table_context import TableWork
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import MirrorWrite, TableApplied
from cdc_core.stage.changes import Bounds

_LOG = logging.getLogger(__name__)


class ChangeRows(Protocol):
    """Makes a change's rows, one per key, in the columns of ``stage.reduction.merge_source`` (of a
    :class:`~cdc_core.lake.mirror.merge.ReplaceRule`: ``stage.snapshot.replacing``), where and when
    they are wanted."""

    @property
    def count(self) -> int:
        """About how many rows are handed to Spark."""
        ...

    @property
    def why_spark(self) -> str | None:
        """Why Spark alone can merge them; None where this process can."""
        ...

    def inserted(self, mirror: MirrorFiles) -> tuple[Sequence[NewFile], Audit] | None:
        """Those that come into a mirror which has none of their keys, in files of its folder that
        no commit names yet; None where that is nothing to ask."""
        del mirror
        return None

    def in_hand(self, mirror: MirrorFiles) -> tuple[pa.Table, Audit] | None:
        """All of them, counted, for this version of the mirror; None where Spark has to merge them
        after all."""
        del mirror
        return None

    def staged(self, work: TableWork) -> AbstractContextManager[StagedRows]:
        """All of them for a MERGE, for as long as the block lasts."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorChange:
    """What is to become of rows of a mirror.

    Attributes:
        rows: The rows, one per key.
        rule: What they do to the mirror's rows.
        commit: What the commit carries.
        bounds: Between which values their keys lie; empty where that is not known.
    """

    rows: ChangeRows
    rule: MergeRule
    commit: CommitInfo
    bounds: Bounds = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MirrorCommit:
    """MERGE's counts, one row or none if Delta skipped a repeated transaction; and in which way the
    mirror took the change."""

    counts: list[Any]
    how: MirrorWrite

    @property
    def deleted(self) -> int:
        """How many rows went."""
        return sum(one["num_deleted_rows"] for one in self.counts)

    def report(self, table: TableId, changes: int, started: float) -> TableApplied:
        """A report of what so many changes, since a moment of the process, made of the mirror."""
        if not self.counts:
            return TableApplied(table=table, skipped=True)
        [row] = self.counts
        return TableApplied(
            table=table,
            rows_inserted=row["num_inserted_rows"],
            rows_updated=row["num_updated_rows"],
            rows_deleted=row["num_deleted_rows"],
            changes=changes,
            seconds=time.monotonic() - started,
            write=self.how,
        )


def write(work: TableWork, change: MirrorChange) -> MirrorCommit:
    """Bring a change into the mirror, in one commit.

    Raises:
        CommitConflictError: Another process has brought it, or has committed since the mirror was
            read.
        RowCountError: The mirror took more or less than what was sent.
        DuplicateKeyError, DecodeError, LakeError: As the rule says; nothing was committed.
    """
    why_spark = change.rows.why_spark
    if work.merges_by_spark:
        return _merge(work, change, "lake.merge is spark")
    mirror = _unwritten(work, change)
    if (appended := _append(mirror, change)) is not None:
        return appended
    if why_spark is not None:
        return _merge(work, change, why_spark, mirror)
    if not work.rewrite_bytes_max:
        return _merge(work, change, "lake.rewrite_mirrors_up_to_mb is 0", mirror)
    chosen = choose(mirror, change.rule.columns, change.rule.near(change.bounds), change.rows.count)
    if chosen.way == "merge":
        return _merge(work, change, chosen.reason, mirror, chosen.expected.get("merge"))
    if (found := change.rows.in_hand(mirror)) is None:
        return _merge(work, change, "many changes of key lack columns", mirror)
    return _rewrite(mirror, change, chosen, *found)


def _unwritten(work: TableWork, change: MirrorChange) -> MirrorFiles:
    """The mirror, which the change is still to be brought into. What it has of it already would
    look like a wrong mirror.

    Raises:
        CommitConflictError: Another process has brought it meanwhile.
    """
    mirror, txn = MirrorFiles.read(work), change.commit.txn
    if txn is not None and work.require_mirror().transactions.get(txn[0], -1) >= txn[1]:
        raise CommitConflictError(
            "another process has merged the window into the mirror meanwhile",
            hint="Try again; a source must have one writer.",
            **change.commit.facts,
        )
    return mirror


def _append(mirror: MirrorFiles, change: MirrorChange) -> MirrorCommit | None:
    """Append the change to a mirror that has none of its keys; None if it may have some, or nothing
    is left."""
    rule, work = change.rule, mirror.work
    if not isinstance(rule, KeyRule) or rule.absent or not unseen_keys(mirror, change.bounds):
        return None
    if (found := change.rows.inserted(mirror)) is None:
        return None
    files, sent = found
    if not (rows := sum(file.rows for file in files)):
        return None
    commit = replace(change.commit.saying(inserted=rows), doing="appending a window to the mirror")
    added = FileChanges(added=files)
    commit_files(work.mirror, added, commit, fence=work.fence, version=mirror.version)
    counts = {"num_inserted_rows": rows, "num_updated_rows": 0, "num_deleted_rows": 0}
    sent.check([counts])
    return MirrorCommit([counts], MirrorWrite("append", "the mirror has none of the keys"))


def _rewrite(
    mirror: MirrorFiles,
    change: MirrorChange,
    chosen: Choice,
    rows: pa.Table,
    sent: Audit,
) -> MirrorCommit:
    """Exchange the files that change, or mark rows of them, without Spark."""
    rule = change.rule
    counts, way = rewrite_files(
        mirror,
        rule.columns,
        rule.in_arrow(rows),
        rule.near(change.bounds),
        check=lambda found: sent.check([found]),
        commit=change.commit,
    )
    return MirrorCommit([counts], MirrorWrite(way, chosen.reason, chosen.expected.get(way)))


def _merge(
    work: TableWork,
    change: MirrorChange,
    reason: str,
    mirror: MirrorFiles | None = None,
    expected: float | None = None,
) -> MirrorCommit:
    """Let Spark MERGE."""
    _LOG.debug("Spark merges a change of %s: %s", work.table, reason)
    with change.rows.staged(work) as staged:
        inserts = mirror is None or not _are_there(mirror, staged, change)
        counts = run_merge(work, staged, change.rule, change.commit, inserts=inserts)
    return MirrorCommit(counts, MirrorWrite("merge", reason, expected))


def _are_there(mirror: MirrorFiles, staged: StagedRows, change: MirrorChange) -> bool:
    """Has the mirror a row of each key that has one after the change? A MERGE that inserts nothing
    then does all that is to be done, and leaves the mirror's rows in their files' order: the staged
    ones are sent to where they are."""
    rule = change.rule
    if staged.rows is None or not isinstance(rule, KeyRule | ReplaceRule):
        return False
    rows = staged.rows.filter(pc.equal(staged.rows["_cdc_kind"], "row"))
    if isinstance(rule, ReplaceRule):
        return not rows.num_rows
    if pc.any(rows["_cdc_new"]).as_py():  # an insert, or a wrong mirror: MERGE finds that out
        return False
    are_there = mirror.has_all(rows.select(list(rule.schema.key)), change.bounds)
    if are_there:
        staged.broadcast()
    return are_there
