"""As of an SCN, which mirrors are exact images of their tables, and which Delta versions are these?

A mirror is one at the end of each window that it has taken, and as of every SCN of an idle one. A
chunk that was read at a newer SCN (ad hoc, repair, policy) puts rows of that SCN beside older ones:
until the windows have reached it, there is no such version. One rule serves ``redolake reconcile``
and ``redolake at``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cdc_core.errors import ConfigError, NotYetError
from cdc_core.lake.tables import mirror_path
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import Cut, LeftOut, MirrorVersion
from cdc_core.model.scn import Scn
from cdc_core.steps.context import Context
from cdc_core.steps.readable import readable_spans, within
from cdc_core.steps.snapshots.control import partial_tables


def cut_at(ctx: Context, scn: int | None = None) -> Cut:
    """The Delta version of every mirror for one SCN: together they are one consistent cut. Needs
    neither Oracle nor Spark.

    Args:
        scn: The end of an applied window; by default the newest one that all tables in their stream
            have taken.

    Raises:
        ConfigError: The given SCN is not the end of an applied window.
        NotYetError: No mirror is exact as of it.
        LakeError: The Delta log of a mirror does not reach back so far.
    """
    at, tables, left_out = exact_tables(ctx, [one.table for one in ctx.config.tables], scn)
    versions = tuple(
        MirrorVersion(
            str(table),
            ctx.lake.mirror_version_at(table, at),
            mirror_path(ctx.config.lake.path, ctx.source, table),
        )
        for table in tables
    )
    return Cut(at, versions, tuple(left_out))


def exact_tables(
    ctx: Context, tables: Sequence[TableId], scn: int | None
) -> tuple[Scn, list[TableId], list[LeftOut]]:
    """An SCN, the tables whose mirrors are exact images as of it, and the others with why.

    Without a given SCN it is the lowest position of the tables in their stream: a table that is
    paused or stopped does not hold it back. Where none is in its stream, the lowest of all.

    Raises:
        ConfigError: The given SCN is not the end of an applied window.
        NotYetError: No table is left.
    """
    records = [ctx.table_record(table) for table in tables]
    read = {one.table: one.mirror_scn for one in records if one.mirror_scn is not None}
    going = [read[one.table] for one in records if one.state == "ready" and one.table in read]
    at = Scn(min(going or read.values(), default=0)) if scn is None else Scn(scn)
    if scn is not None and read:
        _check_boundary(ctx, at, Scn(max(read.values())))
    partial = partial_tables(ctx, records)
    left_out = [found for one in records if (found := _not_exact(one, at, partial)) is not None]
    named = {one.table for one in left_out}
    exact = [table for table in tables if str(table) not in named]
    if not exact:
        raise NotYetError(
            f"no mirror is exact as of this SCN; of the first, {left_out[0].reason}",
            hint=left_out[0].way_out,
            tables=", ".join(one.table for one in left_out),
            position=at,
        )
    return at, exact, left_out


def _not_exact(record: TableRecord, at: Scn, partial: frozenset[TableId]) -> LeftOut | None:
    """Why a mirror is no image of its table as of an SCN; None if it is."""
    ahead = record.consistent_scn or 0
    if record.table in partial:
        return LeftOut(
            str(record.table),
            "its mirror holds a part of the rows, since no snapshot has read them all",
            f"`redolake snapshot --table {record.table.argument}` reads all rows.",
        )
    if record.mirror_scn is None:
        return LeftOut(
            str(record.table),
            record.reason or "its first snapshot is not complete",
            record.way_out or "`redolake snapshot` continues where it stopped.",
        )
    if record.mirror_scn < at:
        return LeftOut(
            str(record.table),
            f"its mirror is {record.state} at SCN {record.mirror_scn}",
            record.way_out
            or f"`redolake reconcile --table {shlex.quote(str(record.table))}` compares it there.",
        )
    if ahead > at:
        waits = record.mirror_scn < ahead
        return LeftOut(
            str(record.table),
            f"a snapshot read some of its rows at the newer SCN {ahead}, so part of its mirror "
            "is newer",
            "Run `redolake run` until the position has passed that SCN, then reconcile."
            if waits
            else "Compare it as of a later SCN: leave out --scn.",
        )
    return None


def _check_boundary(ctx: Context, at: Scn, position: Scn) -> None:
    windows = ctx.store.windows.find(ctx.source)
    for record in windows:
        if record.is_gap and record.window.scn_low < at <= record.window.scn_high:
            raise ConfigError(
                "redo is gone around this SCN, so no mirror shows Oracle as of it",
                hint=f"The gap begins at SCN {record.window.scn_low} and ends at SCN"
                f" {record.window.scn_high}: name an SCN outside.",
                scn=at,
            )
    ends = [record.window.scn_high for record in windows]
    spans = readable_spans(ctx.source_record().snapshot_scn, windows)
    if at > position or (at not in ends and not within(spans, at, at)):
        near = sorted((end for end in ends if end <= position), key=lambda end: abs(end - at))[:3]
        raise ConfigError(
            "mirrors equal Oracle at the ends of applied windows, and this SCN is not one",
            hint=f"Nearest ends: {', '.join(map(str, sorted(near))) or 'none yet'}.",
            scn=at,
        )
