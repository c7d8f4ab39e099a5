"""How does a publisher run in a process of its own, that may end itself by SIGKILL after some messages?"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cdc_core.steps import Pipeline
from cdc_core.steps.publishing import side_topics, tables, topics
from pipelines.config_file import load_config

SMALL_TRANSACTIONS = 500
"""Events of a Kafka transaction, so that a publisher that is killed early has done something."""


def publish_and_die(file: Path, messages: Iterable[int]) -> int:
    """Run a publisher for each number of messages, behind which it dies; then one that comes to the end. How many died."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    killed = 0
    for number in [*messages, None]:
        one = processes.Process(target=_publish, args=(file, number))
        one.start()
        one.join()
        killed += one.exitcode == -signal.SIGKILL
    assert one.exitcode == 0
    return killed


def _publish(file: Path, messages: int | None) -> None:
    tables.EVENTS_PER_TRANSACTION = SMALL_TRANSACTIONS
    side_topics.TRANSACTIONS_AT_ONCE = SMALL_TRANSACTIONS
    if messages is not None:
        _die_after(messages)
    with Pipeline(load_config(file, environ=os.environ)) as pipeline:
        list(pipeline.publish())


def _die_after(messages: int) -> None:
    produce, left = topics.Topics._produce, [messages]

    def produce_some(self: topics.Topics, *message: Any) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        produce(self, *message)

    topics.Topics._produce = produce_some  # type: ignore[method-assign,assignment]
