"""How does a table get a mirror again that was lost or damaged, without Oracle?"""

from __future__ import annotations

import logging
import time

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport, TableApplied
from cdc_core.steps.context import Context, seconds_since

_LOG = logging.getLogger(__name__)


def rebuild_mirror(ctx: Context, table: TableId) -> StepReport:
    """Write a table's mirror anew from its change log alone, as of the last window that the change log holds.

    Windows that follow are applied to it as before. Repeatable; readers see the old rows until the one commit.

    Raises:
        ConfigError: The table is not known, or its first snapshot is not complete.
        LakeError: There is no change log, or it does not hold the beginning of every row.
    """
    started = time.monotonic()
    with ctx.writing(table) as lease:
        record = ctx.table_record(table)
        if record.mirror_scn is None:
            raise ConfigError(
                "the table's snapshot is not complete, so there is no mirror to rebuild",
                hint="`redolake snapshot` completes it.",
                table=table,
                state=record.state,
            )
        schema = ctx.visible(ctx.store.schema_versions(ctx.source, table)[-1].schema)
        rows = ctx.lake.rebuild_mirror(
            table, schema, generation=record.generation, fence=lease.check
        )
    _LOG.info("mirror rebuilt table=%s rows=%d", table, rows)
    return ctx.reported(
        StepReport(
            kind="mirror-rebuilt",
            key=str(table),
            seconds=seconds_since(started),
            rows=rows,
            table=table,
            scn_high=record.mirror_scn,
            tables=(TableApplied(table=table, rows_inserted=rows),),
        )
    )
