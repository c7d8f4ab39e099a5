"""Commands about the metadata store: rebuild."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from cdc_core.model.reports import StateRebuilt
from cdc_core.model.wording import counted
from pipelines.commands.shared import ConfigOption, JsonOption, opened, out, print_json


def rebuild(
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace the store's records of this source."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be written.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Rebuild a lost or outdated metadata store from landing and the Delta logs. Neither Oracle nor
    Spark is needed.

    Stop the loop or the sensors of the source first. Pending signals and the tables that patterns
    matched are not recovered: send the signals again; the next run evaluates the patterns.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.rebuild_state(replace=replace, dry_run=dry_run)
    if json:
        tables = [
            {"table": str(one.table), "state": one.state, "position": one.mirror_scn}
            for one in found.tables
        ]
        print_json({**asdict(found), "tables": tables})
    else:
        show_rebuilt(found, out())


def show_rebuilt(found: StateRebuilt, console: Console) -> None:
    """Print for people what landing and lake say."""
    for name, rows in found.rows.items():
        before = (
            "" if found.rows_before is None else f" (the store had {found.rows_before[name]:,})"
        )
        console.print(f"{name}: {counted(rows, 'row')}{before}")
    for table in found.tables:
        position = "no position yet" if table.mirror_scn is None else f"SCN {table.mirror_scn}"
        console.print(f"{table.table}: {table.state}, {position}", markup=False)
    for remark in found.remarks:
        console.print(remark, markup=False)
    if found.is_written:
        console.print("The metadata store is rebuilt; `redolake run` continues from here.")
    else:
        console.print("Nothing was written.")
