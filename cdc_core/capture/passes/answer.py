"""How is a window's question answered by LogMiner: in one pass for all tables, and only from proved
logs?"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from cdc_core.capture.logs.coverage import RedoLog, RedoState
from cdc_core.capture.logs.dictionaries import has_old_names
from cdc_core.capture.logs.naming import logs_read
from cdc_core.capture.logs.proving import ProvedLogs, prove_logs, refuse_changed
from cdc_core.capture.logs.standby import check_same
from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.capture.passes.excluding import ExcludedValues
from cdc_core.capture.passes.joining import JoiningRows
from cdc_core.capture.passes.mining import mined_batches, mining
from cdc_core.capture.passes.question import Question
from cdc_core.capture.passes.reading_position import Reading, new_rows
from cdc_core.capture.passes.rows import RowReader
from cdc_core.capture.passes.stored_rows import StoredRows
from cdc_core.capture.passes.unnamed_rows import SeenRows
from cdc_core.capture.passes.wanted_rows import WantedRows
from cdc_core.errors import RedoUnavailableError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd
from cdc_core.model.transactions import OpenTransaction
from cdc_core.oracle.session import OracleSession


@dataclass(slots=True)
class PassFigures:
    """What a pass cost: the rows that it gave, the seconds until LogMiner had started, and those of
    waiting for rows. Of a pass for several pluggable databases, rows alone."""

    rows: int = 0
    start_seconds: float = 0.0
    fetch_seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Answer:
    """The rows that answer a question, and what was seen on the way.

    ``rows`` gives them as they may land: of a pass that has ended (``stored``) as often as one
    likes, of one that is being made once. The rest is whole when they have been read: each thread's
    highest address (``reading``), rows without a name, tables whose values could not be left out
    (``ends``), and what the pass cost (``figures``). ``unreachable`` are joining tables whose redo
    is gone, with the reason.
    """

    question: Question
    logs: list[RedoLog]
    reading: Reading
    unnamed: dict[int, SeenRows]
    ends: list[StreamEnd]
    rows: Callable[[], Generator[MinedBatch]]
    figures: PassFigures
    unreachable: list[tuple[TableId, Scn, RedoUnavailableError]] = field(default_factory=list)
    stored: StoredRows | None = None

    def close(self) -> None:
        """Give the rows up. May be called twice."""
        if self.stored is not None:
            self.stored.close()


class PassReader:
    """Makes rows that may land of the batches that a pass shows, for one question.

    Args:
        reading: The position of reading; it goes on with the rows.
        opened: The ledger at the window's lower end, for tables that join.
    """

    def __init__(
        self, question: Question, reading: Reading, opened: Sequence[OpenTransaction] = ()
    ) -> None:
        self.question, self.reading = question, reading
        self._reader = RowReader(
            question.ordinal,
            question.tables,
            reading,
            question.shown,
            by_number=has_old_names(question.how.strategy),
        )
        self._excluded = ExcludedValues(question.tables, question.masks, question.column_rules)
        places = {schema.table: place for place, schema in enumerate(question.tables)}
        lows = {places[table]: low for table, low in question.again.items()}
        self._joining = JoiningRows(lows, opened) if lows else None
        self.figures = PassFigures()

    @property
    def wanted(self) -> WantedRows:
        """Whose rows LogMiner is asked for."""
        asked = self.question
        return WantedRows(
            asked.tables, asked.shown, asked.unnamed, self.reading, asked.query_filter
        )

    def read(self, mined: Generator[pa.RecordBatch]) -> Generator[MinedBatch]:
        """All rows of a pass.

        Raises:
            DecodeError: The last statement ends in the middle.
            RedoUnavailableError: LogMiner found a hole in the redo.
        """
        with closing(mined) as batches:
            for batch in self._timed(batches):
                yield from self.take(batch)
            yield from self.end()

    def _timed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, with the seconds of waiting for them noted."""
        while True:
            started = time.monotonic()
            batch = next(batches, None)
            self.figures.fetch_seconds += time.monotonic() - started
            if batch is None:
                return
            yield batch

    def take(self, batch: pa.RecordBatch) -> Iterator[MinedBatch]:
        """The rows of the next batch; :meth:`end` follows the last one."""
        self.figures.rows += batch.num_rows
        return map(self._landing, self._reader.take(batch))

    def end(self) -> Iterator[MinedBatch]:
        """All batches were taken: the rows that are left."""
        return map(self._landing, self._reader.end())

    def answer(self, logs: list[RedoLog], rows: Callable[[], Generator[MinedBatch]]) -> Answer:
        """The answer with these rows, which this reader makes or has made."""
        return Answer(
            question=self.question,
            logs=logs,
            reading=self.reading,
            unnamed=self._reader.unnamed,
            ends=self._excluded.ends,
            rows=rows,
            figures=self.figures,
        )

    def _landing(self, batch: MinedBatch) -> MinedBatch:
        if self._joining is not None:
            is_new = new_rows(batch.rows, self.reading.scn_low, self.reading.before)
            batch = batch.filter(self._joining.keep(batch, is_new))
        return self._excluded.remove_from(batch)


@contextmanager
def answering(
    session: OracleSession, miner: OracleSession, reader: PassReader, redo: RedoState
) -> Iterator[Answer]:
    """Answer a question with a pass of its own, for the block in which the rows are read.

    Args:
        session: Of the primary, where LogMiner runs if there is no standby.
        miner: Where LogMiner runs.
        redo: What the primary showed before.

    Raises:
        LogsNotReadyError: A log is not there yet.
        RedoUnavailableError: Redo is gone.
        LogsChangedError: At the end of the block: a log was overwritten while it was read.
    """
    question = reader.question
    high, how = question.window.scn_high, question.how
    unreachable, low, proved = _reach(session, miner, reader, redo)
    started = time.monotonic()
    with mining(miner, proved.logs, low, high, how=how):
        reader.figures.start_seconds = time.monotonic() - started
        mined = mined_batches(miner, reader.wanted, high, rows=question.rows, logs_by=how.logs)
        with closing(reader.read(mined)) as rows:
            answer = reader.answer(proved.logs, lambda: rows)
            answer.unreachable = unreachable
            yield answer
        used = logs_read(miner, proved.logs, proved.copies, how.logs)
    refuse_changed(miner, used, proved.low, high, how)
    check_same(session, miner)


def _reach(
    session: OracleSession, miner: OracleSession, reader: PassReader, redo: RedoState
) -> tuple[list[tuple[TableId, Scn, RedoUnavailableError]], Scn, ProvedLogs]:
    """How far back redo is read, and the logs that it needs: for the joining tables as far as redo
    is there still, and those for which it is not."""
    question, reading = reader.question, reader.reading
    high, how = question.window.scn_high, question.how
    unreachable: list[tuple[TableId, Scn, RedoUnavailableError]] = []
    for table, low in sorted(question.again.items(), key=lambda join: join[1]):
        reading.again_above = low
        reach = Scn(reading.mining_low)
        try:
            proved = prove_logs(session, miner, redo, reach, high, how)
        except RedoUnavailableError as error:
            unreachable.append((table, low, error))
        else:
            return unreachable, reach, proved
    reading.again_above = None
    low = Scn(reading.mining_low)
    return unreachable, low, prove_logs(session, miner, redo, low, high, how)
