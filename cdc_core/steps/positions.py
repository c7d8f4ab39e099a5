"""What does the lake say of the positions of its tables?"""

from __future__ import annotations

import logging

from cdc_core.errors import LakeError, StoreUnavailableError
from cdc_core.lake.side_tables.positions import Positions, TablePosition
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.control import partial_tables

_LOG = logging.getLogger(__name__)


def publish_positions(ctx: Context) -> None:
    """Put the positions of all tables into the lake, for readers that have nothing else. Where the
    lake takes no file, readers see the older ones, and the step goes on."""
    records = ctx.store.tables.all()
    partial = partial_tables(ctx, records)
    tables = {str(one.table): _position(ctx, one, partial) for one in records}
    try:
        ctx.lake.publish(Positions(ctx.source, tables))
    except (LakeError, StoreUnavailableError) as error:
        _LOG.warning("the lake does not get the positions of its tables: %s", error.what_happened)


def _position(ctx: Context, record: TableRecord, partial: frozenset[TableId]) -> TablePosition:
    is_partial = record.table in partial
    is_image = record.mirror_scn is not None and not is_partial
    below = ctx.config.lake.paths.below
    return TablePosition(
        state=record.state,
        generation=record.generation,
        low=max(record.consistent_scn or 0, record.snapshot_scn or 0) if is_image else None,
        high=record.mirror_scn if is_image else None,
        mirror=below("mirror", record.source, record.table),
        changelog=below("changelog", record.source, record.table),
        history=below("history", record.source, record.table),
        reason=record.reason,
        is_partial=is_partial,
    )
