"""What does ``redolake run --loop`` show? A live board on a terminal, and a line where something
happened everywhere else."""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cdc_core.errors import CdcError, OracleUnavailableError
from cdc_core.model.wording import counted
from pipelines.commands.inspect import duration, progress_text
from pipelines.commands.pdbs import print_stopped
from pipelines.commands.shared import STATE_COLOURS, print_error

if TYPE_CHECKING:
    from cdc_core.model.reports import SourceStatus, StepReport, TableApplied, TableStatus
    from cdc_core.steps import Pipeline

PROGRESS_SECONDS = 10.0
STATUS_SECONDS = 2.0
"""A board reads the metadata store no more often."""
WARNINGS_SHOWN = 5
WINDOWS_TIMED = 10


class View(Protocol):
    """Shows what a loop does. It is used as a context manager, by one thread.

    ``name`` is the pluggable database's, empty where the configuration lists none.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def follow(self, steps: Iterable[StepReport], name: str = "") -> Iterator[StepReport]:
        """The steps as they come, each shown when it is done."""

    def say(self, text: str, name: str = "") -> None:
        """A sentence about what a round did."""

    def failed(self, error: CdcError, name: str = "") -> None:
        """A round ended early; another one comes, or none."""

    def rests(self, seconds: float) -> None:
        """Sleep until the next round."""


class Lines:
    """Lines for a log; on a terminal also how far snapshots are."""

    def __init__(self, pipelines: Mapping[str, Pipeline], console: Console) -> None:
        self._pipelines = dict(pipelines)
        self._console = console
        self._told = time.monotonic()
        self._has_failed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is kept."""

    def follow(self, steps: Iterable[StepReport], name: str = "") -> Iterator[StepReport]:
        """The steps, and on a terminal from time to time how far the snapshots are."""
        for step in steps:
            yield step
            is_due = time.monotonic() - self._told >= PROGRESS_SECONDS
            if step.kind != "chunk-applied" or not is_due or not self._console.is_terminal:
                continue
            self._told = time.monotonic()
            if (found := self._pipelines[name].records.progress()) is not None:
                of = f"{name}: " if name else ""
                self._console.print(f"{of}snapshots: {progress_text(found)}")

    def say(self, text: str, name: str = "") -> None:
        """Print it."""
        self._console.print(f"{name}: {text}" if name else text)

    def failed(self, error: CdcError, name: str = "") -> None:
        """Print it on standard error."""
        print_stopped(name, error) if name else print_error(error)
        self._has_failed = True

    def rests(self, seconds: float) -> None:
        """Sleep; after a failure, say when that was and how long."""
        if self._has_failed:
            self._has_failed = False
            told = f"{datetime.now():%H:%M:%S} next attempt in {duration(seconds)}"
            print(told, file=sys.stderr, flush=True)
        time.sleep(seconds)


@dataclass(slots=True)
class _Done:
    """What was applied to one table since the board began."""

    changes: int = 0
    last: TableApplied | None = None


@dataclass(slots=True)
class _Seen:
    """What the board shows, replaced as a whole value by value: Rich reads it in a thread."""

    status: SourceStatus
    window_seconds: float | None = None
    windows: int = 0
    changes: int = 0
    last: StepReport | None = None
    last_seconds: float = 0.0
    last_at: float = 0.0
    captured: dict[str, float] = field(default_factory=dict)
    doing: str = "looking for redo"
    until: float | None = None
    tables: dict[str, _Done] = field(default_factory=dict)


