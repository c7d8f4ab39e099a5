"""What do commands have in common: options, the opened source, how errors and results are
printed."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperGroup

from cdc_core.errors import DEBUG_HINT, REPORT_HINT, TRACEBACKS, CdcError, noticing_memory
from cdc_core.model.identifiers import TableId
from cdc_core.model.wording import counted
from pipelines.config_file import SourceFile, config_path, is_demo, load_config

if TYPE_CHECKING:
    from cdc_core.model.chunks import ChunkKey
    from cdc_core.model.scn import ScnWindow
    from cdc_core.steps import Pipeline

EXIT_TABLES_FAILED = 1
EXIT_UNFINISHED = 1
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
"""What a process that SIGTERM ended has in a shell; systemd and Kubernetes take it for an end in
order."""
STATE_COLOURS = {
    "ready": "green",
    "failed": "red",
    "snapshotting": "yellow",
    "paused": "yellow",
    "removed": "bright_black",
}

ConfigOption = Annotated[
    SourceFile | None,
    typer.Option(
        "--config",
        "-c",
        parser=SourceFile.at,
        metavar="FILE",
        help="Configuration file of the source (defs.yaml). Default: $REDOLAKE_CONFIG, else the demo's.",
    ),
]
TablesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        "-t",
        metavar="OWNER.TABLE",
        help="Only this table; repeatable. Default: all captured tables.",
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON object and nothing else to standard output. Its keys are stable; see "
        'the reference page "What --json prints".',
    ),
]


class Terminated(KeyboardInterrupt):
    """SIGTERM: systemd, a container or a scheduler wants the command to end."""


def end_at_sigterm() -> None:
    """From now on SIGTERM ends the command as Ctrl-C does: it says so, and gives leases back."""
    signal.signal(signal.SIGTERM, _terminated)


def print_any_text() -> None:
    """From now on a character that the terminal or the locale cannot show is printed as an escape:
    a table's name ends no command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _terminated(*_: object) -> None:
    raise Terminated


class ErrorReportingGroup(TyperGroup):
    """Prints our own errors as one message with the way out, without a traceback unless ``--debug``
    asks for it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error of ours ends it with exit code 2."""
        try:
            with noticing_memory():
                return super().invoke(ctx)
        except CdcError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            print_error(error)
            raise typer.Exit(EXIT_ERROR) from None
        except Exception as error:
            if type(error).__module__.startswith(("typer.", "click.")):
                raise
            if ctx.params.get("debug"):
                traceback.print_exc()
            print_error(unexpected(error))
            raise typer.Exit(EXIT_ERROR) from None
        except KeyboardInterrupt as stopped:
            err().print("Stopped. Run the same command to continue.")
            is_told = isinstance(stopped, Terminated)
            raise typer.Exit(EXIT_TERMINATED if is_told else EXIT_INTERRUPTED) from None


def unexpected(error: Exception) -> CdcError:
    """What nobody translated, without its words, which may quote values: what it is, and which of
    our lines it left last."""
    frames = traceback.extract_tb(error.__traceback__)
    named = [one for one in frames if "site-packages" not in one.filename] or list(frames)
    place = f"{Path(named[-1].filename).name}:{named[-1].lineno}" if named else "unknown"
    if isinstance(error, OSError) and error.strerror:
        return CdcError(
            f"the operating system refuses: {error.strerror}",
            hint="Free space, or correct the rights, where the file is or standard output leads to. Then run the command again.",
            **({"file": error.filename} if error.filename else {}),
            place=place,
        )
    return CdcError(
        "something failed in a way that Redolake does not know",
        hint=f"{DEBUG_HINT} {REPORT_HINT}",
        cause=type(error).__name__,
        place=place,
    )


def print_error(error: CdcError) -> None:
    """Print an error for people, on standard error."""
    console = err()
    console.print(f"[bold red]Error:[/] {escape(error.what_happened)}")
    if error.hint:
        console.print(f"[bold]What to do:[/] {escape(error.hint)}")


