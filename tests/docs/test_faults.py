"""The list of faults names tests that exist, one at least in each line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "faults.md"
LINES = [
    line
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| what fails")
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split("|")[1].strip())
def test_a_fault_is_shown_by_a_test(line: str) -> None:
    named = re.findall(r"`([a-z_]+/test_\w+\.py)(?:::(\w+))?`", line)
    assert named
    for path, test in named:
        assert f"def {test or 'test_'}" in (ROOT / "tests" / path).read_text(), (path, test)
