"""How is a window applied to a table: change log first, then the mirror, each once?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.delta.appending import commit_files, write_file
from cdc_core.delta.history import read_log
from cdc_core.errors import (
    REPORT_HINT,
    CommitConflictError,
    DecodeError,
    LakeError,
    NotYetError,
    PreflightError,
    RowCountError,
    WindowConflictError,
)
from cdc_core.lake.append_only import unseen_keys, write_inserted
from cdc_core.lake.applied_in_delta import brought_by
from cdc_core.lake.carry import carried_sql, carried_view, mirror_origin
from cdc_core.lake.changes import files_of, logged_changes, window_sql
from cdc_core.lake.column_widths import with_widths
from cdc_core.lake.copy_on_write import rewrite_files, why_merged
from cdc_core.lake.counted import merge_copies, merge_counted, rewrite_copies, rewrite_counted
from cdc_core.lake.emptied_partitions import refuse_older
from cdc_core.lake.evolution import added_columns, check_mirror, in_mirror, settle_schema
from cdc_core.lake.executors import (
    Reduction,
    StagedWindow,
    WindowStaging,
    names_of,
)
from cdc_core.lake.merge import merge_report, merged
from cdc_core.lake.merge_audit import Sent
from cdc_core.lake.mirror_files import MirrorFiles
from cdc_core.lake.quarantine import QuarantineTable
from cdc_core.lake.rederiving import find_different
from cdc_core.lake.reduce import reduced_sql
from cdc_core.lake.staging import StagedRows, staged_by_executors, staged_rows
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.table_part import ApplyRules, MirrorState, TablePart
from cdc_core.lake.tables import CHANGELOG_INDEXED
from cdc_core.landing.manifest import moment_of
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import translated
from cdc_core.stage.absent_names import as_listed
from cdc_core.stage.carrying import ASKED_MAX, NOTHING_CARRIED, CarriedValues, carry_columns
from cdc_core.stage.changes import ChangeFacts, LoggedChanges, of_window
from cdc_core.stage.committed import CommittedTransactions
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.layout import COMMIT_SCN, change_schema, mirror_schema
from cdc_core.stage.merging import WindowMerge
from cdc_core.stage.quarantine import QUARANTINE_SCHEMA, Sieve
from cdc_core.stage.reducing import merge_sources, source_schema
from cdc_core.stage.widths import WidthCounter
from cdc_core.stage.window import staged_changes

_LOG = logging.getLogger(__name__)


def apply_window(
    work: TableWork,
    part: TablePart,
    state: MirrorState,
    rules: ApplyRules,
    *,
    decode: Callable[[Any, TableSchema], Any],
) -> TableApplied:
    """Append the window's changes to the change log and merge them into the mirror.

    Where commits came to light with this window that belong to earlier ones, newer changes of their keys may be in the mirror, or
    have deleted them: the window's keys are then derived from the whole change log, as when a window is replayed.

    Where commits that belong to this window came to light with a later one (``part.is_inexact``), its changes may meet rows whose
    delete is there, or none where an insert is: they are merged as far as they go, and the later window derives the keys concerned.

    Repeating it at any point gives the same tables: each of the commits carries the window in its transaction
    identifier, and what is merged is read back from the change log's files.
    """
    started = time.monotonic()
    window, position = part.window, state.position
    where = work.facts(window=window.key)
    done = work.position()
    if done.mirror_scn is not None and done.mirror_scn >= window.scn_high:
        if position is not None and position < window.scn_high:
            # The process ended before the metadata store heard of it: it shall know what there is to lose.
            return brought_by(work, window.scn_high)
        return TableApplied(table=work.table, skipped=True)
    _check_order(where, done.mirror_scn, position, window.scn_low)
    committed = part.landed.committed()
    if committed.count == 0:
        return TableApplied(table=work.table, seconds=time.monotonic() - started)
    _check_store(where, position, window.scn_high)
    schema = _settled(work, part, position)
    quarantine = QuarantineTable(work)
    files = _files_of(work, schema, window.scn_high, done.changelog_scn)
    appended: int | None = None
    if not files:
        decoder = _decoder(work, part, rules, schema, decode)
        sieve = None
        if rules.quarantine_max is not None:
            suspects = quarantine.suspects()
            room = rules.quarantine_max - quarantine.count_unresolved()
            sieve = Sieve(decoder, suspects, covered_scn=state.covered_scn, room=room)
        staging = WindowStaging(part.landed, decoder, work.changelog, work.task_rows)
        staged = _staged(work, staging, committed, sieve)
        _append_changes(work, window, decoder.schema, staged, quarantine, sieve)
        if staged.files:
            files, appended = names_of(staged.files), sum(file.rows for file in staged.files)
    put = quarantine.counts()
    found = TableApplied(table=work.table, seconds=time.monotonic() - started)
    if files:  # not everything was taken back, or went into quarantine
        merging = _Merging(
            work=work,
            window=window,
            schema=schema,
            mirrored=in_mirror(work, schema),
            covered_scn=state.covered_scn,
            read_scn=window.scn_high if part.is_inexact else state.read_scn,
            is_late=committed.late > 0,
            has_gaps=bool(put) or part.is_inexact,
        )
        found = merging.merge_files(files, appended, started)
    in_quarantine = quarantine.count_unresolved()
    quarantined = put.get(window.scn_high, 0)
    return replace(found, quarantined=quarantined, in_quarantine=in_quarantine)


def _settled(work: TableWork, part: TablePart, position: int | None) -> TableSchema:
    """The change log's columns, after both tables are there and follow the part's definition."""
    if position is None:
        work.create_tables(part.schema)
    else:
        work.require_tables()
    if part.landed.late_above is not None and part.manifest.late_scn is not None:
        refuse_older(work, part.manifest.late_scn, "a late commit")
    schema = settle_schema(work, part.schema)
    check_mirror(work, in_mirror(work, schema), work.require_mirror())
    return schema


def _decoder(
    work: TableWork,
    part: TablePart,
    rules: ApplyRules,
    schema: TableSchema,
    decode: Callable[[Any, TableSchema], Any],
) -> ChangeDecoder:
    return ChangeDecoder(
        schema,
        part.window.scn_high,
        decode,
        tuple(part.earlier),
        part.schema.excluded,
        optional=work.optional,
        landed=moment_of(part.manifest.landed),
        skipping=rules.skipping,
        replacing=rules.replacing,
    )


def _staged(
    work: TableWork,
    staging: WindowStaging,
    committed: CommittedTransactions,
    sieve: Sieve | None,
) -> StagedWindow:
    """Write the window's changes into files of the change log's folder, by executors or in this process."""
    session = work.executors_for(committed.rows)
    if session is not None and (sieve is None or not sieve.suspects):
        try:
            return staging.run(session, committed, work.facts(window=staging.landed.window.key))
        except DecodeError:
            if sieve is None:
                raise
            # Which rows follow those that cannot be decoded is seen in the order of the redo alone.
        except PreflightError as error:
            work.go_on_without_executors(error)
    schema = staging.decoder.schema
    counter = WidthCounter(schema)
    changes = staged_changes(staging.landed.rows(committed), staging.decoder, sieve)
    listed = as_listed(counter.passing(changes), schema)
    file = write_file(work.changelog, change_schema(schema), listed, CHANGELOG_INDEXED)
    return StagedWindow(() if file is None else (file,), counter.seen)


def _append_changes(
    work: TableWork,
    window: ScnWindow,
    schema: TableSchema,
    staged: StagedWindow,
    quarantine: QuarantineTable,
    sieve: Sieve | None,
) -> None:
    """Append the window's files to the change log in one commit, after what cannot be decoded of it is in quarantine; no commit if there
    are none."""
    quarantine.put(
        QUARANTINE_SCHEMA.empty_table() if sieve is None else sieve.rows, window.scn_high
    )
    if not staged.files:
        return
    commit_files(
        work.changelog,
        change_schema(schema),
        staged.files,
        metadata=with_widths(_metadata(work, window), work.changelog, schema, staged.widths),
        txn=(work.window_app, window.scn_high),
        fence=work.fence,
        doing="appending a window to the change log",
        facts=work.facts(),
    )


def _check_appended(where: Mapping[str, object], changes: int, appended: int | None) -> None:
    """What is read back from the change log is what was written to it a moment ago."""
    if appended not in (None, changes):
        raise RowCountError(
            "the change log does not give back as many changes as were written to it; the mirror was not changed",
            hint=REPORT_HINT,
            **where,
            appended=appended,
            changes=changes,
        )


def _metadata(work: TableWork, window: ScnWindow, **more: object) -> str:
    facts = {"scn_low": window.scn_low, "window": window.key, **more}
    return work.metadata("window", window.scn_high, **facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merging:
    """How one window's changes are merged into the mirror. ``schema`` is the change log's, ``mirrored`` the mirror's, which may have lost
    dropped columns. ``is_late``: some of its commits belong to earlier windows; ``has_gaps``:
    changes of the table went into quarantine, or come with a later window."""

    work: TableWork
    window: ScnWindow
    schema: TableSchema
    mirrored: TableSchema
    covered_scn: int
    read_scn: int | None
    is_late: bool
    has_gaps: bool

    def merge_files(
        self, files: Sequence[str], appended: int | None, started: float
    ) -> TableApplied:
        """Merge what these files of the change log have of the window, of which ``appended`` changes were written a moment ago."""
        own, is_counted = of_window(self.window.scn_high), self.schema.is_by_all_columns
        schema = self.schema if is_counted else self.mirrored
        with logged_changes(self.work.changelog, schema, own, files) as changes:
            facts = changes.facts()
            where = self.work.facts(window=self.window.key)
            _check_appended(where, facts.changes, appended)
            if is_counted:
                counts = self._merge_counted(changes, facts, where)
            else:
                counts = self._merge(changes, facts, self._reduction(files, facts))
        return merge_report(self.work.table, counts, facts.changes, started)

    def _reduction(self, files: Sequence[str], facts: ChangeFacts) -> Reduction:
        """How executors reduce the window."""
        work = self.work
        return Reduction(
            changelog=work.changelog,
            files=tuple(files),
            schema=self.mirrored,
            scn_high=self.window.scn_high,
            absent=facts.absent,
            has_gaps=self.has_gaps,
            read_scn=self.read_scn,
            parts=max(1, facts.changes // (2 * work.task_rows)),  # smaller than redo
            staging=work.staging,
            facts=work.facts(window=self.window.key),
        )

    def _mirror(self) -> MirrorFiles:
        """The mirror, which the window is still to be merged into. What it has of the window already would look like a wrong mirror.

        Raises:
            CommitConflictError: Another process has merged the window meanwhile.
        """
        mirror, scn_high = MirrorFiles.read(self.work), self.window.scn_high
        if (self.work.position().mirror_scn or -1) >= scn_high:
            raise CommitConflictError(
                "another process has merged the window into the mirror meanwhile",
                hint="Try again; a source must have one writer.",
                **self.work.facts(window=self.window.key),
            )
        return mirror

    def _merge_counted(
        self, changes: LoggedChanges, facts: ChangeFacts, where: dict[str, object]
    ) -> list[Any]:
        """MERGE's counts, of a table whose equal rows are counted."""
        work, scn_high, rows = self.work, self.window.scn_high, facts.changes
        metadata, txn = _metadata(work, self.window, changes=rows), (work.window_app, scn_high)
        mirror = self._mirror()
        is_small = self._is_small(mirror, changes, facts)
        if not self.is_late:
            how: dict[str, Any] = {
                "read_scn": self.covered_scn, "has_gaps": self.has_gaps, "metadata": metadata, "txn": txn, "facts": where,
            }  # fmt: skip
            if is_small:
                return [rewrite_counted(mirror, changes, self.schema, **how)]
            return merge_counted(work, changes, self.schema, rows=rows, **how)
        different = find_different(
            work, self.schema, scn_high,
            position=scn_high, covered_scn=self.covered_scn, facts=where, is_late=True, has_gaps=self.has_gaps,
        )  # fmt: skip
        if is_small and different.rows is not None and different.version == mirror.version:
            found, own = different.rows, different.sent
            return [rewrite_copies(mirror, found, self.schema, own, metadata=metadata, txn=txn)]
        with different.opened() as frame:
            return merge_copies(
                work, frame, self.schema, different.sent,
                version=different.version, doing="merging a window into the mirror", metadata=metadata, txn=txn,
            )  # fmt: skip

    def _merge(self, changes: LoggedChanges, facts: ChangeFacts, reduction: Reduction) -> list[Any]:
        """MERGE's counts."""
        work, schema, scn_high = self.work, self.mirrored, self.window.scn_high
        absent, where = facts.absent, work.facts(window=self.window.key)
        commit: dict[str, Any] = {
            "doing": "merging a window into the mirror",
            "metadata": _metadata(work, self.window, changes=facts.changes),
            "txn": (work.window_app, scn_high),
            "covered_scn": self.covered_scn,
            "read_scn": None if self.is_late else self.read_scn,
            "force": self.is_late,
        }
        if self.is_late:
            different = find_different(
                work, self.schema, scn_high,
                position=scn_high, covered_scn=self.covered_scn, facts=where, is_late=True,
            )  # fmt: skip
            with different.opened() as frame:
                counts = merged(work, frame, schema, absent=different.absent, **commit)
            different.sent.check(counts)
            return counts
        mirror = self._mirror()
        if (inserted := self._append(mirror, changes, facts, reduction)) is not None:
            return [inserted]
        is_whole = not set(absent) & set(added_columns(read_log(work.changelog)))
        if is_whole and (rewritten := self._rewrite(mirror, changes, facts)) is not None:
            return [rewritten]
        if is_whole and not facts.moved_absent:
            session = work.session_for(facts.changes)
            sent = Sent(schema, self.read_scn, where)
            with self._source(changes, facts, reduction, session, sent) as staged:
                inserts = not self._are_there(mirror, staged, facts)
                counts = merged(
                    work, staged.frame, schema, absent=absent, inserts=inserts, **commit
                )
            sent.check(counts)
            return counts
        session = work.session_for(facts.changes)
        # The window does not say all. A change of key takes the columns that it lacks from the mirror's row of the old key;
        # rows from before a column was added have its default.
        with translated("reducing a window", **work.facts()):
            # MERGE looks at its source several times; it shall plan and compute the reduction once.
            frame = session.sql(self._carried_sql(session, changes, facts)).localCheckpoint()
            sent = Sent.of_frame(frame, schema, self.read_scn, where)
        counts = merged(work, frame, schema, absent=absent, **commit)
        sent.check(counts)
        return counts

    def _rewrite(
        self, mirror: MirrorFiles, changes: LoggedChanges, facts: ChangeFacts
    ) -> dict[str, int] | None:
        """Merge the window without Spark, into files of the mirror that are written anew; MERGE's counts, None if Spark is to do it."""
        work, schema, where = self.work, self.mirrored, self.work.facts(window=self.window.key)
        if not self._is_small(mirror, changes, facts):
            return None
        carried = self._carried(mirror, changes, facts)
        if carried is None:
            return None
        sent = Sent(schema, self.read_scn, where)
        parts = merge_sources(
            changes, schema, facts.absent, has_gaps=self.has_gaps, carried=carried
        )
        [rows] = sent.counting(parts)
        merge = WindowMerge(
            rows, schema, facts.absent, covered_scn=self.covered_scn, read_scn=self.read_scn
        )
        return rewrite_files(
            mirror,
            schema,
            merge,
            facts.bounds,
            check=lambda found: sent.check([found]),
            metadata=_metadata(work, self.window, changes=facts.changes),
            txn=(work.window_app, self.window.scn_high),
            doing="merging a window into the mirror",
        )

    def _carried(
        self, mirror: MirrorFiles, changes: LoggedChanges, facts: ChangeFacts
    ) -> CarriedValues | None:
        """What changes of key carry along; None where the mirror is to be asked for many rows."""
        schema = self.mirrored
        if not facts.moved_absent:
            return NOTHING_CARRIED
        carried = carry_columns(changes, schema, facts.absent, has_gaps=self.has_gaps)
        asked = pa.table(dict(zip(schema.key, carried.asked, strict=True)))
        if asked.num_rows > ASKED_MAX or any(map(pa.types.is_floating, asked.schema.types)):
            return None
        columns = [one for one in facts.absent if one not in schema.key]
        wanted = mirror_schema(schema)
        wanted = pa.schema([wanted.field(one) for one in (*schema.key, *columns, COMMIT_SCN)])
        found = mirror.rows_of(asked, wanted, facts.bounds)
        return carried.values(found, schema)

    def _is_small(self, mirror: MirrorFiles, changes: LoggedChanges, facts: ChangeFacts) -> bool:
        """Can the mirror's files that may have the window's keys be written anew?"""
        work = self.work
        if not work.rewrite_bytes_max:
            return False
        if changes.parts > 1 or work.executors_for(facts.changes) is not None:
            reason: str | None = "the window is large"
        else:
            reason = why_merged(mirror, self.mirrored, facts.bounds, work.rewrite_bytes_max)
        if reason is not None:
            _LOG.debug("Spark merges window %s of %s: %s", self.window.key, work.table, reason)
        return reason is None

    def _are_there(self, mirror: MirrorFiles, staged: StagedRows, facts: ChangeFacts) -> bool:
        """Has the mirror a row of each key that has one after the window? A MERGE that inserts nothing then does all that is to be done, and leaves
        the mirror's rows in their files' order: the staged ones are sent to where they are."""
        if staged.rows is None:
            return False
        rows = staged.rows.filter(pc.equal(staged.rows["_cdc_kind"], "row"))
        if pc.any(rows["_cdc_new"]).as_py():  # an insert, or a wrong mirror: MERGE finds that out
            return False
        are_there = mirror.has_all(rows.select(list(self.mirrored.key)), facts.bounds)
        if are_there:
            staged.broadcast()
        return are_there

    def _source(
        self,
        changes: LoggedChanges,
        facts: ChangeFacts,
        reduction: Reduction,
        session: Any,
        sent: Sent,
    ) -> AbstractContextManager[StagedRows]:
        """One row per key, which ``sent`` counts."""
        executors = self.work.executors_for(facts.changes)
        if executors is None:
            parts = merge_sources(changes, self.mirrored, facts.absent, has_gaps=self.has_gaps)
            return staged_rows(self.work, session, sent.counting(parts))
        columns = source_schema(self.mirrored)
        return staged_by_executors(
            self.work, session, columns, lambda: reduction.merge_source(executors, sent)
        )

    def _append(
        self,
        mirror: MirrorFiles,
        changes: LoggedChanges,
        facts: ChangeFacts,
        reduction: Reduction,
    ) -> dict[str, int] | None:
        """Append the window to a mirror that has none of its keys; MERGE's counts, None if it may have some or nothing is left."""
        work, schema = self.work, self.mirrored
        unseen = None if facts.absent else unseen_keys(mirror, schema, facts.bounds)
        if unseen is None:
            return None
        sent = Sent(schema, self.read_scn, work.facts(window=self.window.key))
        executors = work.executors_for(facts.changes)
        if executors is None:
            parts = merge_sources(changes, schema, (), has_gaps=self.has_gaps)
            one = write_inserted(work.mirror, schema, sent.counting(parts), self.covered_scn)
            files = [] if one is None else [one]
        else:
            files = reduction.inserted(executors, sent, work.mirror, self.covered_scn)
        rows = unseen.append(
            files,
            metadata=lambda rows: _metadata(
                work, self.window, changes=facts.changes, inserted=rows
            ),
            txn=(work.window_app, self.window.scn_high),
            doing="appending a window to the mirror",
        )
        if rows is None:
            return None
        counts = {"num_inserted_rows": rows, "num_updated_rows": 0, "num_deleted_rows": 0}
        sent.check([counts])
        return counts

    def _carried_sql(self, session: Any, changes: LoggedChanges, facts: ChangeFacts) -> str:
        """One row per key, in which changes of key carry the columns that can be proved."""
        work, schema, absent = self.work, self.schema, facts.absent
        defaults = added_columns(read_log(work.changelog))
        rows = window_sql(work.changelog, self.window.scn_high, schema)
        if facts.moved_absent:
            carried = carry_columns(changes, self.mirrored, absent, has_gaps=self.has_gaps)
            view = carried_view(work, session, carried, has_mirror=True)
            origin = mirror_origin(work.mirror, schema, absent)
            rows = f"({carried_sql(rows, schema, absent, defaults, origin, view)})"
        return reduced_sql(rows, schema, absent=absent, defaults=defaults, has_gaps=self.has_gaps)


