"""Carry a part of a table's life with a lake on S3, in a process of its own: ``PART CONFIG``, the configuration being pickled."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import SourceConfig
from cdc_core.errors import SecondWriterError
from cdc_core.lake.apply import windows as lake_windows
from cdc_core.spark.session import stop_spark
from cdc_core.steps import Pipeline
from tests.steps.harness import table_id


def main() -> None:
    """Run the part that is named."""
    part, config = sys.argv[1], pickle.loads(Path(sys.argv[2]).read_bytes())
    {"carry": carry, "killed": killed, "replay": replay, "replay_all": replay_all}[part](config)
    stop_spark()
    print("done")


def carry(config: SourceConfig) -> None:
    """Snapshot and windows up to the present."""
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())


def killed(config: SourceConfig) -> None:
    """End between the commit of the change log and the mirror's, as by SIGKILL, whoever merges."""

    def end(*_arguments: Any, **_options: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(lake_windows, "write", end)  # noqa: B010
    carry(config)


def replay(config: SourceConfig) -> None:
    """Finish the window, replay every one, compare; and no second process writes meanwhile."""
    with Pipeline(config) as pipeline, Pipeline(config) as other:
        list(pipeline.run_once())
        windows = [record.window for record in pipeline.records.windows()]
        with pytest.raises(SecondWriterError):
            other.replay_window(windows[0])
        for window in windows:
            pipeline.replay_window(window)
        [found] = pipeline.reconcile().tables
        assert (found.differences, found.double_keys_delta) == (0, 0)
        pipeline.rebuild_mirror(table_id("ONE"))


def replay_all(config: SourceConfig) -> None:
    """Finish the window, and replay every one."""
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        for record in pipeline.records.windows():
            pipeline.replay_window(record.window)


if __name__ == "__main__":
    main()
