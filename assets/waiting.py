"""Which windows wait, and what run do they ask for? What the windows sensor and the windows
schedule do at each tick.

A tick reads what waits once. Others cut, take and forget windows meanwhile (a loop, a command,
another Dagster), so it makes partitions of exactly what it has read and asks for nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from logging import Logger
from types import MappingProxyType
from typing import Any

import dagster as dg

from assets.history import add_partitions, remove_partitions, report_history
from assets.runs import (
    LIVE_PRIORITY,
    PRIORITY_TAG,
    SOURCE_TAG,
    in_a_row,
    minutes_to_stay,
    range_request,
    release_dead_runs,
    unfinished_run,
)
from assets.shown import Shown, shown_now
from assets.streams import show_streams
from assets.translator import Translator
from cdc_core import fleet
from cdc_core.config import SourceConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import ScnWindow
from cdc_core.model.wording import counted
from cdc_core.steps import Pipeline
from cdc_core.steps.delta_logs import side_table_names
from cdc_core.steps.overtaken import overtaken_where_forgotten

SHOWN = "shown"
CHANGED_TAG = "cdc/changed-tables-only"
"""On a run that takes windows which nobody had captured when it was asked for: of the tables, those
that its windows change are materialized."""

Kept = Mapping[str, Any]
Capture = Callable[[ScnWindow], StepReport]
NOTHING: Kept = MappingProxyType({})


@dataclass(frozen=True)
class Asked:
    """What a tick asks for: runs, or nothing for a ``reason``; ``is_idle`` where no window waits.
    ``kept`` is what the next tick should know."""

    requests: list[dg.RunRequest] = field(default_factory=list)
    reason: str = ""
    is_idle: bool = False
    kept: Kept = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True)
class Tick:
    """One look at a source.

    Args:
        kept: What an earlier tick gave to be kept.
        shown: What checks were seen to say by earlier looks of this process.
    """

    instance: dg.DagsterInstance
    log: Logger
    kept: Kept
    config: SourceConfig
    names: Translator
    pipeline: Pipeline
    shown: dict[dg.AssetCheckKey, str] = field(default_factory=dict)

    @property
    def tables(self) -> list[TableId]:
        """The tables that are assets."""
        return [one.table for one in self.config.tables]

    def release(self) -> None:
        """Report runs of dead processes as failed."""
        keys = window_keys(self.config, self.names) | set(snapshot_keys(self.config, self.names))
        for run_id in release_dead_runs(self.instance, self.pipeline, self.config, keys):
            self.log.warning(f"run {run_id} was reported as failed: its process is dead")

    def busy(self) -> str:
        """Why no run is asked for now; empty if none over windows is going or waiting. A replay of
        old ones is in nobody's way."""
        run = unfinished_run(
            self.instance,
            window_keys(self.config, self.names),
            {SOURCE_TAG: self.names.source},
            taken_up_to=self.pipeline.records.taken_up_to,
        )
        return "" if run is None else f"run {run.run_id[:8]} is {run.status.value.lower()}"

    def ask(self, others: Sequence[Pipeline], *, limit: int | None, is_whole: bool) -> Asked:
        """Cut windows up to the present, pass those without anything for captured tables, and ask
        for a run over those that wait.

        Args:
            others: The sources beside it, cut and read together with it.
            limit: So many windows at most; None for all that wait.
            is_whole: Everything is asked for now, in as many runs as it takes: the next tick may be
                far.

        Raises:
            TransientError: What may go away by itself.
        """
        records, names = self.pipeline.records, self.names
        is_waiting = self.look(others, limit=limit)
        remove_partitions(self.instance, records, names)
        if not is_waiting:
            return Asked(is_idle=True)
        waiting = next_windows(self.pipeline, limit)
        kept = self.show(waiting)
        if not waiting:
            return Asked(reason="another process has taken what waited", kept=kept)
        if not names.options.windows.request_runs:
            why = f"waiting: {counted(len(waiting), 'window')}; dagster.windows.request_runs is off"
            return Asked(reason=why, kept=kept)
        pending, selection, tags = self._assets_of(waiting, is_whole=is_whole)
        if selection == []:
            with overtaken_where_forgotten(records.window, [one.window for one in pending]):
                for record in pending:
                    self.pipeline.apply_window(record.window)
            why = "the pending windows change no active table"
            return Asked(reason=why, kept=kept)
        stretches = in_a_row(self.instance, names.windows, [one.key for one in pending])
        requests = [
            range_request(
                self.instance,
                key=names.source,
                first=stretch[0],
                last=stretch[-1],
                tags={SOURCE_TAG: names.source},
                run_tags={
                    PRIORITY_TAG: LIVE_PRIORITY,
                    **tags,
                    **({} if is_whole else minutes_to_stay(names.options.windows)),
                    **names.options.run_tags,
                },
                selection=selection,
            )
            for stretch in (stretches if is_whole else stretches[:1])
        ]
        return Asked(requests, kept=kept)

    def look(
        self, others: Sequence[Pipeline], *, limit: int | None, capture: Capture | None = None
    ) -> bool:
        """Cut windows up to the present, and pass those without anything for captured tables, as
        :meth:`ask` does; does one wait?

        Args:
            others: As of :meth:`ask`.
            limit: As of :meth:`ask`.
            capture: Captures one window, by default together with the sources beside it.

        Raises:
            TransientError: What may go away by itself.
        """
        pipeline = self.pipeline
        try:
            pending_max = sys.maxsize if limit is None else limit
            fleet.cut_windows(pipeline, others, pending_max=pending_max)
            capture = capture or partial(fleet.capture_window, pipeline, others)
            is_waiting = pipeline.pass_idle_windows(capture) is not None
            pipeline.retire_windows()
        finally:
            show_streams(self.instance, pipeline.records, self.names, self.tables, self.shown)
        return is_waiting

    def show(self, waiting: Sequence[WindowRecord] = ()) -> Kept:
        """Show what the metadata store has and Dagster has not, the windows that wait among it;
        what to keep of it."""
        records = self.pipeline.records
        before, now = Shown.of(self.kept.get(SHOWN)), shown_now(records)
        tables = before.tables_with_news(now, self.tables)
        added = add_partitions(
            self.instance, records, self.config, self.names, tables, waiting=waiting
        )
        if added or now != before:
            report_history(
                self.instance, records, self.config, self.names, above=before.above, tables=tables
            )
        return {SHOWN: now.as_json}

    def not_loaded(self) -> str:
        """What to do about tables that patterns name now and that were no assets when definitions
        loaded; empty if there are none."""
        found, loaded = self.pipeline.records.found_tables(), set(self.tables)
        new = [str(one.table) for one in found if not one.left_out and one.table not in loaded]
        if not new:
            return ""
        return f"reload the code location to see tables that patterns name now: {', '.join(new)}"

    def _assets_of(
        self, waiting: Sequence[WindowRecord], *, is_whole: bool
    ) -> tuple[Sequence[WindowRecord], list[dg.AssetKey] | None, dict[str, str]]:
        """The windows of the next run, its assets and its tags: all assets (None), or those of the
        tables that the windows change, which may be none.

        Only a captured window tells what it changes. Where the first is not captured, a run
        captures them all, and the next tick asks for what they change; a tick that asks for
        everything takes all assets, and the run tells.
        """
        if self.names.options.takes_all(len(self.config.tables)):
            return waiting, None, {}
        captured = list(takewhile(lambda one: one.state != "planned", waiting))
        if is_whole and len(captured) < len(waiting):
            return waiting, None, {CHANGED_TAG: "true"}
        if not captured:
            return waiting, [self.names.redo_key], {}
        changed = self.pipeline.changed_tables([one.window for one in captured])
        if not changed:
            return captured, [], {}
        layers = [
            self.names.key(layer, table) for table in changed for layer in ("changelog", "mirror")
        ]
        beside = [self.names.side_table_key(name) for name in side_table_names(self.config)]
        views = [self.names.views_key] if self.config.lake.current_views.is_any else []
        return captured, sorted([*layers, *beside, *views]), {}


def window_keys(config: SourceConfig, names: Translator) -> set[dg.AssetKey]:
    """The assets on windows."""
    tables = [table.table for table in config.tables]
    return (
        {names.redo_key}
        | {names.key(layer, table) for layer in ("changelog", "mirror") for table in tables}
        | {names.side_table_key(name) for name in side_table_names(config)}
        | ({names.views_key} if config.lake.current_views.is_any else set())
    )


def snapshot_keys(config: SourceConfig, names: Translator) -> dict[dg.AssetKey, TableId]:
    """The assets on chunks."""
    return {names.key("snapshot", table.table): table.table for table in config.tables}


def next_windows(pipeline: Pipeline, limit: int | None) -> list[WindowRecord]:
    """The windows that wait, as they are now: partitions in a row, so none behind an idle window
    that some table has yet to take, or behind one that another process has forgotten since."""
    found = (pipeline.records.window(window) for window in pipeline.pending_windows()[:limit])
    return [one for one in takewhile(lambda one: one is not None and not one.is_idle, found) if one]
