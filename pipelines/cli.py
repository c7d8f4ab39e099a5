"""The command line: ``redolake``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from cdc_core.errors import ConfigError
from pipelines.commands import (
    catalog,
    certify,
    compare_events,
    data,
    explain,
    history,
    host,
    import_debezium,
    init_source,
    inspect,
    lag,
    listings,
    maintain,
    metrics,
    plan,
    publish,
    redo_profile,
    row,
    schema,
    signal,
    state,
    tables,
    xstream,
)
from pipelines.commands.pdbs import EachPdbCommand, PdbCommand, together
from pipelines.commands.shared import (
    ErrorReportingGroup,
    end_at_sigterm,
    print_any_text,
    set_up_logging,
)

app = typer.Typer(
    name="redolake",
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    rich_markup_mode=None,
    help="Copy every committed Oracle change into Delta Lake, in batches you can inspect, "
    "replay and verify.\n\nTo try it: `redolake demo`, then `redolake ui`. For your own "
    "database, write a configuration file with `redolake init`, name it with --config or "
    "$REDOLAKE_CONFIG, then run `redolake doctor`, `redolake snapshot` and `redolake run "
    "--loop`.",
)
signals = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Send a request to a running pipeline, through its metadata store.",
)
table = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Add, pause, resume and remove tables one by one, while change capture continues for the others.",
)
metadata = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Recover the metadata store: positions, windows, chunks and states of tables.",
)
source = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Act on a whole source.",
)
definitions = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show table definitions and their history.",
)
outbound = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Record what an XStream outbound server gives.",
)
oracle = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The embedded Oracle, for trials and tests."
)


WITHOUT_PDB = frozenset(
    {"setup", "init", "import-debezium", "doctor", "demo", "ui", "explain", "oracle"}
)
"""Commands that work on no source, or on a whole configuration."""


def print_version(wanted: bool) -> None:
    """Print the installed version and end."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"redolake {version('redolake')}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks and every decision.")
    ] = False,
    _pdb: Annotated[
        str | None,
        typer.Option(
            "--pdb",
            metavar="NAME",
            help="Work on this one of the pluggable databases that oracle.pdbs lists.",
        ),
    ] = None,
) -> None:
    """Set logging up."""
    set_up_logging(debug=debug)
    if _pdb is not None and ctx.invoked_subcommand in WITHOUT_PDB:
        raise ConfigError(
            "this command does not work on one pluggable database",
            hint="Leave --pdb out.",
            command=ctx.invoked_subcommand,
        )


SHORT_HELP: dict[Callable[..., None], str] = {
    host.setup: "Fetch what Spark needs, once.",
    init_source.init: "Write a configuration file from a database.",
    import_debezium.import_debezium: "Write one from a Debezium connector's.",
    host.doctor: "Show what is missing and how to fix it.",
    certify.certify: "Test what Redolake assumes about Oracle.",
    host.demo: "Copy flights from Oracle into Delta Lake.",
    host.ui: "Open Dagster's web page on a source.",
    data.snapshot: "Read existing rows, all or some tables.",
    data.capture: "Read redo up to the present into landing.",
    data.recapture: "Reread windows whose landing files are lost.",
    data.apply: "Apply captured windows to the Delta tables.",
    data.run: "Do all pending work once, or keep running.",
    plan.plan: "Show what is next, and what breaks first.",
    inspect.status: "Show the status of a source and its tables.",
    lag.lag: "Say why a source is behind.",
    redo_profile.redo_profile: "Count what makes the redo.",
    metrics.metrics: "Serve numbers for Prometheus.",
    publish.publish: "Send events to Kafka.",
    history.history: "Bring histories up to their change logs.",
    catalog.catalog: "Register the tables in a catalog.",
    listings.windows: "List windows: times, states, changes.",
    row.row: "Show the life of one row.",
    listings.at: "Show the Delta versions of one consistent cut.",
    listings.signals: "List signals and their outcomes.",
    listings.notifications: "List what notifications say.",
    inspect.reconcile: "Compare the tables with Oracle at one SCN.",
    compare_events.compare_events: "Compare Debezium's events with change logs.",
    data.repair: "Reread rows that differ from Oracle.",
    explain.explain: "Explain the redo rows of an export.",
    maintain.maintain: "Compact and clean up Delta tables.",
    data.replay: "Replay windows that were already applied.",
}
CLASSES: dict[Callable[..., None], type[PdbCommand]] = {
    data.apply: EachPdbCommand,
    lag.lag: EachPdbCommand,
    plan.plan: EachPdbCommand,
    redo_profile.redo_profile: EachPdbCommand,
    listings.windows: EachPdbCommand,
    listings.at: EachPdbCommand,
    listings.signals: EachPdbCommand,
    listings.notifications: EachPdbCommand,
    data.repair: EachPdbCommand,
    maintain.maintain: EachPdbCommand,
    publish.publish: EachPdbCommand,
    history.history: EachPdbCommand,
    catalog.catalog: EachPdbCommand,
    data.snapshot: together(data.snapshot_all),
    data.capture: together(data.capture_all),
    data.run: together(data.run_all),
    inspect.reconcile: together(inspect.reconcile_all),
    inspect.status: together(inspect.status_of_all),
    certify.certify: PdbCommand,
    metrics.metrics: together(metrics.metrics_of_all),
    compare_events.compare_events: PdbCommand,
    data.recapture: PdbCommand,
    data.replay: PdbCommand,
    row.row: PdbCommand,
}
"""What each command on a source does where its configuration lists several pluggable databases."""
for command, short_help in SHORT_HELP.items():
    app.command(short_help=short_help, cls=CLASSES.get(command))(command)
