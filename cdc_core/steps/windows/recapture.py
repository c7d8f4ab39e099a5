"""How is a window read from Oracle again: one whose folder was lost, or one that landed under a
wrong definition?

A window that every table has taken, and in which no transaction began that a table still waits for,
is not needed any more.

The rows of a window are numbered as they are read, and the ledger of open transactions names them
by their numbers. A window that is read again may number them otherwise: a table may have left
since. So everything from the lost window on is read again, in order, each with the ledger of the
one before. The windows keep their bounds, so tables that have them already take nothing twice. A
commit that one of them lacked, and a later one brought late, is now where it belongs: a table that
stands between the two has it from neither and leaves the stream. If something ends the process in
between, the same command goes on: nothing is forgotten before the redo of the first of these
windows has landed again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_core.change_reader import WindowWork
from cdc_core.config import LocalLandingConfig
from cdc_core.errors import ConfigError, LandingDamagedError, RedoUnavailableError
from cdc_core.landing.definitions import KeptDefinitions
from cdc_core.landing.layout import ORDINAL_SHIFT, window_folder
from cdc_core.landing.ledger import ledger_from_landing
from cdc_core.landing.manifest import MANIFEST_NAME, read_window_manifest
from cdc_core.landing.open import open_landing
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.scn import SCN_MAX, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.model.transactions import OpenTransaction
from cdc_core.steps.context import Context
from cdc_core.steps.windows.capture import land_window, window_work
from cdc_core.steps.windows.shared import lacks_commits, verify_files


@dataclass(frozen=True, slots=True)
class Recapture:
    """Windows whose landing is ``lost``; of these, the ones that a table or an open transaction
    ``needed``s; and ``again``: those that are read again, from the first one on that is asked
    for."""

    lost: tuple[WindowRecord, ...]
    needed: tuple[WindowRecord, ...]
    again: tuple[WindowRecord, ...]


def plan_recapture(
    ctx: Context, *, needed_only: bool = True, first: ScnWindow | None = None
) -> Recapture:
    """Which windows are lost from landing, and which must be read again? Nothing is changed.

    Args:
        ctx: The source.
        needed_only: Leave those out that no table needs any more.
        first: All from this window on, which is there, so that it lands under a better definition.

    Raises:
        ConfigError: Every table has taken ``first``.
    """
    begin = [] if first is None else [_still_wanted(ctx, first)]
    records = ctx.store.windows.find(states=("captured", "applied"))
    lost = [record for record in records if not _is_whole(ctx, record)]
    needed = _needed(ctx, records, lost)
    wanted = begin or (needed if needed_only else lost)
    start = wanted[0].ordinal if wanted else SCN_MAX
    if begin or not needed_only:
        start = _with_ledger_before(records, lost, start)
    again = tuple(record for record in records if record.ordinal >= start)
    return Recapture(tuple(lost), tuple(needed), again)


def _still_wanted(ctx: Context, window: ScnWindow) -> WindowRecord:
    first = ctx.captured_window(window)
    if not any(_wants(table, first) for table in ctx.store.tables.all()):
        raise ConfigError(
            "every table has applied this window, so nothing would read it",
            hint="`redolake table resnapshot OWNER.TABLE` reads a table again from Oracle.",
            window=first.window.key,
        )
    return first


def begin_recapture(ctx: Context, again: Sequence[WindowRecord]) -> None:
    """Read the first window again, and let it and the later ones be planned windows that are not
    captured.

    Raises:
        RedoUnavailableError: Its redo is gone; nothing was changed.
    """
    first = again[0]
    with ctx.lease("window-plan", wait_seconds=30), ctx.lease("capture", wait_seconds=120):
        earlier = [
            record
            for record in ctx.store.windows.find(states=("captured", "applied"))
            if record.ordinal < first.ordinal
        ]
        before = earlier[-1] if earlier else None
        ledger = [] if before is None else _ledger_after(ctx, before)
        work = window_work(ctx, first, before, ledger)
        is_alone = before is None and first.ordinal > 0
        if is_alone:
            work = _from_the_start(ctx, work)
        is_whole = _is_whole(ctx, first)
        has_landed = not is_whole and _has_landed_anew(ctx, first)
        if is_whole or (is_alone and not has_landed):
            late = _try_to_read(ctx, work) if work.tables else ()
            if is_alone and late:
                raise RedoUnavailableError(
                    "the windows before this one were retired, and they were not idle: which transactions were open at its beginning "
                    "is not known any more",
                    hint="Restore the folder from backup, or run `redolake table resnapshot OWNER.TABLE` for each of the tables.",
                    window=first.window.key,
                    tables=", ".join(late),
                )
        if not has_landed:
            ctx.landing.remove(window_folder(ctx.source, first.window))
            land_window(ctx, work)
        for record in again[1:]:
            ctx.landing.remove(window_folder(ctx.source, record.window))
        ctx.store.history.unrecord_captured(first.ordinal, ledger, _ends_of_lacking(ctx, first))


def _ends_of_lacking(ctx: Context, first: WindowRecord) -> list[StreamEnd]:
    """The tables that have ``first`` or a later window as it was without commits that a window
    behind their position was to bring: read again, it brings none. Those that stand before
    ``first`` take all windows as they are now."""
    return [
        StreamEnd(
            table.table,
            table.mirror_scn,
            "a window that the table has was read again; it now contains commits that the table would have applied with a later window",
            f"`redolake table resnapshot {table.table.argument}` reads the table again.",
        )
        for table in ctx.store.tables.all()
        if table.mirror_scn is not None
        and table.mirror_scn > max(first.window.scn_low, table.snapshot_scn or 0)
        and (table.is_captured or table.takes_windows or table.rest_waits is not None)
        and lacks_commits(ctx, table)
    ]


def _from_the_start(ctx: Context, work: WindowWork) -> WindowWork:
    """A window whose predecessors are gone reads all redo of the source again, as if it were the
    first one.

    If all of them were idle, that gives what they gave: no row and no commit of a captured table,
    and transactions that were open at the window's beginning have their rows in it. If one was not,
    commits come to light that lie below the window.
    """
    low = ctx.source_record().mining_low
    return replace(work, record=replace(work.record, mining_low=low), positions=())


def _try_to_read(ctx: Context, work: WindowWork) -> tuple[str, ...]:
    """Read the window into a folder that goes again: what has landed is given up only if Oracle
    still has its redo. Returns the tables that commits below the window touch."""
    with tempfile.TemporaryDirectory(prefix="redolake-recapture-") as folder:
        scratch = open_landing(LocalLandingConfig(path=folder))
        ctx.change_reader.capture_window(replace(work, complete=None), scratch)
        name = window_folder(ctx.source, work.record.window)
        manifest = read_window_manifest(
            scratch.read(name, MANIFEST_NAME),
            where=name,
            definitions=KeptDefinitions(scratch, ctx.source),
        )
        return manifest.tables_late


def _is_whole(ctx: Context, record: WindowRecord) -> bool:
    """Is the window's landing there as it was recorded?"""
    if not ctx.landing.exists(window_folder(ctx.source, record.window), MANIFEST_NAME):
        return False
    try:
        manifest, sha256 = ctx.window_manifest(record.window)
        verify_files(ctx, manifest)
    except LandingDamagedError:
        return False
    return sha256 == record.manifest_sha256


