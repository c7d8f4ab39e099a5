"""Which tables and columns would both capture, the connector and the configuration made of it?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.debezium.expressions import fits, listed

if TYPE_CHECKING:
    from cdc_core.config import SourceConfig
    from cdc_core.model.identifiers import TableId
    from cdc_core.model.reports import FoundTable


@dataclass(frozen=True, slots=True)
class Difference:
    """A table that both treat otherwise."""

    table: str
    said: str


@dataclass(frozen=True, slots=True)
class Compared:
    """Names of the tables that both capture, and where they differ."""

    both: tuple[str, ...]
    differences: tuple[Difference, ...]


def compared(
    properties: Mapping[str, str], config: SourceConfig, found: Sequence[FoundTable]
) -> Compared:
    """Hold the connector's filters and the configuration against the tables of the database.

    Args:
        properties: The connector's, under Debezium's names.
        config: What the import wrote.
        found: Every table that the capture user sees, Oracle's own left out.
    """
    both, differences = [], []
    for one in found:
        theirs, ours = _passes(properties, one.table), _takes(config, one.table)
        shown = str(one.table)
        if theirs and ours and not one.left_out:
            both.append(shown)
            if columns := _hidden_otherwise(properties, config, one):
                differences.append(Difference(shown, columns))
        elif theirs and one.left_out:
            said = f"only the connector captures it: {one.left_out}"
            differences.append(Difference(shown, said))
        elif theirs != ours and not one.left_out:
            said = "only the connector captures it" if theirs else "only Redolake captures it"
            differences.append(Difference(shown, said))
    return Compared(tuple(both), tuple(differences))


def _passes(properties: Mapping[str, str], table: TableId) -> bool:
    """Debezium's rule: the schema passes its lists, and the table passes its own."""
    full = f"{table.owner}.{table.name}"
    return _through(properties, "schema", table.owner) and _through(properties, "table", full)


def _through(properties: Mapping[str, str], kind: str, text: str) -> bool:
    included = _expressions(properties, f"{kind}.include.list", f"{kind}.whitelist")
    excluded = _expressions(properties, f"{kind}.exclude.list", f"{kind}.blacklist")
    return (not included or _any(included, text)) and not _any(excluded, text)


def _expressions(properties: Mapping[str, str], *names: str) -> list[str]:
    return [one for name in names for one in listed(properties.get(name, ""))]


def _any(expressions: Iterable[str], text: str) -> bool:
    return any(fits(one, text) for one in expressions)


def _takes(config: SourceConfig, table: TableId) -> bool:
    named = any(not one.is_pattern and one.table == table for one in config.tables)
    return named or any(one.takes(table) for one in config.tables)


def _hidden_otherwise(properties: Mapping[str, str], config: SourceConfig, one: FoundTable) -> str:
    """What the connector leaves out of a table's columns and Redolake does not; empty for
    nothing."""
    excluded = _expressions(properties, "column.exclude.list", "column.blacklist")
    entry = next(
        (
            entry
            for entry in config.tables
            if (not entry.is_pattern and entry.table == one.table) or entry.takes(one.table)
        ),
        None,
    )
    ours = set(one.columns_exclude)
    ours |= {name for name in one.columns if entry is not None and entry.excludes(name)}
    full = f"{one.table.owner}.{one.table.name}"
    shown = [name for name in one.columns if _any(excluded, f"{full}.{name}") and name not in ours]
    return f"Redolake captures {', '.join(shown)}, which the connector excludes" if shown else ""