SIGNALS: dict[str, Callable[..., None]] = {
    "execute-snapshot": signal.execute_snapshot,
    "stop-snapshot": signal.stop_snapshot,
    "pause-snapshot": signal.pause_snapshot,
    "resume-snapshot": signal.resume_snapshot,
    "schema-changes": signal.schema_changes,
    "send": signal.send,
}
for name, action in SIGNALS.items():
    signals.command(name, cls=PdbCommand)(action)
signals.callback()(lambda: None)
table.command("list", short_help="List tables with state and way out.", cls=EachPdbCommand)(
    tables.list_tables
)
table.command("find", short_help="Show which tables the patterns match.", cls=EachPdbCommand)(
    tables.find
)
table.command("add", short_help="Add tables, with a snapshot.", cls=PdbCommand)(tables.add)
table.command("remove", short_help="Stop capturing tables.", cls=PdbCommand)(tables.remove)
table.command("pause", short_help="Capture, but do not apply.", cls=PdbCommand)(tables.pause)
table.command("resume", short_help="Continue paused or failed tables.", cls=PdbCommand)(
    tables.resume
)
table.command("resnapshot", short_help="Read tables again.", cls=PdbCommand)(tables.resnapshot)
table.command("rebuild", short_help="Rebuild a lost mirror from its change log.", cls=PdbCommand)(
    tables.rebuild
)
table.command(
    "quarantine", short_help="Show which redo rows could not be decoded, and why.", cls=PdbCommand
)(tables.quarantine)
table.command(
    "events", short_help="Print SQL that shows changes as Debezium events.", cls=PdbCommand
)(tables.events)
table.command(
    "purge-column", short_help="Remove an excluded column from the lake.", cls=PdbCommand
)(tables.purge_column)
table.callback()(lambda: None)
metadata.command("rebuild", short_help="Rebuild the store from landing and lake.", cls=PdbCommand)(
    state.rebuild
)
metadata.callback()(lambda: None)
source.command(
    "skip-gap", short_help="Continue after redo that is permanently lost.", cls=PdbCommand
)(data.skip_gap)
source.callback()(lambda: None)
definitions.command(
    "show", short_help="Columns of a table, and the history of its definition.", cls=PdbCommand
)(schema.show)
definitions.callback()(lambda: None)
outbound.command("record", cls=PdbCommand)(xstream.record)
outbound.callback()(lambda: None)
oracle.command("serve")(host.serve)
oracle.callback()(lambda: None)
app.add_typer(
    signals, name="signal", short_help="Ask for, stop or pause snapshots; give definitions."
)
app.add_typer(table, name="table", short_help="Add, remove, pause, resume single tables.")
app.add_typer(definitions, name="schema", short_help="Show a table's definition and its history.")
app.add_typer(source, name="source", short_help="Skip redo that is permanently lost.")
app.add_typer(metadata, name="state", short_help="Rebuild a lost metadata store.")
app.add_typer(outbound, name="xstream", short_help="Record an XStream outbound server.")
app.add_typer(oracle, name="oracle", short_help="Serve the embedded Oracle.")


def main() -> None:
    """Entry point of the console script."""
    end_at_sigterm()
    print_any_text()
    app()


if __name__ == "__main__":
    main()
