"""Which tables leave the stream with a window, where, and for which reason?

:data:`DETECTORS` are all reasons but one, each judged in its own module. What changed without a row
in the redo (:mod:`cdc_core.capture.stream_ends.altered`) is asked last, of the tables that nothing
else has ended: what a DDL row of the window has ended is said by that row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from cdc_core.capture.passes.answer import Answer
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.passes.unnamed_rows import KnownSegments
from cdc_core.capture.stream_ends.altered import AlteredTables, read_altered
from cdc_core.capture.stream_ends.ddl_rows import DdlRow, FollowedDdl, follow_ddl
from cdc_core.capture.stream_ends.later_ddl import is_altered_soon_after
from cdc_core.capture.stream_ends.unlogged import unlogged_ends
from cdc_core.change_reader import WindowWork
from cdc_core.errors import LogsChangedError, RedoUnavailableError
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.model.transactions import IncompleteTransaction
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.history import SchemaHistory

_LOG = logging.getLogger(__name__)


@dataclass(kw_only=True)
class MinedWindow:
    """A window whose redo was read: what it shows, for those who ask what ends with it.

    Args:
        session: In the container of the tables.
        miner: Where LogMiner runs.
        segments: What is known of the tables' segments.
        answer: The pass, whose rows were read.
        ddl: The DDL rows of captured tables, with the SCN at which each committed.
        incomplete: Committed transactions that cannot be shown whole.
    """

    session: OracleSession
    miner: OracleSession
    work: WindowWork
    rules: CaptureRules
    segments: KnownSegments
    answer: Answer
    ddl: Sequence[DdlRow]
    incomplete: Sequence[IncompleteTransaction]

    @property
    def window(self) -> ScnWindow:
        """Its bounds."""
        return self.work.record.window

    @cached_property
    def history(self) -> SchemaHistory:
        """The tables' definitions; with new versions once DDL was followed."""
        return SchemaHistory(list(self.answer.question.tables))

    @cached_property
    def followed(self) -> FollowedDdl:
        """What became of the tables' definitions by DDL."""
        return follow_ddl(
            self.session,
            self.ddl,
            self.history,
            self.rules,
            partial(is_altered_soon_after, self.session, how=self.rules.how, miner=self.miner),
            given=self.work.given,
            scn_low=self.window.scn_low,
        )

    @cached_property
    def altered(self) -> AlteredTables:
        """What changed without a row, behind the DDL that was followed."""
        assert self.followed is not None
        return read_altered(
            self.session,
            self.window,
            self.history,
            self.rules.tables,
            self.ddl,
            data_objects=self.work.data_objects,
            read_at=self.work.read_at,
        )


def stream_ends(mined: MinedWindow) -> tuple[StreamEnd, ...]:
    """One end per table that leaves, the first.

    Raises:
        LogsChangedError: The window must be read again.
    """
    found = [end for detect in DETECTORS for end in detect(mined)]
    ended = {end.table for end in found}
    found += [end for end in mined.altered.ends if end.table not in ended]
    first: dict[TableId, StreamEnd] = {}
    for end in sorted(found, key=lambda one: one.scn):
        first.setdefault(end.table, end)
    return tuple(first.values())


def _unreachable(mined: MinedWindow) -> list[StreamEnd]:
    """Tables that join, and whose redo from before the window is gone."""
    record = mined.work.record
    return [
        _out_of_reach(table, low, record, error) for table, low, error in mined.answer.unreachable
    ]


def _unnamed(mined: MinedWindow) -> list[StreamEnd]:
    """Tables to which rows without a name may belong, of segments that nobody knows.

    Raises:
        LogsChangedError: Some are captured tables' after all, or there may be some.
    """
    learned, doubtful = mined.segments.resolve(mined.session, mined.answer.unnamed)
    if learned or mined.segments.watch(row.text for row in mined.ddl):
        raise LogsChangedError(
            "the partitions of captured tables changed while Redolake read the dictionary",
            hint="The window is read again with the rows of these.",
        )
    return mined.segments.doubtful(mined.session, doubtful, mined.window)


def _by_ddl(mined: MinedWindow) -> list[StreamEnd]:
    """Tables that a DDL ends the stream of."""
    return mined.followed.ends


def _incomplete(mined: MinedWindow) -> list[StreamEnd]:
    """Tables with changes of a transaction that cannot be shown whole, unless it committed before
    they were read: their snapshots have it."""
    tables = {str(schema.table): schema.table for schema in mined.answer.question.tables}
    read_at = mined.work.read_at
    return [
        _incomplete_end(table, one, mined.window)
        for one in mined.incomplete
        for table in map(tables.get, one.tables)
        if table is not None and (one.commit_scn is None or one.commit_scn > read_at.get(table, 0))
    ]


def _excluded(mined: MinedWindow) -> list[StreamEnd]:
    """Tables with rows from which values could not be left out."""
    return mined.answer.ends


def _unlogged(mined: MinedWindow) -> list[StreamEnd]:
    """Tables of which something was written without redo, unless a policy says otherwise."""
    ddl = [(row.table, row.text) for row in mined.ddl]
    tables = mined.answer.question.tables
    ends = unlogged_ends(mined.session, tables, mined.window, mined.work.read_at, ddl)
    ignored = [
        one
        for one in ends
        if one.trouble == "unlogged" and one.table in mined.rules.ignores_unlogged
    ]
    for one in ignored:
        _LOG.warning("policy on_unlogged says ignore table=%s: %s", one.table, one.reason)
    return [one for one in ends if one not in ignored]


DETECTORS: tuple[Callable[[MinedWindow], list[StreamEnd]], ...] = (
    _unreachable,
    _unnamed,
    _by_ddl,
    _incomplete,
    _excluded,
    _unlogged,
)
"""Why streams end; in the order in which Oracle is asked."""


def _out_of_reach(
    table: TableId, reach: Scn, record: WindowRecord, error: RedoUnavailableError
) -> StreamEnd:
    """A table that joins leaves at once: the redo that it needs from ``reach`` on is gone."""
    return StreamEnd(
        table,
        record.window.scn_low,
        "redo back to the oldest transaction that was open when the table joined is gone: "
        + error.what_happened,
        f"Wait until transactions that began before SCN {reach} have ended (V$TRANSACTION.START_SCN), then "
        f"`redolake table resnapshot {table.argument}`.",
    )


def _incomplete_end(table: TableId, one: IncompleteTransaction, window: ScnWindow) -> StreamEnd:
    """A table leaves right before a commit that may lack changes, or with the window if that lies
    before it."""
    before = one.commit_scn - 1 if one.commit_scn is not None else window.scn_low
    return StreamEnd(
        table,
        max(window.scn_low, before),
        f"a committed transaction is not proved to be complete: {one.reason} "
        f"(xid={one.xid}, commit_scn={one.commit_scn}, start_scn={one.start_scn})",
        f"`redolake table resnapshot {table.argument}` adds the table back with a new snapshot.",
    )