class Board:
    """A live board of one source, or of those of several pluggable databases one below the other:
    the tables with position, lag, changes and rate, the last window, when the next one can be
    expected, and the newest warnings. What the log would say below WARNING is left out."""

    def __init__(self, pipelines: Mapping[str, Pipeline], console: Console) -> None:
        self._panels = {name: _Panel(pipeline) for name, pipeline in pipelines.items()}
        self._warnings = _Warnings()
        self._live = Live(get_renderable=self._shown, console=console, refresh_per_second=2)
        self._handler = _Kept(self._warnings)
        self._handlers: list[logging.Handler] = []

    def __enter__(self) -> Self:
        logger = logging.getLogger("cdc_core")
        self._handlers, logger.handlers = logger.handlers, [self._handler]
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        for panel in self._panels.values():
            panel.says("")
        self._live.stop()
        logging.getLogger("cdc_core").handlers = self._handlers

    def follow(self, steps: Iterable[StepReport], name: str = "") -> Iterator[StepReport]:
        """The steps, each put on the board when it is done. After the last one, earlier failures
        are over."""
        yield from self._panels[name].follow(steps)
        self._warnings.are_over(name)

    def say(self, text: str, name: str = "") -> None:
        """The board has it already, but for what only a sentence says."""
        self._panels[name].says(text)

    def failed(self, error: CdcError, name: str = "") -> None:
        """Keep the error with the warnings."""
        self._warnings.add(f"{name}: {error}" if name else str(error), failed=name)
        self._panels[name].failed(error)

    def rests(self, seconds: float) -> None:
        """Sleep, and count down."""
        for panel in self._panels.values():
            panel.waits_until(time.monotonic() + seconds)
        time.sleep(seconds)

    def _shown(self) -> RenderableType:
        panels = (panel.shown() for panel in self._panels.values())
        return Group(*panels, *self._warnings.shown())


