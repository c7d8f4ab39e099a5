"""Commands about single tables: list, find, add, remove, pause, resume, resnapshot."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import QueryEngine, TableStatus
from cdc_core.model.wording import counted
from pipelines.commands.inspect import time_text
from pipelines.commands.shared import (
    STATE_COLOURS,
    ConfigOption,
    JsonOption,
    exit_if_tables_failed,
    listing,
    opened,
    out,
    print_json,
)

NamesArgument = Annotated[
    list[str], typer.Argument(metavar="OWNER.TABLE...", help="One table or several.")
]


def list_tables(config: ConfigOption = None, json: JsonOption = False) -> None:
    """List every table with its state, since when, why, and what to do."""
    with opened(config, oracle=False) as pipeline:
        found = pipeline.status(ask_oracle=False).tables
    if json:
        print_json([asdict(one) for one in found])
    else:
        show_tables(found, out())


def find(config: ConfigOption = None, json: JsonOption = False) -> None:
    """Look up the configuration's patterns in Oracle: which tables they match, which they leave
    out, and why.

    Every run does this automatically. Reload Dagster's code location afterwards, so that it shows
    new tables.
    """
    with opened(config) as pipeline:
        found = pipeline.find_tables()
    if json:
        print_json(
            [
                {
                    "table": str(one.table),
                    "columns_exclude": list(one.columns_exclude),
                    "left_out": one.left_out or None,
                }
                for one in found
            ]
        )
        return
    console = out()
    if not found:
        console.print("The configuration has no patterns; it names every table in full.")
    for one in found:
        without = ", ".join(one.columns_exclude)
        columns = f"captured without {without}" if without else "captured"
        what = f"left out: {one.left_out}" if one.left_out else columns
        console.print(f"{one.table}: {what}", markup=False)


def add(tables: NamesArgument, config: ConfigOption = None) -> None:
    """Add tables that were removed, or that could not join, and read their rows while change
    capture continues.

    To capture a new table, add it to the configuration: the next `redolake run` adds it.
    """
    with opened(config) as pipeline:
        chunks = pipeline.add_tables(_ids(tables))
        out().print(
            f"{counted(len(chunks), 'chunk')} planned; `redolake run` reads and applies them"
        )
        exit_if_tables_failed(pipeline, _ids(tables))


def remove(tables: NamesArgument, config: ConfigOption = None) -> None:
    """Stop capturing tables after the last captured window. Their Delta tables stay as they are.

    A table stays removed until `redolake table add`, whatever the configuration says.
    """
    with opened(config, oracle=False) as pipeline:
        for end in pipeline.remove_tables(_ids(tables)):
            out().print(f"{end.table} leaves at SCN {end.scn}; its Delta tables stay")


def pause(tables: NamesArgument, config: ConfigOption = None) -> None:
    """Keep the Delta tables of some tables as they are, while Redolake continues to capture their
    redo."""
    with opened(config, oracle=False) as pipeline:
        for record in pipeline.pause_tables(_ids(tables)):
            out().print(f"{record.table} is paused at SCN {record.mirror_scn or '–'}")


def resume(tables: NamesArgument, config: ConfigOption = None) -> None:
    """Continue tables that were paused, or that failed while their redo was captured. The next run
    applies their backlog."""
    with opened(config, oracle=False) as pipeline:
        for record in pipeline.resume_tables(_ids(tables)):
            out().print(f"{record.table} continues from SCN {record.mirror_scn or '–'}")


def resnapshot(
    tables: NamesArgument,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Start new Delta tables, and move the old ones aside."),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Read tables again and continue from there, whatever stopped them. Change capture continues
    for the others."""
    with opened(config) as pipeline:
        chunks = pipeline.resnapshot_tables(_ids(tables), fresh=fresh)
        out().print(
            f"{counted(len(chunks), 'chunk')} planned; `redolake run` reads and applies them"
        )
        exit_if_tables_failed(pipeline, _ids(tables))


