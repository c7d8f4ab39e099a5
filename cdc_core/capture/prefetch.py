"""How is a window's redo read before its turn, while the windows before it are still being captured?

What a window needs of the one before it (the ledger of open transactions, the positions of the threads, which tables are in the stream
and how they are defined) says what its rows mean. Which rows there are depends on two things alone:

* *The redo of its range.* It does not change any more once every redo thread has begun a log above the range: a switch has bound all
  redo below it (:mod:`cdc_core.capture.reading_position`), and logs that have ended are only read. No range is read early before that.
* *The question*: which tables, under which names and numbers, from which SCN on (:class:`Question`).

What is read right before the windows' turn, once for several sources (:mod:`cdc_core.capture.shared_pass`), may be redo that still changes: it is
the pass that the turn would have made. So it depends on what that one does, which the question then holds too (:class:`Unfinished`): the
positions after the window before, and the logs that were written before the pass. Redo that enters a log behind the pass is late for
the next window; a log that is switched in between makes the question another one, and the window is read again.

So an early pass answers a window's question if the window asks the very same one when its turn comes. If it asks another one
(a table left, joined, or was altered or renamed; redo came late and lies below the window), the early rows are thrown away and
the window is read in its turn. The rows wait in a file without a name, as they may land: values that are left out or masked are not
in it.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from cdc_core.capture.asked_rows import QueryFilter
from cdc_core.capture.batches import MinedBatch
from cdc_core.capture.dictionaries import has_old_names, names_shown
from cdc_core.capture.excluding import ExcludedValues
from cdc_core.capture.log_naming import logs_read, where_logminer_runs
from cdc_core.capture.logs import LogStart, RedoLog, read_log_starts
from cdc_core.capture.mining import MINED_SCHEMA, mined_batches, mining
from cdc_core.capture.proving import (
    ProvedLogs,
    check_database,
    check_incarnation,
    prove_logs,
    refuse_changed,
)
from cdc_core.capture.reading_position import Reading
from cdc_core.capture.rows import RowReader
from cdc_core.capture.shown_names import ShownNames
from cdc_core.capture.standby import check_same, where_both_run
from cdc_core.capture.unnamed_rows import KnownSegments, Seen
from cdc_core.config import LogMinerConfig
from cdc_core.decode.masking import Masks
from cdc_core.landing.store import LandingStore
from cdc_core.model.identifiers import TableId
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import TableSchema
from cdc_core.source import WindowWork

_WAITING_SCHEMA = MINED_SCHEMA.append(pa.field("ordinal", pa.int64())).append(
    pa.field("table", pa.int32())
)
_COMPRESSION = "lz4"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a pass over redo that may still change depends on: the positions ``before`` it, and per thread FIRST_CHANGE# of the log that was
    written when it began."""

    before: tuple[ThreadPosition, ...] | None
    first_scns: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """All that a pass depends on beside the redo.

    Args:
        ordinal: Of the window: its rows are numbered by it.
        reads_above: Redo above this SCN is asked for: the window's own, or lower where redo may have come late.
        again: Tables that join with the window, and the SCN above which their redo is read again.
        tables: Definitions of the captured tables, with all segments that are known.
        shown: The names under which LogMiner shows their rows.
        unnamed: Rows without a name are asked for.
        query_filter: How much of that the query says.
        masks: What lands in place of values.
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
    rows: int
    how: LogMinerConfig
    unfinished: Unfinished | None


def unfinished_of(work: WindowWork, starts: Mapping[int, LogStart]) -> Unfinished | None:
    """What a pass over the window depends on besides, by the logs that are written: nothing once every thread has begun one above it."""
    if all(one.first_change > work.record.window.scn_high for one in starts.values()):
        return None
    before = None if work.positions is None else tuple(work.positions)
    return Unfinished(before, {thread: one.first_change for thread, one in starts.items()})


def question_of(
    work: WindowWork,
    reading: Reading,
    segments: KnownSegments,
    shown: ShownNames,
    *,
    masks: Mapping[TableId, Masks],
    rows: int,
    how: LogMinerConfig,
    query_filter: QueryFilter,
    unfinished: Unfinished | None = None,
) -> Question:
    """What a window asks."""
    low = work.record.mining_low
    return Question(
        window=work.record.window,
        ordinal=work.record.ordinal,
        reads_above=Scn(reading.mining_low),
        again={table: above for table, above in work.joins.items() if above < low},
        tables=tuple(segments.tables),
        shown=shown,
        unnamed=segments.is_watching,
        query_filter=query_filter,
        masks=masks,
        rows=rows,
        how=how,
        unfinished=unfinished,
    )


@dataclass(slots=True)
class EarlyRows:
    """The rows that answer a question, and what was seen on the way: the logs, each thread's highest address, rows without a name, and
    tables whose values could not be left out."""

    question: Question
    logs: list[RedoLog]
    reading: Reading
    unnamed: dict[int, Seen]
    ends: list[StreamEnd]
    waiting: WaitingRows

    def close(self) -> None:
        """Give the rows up. May be called twice."""
        self.waiting.close()


def read_early(
    session: OracleSession,
    work: WindowWork,
    landing: LandingStore,
    stop: threading.Event,
    *,
    masks: Mapping[TableId, Masks],
    rows: int,
    how: LogMinerConfig,
    query_filter: QueryFilter | None = None,
    miner: OracleSession | None = None,
) -> EarlyRows | None:
    """Read a window's redo before its turn, in one pass; None if that cannot be done, or once ``stop`` is set.

    Args:
        session: In the container of the tables.
        work: The planned window, without anything of the one before it.
        miner: Where LogMiner runs, if that is a standby; ``session`` itself by default.

    Raises:
        CdcError: As in the window's turn, but nothing is tried again.
    """
    own = EarlyPass(
        session, work, landing, masks=masks, rows=rows, how=how, query_filter=query_filter
    )
    answer = None
    try:
        answer = _read(own, miner or session, stop)
    finally:
        if answer is None:
            own.close()
    return answer


def _read(own: EarlyPass, miner: OracleSession, stop: threading.Event) -> EarlyRows | None:
    asked, how = own.asked, own.asked.how
    low, high = asked.reads_above, asked.window.scn_high
    if asked.again:
        return None
    with where_both_run(own.session, miner, how):
        if (proved := own.prove(miner)) is None:
            return None
        with mining(miner, proved.logs, low, high, how=how, logs_by=how.logs):
            found = mined_batches(
                miner, asked.tables, own.reading, high,
                rows=asked.rows, shown=asked.shown, unnamed=asked.unnamed, query_filter=asked.query_filter,
                logs_by=how.logs,
            )  # fmt: skip
            with closing(found) as batches:
                for batch in batches:
                    own.take(batch)
                    if stop.is_set():
                        return None
            own.end()
            used = logs_read(miner, proved.logs, proved.copies, how.logs)
        refuse_changed(miner, used, proved.low, high, own.incarnation, how)
        check_same(own.session, miner)
    return own.answer(proved.logs)


class EarlyPass:
    """One window's part in a pass before its turn: what it asks, and the rows that answer it so far.

    Args:
        session: In the container of the tables.
        work: The planned window; without anything of the one before it unless that is captured.
        is_next: The window's turn follows the pass, so its redo may still change.
    """

    def __init__(
        self,
        session: OracleSession,
        work: WindowWork,
        landing: LandingStore,
        *,
        masks: Mapping[TableId, Masks],
        rows: int,
        how: LogMinerConfig,
        query_filter: QueryFilter | None = None,
        is_next: bool = False,
    ) -> None:
        self.session, self._work = session, work
        self.incarnation = work.source.resetlogs_change
        self.reading, unfinished = Reading(work.record.mining_low, (), {}), None
        if is_next:
            with where_logminer_runs(session, how.logs):
                unfinished = unfinished_of(work, read_log_starts(session))
        if unfinished is not None:
            low, scns = work.record.mining_low, unfinished.first_scns
            self.reading = Reading(low, unfinished.before, scns)
        segments = KnownSegments(work.tables)
        shown = names_shown(session, work.tables, how)
        segments.look(session)
        self.asked = question_of(
            work, self.reading, segments, shown,
            masks=masks, rows=rows, how=how, query_filter=query_filter or QueryFilter(), unfinished=unfinished,
        )  # fmt: skip
        self._reader = RowReader(
            self.asked.ordinal,
            self.asked.tables,
            self.reading,
            shown,
            by_number=has_old_names(how.strategy),
        )
        self._excluded = ExcludedValues(self.asked.tables, masks)
        self._waiting = WaitingRows(landing.scratch())

    def prove(self, miner: OracleSession) -> ProvedLogs | None:
        """The logs of the window, where LogMiner runs; None as long as its redo may change, and its turn is not next.

        Raises:
            CdcError: It is not the database that was snapshotted, or logs are gone.
        """
        high = self.asked.window.scn_high
        if self.asked.unfinished is None and not _is_unchanging(self.session, high):
            return None
        check_database(self.session, self._work.source)
        self.incarnation = check_incarnation(self.session, self._work.source.resetlogs_change)
        low, how = self.asked.reads_above, self.asked.how
        return prove_logs(self.session, miner, low, high, self.incarnation, how)

    def take(self, batch: pa.RecordBatch) -> None:
        """Keep the next rows, as they may land."""
        self._keep(self._reader.take(batch))

    def end(self) -> None:
        """All rows were taken.

        Raises:
            DecodeError: The last statement ends in the middle.
        """
        self._keep(self._reader.end())
        self._waiting.finish()

    def _keep(self, batches: Iterator[MinedBatch]) -> None:
        for batch in batches:
            self._waiting.write(self._excluded.remove_from(batch))

    def answer(self, logs: list[RedoLog]) -> EarlyRows | None:
        """The rows, behind the pass; None if a table was renamed meanwhile: under which name its rows were shown, nobody knows."""
        if names_shown(self.session, self._work.tables, self.asked.how) != self.asked.shown:
            return None
        return EarlyRows(
            self.asked,
            logs,
            self.reading,
            self._reader.unnamed,
            self._excluded.ends,
            self._waiting,
        )

    def close(self) -> None:
        """Give the rows up. May be called twice."""
        self._waiting.close()


def _is_unchanging(session: OracleSession, scn_high: Scn) -> bool:
    """Has every thread that is written begun a log above this SCN?"""
    starts = read_log_starts(session).values()
    return all(one.first_change > scn_high for one in starts)


@dataclass(slots=True)
class WaitingRows:
    """Batches in a file, written once, then read in the same pieces; closing it gives its room back."""

    file: BinaryIO
    _writer: pa.ipc.RecordBatchStreamWriter = field(init=False)

    def __post_init__(self) -> None:
        options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
        self._writer = pa.ipc.new_stream(self.file, _WAITING_SCHEMA, options=options)

    def write(self, batch: MinedBatch) -> None:
        """Append a batch."""
        columns = [*batch.rows.columns, pa.array(batch.ordinals), pa.array(batch.tables)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_WAITING_SCHEMA))

    def finish(self) -> None:
        """Nothing more is written."""
        self._writer.close()
        self.file.flush()

    def read(self) -> Generator[MinedBatch]:
        """The batches from the first one on. May be called again, when the last reading has ended."""
        self.file.seek(0)
        for batch in pa.ipc.open_stream(self.file):
            yield MinedBatch(
                batch.select(MINED_SCHEMA.names),
                batch.column("ordinal").to_numpy(),
                batch.column("operation_code").to_numpy(),
                _numbers(batch.column("table")),
            )

    def close(self) -> None:
        """Give the file back. May be called twice."""
        self.file.close()


def _numbers(column: pa.Array) -> np.typing.NDArray[np.int32]:
    found: np.typing.NDArray[np.int32] = column.to_numpy()
    return found
