"""The command that holds Debezium's events against the change logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cdc_core.errors import ConfigError
from cdc_core.model.reports import EventDifference, EventsCompared
from cdc_core.model.wording import counted
from pipelines.commands.inspect import EXIT_DIFFERENT
from pipelines.commands.shared import (
    ConfigOption,
    JsonOption,
    TablesOption,
    opened,
    out,
    print_json,
    tables_of,
)

SHOWN = 20


def compare_events(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of Debezium's messages, one JSON a line."),
    ],
    scn_from: Annotated[
        int | None,
        typer.Option("--from", metavar="SCN", help="Only changes that committed after this SCN."),
    ] = None,
    scn_to: Annotated[
        int | None, typer.Option("--to", metavar="SCN", help="Only changes up to this SCN.")
    ] = None,
    table: TablesOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Compare Debezium's events with the change logs, change by change. Exits with code 1 on a
    difference.

    The files hold what kafka-console-consumer prints of the connector's topics, from a time in
    which both captured the same tables. Tombstones, rows of snapshots and other messages are
    skipped. By default, all changes from the first to the last in the files are compared.
    Transaction, operation and key identify a change; values are compared by meaning, whatever
    decimal.handling.mode or time.precision.mode says. The output names the fields that differ, and
    shows no values.
    """
    from diagnosis import events

    with opened(config, oracle=False) as pipeline:
        found = events.compare_events(
            pipeline, _lines(files), tables_of(table), scn_low=scn_from, scn_high=scn_to
        )
    if json:
        print_json(asdict(found))
    else:
        _show(found)
    if found.differences:
        raise typer.Exit(EXIT_DIFFERENT)


def _lines(files: Sequence[Path]) -> Iterator[str]:
    for path in files:
        try:
            with path.open(encoding="utf-8") as file:
                yield from file
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                "a file of events cannot be read", hint="Name readable files in UTF-8.", file=path
            ) from error


def _show(found: EventsCompared) -> None:
    console = out()
    kinds = [one.what for one in found.differences]
    console.print(
        f"SCN {found.scn_low} to {found.scn_high}: {counted(found.equal, 'change')} equal, "
        f"{kinds.count('differs')} different, {kinds.count('only here')} only here, "
        f"{kinds.count('only there')} only in Debezium"
    )
    if found.of_other_tables:
        changes = counted(found.of_other_tables, "change")
        console.print(f"{changes} of other tables: not compared")
    for one in found.differences[:SHOWN]:
        console.print(escape(_line(one)))
    if len(found.differences) > SHOWN:
        console.print(f"… and {len(found.differences) - SHOWN} more (--json has all)")


def _line(one: EventDifference) -> str:
    place = f", line {one.line}" if one.line is not None else ""
    fields = f": {', '.join(one.fields)}" if one.fields else ""
    there = "only in Debezium" if one.what == "only there" else one.what
    return f"{one.table} {one.op} at SCN {one.commit_scn}, transaction {one.xid}{place}: {there}{fields}"
