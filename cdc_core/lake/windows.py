"""How is a window applied to a table: change log first, then the mirror, each once?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import LakeError, NotYetError, WindowConflictError
from cdc_core.lake.carry import carried_sql, mirror_origin
from cdc_core.lake.changes import window_sql
from cdc_core.lake.deriving import rederived_sql
from cdc_core.lake.evolution import added_columns, check_mirror, settle_schema
from cdc_core.lake.history import filesystem_of, read_log
from cdc_core.lake.merge import merge_report, merged
from cdc_core.lake.reduce import reduced_sql
from cdc_core.lake.spark import translated
from cdc_core.lake.staging import staged_frame
from cdc_core.lake.tables import CHANGELOG_INDEXED
from cdc_core.lake.work import TableWork
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import WindowChanges
from cdc_core.stage.committed import CommittedTransactions, read_committed
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.layout import change_schema
from cdc_core.stage.reducing import merge_sources
from cdc_core.stage.window import staged_changes


def apply_window(
    work: TableWork,
    manifest: WindowManifest,
    schema: TableSchema,
    redo_paths: Sequence[str],
    transactions_paths: Sequence[str],
    *,
    position: int | None,
    covered_scn: int,
    decode: Callable[[Any, TableSchema], Any],
    earlier: Sequence[TableSchema] = (),
    late_above: int | None = None,
) -> TableApplied:
    """Append the window's changes to the change log and merge them into the mirror.

    Where commits came to light with this window that belong to earlier ones, newer changes of their keys may be in the mirror, or
    have deleted them: the window's keys are then derived from the whole change log, as when a window is replayed.

    Repeating it at any point gives the same tables: each of the two commits carries the window in its transaction
    identifier, and what is merged is read back from the change log's files.
    """
    started = time.monotonic()
    window = manifest.window
    where = work.facts(window=window.key)
    done = work.position()
    if done.mirror_scn is not None and done.mirror_scn >= window.scn_high:
        return TableApplied(table=work.table, skipped=True)
    _check_order(where, done.mirror_scn, position, window.scn_low)
    committed = read_committed(transactions_paths, work.table, window, late_above=late_above)
    if committed.count == 0:
        return TableApplied(table=work.table, seconds=time.monotonic() - started)
    _check_store(where, position, window.scn_high)
    if position is None:
        work.create_tables(schema)
    excluded = schema.excluded
    check_mirror(work, schema := settle_schema(work, schema), work.require_mirror())
    files = _files_of(work, schema, window.scn_high, done.changelog_scn)
    if not files:
        decoder = ChangeDecoder(schema, window.scn_high, decode, tuple(earlier), excluded)
        files = _append_changes(work, window, committed, redo_paths, decoder)
    if not files:  # everything was taken back
        return TableApplied(table=work.table, seconds=time.monotonic() - started)
    filesystem, root = filesystem_of(work.changelog)
    changes = WindowChanges(
        filesystem, [f"{root}/{file}" for file in files], schema, window.scn_high
    )
    try:
        counts, count = _merge(work, window, schema, changes, covered_scn, committed.late > 0)
    finally:
        changes.close()
    return merge_report(work.table, counts, count, started)


def _append_changes(
    work: TableWork,
    window: ScnWindow,
    committed: CommittedTransactions,
    redo_paths: Sequence[str],
    decoder: ChangeDecoder,
) -> list[str]:
    """Append the window to the change log; returns the names of the files that it has there."""
    file = work.append_rows(
        work.changelog,
        change_schema(decoder.schema),
        staged_changes(committed, work.table, window, redo_paths, decoder),
        "appending a window to the change log",
        _metadata(work, window),
        (work.window_app, window.scn_high),
        indexed=CHANGELOG_INDEXED,
    )
    return [] if file is None else [file.name]


def _metadata(work: TableWork, window: ScnWindow, **more: object) -> str:
    facts = {"scn_low": window.scn_low, "window": window.key, **more}
    return work.metadata("window", window.scn_high, **facts)


def _merge(
    work: TableWork,
    window: ScnWindow,
    schema: TableSchema,
    changes: WindowChanges,
    covered_scn: int,
    is_late: bool,
) -> tuple[list[Any], int]:
    """Merge the window's changes into the mirror; returns MERGE's counts, and the number of changes."""
    facts = changes.facts()
    count, absent = facts.changes, facts.absent
    session = work.session_for(count)
    commit: dict[str, Any] = {
        "doing": "merging a window into the mirror",
        "metadata": _metadata(work, window, changes=count),
        "txn": (work.window_app, window.scn_high),
        "covered_scn": covered_scn,
        "force": is_late,
    }
    if is_late:
        sql, absent = rederived_sql(
            work, session, window_sql(work.changelog, window.scn_high), schema,
            position=window.scn_high, covered_scn=covered_scn, is_late=True,
        )  # fmt: skip
    elif facts.moved_absent or set(absent) & set(added_columns(read_log(work.changelog))):
        # The window does not say all. A change of key takes the columns that it lacks from the mirror's row of the old key; rows
        # from before a column was added have its default.
        sql = _carried_sql(work, window.scn_high, schema, absent)
    else:
        with staged_frame(work, session, merge_sources(changes, schema, absent)) as frame:
            return merged(work, frame, schema, absent=absent, **commit), count
    with translated("reducing a window", **work.facts()):
        # MERGE looks at its source several times; it shall plan and compute the reduction once.
        frame = session.sql(sql).localCheckpoint()
    return merged(work, frame, schema, absent=absent, **commit), count


def _carried_sql(work: TableWork, scn_high: int, schema: TableSchema, absent: Sequence[str]) -> str:
    """One row per key, in which changes of key carry the columns that can be proved."""
    defaults = added_columns(read_log(work.changelog))
    origin = mirror_origin(work.mirror, schema, absent)
    rows = carried_sql(window_sql(work.changelog, scn_high), schema, absent, defaults, origin)
    return reduced_sql(f"({rows})", schema, absent=absent, defaults=defaults)


def _check_order(
    where: Mapping[str, object], mirror_scn: int | None, position: int | None, scn_low: int
) -> None:
    """Forward in order: the mirror must be at or before scn_low, and the store must say it took the window before."""
    if mirror_scn is not None and mirror_scn > scn_low:
        raise WindowConflictError(
            "the mirror has taken a window that overlaps this one",
            hint="Windows of a source never overlap; check that one metadata store serves this lake.",
            **where,
            mirror_scn=mirror_scn,
        )
    if position is not None and position < scn_low:
        raise NotYetError(
            "the mirror has not taken the window before this one",
            hint="`redolake run` applies windows in order.",
            **where,
            position=position,
        )


def _check_store(where: Mapping[str, object], position: int | None, scn_high: int) -> None:
    """A mirror behind the store was restored or replaced by someone."""
    if position is not None and position >= scn_high:
        raise LakeError(
            "the metadata store says that the mirror has this window, and the mirror's own log does not",
            hint="`redolake table rebuild OWNER.TABLE` writes the mirror from its change log; `redolake table resnapshot OWNER.TABLE` reads the table anew.",
            **where,
            position=position,
        )


def _files_of(
    work: TableWork, schema: TableSchema, scn_high: int, changelog_scn: int | None
) -> list[str]:
    """The change log's files that hold the window, if it is there already, perhaps under an older generation's identifier; none
    if it is not."""
    from deltalake import DeltaTable

    log = read_log(work.changelog)
    prefix = work.window_app.rsplit("/", 1)[0] + "/"
    reached = [
        version
        for app, version in (log.transactions.items() if log else ())
        if app.startswith(prefix) and app.removeprefix(prefix).isdigit()
    ]
    if max(changelog_scn or -1, *reached, -1) < scn_high:
        return []
    found = pa.table(DeltaTable(work.changelog).get_add_actions(flatten=True))
    least, most = found["min._cdc_window"], found["max._cdc_window"]
    inside = pc.and_(pc.less_equal(least, scn_high), pc.greater_equal(most, scn_high))
    names: list[str] = found["path"].filter(pc.fill_null(inside, True)).to_pylist()
    filesystem, root = filesystem_of(work.changelog)
    changes = WindowChanges(filesystem, [f"{root}/{name}" for name in names], schema, scn_high)
    try:
        return names if changes.facts().changes else []
    finally:
        changes.close()
