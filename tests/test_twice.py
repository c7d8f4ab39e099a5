"""Tests that fail are run again, and named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.twice import UNSTEADY_MAX, main

SUITE = """
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def shared():
    return []

def once(name):
    place = Path(__file__).with_name(name)
    met = place.exists()
    place.touch()
    return met

def test_fails_once(shared):
    shared.append(1)
    assert once("failed") and len(shared) == 1, "the second run has a fixture of its own"

def test_passes(shared):
    assert not once("passed"), "it is not run again"

def test_fails():
    assert BROKEN != "yes"

@pytest.mark.parametrize("number", range(MANY))
def test_many_fail(number):
    assert once(f"failed {number}")
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    for name in [one for one in os.environ if one.startswith("PYTEST_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path / "test_it.py"


def run(suite: Path, *, broken: str = "no", many: int = 0, reruns: int = 1) -> int:
    suite.write_text(f"BROKEN, MANY = {broken!r}, {many}\n{SUITE}")
    return main(["--reruns", str(reruns), "--", "-q", "-n", "2", str(suite)])


def test_what_passes_at_the_second_time_is_named(
    suite: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """By the processes of pytest-xdist; what two tests share is made anew."""
    assert run(suite) == 0
    said = capfd.readouterr().out
    assert said.count("UNSTEADY") == 1
    assert "UNSTEADY test_it.py::test_fails_once failed" in said


def test_what_fails_again_fails(suite: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(suite, broken="yes") == 1
    said = capfd.readouterr().out
    assert said.rindex("1 failed") < said.index("UNSTEADY")
    assert "UNSTEADY test_it.py::test_fails_once failed" in said
    assert "UNSTEADY test_it.py::test_fails failed" not in said


@pytest.mark.parametrize(("many", "reruns"), [(0, 0), (UNSTEADY_MAX, 1)], ids=["unwanted", "many"])
def test_there_is_no_second_run(
    suite: Path, capfd: pytest.CaptureFixture[str], many: int, reruns: int
) -> None:
    assert run(suite, many=many, reruns=reruns) == 1
    assert "UNSTEADY" not in capfd.readouterr().out
