"""How is the redo of one window read once for the sources of several pluggable databases?"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from cdc_core.change_reader import FleetWindow, PrefetchedRedo, Prefetcher, WindowWork
from cdc_core.errors import CdcError
from cdc_core.model.scn import ScnWindow
from cdc_core.steps.pipeline import Pipeline
from cdc_core.steps.windows.capture import window_work

_LOG = logging.getLogger("cdc_core.steps")


@contextmanager
def shared_redo(window: ScnWindow, sharing: Sequence[Pipeline]) -> Iterator[Sequence[bool]]:
    """For a block in which these sources capture the window: its redo, read once for those of them
    for which that can be done; for which that is so."""
    found = _read_once(window, sharing)
    with ExitStack() as opened:
        for source, redo in zip(sharing, found, strict=True):
            if redo is not None:
                opened.callback(redo.close)
                opened.callback(source.turns.shared.pop, window)
                source.turns.shared[window] = redo
        yield [redo is not None for redo in found]


def _read_once(window: ScnWindow, sharing: Sequence[Pipeline]) -> list[PrefetchedRedo | None]:
    """Read the redo in one pass; None for sources that read for themselves."""
    nothing: list[PrefetchedRedo | None] = [None for _ in sharing]
    if len(sharing) < 2 or not isinstance(reader := sharing[0].change_reader, Prefetcher):
        return nothing
    try:
        return reader.prefetch_shared(
            [FleetWindow(one.change_reader, _work(one, window), one.landing) for one in sharing]
        )
    except CdcError as error:
        _LOG.info("each source reads the window for itself window=%s: %s", window.key, error)
        return nothing


def _work(source: Pipeline, window: ScnWindow) -> WindowWork:
    record = source.window_record(window)
    ordinals = range(record.ordinal - 1, record.ordinal)
    before = source.store.windows.find(ordinals=ordinals)
    return window_work(source, record, before[0] if before else None, ())
