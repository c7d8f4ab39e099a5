"""Which commands has ``redolake``, with which options? Read from the Typer application itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from typer.main import get_command

from docs.tools.markdown import code, from_rst, table
from pipelines.cli import app

Words = tuple[str, ...]
_KINDS = {int: "INTEGER", float: "NUMBER", Path: "PATH", str: "TEXT"}


def commands() -> dict[Words, Any]:
    """Every command and group by the words that call it; ``()`` is ``redolake`` itself."""
    return dict(_below((), get_command(app)))


def option_names(command: Any) -> set[str]:
    """The options that a command takes, help included."""
    names = {name for parameter in command.params for name in parameter.opts if name[:1] == "-"}
    names |= {name for parameter in command.params for name in parameter.secondary_opts}
    return names | {"--help"}


def markdown() -> str:
    """The reference: one section per command."""
    lines: list[str] = []
    for path, command in commands().items():
        if _is_group(command) and path:
            continue
        title = " ".join(("redolake", *path))
        lines += [f"## `{title}`", "", _help(command), ""]
        rows = [_row(one) for one in command.params if not _is_internal(one)]
        if rows:
            lines += [table(("argument or option", "default", "meaning"), rows), ""]
    return "\n".join(lines)


def _below(path: Words, command: Any) -> Iterator[tuple[Words, Any]]:
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        if not one.hidden:
            yield from _below((*path, name), one)


def _is_group(command: Any) -> bool:
    return bool(getattr(command, "commands", None))


def _is_internal(parameter: Any) -> bool:
    return bool(parameter.hidden) or str(parameter.name).endswith("_completion")


def _help(command: Any) -> str:
    paragraphs = (command.help or "").split("\n\n")
    return "\n\n".join(" ".join(from_rst(part).split()) for part in paragraphs)


def _row(parameter: Any) -> tuple[str, str, str]:
    is_argument = parameter.opts[0][:1] != "-"
    names = [parameter.metavar or parameter.name.upper()] if is_argument else parameter.opts
    name = ", ".join(code(one) for one in names)
    takes_value = not is_argument and not parameter.is_flag
    if takes_value:
        name += f" {code(parameter.metavar or _kind(parameter))}"
    default = parameter.default
    shown = "none" if default in (None, False, (), []) or callable(default) else code(str(default))
    return name, shown, from_rst(getattr(parameter, "help", "") or "")


def _kind(parameter: Any) -> str:
    """What an option's value is, from its annotation."""
    kinds = [*get_args(parameter.type_descriptor.annotation), parameter.type_descriptor.annotation]
    return next((_KINDS[kind] for kind in kinds if kind in _KINDS), "TEXT")