def _has_landed_anew(ctx: Context, record: WindowRecord) -> bool:
    """Did an earlier attempt read the window again, and end before that was recorded?"""
    try:
        manifest, _ = ctx.window_manifest(record.window)
        verify_files(ctx, manifest)
    except LandingDamagedError:
        return False
    return True


def _needed(
    ctx: Context, records: Sequence[WindowRecord], lost: Sequence[WindowRecord]
) -> list[WindowRecord]:
    """The lost windows without which something stops, in order: from the first one on that a table
    or a transaction needs, or a lost one before it that has the ledger with which that one is
    read."""
    low = _first_needed(ctx, records, {record.ordinal for record in lost})
    first = min((record.ordinal for record in lost if record.ordinal >= low), default=SCN_MAX)
    start = _with_ledger_before(records, lost, first)
    return [record for record in lost if record.ordinal >= start]


def _first_needed(ctx: Context, records: Sequence[WindowRecord], lost: set[int]) -> int:
    """The ordinal from which on windows are needed: the first that is not finished or that a table
    wants, or in which a transaction has rows that may commit in such a window."""
    tables = ctx.store.tables.all()
    wanted = next(
        (
            at
            for at, record in enumerate(records)
            if record.state == "captured" or any(_wants(one, record) for one in tables)
        ),
        len(records),
    )
    if wanted == len(records):
        ledger = ctx.store.ledger.open_transactions()
    else:
        whole = [record for record in records[:wanted] if record.ordinal not in lost]
        ledger = _ledger_after(ctx, whole[-1]) if whole else []
    first = records[wanted].ordinal if wanted < len(records) else SCN_MAX
    waiting = [one.first_ordinal for one in ledger if not one.is_over]
    return min([first, *(ordinal >> ORDINAL_SHIFT for ordinal in waiting)])


def _wants(table: TableRecord, record: WindowRecord) -> bool:
    if table.first_ordinal > record.ordinal:
        return False
    end = min(record.window.scn_high, table.stopped_scn or SCN_MAX)
    return table.needs_above < end


def _with_ledger_before(
    records: Sequence[WindowRecord], lost: Sequence[WindowRecord], first: int
) -> int:
    """The window, or an earlier one: that before it must be there, since it has the ledger with
    which it is read."""
    ordinals = {record.ordinal for record in lost}
    for record in reversed(records):
        if record.ordinal >= first:
            continue
        if record.ordinal not in ordinals:
            break
        first = record.ordinal
    return first


def _ledger_after(ctx: Context, record: WindowRecord) -> list[OpenTransaction]:
    manifest, _ = ctx.window_manifest(record.window)
    return ledger_from_landing(ctx.landing, manifest)
