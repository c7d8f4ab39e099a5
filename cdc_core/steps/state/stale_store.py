"""Is the metadata store stale: restored from an old copy, or empty, while landing has more?

Landing is immutable and numbers what it keeps, so a store that went back in time is seen by what
landing has and the store does not: a window behind the store's last captured one that is not even
planned, a newer revision of a table, a snapshot of a table's present stream. Then the store would
plan windows anew that have landed, under the same numbers. So nothing is done before the store is
brought to where landing and lake are.

A store that is ahead of landing is no older store: a process ended between the two, and the next
one keeps what is missing.
"""

from __future__ import annotations

from cdc_core.errors import StoreBehindError
from cdc_core.landing.kept import kept_plan_names, kept_plans, kept_revisions, kept_source
from cdc_core.landing.layout import windows_folder
from cdc_core.model.scn import ScnWindow
from cdc_core.steps.context import Context


def refuse_stale_store(ctx: Context) -> None:
    """Refuse to go on with a store that lacks what landing has.

    Raises:
        StoreBehindError: Names what the store lacks.
    """
    problems = _problems(ctx)
    if problems and (problems := _problems(ctx)):  # between two readings another process got on
        raise StoreBehindError(
            "the metadata store is older than landing, or empty; it lacks",
            hint="`redolake state rebuild --dry-run` shows what landing and lake contain; `redolake state rebuild --replace` puts that in "
            "the store's place. To start over instead, give the source another name.",
            source=ctx.source,
        ).listing(problems)


def _problems(ctx: Context) -> list[str]:
    # Landing is read before the store: what another process adds meanwhile is in the store first.
    is_kept = kept_source(ctx.landing, ctx.source) is not None
    if ctx.store.source.get() is None:
        return ["the source itself"] if is_kept else []
    return [*_windows(ctx), *_tables(ctx), *_snapshots(ctx)]


def _windows(ctx: Context) -> list[str]:
    last = ctx.captured_windows()
    root = windows_folder(ctx.source)
    after = f"{root}/{last[0].window.folder}" if last else root
    found = [
        ScnWindow.parse(folder.rpartition("/")[2])
        for folder in ctx.landing.list_folders(root, after=after)
    ]
    return [f"window {one.key}" for one in found if ctx.store.windows.get(one) is None]


def _tables(ctx: Context) -> list[str]:
    kept = kept_revisions(ctx.landing, ctx.source)
    known = {record.table.path: record for record in ctx.store.tables.all()}
    return [
        f"revision {revision} of {known[path].table if path in known else path}"
        for path, revision in sorted(kept.items())
        if path not in known or known[path].revision < revision
    ]


def _snapshots(ctx: Context) -> list[str]:
    names = kept_plan_names(ctx.landing, ctx.source)
    known = ctx.store.chunks.snapshots()
    names -= {(table.path, snapshot_id) for table, snapshot_id in known}
    streams = {record.table: record.snapshot_id for record in ctx.store.tables.all()}
    return [
        f"snapshot {plan.snapshot_id} of {plan.table}"
        for plan in kept_plans(ctx.landing, ctx.source, names)
        if plan.stream == streams.get(plan.table)
    ]
