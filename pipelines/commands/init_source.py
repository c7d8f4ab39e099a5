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
from cdc_core.model.wording import counted
from pipelines.commands.shared import out

if TYPE_CHECKING:
    from cdc_core.model.proposals import NumberForm, Proposal, TableProposal

INDENT = "    "
REPLICATOR_VERSION = "1.9.0"
QUEUE_SIZE = 1_000_000
"""Messages that the network writer holds, checkpoints included."""
FILE_BYTES = 1_000_000_000
COPIED_FROM, COPIED_BYTES = "/data/olr", 64_000_000
"""Where OpenLogReplicator writes if Redolake reads objects, which somebody copies from there; a
file that grows is copied whole each time."""


def init(
    dsn: Annotated[str, typer.Option("--dsn", help="Connect string: host:port/service.")],
    user: Annotated[str, typer.Option("--user", help="The capture user (see deploy/oracle).")],
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
            help="Write the patterns themselves, so that Redolake also captures later tables.",
        ),
    ] = False,
    openlogreplicator: Annotated[
        str | None,
        typer.Option(
            "--openlogreplicator",
            metavar="FOLDER|HOST:PORT",
            help="Read through OpenLogReplicator: from files in this folder, which may be in an "
            "object store (s3://bucket/path), or from its network writer. Also writes its "
            "configuration, next to the file.",
        ),
    ] = None,
    xstream: Annotated[
        str | None,
        typer.Option(
            "--xstream",
            metavar="FOLDER|SERVER",
            help="Read through XStream: from recordings in this folder, or an outbound server.",
        ),
    ] = None,
    file: Annotated[
        Path, typer.Option("--file", "-f", help="File to write; it must not exist.")
    ] = Path("defs.yaml"),
) -> None:
    """Write a configuration file from a live database: the tables that match patterns, with keys
    and sizes.

    Redolake looks at up to 100,000 rows of each table that has NUMBER columns without precision,
    which become text: it writes `columns_as` for keys with whole numbers, and a comment for the
    others. Tables that cannot be captured are left out, with the reason. Review the file, then run
    `redolake doctor --config FILE`.
    """
    from pydantic import ValidationError

    from cdc_core.config import OracleConfig
    from cdc_core.steps.table_proposals import propose

    if file.exists():
        raise ConfigError(
            "this file already exists", hint="Name another with --file, or remove it.", file=file
        )
    _check_name(name)
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
    proposal = propose(oracle, table)
    captured = proposal.captured
    if not captured:
        raise ConfigError(
            "no table that can be captured matches",
            hint="Check the pattern and its upper and lower case; the capture user sees only tables that were granted to it.",
            patterns=", ".join(table),
        ).listing([_why_not(one) for one in proposal.tables])
    file.parent.mkdir(parents=True, exist_ok=True)
    text = configuration_text(
        name,
        dsn=dsn,
        user=user,
        password_env=password_env,
        tables=_patterns(table, proposal) if as_patterns else _tables(proposal),
        capture=capture_lines(openlogreplicator, xstream, name),
    )
    file.write_text(text, encoding="utf-8")
    if openlogreplicator is not None:
        beside = file.with_name(f"{file.stem}.openlogreplicator.json")
        beside.write_text(replicator_text(name, dsn, openlogreplicator, captured), encoding="utf-8")
        out().print(
            f"OpenLogReplicator's configuration written to {beside}: set its user and password"
        )
    how = ", by their patterns" if as_patterns else ""
    out().print(f"{counted(len(captured), 'table')} written to {file}{how}")
    for line in [*_size_lines(proposal), *_number_lines(captured, as_patterns=as_patterns)]:
        out().print(line)
    for one in proposal.tables:
        if one.found.left_out:
            out().print(f"Left out: {_why_not(one)}")
    out().print(f"Next: redolake doctor --config {file}")


def _check_name(name: str) -> None:
    from pydantic import TypeAdapter, ValidationError

    from cdc_core.config import Name

    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise ConfigError(
            "this is not a name of a source",
            hint="Write lower-case letters, digits and _, beginning with a letter, at most 40 "
            "characters.",
            name=name,
        ) from None


def _size_lines(proposal: Proposal) -> list[str]:
    """Rows, disk and minutes of the first snapshot, as far as they are known."""
    known = proposal.captured
    rows = sum(one.rows or 0 for one in known)
    more = "more than " if any(one.rows_are_more for one in known) else "about "
    size = sum(one.bytes or 0 for one in known)
    if not rows:
        return []
    lines = [f"First snapshot: {more}{counted(rows, 'row')}"]
    if size:
        lines[0] += f", {_megabytes(size)} in Oracle"
        lines.append(
            "Disk: landing, change log and mirror have one compressed copy each, together at most "
            f"about {_megabytes(3 * size)}"
        )
    if proposal.rows_per_second:
        minutes = rows / proposal.rows_per_second / 60
        pace = f"at the {proposal.rows_per_second:,.0f} rows/s just measured"
        spent = "less than a minute" if minutes < 1 else f"{more}{minutes:,.0f} min {pace}"
        lines[0] += f"; {spent}"
    return lines


def _number_lines(captured: Sequence[TableProposal], *, as_patterns: bool) -> list[str]:
    """What becomes of NUMBER columns without precision."""
    forms = [form for one in captured for form in one.numbers]
    held = [] if as_patterns else [form for form in forms if form.is_safe]
    lines = []
    if held:
        lines.append(
            f"{counted(len(held), 'key column')} of type NUMBER without precision: held as "
            "decimal(38,0) by columns_as"
        )
    if others := len(forms) - len(held):
        lines.append(
            f"{counted(others, 'NUMBER column')} without precision will be text, which sorts and "
            "compares as text: the file has a form for each, commented out"
        )
    return lines


