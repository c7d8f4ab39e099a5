"""How is one window read from redo into landing? In one LogMiner pass for all tables, and only from proved logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from cdc_core.capture.altered import Altered, read_altered
from cdc_core.capture.asked_rows import QueryFilter
from cdc_core.capture.attempts import attempts
from cdc_core.capture.batches import MinedBatch
from cdc_core.capture.ddl_rows import DdlRow, Followed, follow_ddl
from cdc_core.capture.dictionaries import has_old_names, names_shown
from cdc_core.capture.ends import first_ends, incomplete_end, out_of_reach
from cdc_core.capture.excluding import ExcludedValues
from cdc_core.capture.joining import JoiningRows, uncounted
from cdc_core.capture.later_ddl import is_altered_soon_after
from cdc_core.capture.ledger import TransactionLedger
from cdc_core.capture.log_naming import logs_read, where_logminer_runs
from cdc_core.capture.logs import RedoLog, read_log_starts
from cdc_core.capture.mining import mined_batches, mining
from cdc_core.capture.orphans import Living, judged, read_living
from cdc_core.capture.prefetch import EarlyRows, Question, question_of, unfinished_of
from cdc_core.capture.proving import (
    ProvedLogs,
    check_database,
    check_incarnation,
    prove_logs,
    refuse_changed,
)
from cdc_core.capture.reading_position import Reading, new_rows
from cdc_core.capture.rows import RowReader
from cdc_core.capture.standby import check_same, where_both_run
from cdc_core.capture.unlogged import unlogged_ends
from cdc_core.capture.unnamed_rows import KnownSegments
from cdc_core.capture.window_rows import Landed, WindowRows
from cdc_core.config import LogMinerConfig, TableConfig
from cdc_core.decode.masking import Masks
from cdc_core.errors import LogsChangedError, RedoUnavailableError
from cdc_core.landing.definitions import keep_definitions
from cdc_core.landing.layout import window_folder
from cdc_core.landing.manifest import (
    LogUsed,
    WindowManifest,
    window_manifest_bytes,
)
from cdc_core.landing.store import LandingStore
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamBegin, StreamEnd
from cdc_core.model.transactions import OpenTransaction
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.segments import knowing
from cdc_core.source import WindowWork

_LOG = logging.getLogger(__name__)


def capture_window(
    session: OracleSession,
    work: WindowWork,
    *,
    configs: Sequence[TableConfig],
    landing: LandingStore,
    rows: int,
    how: LogMinerConfig | None = None,
    query_filter: QueryFilter | None = None,
    unlogged_ignored: Set[TableId] = frozenset(),
    follows_truncate: Set[TableId] = frozenset(),
    reads_again: Set[TableId] = frozenset(),
    follows_wider: Set[TableId] | None = None,
    masks: Mapping[TableId, Masks] | None = None,
    early: EarlyRows | None = None,
    miner: OracleSession | None = None,
) -> None:
    """Read a window's redo once, write it to landing, and finish with its manifest.

    What passes (a log switched or not archived yet) is tried again a few times; nothing has landed before the manifest. What
    changes under LogMiner (ORA-01368, ORA-00310, ORA-00334, ORA-01289) is mined again, as often as :mod:`~cdc_core.capture.attempts` says.

    Args:
        session: In the container of the tables.
        work: The planned window: redo in ``(mining_low, window.scn_high]`` is its own; redo below that came late is read too.
        configs: The tables' configuration, for definitions after a DDL.
        landing: Where the window lands.
        rows: Rows per batch.
        how: Which logs LogMiner reads, and by which dictionary it names rows; all logs and the online catalog by default.
        query_filter: How LogMiner is asked for the tables' rows; by their names by default.
        unlogged_ignored: Tables that go on although something was written without redo into their tablespaces.
        follows_truncate: Tables whose TRUNCATE does not end their stream.
        reads_again: Those of them whose partitions may be exchanged.
        follows_wider: Tables whose columns may get wider types in Delta; None for all.
        masks: What lands in place of values, by table.
        early: The window's rows, if they were read before its turn: they are taken if they answer what the window asks.
        miner: Where LogMiner runs, if that is a standby; ``session`` itself by default.

    Raises:
        LogsNotReadyError: A log is not there yet, after some waiting.
        RedoUnavailableError: Redo is gone, a file cannot be opened, or the database was opened with RESETLOGS.
        OracleError: Every pass was spoiled by a log that changed.
    """
    how = how or LogMinerConfig()
    segments = KnownSegments(work.tables)
    for attempt in attempts():
        with attempt:
            with where_logminer_runs(session, how.logs):
                # Before the pass, and so before LogMiner: what is still unwritten now began in these logs.
                starts = read_log_starts(session)
            first_scns = {thread: start.first_change for thread, start in starts.items()}
            reading = Reading(work.record.mining_low, work.positions, first_scns)
            shown = names_shown(session, work.tables, how)
            segments.look(session)
            living = read_living(session) if work.ledger else None
            asked = question_of(
                work, reading, segments, shown,
                masks=masks or {}, rows=rows, how=how, query_filter=query_filter or QueryFilter(),
                unfinished=unfinished_of(work, starts),
            )  # fmt: skip
            # A second attempt reads for itself what the first one could not use.
            answer, early = early if early and early.question == asked else None, None
            window = _Window(
                work,
                configs=configs,
                reading=reading,
                landing=landing,
                asked=asked,
                living=living,
                unlogged_ignored=unlogged_ignored,
                follows_truncate=follows_truncate,
                reads_again=reads_again,
                follows_wider=follows_wider,
                segments=segments,
                early=answer,
            )
            window.capture(session, miner or session)


class _Window:
    """One attempt at one window."""

    def __init__(
        self,
        work: WindowWork,
        *,
        configs: Sequence[TableConfig],
        reading: Reading,
        landing: LandingStore,
        asked: Question,
        living: Living | None,
        unlogged_ignored: Set[TableId],
        follows_truncate: Set[TableId],
        reads_again: Set[TableId],
        follows_wider: Set[TableId] | None,
        segments: KnownSegments,
        early: EarlyRows | None,
    ) -> None:
        self._living, self._how, self._unlogged_ignored = living, asked.how, unlogged_ignored
        self._asked, self._early, self._follows_truncate = asked, early, follows_truncate
        self._given, self._reads_again = work.given, reads_again
        self._follows_wider = follows_wider
        self._before = {one.xid: one.state for one in work.ledger}
        self._ledger_after: list[OpenTransaction] = []
        source, record, tables, opened = work.source, work.record, list(asked.tables), work.ledger
        self._segments = segments
        self._source, self._record, self._configs = source, record, configs
        self._tables, self._landing = tables, landing
        self._names = [str(schema.table) for schema in tables]
        self._reading, self._planned, self._complete = reading, work.planned, work.complete
        self._reader = RowReader(
            record.ordinal,
            tables,
            reading,
            asked.shown,
            by_number=has_old_names(self._how.strategy),
        )
        self._ids = {str(schema.table): schema.table for schema in tables}
        self._ledger = TransactionLedger(
            uncounted(opened, {str(table) for table in work.joins}),
            record.window,
            self._names,
            snapshot_scn=source.snapshot_scn,
            mined_from=source.mining_low,
            by_statement=[str(one.table) for one in tables if one.is_undone_by_statement],
        )
        self._folder = window_folder(source.name, record.window)
        self._rows = WindowRows(
            window=record.window.key,
            tables=tables,
            ledger=self._ledger,
            reader=self._reader,
            landing=landing,
            folder=self._folder,
        )
        self._begins = [StreamBegin(table, low) for table, low in sorted(work.joins.items())]
        self._joins = asked.again
        self._ends: list[StreamEnd] = []
        self._read_at = work.read_at
        self._data_objects = work.data_objects
        self._excluded = ExcludedValues(tables, asked.masks)
        places = {schema.table: place for place, schema in enumerate(tables)}
        lows = {places[table]: low for table, low in self._joins.items()}
        self._joining = JoiningRows(lows, opened)

    def capture(self, session: OracleSession, miner: OracleSession) -> None:
        started = time.monotonic()
        high = self._record.window.scn_high
        with where_both_run(session, miner, self._how):
            check_database(session, self._source)
            current = check_incarnation(session, self._source.resetlogs_change)
            if self._early is not None:
                logs = self._early.logs
                landed = self._land(self._take_early(self._early))
            else:
                low, proved = self._reach(session, miner, current)
                logs = proved.logs
                with mining(miner, logs, low, high, how=self._how, logs_by=self._how.logs):
                    landed = self._land(self._mined(miner, high))
                    used = logs_read(miner, logs, proved.copies, self._how.logs)
                refuse_changed(miner, used, proved.low, high, current, self._how)
                check_same(session, miner)
        if names_shown(session, self._tables, self._how) != self._asked.shown:
            raise LogsChangedError(
                "captured tables were renamed or dropped while their redo was read",
                hint="The window is read again under their present names.",
            )
        self._ends += self._unnamed(session)
        history = SchemaHistory(self._tables)
        altered_after = partial(is_altered_soon_after, session, how=self._how, miner=miner)
        ddl = self._rows.ddl_rows()
        followed = follow_ddl(
            session,
            ddl,
            history,
            self._configs,
            altered_after,
            self._follows_truncate,
            self._given,
            self._follows_wider,
            self._record.window.scn_low,
            self._reads_again,
        )
        self._ends += [*followed.ends, *self._incomplete(), *self._excluded.ends]
        self._ends += self._unlogged(session)
        altered = self._altered(session, history, ddl)
        self._ends += altered.ends
        check_incarnation(session, current)
        manifest = self._manifest(landed, logs, history, followed, altered, current, started)
        manifest = self._complete(manifest) if self._complete else manifest
        definitions = keep_definitions(self._landing, self._source.name, manifest.schemas)
        self._landing.write_manifest(self._folder, window_manifest_bytes(manifest, definitions))
        _LOG.info(
            "window mined window=%s rows=%d logs=%d seconds=%.2f",
            manifest.window.key, sum(manifest.rows_by_table.values()), len(logs), manifest.seconds,
        )  # fmt: skip
        for one in self._released():
            _LOG.warning(
                "a transaction is given up: Oracle no longer knows it, its session is gone, and no end of it was mined; if it commits "
                "after all, its tables leave the stream xid=%s tables=%s start_scn=%s absent_scn=%s window=%s",
                one.xid, ",".join(one.tables), one.start_scn, one.absent_scn, manifest.window.key,
            )  # fmt: skip
        if manifest.late_scn is not None:
            _LOG.warning(
                "late commits: they belong to earlier windows, this window applies them "
                "window=%s transactions=%d scn=%d tables=%s",
                manifest.window.key, manifest.transactions_late, manifest.late_scn, ",".join(manifest.tables_late),
            )  # fmt: skip

    def _land(self, batches: Generator[MinedBatch]) -> Landed:
        landed = self._rows.land(batches, self._still_open)
        self._ledger_after = landed.open
        return landed

    def _reach(
        self, session: OracleSession, miner: OracleSession, incarnation: int
    ) -> tuple[Scn, ProvedLogs]:
        """How far back redo is read, and the logs that it needs: for the joining tables as far as redo is there still."""
        high = self._record.window.scn_high
        for table, low in sorted(self._joins.items(), key=lambda join: join[1]):
            self._reading.again_above = low
            reach = Scn(self._reading.mining_low)
            try:
                return reach, prove_logs(session, miner, reach, high, incarnation, self._how)
            except RedoUnavailableError as error:
                self._ends.append(out_of_reach(table, low, self._record, error))
        self._reading.again_above = None
        low = Scn(self._reading.mining_low)
        return low, prove_logs(session, miner, low, high, incarnation, self._how)

    def _unnamed(self, session: OracleSession) -> list[StreamEnd]:
        """What becomes of rows without a name that no known segment has.

        Raises:
            LogsChangedError: Some are captured tables' after all, or there may be some: the window must be read again.
        """
        seen = self._reader.unnamed
        learned, doubtful = self._segments.resolve(session, seen)
        if learned or self._segments.watch(text for _, text in self._rows.ddl_texts):
            raise LogsChangedError(
                "the partitions of captured tables changed while Redolake read the dictionary",
                hint="The window is read again with the rows of these.",
            )
        return self._segments.doubtful(session, doubtful, self._record.window)

    def _unlogged(self, session: OracleSession) -> list[StreamEnd]:
        window = self._record.window
        ends = unlogged_ends(session, self._tables, window, self._read_at, self._rows.ddl_texts)
        ignored = [
            one for one in ends if one.trouble == "unlogged" and one.table in self._unlogged_ignored
        ]
        for one in ignored:
            _LOG.warning("policy on_unlogged says ignore table=%s: %s", one.table, one.reason)
        return [one for one in ends if one not in ignored]

    def _altered(
        self, session: OracleSession, history: SchemaHistory, ddl: Sequence[DdlRow]
    ) -> Altered:
        """What a DDL row of this window has ended is said by that row."""
        altered = read_altered(
            session,
            self._record.window,
            history,
            self._configs,
            ddl,
            data_objects=self._data_objects,
            read_at=self._read_at,
        )
        ended = {end.table for end in self._ends}
        ends = [end for end in altered.ends if end.table not in ended]
        return replace(altered, ends=ends)

    def _still_open(self) -> list[OpenTransaction]:
        """The ledger after the window."""
        ledger = self._ledger.open_transactions()
        if self._living is None:
            return ledger
        low = self._record.window.scn_low
        return judged(ledger, self._living, before=self._before.keys(), scn_low=low)

    def _released(self) -> list[OpenTransaction]:
        """What this window gave up."""
        return [
            one
            for one in self._ledger_after
            if one.state == "released" and self._before.get(one.xid) != "released"
        ]

    def _incomplete(self) -> list[StreamEnd]:
        return [
            incomplete_end(self._ids[name], one, self._record.window)
            for one in self._ledger.incomplete
            for name in one.tables
            if name in self._ids
        ]

    def _take_early(self, early: EarlyRows) -> Generator[MinedBatch]:
        """The rows that were read before the window's turn; what was seen with them is taken over."""
        self._reading.count(early.reading)
        self._reader.unnamed = early.unnamed
        self._excluded.ends = list(early.ends)
        return early.waiting.read()

    def _mined(self, session: OracleSession, high: Scn) -> Generator[MinedBatch]:
        """The rows of the started LogMiner session, as they may land."""
        mined = mined_batches(
            session,
            self._tables,
            self._reading,
            high,
            rows=self._asked.rows,
            shown=self._asked.shown,
            unnamed=self._asked.unnamed,
            query_filter=self._asked.query_filter,
            logs_by=self._how.logs,
        )
        with closing(mined) as batches:
            for batch in self._reader.read(batches):
                if self._joins:
                    is_new = new_rows(batch.rows, self._reading.scn_low, self._reading.before)
                    batch = batch.filter(self._joining.keep(batch, is_new))
                batch = self._excluded.remove_from(batch)
                yield batch

    def _manifest(
        self,
        landed: Landed,
        logs: Sequence[RedoLog],
        history: SchemaHistory,
        followed: Followed,
        altered: Altered,
        incarnation: int,
        started: float,
    ) -> WindowManifest:
        assert landed.transactions is not None
        return WindowManifest(
            source=self._source.name,
            window=self._record.window,
            ordinal=self._record.ordinal,
            mining_low=self._reading.mining_low,
            redo_files=tuple(landed.redo),
            files_by_table=landed.by_table,
            transactions_file=landed.transactions,
            rows_by_table=self._rows.rows_by_table,
            tables_committed=tuple(sorted(self._ledger.tables_committed)),
            transactions_committed=self._ledger.committed,
            transactions_rolled_back=self._ledger.rolled_back,
            transactions_open=sum(not one.is_over for one in self._ledger_after),
            transactions_released=len(self._released()),
            logs=tuple(
                LogUsed(
                    thread=log.thread,
                    sequence=log.sequence,
                    name=log.name,
                    first_change=log.first_change,
                    next_change=log.next_change,
                )
                for log in logs
            ),
            schemas=tuple(
                knowing(history.latest(table), self._segments.of(table)) for table in history.tables
            ),
            schema_changes=tuple(followed.changes),
            signals=tuple(followed.signals),
            resetlogs_change=incarnation,
            seconds=time.monotonic() - started,
            positions=self._reading.after(),
            joined=tuple(self._begins),
            left=first_ends(self._ends),
            transactions_evicted=self._ledger.evicted,
            transactions_late=len(self._ledger.late),
            late_scn=min(self._ledger.late, default=None),
            tables_late=tuple(sorted(self._ledger.tables_late)),
            planned=self._planned,
            data_objects={str(table): one for table, one in altered.data_objects.items()},
            landed=datetime.now(UTC).isoformat(),
        )
