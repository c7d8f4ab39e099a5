"""A window is captured while the one before it is applied. No database, no Spark."""

from __future__ import annotations

import threading

import pytest

from cdc_core.errors import LakeError, LogsNotReadyError
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.lookahead import carry_windows
from tests.steps.recorder import SECONDS, Recorder, failing, must, until

WINDOWS = [ScnWindow(Scn(low), Scn(low + 10)) for low in (0, 10, 20)]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_a_window_is_captured_while_the_one_before_is_applied(recorder: Recorder) -> None:
    captured = threading.Event()
    recorder.hooks["capture 10-20"] = captured.set
    recorder.hooks["apply 0-10"] = lambda: must(captured.wait(SECONDS))
    steps = carry_windows(WINDOWS, recorder.step("capture"), recorder.step("apply"))
    names = [step.key for step in steps]
    assert names == [f"{kind} {window.key}" for window in WINDOWS for kind in ("capture", "apply")]
    assert recorder.started.index("capture 10-20") < recorder.done.index("apply 0-10")


def test_what_was_captured_is_applied_before_the_next_window_s_error(recorder: Recorder) -> None:
    recorder.hooks["capture 10-20"] = failing(LogsNotReadyError("not archived yet"))
    steps = carry_windows(WINDOWS, recorder.step("capture"), recorder.step("apply"))
    seen = until(LogsNotReadyError, steps)
    assert seen == ["capture 0-10", "apply 0-10"]
    assert "capture 20-30" not in recorder.started


def test_a_failed_apply_ends_after_the_capture_that_was_going_on(recorder: Recorder) -> None:
    failed = threading.Event()

    def fails() -> None:
        failed.set()
        raise LakeError("no space")

    recorder.hooks["apply 0-10"] = fails
    recorder.hooks["capture 10-20"] = lambda: must(failed.wait(SECONDS))
    with pytest.raises(LakeError):
        list(carry_windows(WINDOWS, recorder.step("capture"), recorder.step("apply")))
    assert recorder.done == ["capture 0-10", "capture 10-20"]


def test_no_window(recorder: Recorder) -> None:
    assert list(carry_windows([], recorder.step("capture"), recorder.step("apply"))) == []
