"""The command that asks a database whether what Redolake believes of Oracle is true of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cdc_core.errors import ConfigError
from cdc_core.model.wording import counted
from pipelines.commands.shared import ConfigOption, JsonOption, out, print_json
from pipelines.config_file import SourceFile, config_path, load_config

if TYPE_CHECKING:
    from cdc_core.config import SourceConfig
    from diagnosis.certify import Found, Level, Report, Scratch

EXIT_REFUTED = 1
PASSWORD_ENV = "REDOLAKE_CERTIFY_PASSWORD"  # noqa: S105 - its name
_COLOURS = {"holds": "green", "otherwise": "red", "cannot tell": "bright_black"}


def certify(
    level: Annotated[
        list[str] | None,
        typer.Option("--level", help="How far to go; repeatable. Default: look."),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            metavar="NAME",
            help="For level try: an empty schema whose owner may create tables. The command reads "
            "the owner's password from $REDOLAKE_CERTIFY_PASSWORD, or asks for it.",
        ),
    ] = None,
    to: Annotated[
        list[Path] | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Also write the report to this file: .json or .html; repeatable.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--all", help="Also list the assumptions that hold.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Test on your database what Redolake assumes about Oracle.

    Each probe tests one assumption. Level look reads the dictionary and V$ views, for a few
    seconds. Level mine reads the newest redo of the captured tables with LogMiner, and lands
    nothing. Level try creates tables named REDOLAKE_CERTIFY_… in a schema that you name, changes
    them, reads their redo, and drops them; it takes a minute or two.

    The report contains no values and no names of your tables: you can send it to the maintainers
    of Redolake, and `redolake oracle serve --like` makes the embedded Oracle behave accordingly.

    Exits with code 1 if a required assumption does not hold.
    """
    from cdc_core.steps.source_checks import as_found_now
    from diagnosis.certify import certify as certified
    from pipelines.demo_oracle import database_of

    levels = _levels(level or [])
    _check_targets(to or [])
    file = config or SourceFile()
    path = config_path(file.named, os.environ)
    load_config(path, environ=None)
    with database_of(path, os.environ) as environ:
        chosen = as_found_now(_chosen(load_config(path, environ=environ), file.pdb))
        report = certified(chosen, levels, scratch=_scratch(schema))
    for path in to or ():
        path.write_text(_FORMS[path.suffix](report), encoding="utf-8")
    if json:
        print_json(report.as_json())
    else:
        show(report, out(), every=verbose)
    if not report.is_certified:
        raise typer.Exit(EXIT_REFUTED)


def show(report: Report, console: Console, *, every: bool = False) -> None:
    """Print the counts by subject; then what does not hold, with what follows, and what the
    database does not show; with ``every`` the rest too."""
    subjects: dict[str, list[Found]] = {}
    for one in report.found:
        subjects.setdefault(one.probe.subject, []).append(one)
    table = Table("Subject", "Holds", "Otherwise", "Cannot tell", box=None, pad_edge=False)
    for subject, found in subjects.items():
        counts = [sum(str(one.verdict.outcome) == name for one in found) for name in _COLOURS]
        table.add_row(subject, *[str(count) if count else "" for count in counts])
    console.print(table)
    for outcome in ("holds", "cannot tell", "otherwise"):
        for one in report.found:
            if str(one.verdict.outcome) == outcome and (every or outcome != "holds"):
                _print_found(one, console)
    console.print()
    console.print(_summary(report))


def _print_found(one: Found, console: Console) -> None:
    outcome = str(one.verdict.outcome)
    console.print(
        f"\n[{_COLOURS[outcome]}]{outcome}[/]  {one.probe.id}: {escape(one.probe.belief)}"
    )
    console.print(f"  Seen: {escape(one.verdict.seen)}.")
    if outcome == "otherwise":
        console.print(f"  Depends on it: {escape(one.probe.depends)}")
        console.print(f"  What follows: {escape(one.probe.otherwise)}")


def _summary(report: Report) -> str:
    refuted = sum(one.is_wrong for one in report.found)
    probes = counted(len(report.found), "probe")
    if refuted:
        failed = "assumption does" if refuted == 1 else "assumptions do"
        return f"[bold red]{probes}: {refuted} required {failed} not hold here.[/]"
    unknown = sum(str(one.verdict.outcome) == "cannot tell" for one in report.found)
    rest = f"; {unknown} cannot tell" if unknown else ""
    return f"[bold green]{probes}: all required assumptions hold here{rest}.[/]"


def _levels(names: list[str]) -> list[Level]:
    from diagnosis.certify import PROBES, Level

    known = {str(level): level for level in PROBES}
    for name in names:
        if name not in known:
            raise ConfigError(
                "there is no such level", hint=f"Choose from {', '.join(known)}.", level=name
            )
    return [level for level in PROBES if str(level) in names] or [Level.LOOK]


def _page(report: Report) -> str:
    from diagnosis.certify import page

    return page(report)


_FORMS: dict[str, Callable[[Report], str]] = {".json": lambda one: one.text(), ".html": _page}


def _check_targets(paths: list[Path]) -> None:
    for path in paths:
        if path.suffix not in _FORMS:
            raise ConfigError(
                "a report is written as .json or .html",
                hint="Name a file that ends with one of them.",
                file=path.name,
            )


def _scratch(schema: str | None) -> Scratch | None:
    """The schema with its owner's password, from the environment or the terminal.

    Raises:
        ConfigError: There is no password, and nobody to ask.
    """
    if schema is None:
        return None
    from pydantic import SecretStr

    from diagnosis.certify import Scratch

    password = os.environ.get(PASSWORD_ENV)
    if password is None:
        if not sys.stdin.isatty():
            raise ConfigError(
                "the scratch schema's password is not there",
                hint=f"Set {PASSWORD_ENV} to the password of the schema's owner.",
                schema=schema,
            )
        password = typer.prompt(f"Password of {schema}", hide_input=True, err=True)
    return Scratch(schema.upper(), SecretStr(str(password)))


def _chosen(config: SourceConfig, pdb: str | None) -> SourceConfig:
    from cdc_core.config import sources_of

    return config if pdb is None else sources_of(config)[pdb]
