"""What does a command do where one configuration names several pluggable databases?

Each is a source of its own. A command that shows or carries everything does so for each, one after
the other, and one that stops does not affect the others; a command about certain tables or windows
wants ``redolake --pdb NAME``.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

from cdc_core.errors import CdcError, ConfigError
from cdc_core.model.identifiers import container_name
from pipelines.commands.shared import (
    EXIT_ERROR,
    err,
    opened,
    out,
    print_error,
    print_json,
    tables_of,
)
from pipelines.config_file import SourceFile, config_path, load_config

if TYPE_CHECKING:
    from cdc_core.steps import Pipeline

Command = Callable[..., None]
_LISTED = "pdbs"


class PdbCommand(TyperCommand):
    """A command on one source: on that of ``--pdb`` where there are several pluggable databases."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command on the chosen source, or for several."""
        file = ctx.params["config"] or SourceFile()
        listed, chosen = pdbs_of(file), ctx.find_root().params.get("_pdb")
        if chosen is None and len(listed) > 1:
            return self.run_for_all(listed, {**ctx.params, "config": file})
        name = listed[0] if chosen is None and listed else chosen and _chosen(chosen, listed)
        ctx.params["config"] = replace(file, pdb=name)
        return super().invoke(ctx)

    def run_for_all(self, names: Sequence[str], given: dict[str, Any]) -> None:
        """What several pluggable databases need without ``--pdb``: this one refuses them.

        Raises:
            ConfigError: The command works on one.
        """
        del given
        raise ConfigError(
            "the configuration lists several pluggable databases, and this command works on one",
            hint=f"Add --pdb with one of {', '.join(names)}: `redolake --pdb {names[0]} {self.name}`.",
            command=self.name,
        )


class EachPdbCommand(PdbCommand):
    """A command that works on each pluggable database in turn without ``--pdb``."""

    def run_for_all(self, names: Sequence[str], given: dict[str, Any]) -> None:
        """Run it for each."""
        assert self.callback is not None
        each(self.callback, names, given)


def together(several: Command) -> type[PdbCommand]:
    """A command for which ``several`` does the work of several pluggable databases without
    ``--pdb``, given their names first."""

    class Together(PdbCommand):
        def run_for_all(self, names: Sequence[str], given: dict[str, Any]) -> None:
            several(names, **given)

    return Together


@contextmanager
def all_opened(names: Sequence[str], file: SourceFile) -> Iterator[dict[str, Pipeline]]:
    """The sources of pluggable databases, by name, opened for the block."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(opened(replace(file, pdb=name))) for name in names}


def print_stopped(name: str, error: CdcError) -> None:
    """Say which pluggable database an error is about, on standard error."""
    err().print(f"[bold]{escape(name)}[/] stopped:")
    print_error(error)


def pdbs_of(file: SourceFile) -> Sequence[str]:
    """The pluggable databases that a configuration lists; none where there is no such file, which
    the command will say."""
    path = config_path(file.named, os.environ)
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


def each(command: Command, names: Sequence[str], given: dict[str, Any], **more: Any) -> None:
    """Run a command for each pluggable database, about tables that are named where these are
    captured. ``more`` is added to the documents that ``--json`` prints."""
    codes = []
    found: dict[str, Any] = {}
    for name, own in _given_to(names, given).items():
        printed = io.StringIO()
        with ExitStack() as stack:
            if given.get("json"):
                stack.enter_context(redirect_stdout(printed))
            else:
                out().print(f"[bold]{escape(name)}[/]")
            try:
                command(**own)
            except typer.Exit as ended:
                codes.append(ended.exit_code)
            except CdcError as error:
                print_stopped(name, error)
                codes.append(EXIT_ERROR)
        found[name] = json.loads(printed.getvalue()) if printed.getvalue() else None
    if given.get("json"):
        print_json({"pdbs": found, **more})
    if any(codes):
        raise typer.Exit(max(codes))


def _given_to(names: Sequence[str], given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each pluggable database's command is given: of tables that are named, those that it
    captures. Where nobody captures any, all are given all, and say so."""
    files = {name: replace(given["config"], pdb=name) for name in names}
    everything = {name: {**given, "config": file} for name, file in files.items()}
    asked = tables_of(given.get("table"))
    if not asked:
        return everything
    found = {}
    for name, file in files.items():
        with opened(file, oracle=False) as pipeline:
            captured = {one.table for one in pipeline.config.tables}
        own = [str(table) for table in asked if table in captured]
        if own:
            found[name] = {**everything[name], "table": own}
    return found or everything
