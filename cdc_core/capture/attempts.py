"""Which failures of a window are worth another attempt, how many, and what is raised after the
last?"""

from __future__ import annotations

from typing import NoReturn

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from cdc_core.errors import (
    LogsChangedError,
    OracleError,
    OracleUnavailableError,
    RedoUnreadableError,
    StoreUnavailableError,
    TransientError,
)

ATTEMPTS = 5
PASSES_MAX = 20
"""Passes in a row that a log may spoil by changing under LogMiner: a storm of log switches ends
before that."""
READS_MAX = 2
"""Attempts at a file that cannot be opened: after the first, the list of logs is read again, which
may name another copy."""


def attempts() -> Retrying:
    """The attempts at one window: more after what passes by itself, :data:`PASSES_MAX` where logs
    change under LogMiner."""
    return Retrying(
        retry=retry_if_exception(_may_pass),
        stop=_was_tried_enough,
        wait=wait_exponential(multiplier=0.2, max=10),
        retry_error_callback=_give_up,
    )


def _may_pass(error: BaseException) -> bool:
    """May a second attempt in the same session succeed? A lost session cannot be used again, a
    store waits by itself."""
    lost = (OracleUnavailableError, StoreUnavailableError)
    passes = (TransientError, RedoUnreadableError)
    return isinstance(error, passes) and not isinstance(error, lost)


def _was_tried_enough(state: RetryCallState) -> bool:
    error = _error_of(state)
    if isinstance(error, LogsChangedError):
        return state.attempt_number >= PASSES_MAX
    most = READS_MAX if isinstance(error, RedoUnreadableError) else ATTEMPTS
    return state.attempt_number >= most


def _give_up(state: RetryCallState) -> NoReturn:
    """Raise the last attempt's error; one that every pass meets does not pass."""
    error = _error_of(state)
    if not isinstance(error, LogsChangedError):
        raise error
    raise OracleError(
        "redo logs changed under LogMiner in every pass",
        hint="Larger redo logs are switched less often; `redolake capture` tries again.",
        passes=state.attempt_number,
        **error.facts,
    ) from error


def _error_of(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome else None
    assert error is not None, "only a failed attempt is judged"
    return error
