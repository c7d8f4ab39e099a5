"""What do people see while the demo runs?

Progress bars on a terminal; one line per finished step everywhere; a table at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import MirrorWrite, StepReport
from cdc_core.model.wording import counted


@dataclass(frozen=True, slots=True)
class FinalRow:
    """One table at the end: rows on both sides at one SCN, rows that differ, changes in the change
    log."""

    table: str
    rows_oracle: int
    rows_delta: int
    differences: int
    changes: int


class Screen:
    """Shows progress bars and lines. Use it as a context manager; :meth:`step` may be called from
    any thread. ``captured`` is the word for one of what a window has captured."""

    def __init__(self, console: Console, *, captured: str = "redo row") -> None:
        self.console = console
        self._word = captured
        self.changes_seen = 0
        self.windows_seen = 0
        self.phases: dict[str, float] = {}
        self.writes: dict[TableId, list[MirrorWrite]] = {}
        self.chunks: Counter[TableId] = Counter()
        self._phase_began = time.monotonic()
        self._captured: dict[str, StepReport] = {}
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def phase_ends(self, name: str) -> None:
        """Note how long a phase took; phases follow each other, so their seconds add up."""
        now = time.monotonic()
        self.phases[name] = now - self._phase_began
        self._phase_began = now

    def say(self, text: str) -> None:
        """One line."""
        self._progress.console.print(text, highlight=False, soft_wrap=True)

    def hide(self, name: str) -> None:
        """Take a progress bar away."""
        if name in self._bars:
            self._progress.remove_task(self._bars.pop(name))

    def bar(self, name: str, done: float, total: float | None, note: str = "") -> None:
        """Show or move a progress bar; without a total it pulses as long as it is shown."""
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(name, total=total, note=note)
        self._progress.update(self._bars[name], completed=done, total=total, note=note)

    def step(self, report: StepReport) -> None:
        """Show a finished step: one line for a chunk when it is applied, one for a window when it
        is applied."""
        if report.kind in {"chunk-landed", "window-captured"}:
            self._captured[report.key + str(report.table or "")] = report
            if report.kind == "window-captured" and report.rows:
                self.bar("Merging", 0, None, f"{counted(report.rows, self._word)} into the tables")
        elif report.kind == "chunk-applied":
            landed = self._captured.pop(report.key + str(report.table or ""), None)
            total = self.chunks[report.table] if report.table else 0
            self.say(chunk_line(report, landed, total))
        elif report.kind == "window-applied":
            self.windows_seen += 1
            self.changes_seen += sum(table.changes for table in report.tables)
            for one in report.tables:
                if one.write is not None:
                    self.writes.setdefault(one.table, []).append(one.write)
            self.hide("Merging")
            self.say(window_line(report, self._captured.pop(report.key, None), self._word))


def chunk_line(applied: StepReport, landed: StepReport | None, total: int) -> str:
    """``chunk  FLIGHTS 3 of 3  10,000 rows  landed 0.3 s, applied 1.2 s``."""
    reading = f"landed {landed.seconds:.1f} s, " if landed else ""
    rows = landed.rows if landed else applied.rows
    name = applied.table.name if applied.table else ""
    place = f"{int(applied.key.rpartition(':')[2]) + 1} of {total}"
    return (
        f"[cyan]chunk [/] {name:<9} {place:<7} {rows:>7,} rows  "
        f"{reading}applied {applied.seconds:.1f} s"
    )


def window_line(applied: StepReport, captured: StepReport | None, word: str = "redo row") -> str:
    """``window (1200, 1300]  310 redo rows, 12 commits, 1 open  2.1 s`` and, on a separate line,
    ``→ FLIGHTS 210``."""
    facts = captured.facts if captured else {}
    parts = []
    if captured:
        parts.append(counted(captured.rows, word))
        parts.append(counted(facts.get("transactions_committed", 0), "commit"))
        for fact, word in (
            ("transactions_rolled_back", "rolled back"),
            ("transactions_open", "open"),
        ):
            if facts.get(fact):
                parts.append(f"{facts[fact]} {word}")
        if facts.get("schema_changes"):
            parts.append("[yellow]table altered[/]")
    applied_to = [
        f"{table.table.name} {table.changes:,}" for table in applied.tables if table.changes
    ]
    seconds = applied.seconds + (captured.seconds if captured else 0)
    return (
        f"[blue]window[/] ({applied.scn_low}, {applied.scn_high}]  {', '.join(parts)}  "
        f"[dim]{seconds:.1f} s[/]\n         → {', '.join(applied_to) or 'no changes'}"
    )


def flight_time(now: datetime | None) -> str:
    """The live system's clock."""
    return f"{now:%d %b %H:%M} UTC" if now else ""


def final_table(rows: Sequence[FinalRow], *, scn: int) -> Table:
    """The proof: every table compared at one SCN."""
    table = Table(
        title=f"Oracle AS OF SCN {scn} against Delta Lake",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("table", no_wrap=True)
    for name in ("rows in Oracle", "rows in Delta", "differences", "changes"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        colour = "red" if row.differences else "green"
        table.add_row(
            row.table,
            f"{row.rows_oracle:,}",
            f"{row.rows_delta:,}",
            f"[{colour}]{row.differences:,}[/]",
            f"{row.changes:,}",
        )
    return table