def rebuild(
    tables: NamesArgument,
    from_landing: Annotated[
        bool,
        typer.Option(
            "--from-landing",
            help="Write change log and mirror again from the chunks and windows in landing; the "
            "remains of the old tables are moved aside.",
        ),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Rebuild lost or damaged Delta tables without Oracle, mirrors from their change logs.

    Readers see the new rows of a mirror with one commit. If the mirror's folder is damaged, move it
    aside first. If a change log is lost, use --from-landing; readers then see the table grow until
    it is complete.
    """
    with opened(config, oracle=False) as pipeline:
        for table in _ids(tables):
            if from_landing:
                taken = pipeline.rebuild_from_landing(table)
                out().print(
                    f"{table}: {counted(taken.facts['chunks'], 'chunk')} and {counted(taken.facts['windows'], 'window')} taken from landing; "
                    f"the mirror is as of SCN {taken.scn_high}"
                )
                continue
            done = pipeline.rebuild_mirror(table)
            out().print(
                f"{table}: {counted(done.rows, 'row')} written; the mirror is as of SCN {done.scn_high}"
            )


def purge_column(
    table: Annotated[str, typer.Argument(metavar="OWNER.TABLE", help="The table.")],
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="A column that columns_exclude names.")
    ],
    config: ConfigOption = None,
) -> None:
    """Remove the values of an excluded column from mirror and change log, and name the old files
    that may still contain them."""
    with opened(config, oracle=False) as pipeline:
        found = pipeline.purge_column(TableId.parse(table), column)
    console = out()
    console.print(f"{column} of {table} is NULL in the lake")
    if found.vacuum:
        console.print("Older Delta versions contain the values until VACUUM removes their files:")
        for folder in found.vacuum:
            console.print(f"  VACUUM delta.`{folder}` RETAIN 168 HOURS")
    if found.landing:
        console.print("Earlier landing files contain them until you delete these folders:")
        for folder in found.landing:
            console.print(f"  {folder}")


def quarantine(
    table: Annotated[str, typer.Argument(metavar="OWNER.TABLE", help="The table.")],
    purge: Annotated[
        bool, typer.Option("--purge", help="Remove the redo text of all rows; it contains values.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Count the redo rows of a table that could not be decoded, by operation and reason, without
    their values.

    Redolake keeps these rows in a separate Delta table. `redolake repair` or
    `redolake table resnapshot` rereads the affected rows from Oracle; Redolake then no longer
    counts them.
    """
    with opened(config, oracle=False) as pipeline:
        found = pipeline.quarantine(TableId.parse(table))
        folders = pipeline.purge_quarantine(TableId.parse(table)) if purge else []
    console = out()
    for (operation, reason), rows in found.items():
        console.print(f"{rows:,} {operation}: {escape(reason)}")
    if not found:
        console.print(f"no row of {table} is in quarantine")
    if folders:
        console.print(
            "The redo text was removed. Older Delta versions contain it until VACUUM removes "
            "their files:"
        )
        for folder in folders:
            console.print(f"  VACUUM delta.`{folder}` RETAIN 168 HOURS")


def events(
    table: Annotated[str, typer.Argument(metavar="OWNER.TABLE", help="The table.")],
    engine: Annotated[
        QueryEngine, typer.Option("--engine", help="The engine that will run the query.")
    ] = "spark",
    time_zone: Annotated[
        str,
        typer.Option(
            "--time-zone",
            metavar="ZONE",
            help="Time zone of the database's host, and so of redo timestamps, for example "
            "Europe/Berlin.",
        ),
    ] = "UTC",
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="NAME",
            help="Value of source.db. Default: the database's name; Debezium uses the pluggable "
            "database's.",
        ),
    ] = None,
    unavailable: Annotated[
        str | None,
        typer.Option(
            "--unavailable-value-placeholder",
            metavar="TEXT",
            help="Value for text and bytes that an event does not carry. Default: NULL; "
            "Debezium writes __debezium_unavailable_value.",
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Print the SQL query that shows a table's change log as Debezium's events: before, after,
    source, transaction, op and ts_ms.

    Create a view with it, or filter it by _cdc_commit_scn. The reference page "Change log and
    mirror format" explains each field.
    """
    with opened(config, oracle=False) as pipeline:
        query = pipeline.records.events_sql(
            TableId.parse(table), engine, time_zone, database, unavailable=unavailable
        )
    typer.echo(query, nl=False)


def show_tables(found: tuple[TableStatus, ...], console: Console) -> None:
    """Print the tables' states for people."""
    table = listing("table", "state", "position", "since", "why")
    for one in found:
        colour = STATE_COLOURS.get(one.state, "default")
        table.add_row(
            one.table,
            f"[{colour}]{one.state}[/]",
            "–" if one.position is None else str(one.position),
            time_text(one.since),
            escape(one.reason or ""),
        )
    console.print(table)
    for one in found:
        if one.way_out:
            console.print(f"[bold]{one.table}[/]: {escape(one.way_out)}")
        for answer in one.read_again:
            console.print(
                f"{one.table} was read again by {answer.policy} at {answer.at}: {escape(answer.reason)}"
            )


def _ids(names: list[str]) -> list[TableId]:
    return [TableId.parse(name) for name in names]
