"""Which captured tables were altered without a DDL row in the redo that was read?

DDL is followed where its row is met. A row may be missing: an index that was the key is dropped
under its own name, logs of a time were skipped, LogMiner showed no name. So once a window the
dictionary is asked, with one query for all tables, which of them were altered in a time that the
window covers; the definitions of those few are read and held against what capture knows. They must
be the same.

Rows that were replaced without redo (:mod:`~cdc_core.capture.stream_ends.replaced`) are the trouble
that TRUNCATE is; other ROWIDs, and other definitions, that of a DDL which is not followed.

LAST_DDL_TIME is exact to the second, and Oracle maps an SCN to a time with some seconds of slack:
the times that are asked for end so much before the window does (:mod:`~cdc_core.schema.ddl_times`),
so that the row of a DDL found there is in this window or an earlier one. The times of the windows
join each other, so each DDL is asked for once. A later DDL moves LAST_DDL_TIME on, and the table
comes up with a later window.

Source: Oracle Database Reference 19c, ALL_OBJECTS (LAST_DDL_TIME: the last DDL of the object and
dependent objects), ALL_CONSTRAINTS; SQL Language Reference 19c, SCN_TO_TIMESTAMP.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cdc_core.capture.stream_ends.ddl_rows import DdlRow
from cdc_core.capture.stream_ends.dropped_tables import dropped_table_ends
from cdc_core.capture.stream_ends.replaced import read_replaced
from cdc_core.config import TableConfig
from cdc_core.errors import (
    CdcError,
    ConfigError,
    PreflightError,
    UnsupportedTypeError,
)
from cdc_core.model.data_objects import DataObjects
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd, Trouble
from cdc_core.schema.ddl_times import times_around
from cdc_core.schema.dictionary import read_each_schema
from cdc_core.schema.dictionary_queries import UserQueries, rows_about, tables_condition
from cdc_core.schema.evolution import identified, judge
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema

_LOG = logging.getLogger(__name__)

_SETTLED = """
SELECT OWNER, OBJECT_NAME, CASE WHEN {is_altered} THEN 1 ELSE 0 END
  FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND {tables}
   AND LAST_DDL_TIME <= :before"""
_ABOVE_LOW = "LAST_DDL_TIME > :low"
_AGAIN = timedelta(hours=2)
"""So much of the time before a window is looked at again: what is known of the host's zone may be
more than when the last window asked."""
_LOOSE_KEYS = """
SELECT OWNER, TABLE_NAME
  FROM ALL_CONSTRAINTS
 WHERE CONSTRAINT_TYPE = 'P' AND STATUS = 'ENABLED' AND VALIDATED <> 'VALIDATED' AND {tables}"""


@dataclass(frozen=True, slots=True)
class AlteredTables:
    """What a window finds: tables that leave at its lower end, or at its upper one if they are
    gone, and the data objects that are known after it."""

    ends: list[StreamEnd]
    data_objects: dict[TableId, DataObjects]


def read_altered(
    session: UserQueries,
    window: ScnWindow,
    history: SchemaHistory,
    configs: Sequence[TableConfig],
    rows: Sequence[DdlRow],
    *,
    data_objects: Mapping[TableId, DataObjects] | None,
    read_at: Mapping[TableId, Scn],
) -> AlteredTables:
    """Tables that leave with a window, at its lower end: what came up to there was read while
    nothing was found.

    Args:
        session: In the container of the tables.
        window: The window, whose DDL rows are in ``history``.
        history: The captured tables.
        configs: Their configuration.
        rows: The DDL rows.
        data_objects: What is known of the tables' data objects; see
            :func:`~cdc_core.capture.stream_ends.replaced.read_replaced`.
        read_at: The SCN of each table's snapshot.
    """
    known = {table: history.latest(table) for table in history.tables}
    settled = _settled(session, window, list(known))
    replaced = read_replaced(
        session,
        window,
        list(known.values()),
        rows,
        known=data_objects,
        read_at=read_at,
        settled=settled.keys(),
    )
    unseen = [one for one in known.values() if one.table not in settled and one.object_id]
    gone = dropped_table_ends(session, unseen, window)
    # Of a name that stands for another object, or for none, that is the reason.
    others = {end.table for end in gone}
    reasons = {table: one for table, one in replaced.reasons.items() if table not in others}
    exchanged = {table for table in reasons if not known[table].is_by_row_id}
    altered = [one for one in configs if settled.get(one.table)]
    loose = _loose_keys(session, [one.table for one in altered]) if altered else set()
    now = read_each_schema(session, altered, before=[known[one.table] for one in altered])
    for config in altered:
        reason = _difference(now[config.table], known[config.table])
        if reason is None and config.has_own_key and config.table in loose:
            reason = "its primary key is no longer validated, so older rows may duplicate it"
        if reason is not None:
            reasons[config.table] = reason
            exchanged -= {config.table}
    ends = [
        _end(table, window.scn_low, reason, "truncate" if table in exchanged else "unsupported_ddl")
        for table, reason in sorted(reasons.items())
    ]
    return AlteredTables([*ends, *gone], replaced.data_objects)


def _settled(
    session: UserQueries, window: ScnWindow, tables: Sequence[TableId]
) -> dict[TableId, bool]:
    """Tables whose last DDL lies before the window's end, so that the dictionary shows them as they
    were then; with it, does that DDL lie in the window?

    After some five days Oracle maps an SCN to no time. If it maps the lower end to none, every
    definition is compared: that asks for what the windows before could not. If it maps neither,
    nothing is known of the window, and the first one whose end has a time asks for it.
    """
    if not tables:
        return {}
    condition, names = tables_condition(tables, "OWNER", "OBJECT_NAME")
    low, high = times_around(session, window.scn_low, window.scn_high)
    if high is None:
        _LOG.info("Oracle maps the window to no time: a later one asks for DDL window=%s", window.key)  # fmt: skip
        return {}
    binds: dict[str, Any] = {**names, "before": high.before}
    if low is not None:
        binds["low"] = low.before - _AGAIN
    is_altered = "1 = 1" if low is None else _ABOVE_LOW
    rows = session.fetch_all(_SETTLED.format(tables=condition, is_altered=is_altered), binds)
    return {TableId(owner, name): bool(is_within) for owner, name, is_within in rows}


def _loose_keys(session: UserQueries, tables: Sequence[TableId]) -> set[TableId]:
    return {table for (table,) in rows_about(session, _LOOSE_KEYS, tables)}


def _difference(now: TableSchema | CdcError, known: TableSchema) -> str | None:
    """What the table has become, where its rows cannot be read by the known definition any more."""
    try:
        if isinstance(now, CdcError):
            raise now
        arrow_schema(now)
    except (ConfigError, PreflightError, UnsupportedTypeError) as error:
        return error.message
    # A column that was left out so far joins with a snapshot only.
    evolution = judge(known, identified(known, now.without(known.excluded)))
    if evolution.refusal is not None:
        return evolution.refusal
    # Hidden columns come and go with indexes; only what rows hold matters.
    holds_others = bool(known.stored) and now.stored != known.stored
    return "its columns have changed" if evolution.steps or holds_others else None


def _end(table: TableId, scn: Scn, reason: str, trouble: Trouble) -> StreamEnd:
    return StreamEnd(
        table,
        scn,
        f"the table was altered without a DDL row in the redo: {reason}",
        f"`redolake table resnapshot {table.argument}` adds the table back as it is now.",
        trouble,
    )
