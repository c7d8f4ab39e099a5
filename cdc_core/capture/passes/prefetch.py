"""How is a window's redo prefetched, while the windows before it are still being captured?

By the pass that the window's turn would make, over redo that does not change any more
(:mod:`cdc_core.capture.passes.question`). The turn accepts the answer if it asks the very same
question; if it asks another one (a table left, joined, or was altered or renamed; redo came late
and lies below the window), the rows are thrown away and the window is read in its turn. The rows
wait as they may land: values that are left out or masked are not among them.
"""

from __future__ import annotations

import threading

from cdc_core.capture.logs.coverage import RedoLog, RedoState, log_starts, read_redo_state
from cdc_core.capture.logs.proving import refuse_incarnation
from cdc_core.capture.logs.standby import where_both_run
from cdc_core.capture.passes.answer import Answer, PassReader, answering
from cdc_core.capture.passes.question import ask
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.passes.stored_rows import StoredRows
from cdc_core.change_reader import WindowWork
from cdc_core.landing.store import LandingStore
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession


def prefetch(
    session: OracleSession,
    work: WindowWork,
    rules: CaptureRules,
    landing: LandingStore,
    stop: threading.Event,
    *,
    miner: OracleSession | None = None,
) -> Answer | None:
    """Read a window's redo before its turn; None if that cannot be done, or once ``stop`` is set.

    Args:
        session: In the container of the tables.
        work: The planned window, without anything of the one before it.
        miner: Where LogMiner runs, if that is a standby; ``session`` itself by default.

    Raises:
        CdcError: As in the window's turn, but nothing is tried again.
    """
    reading = Reading(work.record.mining_low, (), {})
    question = ask(session, work, rules, reading)
    if question.again:
        return None  # which rows these are, the ledger of the window before says
    reader, stored = PassReader(question, reading), StoredRows(landing.scratch())
    found = None
    try:
        logs = _store(session, miner or session, work, reader, stored, stop)
        found = stored_answer(session, reader, logs, stored)
    finally:
        if found is None:
            stored.close()
    return found


def _store(
    session: OracleSession,
    miner: OracleSession,
    work: WindowWork,
    reader: PassReader,
    stored: StoredRows,
    stop: threading.Event,
) -> list[RedoLog] | None:
    """Read the rows into the file, and give the logs; None if that cannot be done now."""
    with where_both_run(session, miner, reader.question.how):
        redo = read_redo_state(session)
        if not is_unchanging(redo, reader.question.window.scn_high):
            return None
        refuse_incarnation(redo.database.resetlogs_change, work.source.resetlogs_change)
        with answering(session, miner, reader, redo) as answer:
            for batch in answer.rows():
                stored.write(batch)
                if stop.is_set():
                    return None
    stored.finish()
    return answer.logs


def stored_answer(
    session: OracleSession, reader: PassReader, logs: list[RedoLog] | None, stored: StoredRows
) -> Answer | None:
    """The answer of a pass that has ended, from stored rows; None if it gave none, or if a table
    was renamed meanwhile: under which name its rows were shown, nobody knows."""
    if logs is None or not reader.question.still_names(session):
        return None
    answer = reader.answer(logs, stored.read)
    answer.stored = stored
    return answer


def is_unchanging(redo: RedoState, scn_high: Scn) -> bool:
    """Has every thread that is written begun a log above this SCN?"""
    return all(one.first_change > scn_high for one in log_starts(redo).values())
