"""What do the assets need of a source?

:class:`SourcePipeline` is the part of :class:`cdc_core.steps.Pipeline` that assets, sensors and jobs use: every step may be
repeated by any process at any time, and order and exactly-once are kept behind it. A test can stand in for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from cdc_core.config import SourceConfig
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.model.reports import (
    Holder,
    Maintenance,
    Reconciliation,
    SourceStatus,
    StepReport,
)
from cdc_core.model.scn import ScnWindow
from cdc_core.model.signals import Signal
from cdc_core.steps.records import Records
from cdc_core.steps.spark import SparkSource


class SourcePipeline(Protocol):
    """A source, step by step. Nothing is opened before a step needs it."""

    @property
    def records(self) -> Records:
        """What was done so far."""

    @property
    def config(self) -> SourceConfig:
        """The configuration, with the tables that were found in the place of patterns."""

    def holders(self, work: str) -> list[Holder]:
        """Who holds ``<source>/<work>`` and what is below it, and who of them is dead."""

    def release(self, holder: Holder) -> None:
        """Give back what a dead holder held."""

    def lease(self, work: str, *, wait_seconds: float = 0) -> AbstractContextManager[Any]:
        """Hold ``<source>/<work>`` for the block; LeaseHeldError if a living process has it."""

    def start_snapshot(
        self,
        tables: list[TableId] | None = None,
        *,
        condition: str | None = None,
        signal_id: str | None = None,
    ) -> list[ChunkKey]:
        """Plan the first snapshot of tables without one, or an ad hoc one of ``tables``."""

    def pending_chunks(self, tables: list[TableId] | None = None) -> list[ChunkKey]:
        """Chunks that are not applied yet, in order; empty when there is nothing to do."""

    def snapshot_chunk(self, key: ChunkKey) -> StepReport:
        """Oracle → landing."""

    def apply_chunk(self, key: ChunkKey) -> StepReport:
        """Landing → change log and mirror."""

    def plan_windows(self, *, until: int | None = None) -> list[ScnWindow]:
        """Cut windows up to the present; the new ones, none if Oracle has not moved."""

    def pass_idle_windows(
        self, capture: Callable[[ScnWindow], StepReport] | None = None
    ) -> WindowRecord | None:
        """Move positions over windows without anything for captured tables; the first window that waits, None if none. ``capture``
        captures those that are not captured yet."""

    def retire_windows(self) -> list[WindowRecord]:
        """Forget windows that need not be kept."""

    def pending_windows(self) -> list[ScnWindow]:
        """Windows that are not applied yet, in order."""

    def capture_window(self, window: ScnWindow) -> StepReport:
        """Redo → landing."""

    def reading_early(self, windows: Sequence[ScnWindow]) -> AbstractContextManager[None]:
        """For a block in which these windows are captured in order: their redo is read in several sessions."""

    def reading_shared(
        self, window: ScnWindow, beside: Sequence[Any]
    ) -> AbstractContextManager[Sequence[bool]]:
        """For a block in which this window is captured for this source and for those beside it: its redo, read once for those of them
        for which that can be done."""

    def apply_window(self, window: ScnWindow, tables: list[TableId] | None = None) -> StepReport:
        """Landing → change logs and mirrors; a table that has the window already is left alone, and one for which it has nothing moves on."""

    def changed_tables(self, windows: Sequence[ScnWindow]) -> set[TableId]:
        """The tables that want a part of one of these captured windows in which something of theirs has changed."""

    def replay_window(self, window: ScnWindow, tables: list[TableId] | None = None) -> StepReport:
        """An old window once more: an undamaged mirror stays as it is."""

    def take_signals(self) -> list[tuple[Signal, list[ChunkKey]]]:
        """Take every waiting signal, exactly once, and plan its chunks."""

    def take_policies(self) -> list[ChunkKey]:
        """Let stopped tables join again whose policies say so, and plan the chunks of tables that have joined."""

    def reconcile(
        self, tables: list[TableId] | None = None, *, scn: int | None = None
    ) -> Reconciliation:
        """Compare mirrors with Oracle at one SCN."""

    def maintain(self, tables: list[TableId] | None = None) -> Iterable[Maintenance]:
        """Keep Delta tables quick; what became of each table."""

    def status(self, *, ask_oracle: bool = True) -> SourceStatus:
        """How the source stands."""


class Opener(Protocol):
    """Opens a source for a ``with`` block. Secrets are looked up here, not when definitions are loaded."""

    def __call__(
        self, *, spark: SparkSource | None = None
    ) -> AbstractContextManager[SourcePipeline]:
        """``spark`` gives the Spark session to work in; by default the source starts one."""
