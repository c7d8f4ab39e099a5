"""How many threads work that leaves Python's lock gets."""

from __future__ import annotations

import os

import pytest

from cdc_core.runtime.cores import worker_threads


@pytest.mark.parametrize(
    ("cores", "said", "threads"),
    [
        pytest.param(1, None, 1, id="one-core"),
        pytest.param(4, None, 4, id="each-core"),
        pytest.param(64, None, 8, id="at-most-eight"),
        pytest.param(64, "3", 3, id="as-said"),
        pytest.param(2, "16", 2, id="no-more-than-cores"),
        pytest.param(4, "all", 4, id="no-number"),
        pytest.param(4, "0", 4, id="not-none"),
    ],
)
def test_threads_follow_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, said: str | None, threads: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    monkeypatch.delenv("REDOLAKE_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("REDOLAKE_THREADS", said)
    worker_threads.cache_clear()
    try:
        assert worker_threads() == threads
    finally:
        worker_threads.cache_clear()