class _Panel:
    """What a board shows of one source."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._began = time.monotonic()
        self._read = 0.0
        self._seen = _Seen(status=pipeline.status())

    def follow(self, steps: Iterable[StepReport]) -> Iterator[StepReport]:
        """As a board does."""
        self._seen.until, self._seen.doing = None, "looking for redo"
        for step in steps:
            self._step(step)
            yield step
        self._look(is_due=True)

    def failed(self, error: CdcError) -> None:
        """A round ended early: show the lag as it grows, and that Oracle is silent if it is."""
        found = self._seen.status
        with suppress(CdcError):  # the metadata store may be what failed
            found = self._pipeline.status(ask_oracle=False)
        self._seen.status = replace(
            found,
            scn_oracle=None,
            oracle_error=error.message if isinstance(error, OracleUnavailableError) else None,
        )

    def says(self, text: str) -> None:
        """What is being done, empty when nothing is any more."""
        self._seen.doing = text

    def waits_until(self, moment: float) -> None:
        """When the next round begins, by the monotonic clock."""
        self._seen.until = moment

    def _step(self, step: StepReport) -> None:
        seen = self._seen
        if step.kind == "window-captured":
            seen.captured[step.key] = step.seconds
            seen.doing = f"applying window {step.key}"
        elif step.kind == "chunk-landed":
            seen.doing = f"applying chunk {step.key}"
        elif step.kind == "window-applied":
            seen.doing = "looking for redo"
            seconds = step.seconds + seen.captured.pop(step.key, 0.0)
            if changes := sum(one.changes for one in step.tables):
                seen.windows, seen.changes = seen.windows + 1, seen.changes + changes
                seen.last, seen.last_seconds, seen.last_at = step, seconds, time.monotonic()
            for one in step.tables:
                done = seen.tables.setdefault(str(one.table), _Done())
                done.changes += one.changes
                done.last = one if one.changes else done.last
        self._look()

    def _look(self, *, is_due: bool = False) -> None:
        if is_due or time.monotonic() - self._read >= STATUS_SECONDS:
            self._seen.status = self._pipeline.status(ask_oracle=is_due)
            self._seen.window_seconds = self._between_windows()
            self._read = time.monotonic()

    def _between_windows(self) -> float | None:
        """Seconds of the database between the ends of the newest windows."""
        windows = self._pipeline.records.windows(newest_first=True, limit=WINDOWS_TIMED)
        ends = [one.ended for one in windows if one.ended is not None]
        if len(ends) < 2:
            return None
        return (ends[0] - ends[-1]).total_seconds() / (len(ends) - 1)

    def shown(self) -> RenderableType:
        """The source's part of the board."""
        seen = self._seen
        lines = [self._head(), self._table(), self._last_window(), self._next_window()]
        if seen.status.progress is not None:
            lines.insert(1, Text(f"Snapshots: {progress_text(seen.status.progress)}"))
        for one in seen.status.tables:
            if one.reason:
                lines.append(Text(f"{one.table} {one.state}: {one.reason}", style="red"))
        return Group(*lines)

    def _head(self) -> RenderableType:
        seen, status = self._seen, self._seen.status
        spent = duration(time.monotonic() - self._began)
        where = "the last round failed"
        if status.oracle_error:
            where = "Oracle does not answer"
        elif status.scn_oracle is not None:
            where = f"Oracle is at SCN {status.scn_oracle}"
        done = f"{counted(seen.changes, 'change')} in {counted(seen.windows, 'window')}"
        return Text.from_markup(
            f"[bold]{escape(status.source)}[/]  {where}; {done} applied in {spent}"
        )

    def _table(self) -> RenderableType:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("table", overflow="fold")
        for name in ("state", "as of (UTC)", "lag"):
            table.add_column(name, no_wrap=True)
        for name in ("changes", "rows/s"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("last written", overflow="ellipsis", no_wrap=True)
        for one in self._seen.status.tables:
            done = self._seen.tables.get(one.table, _Done())
            colour = STATE_COLOURS.get(one.state, "default")
            last = done.last
            rate = last.changes / last.seconds if last is not None and last.seconds else None
            table.add_row(
                one.table,
                f"[{colour}]{one.state}[/]",
                (one.position_time or "–")[11:19] or "–",
                _lag(one),
                f"{done.changes:,}",
                "–" if rate is None else f"{rate:,.0f}",
                "–" if last is None or last.write is None else last.write.who,
            )
        return table

    def _last_window(self) -> RenderableType:
        last = self._seen.last
        if last is None:
            return Text("Last window:  none with changes yet")
        tables = [one for one in last.tables if one.changes]
        changes = sum(one.changes for one in tables)
        ago = duration(time.monotonic() - self._seen.last_at)
        return Text(
            f"Last window:  ({last.scn_low}, {last.scn_high}], {counted(changes, 'change')} in "
            f"{counted(len(tables), 'table')}, {self._seen.last_seconds:.1f} s, {ago} ago"
        )

    def _next_window(self) -> RenderableType:
        seen = self._seen
        if not seen.doing:
            return Text("Stopped.")
        if self._pipeline.config.capture.waits_for_log_switch:
            later = "at the next log switch"
            if seen.window_seconds:
                later += f" (the last came {duration(seen.window_seconds)} apart)"
        else:
            later = "as soon as there is redo"
        doing = seen.doing
        if seen.until is not None:
            doing = f"next look in {duration(seen.until - time.monotonic())}"
        return Text(f"Next window:  {later}; {doing}. Ctrl-C stops.")


def _lag(one: TableStatus) -> str:
    return "–" if one.lag_seconds is None else duration(one.lag_seconds)


class _Kept(logging.Handler):
    """Keeps warnings for the board."""

    def __init__(self, kept: _Warnings) -> None:
        super().__init__(logging.WARNING)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self._kept.add(next(iter(record.getMessage().splitlines()), ""))


@dataclass(slots=True)
class _Warning:
    """One that comes again is counted. ``failed`` names the source whose round it ended."""

    text: str
    failed: str | None
    first: datetime
    last: datetime
    times: int = 1
    over: datetime | None = None


class _Warnings:
    """The newest warnings and failures, each once. Threads that work may add some at any time."""

    def __init__(self) -> None:
        self._kept: deque[_Warning] = deque(maxlen=WARNINGS_SHOWN)

    def add(self, text: str, failed: str | None = None) -> None:
        """Keep one, or count it."""
        now = datetime.now(UTC)
        for one in list(self._kept):
            if one.text == text and one.over is None:
                one.last, one.times = now, one.times + 1
                return
        self._kept.append(_Warning(text, failed, now, now))

    def are_over(self, name: str) -> None:
        """A round of the source came to its end: what failed before does not any more."""
        for one in list(self._kept):
            if one.failed == name and one.over is None:
                one.over = datetime.now(UTC)

    def shown(self) -> Iterator[RenderableType]:
        """A line for each."""
        for one in list(self._kept):
            times = f", {one.times} times since {one.first:%H:%M:%S}" if one.times > 1 else ""
            over = "" if one.over is None else f"; over since {one.over:%H:%M:%S}"
            style = "yellow" if one.over is None else "dim"
            yield Text(f"! {one.last:%H:%M:%S}{times}{over}  {one.text}", style, overflow="fold")


def view_of(pipelines: Mapping[str, Pipeline], console: Console, *, loop: bool) -> View:
    """A board for a loop on a terminal, else lines; ``pipelines`` by the names of the pluggable
    databases, or one without a name."""
    is_board = (
        loop
        and console.is_terminal
        and not logging.getLogger("cdc_core").isEnabledFor(logging.DEBUG)
    )
    return Board(pipelines, console) if is_board else Lines(pipelines, console)
