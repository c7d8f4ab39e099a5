"""How many threads is work that leaves Python's lock worth?"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

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


def in_threads(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """The results of work on each item, in their order, by as many threads as the work is worth;
    one item needs none. The first error in order is the one that is raised."""
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(worker_threads(), thread_name_prefix="work") as pool:
        return list(pool.map(work, items))
