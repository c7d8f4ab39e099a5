"""How is a window applied to a table: change log first, then the mirror, each once?"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_core.delta.appending import CommitInfo, FileChanges, commit_files, write_file
from cdc_core.delta.history import read_log
from cdc_core.errors import (
    REPORT_HINT,
    DecodeError,
    LakeError,
    NotYetError,
    PreflightError,
    RowCountError,
    WindowConflictError,
)
from cdc_core.lake.applied_in_delta import brought_by
from cdc_core.lake.apply.emptied_partitions import refuse_older
from cdc_core.lake.apply.mirror_repair import find_different
from cdc_core.lake.definitions.evolution import check_mirror, settle_schema
from cdc_core.lake.mirror.merge import KeyRule
from cdc_core.lake.mirror.write import MirrorChange, write
from cdc_core.lake.rows.executors import StagedWindow, WindowStaging
from cdc_core.lake.rows.logged_changes import files_of, logged_changes
from cdc_core.lake.rows.window_rows import WindowRows
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.table_part import ApplyRules, MirrorState, TablePart
from cdc_core.lake.tables import CHANGELOG_INDEXED
from cdc_core.landing.manifest import moment_of
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import ChangeFacts, of_window
from cdc_core.stage.committed import CommittedTransactions
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.layout import change_schema
from cdc_core.stage.quarantine import QUARANTINE_SCHEMA, Sieve
from cdc_core.stage.window import staged_changes

_LOG = logging.getLogger(__name__)


def apply_window(
    work: TableWork, part: TablePart, state: MirrorState, rules: ApplyRules
) -> TableApplied:
    """Append the window's changes to the change log and merge them into the mirror.

    Where commits came to light with this window that belong to earlier ones, newer changes of their
    keys may be in the mirror, or have deleted them: the window's keys are then derived from the
    whole change log, as when a window is replayed.

    Where commits that belong to this window came to light with a later one (``part.is_inexact``),
    its changes may meet rows whose delete is there, or none where an insert is: they are merged as
    far as they go, and the later window derives the keys concerned.

    Repeating it at any point gives the same tables: each of the commits carries the window in its
    transaction identifier, and what is merged is read back from the change log's files.
    """
    started = time.monotonic()
    window, position = part.window, state.position
    where = work.facts(window=window.key)
    done = work.position()
    if done.mirror_scn is not None and done.mirror_scn >= window.scn_high:
        if position is not None and position < window.scn_high:
            # The process ended before the metadata store heard of it.
            return brought_by(work, window.scn_high)
        return TableApplied(table=work.table, skipped=True)
    _check_order(where, done.mirror_scn, position, window.scn_low)
    committed = part.landed.committed()
    if committed.count == 0:
        return TableApplied(table=work.table, seconds=time.monotonic() - started)
    _check_store(where, position, window.scn_high)
    schema = _settled(work, part, position)
    quarantine = QuarantineTable(work)
    quarantine.require(state.in_quarantine)
    files = _files_of(work, schema, window.scn_high, done.changelog_scn)
    appended: StagedWindow | None = None
    if not files:
        decoder = _decoder(work, part, rules, schema)
        sieve = _sieve(decoder, quarantine, rules, state.covered_scn)
        task_rows = work.task_rows(committed.rows)
        staging = WindowStaging(part.landed, decoder, work.changelog, task_rows)
        appended = _staged(work, staging, committed, sieve)
        _append_changes(work, window, appended, quarantine, sieve)
        files = appended.names
    put = quarantine.counts()
    staged_at = time.monotonic()
    found = TableApplied(table=work.table, seconds=time.monotonic() - started)
    if files:  # not everything was taken back, or went into quarantine
        merging = _Merging(
            work=work,
            part=part,
            state=state,
            schema=schema,
            is_late=committed.late > 0,
            has_gaps=bool(put) or part.is_inexact,
        )
        found = merging.merge_files(files, appended, started)
    return replace(
        found,
        quarantined=put.get(window.scn_high, 0),
        in_quarantine=quarantine.count_unresolved(),
        unfit_values=0 if appended is None else appended.unfit,
        stage_seconds=staged_at - started,
        merge_seconds=time.monotonic() - staged_at,
    )


def _sieve(
    decoder: ChangeDecoder, quarantine: QuarantineTable, rules: ApplyRules, covered_scn: int
) -> Sieve | None:
    """What keeps rows apart that cannot be decoded; None where the table has no quarantine."""
    if rules.quarantine_max is None:
        return None
    return Sieve(
        decoder,
        quarantine.suspects(),
        covered_scn=covered_scn,
        room=rules.quarantine_max - quarantine.count_unresolved(),
        keeps_text=rules.keeps_text,
    )


def _settled(work: TableWork, part: TablePart, position: int | None) -> TableSchema:
    """The change log's columns, after both tables are there and follow the part's definition."""
    if position is None:
        work.create_tables(part.schema)
    else:
        work.require_tables()
    if part.landed.late_above is not None and part.manifest.late_scn is not None:
        refuse_older(work, part.manifest.late_scn, "a late commit")
    schema = settle_schema(work, part.schema)
    check_mirror(work, schema, work.require_mirror())
    return schema


def _decoder(
    work: TableWork, part: TablePart, rules: ApplyRules, schema: TableSchema
) -> ChangeDecoder:
    return ChangeDecoder(
        schema,
        part.window.scn_high,
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
    """Write the window's changes into files of the change log's folder, by executors or in this
    process."""
    session = work.executors_for(committed.rows)
    if staging.decoder.is_reselected:
        session = None  # its rows stand in few files, behind their transactions
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
    changes = staged_changes(staging.landed.rows(committed), staging.decoder, sieve)
    file = write_file(work.changelog, change_schema(schema), changes, CHANGELOG_INDEXED)
    return StagedWindow(() if file is None else (file,), sum(staging.decoder.unfit))


def _append_changes(
    work: TableWork,
    window: ScnWindow,
    staged: StagedWindow,
    quarantine: QuarantineTable,
    sieve: Sieve | None,
) -> None:
    """Append the window's files to the change log in one commit, after what cannot be decoded of it
    is in quarantine; no commit if there are none."""
    quarantine.put(
        QUARANTINE_SCHEMA.empty_table() if sieve is None else sieve.rows, window.scn_high
    )
    if not staged.files:
        return
    doing, txn = "appending a window to the change log", (work.window_app, window.scn_high)
    commit_files(
        work.changelog,
        FileChanges(added=staged.files),
        work.info(doing, _metadata(work, window), txn),
        fence=work.fence,
    )


def _check_appended(
    where: Mapping[str, object], changes: int, appended: StagedWindow | None
) -> None:
    """What is read back from the change log is what was written to it a moment ago."""
    rows = changes if appended is None else appended.rows
    if rows != changes:
        raise RowCountError(
            "the change log does not give back as many changes as were written to it; the mirror was not changed",
            hint=REPORT_HINT,
            **where,
            appended=rows,
            changes=changes,
        )


def _metadata(work: TableWork, window: ScnWindow, **more: object) -> str:
    facts = {"scn_low": window.scn_low, "window": window.key, **more}
    return work.metadata("window", window.scn_high, **facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merging:
    """How a table's part of a window becomes a change of its mirror. ``is_late``: some of its
    commits belong to earlier windows; ``has_gaps``: changes of the table went into quarantine, or
    come with a later window."""

    work: TableWork
    part: TablePart
    state: MirrorState
    schema: TableSchema
    is_late: bool
    has_gaps: bool

    def merge_files(
        self, files: Sequence[str], appended: StagedWindow | None, started: float
    ) -> TableApplied:
        """Merge what these files of the change log have of the window; ``appended`` was written a
        moment ago."""
        work, window = self.work, self.part.window
        where = work.facts(window=window.key)
        own = of_window(window.scn_high)
        with logged_changes(work.changelog, self.schema, own, files) as changes:
            found = changes.facts()
            _check_appended(where, found.changes, appended)
            rule = KeyRule(
                schema=self.schema,
                absent=found.absent,
                covered_scn=self.state.covered_scn,
                read_scn=window.scn_high if self.part.is_inexact else self.state.read_scn,
            )
            rows = WindowRows(
                work=work,
                changes=changes,
                files=files,
                found=found,
                scn_high=window.scn_high,
                rule=rule,
                has_gaps=self.has_gaps,
                facts=where,
            )
            info = self._info(found, where)
            written = write(work, self._late(info) if self.is_late else rows.change(info))
        report = written.report(work.table, found.changes, started)
        return replace(report, operations=found.operations, events_skipped=found.skipped)

    def _info(self, found: ChangeFacts, where: dict[str, object]) -> CommitInfo:
        """What the commit carries: for readers of the Delta log alone, too, the time of the
        window's end in Oracle, and the lowest SCN of the commits that belong to earlier windows."""
        work, window, manifest = self.work, self.part.window, self.part.manifest
        ended = manifest.planned.ended
        metadata = _metadata(
            work,
            window,
            changes=found.changes,
            operations=dict(found.operations),
            skipped=dict(found.skipped),
            **({} if ended is None else {"ended": ended}),
            **({"late_scn": manifest.late_scn} if self.is_late else {}),
        )
        return CommitInfo(
            doing="merging a window into the mirror",
            metadata=metadata,
            txn=(work.window_app, window.scn_high),
            facts=where,
        )

    def _late(self, info: CommitInfo) -> MirrorChange:
        """The window's keys, derived from the whole change log."""
        scn, covered_scn = self.part.window.scn_high, self.state.covered_scn
        different = find_different(
            self.work,
            self.schema,
            scn,
            position=scn,
            covered_scn=covered_scn,
            facts=info.facts,
            is_late=True,
        )
        return different.change(self.schema, info, covered_scn)


def _check_order(
    where: Mapping[str, object], mirror_scn: int | None, position: int | None, scn_low: int
) -> None:
    """Forward in order: the mirror must be at or before scn_low, and the store must say it took the
    window before."""
    if mirror_scn is not None and mirror_scn > scn_low:
        raise WindowConflictError(
            "the mirror has applied a window that overlaps this one",
            hint="Windows of a source never overlap; check that one metadata store serves this lake.",
            **where,
            mirror_scn=mirror_scn,
        )
    if position is not None and position < scn_low:
        raise NotYetError(
            "the mirror has not applied the previous window",
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
    """The change log's files that hold the window, if it is there already, perhaps under an older
    generation's identifier; none if it is not."""
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
