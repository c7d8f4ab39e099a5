"""Which rows do the snapshots of a table read, by ``snapshot.select_overrides``?

A table takes the configured filter when it joins, and remembers it: its later snapshots, repairs
and comparisons read by the same one. The filter is kept in the names that columns had when the
table joined, and is read in those of the definition at hand.
"""

from __future__ import annotations

import logging

from cdc_core.errors import ConfigError
from cdc_core.model.records import TableRecord
from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.present_names import condition_under_names, renames
from cdc_core.steps.context import Context

_LOG = logging.getLogger(__name__)


def configured_filter(ctx: Context, schema: TableSchema) -> str | None:
    """The checked condition that the configuration names for a table; None for all rows.

    Raises:
        ConfigError: It cannot be used.
    """
    text = ctx.config.snapshot.override(schema.table)
    if text is None:
        return None
    # The parser takes a moment to import, and few tables have a filter.
    from cdc_core.snapshot.filters import checked_filter

    return checked_filter(text, schema, is_statement=True, is_kept=True)


def held_filter(ctx: Context, record: TableRecord, schema: TableSchema) -> str | None:
    """The filter that a table remembers, in the names of one of its definitions; None for all rows.

    Raises:
        ConfigError: A column of the filter is not there any more.
    """
    if record.row_filter is None or record.snapshot_scn is None:
        return record.row_filter
    joined = ctx.store.schemas.at(record.table, record.snapshot_scn)
    if joined is None or joined.stored_names == schema.stored_names:
        return record.row_filter
    known = ctx.store.schemas.at(record.table, schema.scn_from) or joined
    by_redo = {old: new for old, new in _names(joined, known).items() if old != new}
    by_place = renames(known, schema.stored)  # by a DDL that no window has captured yet
    renamed = condition_under_names(record.row_filter, by_redo)
    renamed = condition_under_names(renamed, by_place)
    from cdc_core.snapshot.filters import checked_filter

    try:
        return checked_filter(renamed, schema, is_statement=False, is_kept=True)
    except ConfigError as error:
        raise ConfigError(
            "the rows that the table's snapshots read can no longer be determined: a column of its"
            " filter is not there now",
            hint=f"Change snapshot.select_overrides; `redolake table resnapshot"
            f" {record.table.argument}` then reads the table by the new filter.",
            table=record.table,
        ) from error


def is_filtered_otherwise(ctx: Context, record: TableRecord, latest: TableSchema) -> bool:
    """Does the configuration name other rows than those that the table's snapshots read? It may
    call columns as they were called when the table joined."""
    if record.row_filter is None and ctx.config.snapshot.override(record.table) is None:
        return False
    joined = ctx.store.schemas.at(record.table, record.snapshot_scn or Scn(0))
    for schema in filter(None, (latest, joined)):
        try:
            if configured_filter(ctx, schema) == held_filter(ctx, record, schema):
                return False
        except ConfigError as error:  # which the table says when it joins
            _LOG.debug("the filter does not fit a definition of %s: %s", record.table, error)
    return True


def _names(old: TableSchema, new: TableSchema) -> dict[str, str]:
    now = {stored_as: name for name, stored_as in new.stored_names.items()}
    return {
        name: now[stored_as] for name, stored_as in old.stored_names.items() if stored_as in now
    }


def both(one: str | None, other: str | None) -> str | None:
    """Rows that meet two conditions, either of which may be missing."""
    if one is None or other is None:
        return one or other
    return f"({one}) AND ({other})"


def complement(condition: str) -> str:
    """The rows that do not meet a condition, those of which Oracle cannot tell among them."""
    return f"CASE WHEN {condition} THEN 0 ELSE 1 END = 1"
