"""Which captured tables were altered without a DDL row in the redo that was read?

DDL is followed where its row is met. A row may be missing: an index that was the key is dropped under its own name, logs of a time
were skipped, LogMiner showed no name. So once a window the dictionary is asked, with one query for all tables, which of them were altered in
a time that the window covers; the definitions of those few are read and held against what capture knows. They must be the same.

The number of a table's data object is held against the one of the window before: DDL of *another* object can put other rows in the
place of a table's (EXCHANGE PARTITION … WITH TABLE, TRUNCATE CLUSTER), and only that object's name is in the redo. Where rows are known
by their ROWIDs, which begin with that number, no DDL explains another one, and the partitions' numbers are looked at as well: DDL of
a parent's partitions does to those of a table that is partitioned by reference what it does to its own.

Rows that came or went so are the trouble that TRUNCATE is; other ROWIDs, and other definitions, that of a DDL which is not followed.

A table's own MOVE, or its TRUNCATE, explains
another number, and hides an exchange beside it: if partitions of any table were altered in that time too, the table leaves.

LAST_DDL_TIME is exact to the second, and Oracle maps an SCN to a time with some seconds of slack: the times that are asked for end
:data:`SLACK_SECONDS` before the window does, so that the row of a DDL found there is in this window or an earlier one. The times
of the windows join each other, so each DDL is asked for once. A later DDL moves LAST_DDL_TIME on, and the table comes up with a
later window.

Source: Oracle Database Reference 19c, ALL_OBJECTS (LAST_DDL_TIME: the last DDL of the object and dependent objects), ALL_CONSTRAINTS;
SQL Language Reference 19c, SCN_TO_TIMESTAMP.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cdc_core.capture.gone import gone_ends
from cdc_core.config import TableConfig
from cdc_core.errors import (
    CdcError,
    ConfigError,
    PreflightError,
    SnapshotTooOldError,
    UnsupportedTypeError,
)
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd, Trouble
from cdc_core.schema.dictionary import read_each_schema, tables_condition
from cdc_core.schema.evolution import judge
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.segments import ask_objects
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema

_LOG = logging.getLogger(__name__)

SLACK_SECONDS = 10
"""So far may SCN_TO_TIMESTAMP and LAST_DDL_TIME be apart."""

_SETTLED = """
SELECT OWNER, OBJECT_NAME, DATA_OBJECT_ID, CASE WHEN {is_altered} THEN 1 ELSE 0 END
  FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND {tables}
   AND LAST_DDL_TIME <= CAST(SCN_TO_TIMESTAMP(:high) AS DATE) - :slack / 86400"""
_ABOVE_LOW = "LAST_DDL_TIME > CAST(SCN_TO_TIMESTAMP(:low) AS DATE) - :slack / 86400"
_PARTS = """
SELECT OWNER, OBJECT_NAME, DATA_OBJECT_ID
  FROM {{objects}}
 WHERE OBJECT_TYPE IN ('TABLE PARTITION', 'TABLE SUBPARTITION') AND DATA_OBJECT_ID IS NOT NULL AND {tables}"""
_EXCHANGED = """
SELECT COUNT(*)
  FROM {objects}
 WHERE OBJECT_TYPE IN ('TABLE PARTITION', 'TABLE SUBPARTITION')
   AND LAST_DDL_TIME > CAST(SCN_TO_TIMESTAMP(:low) AS DATE) - :slack / 86400"""
_HIDDEN = "it was moved or truncated, and partitions of a table were altered in that time: its rows may have been exchanged for theirs"
_LOOSE_KEYS = """
SELECT OWNER, TABLE_NAME
  FROM ALL_CONSTRAINTS
 WHERE CONSTRAINT_TYPE = 'P' AND STATUS = 'ENABLED' AND VALIDATED <> 'VALIDATED' AND {tables}"""


class Queries(Protocol):
    """What is asked: an :class:`~cdc_core.oracle.session.OracleSession` in the container of the tables."""

    user: str

    def fetch_all(self, sql: str, binds: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a query."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A table whose last DDL lies before the end of a window, so that the dictionary shows it as it was then: the numbers of its
    data objects (none where it has several segments that nobody asks for), and whether that DDL lies in the window."""

    data_objects: frozenset[int]
    is_altered: bool


@dataclass(frozen=True, slots=True)
class Altered:
    """What a window finds: tables that leave at its lower end, or at its upper one if they are gone, and the data objects that are known
    after it."""

    ends: list[StreamEnd]
    data_objects: dict[TableId, frozenset[int]]


