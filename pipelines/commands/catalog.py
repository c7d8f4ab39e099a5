"""The command that registers tables in a catalog."""

from __future__ import annotations

import typer
from rich.markup import escape

from pipelines.commands.shared import (
    EXIT_TABLES_FAILED,
    ConfigOption,
    TablesOption,
    opened,
    out,
    tables_of,
)


def catalog(table: TablesOption = None, config: ConfigOption = None) -> None:
    """Register the Delta tables in a catalog (lake.catalog), and give mirrors Oracle's comments.

    `redolake run` does this after each round, and so do the window runs of Dagster, for tables that
    are new in the catalog or whose columns or comments have changed. This command checks every
    name, and restores names that somebody dropped. Exits with code 1 if it could not register a
    table; it still registers the others.
    """
    with opened(config, oracle=False) as pipeline:
        found = list(pipeline.register_tables(tables_of(table), looks_at_all=True))
    for one in found:
        said = f"[red]{escape(one.failed)}[/]" if one.failed is not None else ", ".join(one.names)
        out().print(f"{one.table}: {said}")
    if not found:
        out().print("Nothing to do: the catalog has every table as it is.")
    if any(one.failed is not None for one in found):
        raise typer.Exit(EXIT_TABLES_FAILED)
