"""How does one table take its part of a captured window? Definitions first, then in one piece, or
piece by piece where a TRUNCATE is followed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.parquet as pq

from cdc_core.config import SourceConfig
from cdc_core.errors import RowsGoneError
from cdc_core.lake.apply.truncation import Truncation
from cdc_core.lake.lake import TableLake
from cdc_core.lake.table_part import ApplyRules, MirrorState, TablePart
from cdc_core.landing.damage import reading_file
from cdc_core.landing.manifest import SchemaChange, WindowManifest, moment_of
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.stage.committed import LandedInput
from cdc_core.stage.skipped_operations import OPERATION, NameFilter, SkipRules
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.shared import refuse_mixed
from cdc_core.steps.windows.new_rows import awaits_rows
from cdc_core.steps.windows.redo_inputs import files_of, late_commits_above, redo_inputs
from cdc_core.steps.windows.table_ranges import stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPart:
    """A table's ``part`` of a captured window; ``state`` is where the table stands before it,
    ``fence`` is called right before each commit."""

    ctx: Context
    record: WindowRecord
    manifest: WindowManifest
    state: TableRecord
    part: ScnWindow
    fence: Callable[[], None]

    @property
    def table(self) -> TableId:
        """Whose part this is."""
        return self.state.table

    @property
    def lake(self) -> TableLake:
        """The table's Delta tables."""
        return self.ctx.table_lake(self.state, self.fence)

    def take(self) -> tuple[TableApplied, Scn]:
        """Bring the part into the lake: up to its end, or to right before a DDL whose rows are
        still to be read."""
        self._take_definitions()
        pieces = stretches(self.part, self.manifest, self.table)
        if str(self.table) not in self.manifest.tables_committed:
            pieces = [one for one in pieces if isinstance(one, SchemaChange)]
        if not pieces:
            return TableApplied(table=self.table), self.part.scn_high
        ctx, position = self.ctx, self.state.mirror_scn
        covered = ctx.store.chunks.covered_scn(self.table)
        late_above = late_commits_above(self.manifest, self.state, covered)
        if late_above is not None and any(isinstance(one, SchemaChange) for one in pieces):
            raise RowsGoneError(
                "late commits of earlier windows are in the window of a TRUNCATE",
                hint=f"`redolake table resnapshot {self.table.argument}` adds the table back with a "
                "new snapshot.",
                table=self.table,
                window=self.manifest.window.key,
            )
        landed = redo_inputs(ctx, self.record, self.manifest, self.state, late_above)
        done: list[TableApplied] = []
        for piece in pieces:
            if isinstance(piece, SchemaChange):
                if awaits_rows(ctx, self.manifest, piece):
                    return summed(self.table, done), Scn(piece.scn - 1)
                done.append(self._truncate(piece, landed.transactions_paths))
                position = Scn(piece.scn)
                continue
            done.append(self._apply(replace(landed, window=piece), position, covered))
            position = piece.scn_high
            # The next piece may stop the table.
            if len(pieces) > 1 and done[-1].in_quarantine is not None:
                ctx.store.tables.note_quarantine(self.table, done[-1].in_quarantine)
        return (done[0] if len(done) == 1 else summed(self.table, done)), self.part.scn_high

    def _take_definitions(self) -> None:
        for change in self.manifest.schema_changes:
            is_new = change.schema.table == self.table and not change.empties
            if is_new and change.scn <= self.part.scn_high:
                refuse_mixed(self.ctx, self.state)
                self.lake.prepare_schema(self.ctx.visible(change.schema))

    def _truncate(self, change: SchemaChange, transactions: Sequence[str]) -> TableApplied:
        truncation = truncation_of(
            change,
            self.manifest,
            files_of(self.ctx, self.manifest, self.table),
            self.ctx.config.events_of(self.table).skipped_operations,
        )
        return self.lake.truncate(truncation, transactions, read_scn=self.state.consistent_scn or 0)

    def _apply(self, landed: LandedInput, position: Scn | None, covered: int) -> TableApplied:
        ctx, inexact = self.ctx, self.record.inexact
        own = replace(self.manifest, window=landed.window)
        part = TablePart(
            manifest=own,
            schema=ctx.visible(definition_of(ctx, own, self.table)),
            landed=landed,
            earlier=versions_until(ctx, self.table, self.part.scn_high),
            is_inexact=inexact is not None and str(self.table) in inexact.tables,
        )
        stands = MirrorState(
            position=position,
            covered_scn=covered,
            read_scn=self.state.consistent_scn,
            in_quarantine=self.state.in_quarantine,
        )
        return self.lake.apply_window(part, stands, _rules(ctx, self.table))


