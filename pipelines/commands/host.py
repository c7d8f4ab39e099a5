"""Commands about this machine: setup, doctor, demo, ui, oracle serve."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipelines.commands.shared import ConfigOption, JsonOption, out, print_json
from pipelines.config_file import config_path, load_config

if TYPE_CHECKING:
    from cdc_core.config import SourceConfig


def setup(
    s3: Annotated[
        bool, typer.Option("--s3", help="Also fetch what a lake on S3 needs: 34 jars, 14 MB.")
    ] = False,
) -> None:
    """Fetch what Spark needs (Delta's two jars; a Java if there is none), once. Safe to repeat."""
    from pipelines.setup import prepare, set_up

    def say(line: str) -> None:
        out().print(line)

    prepare(java=set_up(s3=s3, say=say).java, say=say)


def doctor(
    config: ConfigOption = None,
    sql: Annotated[
        Path | None,
        typer.Option(
            "--sql",
            metavar="FILE|-",
            help="Write the statements that the database lacks as a script for its administrator.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what is installed, what is missing, and how to fix it. Exit code 1 when something is
    missing.

    With a configuration (--config or $REDOLAKE_CONFIG) the command also checks the source's
    database and stores.

    --sql FILE writes a script for the database administrator instead ("-": to standard output):
    the missing statements for the platform (with and without containers, a pluggable database
    without its root, Amazon RDS, Autonomous Database), recommendations, and the statements that
    undo all of it. The capture user must be able to connect.
    """
    from pipelines import doctor as examination
    from pipelines.demo_oracle import database_of

    path = config_path(config.named if config else None, os.environ)
    if sql is not None:
        with database_of(path, os.environ) as environ:
            _write_script(sql, load_config(path, environ=environ))
        return
    if config is None and not path.exists():
        checks = examination.examine()
    else:
        with database_of(path, os.environ) as environ:
            checks = examination.examine(load_config(path, environ=environ))
    if json:
        print_json(examination.as_json(checks))
    else:
        examination.show(checks, out())
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _write_script(file: Path, config: SourceConfig) -> None:
    """Write what the source's database lacks to a file, or to standard output."""
    from cdc_core.steps.source_checks import missing_sql

    script = missing_sql(config)
    if str(file) == "-":
        typer.echo(script, nl=False)
        return
    file.write_text(script, encoding="utf-8")
    out().print(f"{file} is for the database administrator.")


def demo(
    scale: Annotated[
        str, typer.Option("--scale", help="How many flights: day, month or year.")
    ] = "day",
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Folder for the demo's files.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Remove the files of an earlier demo.")
    ] = False,
    spark: Annotated[
        str | None,
        typer.Option(
            "--spark",
            help="Master of a cluster (spark://host:7077) whose machines see --folder under the "
            "same path.",
        ),
    ] = None,
    merge: Annotated[
        Literal["auto", "spark"],
        typer.Option("--merge", help="spark: use Spark's MERGE for every window (lake.merge)."),
    ] = "auto",
    capture: Annotated[
        Literal["logminer", "openlogreplicator", "xstream"],
        typer.Option(
            "--capture",
            help="The reader of redo (capture.type): LogMiner, or a reader of the files that the "
            "embedded Oracle writes instead of OpenLogReplicator or XStream.",
        ),
    ] = "logminer",
) -> None:
    """Copy real flights from an Oracle database into Delta Lake, and verify that both are equal.

    You need no Oracle: the command starts an embedded one. Exits with code 1 on a difference.
    """
    from pipelines.demo.run import run_demo
    from pipelines.demo.settings import SCALES, DemoSettings

    if scale not in SCALES:
        raise typer.BadParameter(f"write one of {', '.join(SCALES)}", param_hint="--scale")
    if spark is not None and not spark.startswith(("spark://", "local")):
        raise typer.BadParameter("write spark://host:port", param_hint="--spark")
    if logging.getLogger("cdc_core").level == logging.INFO:
        logging.getLogger("cdc_core").setLevel(logging.WARNING)  # the demo shows each step itself
    how = DemoSettings(scale=scale, capture=capture, spark=spark, merge=merge)
    raise typer.Exit(run_demo(how, folder=folder, fresh=fresh))


def ui(
    port: Annotated[int, typer.Option("--port", help="Port of the web page on 127.0.0.1.")] = 3000,
    config: ConfigOption = None,
) -> None:
    """Open Dagster's UI for a source: chunks and windows as partitions, lineage, sensors. Ctrl-C
    stops it.

    Dagster's own files go to .redolake/dagster next to the configuration file, unless DAGSTER_HOME
    is set.
    """
    from pipelines.ui import serve_ui

    raise typer.Exit(
        serve_ui(
            config_path(config.named if config else None, os.environ), port=port, console=out()
        )
    )


def serve(
    port: Annotated[
        int, typer.Option("--port", help="Port on 127.0.0.1; 0 lets the system choose.")
    ] = 0,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder for the database. Default: a temporary one."),
    ] = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema", help="Schema to create if it does not exist; repeatable. Default: DEMO."
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            "--show", help="An oddity of LogMiner to show, such as LATE_REDO; repeatable."
        ),
    ] = None,
    hide: Annotated[
        list[str] | None, typer.Option("--hide", help="An oddity not to show; repeatable.")
    ] = None,
    character_set: Annotated[
        str,
        typer.Option(
            "--character-set", help="Of a new database, such as WE8MSWIN1252. Default: AL32UTF8."
        ),
    ] = "",
    national_character_set: Annotated[
        str,
        typer.Option("--national-character-set", help="AL16UTF16, the default, or UTF8."),
    ] = "",
    nls_sort: Annotated[
        str,
        typer.Option("--nls-sort", help="NLS_SORT of new sessions, such as BINARY_CI or GERMAN."),
    ] = "",
    nls_comp: Annotated[
        str, typer.Option("--nls-comp", help="NLS_COMP of new sessions: BINARY or LINGUISTIC.")
    ] = "",
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            metavar="FILE",
            help="Behave as the database that this report of `redolake certify` is about.",
        ),
    ] = None,
    openlogreplicator: Annotated[
        str,
        typer.Option(
            "--openlogreplicator",
            metavar="FOLDER|PORT",
            help="Also write changes in OpenLogReplicator's format: into files of a folder, or to "
            "the client of a port on 127.0.0.1.",
        ),
    ] = "",
    xstream: Annotated[
        Path | None,
        typer.Option(
            "--xstream",
            metavar="FOLDER",
            help="Also write changes as recordings of an XStream outbound server.",
        ),
    ] = None,
    with_parent: Annotated[
        bool,
        typer.Option(
            "--with-parent",
            help="End when standard input is closed, as it is when the starting process ends.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run the embedded Oracle for experiments, until Ctrl-C. Never use it for production data.

    --json prints one line with dsn, user and password (of the first schema's owner), capture_user,
    capture_password, admin_user, admin_password, schemas (passwords by name) and port.
    """
    from pipelines.extras import require_embedded_oracle

    require_embedded_oracle()

    from pipelines.oracle_serve import DEFAULT_SCHEMA
    from pipelines.oracle_serve import serve as serve_oracle

    raise typer.Exit(
        serve_oracle(
            port=port,
            data=data,
            schemas=schema or (DEFAULT_SCHEMA,),
            as_json=json,
            with_parent=with_parent,
            show=show or (),
            hide=hide or (),
            character_set=character_set,
            national_character_set=national_character_set,
            nls_sort=nls_sort,
            nls_comp=nls_comp,
            like=like,
            openlogreplicator=openlogreplicator,
            xstream=xstream,
        )
    )