def read_altered(
    session: Queries,
    window: ScnWindow,
    history: SchemaHistory,
    configs: Sequence[TableConfig],
    *,
    data_objects: Mapping[TableId, frozenset[int]],
    moved: Set[TableId],
    emptied: Set[TableId] = frozenset(),
) -> Altered:
    """Tables that leave with a window, at its lower end: what came up to there was read while nothing was found.

    Args:
        session: In the container of the tables.
        window: The window, whose DDL rows are in ``history``.
        history: The captured tables.
        configs: Their configuration.
        data_objects: What the window before knew of the tables' data objects.
        moved: Tables of which the window has DDL rows that move rows, and so give the table another data object.
        emptied: Tables of which it has a TRUNCATE that is followed, which does so too.
    """
    known = {table: history.latest(table) for table in history.tables}
    by_row_id = {table for table, schema in known.items() if schema.is_by_row_id}
    settled = _with_parts(session, _settled(session, window, list(known)), by_row_id)
    explained = (moved - by_row_id) | emptied
    kept, replaced = judged_data_objects(list(known), data_objects, settled, explained)
    reasons = dict.fromkeys(replaced, "its rows were put in another place, or others in theirs")
    doubtful = {table for table in explained if data_objects.get(table)}
    if doubtful and _may_be_exchanged(session, window):
        reasons |= dict.fromkeys(doubtful, _HIDDEN)
    exchanged = reasons.keys() - by_row_id
    altered = [one for one in configs if one.table in settled and settled[one.table].is_altered]
    loose = _loose_keys(session, [one.table for one in altered]) if altered else set()
    now = read_each_schema(session, altered, before=[known[one.table] for one in altered])
    for config in altered:
        reason = _difference(now[config.table], known[config.table])
        if reason is None and config.has_own_key and config.table in loose:
            reason = "its primary key is not validated any more, so older rows may have it twice"
        if reason is not None:
            reasons[config.table] = reason
            exchanged -= {config.table}
    ends = [
        _end(table, window.scn_low, reason, "truncate" if table in exchanged else "unsupported_ddl")
        for table, reason in sorted(reasons.items())
    ]
    unseen = [one for one in known.values() if one.table not in settled and one.object_id]
    return Altered([*ends, *gone_ends(session, unseen, window)], kept)


def judged_data_objects(
    tables: Sequence[TableId],
    known: Mapping[TableId, frozenset[int]],
    settled: Mapping[TableId, Settled],
    explained: Set[TableId],
) -> tuple[dict[TableId, frozenset[int]], list[TableId]]:
    """The data objects that are known after a window, and the tables of which one was replaced with no DDL row that explains it:
    a partition of another table was exchanged with the table, the cluster in which it lies was truncated. Pure.

    Where the table's DDL (``explained``) explains another number, which one holds is learned when its last DDL lies behind. What the
    dictionary shows of a table that was altered later says nothing of the window. A partition more replaces nothing.
    """
    kept, replaced = {}, []
    for table in tables:
        before = frozenset() if table in explained else known.get(table, frozenset())
        now = settled[table].data_objects if table in settled else before
        if now and not before <= now:
            replaced.append(table)
        elif now and table not in explained:
            kept[table] = now
    return kept, replaced


def _may_be_exchanged(session: Queries, window: ScnWindow) -> bool:
    """Was a partition of some table altered in the window's time, or later, or can nobody know?"""
    binds = {"low": window.scn_low, "slack": SLACK_SECONDS}
    try:
        [(count,)], _ = ask_objects(session, _EXCHANGED, binds)
    except SnapshotTooOldError:
        return True
    return bool(count)


def _with_parts(
    session: Queries, settled: dict[TableId, Settled], by_row_id: Set[TableId]
) -> dict[TableId, Settled]:
    """With the partitions' data objects of tables whose rows are known by ROWID."""
    tables = [table for table in settled if table in by_row_id and not settled[table].data_objects]
    if not tables:
        return settled
    condition, names = tables_condition(tables, "OWNER", "OBJECT_NAME")
    rows, _ = ask_objects(session, _PARTS.format(tables=condition), names)
    found: dict[TableId, set[int]] = {}
    for owner, name, number in rows:
        found.setdefault(TableId(owner, name), set()).add(int(number))
    parts = {
        table: replace(settled[table], data_objects=frozenset(numbers))
        for table, numbers in found.items()
    }
    return {**settled, **parts}


def _settled(
    session: Queries, window: ScnWindow, tables: Sequence[TableId]
) -> dict[TableId, Settled]:
    """Tables of which the dictionary shows what they were at the window's end.

    After some five days Oracle maps an SCN to no time. If it maps the lower end to none, every definition is compared: that asks
    for what the windows before could not. If it maps neither, nothing is known of the window, and the first one whose end has a
    time asks for it.
    """
    if not tables:
        return {}
    condition, names = tables_condition(tables, "OWNER", "OBJECT_NAME")
    high = {**names, "high": window.scn_high, "slack": SLACK_SECONDS}
    asked = ((_ABOVE_LOW, {**high, "low": window.scn_low}), ("1 = 1", high))
    for is_altered, binds in asked:
        try:
            rows = session.fetch_all(_SETTLED.format(tables=condition, is_altered=is_altered), binds)  # fmt: skip
        except SnapshotTooOldError:
            continue
        return {
            TableId(owner, name): Settled(frozenset() if number is None else frozenset({int(number)}), bool(is_altered))
            for owner, name, number, is_altered in rows
        }  # fmt: skip
    _LOG.info("Oracle maps the window to no time: a later one asks for DDL window=%s", window.key)
    return {}


def _loose_keys(session: Queries, tables: Sequence[TableId]) -> set[TableId]:
    condition, names = tables_condition(tables, "OWNER", "TABLE_NAME")
    rows = session.fetch_all(_LOOSE_KEYS.format(tables=condition), names)
    return {TableId(owner, table) for owner, table in rows}


def _difference(now: TableSchema | CdcError, known: TableSchema) -> str | None:
    """What the table has become, where its rows cannot be read by the known definition any more."""
    try:
        if isinstance(now, CdcError):
            raise now
        arrow_schema(now)
    except (ConfigError, PreflightError, UnsupportedTypeError) as error:
        return error.message
    # A column that was left out so far joins with a snapshot only.
    evolution = judge(known, now.without(known.excluded))
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
