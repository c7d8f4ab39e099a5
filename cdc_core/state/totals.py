"""How often has what happened, since the metadata store was made?

Windows are forgotten when they are old; counters must not fall then. So each thing that happens is
added here, in the transaction that records it: once, however often it is tried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from cdc_core.model.metrics import Counts
from cdc_core.model.records import ChunkRecord
from cdc_core.model.reports import TableApplied
from cdc_core.state.column_types import json_text
from cdc_core.state.database import StorePart
from cdc_core.state.sql_tables import TOTALS

LAST_CHANGE = "redolake_table_last_change_timestamp_seconds"
OUTCOMES = ("committed", "rolled_back", "released", "evicted", "late")

_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class Totals(StorePart):
    """The counters of a source, which only grow."""

    def all(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """Each counter that is not zero, by its metric's name and the values of its labels."""
        query = select(TOTALS).where(TOTALS.c.source == self._source)
        with self._database.reading() as connection:
            return {
                (row["metric"], tuple(json.loads(row["labels"]))): row["value"]
                for row in connection.execute(query).mappings()
            }


def add_totals(connection: Connection, source: str, counts: Counts) -> None:
    """Add to counters inside the caller's transaction."""
    rows: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for (metric, labels), number in counts.items():
        if number:
            place = {"source": source, "metric": metric, "labels": json_text(labels)}
            rows[metric == LAST_CHANGE].append({**place, "value": number})
    for is_moment, changed in rows.items():
        if changed:
            connection.execute(_upsert(connection.dialect.name, is_moment), changed)


@cache
def _upsert(dialect: str, is_moment: bool) -> Any:
    """Adds to counters, or sets those that are moments; begins those that are not there."""
    insert = _INSERT[dialect](TOTALS)
    new = insert.excluded.value
    return insert.on_conflict_do_update(
        index_elements=list(TOTALS.primary_key),
        set_={"value": new if is_moment else TOTALS.c.value + new},
    )


def counts_of_window(
    facts: Mapping[str, int], *, rows: int, size: int, seconds: float
) -> dict[tuple[str, tuple[str, ...]], float]:
    """What a captured window adds, by the facts of its manifest."""
    found: dict[str, float] = {
        "windows_captured": 1,
        "gaps": facts.get("is_gap", 0),
        "mined_rows": facts.get("rows_mined", 0),
        "redo_rows": rows,
        "redo_bytes": size,
        "logs_mined": facts.get("logs", 0),
        "mining_start_seconds": facts.get("mining_start_ms", 0) / 1000,
        "mining_fetch_seconds": facts.get("mining_fetch_ms", 0) / 1000,
        "capture_seconds": seconds,
        "schema_changes": facts.get("schema_changes", 0),
    }
    outcomes = {one: facts.get(f"transactions_{one}", 0) for one in OUTCOMES}
    return _of_source(found) | _by("redolake_transactions_total", (), outcomes)


def counts_of_table(applied: TableApplied, now: float) -> dict[tuple[str, tuple[str, ...]], float]:
    """What an applied window adds of a table; ``now`` in seconds since 1970."""
    table = str(applied.table)
    rows = {
        "inserted": applied.rows_inserted,
        "updated": applied.rows_updated,
        "deleted": applied.rows_deleted,
    }
    return {
        **_by("redolake_events_total", (table,), applied.operations),
        **_by("redolake_events_skipped_total", (table,), applied.events_skipped),
        **_by("redolake_mirror_rows_total", (table,), rows),
        ("redolake_quarantined_total", (table,)): applied.quarantined,
        **counts_of_unfit({table: applied.unfit_values}),
        ("redolake_stage_seconds_total", (table,)): applied.stage_seconds,
        ("redolake_merge_seconds_total", (table,)): applied.merge_seconds,
        ("redolake_apply_seconds_total", (table,)): applied.seconds,
        (LAST_CHANGE, (table,)): now if applied.changes else 0,
    }


def counts_of_unfit(values: Mapping[str, int]) -> dict[tuple[str, tuple[str, ...]], float]:
    """What values add, by table, that are NULL because the form of their column does not hold
    them."""
    return {("redolake_unfit_values_total", (table,)): number for table, number in values.items()}


def counts_of_chunk(
    chunk: ChunkRecord, *, seconds: float, now: float
) -> dict[tuple[str, tuple[str, ...]], float]:
    """What an applied chunk adds; ``seconds`` of applying it, ``now`` in seconds since 1970."""
    table, rows = str(chunk.table), chunk.rows or 0
    return {
        ("redolake_events_total", (table, "r")): rows,
        ("redolake_snapshot_rows_total", (table,)): rows,
        ("redolake_snapshot_chunks_total", (table,)): 1,
        ("redolake_snapshot_read_seconds_total", (table,)): chunk.seconds or 0,
        ("redolake_snapshot_apply_seconds_total", (table,)): seconds,
        (LAST_CHANGE, (table,)): now if rows else 0,
    }


def _of_source(found: Mapping[str, float]) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(f"redolake_{name}_total", ()): number for name, number in found.items()}


def _by(
    metric: str, labels: tuple[str, ...], found: Mapping[str, Any]
) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(metric, (*labels, name)): number for name, number in found.items()}
