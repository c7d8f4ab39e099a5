"""How is one window read from redo into landing?

It asks a question (:mod:`cdc_core.capture.passes.question`), accepts the answer of a pass that was
made before its turn if that answers it, or has a pass of its own made
(:mod:`cdc_core.capture.passes.answer`); follows the transactions, lands the rows, judges which
tables leave (:mod:`cdc_core.capture.stream_ends.detectors`), and finishes with the manifest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from cdc_core.capture.attempts import attempts
from cdc_core.capture.logs.coverage import LogStart, log_starts, read_redo_state
from cdc_core.capture.logs.proving import check_incarnation, refuse_incarnation
from cdc_core.capture.logs.standby import where_both_run
from cdc_core.capture.passes.answer import Answer, PassReader, answering
from cdc_core.capture.passes.joining import uncounted
from cdc_core.capture.passes.question import ask, unfinished_of
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.passes.unnamed_rows import KnownSegments
from cdc_core.capture.stream_ends.detectors import MinedWindow, stream_ends
from cdc_core.capture.transactions.ledger import TransactionLedger
from cdc_core.capture.transactions.orphans import judged, read_living
from cdc_core.capture.window_rows import LandedWindow, WindowRows
from cdc_core.change_reader import WindowWork
from cdc_core.errors import LogsChangedError
from cdc_core.landing.definitions import keep_definitions
from cdc_core.landing.layout import window_folder
from cdc_core.landing.manifest import LogUsed, WindowManifest, window_manifest_bytes
from cdc_core.landing.store import LandingStore
from cdc_core.model.streams import StreamBegin, StreamEnd
from cdc_core.model.transactions import OpenTransaction
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.segments import knowing
from cdc_core.schema.table import TableSchema

_LOG = logging.getLogger(__name__)


def capture_window(
    session: OracleSession,
    work: WindowWork,
    rules: CaptureRules,
    landing: LandingStore,
    *,
    prefetched: Answer | None = None,
    miner: OracleSession | None = None,
) -> None:
    """Read a window's redo once, write it to landing, and finish with its manifest.

    What passes (a log switched or not archived yet) is tried again a few times; nothing has landed
    before the manifest. What changes under LogMiner (ORA-01368, ORA-00310, ORA-00334, ORA-01289) is
    mined again, as often as :mod:`~cdc_core.capture.attempts` says.

    Args:
        session: In the container of the tables.
        work: The planned window: redo in ``(mining_low, window.scn_high]`` is its own; redo below
            that came late is read too.
        landing: Where the window lands.
        prefetched: The rows of a pass before the window's turn: they are taken if they answer what
            it asks.
        miner: Where LogMiner runs, if that is a standby; ``session`` itself by default.

    Raises:
        LogsNotReadyError: A log is not there yet, after some waiting.
        RedoUnavailableError: Redo is gone, a file cannot be opened, or the database was opened with
            RESETLOGS.
        OracleError: Every pass was spoiled by a log that changed.
    """
    segments = KnownSegments(work.tables)
    for attempt in attempts():
        with attempt:
            # A second attempt reads for itself what the first one could not use.
            taken, prefetched = prefetched, None
            turn = _Turn(session, miner or session, work, rules, segments)
            turn.capture(landing, taken)


class _Turn:
    """One attempt at one window."""

    def __init__(
        self,
        session: OracleSession,
        miner: OracleSession,
        work: WindowWork,
        rules: CaptureRules,
        segments: KnownSegments,
    ) -> None:
        self._session, self._miner = session, miner
        self._work, self._rules, self._segments = work, rules, segments
        # Before the pass, and so before LogMiner: what is still unwritten now began in these logs.
        self._redo = read_redo_state(session)
        refuse_incarnation(self._redo.database.resetlogs_change, work.source.resetlogs_change)
        starts = log_starts(self._redo)
        self._reading = Reading(work.record.mining_low, work.positions, _first_scns(starts))
        unfinished = unfinished_of(work, starts)
        self._question = ask(
            session, work, rules, self._reading, segments=segments, unfinished=unfinished
        )
        instances = len(self._redo.database.written)
        self._living = read_living(session, instances) if work.ledger else None
        self._ledger = _ledger_of(work, self._question.tables)

    def capture(self, landing: LandingStore, prefetched: Answer | None) -> None:
        """Land the window."""
        started, work, session = time.monotonic(), self._work, self._session
        folder = window_folder(work.source.name, work.record.window)
        rows = WindowRows(
            window=work.record.window.key,
            tables=self._question.tables,
            ledger=self._ledger,
            landing=landing,
            folder=folder,
        )
        with self._answer(prefetched) as answer:
            landed = rows.land(answer.rows(), self._still_open)
        if not self._question.still_names(session):
            raise LogsChangedError(
                "captured tables were renamed or dropped while their redo was read",
                hint="The window is read again under their present names.",
            )
        mined = MinedWindow(
            session=session,
            miner=self._miner,
            work=work,
            rules=self._rules,
            segments=self._segments,
            answer=answer,
            ddl=rows.ddl_rows(),
            incomplete=self._ledger.incomplete,
        )
        left = stream_ends(mined)
        check_incarnation(session, work.source.resetlogs_change)
        manifest = self._manifest(mined, left, landed, rows.rows_by_table, started)
        manifest = work.complete(manifest) if work.complete else manifest
        definitions = keep_definitions(landing, work.source.name, manifest.schemas)
        landing.write_manifest(folder, window_manifest_bytes(manifest, definitions))
        _log(manifest, self._released(landed))

    @contextmanager
    def _answer(self, prefetched: Answer | None) -> Iterator[Answer]:
        """The prefetched rows if they answer what the window asks; else those of a pass of its
        own."""
        if prefetched is not None and prefetched.question == self._question:
            self._reading.count(prefetched.reading)
            yield prefetched
            return
        reader = PassReader(self._question, self._reading, self._work.ledger)
        with (
            where_both_run(self._session, self._miner, self._rules.how),
            answering(self._session, self._miner, reader, self._redo) as answer,
        ):
            yield answer

    def _still_open(self) -> list[OpenTransaction]:
        """The ledger after the window."""
        ledger = self._ledger.open_transactions()
        if self._living is None:
            return ledger
        before = {one.xid for one in self._work.ledger}
        low = self._work.record.window.scn_low
        return judged(ledger, self._living, before=before, scn_low=low)

    def _released(self, landed: LandedWindow) -> list[OpenTransaction]:
        """What this window gave up."""
        before = {one.xid for one in self._work.ledger if one.state == "released"}
        return [one for one in landed.open if one.state == "released" and one.xid not in before]

    def _manifest(
        self,
        mined: MinedWindow,
        left: Sequence[StreamEnd],
        landed: LandedWindow,
        rows_by_table: Mapping[str, int],
        started: float,
    ) -> WindowManifest:
        work, ledger, history = self._work, self._ledger, mined.history
        assert landed.transactions is not None
        return WindowManifest(
            source=work.source.name,
            window=work.record.window,
            ordinal=work.record.ordinal,
            mining_low=self._reading.mining_low,
            redo_files=tuple(landed.redo),
            files_by_table=landed.by_table,
            transactions_file=landed.transactions,
            rows_by_table=dict(rows_by_table),
            tables_committed=tuple(sorted(ledger.tables_committed)),
            transactions_committed=ledger.committed,
            transactions_rolled_back=ledger.rolled_back,
            transactions_open=sum(not one.is_over for one in landed.open),
            transactions_released=len(self._released(landed)),
            logs=tuple(
                LogUsed(
                    thread=log.thread,
                    sequence=log.sequence,
                    name=log.name,
                    first_change=log.first_change,
                    next_change=log.next_change,
                )
                for log in mined.answer.logs
            ),
            schemas=tuple(
                knowing(history.latest(table), self._segments.of(table)) for table in history.tables
            ),
            schema_changes=tuple(mined.followed.changes),
            signals=tuple(mined.followed.signals),
            resetlogs_change=work.source.resetlogs_change,
            seconds=time.monotonic() - started,
            rows_mined=mined.answer.figures.rows,
            mining_start_seconds=round(mined.answer.figures.start_seconds, 3),
            mining_fetch_seconds=round(mined.answer.figures.fetch_seconds, 3),
            positions=self._reading.after(),
            joined=tuple(StreamBegin(table, low) for table, low in sorted(work.joins.items())),
            left=tuple(left),
            transactions_evicted=ledger.evicted,
            transactions_late=len(ledger.late),
            late_scn=min(ledger.late, default=None),
            tables_late=tuple(sorted(ledger.tables_late)),
            planned=work.planned,
            data_objects={str(table): one for table, one in mined.altered.data_objects.items()},
            landed=datetime.now(UTC).isoformat(),
        )


def _first_scns(starts: Mapping[int, LogStart]) -> dict[int, int]:
    return {thread: start.first_change for thread, start in starts.items()}


def _ledger_of(work: WindowWork, tables: Sequence[TableSchema]) -> TransactionLedger:
    """The open transactions, as the window meets them."""
    return TransactionLedger(
        uncounted(work.ledger, {str(table) for table in work.joins}),
        work.record.window,
        [str(schema.table) for schema in tables],
        snapshot_scn=work.source.snapshot_scn,
        mined_from=work.source.mining_low,
        by_statement=[str(one.table) for one in tables if one.is_undone_by_statement],
    )


def _log(manifest: WindowManifest, released: Sequence[OpenTransaction]) -> None:
    window = manifest.window.key
    rows = sum(manifest.rows_by_table.values())
    _LOG.log(
        logging.INFO if rows else logging.DEBUG,
        "window mined window=%s rows=%d logs=%d seconds=%.2f",
        window, rows, len(manifest.logs), manifest.seconds,
    )  # fmt: skip
    for one in released:
        _LOG.warning(
            "a transaction is given up: Oracle no longer knows it, its session is gone, and no end of it was mined; if it commits "
            "after all, its tables leave the stream xid=%s tables=%s start_scn=%s absent_scn=%s window=%s",
            one.xid, ",".join(one.tables), one.start_scn, one.absent_scn, window,
        )  # fmt: skip
    if manifest.late_scn is not None:
        _LOG.warning(
            "late commits: they belong to earlier windows, this window applies them "
            "window=%s transactions=%d scn=%d tables=%s",
            window, manifest.transactions_late, manifest.late_scn, ",".join(manifest.tables_late),
        )  # fmt: skip
