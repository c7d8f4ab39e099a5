"""How is the redo of one range read once for several pluggable databases?

LogMiner in the root shows the redo of all containers, so one pass can answer the questions of several windows with the same bounds: each
row goes to the window of its container (``SRC_CON_NAME``). What each gets is what a pass of its own before its turn would have given
(:mod:`cdc_core.capture.prefetch`), in batches of the same size: the same files land. What cannot be answered so is asked again by its window,
in its turn: one whose tables were renamed meanwhile, or whose rows cannot be taken, leaves the others alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.capture.asked_rows import Wanted
from cdc_core.capture.log_naming import logs_read, where_logminer_runs
from cdc_core.capture.logs import RedoLog
from cdc_core.capture.mining import CONTAINER, MINED_SCHEMA, mined_of_all, mining
from cdc_core.capture.prefetch import EarlyPass, EarlyRows
from cdc_core.capture.proving import ProvedLogs, refuse_changed
from cdc_core.config import LogMinerConfig
from cdc_core.errors import CdcError
from cdc_core.model.operations import Operation

_LOG = logging.getLogger(__name__)


def can_share(how: LogMinerConfig) -> bool:
    """Does LogMiner run in the root of the primary?"""
    return how.logs == "files" and how.standby_dsn is None


def read_shared(passes: Sequence[EarlyPass]) -> list[EarlyRows | None]:
    """Read the redo of windows with the same bounds in one pass, in the first one's session.

    Args:
        passes: Each in a session in its own pluggable database, and all under the same ``capture``.

    Returns:
        The answer to each; None where it must be read in its turn.

    Raises:
        CdcError: The pass failed, and nothing was answered.
    """
    shares = [_Share(one) for one in passes]
    try:
        asking = [share for share in shares if share.asks_with(shares[0]) and share.prove()]
        if len(asking) > 1:
            logs = _read(asking)
            for share in asking:
                share.finish(logs)
    finally:
        for share in shares:
            share.close()
    return [share.answer for share in shares]


def _read(asking: Sequence[_Share]) -> list[RedoLog]:
    first = asking[0]
    session, asked = first.own.session, first.own.asked
    proved = first.proved
    assert proved is not None
    low, high, how = asked.reads_above, asked.window.scn_high, asked.how
    wanted = {share.container: share.wanted for share in asking}
    with where_logminer_runs(session, how.logs):
        with mining(session, proved.logs, low, high, how=how, logs_by=how.logs):
            found = mined_of_all(session, wanted, low, high, rows=asked.rows)
            with closing(found) as batches:
                for batch in batches:
                    for share in asking:
                        share.take(batch)
            used = logs_read(session, proved.logs, proved.copies, how.logs)
        refuse_changed(session, used, proved.low, high, first.own.incarnation, how)
    return proved.logs


class _Share:
    """The part of one pluggable database."""

    def __init__(self, own: EarlyPass) -> None:
        self.own = own
        self.container = own.session.container
        self.proved: ProvedLogs | None = None
        self.answer: EarlyRows | None = None
        self._held: list[pa.RecordBatch] = []
        self._is_out = False
        asked = own.asked
        self.wanted = Wanted(
            asked.tables, asked.shown, asked.unnamed, own.reading, asked.query_filter
        )

    def asks_with(self, other: _Share) -> bool:
        """Does it ask for the same redo in the same way?"""
        mine, its = self.own.asked, other.own.asked
        return (mine.window, mine.reads_above, mine.rows, mine.how) == (
            its.window,
            its.reads_above,
            its.rows,
            its.how,
        )

    def prove(self) -> bool:
        """May its redo be read now?"""
        try:
            if not self.own.asked.again:
                with where_logminer_runs(self.own.session, self.own.asked.how.logs):
                    self.proved = self.own.prove(self.own.session)
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
        self._held.append(self.wanted.taken_from(rows))
        try:
            for whole in self._whole_batches():
                self.own.take(whole)
        except CdcError as error:
            self._leave(error)

    def finish(self, logs: list[RedoLog]) -> None:
        """All rows were taken."""
        if self._is_out:
            return
        try:
            for rest in _joined(self._held):
                self.own.take(rest)
            self.own.end()
            self.answer = self.own.answer(logs)
        except CdcError as error:
            self._leave(error)

    def close(self) -> None:
        """Give up what answers nothing."""
        if self.answer is None:
            self.own.close()

    def _whole_batches(self) -> Iterator[pa.RecordBatch]:
        size = self.own.asked.rows
        while sum(one.num_rows for one in self._held) >= size:
            [rows] = _joined(self._held)
            self._held = [rows.slice(size)]
            yield rows.slice(0, size)

    def _leave(self, error: CdcError) -> None:
        self._is_out, self._held = True, []
        _LOG.info(
            "a window is read in its turn, not with others container=%s: %s", self.container, error
        )


def _joined(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Their rows in one batch; none if there are none."""
    rows: list[pa.RecordBatch] = (
        pa.Table.from_batches(batches, MINED_SCHEMA).combine_chunks().to_batches()
    )
    return rows
