"""The command that says what would be done next, and what breaks first."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from cdc_core.model.wording import counted
from pipelines.commands.inspect import duration
from pipelines.commands.shared import (
    ConfigOption,
    JsonOption,
    TablesOption,
    listing,
    opened,
    out,
    print_json,
    tables_of,
)

if TYPE_CHECKING:
    from cdc_core.model.alerts import LogHeadroom
    from cdc_core.model.estimates import SnapshotEstimate, TableEstimate
    from cdc_core.model.plans import WindowsPlan, WorkPlan
    from cdc_core.model.starts import RunPlan

_BYTES_PER_MB = 1024**2


def plan(table: TablesOption = None, config: ConfigOption = None, json: JsonOption = False) -> None:
    """Show what the next run would do, how long it would take, and what would break first. Changes
    nothing.

    The plan shows the effect of the configuration (tables that join or leave, columns, keys, the
    decision of snapshot.mode); the snapshot, with chunks, rows, MB and minutes of each table, at
    the rate of earlier chunks; the windows up to the present, with their redo, the minutes at the
    pace of the last windows, and the tables and files that they affect; and how much longer
    archived logs and undo stay than Redolake needs them.

    --table plans new snapshots of these tables. The command cuts tables as a snapshot would, so it
    may read and sort keys.
    """
    if logging.getLogger("cdc_core").level == logging.INFO:
        logging.getLogger("cdc_core").setLevel(logging.WARNING)  # its steps are not the source's
    with opened(config) as pipeline:
        found = pipeline.plan_work(tables_of(table))
    if json:
        print_json(as_json(found))
    else:
        show_plan(found, out())


def as_json(found: WorkPlan) -> dict[str, object]:
    """The plan, with the minutes that were added up and the risks: these keys stay as they are."""
    return {
        "decision": str(found.run.decision),
        "tables": [asdict(one) for one in found.run.tables],
        "snapshot": {**asdict(found.snapshot), "minutes": found.snapshot.minutes},
        "windows": {**asdict(found.windows), "minutes": found.windows.minutes},
        "headroom": None if found.headroom is None else asdict(found.headroom),
        "risks": list(found.risks),
    }


def show_plan(found: WorkPlan, console: Console) -> None:
    """Print the plan for people."""
    _show_run(found.run, console)
    if found.snapshot.tables:
        _show_snapshot(found.snapshot, console)
    for line in (*_windows_lines(found.windows, found.headroom), *_headroom_line(found.headroom)):
        console.print(line)
    first, *others = found.risks or ("nothing at this pace",)
    console.print(f"[bold]What breaks first:[/] {escape(first)}")
    for one in others:
        console.print(f"  then {escape(one)}")


def _show_run(found: RunPlan, console: Console) -> None:
    console.print(f"start: {found.decision}")
    if found.decision.hint:
        console.print(f"  {escape(found.decision.hint)}")
    for one in found.tables:
        console.print(f"{one.table} {escape(one.said)}")
    if not found.tables:
        console.print("tables: no change")


def _windows_lines(found: WindowsPlan, headroom: LogHeadroom | None) -> Iterator[str]:
    if not found.to_apply and not (headroom is not None and headroom.logs):
        yield "windows: none to carry"
        return
    redo = (
        ""
        if headroom is None
        else f"; {counted(headroom.logs, 'log')} with {headroom.bytes / _BYTES_PER_MB:,.1f} MB of redo to read"
    )
    yield (
        f"windows: {found.to_capture} to capture, {found.to_apply} to apply"
        f"{'' if found.redo_seconds is None else f', {duration(found.redo_seconds)} of redo'}{redo}"
    )
    if found.minutes is not None:
        yield (
            f"  about {found.minutes:,.1f} min at the pace of the last windows: "
            f"{found.capture_minutes:,.1f} to capture, {found.apply_minutes:,.1f} to apply"
        )
    for one in found.tables:
        size = (
            ""
            if one.files is None or one.bytes is None
            else f", mirror of {counted(one.files, 'file')} and {one.bytes / _BYTES_PER_MB:,.1f} MB"
        )
        yield f"  {one.table}: {counted(one.changes, 'change')} in the last windows{size}"


def _headroom_line(found: LogHeadroom | None) -> Iterator[str]:
    if found is None:
        return
    if found.hours is None:
        yield "archived logs: Oracle has deleted none so far"
    else:
        yield f"archived logs: they stay about {found.hours:,.1f} h longer than Redolake needs them"


def _show_snapshot(found: SnapshotEstimate, console: Console) -> None:
    """What a snapshot would read, table by table, and what the undo means for it."""
    numbers = ("chunks", "rows", "MB", "minutes", "ends after")
    table = listing("table", "cut by", *numbers, right=numbers)
    for one in found.tables:
        if one.trouble is None:
            table.add_row(*_cells(one))
    console.print(table)
    for one in found.tables:
        if one.trouble is not None:
            console.print(f"[red]{one.table}[/] cannot be read: {escape(one.trouble)}")
    rate = (
        "no rate measured yet: the first chunk that is read gives one"
        if found.rows_per_second is None
        else f"{found.rows_per_second:,.0f} rows/s a session measured"
    )
    console.print(f"{counted(found.sessions, 'session')}; {rate}")
    _show_undo(found, console)


def _cells(one: TableEstimate) -> tuple[str, ...]:
    size = "–" if one.bytes is None else f"{one.bytes / _BYTES_PER_MB:,.1f}"
    times = ("–" if minutes is None else f"{minutes:,.1f}" for minutes in (one.minutes, one.ends))
    return (one.table, one.by, f"{one.chunks:,}", f"{one.rows:,}", size, *times)


def _show_undo(found: SnapshotEstimate, console: Console) -> None:
    if found.undo_seconds is None:
        console.print("UNDO_RETENTION cannot be seen: GRANT SELECT ON SYS.V_$PARAMETER")
        return
    if found.minutes is None:
        console.print(f"undo is kept for {found.undo_seconds} seconds (UNDO_RETENTION)")
        return
    console.print(
        f"undo is kept for {found.undo_seconds} seconds (UNDO_RETENTION); reading takes "
        f"{found.minutes * 60:,.0f}"
    )
    for one in found.beyond_undo:
        console.print(f"[yellow]{one.table}[/] {_beyond_undo(one)}")


def _beyond_undo(one: TableEstimate) -> str:
    if one.is_between:
        return "is read between watermarks, and a chunk takes longer: lower snapshot.chunk_rows"
    return "does not make it at one SCN: chunks whose undo is gone are read at newer SCNs"