def _check_order(
    where: Mapping[str, object], mirror_scn: int | None, position: int | None, scn_low: int
) -> None:
    """Forward in order: the mirror must be at or before scn_low, and the store must say it took the window before."""
    if mirror_scn is not None and mirror_scn > scn_low:
        raise WindowConflictError(
            "the mirror has taken a window that overlaps this one",
            hint="Windows of a source never overlap; check that one metadata store serves this lake.",
            **where,
            mirror_scn=mirror_scn,
        )
    if position is not None and position < scn_low:
        raise NotYetError(
            "the mirror has not taken the window before this one",
            hint="`redolake run` applies windows in order.",
            **where,
            position=position,
        )


def _check_store(where: Mapping[str, object], position: int | None, scn_high: int) -> None:
    """A mirror behind the store was restored or replaced by someone."""
    if position is not None and position >= scn_high:
        raise LakeError(
            "the metadata store says that the mirror has this window, and the mirror's own log does not",
            hint="`redolake table rebuild OWNER.TABLE` writes the mirror from its change log; `redolake table resnapshot OWNER.TABLE` reads the table again from Oracle.",
            **where,
            position=position,
        )


def _files_of(
    work: TableWork, schema: TableSchema, scn_high: int, changelog_scn: int | None
) -> list[str]:
    """The change log's files that hold the window, if it is there already, perhaps under an older generation's identifier; none
    if it is not."""
    log = read_log(work.changelog)
    prefix = work.window_app.rsplit("/", 1)[0] + "/"
    reached = [
        version
        for app, version in (log.transactions.items() if log else ())
        if app.startswith(prefix) and app.removeprefix(prefix).isdigit()
    ]
    if max(changelog_scn or -1, *reached, -1) < scn_high:
        return []
    names = files_of(work, scn_high)
    with logged_changes(work.changelog, schema, of_window(scn_high), names) as changes:
        return names if changes.facts().changes else []
