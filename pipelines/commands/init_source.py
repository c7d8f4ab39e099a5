"""``redolake init``: a configuration file from a live database."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdc_core.errors import ConfigError
from pipelines.commands.shared import out

if TYPE_CHECKING:
    from cdc_core.model.reports import FoundTable

INDENT = "    "
REPLICATOR_VERSION = "1.9.0"
QUEUE_SIZE = 65536
"""The default of ``capture.queue_size``."""
FILE_BYTES = 1_000_000_000


def init(
    dsn: Annotated[str, typer.Option("--dsn", help="Connect string: host:port/service.")],
    user: Annotated[str, typer.Option("--user", help="The capture user (deploy/oracle makes it).")],
    password_env: Annotated[
        str, typer.Option("--password-env", help="Environment variable with the user's password.")
    ],
    table: Annotated[
        list[str],
        typer.Option(
            "--table",
            "-t",
            metavar="PATTERN",
            help="Tables, for example 'SHOP.*'; repeatable.",
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="Name of the source; it never changes.")],
    as_patterns: Annotated[
        bool,
        typer.Option(
            "--as-patterns",
            help="Write the patterns themselves, so that tables created later are captured too.",
        ),
    ] = False,
    openlogreplicator: Annotated[
        str | None,
        typer.Option(
            "--openlogreplicator",
            metavar="FOLDER|HOST:PORT",
            help="Read through OpenLogReplicator: from files in this folder, or its network writer. "
            "Its configuration is written next to the file.",
        ),
    ] = None,
    file: Annotated[
        Path, typer.Option("--file", "-f", help="File to write; it must not exist.")
    ] = Path("defs.yaml"),
) -> None:
    """Write a configuration file from a live database: the tables that match patterns, with keys
    and sizes.

    Tables that cannot be captured are left out, with the reason. Review the file, then run
    `redolake doctor --config FILE`.
    """
    from pydantic import ValidationError

    from cdc_core.config import OracleConfig
    from cdc_core.steps.examining import tables_matching

    if file.exists():
        raise ConfigError(
            "this file is there already", hint="Name another with --file, or remove it.", file=file
        )
    password = os.environ.get(password_env)
    if password is None:
        raise ConfigError(
            "the environment variable for the password is not set",
            hint=f"export {password_env}=… first.",
            variable=password_env,
        )
    try:
        oracle = OracleConfig.model_validate({"dsn": dsn, "user": user, "password": password})
    except ValidationError as error:
        raise ConfigError(
            f"--dsn: {error.errors(include_input=False)[0]['msg']}",
            hint="Write it as host:port/service, as a descriptor, or as a name of tnsnames.ora.",
        ) from None
    found = tables_matching(oracle, table)
    captured = [one for one in found if not one.left_out]
    if not captured:
        raise ConfigError(
            "no table that can be captured matches",
            hint="Check the pattern and its upper and lower case; the capture user sees only tables that were granted to it.",
            patterns=", ".join(table),
        ).listing([f"{one.table}: {one.left_out}" for one in found])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        configuration_text(
            name,
            dsn=dsn,
            user=user,
            password_env=password_env,
            tables=_patterns(table, found) if as_patterns else _tables(found),
            capture=[] if openlogreplicator is None else capture_lines(openlogreplicator, name),
        )
    )
    if openlogreplicator is not None:
        beside = file.with_name(f"{file.stem}.openlogreplicator.json")
        beside.write_text(replicator_text(name, dsn, openlogreplicator, captured))
        out().print(
            f"OpenLogReplicator's configuration written to {beside}: set its user and password",
            soft_wrap=True,
        )
    how = ", by their patterns" if as_patterns else ""
    out().print(f"{len(captured)} tables written to {file}{how}", soft_wrap=True)
    for one in found:
        if one.left_out:
            out().print(f"Left out: {one.table}: {one.left_out}", soft_wrap=True)
    out().print(f"Next: redolake doctor --config {file}", soft_wrap=True)


def configuration_text(
    name: str,
    *,
    dsn: str,
    user: str,
    password_env: str,
    tables: list[str],
    capture: Sequence[str] = (),
) -> str:
    """The configuration file; ``tables`` and ``capture`` are the lines under these keys."""
    lines = [
        "# Written by `redolake init`. Every option: the reference page Configuration.",
        "type: assets.components.OracleCdc",
        "attributes:",
        f"  name: {name}",
        "  oracle:",
        f"    dsn: {_quoted(dsn)}",
        f"    user: {_quoted(user)}",
        f"    password_env: {password_env}",
        "  tables:",
        *(f"{INDENT}{line}" for line in tables),
        *(["  capture:", *(f"{INDENT}{line}" for line in capture)] if capture else ()),
        "  landing: {type: local, path: data/landing}",
        "  lake: {path: data/lake}",
        "  state: {url: 'sqlite:///data/state.db'}",
    ]
    return "\n".join(lines) + "\n"


def capture_lines(written_to: str, name: str) -> list[str]:
    """``capture`` of a source that reads through OpenLogReplicator."""
    host, port = _listens_at(written_to)
    lines = ["type: openlogreplicator"]
    if host:
        return [*lines, f"host: {_quoted(host)}", f"port: {port}", f"source: {name.upper()}"]
    return [*lines, f"folder: {_quoted(written_to)}"]


def replicator_text(name: str, dsn: str, written_to: str, captured: Sequence[FoundTable]) -> str:
    """OpenLogReplicator's configuration for the captured tables; its filter has regular
    expressions."""
    host, port = _listens_at(written_to)
    writer: dict[str, Any] = (
        {"type": "network", "uri": f"0.0.0.0:{port}", "queue-size": QUEUE_SIZE}
        if host
        else {
            "type": "file",
            "output": f"{written_to}/changes_%i.json",
            "new-line": 1,
            "append": 1,
            "max-file-size": FILE_BYTES,
        }
    )
    source = {
        "alias": "S1",
        "name": name.upper(),
        "reader": {"type": "online", "user": "", "password": "", "server": f"//{dsn}"},
        "flags": 4128,
        "format": {"type": "debezium", "timestamp": 8},
        "filter": {
            "table": [
                {"owner": re.escape(one.table.owner), "table": re.escape(one.table.name)}
                for one in captured
            ]
        },
    }
    target = {"alias": "T1", "source": "S1", "writer": writer}
    made = {"version": REPLICATOR_VERSION, "source": [source], "target": [target]}
    return json.dumps(made, indent=2) + "\n"


def _listens_at(written_to: str) -> tuple[str, str]:
    """Host and port; empty where it is a folder."""
    host, colon, port = written_to.rpartition(":")
    return (host, port) if colon and port.isdigit() and "/" not in host else ("", "")


def _tables(found: list[FoundTable]) -> list[str]:
    """An entry for each table, and as comments what is left out."""
    return _entries(found) + _left_out(found)


def _entries(found: list[FoundTable]) -> list[str]:
    lines = []
    for one in found:
        if one.left_out:
            continue
        lines.append(f"- name: {_quoted(str(one.table))}  # {_facts(one)}")
        if one.columns_exclude:
            names = ", ".join(map(_quoted, one.columns_exclude))
            lines.append(f"  columns_exclude: [{names}]  # types that are not captured")
    return lines


def _patterns(patterns: list[str], found: list[FoundTable]) -> list[str]:
    """The patterns, and as comments what they name now; a table that is named in full has its own
    entry."""
    from cdc_core.model.patterns import TablePattern

    lines = [f"- name: {_quoted(text)}" for text in patterns if TablePattern.is_in(text)]
    whole = [TablePattern.parse(text) for text in patterns if not TablePattern.is_in(text)]
    named = [one for one in found if any(pattern.matches(one.table) for pattern in whole)]
    lines += [*_entries(named), "# The patterns name now:"]
    for one in found:
        if not one.left_out and one not in named:
            without = ", ".join(one.columns_exclude)
            columns = f", without {without}" if without else ""
            lines.append(f"#   {one.table}: {_facts(one)}{columns}")
    return lines + _left_out(found)


def _left_out(found: list[FoundTable]) -> list[str]:
    lines = [f"#   {one.table}: {one.left_out}" for one in found if one.left_out]
    return ["# Left out:", *lines] if lines else []


def _facts(one: FoundTable) -> str:
    rows = "" if one.rows is None else f", about {one.rows:,} rows"
    return f"key {', '.join(one.key)}{rows}"


def _quoted(text: str) -> Any:
    """A scalar for YAML; single quotes say nothing but themselves."""
    return "'" + text.replace("'", "''") + "'"
