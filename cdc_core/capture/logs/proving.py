"""Is it the incarnation that was snapshotted, and do the logs hold the whole window, before a pass
and after it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.capture.logs.coverage import (
    RedoLog,
    RedoState,
    cover,
    read_archived_logs,
    read_logs,
    read_online_logs,
)
from cdc_core.capture.logs.dictionaries import needed_from
from cdc_core.capture.logs.positions import resetlogs_change as read_resetlogs_change
from cdc_core.config import LogMinerConfig
from cdc_core.errors import (
    RESNAPSHOT,
    IncarnationError,
    LogsChangedError,
    RedoUnavailableError,
)
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession


@dataclass(frozen=True, slots=True)
class ProvedLogs:
    """All ``copies`` of logs with redo above ``low``, and of those that LogMiner needs one each
    (``logs``): proved to cover all redo above ``low``, which is lower than the range where LogMiner
    reads a dictionary from the redo first."""

    low: Scn
    copies: list[RedoLog]
    logs: list[RedoLog]


def prove_logs(
    session: OracleSession,
    miner: OracleSession,
    state: RedoState,
    low: Scn,
    high: Scn,
    how: LogMinerConfig,
) -> ProvedLogs:
    """Prove that the logs cover the range, from the dictionary on that names its rows
    (:func:`~cdc_core.capture.logs.coverage.cover`).

    Args:
        session: Of the primary.
        miner: Of the database that reads the logs: which files there are, that one says.
        state: What the primary, which knows its redo threads, showed a moment ago.

    Raises:
        RedoUnavailableError: A log is gone, or no dictionary lies before the range.
        LogsNotReadyError: One is not there yet.
    """
    first = needed_from(session, how, low)
    copies = read_logs(miner, min(first, low), how, online=state.online)
    threads, incarnation = state.database.threads, state.database.resetlogs_change
    logs = cover(copies, threads, low, high, resetlogs_change=incarnation)
    if first < low:
        try:
            logs = cover(copies, threads, first, high, resetlogs_change=incarnation)
        except RedoUnavailableError as error:
            raise RedoUnavailableError(
                "redo between the newest LogMiner dictionary and the window is gone",
                hint="Restore the archived logs (RMAN: RESTORE ARCHIVELOG), or set capture.strategy to online_catalog, which reads the "
                "window without that dictionary.",
                **error.facts,
            ) from error
    return ProvedLogs(min(first, low), copies, logs)


def check_incarnation(session: OracleSession, expected: int) -> None:
    """Is the present incarnation the one that was snapshotted? Errors as for
    :func:`refuse_incarnation`."""
    refuse_incarnation(read_resetlogs_change(session), expected)


def refuse_incarnation(current: int, expected: int) -> None:
    """Refuse another incarnation than the one that was snapshotted. Pure.

    Raises:
        IncarnationError: It is another one.
    """
    if current != expected:
        raise IncarnationError(
            "the database was opened with RESETLOGS since the source was snapshotted",
            hint="Run `redolake source skip-gap`: all streams end, and"
            f" {RESNAPSHOT} brings each back from the database as it is now.",
            expected=expected,
            current=current,
        )


def refuse_changed(
    session: OracleSession,
    used: Sequence[RedoLog],
    low: Scn,
    high: Scn,
    how: LogMinerConfig,
) -> None:
    """After the pass, every file must still hold the log it held before it: an online log may have
    been overwritten.

    Raises:
        LogsChangedError: One does not.
    """
    now: list[RedoLog] = []
    if any(log.state != "archived" for log in used):
        now += read_online_logs(session)
    if any(log.state == "archived" for log in used):
        now += read_archived_logs(session, low, how)
    copies = {(log.thread, log.sequence, log.name) for log in now}
    overwritten = [log for log in used if (log.thread, log.sequence, log.name) not in copies]
    if overwritten:
        raise LogsChangedError(
            "redo logs changed while they were read",
            hint="The window is read again from the archived copies.",
            logs=", ".join(f"{log.thread}.{log.sequence}" for log in overwritten),
            scn_high=high,
        )
