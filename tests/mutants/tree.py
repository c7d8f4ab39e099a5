"""A copy of the working tree, in which sources are changed."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.mutants.mutants import ROOT

_TIMES = itertools.count(int(time.time()) + 10)


def copy_tree(target: Path) -> None:
    """The tracked and new files of the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / name)


def write_new(path: Path, text: str) -> None:
    """Write a source under a time that it never had, so that Python compiles it again."""
    path.write_text(text)
    os.utime(path, (next(_TIMES), next(_TIMES)))
