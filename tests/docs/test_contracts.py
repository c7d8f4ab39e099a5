"""The import contracts reach every module: what no layer names, no contract holds."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def contracts() -> dict[str, Any]:
    read = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return {contract["id"]: contract for contract in read["contracts"]}


def _modules(package: str) -> list[str]:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    return [
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in files
        if file.name != "__init__.py"
    ]


def _is_in(module: str, packages: list[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in packages)


@pytest.mark.parametrize(
    ("contract", "package"), [("layers", "cdc_core"), ("embedded-layers", "oracle_embedded")]
)
def test_each_module_stands_in_a_layer(
    contracts: dict[str, Any], contract: str, package: str
) -> None:
    layers = " ".join(contracts[contract]["layers"]).replace(":", " ").replace("|", " ").split()
    assert [module for module in _modules(package) if not _is_in(module, layers)] == []


def test_the_door_opens_to_what_is_used_above_and_to_nothing_else(
    contracts: dict[str, Any],
) -> None:
    door = contracts["one-door"]
    assert door["protected_modules"] == ["cdc_core.*"]
    open_to_all = ["cdc_core.config", "cdc_core.errors", "cdc_core.model"]
    named = [one.removeprefix("** -> ") for one in door["ignore_imports"] if one.startswith("**")]
    doors = [one for one in named if not _is_in(one.removesuffix(".**"), open_to_all)]
    text = "".join(
        file.read_text()
        for above in ("assets", "pipelines")
        for file in (ROOT / above).rglob("*.py")
    )
    assert [one for one in doors if f"from {one} import" not in text] == []
