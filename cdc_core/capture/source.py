"""How does LogMiner answer what the steps ask of a source?"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack

from cdc_core.capture import logminer, positions
from cdc_core.capture import prefetch as early_rows
from cdc_core.capture.asked_rows import QueryFilter
from cdc_core.capture.dictionaries import refuse_start_without
from cdc_core.capture.flushing import flush
from cdc_core.capture.logs import read_logs
from cdc_core.capture.prefetch import EarlyPass, EarlyRows
from cdc_core.capture.preflight import check_redo
from cdc_core.capture.shared_pass import can_share, read_shared
from cdc_core.capture.standby import miner_of, readable_end
from cdc_core.capture.times import times_of
from cdc_core.capture.windows import cut_windows
from cdc_core.config import SourceConfig, TableConfig
from cdc_core.decode.masking import masks_by_table
from cdc_core.errors import CdcError
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import OracleSession
from cdc_core.source import EarlyRedo, NextWindow, SharedWork, Start, WindowWork

_LOG = logging.getLogger(__name__)


class LogMinerSource:
    """A :class:`~cdc_core.source.Source` that reads redo through DBMS_LOGMNR.

    Windows end at ends of redo logs, or where redo was written last (``capture.close_at``).
    """

    def __init__(self, config: SourceConfig, database: OracleDatabase) -> None:
        self._config, self._database = config, database

    def check(self, tables: Sequence[TableConfig]) -> list[Finding]:
        """See :meth:`Source.check`."""
        how = self._config.capture
        with self._database.session() as session:
            return check_redo(
                session, tables, how, open_miner=lambda: miner_of(session, self._database, how)
            )

    def read_start(self, tables: Sequence[TableId]) -> Start:
        """See :meth:`Source.read_start`."""
        with self._database.session() as session:
            start = positions.read_start(session, tables=tables)
            refuse_start_without(session, self._config.capture, start.mining_low)
            return start

    def next_windows(self, low: Scn, *, read_from: Scn, until: Scn | None) -> list[NextWindow]:
        """See :meth:`Source.next_windows`."""
        how = self._config.capture
        with self._database.session() as session, miner_of(session, self._database, how) as miner:
            flush(session, self._database, how)
            high = positions.upper_bound(session, how.close_at)
            if until is not None:
                high = min(high, until)
            if high <= low:
                return []
            if how.reads_archived_only:
                high = min(high, readable_end(session, miner, read_from, how) or low)
                if high <= low:
                    return []
            logs = read_logs(miner, read_from, how)
            windows = cut_windows(low, high, logs, how.window_redo_bytes_max)
            times = times_of(session, [window.scn_high for window in windows])
        return [NextWindow(window, ended) for window, ended in zip(windows, times, strict=True)]

    def read_early(
        self, work: WindowWork, landing: LandingStore, stop: threading.Event
    ) -> EarlyRows | None:
        """See :meth:`Source.read_early`."""

        def read(session: OracleSession) -> EarlyRows | None:
            with miner_of(session, self._database, self._config.capture) as miner:
                return early_rows.read_early(
                    session,
                    work,
                    landing,
                    stop,
                    masks=masks_by_table(self._config),
                    rows=self._config.oracle.fetch_rows,
                    how=self._config.capture,
                    query_filter=QueryFilter.of(self._config),
                    miner=miner,
                )

        return self._database.read(read)

    def read_shared(
        self, work: WindowWork, landing: LandingStore, beside: Sequence[SharedWork]
    ) -> list[EarlyRedo | None]:
        """See :meth:`Source.read_shared`."""
        together = [SharedWork(self, work, landing), *beside]
        if not can_share(self._config.capture):
            return [None for _ in together]
        with ExitStack() as opened:
            passes = [self._pass_of(one, opened) for one in together]
            found = iter(read_shared([one for one in passes if one is not None]))
            return [None if one is None else next(found) for one in passes]

    def _pass_of(self, shared: SharedWork, opened: ExitStack) -> EarlyPass | None:
        """What a window asks, in a session that the stack closes; None where nobody can ask now."""
        source = shared.source
        if not isinstance(source, LogMinerSource) or source._config.capture != self._config.capture:
            return None
        try:
            return EarlyPass(
                opened.enter_context(source._database.session()),
                shared.work,
                shared.landing,
                masks=masks_by_table(source._config),
                rows=source._config.oracle.fetch_rows,
                how=source._config.capture,
                query_filter=QueryFilter.of(source._config),
                is_next=True,
            )
        except CdcError as error:
            _LOG.info("a window is read in its turn, not with others: %s", error)
            return None

    def capture_window(
        self, work: WindowWork, landing: LandingStore, early: EarlyRedo | None = None
    ) -> None:
        """See :meth:`Source.capture_window`; in one LogMiner pass for all tables."""
        assert early is None or isinstance(early, EarlyRows)

        def capture(session: OracleSession) -> None:
            with miner_of(session, self._database, self._config.capture) as miner:
                logminer.capture_window(
                    session,
                    work,
                    configs=self._config.tables,
                    masks=masks_by_table(self._config),
                    unlogged_ignored=self._config.with_policy("unlogged", "ignore"),
                    follows_truncate=self._config.with_policy(
                        "truncate", "follow", "follow_or_resnapshot"
                    ),
                    reads_again=self._config.with_policy("truncate", "follow_or_resnapshot"),
                    follows_wider=self._config.with_policy("widened_column", "rewrite"),
                    landing=landing,
                    early=early,
                    rows=self._config.oracle.fetch_rows,
                    how=self._config.capture,
                    query_filter=QueryFilter.of(self._config),
                    miner=miner,
                )

        self._database.read(capture)
