"""How is a window applied to a table: change log first, then the mirror, each once?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cdc_core.errors import LakeError, NotYetError, WindowConflictError
from cdc_core.lake.carry import carried_view
from cdc_core.lake.changes import (
    ChangeFacts,
    ObservedFacts,
    change_facts,
    decoded_changes,
    window_view,
)
from cdc_core.lake.committed import read_committed
from cdc_core.lake.deriving import rederived_view
from cdc_core.lake.evolution import added_columns, check_mirror, settle_schema
from cdc_core.lake.history import read_log
from cdc_core.lake.merge import merge_sql
from cdc_core.lake.reduce import last_change_sql, reduced_sql, shared_keys_sql
from cdc_core.lake.spark import interpreted, translated
from cdc_core.lake.tables import delta
from cdc_core.lake.work import TableWork
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import TableApplied
from cdc_core.schema.table import TableSchema

ONE_TASK_CHANGES_MAX = 20_000
"""Up to so many changes are reduced in one task: the reduction's steps then need no shuffle between them, each of which costs
more than the work."""


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
    identifier, and the MERGE reads its changes back from the change log.
    """
    started = time.monotonic()
    window = manifest.window
    where = work.facts(window=window.key)
    done = work.position()
    if done.mirror_scn is not None and done.mirror_scn >= window.scn_high:
        return TableApplied(table=work.table, skipped=True)
    _check_order(where, done.mirror_scn, position, window.scn_low)
    committed = read_committed(
        transactions_paths, work.table, window, ordinal=manifest.ordinal, late_above=late_above
    )
    if committed.count == 0:
        return TableApplied(table=work.table, seconds=time.monotonic() - started)
    _check_store(where, position, window.scn_high)
    session = work.open_session()
    if position is None:
        work.create_tables(session, schema)
    excluded = schema.excluded
    check_mirror(work, schema := settle_schema(work, session, schema), work.require_mirror())
    metadata = {"scn_low": window.scn_low, "window": window.key}
    small = (
        committed.earlier == ()
        and manifest.rows_by_table.get(str(work.table), 0) <= ONE_TASK_CHANGES_MAX
    )
    with interpreted(session, small=small):
        facts: ChangeFacts | None = None
        if not _has_window(work, session, window.scn_high, done.changelog_scn):
            changes = decoded_changes(
                session,
                manifest,
                schema,
                committed,
                redo_paths,
                transactions_paths,
                decode,
                earlier,
                excluded,
            )
            observed = ObservedFacts(changes, schema)
            work.append(
                observed.frame,
                work.changelog,
                "appending a window to the change log",
                work.metadata("window", window.scn_high, **metadata),
                (work.window_app, window.scn_high),
            )
            facts = observed.get()
        view = window_view(session, work.changelog, window.scn_high)
        facts = facts or change_facts(session, view, schema)
        if committed.late:
            source, absent = rederived_view(
                work, session, view, schema,
                position=window.scn_high, covered_scn=covered_scn, is_late=True,
            )  # fmt: skip
        else:
            if facts.changes <= ONE_TASK_CHANGES_MAX:
                session.table(view).coalesce(1).createOrReplaceTempView(view)
            source, absent = reduced_view(work, session, view, schema, facts), facts.absent
    text = merge_sql(
        work.mirror,
        source,
        schema,
        absent=absent,
        covered_scn=covered_scn,
        force=committed.late > 0,
    )
    with work.commit(
        session,
        "merging a window into the mirror",
        work.metadata("window", window.scn_high, changes=facts.changes, **metadata),
        (work.window_app, window.scn_high),
    ):
        counts = session.sql(text).collect()
    return report(work.table, counts, facts.changes, started)


def reduced_view(
    work: TableWork, session: Any, view: str, schema: TableSchema, facts: ChangeFacts
) -> str:
    """A view with one row per key of a window's changes."""
    defaults = added_columns(read_log(work.changelog))
    if facts.moved_absent:
        view = carried_view(session, view, schema, facts.absent, defaults, work.mirror)
    with translated("reducing a window", **work.facts()):
        if facts.moved or facts.absent or _shares_keys(session, view, schema, facts):
            reduced = reduced_sql(view, schema, absent=facts.absent, defaults=defaults)
        else:
            reduced = last_change_sql(view, schema)
        # MERGE looks at its source several times; it shall plan and compute the reduction once.
        session.sql(reduced).localCheckpoint().createOrReplaceTempView("reduced")
    return "reduced"


def _shares_keys(session: Any, view: str, schema: TableSchema, facts: ChangeFacts) -> bool:
    """Did a key belong to several rows inside a transaction? Only a window with inserts and deletes is asked."""
    if not (facts.inserts and facts.deletes):
        return False
    return not session.sql(shared_keys_sql(view, schema)).isEmpty()


def report(table: TableId, counts: list[Any], changes: int, started: float) -> TableApplied:
    """A report from MERGE's own metrics; Delta gives none when it skipped a repeated transaction."""
    if not counts:
        return TableApplied(table=table, skipped=True)
    row = counts[0]
    return TableApplied(
        table=table,
        rows_inserted=row["num_inserted_rows"],
        rows_updated=row["num_updated_rows"],
        rows_deleted=row["num_deleted_rows"],
        changes=changes,
        seconds=time.monotonic() - started,
        skipped=False,
    )


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


def _has_window(work: TableWork, session: Any, scn_high: int, changelog_scn: int | None) -> bool:
    """Is the window in the change log already, perhaps under an older generation's identifier?"""
    if changelog_scn is not None and changelog_scn >= scn_high:
        return True
    log = read_log(work.changelog)
    prefix = work.window_app.rsplit("/", 1)[0] + "/"
    older = [
        version
        for app, version in (log.transactions.items() if log else ())
        if app.startswith(prefix) and app.removeprefix(prefix).isdigit()
    ]
    if not any(version >= scn_high for version in older):
        return False
    with translated("reading the change log", **work.facts()):
        found = session.sql(
            f"SELECT 1 FROM {delta(work.changelog)} "
            f"WHERE _cdc_window = {scn_high} AND _cdc_snapshot IS NULL LIMIT 1"
        ).collect()
    return bool(found)
