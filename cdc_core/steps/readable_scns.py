"""As of which SCNs can the mirrors of a source be read?

A mirror that has taken a window is the table ``AS OF SCN`` of the window's end. In an idle window
captured tables have nothing, so it is the table as of every SCN of that window too, and as of those
between two windows: what was forgotten between them was idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.model.records import WindowRecord
from cdc_core.model.scn import Scn


@dataclass(frozen=True, slots=True, order=True)
class ScnSpan:
    """A range of SCNs, both ends included."""

    low: Scn
    high: Scn


def readable_spans(begins: Scn, windows: Sequence[WindowRecord]) -> list[ScnSpan]:
    """The SCNs as of which mirrors can be read that have taken these windows; ranges in order,
    which may touch. Pure.

    Args:
        begins: As of when the source was read first.
        windows: In SCN order. The image of one whose commits came to light late is left out.
    """
    spans = [ScnSpan(begins, begins)]
    before: WindowRecord | None = None
    for one in windows:
        low, high = one.window.scn_low, one.window.scn_high
        if before is not None and before.inexact is None and before.window.scn_high < low:
            spans.append(ScnSpan(before.window.scn_high, low))
        if one.inexact is None:
            spans.append(ScnSpan(low if one.is_idle else high, high))
        before = one
    return spans


def within(spans: Sequence[ScnSpan], low: Scn, high: Scn) -> list[ScnSpan]:
    """The parts of the ranges that lie between two SCNs, both included. Pure."""
    return common([[ScnSpan(low, high)], spans]) if low <= high else []


def common(of_each: Sequence[Sequence[ScnSpan]]) -> list[ScnSpan]:
    """The parts of ranges that lie in a range of each; none of nothing. Pure.

    Args:
        of_each: Ranges in order.
    """
    found = list(of_each[0]) if of_each else []
    for spans in of_each[1:]:
        found = _shared(found, spans)
    return found


def _shared(ours: Sequence[ScnSpan], theirs: Sequence[ScnSpan]) -> list[ScnSpan]:
    found: list[ScnSpan] = []
    at = 0
    for one in ours:
        while at < len(theirs) and theirs[at].high < one.low:
            at += 1
        for other in theirs[at:]:
            if other.low > one.high:
                break
            span = ScnSpan(max(one.low, other.low), min(one.high, other.high))
            if span not in found[-1:]:
                found.append(span)
    return found
