"""What hangs is interrupted, and says where it is; a worker ends whatever it is doing."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.invariants.deadline import HungError, deadline
from tests.invariants.team import Worker


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    source = {
        "name": "proof",
        "oracle": {"dsn": "localhost:1/NONE", "user": "U", "password": "P"},
        "tables": [{"name": "DEMO.T"}],
        "landing": {"type": "local", "path": str(tmp_path / "landing")},
        "lake": {"path": str(tmp_path / "lake")},
        "state": {"url": f"sqlite:///{tmp_path}/state.db"},
    }
    path.write_text(json.dumps(source))
    return path


@pytest.fixture
def worker(config: Path) -> Iterator[Worker]:
    worker = Worker(config, "capture", config.with_name("worker.log"))
    yield worker
    worker.close()


def test_a_worker_that_hangs_is_interrupted_and_says_where_it_is(worker: Worker) -> None:
    assert worker.ask("children").failed is None
    worker.stop()
    with pytest.raises(HungError, match="in serve"), deadline(0.2, worker.stacks):
        worker.ask("children")


def test_what_ends_in_time_is_left_alone() -> None:
    with deadline(60):
        pass
    with pytest.raises(HungError, match="within 0 seconds"), deadline(0.05):
        time.sleep(60)


def test_a_worker_that_has_just_begun_can_be_ended(config: Path) -> None:
    """It leads no process group yet, by which a worker and its JVM are ended."""
    worker = Worker(config, "capture", config.with_name("worker.log"))
    worker.signal(signal.SIGSTOP)
    with deadline(30):
        worker.close()


def test_a_worker_is_stopped_when_all_of_its_threads_are(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine delivers the signal late; what the worker does until then is done."""
    assert worker.ask("children").failed is None
    deliver, delivered = worker.signal, []

    def deliver_late(number: int) -> None:
        delivered.append(number)
        deliver(number)

    def send(number: int) -> None:
        threading.Timer(0.3, deliver_late, [number]).start()

    with deadline(60), monkeypatch.context() as patch:
        patch.setattr(worker, "signal", send)
        worker.stop()
        assert delivered == [signal.SIGSTOP]
    worker.send("children")
    assert not worker.answers_within(0.2)
    worker.signal(signal.SIGCONT)
    assert worker.answer().failed is None
