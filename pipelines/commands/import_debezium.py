"""``redolake import-debezium``: a configuration file from a connector's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdc_core.errors import ConfigError
from cdc_core.model.wording import counted
from pipelines.commands.shared import out

if TYPE_CHECKING:
    from pipelines.debezium.converting import Imported, Remark


def import_debezium(
    connectors: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Configuration of a connector: JSON as Kafka Connect takes it, or properties. "
            "Of Debezium's connector for Oracle, or Confluent's Oracle CDC source.",
        ),
    ],
    file: Annotated[
        Path,
        typer.Option(
            "--file",
            "-f",
            help="File to write; it must not exist. For several connectors, a folder.",
        ),
    ] = Path("defs.yaml"),
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Then compare, in the database, which tables and columns both capture.",
        ),
    ] = False,
) -> None:
    """Write a configuration file from that of a Debezium connector, and report each property.

    The command writes no secrets: password and salts become names of environment variables. Exits
    with code 1 if, without a property that it could not convert, Redolake would capture more than
    the connector, or differently.
    """
    targets = _targets(connectors, file)
    is_whole = True
    for connector, target in targets.items():
        made = _imported(connector, target)
        is_whole = made.is_whole and is_whole
        if check:
            is_whole = _checked(made, target) and is_whole
        out().print(f"Next: redolake doctor --config {target}")
    if not is_whole:
        raise typer.Exit(1)


def _targets(connectors: list[Path], file: Path) -> dict[Path, Path]:
    """Where each connector's configuration goes."""
    if len(connectors) == 1:
        return {connectors[0]: file}
    folder = file.parent if file.suffix else file
    return {one: folder / one.stem / "defs.yaml" for one in connectors}


def _imported(connector: Path, target: Path) -> Imported:
    from pipelines.debezium.connector_file import read_connector
    from pipelines.debezium.converting import imported

    if target.exists():
        raise ConfigError(
            "this file already exists",
            hint="Name another with --file, or remove it.",
            file=target,
        )
    made = imported(read_connector(connector))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(configuration_text(made, connector.name), encoding="utf-8")
    out().print(f"{connector.name} → {target}")
    _print_remarks(made.remarks)
    _refuse_wrong(target)
    return made


def configuration_text(made: Imported, origin: str) -> str:
    """The file: what is taken as YAML, and above it, as comments, what needs a look."""
    import yaml

    from pipelines.debezium.converting import Outcome

    shown = [
        f"#   {one.name}: {one.outcome}: {one.said}"
        for one in made.remarks
        if one.outcome in (Outcome.NOT_TAKEN, Outcome.UNKNOWN, Outcome.LOOK)
    ]
    body = yaml.safe_dump(
        {"type": "assets.components.OracleCdc", "attributes": made.attributes},
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
    looked = ["# Look at:", *shown] if shown else []
    return "\n".join([f"# Written by `redolake import-debezium` from {origin}.", *looked, body])


def _print_remarks(remarks: list[Remark]) -> None:
    from rich.table import Table

    from pipelines.debezium.converting import Outcome

    order = list(Outcome)
    shown = Table("property", "", "what becomes of it", box=None, pad_edge=False)
    for one in sorted(remarks, key=lambda one: order.index(one.outcome)):
        shown.add_row(one.name, str(one.outcome), one.said)
    out().print(shown)


def _refuse_wrong(target: Path) -> None:
    """Check the file that was written as every command does; problems name its lines."""
    from pipelines.config_file import load_config

    load_config(target, environ=None)


def _checked(made: Imported, target: Path) -> bool:
    """Compare with the database; are both equal?"""
    from cdc_core.steps.source_checks import tables_matching
    from pipelines.config_file import load_config
    from pipelines.debezium.checking import compared

    variable = made.attributes["oracle"]["password_env"]
    if variable not in os.environ:
        raise ConfigError(
            "the environment variable for the password is not set",
            hint=f"export {variable}=… first, then repeat with --check.",
            variable=variable,
        )
    config = load_config(target, environ=_with_salt(made, os.environ))
    found = compared(made.properties, config, tables_matching(config.oracle, ["*.*"]))
    out().print(f"Captured by both: {counted(len(found.both), 'table')}.")
    for one in found.differences:
        out().print(f"{one.table}: {one.said}")
    return not found.differences


def _with_salt(made: Imported, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment, with something for salts that are not set yet: no value is masked here."""
    masks: Any = made.attributes.get("masks", {})
    variables = [*masks.get("salts_env", {}).values(), masks.get("salt_env")]
    return {**{variable: "unset" for variable in variables if variable}, **environ}
