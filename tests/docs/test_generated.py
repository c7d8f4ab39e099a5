"""Generated parts of the documentation are what the code says now, and nothing in them is without a meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.tools.debezium import COUNTERPARTS
from docs.tools.generate import PAGES, PARTS, pages, parts_of, renewed
from docs.tools.options import options
from docs.tools.type_table import markdown as type_table

OPTIONS = options()


@pytest.mark.parametrize("page", [page for page in pages() if parts_of(page.read_text())], ids=str)
def test_a_page_with_generated_parts_is_current(page: Path) -> None:
    text = page.read_text()
    assert text == renewed(text), "run: python -m docs.tools.generate"


def test_every_generated_part_has_a_page() -> None:
    shown = [part for page in pages() for part in parts_of(page.read_text())]
    assert sorted(shown) == sorted(PARTS)


def test_a_changed_part_is_renewed_and_the_rest_of_the_page_stays() -> None:
    page = "# T\n\n<!-- generated: types -->\nold\n<!-- end: types -->\n\nend\n"
    assert renewed(page).splitlines()[0] == "# T"
    assert "old" not in renewed(page)
    assert type_table() in renewed(page)
    assert renewed(renewed(page)) == renewed(page)


@pytest.mark.parametrize("option", OPTIONS, ids=[option.path for option in OPTIONS])
def test_every_option_says_what_it_means(option: object) -> None:
    assert getattr(option, "meaning", ""), "give the field a docstring"


def test_the_options_page_has_every_option_once() -> None:
    text = (PAGES / "reference" / "configuration.md").read_text()
    for option in OPTIONS:
        assert text.count(f"\n| `{option.path}` |") == 1


@pytest.mark.parametrize("path", COUNTERPARTS)
def test_debeziums_names_belong_to_options_that_exist(path: str) -> None:
    assert path in {option.path for option in OPTIONS}


def test_a_password_is_named_by_its_variable_only() -> None:
    paths = {option.path for option in OPTIONS}
    assert "oracle.password_env" in paths
    assert "oracle.password" not in paths
