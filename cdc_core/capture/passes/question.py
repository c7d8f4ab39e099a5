"""What does a pass over the redo depend on, so that its rows are those that a window asks for?

What a window needs of the one before it (the ledger of open transactions, the positions of the
threads, which tables are in the stream and how they are defined) says what its rows mean. Which
rows there are depends on two things alone:

* *The redo of its range.* It does not change any more once every redo thread has begun a log above
  the range: a switch has bound all redo below it (:mod:`cdc_core.capture.passes.reading_position`),
  and logs that have ended are only read.
* *The question*: which tables, under which names and numbers, from which SCN on
  (:class:`Question`).

A pass over redo that may still change depends on the moment as well, which the question then holds
too (:class:`UnfinishedRedo`): the positions after the window before, and the logs that were written
when it began. Redo that enters a log behind the pass is late for the next window; a log that is
switched in between makes the question another one.

So whoever answers the question that a window asks in its turn, has read its redo: the window's own
pass, a prefetch, or one pass for several pluggable databases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_core.capture.logs.coverage import LogStart
from cdc_core.capture.logs.dictionaries import names_shown
from cdc_core.capture.logs.shown_names import ShownNames
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.passes.unnamed_rows import KnownSegments
from cdc_core.capture.passes.wanted_rows import QueryFilter
from cdc_core.change_reader import WindowWork
from cdc_core.config import LogMinerConfig
from cdc_core.decode.masking import Masks
from cdc_core.model.identifiers import TableId
from cdc_core.model.patterns import ColumnRule
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import TableSchema


@dataclass(frozen=True, slots=True)
class UnfinishedRedo:
    """What a pass over redo that may still change depends on: the positions ``before`` it, and per
    thread FIRST_CHANGE# of the log that was written when it began."""

    before: tuple[ThreadPosition, ...] | None
    first_scns: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """All that a pass depends on beside the redo.

    Args:
        ordinal: Of the window: its rows are numbered by it.
        reads_above: Redo above this SCN is asked for: the window's own, or lower where redo may
            have come late.
        again: Tables that join with the window, and the SCN above which their redo is read again.
        tables: Definitions of the captured tables, with all segments that are known.
        shown: The names under which LogMiner shows their rows.
        unnamed: Rows without a name are asked for.
        query_filter: How much of that the query says.
        masks: What lands in place of values.
        column_rules: Which columns are left out by pattern.
        rows: Rows per batch.
        how: Which logs LogMiner reads, and by which dictionary it names rows.
        unfinished: Where the redo of the window may still change; None where it does not.
    """

    window: ScnWindow
    ordinal: int
    reads_above: Scn
    again: Mapping[TableId, Scn]
    tables: tuple[TableSchema, ...]
    shown: ShownNames
    unnamed: bool
    query_filter: QueryFilter
    masks: Mapping[TableId, Masks]
    column_rules: Mapping[TableId, ColumnRule]
    rows: int
    how: LogMinerConfig
    unfinished: UnfinishedRedo | None

    def still_names(self, session: OracleSession) -> bool:
        """Does LogMiner show the tables' rows under the same names, behind the pass?"""
        return names_shown(session, self.tables, self.how) == self.shown


def ask(
    session: OracleSession,
    work: WindowWork,
    rules: CaptureRules,
    reading: Reading,
    *,
    segments: KnownSegments | None = None,
    unfinished: UnfinishedRedo | None = None,
) -> Question:
    """What a window asks now.

    Args:
        session: In the container of the tables.
        reading: The position of reading, at its beginning.
        segments: What was learned of the tables' segments; nothing by default.
        unfinished: See :func:`unfinished_of`.
    """
    shown = names_shown(session, work.tables, rules.how)
    segments = segments or KnownSegments(work.tables)
    segments.look(session)
    low = work.record.mining_low
    return Question(
        window=work.record.window,
        ordinal=work.record.ordinal,
        reads_above=Scn(reading.mining_low),
        again={table: above for table, above in work.joins.items() if above < low},
        tables=tuple(segments.tables),
        shown=shown,
        unnamed=segments.is_watching,
        query_filter=rules.query_filter,
        masks=rules.masks,
        column_rules=rules.column_rules,
        rows=rules.rows,
        how=rules.how,
        unfinished=unfinished,
    )


def unfinished_of(work: WindowWork, starts: Mapping[int, LogStart]) -> UnfinishedRedo | None:
    """What a pass over the window depends on besides, by the logs that are written: nothing once
    every thread has begun one above it."""
    if all(one.first_change > work.record.window.scn_high for one in starts.values()):
        return None
    before = None if work.positions is None else tuple(work.positions)
    return UnfinishedRedo(before, {thread: one.first_change for thread, one in starts.items()})