def set_up_logging(*, debug: bool) -> None:
    """One line per unit of work on standard error; decisions too with ``debug``."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    traces = logging.getLogger(TRACEBACKS)
    traces.handlers = [handler]
    traces.propagate = False
    traces.setLevel(logging.DEBUG if debug else logging.CRITICAL)
    logger = logging.getLogger("cdc_core")
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG if debug else logging.INFO)
    logger.propagate = False


@contextmanager
def opened(file: SourceFile | None, *, oracle: bool = True) -> Iterator[Pipeline]:
    """The source that a configuration file describes, of several that of the chosen pluggable
    database, opened for the block.

    Raises:
        ConfigError: There is no such file, or it is wrong.
    """
    file = file or SourceFile()
    path = config_path(file.named, os.environ)
    load_config(path, environ=None if is_demo(path) else os.environ)  # before anything is started

    from pipelines.without_pandas import make_arrays_without_pandas

    make_arrays_without_pandas()
    from cdc_core.config import sources_of
    from cdc_core.steps import Pipeline
    from pipelines.demo_oracle import database_of

    with database_of(path, os.environ, needed=oracle) as environ:
        config = load_config(path, environ=environ)
        chosen = config if file.pdb is None else sources_of(config)[file.pdb]
        with Pipeline(chosen) as pipeline:
            yield pipeline


def tables_of(names: list[str] | None) -> list[TableId] | None:
    """The tables that ``--table`` named, None for all.

    Raises:
        ConfigError: A name is no table name.
    """
    return [TableId.parse(name) for name in names] if names else None


def exit_if_tables_failed(pipeline: Pipeline, tables: list[TableId] | None = None) -> None:
    """Print every failed table (or those of ``tables``) with its way out, and end the command with
    exit code 1 if there is one that no policy brings back.

    The work that the command was asked for is done: what one table meets does not stop the others.
    """
    failed = [
        record
        for record in pipeline.records.tables()
        if record.state == "failed" and (tables is None or record.table in tables)
    ]
    by_policy = [record for record in failed if record.asked_by == "policy"]
    failed = [record for record in failed if record not in by_policy]
    console = err()
    for record in by_policy:
        console.print(f"[bold]{record.table} has left:[/] {escape(record.reason or '')}")
        console.print(escape(record.way_out or ""))
    for record in failed:
        console.print(f"[bold red]{record.table} has failed:[/] {escape(record.reason or '')}")
        console.print(f"[bold]What to do:[/] {escape(record.way_out or '')}")
    if failed:
        raise typer.Exit(EXIT_TABLES_FAILED)


def exit_unless_finished(pipeline: Pipeline, tables: list[TableId] | None = None) -> None:
    """End the command with exit code 1 if it leaves chunks or windows behind, or a table has failed
    (:func:`exit_if_tables_failed`); print what is left and which command continues."""
    chunks, windows = pipeline.left_behind(tables)
    if left := _left(chunks, windows):
        console = err()
        console.print(f"[bold red]Not finished:[/] {escape(left)}")
        console.print(
            "[bold]What to do:[/] `redolake run` continues. Anything still left then waits for "
            "redo from the next log switch."
        )
    exit_if_tables_failed(pipeline)
    if left:
        raise typer.Exit(EXIT_UNFINISHED)


def _left(chunks: list[ChunkKey], windows: list[ScnWindow]) -> str:
    tables = ", ".join(sorted({str(key.table) for key in chunks}))
    parts = [f"{counted(len(chunks), 'chunk')} of {tables} not applied"] if chunks else []
    if windows:
        parts.append(
            f"{counted(len(windows), 'window')} from {windows[0].key} on not applied to every table"
        )
    return "; ".join(parts)


def print_json(value: Any) -> None:
    """Print one JSON object."""
    sys.stdout.write(json.dumps(value, indent=2, default=_text_of) + "\n")


def _text_of(value: object) -> str:
    """What JSON has no form for: times, as ISO 8601."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def listing(*columns: str, right: Collection[str] = (), title: str | None = None) -> Table:
    """A table of these columns for people, those of ``right`` aligned to the right."""
    table = Table(box=None, pad_edge=False, title=title)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(column, justify=justify, overflow="fold")
    return table


class LineConsole(Console):
    """Prints a sentence as one line, however narrow the terminal: for what reads it behind a pipe,
    and for whoever copies a command from it."""

    def print(self, *objects: Any, soft_wrap: bool | None = None, **how: Any) -> None:
        """Print texts, each as one line, or a table."""
        is_line = self.soft_wrap or all(isinstance(one, str) for one in objects)
        super().print(*objects, soft_wrap=is_line if soft_wrap is None else soft_wrap, **how)


def out() -> Console:
    """The console for results. A table is as wide as a terminal, elsewhere as it needs to be."""
    return LineConsole(soft_wrap=not sys.stdout.isatty(), highlight=False)


def err() -> Console:
    """The console for errors, and for what is said beside results."""
    return LineConsole(stderr=True, soft_wrap=True, highlight=False)
