"""A benchmark that finds one row and fails."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.common import Form, Result


def rows(form: Form) -> Iterator[Result]:
    yield Result("before it broke", 1.0, "s", "nothing")
    raise RuntimeError("no such table")
