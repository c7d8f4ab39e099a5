"""A benchmark that never ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from benchmarks.common import Form, Result


def rows(form: Form) -> Iterator[Result]:
    yield Result("before it stuck", 1.0, "s", "nothing", correct=False)
    subprocess.run(["sleep", "600"], check=True)
