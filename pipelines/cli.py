"""The command line: ``redolake``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


Commands = Mapping[str, tuple[Callable[..., None], type[PdbCommand] | None, str | None]]
"""Commands by name: what does it, what it does where a configuration lists several pluggable
databases (None: it works on no source, or on a whole configuration), and its line in a list."""

COMMANDS: Commands = {
    "setup": (host.setup, None, "Fetch what Spark needs, once."),
    "init": (init_source.init, None, "Write a configuration file from a database."),
    "import-debezium": (
        import_debezium.import_debezium, None, "Write one from a Debezium connector's.",
    ),
    "doctor": (host.doctor, None, "Show what is missing and how to fix it."),
    "certify": (certify.certify, PdbCommand, "Test what Redolake assumes about Oracle."),
    "demo": (host.demo, None, "Copy flights from Oracle into Delta Lake."),
    "ui": (host.ui, None, "Open Dagster's web page on a source."),
    "snapshot": (
        data.snapshot, together(data.snapshot_all), "Read existing rows, all or some tables.",
    ),
    "capture": (
        data.capture, together(data.capture_all), "Read redo up to the present into landing.",
    ),
    "recapture": (data.recapture, PdbCommand, "Reread windows whose landing files are lost."),
    "apply": (data.apply, EachPdbCommand, "Apply captured windows to the Delta tables."),
    "run": (data.run, together(data.run_all), "Do all pending work once, or keep running."),
    "plan": (plan.plan, EachPdbCommand, "Show what is next, and what breaks first."),
    "status": (
        inspect.status, together(inspect.status_of_all), "Show the status of a source and its tables.",
    ),
    "lag": (lag.lag, EachPdbCommand, "Say why a source is behind."),
    "redo-profile": (redo_profile.redo_profile, EachPdbCommand, "Count what makes the redo."),
    "metrics": (metrics.metrics, together(metrics.metrics_of_all), "Serve numbers for Prometheus."),
    "publish": (publish.publish, EachPdbCommand, "Send events to Kafka."),
    "history": (history.history, EachPdbCommand, "Bring histories up to their change logs."),
    "catalog": (catalog.catalog, EachPdbCommand, "Register the tables in a catalog."),
    "windows": (listings.windows, EachPdbCommand, "List windows: times, states, changes."),
    "row": (row.row, PdbCommand, "Show the life of one row."),
    "at": (listings.at, EachPdbCommand, "Show the Delta versions of one consistent cut."),
    "signals": (listings.signals, EachPdbCommand, "List signals and their outcomes."),
    "notifications": (listings.notifications, EachPdbCommand, "List what notifications say."),
    "reconcile": (
        inspect.reconcile, together(inspect.reconcile_all), "Compare the tables with Oracle at one SCN.",
    ),
    "compare-events": (
        compare_events.compare_events, PdbCommand, "Compare Debezium's events with change logs.",
    ),
    "repair": (data.repair, EachPdbCommand, "Reread rows that differ from Oracle."),
    "explain": (explain.explain, None, "Explain the redo rows of an export."),
    "maintain": (maintain.maintain, EachPdbCommand, "Compact and clean up Delta tables."),
    "replay": (data.replay, PdbCommand, "Replay windows that were already applied."),
}  # fmt: skip
GROUPS: Mapping[tuple[str, str, str], Commands] = {
    ("signal", "Ask for, stop or pause snapshots; give definitions.",
     "Send a request to a running pipeline, through its metadata store."): {
        "execute-snapshot": (signal.execute_snapshot, PdbCommand, None),
        "stop-snapshot": (signal.stop_snapshot, PdbCommand, None),
        "pause-snapshot": (signal.pause_snapshot, PdbCommand, None),
        "resume-snapshot": (signal.resume_snapshot, PdbCommand, None),
        "schema-changes": (signal.schema_changes, PdbCommand, None),
        "send": (signal.send, PdbCommand, None),
    },
    ("table", "Add, remove, pause, resume single tables.",
     "Add, pause, resume and remove tables one by one, while change capture continues for the others."): {
        "list": (tables.list_tables, EachPdbCommand, "List tables with state and way out."),
        "find": (tables.find, EachPdbCommand, "Show which tables the patterns match."),
        "add": (tables.add, PdbCommand, "Add tables, with a snapshot."),
        "remove": (tables.remove, PdbCommand, "Stop capturing tables."),
        "pause": (tables.pause, PdbCommand, "Capture, but do not apply."),
        "resume": (tables.resume, PdbCommand, "Continue paused or failed tables."),
        "resnapshot": (tables.resnapshot, PdbCommand, "Read tables again."),
        "rebuild": (tables.rebuild, PdbCommand, "Rebuild a lost mirror from its change log."),
        "quarantine": (
            tables.quarantine, PdbCommand, "Show which redo rows could not be decoded, and why.",
        ),
        "events": (tables.events, PdbCommand, "Print SQL that shows changes as Debezium events."),
        "purge-column": (
            tables.purge_column, PdbCommand, "Remove an excluded column from the lake.",
        ),
    },
    ("schema", "Show a table's definition and its history.",
     "Show table definitions and their history."): {
        "show": (schema.show, PdbCommand, "Columns of a table, and the history of its definition."),
    },
    ("source", "Skip redo that is permanently lost.", "Act on a whole source."): {
        "skip-gap": (data.skip_gap, PdbCommand, "Continue after redo that is permanently lost."),
    },
    ("state", "Rebuild a lost metadata store.",
     "Recover the metadata store: positions, windows, chunks and states of tables."): {
        "rebuild": (state.rebuild, PdbCommand, "Rebuild the store from landing and lake."),
    },
    ("xstream", "Record an XStream outbound server.",
     "Record what an XStream outbound server gives."): {
        "record": (xstream.record, PdbCommand, None),
    },
    ("oracle", "Serve the embedded Oracle.", "The embedded Oracle, for trials and tests."): {
        "serve": (host.serve, None, None),
    },
}  # fmt: skip
"""Groups of commands: name, line in a list, and help."""
WITHOUT_PDB = {"oracle", *(name for name, (_, kind, _) in COMMANDS.items() if kind is None)}


def _add(group: typer.Typer, commands: Commands) -> None:
    for name, (command, kind, short_help) in commands.items():
        group.command(name, short_help=short_help, cls=kind)(command)


_add(app, COMMANDS)
for (name, short_help, said), commands in GROUPS.items():
    # With a callback, a group of one command stays a group.
    group = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, help=said, callback=lambda: None
    )
    _add(group, commands)
    app.add_typer(group, name=name, short_help=short_help)


def main() -> None:
    """Entry point of the console script."""
    end_at_sigterm()
    print_any_text()
    app()


if __name__ == "__main__":
    main()
