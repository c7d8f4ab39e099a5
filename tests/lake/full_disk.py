"""A disk that takes no more, by the operating system's own refusal: a limit on the size of a process's files (RLIMIT_FSIZE)."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def room_for(bytes_max: int, process: int | None = None) -> Iterator[None]:
    """No file of a process, by default of this one, gets longer than ``bytes_max``."""
    process = process or os.getpid()
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)
