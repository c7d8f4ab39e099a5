"""Does Debezium see the changes that the change logs have?"""

from __future__ import annotations

from collections.abc import Iterable

from cdc_core.errors import ConfigError, NotYetError
from cdc_core.lake.event_comparison import compare_events, read_events
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import EventsCompared
from cdc_core.steps.context import Context
from cdc_core.steps.source_view import logged_tables


def compare(
    ctx: Context,
    lines: Iterable[str],
    tables: list[TableId] | None = None,
    *,
    scn_low: int | None = None,
    scn_high: int | None = None,
) -> EventsCompared:
    """Compare Debezium's events, one JSON message a line, with the change logs of all tables or of
    some, between two commit SCNs: by default from the first to the last of the events.

    Raises:
        ConfigError: A line is no event, or nothing is there to compare.
        NotYetError: A table has not taken all changes up to the upper SCN.
    """
    theirs = list(read_events(lines))
    logs = [one for one in logged_tables(ctx.config) if tables is None or one.table in tables]
    scns = [one.commit_scn for one in theirs]
    low = min(scns, default=1) - 1 if scn_low is None else scn_low
    high = max(scns, default=0) if scn_high is None else scn_high
    if not logs or low >= high:
        raise ConfigError(
            "there is nothing to compare",
            hint="The files need changes of captured tables; or name SCNs with --from and --to.",
            tables=len(logs),
            events=len(theirs),
        )
    for log in logs:
        record = ctx.store.tables.get(ctx.source, log.table)
        if record is None or (record.mirror_scn or 0) < high:
            raise NotYetError(
                "the change log does not reach the upper SCN yet",
                hint="`redolake run` brings it there; or compare up to an earlier one with --to.",
                table=log.table,
                position=record.mirror_scn if record else None,
                scn=high,
            )
    return compare_events(theirs, logs, scn_low=low, scn_high=high)
