"""Where is the redo between two SCNs cut into windows?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from cdc_core.capture.logs.coverage import RedoLog, best_copies
from cdc_core.model.scn import Scn, ScnWindow


def cut_windows(
    scn_low: Scn, scn_high: Scn, logs: Iterable[RedoLog], redo_bytes_max: int
) -> list[ScnWindow]:
    """Cut ``(scn_low, scn_high]`` into windows at ends of logs, each with about ``redo_bytes_max``
    of redo at most. Pure.

    A log's bytes count in the window in which it ends. A single log that is larger than the limit
    is a window of its own.

    Returns:
        Windows in order that join each other; none if the range is empty.
    """
    if scn_high <= scn_low:
        return []
    redo_at_end = {int(scn_high): 0}
    for log in best_copies(logs):
        end = log.next_change - 1
        if scn_low < end < scn_high:
            redo_at_end[end] = redo_at_end.get(end, 0) + log.bytes
        elif log.first_change <= scn_high <= end and log.state != "current":
            redo_at_end[int(scn_high)] += log.bytes
    bounds, held = [int(scn_low)], 0
    previous = int(scn_low)
    for end in sorted(redo_at_end):
        if held and held + redo_at_end[end] > redo_bytes_max:
            bounds.append(previous)
            held = 0
        held += redo_at_end[end]
        previous = end
    bounds.append(int(scn_high))
    return [ScnWindow(Scn(low), Scn(high)) for low, high in pairwise(bounds)]
