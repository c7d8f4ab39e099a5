"""Runs tests, and then once more those that failed: what passes then is unsteady, and is named at the end.

``python -m tests.twice --reruns 1 -- -n 3 tests``: pytest's own arguments follow the two hyphens. The second run is a process of its
own, because what tests of a module share (a database, a folder, a JVM) is no longer as the first one found it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FAILED = 1
"""pytest's exit code when tests failed; what ends with another one was interrupted, or never began."""
UNSTEADY_MAX = 20
"""More than so many did not fail by chance."""
_AGAIN = ("--last-failed", "--last-failed-no-failures", "none")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests; pytest's exit code, after the last run."""
    parser = argparse.ArgumentParser(prog="python -m tests.twice", description=__doc__)
    parser.add_argument("--reruns", type=int, default=1, help="at most so many more runs (1)")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, after --")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="redolake-failed-") as folder:
        code = _run(folder, given.pytest)
        first = left = _failed(folder)
        for _ in range(given.reruns):
            if code != FAILED or not 0 < len(left) <= UNSTEADY_MAX:
                break
            code = _run(folder, [*given.pytest, *_AGAIN])
            left = _failed(folder)
    for name in sorted(first - left):
        print(f"UNSTEADY {name} failed, and passed when it was run again: fix it", flush=True)
    return code


def _run(folder: str, arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={folder}", *arguments]
    return subprocess.run(command, check=False).returncode


def _failed(folder: str) -> set[str]:
    """Which tests have failed, as pytest keeps it for ``--last-failed``."""
    found = Path(folder, "v", "cache", "lastfailed")
    return set(json.loads(found.read_text())) if found.exists() else set()


if __name__ == "__main__":
    sys.exit(main())
