"""How is a lost metadata store made anew from landing and the logs of the Delta tables?

Everything is put into a scratch store first, by the same methods that wrote the lost one: the
tables as they were kept, then window after window as when it was captured. The positions come from
the Delta logs. Only then is the image put in its place, in one transaction; so a rebuild that fails
changes nothing.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from cdc_core.errors import ConfigError, LandingDamagedError, LeaseHeldError
from cdc_core.lake.applied_in_delta import AppliedInDelta
from cdc_core.landing.kept import (
    KeptPlan,
    KeptTable,
    kept_applied,
    kept_plan_names,
    kept_plans,
    kept_retired,
    kept_source,
    kept_tables,
)
from cdc_core.landing.layout import chunk_folder, windows_folder
from cdc_core.landing.ledger import ledger_from_landing
from cdc_core.landing.manifest import (
    MANIFEST_NAME,
    digest_of,
    read_chunk_manifest,
)
from cdc_core.leases import is_abandoned
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, SourceRecord, TableRecord, WindowRecord
from cdc_core.model.reports import StateRebuilt
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.state.images import Image
from cdc_core.state.schemas import SchemaVersion
from cdc_core.state.store import Store
from cdc_core.steps.context import Context
from cdc_core.steps.state.positions import position_of
from cdc_core.steps.windows.chain import LandedWindow, proved
from cdc_core.steps.windows.side_tables import lacks_side_tables
from cdc_core.steps.windows.table_ranges import part_of

WORK = ("snapshot-plan", "window-plan", "capture")
"""What nobody else may do while the store is written."""


def rebuild_state(ctx: Context, *, replace: bool = False, dry_run: bool = False) -> StateRebuilt:
    """Make the metadata store of a source anew from landing and the Delta logs, without Oracle and
    without Spark.

    Args:
        ctx: The source.
        replace: Also where the store holds something of the source.
        dry_run: Only say what would be written.

    Raises:
        ConfigError: The store holds something of the source, and nobody asked to replace it.
        LandingDamagedError: Landing holds nothing of the source, or lacks windows.
        LeaseHeldError: Somebody works on the source.
    """
    source = _source(ctx)
    with (
        tempfile.TemporaryDirectory(prefix="redolake-state-") as folder,
        Store.open(f"sqlite:///{Path(folder) / 'state.db'}", ctx.source) as scratch,
    ):
        remarks = _Rebuilding(ctx, scratch, source).fill()
        image = scratch.images.get()
        tables = tuple(scratch.tables.all())
    known = ctx.store.images.get()
    is_there = any(known.values())
    if not dry_run:
        _refuse_known(ctx, is_there=is_there and not replace)
        _put(ctx, image)
    return StateRebuilt(
        rows={name: len(rows) for name, rows in image.items()},
        rows_before={name: len(rows) for name, rows in known.items()} if is_there else None,
        tables=tables,
        remarks=tuple(remarks),
        is_written=not dry_run,
    )


def _source(ctx: Context) -> SourceRecord:
    source = kept_source(ctx.landing, ctx.source)
    if source is None:
        raise LandingDamagedError(
            "landing has no records of this source from which to build a metadata store",
            hint="Check `landing` and the source's name in the configuration. If landing is lost as well, see docs/how-to/restore.md.",
            source=ctx.source,
        )
    return source


def _refuse_known(ctx: Context, *, is_there: bool) -> None:
    if is_there:
        raise ConfigError(
            "the metadata store already has records of this source",
            hint="`redolake state rebuild --dry-run` shows both; `redolake state rebuild --replace` puts what landing and lake say in "
            "its place.",
            source=ctx.source,
        )


def _put(ctx: Context, image: Image) -> None:
    with ExitStack() as leases:
        for work in WORK:
            leases.enter_context(ctx.lease(work))
        mine = {f"{ctx.source}/{work}" for work in WORK}
        for lease in ctx.store.leases.all():
            others = lease.name.startswith(f"{ctx.source}/") and lease.name not in mine
            if others and not is_abandoned(ctx.store, lease):
                raise LeaseHeldError(
                    "another process is working on this source",
                    hint="Stop the loop or the sensors of the source first.",
                    lease=lease.name,
                    holder=lease.holder,
                )
        ctx.store.images.put(image)


class _Rebuilding:
    """One attempt: what landing and lake say, and the scratch store that it is put into."""

    def __init__(self, ctx: Context, scratch: Store, source: SourceRecord) -> None:
        self._ctx, self._scratch, self._source = ctx, scratch, source
        self._kept = kept_tables(ctx.landing, ctx.source)
        self._retired = kept_retired(ctx.landing, source)
        self._windows = proved(ctx.source, _landed_windows(ctx), self._retired)
        self._taken = {one.record.table: ctx.table_lake(one.record).applied() for one in self._kept}

    def fill(self) -> list[str]:
        """Fill the scratch store; return what is to be said."""
        self._scratch.source.save(self._source)
        for one in self._kept:
            self._scratch.tables.restore(one.record)
            _put_versions(self._scratch, one)
        for landed in self._windows:
            self._put_window(landed)
        for one in self._kept:
            _put_versions(self._scratch, one)  # of one SCN, the one that was kept is the later one
        chunks = self._chunks()
        self._scratch.chunks.restore([chunk for part in chunks.values() for chunk in part])
        remarks = []
        for one in self._kept:
            remarks += self._put_table(one, chunks)
        self._put_applied()
        return remarks

    def _put_window(self, landed: LandedWindow) -> None:
        manifest = landed.manifest
        self._scratch.history.restore_window(_window_record(landed, self._source))
        ledger = ledger_from_landing(self._ctx.landing, manifest)
        self._scratch.windows.record_captured(manifest, landed.sha256, ledger)

    def _chunks(self) -> dict[tuple[TableId, str], list[ChunkRecord]]:
        applied = kept_applied(self._ctx.landing, self._ctx.source)
        records = {one.record.table: one.record for one in self._kept}
        names = kept_plan_names(self._ctx.landing, self._ctx.source)
        found = {}
        for plan in kept_plans(self._ctx.landing, self._ctx.source, names):
            if plan.table in records:
                found[plan.table, plan.snapshot_id] = self._chunks_of(
                    plan, records[plan.table], (plan.table.path, plan.snapshot_id) in applied
                )
        return found

    def _chunks_of(
        self, plan: KeptPlan, record: TableRecord, is_applied: bool
    ) -> list[ChunkRecord]:
        """The chunks of a snapshot; those of an earlier stream that were never applied are
        forgotten, as they were then."""
        taken = self._taken[plan.table].chunks
        chunks = [self._chunk(chunk, taken) for chunk in plan.chunks]
        if plan.stream != record.snapshot_id:
            return [chunk for chunk in chunks if chunk.state == "applied"]
        if not is_applied and all(chunk.state == "applied" for chunk in chunks):
            # Whether what no chunk has was deleted after the last one, Delta does not always say:
            # the last is applied again.
            chunks[-1] = dataclasses.replace(chunks[-1], state="landed")
        return chunks

    def _chunk(
        self, planned: ChunkRecord, taken: Mapping[tuple[str, int], int | None]
    ) -> ChunkRecord:
        place = (planned.snapshot_id, planned.number)
        folder = chunk_folder(self._ctx.source, planned.chunk_key)
        chunk = planned
        if self._ctx.landing.exists(folder, MANIFEST_NAME):
            content = self._ctx.landing.read(folder, MANIFEST_NAME)
            manifest = read_chunk_manifest(content, where=folder)
            chunk = dataclasses.replace(
                planned, state="landed", scn=manifest.scn, scn_high=manifest.scn_high, rows=manifest.rows,
                seconds=manifest.seconds, manifest_sha256=digest_of(content),
            )  # fmt: skip
        if place in taken:
            chunk = dataclasses.replace(chunk, state="applied", scn=Scn(taken[place] or chunk.scn))
        return chunk

    def _put_table(
        self, kept: KeptTable, chunks: Mapping[tuple[TableId, str], list[ChunkRecord]]
    ) -> list[str]:
        """Write a table with its position, or as failed where landing lacks what it needs; return
        what is to be said."""
        [record] = [one for one in self._scratch.tables.all() if one.table == kept.record.table]
        taken = self._taken[record.table]
        has_changed = record != kept.record or len(kept.versions) < len(
            self._scratch.schemas.versions(record.table)
        )
        record = dataclasses.replace(record, revision=kept.record.revision + has_changed)
        if record.snapshot_id is not None:
            own = chunks.get((record.table, record.snapshot_id), [])
            record = self._with_snapshot(record, own, taken)
        record = dataclasses.replace(record, consistent_scn=_consistent_scn(record, chunks))
        lost = self._lost(record, taken)
        if lost is not None:
            record = _failed(record, lost)
        self._scratch.tables.restore(record)
        remarks = [f"{record.table}: {lost}"] if lost else []
        if taken.lacks_mirror:
            remarks.append(
                f"{record.table}: the mirror does not exist; `redolake table rebuild {record.table.argument}` writes it from the change log"
            )
        return remarks

    def _with_snapshot(
        self, record: TableRecord, own: Sequence[ChunkRecord], taken: AppliedInDelta
    ) -> TableRecord:
        """The record with the state and the position that its snapshot and the windows since gave
        it."""
        if not own or any(chunk.state != "applied" for chunk in own):
            state = "snapshotting" if record.state == "ready" else record.state
            return dataclasses.replace(record, state=state, mirror_scn=None)
        if record.state == "snapshotting":
            record = dataclasses.replace(record, state="ready", mirror_scn=record.snapshot_scn)
        if record.mirror_scn is None:
            return record
        manifests = [one.manifest for one in self._windows]
        return dataclasses.replace(
            record, mirror_scn=position_of(record, taken, manifests, self._retired)
        )

    def _lost(self, record: TableRecord, taken: AppliedInDelta) -> str | None:
        """What the table needs and neither landing nor lake has; None if nothing.

        Raises:
            LandingDamagedError: The lake is ahead of landing.
        """
        end = self._windows[-1].manifest.window.scn_high if self._windows else self._retired.scn
        if taken.window_scn is not None and taken.window_scn > end:
            raise LandingDamagedError(
                "the lake has applied windows that landing no longer has",
                hint="Restore the newest folders of landing from backup; docs/how-to/restore.md says what to do without one.",
                table=record.table,
                lake=taken.window_scn,
                landing=end,
            )
        if not record.is_captured:
            return None
        touched = self._retired.touched.get(str(record.table), 0)
        has = max(taken.window_scn or 0, record.snapshot_scn or 0)
        if record.mirror_scn is not None and touched > has:
            return f"its mirror lacks windows up to SCN {touched}, which were retired from landing"
        is_old = record.first_ordinal < self._retired.ordinal
        if is_old and record.needs_above < self._retired.scn:
            return f"it needs windows from SCN {record.needs_above} on, which were retired from landing"
        return None

    def _put_applied(self) -> None:
        """Note which windows every table has, and what each brought to the tables."""
        tables = self._scratch.tables.all()
        waits = False
        for landed in self._windows:
            manifest = landed.manifest
            waits = waits or any(part_of(table, manifest) is not None for table in tables)
            waits = waits or lacks_side_tables(self._ctx, manifest)
            if not waits:
                self._scratch.history.restore_applied(manifest.ordinal)
            for taken in self._taken.values():
                for scn, applied in taken.windows.items():
                    if manifest.window.scn_low < scn <= manifest.window.scn_high:
                        self._scratch.history.restore_counts(manifest.ordinal, applied)


def _landed_windows(ctx: Context) -> list[LandedWindow]:
    found = []
    for folder in ctx.landing.list_folders(windows_folder(ctx.source)):
        manifest, sha256 = ctx.window_manifest(ScnWindow.parse(folder.rpartition("/")[2]))
        found.append(LandedWindow(manifest, sha256))
    return found


def _window_record(landed: LandedWindow, source: SourceRecord) -> WindowRecord:
    manifest = landed.manifest
    window, planned = manifest.window, manifest.planned
    return WindowRecord(
        source=source.name,
        ordinal=manifest.ordinal,
        window=window,
        mining_low=Scn(min(window.scn_low, source.mining_low))
        if manifest.ordinal == 0
        else window.scn_low,
        created=datetime.fromisoformat(planned.created),
        key=planned.key,
        ended=None if planned.ended is None else datetime.fromisoformat(planned.ended),
    )


def _put_versions(scratch: Store, kept: KeptTable) -> None:
    for schema, ddl in kept.versions:
        scratch.schemas.save(SchemaVersion(kept.record.source, schema, ddl))


def _consistent_scn(
    record: TableRecord, chunks: Mapping[tuple[TableId, str], list[ChunkRecord]]
) -> Scn | None:
    """The highest SCN of which a chunk was read since the table joined."""
    if record.snapshot_scn is None:
        return record.consistent_scn
    landed = [
        chunk.scn_high or chunk.scn
        for (table, _), part in chunks.items()
        if table == record.table
        for chunk in part
        if chunk.state != "planned" and chunk.scn >= record.snapshot_scn
    ]
    return Scn(max([record.snapshot_scn, *landed]))


def _failed(record: TableRecord, lost: str) -> TableRecord:
    return dataclasses.replace(
        record,
        state="failed",
        reason=f"the metadata store was rebuilt, and {lost}",
        way_out=f"`redolake table resnapshot {record.table.argument}` reads its rows again.",
        stopped_scn=record.stopped_scn or record.mirror_scn or record.snapshot_scn,
        asked_by=None,
        revision=record.revision + 1,
    )
