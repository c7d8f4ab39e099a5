"""Which tables, users and operations make the redo?"""

from __future__ import annotations

from collections import Counter

from cdc_core.landing.redo_counts import Share, count_redo
from cdc_core.model.redo_profile import RedoProfile, RedoShare
from cdc_core.steps.context import Context

WINDOWS_COUNTED = 20


def redo_profile(ctx: Context, *, windows: int = WINDOWS_COUNTED) -> RedoProfile:
    """Count the landed redo of the newest ``windows`` that are captured; Oracle is not asked.

    Raises:
        LandingDamagedError: A file of them is missing or changed.
    """
    newest = ctx.captured_windows(windows)
    rows: Counter[Share] = Counter()
    sizes: Counter[Share] = Counter()
    for record in newest:
        if record.is_gap or not record.rows:
            continue
        manifest, _ = ctx.window_manifest(record.window)
        for share, count, size in count_redo(ctx.landing, manifest):
            rows[share] += count
            sizes[share] += size
    shares = [
        RedoShare(
            table=table,
            operation=operation,
            username=user,
            rows=count,
            bytes=sizes[(table, operation, user)],
        )
        for (table, operation, user), count in rows.items()
    ]
    return RedoProfile(
        source=ctx.source,
        windows=len(newest),
        scn_low=newest[-1].window.scn_low if newest else None,
        scn_high=newest[0].window.scn_high if newest else None,
        rows_mined=sum(one.facts.get("rows_mined", 0) for one in newest),
        shares=tuple(
            sorted(
                shares, key=lambda one: (-one.bytes, one.table, one.operation, str(one.username))
            )
        ),
    )
