"""A Spark cluster of this machine for tests: a standalone master and workers, processes of their own from PySpark's distribution."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.free_port import free_port

SCRIPT = Path(__file__).parents[2] / "deploy" / "spark-cluster" / "spark.sh"
"""What starts the containers of deploy/spark-cluster starts the tests' processes too."""
START_SECONDS = 240
STOP_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """``url`` is the master's, ``works`` are the workers' folders, in which each executor that they started has left its output."""

    url: str
    works: tuple[Path, ...]

    def executors(self) -> list[int]:
        """How many executors each worker has started so far."""
        return [len(list(work.glob("app-*/*/stderr"))) for work in self.works]


@contextmanager
def cluster(folder: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers of one core for the block, on the address under which this machine knows itself."""
    folder.mkdir(parents=True, exist_ok=True)
    host = _own_address()
    port, page = free_port(host), free_port(host)
    url = f"spark://{host}:{port}"
    with ExitStack() as stack:
        master = ["--host", host, "--port", str(port), "--webui-port", str(page)]
        stack.enter_context(_process(folder / "master.log", "master", *master))
        works = tuple(folder / f"worker-{number}" for number in range(workers))
        for work in works:
            work.mkdir()
            options = [
                "--host",
                host,
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(work),
            ]
            stack.enter_context(_process(work / "worker.log", "worker", *options, url))
        _wait_for(f"http://{host}:{page}/json/", workers, folder)
        yield Cluster(url, works)


@contextmanager
def _process(log: Path, *command: str) -> Iterator[None]:
    python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": python, "SPARK_DAEMON_MEMORY": "256m"}
    environment.pop("SPARK_SUBMIT_OPTS", None)
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(SCRIPT), *command], env=environment, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(page: str, workers: int, folder: Path) -> None:
    """Until the master says that all workers are there."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(page, timeout=5) as answer:
                if answer.read().count(b'"ALIVE"') > workers:  # the master is alive too
                    return
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(
        f"the cluster did not start: {(folder / 'master.log').read_text()[-2000:]}"
    )


def _own_address() -> str:
    """Not the loopback's: what other machines would call."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostbyname(socket.gethostname())
