"""The command that says why a source is behind."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from cdc_core.model.lag import LagFacts, LagVerdict, explain_lag
from cdc_core.model.wording import counted
from pipelines.commands.shared import (
    ConfigOption,
    JsonOption,
    listing,
    opened,
    out,
    print_json,
)

if TYPE_CHECKING:
    from cdc_core.model.lag import Stretch

WINDOWS_LOOKED_AT = 20
_SAID: dict[Stretch, str] = {
    "table": "one table stands still",
    "apply": "captured, not applied",
    "capture": "not captured",
    "open": "no window can close yet",
}


def lag(
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Also show where the last windows spent their time."),
    ] = False,
    windows: Annotated[
        int, typer.Option("--windows", min=1, help="How many of the newest windows to examine.")
    ] = WINDOWS_LOOKED_AT,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Explain why a source is behind: the lag in parts, its main cause, and the one thing to
    change.

    The parts add up to the lag of the table that is furthest behind: the table has stopped,
    captured windows wait to be applied, redo waits for capture, or no window can close yet. The
    command queries Oracle for where a window could end now, as capture does, and changes nothing.
    """
    with opened(config) as pipeline:
        facts = pipeline.lag(windows=windows)
    verdict = explain_lag(facts)
    if json:
        print_json(as_json(facts, verdict))
        return
    show_lag(facts, verdict, out())
    if explain:
        show_work(facts, out())


def as_json(facts: LagFacts, verdict: LagVerdict) -> dict[str, object]:
    """The facts, the whole lag and the verdict: these keys stay as they are."""
    not_closable = None if facts.not_closable is None else facts.not_closable[0]
    return {
        **asdict(facts),
        "not_closable": not_closable,
        "seconds": facts.seconds,
        "scns": facts.scns,
        "verdict": asdict(verdict),
    }


def show_lag(facts: LagFacts, verdict: LagVerdict, console: Console) -> None:
    """Print the lag in parts, its cause and what to change."""
    if facts.parts:
        console.print(
            f"[bold]{facts.source}[/] is {facts.scns:,} SCNs and {_seconds(facts.seconds)} behind"
            " Oracle"
        )
        numbers = ("from SCN", "to SCN", "SCNs", "seconds")
        table = listing("part", *numbers, right=numbers)
        for one in facts.parts:
            table.add_row(
                _SAID[one.what],
                str(one.scn_low),
                str(one.scn_high),
                f"{one.scns:,}",
                "–" if one.seconds is None else f"{one.seconds:,.0f}",
            )
        console.print(table)
    console.print(f"[bold]Cause:[/] {verdict.cause}: {escape(verdict.why)}")
    console.print(f"[bold]What to change:[/] {escape(verdict.change)}")


def show_work(facts: LagFacts, console: Console) -> None:
    """Print what the last windows took, which tables wait, and the oldest open transaction."""
    work = facts.work
    own = max(0.0, work.capture_seconds - work.start_seconds - work.fetch_seconds)
    console.print(
        f"{counted(work.windows, 'window')} looked at, {_seconds(work.redo_seconds)} of redo; "
        f"waiting: {facts.windows_to_capture} for capture, {facts.windows_to_apply} to be applied"
    )
    console.print(
        f"capture: {work.capture_seconds:.1f} s, of which {work.start_seconds:.1f} s to start "
        f"LogMiner over {counted(work.logs, 'log')}, {work.fetch_seconds:.1f} s for {counted(work.rows_mined, 'row')},"
        f" {own:.1f} s to write {counted(work.rows_landed, 'row')}"
    )
    console.print(f"apply: {work.apply_seconds:.1f} s")
    for one in work.tables:
        whole = one.stage_seconds + one.merge_seconds
        share = f", {one.merge_seconds / whole:.0%} of it merging" if whole else ""
        ways = f" ({', '.join(one.ways)})" if one.ways else ""
        console.print(
            f"  {one.table}: {one.seconds:.1f} s for {counted(one.changes, 'change')}{share}{ways}"
        )
    for table in facts.waiting:
        console.print(
            f"[yellow]{table.table}[/] is {table.state}: {escape(table.reason)}. "
            f"{escape(table.way_out)}"
        )
    if (oldest := facts.oldest_open) is not None:
        console.print(
            f"oldest open transaction: {oldest.xid} of {escape(oldest.username or '?')}, "
            f"{_seconds(oldest.open_seconds)}, {counted(oldest.rows, 'row')}; its rows come with "
            "its COMMIT"
        )
    working = ", ".join(facts.holders) or "no process"
    console.print(f"at work now: {escape(working)}")


def _seconds(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else f"{seconds:,.0f} s"
