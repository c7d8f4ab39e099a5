"""Is every mirror equal to Oracle as of one SCN?"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from cdc_core.config import LocalLandingConfig
from cdc_core.errors import ConfigError, WindowOrderError
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.open import open_landing
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import Reconciliation, TableComparison
from cdc_core.model.scn import Scn
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.snapshot.plan import ChunkRange
from cdc_core.snapshot.read import read_chunk
from cdc_core.steps.context import Context, seconds_since


def reconcile(
    ctx: Context, tables: list[TableId] | None = None, *, scn: int | None = None
) -> Reconciliation:
    """Compare mirrors with Oracle ``AS OF SCN``: all rows, all columns, exactly.

    Args:
        tables: All captured tables when None.
        scn: The upper end of an applied window; by default that of the last window that all tables have taken.

    Raises:
        ConfigError: ``scn`` is not the end of an applied window.
        WindowOrderError: No window was applied, or an ad hoc snapshot is newer than the position.
        SnapshotTooOldError: Oracle no longer has the undo for the SCN.
    """
    wanted = ctx.configured(tables)
    at = _position(ctx, wanted, scn)
    return Reconciliation(at, tuple(_compare(ctx, table, at) for table in wanted))


def _position(ctx: Context, tables: list[TableId], scn: int | None) -> Scn:
    records = [ctx.table_record(table) for table in tables]
    behind = [record.table for record in records if record.mirror_scn is None]
    if behind:
        raise WindowOrderError(
            "these tables have no complete first snapshot yet",
            hint="Run `redolake snapshot`, which goes on where it stood.",
            tables=", ".join(map(str, behind)),
        )
    low = min(record.mirror_scn for record in records if record.mirror_scn is not None)
    at = low if scn is None else Scn(scn)
    if scn is not None:
        _check_boundary(ctx, at, low)
    ahead = [record for record in records if (record.consistent_scn or 0) > at]
    if ahead:
        raise WindowOrderError(
            "an ad hoc snapshot was read at a newer SCN, so these mirrors are ahead of the position in part",
            hint="Run `redolake run` until the position has passed it, then reconcile.",
            tables=", ".join(str(record.table) for record in ahead),
            position=at,
            consistent_from=max(record.consistent_scn or 0 for record in ahead),
        )
    return at


def _check_boundary(ctx: Context, at: Scn, position: Scn) -> None:
    ends = [Scn(record.window.scn_high) for record in ctx.store.windows(ctx.source)]
    start = ctx.source_record().snapshot_scn
    if at > position or (at not in ends and at != start):
        near = sorted((end for end in ends if end <= position), key=lambda end: abs(end - at))[:3]
        raise ConfigError(
            "mirrors equal Oracle at the ends of applied windows, and this SCN is none",
            hint=f"Nearest ends: {', '.join(map(str, sorted(near))) or 'none yet'}.",
            scn=at,
        )


def _compare(ctx: Context, table: TableId, at: Scn) -> TableComparison:
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="redolake-reconcile-") as folder,
        ctx.oracle() as session,
    ):
        landing = open_landing(LocalLandingConfig(path=folder))
        config = ctx.config.table(table)
        schema = ctx.store.schema_at(ctx.source, table, at) or read_table_schema(
            session, config, scn=at
        )
        schema = ctx.visible(schema)
        manifest = read_chunk(
            session,
            schema,
            ChunkRange.whole(),
            source=ctx.source,
            snapshot_id=f"s{at}",
            number=0,
            scn=at,
            condition=None,
            landing=landing,
            rows=ctx.config.oracle.fetch_rows,
        )
        paths = landing.local_paths(chunk_folder(ctx.source, table, f"s{at}", 0), manifest.files)
        found = ctx.lake.compare(table, schema, paths, ctx.lake.mirror_version_at(table, at))
    assert not Path(folder).exists()
    return TableComparison(
        str(table),
        found.rows_oracle,
        found.rows_delta,
        found.differences,
        found.keys,
        found.digest_oracle,
        found.digest_delta,
        seconds_since(started),
    )
