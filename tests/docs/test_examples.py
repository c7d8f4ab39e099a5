"""What the documents show to be copied works."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from assets.config_file import load_config
from docs.tools.mentions import ROOT, documents

_YAML = re.compile(r"^ *```yaml\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
EXAMPLES = [
    pytest.param(textwrap.dedent(text), id=f"{path.relative_to(ROOT)}-{number}")
    for path in documents()
    for number, text in enumerate(_YAML.findall(path.read_text()))
    if "assets.components.OracleCdc" in text
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_of_a_configuration_file_is_one(text: str, tmp_path: Path) -> None:
    file = tmp_path / "defs.yaml"
    file.write_text(text)
    assert load_config(file, environ=None).name == "orders"


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize(
    "script", sorted((ROOT / "deploy" / "oracle").glob("*.sql")), ids=lambda path: path.name
)
def test_a_script_with_variables_echoes_none_of_them(script: Path) -> None:
    """SQL*Plus prints each statement with its variables filled in, a password too, unless VERIFY is off."""
    text = script.read_text()
    if re.search(r"&\w", text):
        assert "SET VERIFY OFF" in text[: text.index("&")]
