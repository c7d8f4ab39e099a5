"""What the documents show to be copied works."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from assets.config_file import COMPONENT_TYPE, load_config
from docs.tools.mentions import ROOT, documents

_PYTHON = re.compile(r"^ *```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
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


def test_the_example_of_a_translator_names_assets_of_each_source(tmp_path: Path) -> None:
    """The component of the guide, over the configuration of another guide, and over two pluggable databases."""
    guide = (ROOT / "docs" / "how-to" / "dagster.md").read_text()
    (code,) = (one for one in _PYTHON.findall(guide) if "(Translator)" in one)
    made: dict[str, Any] = {}
    exec(code, made)
    text = EXAMPLES[0].values[0]
    assert isinstance(text, str)
    several = text.replace("    user:", "    pdbs: [ONE, TWO]\n    user:", 1)
    for number, (written, sources) in enumerate([(text, 1), (several, 2)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = folder / "defs.yaml"
        file.write_text(written.replace(COMPONENT_TYPE, "my_project.components.WarehouseCdc"))
        component = made["WarehouseCdc"].from_file(file, document=0)
        assert len(component.sources) == sources
        for source in component.sources:
            keys = {
                spec.key.to_user_string() for spec in source.build_defs().resolve_all_asset_specs()
            }
            assert f"warehouse/{source.config.name}/shop/orders" in keys
            assert f"{source.config.name}/changelog/shop/orders" in keys


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
