"""Which tables do the patterns of the configuration take in, and which do they leave out?

Patterns are looked up in Oracle's dictionary at the beginning of each run, and the answer is kept
in the metadata store, so that steps and Dagster's definitions know the tables without asking
Oracle. A table that a pattern took in stays until the configuration no longer names it: what
happens to it in Oracle (dropped, its key dropped) is its own fate, not the pattern's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import get_args

from cdc_core.config import MatchedTable, SourceConfig, TableConfig
from cdc_core.config.tables import UnsupportedKind
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.patterns import whose_tool
from cdc_core.model.reports import FoundTable
from cdc_core.schema.catalog import find_tables
from cdc_core.schema.dictionary_queries import UserQueries

_LOG = logging.getLogger(__name__)

_LISTED = 10


def look_up(
    session: UserQueries,
    config: SourceConfig,
    known: list[FoundTable],
    left: Set[TableId] = frozenset(),
) -> list[FoundTable]:
    """What the patterns name now, by table: tables that Oracle shows, and those that they took in
    before.

    Args:
        session: In the container of the tables.
        config: As it was written, with its patterns.
        known: What was found before.
        left: Tables that a policy has removed, which are forgotten unless there are any of their
            names again.
    """
    kept = [one for one in known if pattern_of(config, one.table) is not None]
    found = find_tables(
        session,
        lambda table: pattern_of(config, table) is not None,
        known=kept,
        entry=lambda table: _examined_as(config, table),
    )
    shown = {one.table for one in found}
    found += [one for one in kept if one.table not in shown | left and not one.left_out]
    found = _without_collisions(config, known, found)
    _refuse_too_many(config, found)
    _tell(found, {one.table: one.left_out for one in known})
    return sorted(found, key=lambda one: one.table)


def _without_collisions(
    config: SourceConfig, known: list[FoundTable], found: list[FoundTable]
) -> list[FoundTable]:
    """What was found; of two tables whose Delta tables would share a folder, one is left out."""
    named = [one.table for one in config.tables if not one.is_pattern]
    before = {one.table for one in known if not one.left_out}
    taken = [one.table for one in found if not one.left_out]
    in_turn = sorted(taken, key=lambda table: (table not in before, table))
    meeting = config.lake.paths.collisions(config.name, [*named, *in_turn])
    return [
        replace(one, left_out=f"{meeting[one.table]}: name {{digest}} in the templates of lake")
        if one.table in meeting
        else one
        for one in found
    ]


def _refuse_too_many(config: SourceConfig, found: list[FoundTable]) -> None:
    named = sum(not one.is_pattern for one in config.tables)
    count = named + sum(not one.left_out for one in found)
    if config.tables_max is not None and count > config.tables_max:
        raise ConfigError(
            "more tables would be captured than tables_max allows",
            hint="`redolake table find` shows what the patterns name. Narrow them, or raise tables_max.",
            tables=count,
            tables_max=config.tables_max,
        )


def _tell(found: list[FoundTable], before: Mapping[TableId, str]) -> None:
    """Say what is new, in one line for all tables that an operator may want to look at. Those of
    Oracle's tools come and go by themselves."""
    for one in found:
        if not one.left_out and before.get(one.table) != "":
            _LOG.info("table is taken in by a pattern table=%s", one.table)
    left_out = [one for one in found if one.left_out and before.get(one.table) != one.left_out]
    for one in left_out:
        _LOG.info("table is left out table=%s reason=%s", one.table, one.left_out)
    worth = [str(one.table) for one in left_out if not whose_tool(one.table.name)]
    if worth:
        listed = ", ".join(worth[:_LISTED])
        more = f" and {len(worth) - _LISTED} more" if len(worth) > _LISTED else ""
        _LOG.warning(
            "patterns leave out tables=%d (%s%s); `redolake table find` says why",
            len(worth), listed, more,
        )  # fmt: skip


def with_matches(config: SourceConfig, found: list[FoundTable]) -> SourceConfig:
    """The configuration with tables in the place of patterns: those that were found and can be
    captured."""
    if not config.has_patterns:
        return config
    named: list[TableConfig] = [one for one in config.tables if not one.is_pattern]
    for one in found:
        pattern = None if one.left_out else pattern_of(config, one.table)
        if pattern is not None:
            named.append(_matched(config, pattern, one.table))
    return config.model_copy(update={"tables": tuple(named)})


def _matched(config: SourceConfig, pattern: TableConfig, table: TableId) -> MatchedTable:
    own = {
        **dict(pattern),
        "name": table.sql,
        "matched_by": pattern.identity_in_file,
        "exclude": (),
        "unsupported_columns": {
            kind: "reselect" if pattern.reselects(kind) else "omit"
            for kind in get_args(UnsupportedKind)
        },
    }
    return MatchedTable(**config.with_rules(own, table))


def _examined_as(config: SourceConfig, table: TableId) -> TableConfig:
    """A table with what its pattern and the source say of its key and of the columns among which it
    must be; all of another one's."""
    if (pattern := pattern_of(config, table)) is None:
        return MatchedTable(name=table.sql)
    entry = _matched(config, pattern, table)
    return MatchedTable(name=table.sql, key=entry.key, columns_include=entry.columns_include)


def pattern_of(config: SourceConfig, table: TableId) -> TableConfig | None:
    """The first pattern that takes a table; None for a table that an entry names in full, and for
    the flush table."""
    if table == config.capture.flushed or any(
        not one.is_pattern and one.table == table for one in config.tables
    ):
        return None
    return next((one for one in config.tables if one.takes(table)), None)
