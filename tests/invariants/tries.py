"""What must be refused, tried at each net by itself.

Behind the check of a step stands one of the metadata store, and behind that one of the lake, so that a step which forgets its own does
no harm. A life cannot meet the nets behind the first one; here each is asked as by a process that has passed those before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cdc_core.lake.table_part import MirrorState, TablePart
from cdc_core.landing.layout import REDO_SCHEMA, window_folder
from cdc_core.landing.manifest import MANIFEST_NAME, WindowManifest
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.stage.committed import LandedInput
from cdc_core.state.machine import this_process
from cdc_core.steps import Pipeline

ELSEWHERE = "elsewhere/1/1/1"
SECONDS = 60.0


class Tries:
    """Each method tries one thing, on the windows ``(low, high]`` where it is given one. What is refused raises."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._store = pipeline.store
        self._source = pipeline.config.name

    def plan(self, low: int, high: int) -> None:
        """A window is planned by somebody who knows better: it joins the last one."""
        self._store.windows.plan([_window(low, high)])

    def plan_with_a_gap(self) -> None:
        """Windows are planned that do not join the last one."""
        [last] = self._store.windows.find(newest_first=True, limit=1)
        end = last.window.scn_high
        self._store.windows.plan([ScnWindow(Scn(end + 5), Scn(end + 9))])

    def record_captured(self, low: int, high: int) -> None:
        """A window is recorded as captured, with what another one brought."""
        manifest, sha256 = self._landed()
        manifest = replace(manifest, window=_window(low, high))
        self._store.windows.record_captured(manifest, sha256, [])

    def record_applied(self, low: int, high: int) -> None:
        """A window is recorded as applied."""
        self._store.windows.record_applied(_window(low, high), 0.1)

    def advance(self, low: int, high: int) -> None:
        """A table that has not taken the windows below moves to a window's end."""
        table = self._at(lambda one: (one.mirror_scn or low) < low)
        self._store.windows.advance_tables(_window(low, high), {table.table: Scn(high)})

    def move_back(self) -> int:
        """A table moves to the end of a window before the one that it has; by how many SCNs it went back."""
        before, last = self._store.windows.find(states=("applied",))[-2:]
        table = self._at(lambda one: one.mirror_scn == last.window.scn_high)
        end = before.window.scn_high
        self._store.windows.advance_tables(before.window, {table.table: end})
        now = self._pipeline.table_record(table.table).mirror_scn
        return last.window.scn_high - int(now or 0)

    def merge_early(self, low: int, high: int) -> None:
        """The lake takes a window of a table that lacks the one before it."""
        table = self._at(lambda one: (one.mirror_scn or low) < low)
        self._merge(table, _window(low, high))

    def merge_overlapping(self) -> None:
        """The lake takes a window that begins below what its mirror has."""
        table = self._at(lambda one: self._merged(one) is not None)
        merged = self._merged(table) or 0
        self._merge(table, _window(merged - 1, merged + 1))

    def write_landed(self) -> None:
        """A folder that has landed is written to."""
        manifest, _ = self._landed()
        folder = window_folder(self._source, manifest.window)
        self._pipeline.landing.writer(folder, "again.parquet", REDO_SCHEMA).abort()

    def take_held_lease(self) -> None:
        """A lease is taken that a living process holds."""
        self._store.leases.acquire("proof/held", ELSEWHERE, SECONDS)
        self._store.leases.acquire("proof/held", self._me(), SECONDS)

    def renew_lost_lease(self) -> None:
        """A lease is renewed that another process has taken since."""
        lost = self._store.leases.acquire("proof/lost", ELSEWHERE, 0)
        self._store.leases.acquire("proof/lost", self._me(), SECONDS)
        self._store.leases.renew(lost)

    def renew_older_lease(self) -> None:
        """A lease is renewed that the same process has lost and taken again."""
        older = self._store.leases.acquire("proof/older", self._me(), 0)
        self._store.leases.acquire("proof/older", self._me(), SECONDS)
        self._store.leases.renew(older)

    def _me(self) -> str:
        return this_process(self._store.machine)

    def _at(self, wanted: Callable[[TableRecord], bool]) -> TableRecord:
        return next(
            one
            for one in self._store.tables.all()
            if one.state == "ready" and one.mirror_scn is not None and wanted(one)
        )

    def _landed(self) -> tuple[WindowManifest, str]:
        """A window that has landed."""
        records = self._store.windows.find(states=("captured", "applied"))
        return self._pipeline.window_manifest(
            next(one for one in records if self._is_there(one)).window
        )

    def _is_there(self, record: WindowRecord) -> bool:
        folder = window_folder(self._source, record.window)
        return self._pipeline.landing.exists(folder, MANIFEST_NAME)

    def _merged(self, table: TableRecord) -> int | None:
        """Up to where the table's mirror has windows, by its own log."""
        return self._pipeline.table_lake(table).position().mirror_scn

    def _merge(self, table: TableRecord, window: ScnWindow) -> Any:
        manifest, _ = self._landed()
        schema = self._store.schemas.at(table.table, window.scn_low)
        assert schema is not None
        with self._pipeline.writing(table.table) as lease:
            self._pipeline.table_lake(table, lease.check).apply_window(
                TablePart(
                    manifest=manifest,
                    schema=schema,
                    landed=LandedInput(
                        table=table.table, window=window, redo_paths=[], transactions_paths=[]
                    ),
                ),
                MirrorState(position=table.mirror_scn),
            )


def _window(low: int, high: int) -> ScnWindow:
    return ScnWindow(Scn(low), Scn(high))
