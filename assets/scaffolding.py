"""What does ``dg scaffold defs assets.components.OracleCdc orders`` write? A file that loads as it
is, with values to replace."""

from __future__ import annotations

import re
from typing import Any

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component

from cdc_core.errors import ConfigError

_NAME_LENGTH_MAX = 40


class SourceScaffolder(dg.Scaffolder[Any]):
    """Describes a source that is named like its folder."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Write ``defs.yaml``, or append a source to one.

        Raises:
            ConfigError: Something else than YAML was asked for.
        """
        if request.scaffold_format != "yaml":
            raise ConfigError(
                "a source is described in YAML", hint="Leave --format out, or write --format yaml."
            )
        scaffold_component(request, attributes_of(_name(request)))


def attributes_of(name: str) -> dict[str, Any]:
    """The keys under ``attributes`` of a source, with a database, a table and folders to
    replace."""
    return {
        "name": name,
        "oracle": {
            "dsn": "db.example.com:1521/ORCLPDB1",
            "user": "C##REDOLAKE",
            "password_env": f"{name.upper()}_ORACLE_PASSWORD",
        },
        "tables": [{"name": "SHOP.ORDERS"}],
        "landing": {"type": "local", "path": "data/landing"},
        "lake": {"path": "data/lake"},
        "state": {"url": f"sqlite:///data/{name}.db"},
    }


def _name(request: dg.ScaffoldRequest[Any]) -> str:
    """The folder's name as a source's; the next free one where a file has sources already."""
    folder = request.target_path.parent if request.append else request.target_path
    name = re.sub(r"[^a-z0-9_]+", "_", folder.name.lower()).strip("_")
    name = name if re.match(r"[a-z]", name) else f"source_{name}".rstrip("_")
    if not request.append:
        return name[:_NAME_LENGTH_MAX]
    number = request.target_path.read_text().count("\ntype:") + 2
    return f"{name[: _NAME_LENGTH_MAX - 4]}_{number}"
