"""As of an SCN, which mirrors are exact images of their tables, and which Delta versions are these?

A mirror is one at the end of each window that it has taken, and as of every SCN of an idle one. A
chunk that was read at a newer SCN (ad hoc, repair, policy) puts rows of that SCN beside older ones:
until the windows have reached it, the newest version is no image. ``redolake reconcile`` compares
that one; ``redolake at`` also gives an older one, where the mirror's log proves it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdc_core.errors import ConfigError, LakeError, NotYetError, PreflightError
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import Cut, CutEngine, LeftOut, MirrorVersion
from cdc_core.model.scn import Scn
from cdc_core.steps.context import Context
from cdc_core.steps.readable_scns import readable_spans, within
from cdc_core.steps.snapshots.control import partial_tables
from cdc_core.views.consistent_cut import files_view_sql, refuse_shared_names, view_sql


def cut_at(ctx: Context, scn: int | None = None) -> Cut:
    """The Delta version of every mirror for one SCN: together they are one consistent cut. Needs
    neither Oracle nor Spark.

    Args:
        scn: The end of an applied window; by default the newest one that all tables in their stream
            have taken.

    Raises:
        ConfigError: The given SCN is not the end of an applied window.
        NotYetError: No mirror is exact as of it.
    """
    lake, tables = ctx.config.lake, [one.table for one in ctx.config.tables]
    at, not_exact, ahead = _judged(ctx, tables, scn)
    versions: list[MirrorVersion] = []
    left_out: list[LeftOut] = []
    for table in tables:
        found = not_exact.get(table)
        if found is not None and table not in ahead:
            left_out.append(found)
            continue
        try:
            # Before a snapshot read rows at a newer SCN, a version has none of them.
            version = ctx.lake.table(table).mirror_version_at(at, is_in_stream=found is None)
        except LakeError as error:
            # The log may not reach back so far; and while tables take a window side by side, the
            # lowest of their positions may be inside the window that another has taken.
            left_out.append(found or LeftOut(str(table), error.message, error.hint))
            continue
        path = lake.paths.path("mirror", lake.root, ctx.source, table)
        versions.append(MirrorVersion(str(table), version, path))
    if not versions:
        raise _none_exact(at, left_out)
    return Cut(at, tuple(versions), tuple(left_out))


def cut_sql(
    _ctx: Context,
    cut: Cut,
    engine: CutEngine,
    *,
    view: str | None = None,
    table: str | None = None,
) -> tuple[str, ...]:
    """The statements that make a view of each table of a cut, in an engine's SQL
    (:func:`view_sql`)."""
    refuse_shared_names(cut.tables, view)
    return tuple(view_sql(engine, one, view=view, table=table) for one in cut.tables)


def create_duckdb_views(_ctx: Context, cut: Cut, file: Path) -> Cut:
    """Make a view of each table of a cut in a file of DuckDB, all in one transaction: by its Delta
    extension where that is installed, else by the lists of files.

    Returns:
        The cut of what the file has now: without the extension it leaves out tables with deletion
        vectors or column mapping.

    Raises:
        PreflightError: DuckDB is not installed.
        ConfigError: DuckDB cannot open the file.
        LakeError: DuckDB cannot read a mirror.
    """
    try:
        import duckdb
    except ImportError as error:
        raise PreflightError("DuckDB is not installed", hint="Run `pip install duckdb`.") from error
    try:
        database = duckdb.connect(str(file))
    except duckdb.Error as error:
        raise ConfigError(
            "DuckDB cannot open this file",
            hint="Name a file that is its own, or none yet, and close other connections to it.",
            file=str(file),
        ) from error
    made, left_out = [], list(cut.left_out)
    with closing(database):
        refuse_shared_names(cut.tables)
        has_extension = _loads_delta(database)
        database.begin()
        for one in cut.tables:
            sql = view_sql("duckdb", one) if has_extension else files_view_sql(one)
            if sql is None:
                left_out.append(LeftOut(one.table, _NOT_PLAIN, "`INSTALL delta` in DuckDB."))
                continue
            try:
                database.execute(sql)
            except duckdb.Error as error:
                raise LakeError(
                    "DuckDB cannot read a mirror, so it makes no view of it",
                    hint="DuckDB reads the folder itself: give it access, for example by a secret "
                    "for S3 that it keeps (CREATE PERSISTENT SECRET).",
                    table=one.table,
                    cause=type(error).__name__,
                ) from error
            made.append(one)
        database.commit()
    return replace(cut, tables=tuple(made), left_out=tuple(left_out))


_NOT_PLAIN = "it has deletion vectors or column mapping, which DuckDB reads by its Delta extension"


def _loads_delta(database: Any) -> bool:
    import duckdb

    try:
        database.load_extension("delta")
    except duckdb.Error:
        return False
    return True


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
    at, left_out, _ = _judged(ctx, tables, scn)
    exact = [table for table in tables if table not in left_out]
    if not exact:
        raise _none_exact(at, list(left_out.values()))
    return at, exact, list(left_out.values())


def _judged(
    ctx: Context, tables: Sequence[TableId], scn: int | None
) -> tuple[Scn, dict[TableId, LeftOut], set[TableId]]:
    """The SCN; the tables whose mirrors are no images as of it; and those of them that are none
    because of rows which a snapshot read at a newer SCN, and for nothing else."""
    records = {table: ctx.table_record(table) for table in tables}
    each = records.values()
    read = {one.table: one.mirror_scn for one in each if one.mirror_scn is not None}
    going = [read[one.table] for one in each if one.state == "ready" and one.table in read]
    at = Scn(min(going or read.values(), default=0)) if scn is None else Scn(scn)
    if scn is not None and read:
        _check_boundary(ctx, at, Scn(max(read.values())))
    partial = partial_tables(ctx, each)
    found = {table: _not_exact(one, at, partial) for table, one in records.items()}
    left_out = {table: one for table, one in found.items() if one is not None}
    ahead = {table for table in left_out.keys() - partial if _has_passed(records[table], at)}
    return at, left_out, ahead


def _none_exact(at: Scn, left_out: Sequence[LeftOut]) -> NotYetError:
    return NotYetError(
        f"no mirror is exact as of this SCN; of the first, {left_out[0].reason}",
        hint=left_out[0].way_out,
        tables=", ".join(one.table for one in left_out),
        position=at,
    )


def _has_passed(record: TableRecord, at: Scn) -> bool:
    return record.mirror_scn is not None and record.mirror_scn >= at


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
    windows = ctx.store.windows.find()
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