def summed(table: TableId, done: Sequence[TableApplied]) -> TableApplied:
    """What several pieces of a window brought, as one."""
    return TableApplied(
        table=table,
        skipped=all(one.skipped for one in done),
        rows_inserted=sum(one.rows_inserted for one in done),
        rows_updated=sum(one.rows_updated for one in done),
        rows_deleted=sum(one.rows_deleted for one in done),
        changes=sum(one.changes for one in done),
        operations=sum((Counter(one.operations) for one in done), Counter()),
        events_skipped=sum((Counter(one.events_skipped) for one in done), Counter()),
        stage_seconds=sum(one.stage_seconds for one in done),
        merge_seconds=sum(one.merge_seconds for one in done),
        quarantined=sum(one.quarantined for one in done),
        unfit_values=sum(one.unfit_values for one in done),
        write=next((one.write for one in reversed(done) if one.write is not None), None),
        in_quarantine=next(
            (one.in_quarantine for one in reversed(done) if one.in_quarantine is not None), None
        ),
    )


def _rules(ctx: Context, table: TableId) -> ApplyRules:
    return ApplyRules(
        quarantine_max=_quarantine_max(ctx, table),
        keeps_text=not is_skipping(ctx.config, table),
        skipping=_skipping(ctx, table),
        replacing=ctx.config.replacing(table),
        vectors=ctx.config.deletion_vectors(table),
    )


def _skipping(ctx: Context, table: TableId) -> SkipRules:
    events = ctx.config.events_of(table)
    return SkipRules(
        frozenset(events.skipped_operations),
        events.skip_unchanged,
        NameFilter(frozenset(events.users_include), frozenset(events.users_exclude)),
        NameFilter(frozenset(events.clients_include), frozenset(events.clients_exclude)),
    )


def is_skipping(config: SourceConfig, table: TableId) -> bool:
    """Are rows of the table that cannot be decoded counted alone, without their text?"""
    return table in config.entries and config.policy(table, "undecodable") == "skip"


def _quarantine_max(ctx: Context, table: TableId) -> int | None:
    """How many rows the table's quarantine may hold; None where its policy is another."""
    if table not in ctx.config.entries:
        return None
    policy = ctx.config.policy(table, "undecodable")
    if policy == "skip":
        return sys.maxsize
    return ctx.config.policies.quarantine_rows_max if policy == "quarantine" else None


def definition_of(ctx: Context, manifest: WindowManifest, table: TableId) -> TableSchema:
    """The version with which the part ends: as the schema history has it now, which may be better
    than when the window landed."""
    landed = next(schema for schema in manifest.schemas if schema.table == table)
    known = ctx.store.schemas.at(table, manifest.window.scn_high)
    return landed if known is None or known.scn_from < landed.scn_from else known


def versions_until(ctx: Context, table: TableId, scn: Scn) -> tuple[TableSchema, ...]:
    """The versions that a table had up to an SCN."""
    known = ctx.store.schemas.versions(table)
    return tuple(ctx.visible(one.schema) for one in known if one.schema.scn_from <= scn)


def truncation_of(
    change: SchemaChange,
    manifest: WindowManifest,
    paths: Sequence[str],
    skipped_operations: Collection[str],
) -> Truncation:
    """A TRUNCATE of a window's manifest with the facts of its redo row; ``paths`` are the window's
    redo files of the table, ``skipped_operations`` those that the configuration does not want among
    its events."""
    columns = ["xid", "scn", "timestamp", "rs_id", "thread"]
    wanted = [("ordinal", "=", change.ordinal)]
    rows: list[dict[str, Any]] = []
    for path in paths:
        with reading_file(path):
            rows += pq.read_table(path, columns=columns, filters=wanted).to_pylist()
    found = rows[0] if rows else {}
    return Truncation(
        scn=change.scn,
        ordinal=change.ordinal,
        partitions=change.partitions,
        skipped=OPERATION if "d" in skipped_operations else None,
        row_scn=found.get("scn"),
        xid=found.get("xid"),
        timestamp=found.get("timestamp"),
        rs_id=found.get("rs_id"),
        thread=found.get("thread"),
        landed=moment_of(manifest.landed),
    )
