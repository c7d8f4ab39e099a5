"""Was another process first? Then a step that failed has lost a race: its work is done.

Two processes may work on one source, and each may be suspended at any instruction for as long as it
likes: a loop beside Dagster, a command beside a loop, a virtual machine that moved. A process that
wakes up works on what it read before. What it then meets (a folder that has landed, a window that
was forgotten, a definition that has moved on) is no fault of anything; what the metadata store says
now decides whether it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from cdc_core.errors import (
    CdcError,
    ConfigError,
    LandingDamagedError,
    NotYetError,
    OvertakenError,
    TransientError,
)
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.records import WindowRecord
from cdc_core.model.scn import ScnWindow
from cdc_core.steps.context import Context

_LOG = logging.getLogger("cdc_core.steps")
_T = TypeVar("_T")

LOOKS_MAX = 10
"""So often work is begun again in a row. Each time another process got on, so the next round of a
loop, or the next tick, is soon enough for more."""


@contextmanager
def overtaken_at_window(ctx: Context, window: ScnWindow, done: Collection[str]) -> Iterator[None]:
    """For a block that takes a window into one of the states ``done``.

    Raises:
        OvertakenError: The block failed, and another process has done its work meanwhile.
    """
    before = ctx.store.windows.get(window)
    try:
        yield
    except CdcError as error:
        if isinstance(error, TransientError) or before is None or before.state in done:
            raise
        now = ctx.store.windows.get(window)
        if now is not None and now.state not in done:
            raise
        raise _overtaken(source=ctx.source, window=window.key) from error


@contextmanager
def overtaken_at_chunk(ctx: Context, key: ChunkKey) -> Iterator[None]:
    """The same for a block that takes a chunk on."""
    before = ctx.store.chunks.get(key)
    try:
        yield
    except CdcError as error:
        if isinstance(error, TransientError) or before is None:
            raise
        now = ctx.store.chunks.get(key)
        if now is not None and now.state == before.state:
            raise
        raise _overtaken(source=ctx.source, table=key.table, chunk=key.key) from error


@contextmanager
def overtaken_where_replanned(ctx: Context, key: ChunkKey) -> Iterator[None]:
    """For a block over a chunk that was planned when the work was laid out. One that is gone or
    dropped since gave way: to a new snapshot behind a gap in the redo, or to a signal.

    Raises:
        OvertakenError: That is why the block ended.
    """
    try:
        yield
    except NotYetError as error:
        now = ctx.store.chunks.get(key)
        if now is not None and now.state != "dropped":
            raise
        raise _overtaken(source=ctx.source, table=key.table, chunk=key.key) from error


@contextmanager
def overtaken_where_forgotten(
    look_up: Callable[[ScnWindow], WindowRecord | None], windows: Sequence[ScnWindow]
) -> Iterator[None]:
    """For a block over windows that waited. One that is gone was taken by another process, which
    then forgot it since it was idle.

    Args:
        look_up: What the metadata store has of a window now.

    Raises:
        OvertakenError: That is why the block ended.
    """
    try:
        yield
    except (ConfigError, LandingDamagedError) as error:
        gone = [one for one in windows if look_up(one) is None]
        if not gone:
            raise
        raise _overtaken(window=gone[0].key) from error


def look_again(step: Callable[[], _T]) -> _T:
    """What a step gives, which is done again where another process was first: it finds the work
    done then."""
    [found] = looking_again(lambda: iter((step(),)))
    return found


def looking_again(steps: Callable[[], Iterator[_T]]) -> Iterator[_T]:
    """The steps of some work, which is begun again where another process was first.

    Raises:
        OvertakenError: That happened :data:`LOOKS_MAX` times in a row.
    """
    for look in range(1, LOOKS_MAX + 1):
        try:
            yield from steps()
            return
        except OvertakenError as error:
            if look == LOOKS_MAX:
                raise
            _LOG.info("another process was first, looking again: %s", error.what_happened)


def _overtaken(**facts: object) -> OvertakenError:
    return OvertakenError(
        "another process works on this source, and has finished the pending work",
        hint="Run the command again: it continues after that.",
        **facts,
    )
