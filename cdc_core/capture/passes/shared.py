"""How is the redo of one range read once for several pluggable databases?

LogMiner in the root shows the redo of all containers, so one pass can answer the questions of
several windows with the same bounds: each row goes to the window of its container
(``SRC_CON_NAME``). What each gets is what a pass of its own would have given, in batches of the
same size: the same files land. The windows' turns follow, so the redo may still change
(:class:`~cdc_core.capture.passes.question.UnfinishedRedo`). What cannot be answered so is asked
again by its window, in its turn: one whose tables were renamed meanwhile, or whose rows cannot be
taken, leaves the others alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.logs.coverage import RedoLog, log_starts, read_redo_state
from cdc_core.capture.logs.naming import logs_read, where_logminer_runs
from cdc_core.capture.logs.proving import (
    ProvedLogs,
    prove_logs,
    refuse_changed,
    refuse_incarnation,
)
from cdc_core.capture.passes.answer import Answer, PassReader
from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.capture.passes.mining import CONTAINER, MINED_SCHEMA, mined_of_all, mining
from cdc_core.capture.passes.prefetch import stored_answer
from cdc_core.capture.passes.question import Question, ask, unfinished_of
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.passes.stored_rows import StoredRows
from cdc_core.change_reader import WindowWork
from cdc_core.config import LogMinerConfig
from cdc_core.errors import CdcError
from cdc_core.landing.store import LandingStore
from cdc_core.model.operations import Operation
from cdc_core.oracle.session import OracleSession

_LOG = logging.getLogger(__name__)


def can_share(how: LogMinerConfig) -> bool:
    """Does LogMiner run in the root of the primary?"""
    return how.logs == "files" and how.standby_dsn is None


def read_shared(shares: Sequence[Share]) -> list[Answer | None]:
    """Read the redo of windows with the same bounds in one pass, in the first one's session.

    Args:
        shares: Each in a session in its own pluggable database, and all under the same ``capture``.

    Returns:
        The answer to each; None where it must be read in its turn.

    Raises:
        CdcError: The pass failed, and nothing was answered.
    """
    try:
        asking = [one for one in shares if one.asks_with(shares[0]) and one.prove()]
        if len(asking) > 1:
            logs = _read(asking)
            for share in asking:
                share.finish(logs)
    finally:
        for share in shares:
            share.close()
    return [share.answer for share in shares]


def _read(asking: Sequence[Share]) -> list[RedoLog]:
    session, question, proved = asking[0].session, asking[0].question, asking[0].proved
    assert proved is not None
    low, high, how = question.reads_above, question.window.scn_high, question.how
    wanted = {share.container: share.wanted for share in asking}
    with where_logminer_runs(session, how.logs):
        with mining(session, proved.logs, low, high, how=how):
            found = mined_of_all(session, wanted, low, high, rows=question.rows)
            with closing(found) as batches:
                for batch in batches:
                    for share in asking:
                        share.take(batch)
            used = logs_read(session, proved.logs, proved.copies, how.logs)
        refuse_changed(session, used, proved.low, high, how)
    return proved.logs


class Share:
    """The part of one pluggable database in a pass: what its window asks, and the rows that answer
    it so far.

    Args:
        session: In the pluggable database.
        work: The planned window, whose turn follows the pass.
    """

    def __init__(
        self, session: OracleSession, work: WindowWork, rules: CaptureRules, landing: LandingStore
    ) -> None:
        self.session, self._work, self.container = session, work, session.container
        self.proved: ProvedLogs | None = None
        self.answer: Answer | None = None
        self._redo = read_redo_state(session)
        unfinished = unfinished_of(work, log_starts(self._redo))
        reading = Reading(work.record.mining_low, (), {})
        if unfinished is not None:
            low, scns = work.record.mining_low, unfinished.first_scns
            reading = Reading(low, unfinished.before, scns)
        question = ask(session, work, rules, reading, unfinished=unfinished)
        self._reader = PassReader(question, reading)
        self.wanted = self._reader.wanted
        self._stored = StoredRows(landing.scratch())
        self._pending: list[pa.RecordBatch] = []
        self._is_out = False

    @property
    def question(self) -> Question:
        """What its window asks."""
        return self._reader.question

    def asks_with(self, other: Share) -> bool:
        """Does it ask for the same redo in the same way?"""
        mine, its = self.question, other.question
        return (mine.window, mine.reads_above, mine.rows, mine.how) == (
            its.window,
            its.reads_above,
            its.rows,
            its.how,
        )

    def prove(self) -> bool:
        """May its redo be read now?"""
        try:
            if not self.question.again:
                self.proved = self._proved()
        except CdcError as error:
            self._leave(error)
        return self.proved is not None

    def take(self, batch: pa.RecordBatch) -> None:
        """Keep the rows of the container, in batches of the size that a pass of its own has."""
        if self._is_out:
            return
        mine = pc.equal(batch.column(CONTAINER.name), self.container)
        hole = pc.equal(batch.column("operation_code"), int(Operation.MISSING_SCN))
        mine = pc.or_(pc.fill_null(mine, False), hole)
        rows = batch.select(MINED_SCHEMA.names).filter(mine)
        self._pending.append(self.wanted.selected_from(rows))
        try:
            for whole in self._whole_batches():
                self._store(self._reader.take(whole))
        except CdcError as error:
            self._leave(error)

    def finish(self, logs: list[RedoLog]) -> None:
        """All rows were taken."""
        if self._is_out:
            return
        try:
            for rest in _joined(self._pending):
                self._store(self._reader.take(rest))
            self._store(self._reader.end())
            self._stored.finish()
            self.answer = stored_answer(self.session, self._reader, logs, self._stored)
        except CdcError as error:
            self._leave(error)

    def close(self) -> None:
        """Give up what answers nothing."""
        if self.answer is None:
            self._stored.close()

    def _proved(self) -> ProvedLogs:
        session, question, redo = self.session, self.question, self._redo
        refuse_incarnation(redo.database.resetlogs_change, self._work.source.resetlogs_change)
        low, high, how = question.reads_above, question.window.scn_high, question.how
        return prove_logs(session, session, redo, low, high, how)

    def _store(self, batches: Iterator[MinedBatch]) -> None:
        for batch in batches:
            self._stored.write(batch)

    def _whole_batches(self) -> Iterator[pa.RecordBatch]:
        size = self.question.rows
        while sum(one.num_rows for one in self._pending) >= size:
            [rows] = _joined(self._pending)
            self._pending = [rows.slice(size)]
            yield rows.slice(0, size)

    def _leave(self, error: CdcError) -> None:
        self._is_out, self._pending = True, []
        _LOG.info(
            "a window is read in its turn, not with others container=%s: %s", self.container, error
        )


def _joined(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Their rows in one batch; none if there are none."""
    rows: list[pa.RecordBatch] = (
        pa.Table.from_batches(batches, MINED_SCHEMA).combine_chunks().to_batches()
    )
    return rows
