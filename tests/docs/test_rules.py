"""Each rule of the architecture names its home and its tests, and they exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _rules() -> list[str]:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.split("## 1. Rules")[1].split("\n## ")[0]
    return re.split(r"^(?=\d+\. )", section, flags=re.MULTILINE)[1:]


def test_the_rules_are_numbered_without_a_gap() -> None:
    numbers = [int(rule.split(".")[0]) for rule in _rules()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 19


def test_the_architecture_is_one_page_and_links_to_every_page_of_design() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(text.encode()) <= 16 * 1024
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "design").glob("*.md")}
    assert pages == set(re.findall(r"\]\((docs/design/[\w-]+\.md)", text))


def test_the_guarantees_are_the_rules() -> None:
    """Users read of every rule, under its number."""
    text = (ROOT / "docs" / "concepts" / "guarantees.md").read_text()
    numbers = [int(one) for one in re.findall(r"^(\d+)\. \*\*", text, re.MULTILINE)]
    assert numbers == [int(rule.split(".")[0]) for rule in _rules()]


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: f"rule-{rule.split('.')[0]}")
def test_a_rule_names_files_that_exist(rule: str) -> None:
    home = re.search(r"Home: (.*?) Test: ", rule, re.DOTALL)
    tests = re.search(r"Test: (.*)", rule, re.DOTALL)
    assert home, "the rule names no home"
    assert tests, "the rule names no test"
    for part, folder in ((home[1], "cdc_core/"), (tests[1], "tests/")):
        paths = re.findall(r"`([^`]+)`", part)
        assert paths
        for path in paths:
            assert path.startswith(folder)
            assert (ROOT / path).is_file(), path


def test_the_table_of_facts_about_oracle_names_files_that_exist() -> None:
    """Each row of the contributors' table names its tests."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## What a real Oracle does")[1]
    rows = re.findall(r"^\| (\d+) \|(.*)$", section.split("\n## ")[0], re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 18))
    for _, row in rows:
        tests = re.findall(r"`(tests/[^`]+)`", row)
        assert tests, row
        for path in [*tests, *re.findall(r"`((?:cdc_core|oracle_embedded)/[^`]+)`", row)]:
            assert (ROOT / path).is_file(), path
