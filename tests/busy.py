"""Runs a command beside processes that keep the machine busy: a test that fails then relies on time.

``python -m tests.busy --processes 8 -- make test``. The processes end with the command, and with this one, however it ends.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_BURN = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(1_000_000))
"""


@contextmanager
def busy(processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """While the block runs, so many processes use all the CPU that they get."""
    burners: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            burners.append(subprocess.Popen([sys.executable, "-S", "-E", "-c", _BURN]))
        yield burners
    finally:
        for one in burners:
            one.kill()
        for one in burners:
            one.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.busy", description=__doc__)
    parser.add_argument("--processes", type=int, default=8, help="busy processes (8)")
    parser.add_argument("command", nargs="+", help="what to run, after --")
    given = parser.parse_args(arguments)
    with busy(given.processes):
        return subprocess.run(given.command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
