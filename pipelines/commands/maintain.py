"""The command that compacts and cleans up Delta tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from pipelines.commands.shared import (
    EXIT_TABLES_FAILED,
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
    from rich.console import Console

    from cdc_core.model.reports import Maintenance


def maintain(
    table: TablesOption = None, config: ConfigOption = None, json: JsonOption = False
) -> None:
    """Compact and clean up mirrors and change logs. The command changes no rows, and windows of
    other tables continue.

    It compacts small files (OPTIMIZE), applies the options of `maintenance` for deletion vectors
    and clustering, and removes files that only old versions use (VACUUM). `redolake run --loop` and
    Dagster do this once a day; if you use neither, run it from cron. Exits with code 1 if it could
    not maintain a table; it still maintains the others.
    """
    with opened(config, oracle=False) as pipeline:
        found = list(pipeline.maintain(tables_of(table)))
    if json:
        print_json({"tables": [_as_json(one) for one in found]})
    else:
        show_maintenance(found, out())
    if any(one.is_failed for one in found):
        raise typer.Exit(EXIT_TABLES_FAILED)


def show_maintenance(found: list[Maintenance], console: Console) -> None:
    """Print what became of each table for people."""
    names = ("table", "", "files", "MiB", "removed", "vectors", "seconds")
    table = listing(*names, right={"removed", "seconds"})
    for one in found:
        for done in one.done:
            changed = done.had_vectors != done.has_vectors
            table.add_row(
                escape(str(one.table)),
                done.layer,
                f"{done.files_before:,} → {done.files_after:,}",
                f"{_mib(done.bytes_before)} → {_mib(done.bytes_after)}",
                f"{done.files_removed:,}",
                ("on" if done.has_vectors else "off") + (" (new)" if changed else ""),
                f"{done.seconds:.1f}",
            )
    if table.row_count:
        console.print(table)
    for one in found:
        if one.left_alone:
            colour = "red" if one.is_failed else "yellow"
            console.print(f"[{colour}]{one.table}[/] was left alone: {escape(one.left_alone)}")


def _mib(count: int) -> str:
    return f"{count / 1024 / 1024:,.1f}"


def _as_json(one: Maintenance) -> dict[str, object]:
    return {
        "table": str(one.table),
        "done": [{**asdict(done), "table": str(done.table)} for done in one.done],
        "left_alone": one.left_alone,
        "is_failed": one.is_failed,
    }
