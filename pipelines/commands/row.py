"""The command that shows the life of one row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from cdc_core.model.wording import counted
from pipelines.commands.shared import ConfigOption, JsonOption, opened, out, print_json

if TYPE_CHECKING:
    from pipelines.row_life import RowChange, RowLife

VALUE_LENGTH_MAX = 40
EXIT_NO_ROW = 1
_WORDS = {
    "c": "[green]insert[/]",
    "u": "[yellow]update[/]",
    "d": "[red]delete[/]",
    "r": "[cyan]read  [/]",
}


def row(
    table: Annotated[str, typer.Argument(metavar="OWNER.TABLE", help="The table.")],
    key: Annotated[
        list[str],
        typer.Argument(metavar="KEY...", help="The row's key: a value for each of its columns."),
    ],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Show the life of one row: each change with its time, SCN, transaction and user, oldest first,
    then the row as the mirror has it now.

    Redolake reads the table's change log and mirror; it needs neither Oracle nor Spark. The command
    prints the row's values. Times are those of the database's host. A change of key is shown for
    both keys. Exits with code 1 if there never was such a row.
    """
    from pipelines.row_life import life_of
    from redolake.reader import open as open_lake

    with opened(config, oracle=False) as pipeline:
        lake = open_lake(pipeline.config.lake.path, source=pipeline.config.name)
    found = life_of(lake.table(table), key)
    if json:
        print_json(as_json(found))
    else:
        show_life(found, out())
    if not found.changes and not found.now:
        raise typer.Exit(EXIT_NO_ROW)


def as_json(found: RowLife) -> dict[str, object]:
    """``{"changes": [...], "mirror": {...} or null}``: these keys stay as they are; values are
    text."""
    changes = [
        {**asdict(one), "before": _texts(one.before), "after": _texts(one.after)}
        for one in found.changes
    ]
    return {"changes": changes, "mirror": _texts(found.now[0]) if found.now else None}


def show_life(found: RowLife, console: Console) -> None:
    """Print a row's changes and what the mirror has."""
    for one in found.changes:
        when = f"{one.committed:%Y-%m-%d %H:%M:%S}" if one.committed else "by a snapshot      "
        who = f"  {one.xid} {escape(one.username or '')}" if one.xid and not one.snapshot else ""
        console.print(f"SCN {one.commit_scn}  {when}  {_WORDS[one.op]}{who}")
        if said := said_of(one):
            console.print(f"    {escape(said)}")
    if found.now:
        values = ", ".join(f"{name} {value_text(one)}" for name, one in found.now[0].items())
        console.print(f"[bold]Mirror now:[/] {escape(values)}")
    elif found.changes:
        console.print(
            f"[bold]Mirror now:[/] no such row; {counted(len(found.changes), 'change')} in the "
            "change log"
        )
    else:
        console.print("Neither change log nor mirror has a row with this key.")


def said_of(one: RowChange, only: Collection[str] = ()) -> str:
    """What the change did to columns, or to ``only`` some: ``STATUS 'boarding' → 'departed'``."""
    return ", ".join(
        f"{name} {value_text(one.before[name])} → {value_text(value)}"
        if name in one.before
        else f"{name} {value_text(value)}"
        for name, value in one.after.items()
        if not only or name in only
    )


def value_text(value: Any) -> str:
    """A value for people, cut where it is long."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        value = value.hex()
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[: VALUE_LENGTH_MAX - 1]}…"


def _texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    return {
        name: None if one is None else one.hex() if isinstance(one, bytes) else str(one)
        for name, one in values.items()
    }
