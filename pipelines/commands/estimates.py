"""What ``redolake snapshot --plan`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipelines.commands.shared import counted

if TYPE_CHECKING:
    from cdc_core.model.estimates import SnapshotEstimate, TableEstimate

_BYTES_PER_MB = 1024**2


def show_estimate(found: SnapshotEstimate, console: Console) -> None:
    """Print what a snapshot would read, table by table, and what the undo means for it."""
    if not found.tables:
        console.print(
            "Nothing to read: the first snapshot is complete. To plan another, name a table with --table."
        )
        return
    table = Table(box=None, pad_edge=False)
    for column in ("table", "cut by", "chunks", "rows", "MB", "minutes", "ends after"):
        table.add_column(
            column, overflow="fold", justify="left" if column in ("table", "cut by") else "right"
        )
    for one in found.tables:
        if one.trouble is None:
            table.add_row(*_cells(one))
    console.print(table)
    for one in found.tables:
        if one.trouble is not None:
            console.print(
                f"[red]{one.table}[/] cannot be read: {escape(one.trouble)}", soft_wrap=True
            )
    rate = (
        "no rate measured yet: the first chunk that is read gives one"
        if found.rows_per_second is None
        else f"{found.rows_per_second:,.0f} rows/s a session measured"
    )
    console.print(f"{counted(found.sessions, 'session')}; {rate}", soft_wrap=True)
    _show_undo(found, console)


def _cells(one: TableEstimate) -> tuple[str, ...]:
    size = "–" if one.bytes is None else f"{one.bytes / _BYTES_PER_MB:,.1f}"
    times = ("–" if minutes is None else f"{minutes:,.1f}" for minutes in (one.minutes, one.ends))
    return (one.table, one.by, f"{one.chunks:,}", f"{one.rows:,}", size, *times)


def _show_undo(found: SnapshotEstimate, console: Console) -> None:
    if found.undo_seconds is None:
        console.print(
            "UNDO_RETENTION cannot be seen: GRANT SELECT ON SYS.V_$PARAMETER", soft_wrap=True
        )
        return
    if found.minutes is None:
        console.print(
            f"undo is kept for {found.undo_seconds} seconds (UNDO_RETENTION)", soft_wrap=True
        )
        return
    console.print(
        f"undo is kept for {found.undo_seconds} seconds (UNDO_RETENTION); reading takes "
        f"{found.minutes * 60:,.0f}",
        soft_wrap=True,
    )
    for one in found.beyond_undo:
        then = (
            "its snapshot starts again, once, and then stops: raise UNDO_RETENTION first"
            if one.needs_one_scn
            else "chunks whose undo is gone are read at newer SCNs"
        )
        console.print(f"[yellow]{one.table}[/] does not make it at one SCN: {then}", soft_wrap=True)