def _why_not(one: TableProposal) -> str:
    return f"{one.found.table}: {one.found.left_out}"


def _megabytes(size: int) -> str:
    return f"{size / 1024**2:,.1f} MB"


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


def capture_lines(written_to: str | None, xstream: str | None, name: str) -> list[str]:
    """``capture`` of a source that reads through OpenLogReplicator, or XStream."""
    if xstream is not None:
        key = "folder" if "/" in xstream else "server"
        value = _whole(xstream) if key == "folder" else xstream
        return ["type: xstream", f"{key}: {_quoted(value)}"]
    if written_to is None:
        return []
    host, port = _listens_at(written_to)
    lines = ["type: openlogreplicator"]
    if host:
        reached = [f"host: {_quoted(host)}", f"port: {port}", f"source: {name.upper()}"]
        return [*lines, *reached, f"queue_size: {QUEUE_SIZE}"]
    return [*lines, f"folder: {_quoted(_whole(written_to))}"]


def replicator_text(name: str, dsn: str, written_to: str, captured: Sequence[TableProposal]) -> str:
    """OpenLogReplicator's configuration for the captured tables; its filter has regular
    expressions."""
    host, port = _listens_at(written_to)
    is_copied = "://" in written_to
    writer: dict[str, Any] = (
        {"type": "network", "uri": f"0.0.0.0:{port}", "queue-size": QUEUE_SIZE}
        if host
        else {
            "type": "file",
            "output": f"{COPIED_FROM if is_copied else _whole(written_to)}/changes_%i.json",
            "new-line": 1,
            "append": 1,
            "max-file-size": COPIED_BYTES if is_copied else FILE_BYTES,
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
                {
                    "owner": re.escape(one.found.table.owner),
                    "table": re.escape(one.found.table.name),
                }
                for one in captured
            ]
        },
    }
    target = {"alias": "T1", "source": "S1", "writer": writer}
    made = {"version": REPLICATOR_VERSION, "source": [source], "target": [target]}
    return json.dumps(made, indent=2) + "\n"


def _whole(folder: str) -> str:
    """A folder that was named where the command runs, for a file that may be elsewhere."""
    return folder if "://" in folder else str(Path(folder).absolute())


def _listens_at(written_to: str) -> tuple[str, str]:
    """Host and port; empty where it is a folder."""
    host, colon, port = written_to.rpartition(":")
    return (host, port) if colon and port.isdigit() and "/" not in host else ("", "")


def _tables(proposal: Proposal) -> list[str]:
    """An entry for each table, and as comments what is left out."""
    return _entries(proposal.captured) + _left_out(proposal)


def _entries(captured: Sequence[TableProposal]) -> list[str]:
    lines = []
    for one in captured:
        lines.append(f"- name: {_quoted(str(one.found.table))}  # {_facts(one)}")
        if one.found.columns_exclude:
            names = ", ".join(map(_quoted, one.found.columns_exclude))
            lines.append(f"  columns_exclude: [{names}]  # types that are not captured")
        lines += _forms(one.numbers)
    return lines


def _forms(numbers: Sequence[NumberForm]) -> list[str]:
    """``columns_as``: active for keys of whole numbers, commented out for the others."""
    if not numbers:
        return []
    mark = "" if any(form.is_safe for form in numbers) else "# "
    lines = [f"  {mark}columns_as:  # NUMBER without precision: text unless named here"]
    for form in sorted(numbers, key=lambda one: not one.is_safe):
        own = "" if form.is_safe else "# "
        value = f"{_quoted(form.column)}: {_quoted(form.form or 'double')}"
        doubt = "" if form.is_safe else _doubt(form)
        lines.append(f"  {own}  {value}  # {form.reason}{doubt}")
    return lines


def _doubt(form: NumberForm) -> str:
    return "; a value that does not fit stops the table" if form.form else "; a double rounds"


def _patterns(patterns: list[str], proposal: Proposal) -> list[str]:
    """The patterns, and as comments what they name now; a table that is named in full has its own
    entry."""
    from cdc_core.model.patterns import TablePattern

    lines = [f"- name: {_quoted(text)}" for text in patterns if TablePattern.is_in(text)]
    whole = [TablePattern.parse(text) for text in patterns if not TablePattern.is_in(text)]
    captured = proposal.captured
    named = [one for one in captured if any(each.matches(one.found.table) for each in whole)]
    lines += [*_entries(named), "# The patterns name now:"]
    for one in captured:
        if one not in named:
            without = ", ".join(one.found.columns_exclude)
            columns = f", without {without}" if without else ""
            lines.append(f"#   {one.found.table}: {_facts(one)}{columns}")
            lines += [f"#   {line}" for line in _forms(one.numbers)]
    return lines + _left_out(proposal)


def _left_out(proposal: Proposal) -> list[str]:
    lines = [f"#   {_why_not(one)}" for one in proposal.tables if one.found.left_out]
    return ["# Left out:", *lines] if lines else []


def _facts(one: TableProposal) -> str:
    more = "more than" if one.rows_are_more else "about"
    rows = "" if one.rows is None else f", {more} {counted(one.rows, 'row')}"
    size = "" if one.bytes is None else f", {_megabytes(one.bytes)}"
    return f"key {', '.join(one.found.key)}{rows}{size}"


def _quoted(text: str) -> Any:
    """A scalar for YAML; single quotes say nothing but themselves."""
    return "'" + text.replace("'", "''") + "'"
