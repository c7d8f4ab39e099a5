"""How many threads is work that leaves Python's lock worth?"""

from __future__ import annotations

import os
from functools import cache

_MAX = 8
"""Decoding and Parquet gain little from more, and each thread holds a batch."""


@cache
def worker_threads() -> int:
    """As many as the process may use cores, at most 8; ``REDOLAKE_THREADS`` bounds them, as in a
    container whose quota the operating system does not show as cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    said = os.environ.get("REDOLAKE_THREADS", "")
    bound = int(said) if said.isdecimal() and int(said) else _MAX
    return max(1, min(cores or 1, bound, _MAX))
