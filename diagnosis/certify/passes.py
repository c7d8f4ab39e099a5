"""How is LogMiner asked for the redo of some tables, once?"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager

import pyarrow as pa

from cdc_core.capture.logs.coverage import RedoLog, cover, read_logs, read_threads
from cdc_core.capture.logs.naming import where_logminer_runs
from cdc_core.capture.passes.mining import mined_batches, mining
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.wanted_rows import WantedRows
from cdc_core.config import LogMinerConfig, SourceConfig
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import TableSchema

_BATCH_ROWS = 10_000


def logminer_of(config: SourceConfig) -> LogMinerConfig:
    """LogMiner with the online catalog, which learns its logs as the source's does."""
    own = config.capture
    return LogMinerConfig(logs=own.logs) if isinstance(own, LogMinerConfig) else LogMinerConfig()


@contextmanager
def redo_of(
    session: OracleSession,
    how: LogMinerConfig,
    tables: Sequence[TableSchema],
    low: Scn,
    high: Scn,
) -> Iterator[tuple[list[RedoLog], Generator[pa.RecordBatch]]]:
    """The logs with ``low < SCN <= high``, and their rows: those of the tables, those without a
    name, and all that begin or end transactions.

    Raises:
        RedoUnavailableError: A log is gone.
        LogsNotReadyError: One is not there yet.
        PreflightError: The user may not use LogMiner.
    """
    wanted = WantedRows(tables, {}, True, Reading(low, None, {}))
    with where_logminer_runs(session, how.logs):
        logs = cover(read_logs(session, low, how), read_threads(session), low, high)
        with mining(session, logs, low, high, how=how):
            batches = mined_batches(session, wanted, high, rows=_BATCH_ROWS, logs_by=how.logs)
            with closing(batches):
                yield logs, batches
