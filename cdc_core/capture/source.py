"""How does LogMiner answer what the steps ask of a source?"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property

from cdc_core.capture import logminer
from cdc_core.capture.logs import positions
from cdc_core.capture.logs.coverage import RedoState, begin_with, read_logs, read_redo_state
from cdc_core.capture.logs.dictionaries import refuse_start_without
from cdc_core.capture.logs.flushing import flush
from cdc_core.capture.logs.headroom import read_headroom
from cdc_core.capture.logs.proving import prove_logs
from cdc_core.capture.logs.standby import miner_of, readable_end
from cdc_core.capture.logs.windows import cut_windows
from cdc_core.capture.passes.answer import Answer
from cdc_core.capture.passes.prefetch import prefetch
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.passes.shared import Share, can_share, read_shared
from cdc_core.capture.preflight import check_redo
from cdc_core.change_reader import FleetWindow, NextWindow, PrefetchedRedo, Start, WindowWork
from cdc_core.config import SourceConfig, TableConfig
from cdc_core.errors import CdcError, ConfigError, RedoUnavailableError
from cdc_core.landing.store import LandingStore
from cdc_core.model.alerts import LogHeadroom
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import OracleSession
from cdc_core.oracle.times import times_of

_LOG = logging.getLogger(__name__)


class LogMinerReader:
    """A :class:`~cdc_core.change_reader.ChangeReader` that reads redo through DBMS_LOGMNR.

    Windows end at ends of redo logs, or where redo was written last (``capture.close_at``).
    """

    def __init__(self, config: SourceConfig, database: OracleDatabase) -> None:
        self._config, self._database, self._how = config, database, config.logminer

    @cached_property
    def _rules(self) -> CaptureRules:
        return CaptureRules.of(self._config)

    def check(self, tables: Sequence[TableConfig]) -> list[Finding]:
        """See :meth:`ChangeReader.check`."""
        how = self._how
        with self._database.session() as session:
            return check_redo(
                session, tables, how, open_miner=lambda: miner_of(session, self._database, how)
            )

    def read_start(self, tables: Sequence[TableId], *, is_first: bool = False) -> Start:
        """See :meth:`ChangeReader.read_start`."""
        with self._database.session() as session:
            start = positions.read_start(session, tables=tables)
            if is_first and self._config.snapshot.start_scn is not None:
                start = self._begun_earlier(session, start, Scn(self._config.snapshot.start_scn))
            refuse_start_without(session, self._how, start.mining_low)
            return start

    def _begun_earlier(self, session: OracleSession, now: Start, scn: Scn) -> Start:
        """A start at an SCN that has passed, from which on Oracle has all redo."""
        how = self._how
        if scn > now.snapshot_scn:
            raise ConfigError(
                "snapshot.start_scn is ahead of the database",
                hint="Name an SCN that the database has reached.",
                start_scn=scn,
                current=now.snapshot_scn,
            )
        low = Scn((self._config.snapshot.start_reads_from or scn) - 1)
        redo = read_redo_state(session)
        high = max(scn, positions.bound_of(redo, how.close_at))
        with miner_of(session, self._database, how) as miner:
            try:
                prove_logs(session, miner, redo, low, high, how)
            except RedoUnavailableError as error:
                raise RedoUnavailableError(
                    "the source cannot begin at snapshot.start_scn: redo after it is gone",
                    hint="Restore the archived logs (RMAN: RESTORE ARCHIVELOG), or name a later SCN.",
                    **{**error.facts, "start_scn": scn, "reads_from": low + 1},
                ) from error
        return replace(now, snapshot_scn=scn, mining_low=low)

    def log_headroom(self, scn: Scn) -> LogHeadroom:
        """See :meth:`ReadsLogs.log_headroom`."""
        with self._database.session() as session:
            return read_headroom(session, scn, self._how)

    def next_windows(
        self,
        low: Scn,
        *,
        read_from: Scn,
        until: Scn | None,
        applied: Callable[[], Scn] | None = None,  # noqa: ARG002 - nobody keeps redo for it
    ) -> list[NextWindow]:
        """See :meth:`ChangeReader.next_windows`."""
        how = self._how
        with self._database.session() as session, miner_of(session, self._database, how) as miner:
            flush(session, self._database, how)
            redo = read_redo_state(session)
            high = positions.bound_of(redo, how.close_at)
            if until is not None:
                high = min(high, until)
            if high <= low:
                return []
            if how.reads_archived_only:
                high = min(high, readable_end(session, miner, read_from, how) or low)
                if high <= low:
                    return []
            windows = self._cut(miner, redo, low, high, read_from)
            times = times_of(session, [window.scn_high for window in windows])
        return [NextWindow(window, ended) for window, ended in zip(windows, times, strict=True)]

    def _cut(
        self, miner: OracleSession, redo: RedoState, low: Scn, high: Scn, read_from: Scn
    ) -> list[ScnWindow]:
        """The windows of a range. What fits into one by the online logs alone does so by archived
        copies of them, which have no more blocks: these are not asked for then."""
        how = self._how
        size = how.window_redo_bytes_max
        if not how.reads_archived_only and begin_with(redo.online, low):
            windows = cut_windows(low, high, redo.online, size)
            if len(windows) == 1:
                return windows
        return cut_windows(low, high, read_logs(miner, read_from, how, online=redo.online), size)

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        """See :meth:`ChangeReader.capture_window`; in one LogMiner pass for all tables."""
        self._capture(work, landing, None)

    def prefetch(
        self, work: WindowWork, landing: LandingStore, stop: threading.Event
    ) -> PrefetchedAnswer | None:
        """See :meth:`Prefetcher.prefetch`."""

        def read(session: OracleSession) -> Answer | None:
            with miner_of(session, self._database, self._rules.how) as miner:
                return prefetch(session, work, self._rules, landing, stop, miner=miner)

        answer = self._database.read(read)
        return None if answer is None else PrefetchedAnswer(answer, self._capture)

    def prefetch_shared(self, windows: Sequence[FleetWindow]) -> list[PrefetchedRedo | None]:
        """See :meth:`Prefetcher.prefetch_shared`."""
        if not can_share(self._rules.how):
            return [None for _ in windows]
        with ExitStack() as opened:
            shares = [self._share_of(one, opened) for one in windows]
            answers = iter(read_shared([one for one in shares if one is not None]))
            return [
                PrefetchedAnswer(answer, one.source._capture)
                if share is not None
                and isinstance(one.source, LogMinerReader)
                and (answer := next(answers)) is not None
                else None
                for one, share in zip(windows, shares, strict=True)
            ]

    def _share_of(self, window: FleetWindow, opened: ExitStack) -> Share | None:
        """What a window asks, in a session that the stack closes; None where nobody can ask now."""
        source = window.source
        if not isinstance(source, LogMinerReader) or source._rules.how != self._rules.how:
            return None
        try:
            session = opened.enter_context(source._database.session())
            return Share(session, window.work, source._rules, window.landing)
        except CdcError as error:
            _LOG.info("a window is read in its turn, not with others: %s", error)
            return None

    def _capture(self, work: WindowWork, landing: LandingStore, prefetched: Answer | None) -> None:
        def capture(session: OracleSession) -> None:
            with miner_of(session, self._database, self._rules.how) as miner:
                logminer.capture_window(
                    session, work, self._rules, landing, prefetched=prefetched, miner=miner
                )

        self._database.read(capture)


@dataclass(frozen=True, slots=True)
class PrefetchedAnswer:
    """A :class:`~cdc_core.change_reader.PrefetchedRedo`: the answer to what the window is
    expected to ask in its turn."""

    answer: Answer
    capture: Callable[[WindowWork, LandingStore, Answer | None], None]

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        """See :meth:`PrefetchedRedo.capture_window`."""
        self.capture(work, landing, self.answer)

    def close(self) -> None:
        """See :meth:`PrefetchedRedo.close`."""
        self.answer.close()
