"""When Spark runs out of memory, is that about one table?"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from cdc_core.errors import MEMORY_HINT, LakeError, SparkMemoryError

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


def out_of_memory_alone(error: SparkMemoryError) -> LakeError:
    """The error of a table for whose work alone Spark has not enough memory; this one stops it."""
    return LakeError(f"{error.message}, for this table alone", hint=MEMORY_HINT, **error.facts)


def retried_out_of_memory(work: Callable[[], T]) -> T:
    """Do a table's work once more where Spark ran out of memory: other work at the same time may
    have taken it.

    Raises:
        LakeError: It ran out of memory again.
    """
    try:
        return work()
    except SparkMemoryError as error:
        _LOG.warning("Spark ran out of memory, and starts again: %s", error.message)
    try:
        return work()
    except SparkMemoryError as error:
        raise out_of_memory_alone(error) from error
