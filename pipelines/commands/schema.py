"""The command that shows how a captured table is defined, and how it came to that."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import SCN_MAX, Scn
from pipelines.commands.shared import ConfigOption, JsonOption, opened, out, print_json


def show(
    table: Annotated[str, typer.Argument(metavar="OWNER.TABLE", help="The table.")],
    as_of: Annotated[
        int | None,
        typer.Option(
            "--as-of", metavar="SCN", min=0, help="As of this SCN. Default: the newest definition."
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Show a table's columns and every definition change that Redolake has captured."""
    named = TableId.parse(table)
    at = Scn(SCN_MAX if as_of is None else as_of)
    with opened(config, oracle=False) as pipeline:
        columns = pipeline.records.columns(named, at)
        definitions = pipeline.records.definitions(named, at)
    if not definitions:
        raise ConfigError(
            "Redolake knows no definition of this table"
            + ("" if as_of is None else " as of that SCN"),
            hint="`redolake table list` lists the tables. Redolake knows a table from its first snapshot on.",
            table=named,
            **({} if as_of is None else {"as_of": as_of}),
        )
    if json:
        print_json(
            {
                "table": str(named),
                "as_of": as_of,
                "columns": [asdict(column) for column in columns],
                "definitions": [asdict(one) for one in definitions],
            }
        )
        return
    shown = Table("Column", "Type", "Key", "NULL", box=None, pad_edge=False)
    for column in columns:
        shown.add_row(
            escape(column.name),
            column.type,
            "key" if column.in_key else "",
            "" if column.nullable else "NOT NULL",
        )
    history = Table("From SCN", "What changed", "DDL", box=None, pad_edge=False)
    for one in definitions:
        ddl = " ".join((one.ddl or "").split())
        history.add_row(str(one.scn), escape("; ".join(one.changes)), escape(ddl))
    console = out()
    console.print(shown)
    console.print()
    console.print(history)
