"""The lock file is one of the environments that the ranges of ``pyproject.toml`` allow."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKED = dict(
    re.findall(r"^([\w.-]+)==([^ \\;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
)
EXTRAS = PROJECT["optional-dependencies"]
OURS = "redolake-oracle-embedded"
DECLARED = [
    line
    for line in [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
    if not line.startswith(OURS)
]


@pytest.mark.parametrize("declared", DECLARED)
def test_the_locked_version_is_in_the_declared_range(declared: str) -> None:
    requirement = Requirement(declared)
    assert LOCKED[canonicalize_name(requirement.name)] in requirement.specifier


@pytest.mark.parametrize("declared", PROJECT["dependencies"])
def test_a_library_pins_nothing_exactly(declared: str) -> None:
    """Who installs Redolake beside other packages needs room; the lock file is for this folder alone."""
    assert "==" not in declared


def test_every_locked_package_has_hashes() -> None:
    entries = re.findall(
        r"^[\w.-]+==[^\n]*\n((?:    [^\n]*\n)*)", (ROOT / "requirements.lock").read_text(), re.M
    )
    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)
