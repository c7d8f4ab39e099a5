"""The command that says what makes the redo."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

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
    from cdc_core.model.redo_profile import RedoProfile

WINDOWS_COUNTED = 20
ROWS_SHOWN = 20


def redo_profile(
    windows: Annotated[
        int, typer.Option("--windows", min=1, help="How many of the newest windows to examine.")
    ] = WINDOWS_COUNTED,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Count which tables, users and operations produce the redo, so that you know what excluding a
    table would save.

    The command counts landed redo rows and the approximate bytes of their text, without Oracle.
    Landing contains only rows of captured tables; for other tables, Redolake knows only the number
    of rows that LogMiner returned.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.redo_profile(windows=windows)
    if json:
        print_json({**asdict(found), "rows": found.rows, "bytes": found.bytes})
        return
    show_profile(found, out())


def show_profile(found: RedoProfile, console: Console) -> None:
    """Print the redo by table, by user and by operation, the largest first."""
    if not found.shares:
        console.print(f"{counted(found.windows, 'window')}: no redo rows of captured tables.")
        return
    console.print(
        f"{counted(found.windows, 'window')} from SCN {found.scn_low} to {found.scn_high}: "
        f"{counted(found.rows, 'landed redo row')}, about {found.bytes:,} bytes"
    )
    _show("table", found.grouped(lambda one: one.table), found, console)
    _show("user", found.grouped(lambda one: one.username or "unknown"), found, console)
    _show("operation", found.grouped(lambda one: one.operation), found, console)
    console.print(
        f"LogMiner gave {counted(found.rows_mined, 'row')}, ends of transactions among them. Rows "
        "of tables that are not captured never land, and are not in these tables."
    )


def _show(
    what: str, groups: list[tuple[str, int, int]], found: RedoProfile, console: Console
) -> None:
    numbers = ("rows", "of rows", "bytes", "of bytes")
    table = listing(what, *numbers, right=numbers)
    for name, rows, size in groups[:ROWS_SHOWN]:
        whole = f"{size / found.bytes:.0%}" if found.bytes else "–"
        table.add_row(escape(name), f"{rows:,}", f"{rows / found.rows:.0%}", f"{size:,}", whole)
    console.print(table)
    if (more := len(groups) - ROWS_SHOWN) > 0:
        console.print(f"… and {more:,} more; --json lists all.")
