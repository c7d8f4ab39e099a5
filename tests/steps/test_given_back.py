"""A command that is ended while a step goes on in the background gives that step's lease back, too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.errors import FencedError
from cdc_core.model.scn import ScnWindow
from cdc_core.steps.lookahead import in_background
from cdc_core.steps.windows import capture
from tests.oracle.embedded import running_oracle
from tests.steps.harness import Source, source_of

SECONDS = 60


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            yield source


def test_a_lease_of_the_background_is_given_back_and_its_step_changes_nothing_more(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.oracle.run("INSERT INTO T VALUES (2)")
    pipeline = source.pipeline
    [window] = pipeline.plan_windows()
    at_work, go_on = threading.Event(), threading.Event()
    land = capture.land_window

    def held_up(*work: object) -> None:
        monkeypatch.setattr(capture, "land_window", land)
        at_work.set()
        assert go_on.wait(SECONDS)
        land(*work)  # type: ignore[arg-type]

    monkeypatch.setattr(capture, "land_window", held_up)
    step = in_background(lambda: pipeline.capture_window(window))
    assert at_work.wait(SECONDS)
    source.close()
    assert source.pipeline.store.leases.all() == []
    assert captured(source, window)
    go_on.set()
    with pytest.raises(FencedError):
        step.result(SECONDS)
    source.run()
    source.check_followed("T")


def captured(source: Source, window: ScnWindow) -> bool:
    """The next process does the same step at once."""
    return source.pipeline.capture_window(window).kind == "window-captured"
