"""Which logs cover a window, which windows wait, and which stop the pipeline?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pytest

from cdc_core.capture.logs.coverage import RedoLog, RedoThread, begin_with, cover
from cdc_core.errors import LogsNotReadyError, RedoUnavailableError
from cdc_core.model.scn import SCN_MAX, Scn

WAIT, STOP = LogsNotReadyError, RedoUnavailableError


def arch(sequence: int, first: int, end: int, thread: int = 1, **more: Any) -> RedoLog:
    name = f"arc_{thread}_{sequence}"
    return RedoLog(
        thread=thread,
        sequence=sequence,
        name=name,
        first_change=first,
        next_change=end,
        bytes=10,
        state="archived",
        **more,
    )


def gone(sequence: int, first: int, end: int, thread: int = 1) -> RedoLog:
    return RedoLog(
        thread=thread,
        sequence=sequence,
        name="",
        first_change=first,
        next_change=end,
        bytes=10,
        state="gone",
    )


def online(sequence: int, first: int, end: int, thread: int = 1) -> RedoLog:
    return RedoLog(
        thread=thread,
        sequence=sequence,
        name=f"redo_{thread}_{sequence}",
        first_change=first,
        next_change=end,
        bytes=10,
        state="online",
    )


def cur(sequence: int, first: int, thread: int = 1) -> RedoLog:
    return RedoLog(
        thread=thread,
        sequence=sequence,
        name=f"redo_{thread}_{sequence}",
        first_change=first,
        next_change=SCN_MAX,
        bytes=10,
        state="current",
    )


def before(sequence: int, end: int, thread: int = 1) -> RedoLog:
    return RedoLog(
        thread=thread,
        sequence=sequence,
        name="",
        first_change=0,
        next_change=end,
        bytes=0,
        state="before",
    )


def t(
    thread: int = 1,
    is_open: bool = True,
    enabled: Literal["PUBLIC", "PRIVATE", "DISABLED"] = "PUBLIC",
    *,
    enable: int = 1,
    disable: int = 0,
    checkpoint: int = 0,
    last: int = 10_000,
) -> RedoThread:
    return RedoThread(
        thread=thread,
        is_open=is_open,
        enabled=enabled,
        enable_change=enable,
        disable_change=disable,
        checkpoint_change=checkpoint,
        last_redo_change=last,
    )


ONE = [t()]
TWO = [t(1), t(2)]


@pytest.mark.parametrize(
    ("logs", "threads", "low", "high", "expected"),
    [
        # one thread
        pytest.param([cur(1, 100)], ONE, 150, 200, ["1.1"], id="within-the-current-log"),
        pytest.param([arch(1, 100, 200)], ONE, 150, 180, ["1.1"], id="within-one-archived-log"),
        pytest.param(
            [arch(1, 100, 200), arch(2, 200, 300), cur(3, 300)], ONE, 150, 350,
            ["1.1", "1.2", "1.3"], id="contiguous-archived-and-current",
        ),
        pytest.param(
            [arch(1, 100, 200), arch(2, 200, 300), cur(3, 300)], ONE, 150, 299,
            ["1.1", "1.2"], id="logs-behind-the-end-are-not-taken",
        ),
        pytest.param(
            [arch(1, 100, 200), arch(2, 200, 300), cur(3, 300)], ONE, 150, 300,
            ["1.1", "1.2", "1.3"], id="the-end-is-included",
        ),
        pytest.param(
            [before(1, 200), arch(2, 200, 300), cur(3, 300)], ONE, 199, 250,
            ["1.2"], id="the-start-is-excluded",
        ),
        pytest.param(
            [arch(1, 100, 200), online(2, 200, 300), cur(3, 300)], ONE, 150, 350,
            ["1.1", "1.2", "1.3"], id="an-online-log-not-archived-yet",
        ),
        pytest.param(
            [cur(1, 100), arch(1, 100, 200), cur(2, 200)], ONE, 150, 250,
            ["1.1a", "1.2"], id="archived-between-two-queries",
        ),
        pytest.param(
            [online(1, 100, 200), arch(1, 100, 200), cur(2, 200)], ONE, 150, 180,
            ["1.1a"], id="archived-goes-before-online",
        ),
        pytest.param(
            [arch(1, 100, 200, destination=2), arch(1, 100, 200, destination=1)], ONE, 150, 180,
            ["1.1a"], id="duplicates-over-destinations",
        ),
        pytest.param(
            [gone(1, 100, 200), arch(1, 100, 200, destination=2)], ONE, 150, 180,
            ["1.1a"], id="deleted-in-one-destination-only",
        ),
        pytest.param(
            [arch(1, 100, 200), arch(3, 300, 400), cur(4, 400)], ONE, 350, 380,
            ["1.3"], id="a-gap-outside-the-range-does-not-matter",
        ),
        pytest.param(
            [arch(1, 100, 200), gone(2, 200, 300), arch(3, 300, 400)], ONE, 300, 350,
            ["1.3"], id="a-deleted-log-before-the-range-does-not-matter",
        ),
        pytest.param([arch(1, 100, 200), arch(3, 300, 400)], ONE, 150, 350, WAIT, id="gap"),
        pytest.param([arch(1, 100, 200)], ONE, 150, 200, WAIT, id="end-not-archived-yet"),
        pytest.param([before(1, 100)], ONE, 150, 200, WAIT, id="start-not-registered-yet"),
        pytest.param([], ONE, 150, 200, WAIT, id="no-logs-of-an-open-thread"),
        pytest.param(
            [before(1, 120), arch(3, 300, 400)], ONE, 150, 350, WAIT, id="gap-at-the-start"
        ),
        pytest.param([gone(1, 100, 200), cur(2, 200)], ONE, 150, 250, STOP, id="start-deleted"),
        pytest.param(
            [arch(1, 100, 200), gone(2, 200, 300), cur(3, 300)], ONE, 150, 350, STOP,
            id="deleted-in-the-middle",
        ),
        pytest.param([arch(5, 500, 600), cur(6, 600)], ONE, 150, 550, STOP, id="before-the-oldest"),
        pytest.param(
            [arch(1, 100, 200), arch(2, 190, 300)], ONE, 150, 250, STOP, id="overlapping-logs"
        ),
        pytest.param(
            [cur(1, 100)], [t(last=180)], 150, 200, WAIT, id="redo-not-written-up-to-the-end"
        ),
        pytest.param([cur(1, 100)], [t(last=200)], 150, 200, ["1.1"], id="redo-written-just-so-far"),
        # several threads
        pytest.param(
            [cur(1, 100), cur(1, 90, 2)], TWO, 150, 200, ["1.1", "2.1"],
            id="equal-sequences-of-two-threads",
        ),
        pytest.param([cur(1, 100)], TWO, 150, 200, WAIT, id="an-open-thread-without-logs"),
        pytest.param(
            [cur(1, 100), arch(1, 90, 160, 2), cur(3, 170, 2)], TWO, 150, 200, WAIT,
            id="gap-in-the-second-thread",
        ),
        pytest.param(
            [cur(1, 100), gone(1, 90, 160, 2), cur(2, 160, 2)], TWO, 150, 200, STOP,
            id="deleted-in-the-second-thread",
        ),
        pytest.param(
            [cur(1, 100)], [t(), t(2, False, checkpoint=120)], 150, 200, ["1.1"],
            id="a-thread-closed-before-the-range",
        ),
        pytest.param(
            [cur(1, 100), arch(1, 90, 170, 2)], [t(), t(2, False, checkpoint=169)], 150, 200,
            ["1.1", "2.1"], id="a-thread-closed-within-the-range",
        ),
        pytest.param(
            [cur(1, 100), arch(1, 90, 170, 2)], [t(), t(2, False, checkpoint=170)], 150, 200,
            ["1.1", "2.1"], id="a-closed-threads-redo-ends-below-its-checkpoint",
        ),
        pytest.param(
            [cur(1, 100), arch(1, 90, 170, 2)], [t(), t(2, False, checkpoint=170)], 169, 200,
            ["1.1"], id="a-range-that-begins-where-a-thread-was-closed",
        ),
        pytest.param(
            [cur(1, 100), arch(1, 90, 170, 2)],
            [t(), t(2, False, "DISABLED", disable=190, checkpoint=170)], 175, 200,
            ["1.1"], id="a-range-between-the-close-of-a-thread-and-its-disabling",
        ),
        pytest.param(
            [cur(1, 100)], [t(), t(2, False, checkpoint=169)], 150, 200, WAIT,
            id="a-closed-thread-whose-log-is-missing",
        ),
        pytest.param(
            [cur(1, 100), arch(1, 90, 140, 2), cur(2, 170, 2)], TWO, 150, 200, ["1.1", "2.2"],
            id="a-thread-opened-again-within-the-range",
        ),
        pytest.param(
            [cur(1, 100), arch(1, 90, 160, 2), cur(2, 180, 2)], TWO, 150, 200,
            ["1.1", "2.1", "2.2"], id="a-thread-closed-and-opened-within-the-range",
        ),
        pytest.param(
            [cur(1, 100), cur(1, 170, 2)], [t(), t(2, enable=170)], 150, 200, ["1.1", "2.1"],
            id="a-thread-enabled-within-the-range",
        ),
        pytest.param(
            [cur(1, 100), cur(1, 180, 2)], [t(), t(2, enable=170)], 150, 200, ["1.1", "2.1"],
            id="a-thread-opened-later-than-it-was-enabled",
        ),
        pytest.param(
            [cur(1, 100), gone(1, 180, 190, 2), cur(2, 190, 2)], [t(), t(2, enable=170)], 150, 200, STOP,
            id="the-first-log-of-a-new-thread-is-gone",
        ),
        pytest.param(
            [cur(1, 100), cur(2, 180, 2)], [t(), t(2, enable=170)], 150, 200, STOP,
            id="the-first-log-of-a-new-thread-is-not-even-known",
        ),
        pytest.param(
            [cur(1, 100)], [t(), t(2, enable=300)], 150, 200, ["1.1"],
            id="a-thread-enabled-after-the-range",
        ),
        pytest.param(
            [cur(1, 100)], [t(), t(2, False, "DISABLED", disable=120)], 150, 200, ["1.1"],
            id="a-thread-disabled-before-the-range",
        ),
        pytest.param(
            [cur(1, 100)], [t(), t(2, False, "DISABLED", disable=170)], 150, 200, WAIT,
            id="a-thread-disabled-within-the-range-needs-its-logs",
        ),
        pytest.param(
            [cur(1, 100), cur(7, 90, thread=2)], [t(), t(2, enabled="PRIVATE")], 150, 200, ["1.1", "2.7"],
            id="private-threads-count-too",
        ),
        pytest.param(
            [cur(1, 100), cur(7, 100, 9)], ONE, 150, 200, ["1.1"], id="logs-of-unknown-threads"
        ),
        pytest.param([], [t(1, False, checkpoint=100)], 150, 200, WAIT, id="nothing-is-open"),
    ],
)  # fmt: skip
def test_coverage(
    logs: Sequence[RedoLog],
    threads: Sequence[RedoThread],
    low: int,
    high: int,
    expected: list[str] | type[Exception],
) -> None:
    if isinstance(expected, list):
        chosen = cover(logs, threads, Scn(low), Scn(high))
        marks = [name.rstrip("a") for name in expected]
        assert [f"{log.thread}.{log.sequence}" for log in chosen] == marks
        for log, mark in zip(chosen, expected, strict=True):
            assert not mark.endswith("a") or log.state == "archived"
            assert log.destination in (0, 1, 2)
    else:
        with pytest.raises(expected):
            cover(logs, threads, Scn(low), Scn(high))
    own = [log for log in logs if log.state != "before"]
    if begin_with(own, low):
        lowest = {log.thread: log.sequence for log in sorted(own, key=lambda log: -log.sequence)}
        earlier = [before(sequence - 1, low, thread) for thread, sequence in lowest.items()]
        found = covered(own, threads, low, high)
        assert covered([*own, *earlier], threads, low, high) == found, "it says nothing more"


def covered(
    logs: Sequence[RedoLog], threads: Sequence[RedoThread], low: int, high: int
) -> list[RedoLog] | str:
    """The logs that are chosen, or why none are."""
    try:
        return cover(logs, threads, Scn(low), Scn(high))
    except (LogsNotReadyError, RedoUnavailableError) as error:
        return str(error)


def test_redo_from_before_resetlogs_is_gone() -> None:
    logs = [arch(1, 140, 200), cur(2, 200)]
    assert cover(logs, ONE, Scn(139), Scn(180), resetlogs_change=140)
    with pytest.raises(RedoUnavailableError, match="RESETLOGS"):
        cover(logs, ONE, Scn(138), Scn(180), resetlogs_change=140)


def test_the_first_destination_is_taken() -> None:
    logs = [arch(1, 100, 200, destination=2), arch(1, 100, 200, destination=1)]
    assert [log.destination for log in cover(logs, ONE, Scn(150), Scn(180))] == [1]
