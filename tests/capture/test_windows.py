"""Where windows are cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.capture.logs.coverage import RedoLog
from cdc_core.capture.logs.windows import cut_windows
from cdc_core.model.scn import SCN_MAX, Scn


def log(sequence: int, first: int, end: int, size: int = 10, thread: int = 1) -> RedoLog:
    return RedoLog(
        thread=thread,
        sequence=sequence,
        name=f"a{sequence}",
        first_change=first,
        next_change=end,
        bytes=size,
        state="archived",
    )


def current(sequence: int, first: int) -> RedoLog:
    return RedoLog(
        thread=1,
        sequence=sequence,
        name="r",
        first_change=first,
        next_change=SCN_MAX,
        bytes=1000,
        state="current",
    )


LOGS = [log(1, 100, 200), log(2, 200, 300), log(3, 300, 400), current(4, 400)]


@pytest.mark.parametrize(
    ("logs", "low", "high", "limit", "bounds"),
    [
        pytest.param(LOGS, 150, 450, 100, [150, 450], id="all-fits"),
        pytest.param(LOGS, 150, 450, 20, [150, 299, 450], id="cut-at-a-log-end"),
        pytest.param(LOGS, 150, 450, 10, [150, 199, 299, 450], id="one-log-each"),
        pytest.param(LOGS, 150, 450, 1, [150, 199, 299, 399, 450], id="never-less-than-a-log"),
        pytest.param(LOGS, 410, 450, 1, [410, 450], id="within-the-current-log"),
        pytest.param(LOGS, 150, 350, 20, [150, 299, 350], id="the-log-of-the-end-counts"),
        pytest.param(LOGS, 199, 299, 10, [199, 299], id="exactly-one-log"),
        pytest.param(LOGS, 450, 450, 10, [], id="nothing-to-cut"),
        pytest.param([], 150, 450, 10, [150, 450], id="no-logs-known"),
        pytest.param([*LOGS, log(2, 200, 300)], 150, 450, 30, [150, 450], id="copies-count-once"),
        pytest.param(
            [*LOGS, log(7, 90, 260, thread=2)], 150, 450, 20, [150, 259, 450],
            id="ends-of-all-threads",
        ),
    ],
)  # fmt: skip
def test_cuts(logs: Sequence[RedoLog], low: int, high: int, limit: int, bounds: list[int]) -> None:
    windows = cut_windows(Scn(low), Scn(high), logs, limit)
    assert [(one.scn_low, one.scn_high) for one in windows] == list(pairwise(bounds))


@given(
    ends=st.lists(st.integers(1, 1000), unique=True, max_size=20).map(sorted),
    low=st.integers(0, 1000),
    length=st.integers(1, 1000),
    limit=st.integers(1, 100),
)
def test_windows_always_join_and_fill_the_range(
    ends: list[int], low: int, length: int, limit: int
) -> None:
    logs = [log(n, first, end) for n, (first, end) in enumerate(pairwise(ends))]
    windows = cut_windows(Scn(low), Scn(low + length), logs, limit)
    assert windows[0].scn_low == low
    assert windows[-1].scn_high == low + length
    assert all(one.scn_high == two.scn_low for one, two in pairwise(windows))
