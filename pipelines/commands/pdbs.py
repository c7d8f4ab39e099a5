"""What does a command do where one configuration names several pluggable databases?

Each is a source of its own. A command that shows or carries everything does so for each, one after
the other, and one that stops leaves the others alone; a command about certain tables or windows
wants ``--pdb``.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from cdc_core.errors import CdcError, ConfigError
from cdc_core.model.identifiers import container_name
from pipelines.commands.shared import (
    EXIT_ERROR,
    collecting_json,
    opened,
    out,
    print_error,
    print_json,
    tables_of,
    working_on,
)
from pipelines.config_file import config_path, load_config

if TYPE_CHECKING:
    from cdc_core.steps import Pipeline

Command = Callable[..., None]
Together = Callable[..., None]
PdbOption = Annotated[
    str | None,
    typer.Option(
        "--pdb",
        metavar="NAME",
        help="Only this one of the pluggable databases that oracle.pdbs lists.",
    ),
]
_LISTED = "pdbs"


def for_each(command: Command) -> Command:
    """The command with ``--pdb``; without it, it works on each pluggable database."""
    return _with_pdb(command, lambda names, given: each(command, names, given))


def for_one(command: Command) -> Command:
    """The command with ``--pdb``, which it needs where there are several pluggable databases."""
    return _with_pdb(command, lambda names, _: _refuse_all(command, names))


def together(command: Command, several: Together) -> Command:
    """The command with ``--pdb``; of several pluggable databases ``several`` does the work, given
    their names first."""
    return _with_pdb(command, lambda names, given: several(names, **given))


@contextmanager
def all_opened(names: Sequence[str], config: Path | None) -> Iterator[dict[str, Pipeline]]:
    """The sources of pluggable databases, by name, opened for the block."""
    with ExitStack() as stack:
        pipelines = {}
        for name in names:
            with working_on(name):
                pipelines[name] = stack.enter_context(opened(config))
        yield pipelines


def print_stopped(name: str, error: CdcError) -> None:
    """Say which pluggable database an error is about, on standard error."""
    Console(stderr=True, highlight=False).print(f"[bold]{escape(name)}[/] stopped:")
    print_error(error)


def _with_pdb(
    command: Command, several: Callable[[Sequence[str], dict[str, Any]], None]
) -> Command:
    @wraps(command)
    def run(pdb: str | None = None, **given: Any) -> None:
        listed = pdbs_of(given["config"])
        if pdb is not None:
            with working_on(_chosen(pdb, listed)):
                command(**given)
        elif len(listed) == 1:
            with working_on(listed[0]):
                command(**given)
        elif listed:
            several(listed, given)
        else:
            command(**given)

    signature = inspect.signature(command, eval_str=True)
    added = inspect.Parameter(
        "pdb", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=PdbOption
    )
    parameters = [*signature.parameters.values(), added]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def pdbs_of(config: Path | None) -> Sequence[str]:
    """The pluggable databases that a configuration lists; none where there is no such file, which
    the command will say."""
    path = config_path(config, os.environ)
    try:
        if _LISTED not in path.read_text(encoding="utf-8"):
            return ()  # most files, and reading them takes half a second
    except (OSError, UnicodeDecodeError):
        return ()
    return load_config(path, environ=None).oracle.pdbs


def _chosen(pdb: str, listed: Sequence[str]) -> str:
    named = next((one for one in (pdb, container_name(pdb)) if one in listed), None)
    if named is None:
        raise ConfigError(
            "the configuration lists no such pluggable database",
            hint=f"oracle.pdbs lists {', '.join(listed)}."
            if listed
            else "Leave --pdb out: oracle.pdbs lists none.",
            pdb=pdb[:128],
        )
    return named


def _refuse_all(command: Command, names: Sequence[str]) -> None:
    raise ConfigError(
        "the configuration lists several pluggable databases, and this command works on one",
        hint=f"Add --pdb with one of {', '.join(names)}.",
        command=command.__name__.replace("_", "-"),
    )


def each(command: Command, names: Sequence[str], given: dict[str, Any], **more: Any) -> None:
    """Run a command for each pluggable database, about tables that are named where these are
    captured. ``more`` is added to the documents that ``--json`` prints."""
    codes = []
    found: dict[str, Any] = {}
    for name, own in _given_to(names, given).items():
        with working_on(name), collecting_json(bool(given.get("json"))) as printed:
            if printed is None:
                out().print(f"[bold]{escape(name)}[/]")
            try:
                command(**own)
            except typer.Exit as ended:
                codes.append(ended.exit_code)
            except CdcError as error:
                print_stopped(name, error)
                codes.append(EXIT_ERROR)
        found[name] = printed[0] if printed else None
    if given.get("json"):
        print_json({"pdbs": found, **more})
    if any(codes):
        raise typer.Exit(max(codes))


def _given_to(names: Sequence[str], given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each pluggable database's command is given: of tables that are named, those that it
    captures. Where nobody captures any, all are given all, and say so."""
    asked = tables_of(given.get("table"))
    if not asked:
        return dict.fromkeys(names, given)
    found = {}
    for name in names:
        with working_on(name), opened(given["config"], oracle=False) as pipeline:
            captured = {one.table for one in pipeline.config.tables}
        own = [str(table) for table in asked if table in captured]
        if own:
            found[name] = {**given, "table": own}
    return found or dict.fromkeys(names, given)
