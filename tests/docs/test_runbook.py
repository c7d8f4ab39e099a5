"""Every error has an entry in the runbook, and every entry is about an error."""

from __future__ import annotations

import re

import pytest

from docs.tools.errors import error_classes, known_codes
from docs.tools.generate import PAGES

TEXT = (PAGES / "runbook.md").read_text()
ENTRIES = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", TEXT, re.DOTALL | re.MULTILINE))
CLASSES = [kind.__name__ for kind in error_classes()]


def test_the_runbook_has_an_entry_for_each_error_class_and_for_nothing_else() -> None:
    assert sorted(ENTRIES) == sorted(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_an_entry_says_what_to_do(name: str) -> None:
    assert "*Do:*" in ENTRIES[name]


@pytest.mark.parametrize("name", sorted({*CLASSES} - {"CdcError", "TerminalError"}))
def test_an_entry_says_what_is_lost_if_nobody_acts(name: str) -> None:
    assert "*If nobody acts:*" in ENTRIES[name]


@pytest.mark.parametrize("code", known_codes())
def test_every_code_that_redolake_knows_is_listed(code: str) -> None:
    assert f"`{code}`" in TEXT
