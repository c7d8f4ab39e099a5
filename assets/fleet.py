"""Which other sources of one configuration does a tick or a run look after?

Where ``oracle.pdbs`` lists several pluggable databases, each is a source with sensors and runs of
its own. Whoever cuts or reads windows of one does so for the others as well where one SCN and one
reading serve them all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from assets.protocols import Opener
from cdc_core.errors import CdcError
from cdc_core.steps import Pipeline

_LOG = logging.getLogger("cdc_core.steps")


@contextmanager
def opened_siblings(siblings: Sequence[Opener]) -> Iterator[list[Pipeline]]:
    """The other sources, opened for the block; not those that cannot be, which their own ticks and
    runs say."""
    with ExitStack() as stack:
        found: list[Pipeline] = []
        for open_pipeline in siblings:
            try:
                found.append(stack.enter_context(open_pipeline()))
            except CdcError as error:
                _LOG.info("a source waits for its own tick or run: %s", error)
        yield found
