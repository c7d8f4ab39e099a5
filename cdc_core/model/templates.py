"""Which path, or which name, does a template of the configuration give a table?

Paths in the lake, names in a catalog and names of views are one thing: text with fields in braces,
filled with names that every file system and every catalog takes.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, path_part

LakeLayer = Literal["mirror", "changelog", "history"]
"""The Delta tables of a captured table."""

FIELDS: Mapping[str, str] = {
    "source": "the source's name",
    "owner": "the owner, as the dictionary has it",
    "table": "the table's name, as the dictionary has it",
    "owner_lower": "the owner in lower case",
    "table_lower": "the table's name in lower case",
    "digest": "eight hexadecimal digits that belong to owner and name",
}
"""What a template may name, and what stands there. Of a name in double quotes, ``_`` and its
characters stand there, each that is no letter or digit as ``_xx``: :attr:`TableId.path`."""

_OF_TABLE = frozenset({"table", "table_lower", "digest"})
_WORD = re.compile(r"\w+", re.ASCII)
_STEP = re.compile(r"[A-Za-z0-9_.=-]+")
_BESIDE = (
    "staging",
    "quarantine",
    "transactions",
    "schema_changes",
    "positions.json",
    "catalog.json",
)
"""What else stands in the folder of a source."""


def filled(template: str, source: str, table: TableId, **more: str) -> str:
    """A template's text for one table; ``more`` are further fields.

    Raises:
        ConfigError: The template is none, or names another field.
    """
    check_fields(template, more)
    digest = hashlib.sha256(str(table).encode()).hexdigest()[:8]
    return template.format(
        source=source,
        owner=path_part(table.owner, is_lowered=False),
        table=path_part(table.name, is_lowered=False),
        owner_lower=path_part(table.owner),
        table_lower=path_part(table.name),
        digest=digest,
        **more,
    )


def check_fields(template: str, more: Iterable[str] = ()) -> None:
    """Refuse a template with other fields than :data:`FIELDS` and ``more``, or that gives all
    tables one text.

    Raises:
        ConfigError: It is such a template, or none at all.
    """
    known = [*FIELDS, *more]
    try:
        parts = [one[1:] for one in string.Formatter().parse(template) if one[1] is not None]
    except ValueError as error:
        raise _refused(f"this is no template: {error}", template, known) from None
    named = {str(name) for name, _, _ in parts}
    if strange := sorted(named - {*known}):
        raise _refused(f"a template has no field {{{strange[0]}}}", template, known)
    if any(form or conversion for _, form, conversion in parts):
        raise _refused("fields of a template take no format", template, known)
    if not named & _OF_TABLE:
        raise _refused("the template names all tables alike", template, ["table", "table_lower"])


def check_path(template: str) -> None:
    """Refuse what is no template of a path below the lake's folder.

    Raises:
        ConfigError: An unknown field, a path that leaves the folder, or a character that not every
            store takes.
    """
    check_fields(template)
    for step in re.sub(r"\{\w+\}", "x", template).split("/"):
        if not _STEP.fullmatch(step) or not step.strip(".") or step.endswith("."):
            raise ConfigError(
                "the template is not a path below lake.path",
                hint="Write folders with / between them, such as '{source}/{owner_lower}/{table_lower}': letters, digits and _ . = -, none of them "
                "empty, and no '..'.",
                template=template[:200],
            )


def check_table_name(template: str) -> None:
    """Refuse what is no template of a name in a catalog: ``schema.table``, with a catalog in front
    or without.

    Raises:
        ConfigError: An unknown field, or a part that not every catalog takes.
    """
    check_fields(template, ["catalog"])
    parts = re.sub(r"\{\w+\}", "x", template).split(".")
    if len(parts) not in (2, 3) or not all(map(_WORD.fullmatch, parts)):
        raise ConfigError(
            "the template is not the name of a table in a catalog",
            hint="Write two or three parts with dots between them, such as '{catalog}.{owner_lower}.{table_lower}', of letters, digits and _.",
            template=template[:200],
        )


def _refused(what: str, template: str, fields: Iterable[str]) -> ConfigError:
    listed = ", ".join(f"{{{one}}}" for one in fields)
    return ConfigError(what, hint=f"Use {listed}.", template=template[:200])


@dataclass(frozen=True, slots=True)
class PathTemplates:
    """Where the Delta tables of captured tables are, below the lake's folder."""

    mirror: str = "{source}/mirror/{owner_lower}.{table_lower}"
    changelog: str = "{source}/changelog/{owner_lower}.{table_lower}"
    history: str = "{source}/history/{owner_lower}.{table_lower}"

    def path(self, layer: LakeLayer, root: str, source: str, table: TableId) -> str:
        """The folder of one Delta table; everything that looks for it asks here."""
        return f"{root.rstrip('/')}/{self.below(layer, source, table)}"

    def below(self, layer: LakeLayer, source: str, table: TableId) -> str:
        """The same, below the lake's folder."""
        template: str = getattr(self, layer)
        return filled(template, source, table)

    def collisions(self, source: str, tables: Iterable[TableId]) -> dict[TableId, str]:
        """The tables that would share a folder with what stands before them, or stand inside one
        another, and with what. Folders that differ in case alone are one: many stores see it so."""
        taken: dict[tuple[str, ...], str] = {
            (source, name): f"{source}/{name} of the source" for name in _BESIDE
        }
        above: dict[tuple[str, ...], str] = {(source,): "the folder of the source"}
        found: dict[TableId, str] = {}
        for table in tables:
            for layer in get_args(LakeLayer):
                path = self.below(layer, source, table)
                steps = tuple(path.lower().split("/"))
                parents = [steps[:count] for count in range(1, len(steps))]
                inside = next((taken[one] for one in (steps, *parents) if one in taken), None)
                if meets := inside or above.get(steps):
                    found[table] = f"its {layer} at {path} meets {meets}"
                    break
                taken[steps] = f"the {layer} of {table}"
                above |= {one: taken[steps] for one in parents if one not in above}
        return found


DEFAULT_PATHS = PathTemplates()
