"""As of which SCNs can mirrors be read? Windows are drawn as ``low-high``, ``i`` for an idle one, ``x`` for one without late commits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_core.model.records import InexactImage, WindowRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.readable_scns import ScnSpan, common, readable_spans, within


def window(drawn: str) -> WindowRecord:
    low, high = (Scn(int(bound.strip("ix"))) for bound in drawn.split("-"))
    return WindowRecord(
        source="src", ordinal=0, window=ScnWindow(low, high), mining_low=low, state="applied", rows=0, seconds=0.0,
        apply_seconds=0.0, manifest_sha256=None, created=datetime.now(UTC), captured=None, applied=None, last_error=None,
        key=drawn, is_idle="i" in drawn, inexact=InexactImage(low, (), "") if "x" in drawn else None,
    )  # fmt: skip


def drawn(spans: list[ScnSpan]) -> str:
    return " ".join(
        f"{one.low}-{one.high}" if one.low < one.high else f"{one.low}" for one in spans
    )


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        pytest.param("", "10", id="only-the-snapshot"),
        pytest.param("10-20 20-30", "10 20 30", id="ends"),
        pytest.param("10-20 20-30i", "10 20 20-30", id="all-of-an-idle-window"),
        pytest.param("10-20 50-60", "10 20 20-50 60", id="idle-windows-that-were-forgotten"),
        pytest.param("40-50", "10 50", id="what-went-by-age-is-not-known"),
        pytest.param("10-20 20-30x 30-40", "10 20 40", id="no-window-that-lacked-commits"),
        pytest.param("10-20x 50-60", "10 60", id="nor-what-follows-it-unseen"),
    ],
)
def test_mirrors_are_tables_at_ends_and_where_nothing_changed(windows: str, expected: str) -> None:
    assert drawn(readable_spans(Scn(10), [window(one) for one in windows.split()])) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("10-20 20-30", "10-25 25-30", "10 30", id="a-common-end"),
        pytest.param("10-40 40-90i", "10-60 60-70", "10 60 70", id="ends-of-one-in-an-idle-window-of-the-other"),
        pytest.param("10-30 70-80i", "10-50i 50-90", "10 30 30-50", id="where-both-had-nothing"),
        pytest.param("10-20", "10-30", "10", id="no-end-in-common-but-the-snapshot"),
    ],
)  # fmt: skip
def test_what_is_common_lies_in_a_range_of_each(first: str, second: str, expected: str) -> None:
    spans = [
        readable_spans(Scn(10), [window(one) for one in text.split()]) for text in (first, second)
    ]
    assert drawn(common(spans)) == expected
    assert drawn(common(spans[::-1])) == expected


def test_a_snapshot_and_a_position_bound_it() -> None:
    spans = readable_spans(Scn(10), [window("10-20i"), window("20-30")])
    assert drawn(within(spans, Scn(15), Scn(29))) == "15-20"
    assert within(spans, Scn(31), Scn(30)) == []
    assert common([]) == []
