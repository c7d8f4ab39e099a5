"""Prefetching in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from cdc_core.oracle.prefetch import prefetched


def test_items_come_in_their_order_and_end() -> None:
    assert list(prefetched(iter(range(100)))) == list(range(100))
    assert list(prefetched(iter(()))) == []


def test_an_error_is_raised_where_it_occurred() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    taken = prefetched(items())
    assert next(taken) == 1
    with pytest.raises(ValueError, match="broken"):
        next(taken)


def test_no_more_than_the_depth_is_fetched_ahead() -> None:
    fetched: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            fetched.append(number)
            yield number

    taken = prefetched(items(), depth=2)
    next(taken)
    threading.Event().wait(0.2)
    assert len(fetched) <= 4
    taken.close()


def test_closing_ends_the_thread_before_it_returns() -> None:
    before = set(threading.enumerate())
    taken = prefetched(iter(range(1000)))
    next(taken)
    [thread] = set(threading.enumerate()) - before
    taken.close()
    assert not thread.is_alive()
