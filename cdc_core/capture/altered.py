"""Which captured tables were altered without a DDL row in the redo that was read?

DDL is followed where its row is met. A row may be missing: an index that was the key is dropped under its own name, logs of a time
were skipped, LogMiner showed no name. So once a window the dictionary is asked, with one query for all tables, which of them were altered in
a time that the window covers; the definitions of those few are read and held against what capture knows. They must be the same.

LAST_DDL_TIME is exact to the second, and Oracle maps an SCN to a time with some seconds of slack: the times that are asked for end
:data:`SLACK_SECONDS` before the window does, so that the row of a DDL found there is in this window or an earlier one. The times
of the windows join each other, so each DDL is asked for once. A later DDL moves LAST_DDL_TIME on, and the table comes up with a
later window.

Source: Oracle Database Reference 19c, ALL_OBJECTS (LAST_DDL_TIME: the last DDL of the object and dependent objects), ALL_CONSTRAINTS;
SQL Language Reference 19c, SCN_TO_TIMESTAMP.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError, PreflightError, SnapshotTooOldError, UnsupportedTypeError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.dictionary import read_table_schemas, tables_condition
from cdc_core.schema.evolution import judge
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema

_LOG = logging.getLogger(__name__)

SLACK_SECONDS = 10
"""So far may SCN_TO_TIMESTAMP and LAST_DDL_TIME be apart."""

_ALTERED = """
SELECT OWNER, OBJECT_NAME
  FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND {tables}
   AND LAST_DDL_TIME > CAST(SCN_TO_TIMESTAMP(:low) AS DATE) - :slack / 86400
   AND LAST_DDL_TIME <= CAST(SCN_TO_TIMESTAMP(:high) AS DATE) - :slack / 86400"""
_LOOSE_KEYS = """
SELECT OWNER, TABLE_NAME
  FROM ALL_CONSTRAINTS
 WHERE CONSTRAINT_TYPE = 'P' AND STATUS = 'ENABLED' AND VALIDATED <> 'VALIDATED' AND {tables}"""


class Queries(Protocol):
    """What is asked: an :class:`~cdc_core.oracle.session.OracleSession` in the container of the tables."""

    user: str

    def fetch_all(self, sql: str, binds: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a query."""


def altered_ends(
    session: Queries,
    window: ScnWindow,
    history: SchemaHistory,
    configs: Sequence[TableConfig],
) -> list[StreamEnd]:
    """Tables that leave with a window, at its lower end: what came up to there was read under a definition that held.

    Args:
        session: In the container of the tables.
        window: The window, whose DDL rows are in ``history``.
        history: The captured tables.
        configs: Their configuration.
    """
    known = {table: history.latest(table) for table in history.tables}
    names = _altered(session, window, list(known))
    altered = [one for one in configs if one.table in names]
    if not altered:
        return []
    loose = _tables(session, _LOOSE_KEYS, [one.table for one in altered], "TABLE_NAME", {})
    found = []
    for config in altered:
        reason = _difference(session, config, known[config.table])
        if reason is None and not config.key and config.table in loose:
            reason = "its primary key is not validated any more, so older rows may have it twice"
        if reason is not None:
            found.append(_end(config.table, window.scn_low, reason))
    return found


def _altered(session: Queries, window: ScnWindow, tables: Sequence[TableId]) -> set[TableId]:
    if not tables:
        return set()
    times = {"low": window.scn_low, "high": window.scn_high, "slack": SLACK_SECONDS}
    try:
        return _tables(session, _ALTERED, tables, "OBJECT_NAME", times)
    except SnapshotTooOldError:
        # After some five days Oracle maps an SCN to no time. DDL rows are followed all the same.
        _LOG.info("Oracle maps the window to no time: not asked for DDL window=%s", window.key)
        return set()


def _tables(
    session: Queries, sql: str, tables: Sequence[TableId], name: str, binds: Mapping[str, Any]
) -> set[TableId]:
    condition, names = tables_condition(tables, "OWNER", name)
    rows = session.fetch_all(sql.format(tables=condition), {**names, **binds})
    return {TableId(owner, table) for owner, table in rows}


def _difference(session: Queries, config: TableConfig, known: TableSchema) -> str | None:
    """What the table has become, where its rows cannot be read by the known definition any more."""
    try:
        [now] = read_table_schemas(session, [config])
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


def _end(table: TableId, scn: Scn, reason: str) -> StreamEnd:
    return StreamEnd(
        table,
        scn,
        f"the table was altered without a row in the redo: {reason}",
        f"`redolake table resnapshot {table.argument}` takes the table in again as it is now.",
        "unsupported_ddl",
    )
