"""Two processes run one source: each learns what the other one did, and neither takes that for a mistake of its user."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import ConfigError, LeaseHeldError
from cdc_core.model.scn import Scn, ScnWindow
from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of


def test_an_idle_window_that_another_process_has_forgotten_is_no_unknown_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has listed the windows that wait before the other process finished them."""
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "CREATE TABLE U (ID NUMBER(9))")
        with (
            source_of(oracle, tmp_path, "T") as one,
            source_of(oracle, tmp_path, "T") as other,
        ):
            other.lake = one.lake
            one.run()
            oracle.run("INSERT INTO T VALUES (1)")
            one.windows()
            oracle.run("INSERT INTO U VALUES (1)")
            one.pipeline.plan_windows()
            waiting = one.pipeline.pending_windows()
            assert waiting
            for number in range(3):
                oracle.run(f"INSERT INTO U VALUES ({number})")
                other.windows()
            gone = [each for each in waiting if other.pipeline.store.windows.get(each) is None]  # fmt: skip
            assert gone, "the idle window was forgotten"
            monkeypatch.setattr(one.pipeline, "pending_windows", lambda: waiting)
            with pytest.raises(LeaseHeldError, match="has finished the pending work"):
                one.windows()
            monkeypatch.undo()
            one.windows()
            one.check_current("T")
            with pytest.raises(ConfigError, match="no such window"):
                one.pipeline.apply_window(ScnWindow(Scn(1), Scn(2)))
