from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest

_HERE = Path(__file__).parent


def _load(name: str) -> ModuleType:
    """A helper module beside the tests, under its own name (tests are no package)."""
    spec = importlib.util.spec_from_file_location(name, _HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


standin = sys.modules.get("standin") or _load("standin")


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[standin.StandIn]:
    made = standin.StandIn.open(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made
