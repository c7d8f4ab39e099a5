"""The command that keeps histories."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from cdc_core.errors import ConfigError
from cdc_core.model.wording import counted
from pipelines.commands.shared import (
    EXIT_TABLES_FAILED,
    ConfigOption,
    TablesOption,
    opened,
    out,
    tables_of,
)


def history(
    table: TablesOption = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Derive all states from the change logs again."),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Bring the histories of tables (lake.history) up to their change logs.

    `redolake run` does this after each round, and so do the window runs of Dagster. The command
    needs neither Oracle nor Spark. Exits with code 1 if the history of a table could not follow;
    the others still do.
    """
    with opened(config, oracle=False) as pipeline:
        if not any(pipeline.config.has_history(one.table) for one in pipeline.config.tables):
            raise ConfigError(
                "no table has a history",
                hint="Set lake.history, or history of a table, to scd2 or soft_deletes.",
                source=pipeline.source,
            )
        found = list(pipeline.keep_history(tables_of(table), anew=rebuild))
    for one in found:
        said = (
            f"[red]{escape(one.failed)}[/]"
            if one.failed is not None
            else f"{counted(one.added, 'state')} written, {one.removed:,} removed"
        )
        out().print(f"{one.table}: {said}")
    if not found:
        out().print("Nothing to do: the histories have what the change logs have.")
    if any(one.failed is not None for one in found):
        raise typer.Exit(EXIT_TABLES_FAILED)
