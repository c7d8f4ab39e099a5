"""The command that shows how a captured table is defined, and how it came to that."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import ColumnReport
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
    """Show a table's columns and every definition change that Redolake has captured.

    "Widest" is the widest value so far: digits before and after the decimal point, or characters
    (for RAW and BLOB, bytes). "Room" says how many more digits the Delta type has, where it is
    narrower than Oracle's.

    The JSON keys are stable; see the reference page "What --json prints".
    """
    named = TableId.parse(table)
    at = Scn(SCN_MAX if as_of is None else as_of)
    with opened(config, oracle=False) as pipeline:
        columns = pipeline.records.columns(named, at)
        definitions = pipeline.records.definitions(named, at)
    if not definitions:
        raise ConfigError(
            "Redolake knows no definition of this table as of that SCN",
            hint="`redolake table list` lists the tables. Redolake knows a table from its first snapshot on.",
            table=named,
            as_of=as_of,
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
    shown = Table("Column", "Type", "Key", "NULL", "Widest", "Room", box=None, pad_edge=False)
    for column in columns:
        shown.add_row(
            escape(column.name),
            column.type,
            "key" if column.in_key else "",
            "" if column.nullable else "NOT NULL",
            _widest(column),
            "" if column.room is None else f"{column.room} digits",
        )
    history = Table("From SCN", "What changed", "DDL", box=None, pad_edge=False)
    for one in definitions:
        ddl = " ".join((one.ddl or "").split())
        history.add_row(str(one.scn), escape("; ".join(one.changes)), escape(ddl))
    console = out()
    console.print(shown)
    console.print()
    console.print(history)


def _widest(column: ColumnReport) -> str:
    if column.length is not None:
        return f"{column.length:,}"
    if column.digits is None and column.fraction is None:
        return ""
    whole = f"{column.digits or 0}" + (f".{column.fraction}" if column.fraction else "")
    return f"{whole} digit" if whole == "1" else f"{whole} digits"
