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


def test_what_stands_behind_a_door_is_named(contracts: dict[str, Any]) -> None:
    """All modules of the library but the doors themselves and what everybody may know."""
    behind = contracts["one-door"]["forbidden_modules"]
    open_to_all = ["cdc_core.config", "cdc_core.errors", "cdc_core.model"]
    door = ["cdc_core.steps.pipeline", "cdc_core.steps.records", "cdc_core.steps.delta"]
    door += ["cdc_core.steps.spark", "cdc_core.steps.examining"]
    door += ["cdc_core.steps.together", "cdc_core.steps.beside", "cdc_core.steps.overtaken"]
    rest = [
        module for module in _modules("cdc_core") if not _is_in(module, [*behind, *open_to_all])
    ]
    assert sorted(rest) == sorted(door)
