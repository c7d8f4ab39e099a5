"""Dagster's command line ``dg`` finds the component and writes a file that loads, in a project like this one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assets.components import OracleCdc

TYPE = "assets.components.OracleCdc"
ROOT = Path(__file__).parents[2]
_DG = "import sys; from dagster_dg_cli.cli import main; sys.argv[0] = 'dg'; main()"


def dg(project: Path, *arguments: str) -> str:
    environ = {**os.environ, "HOME": str(project), "PYTHONPATH": f"{project}{os.pathsep}{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}  # fmt: skip
    command = [sys.executable, "-c", _DG, *arguments]
    done = subprocess.run(
        command, cwd=project, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose pyproject.toml is Redolake's, without definitions of its own."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "pipelines" / "defs").mkdir(parents=True)
    for name in ("__init__.py", "definitions.py"):
        (tmp_path / "pipelines" / name).touch()
    return tmp_path


@pytest.mark.dagster
@pytest.mark.slow
def test_dg_lists_the_component_and_scaffolds_a_file_that_loads(project: Path) -> None:
    listed = json.loads(dg(project, "list", "components", "--json", "--package", "assets"))
    assert [one["key"] for one in listed["items"]] == [TYPE]
    dg(project, "scaffold", "defs", TYPE, "orders")
    found = OracleCdc.from_file(project / "pipelines" / "defs" / "orders" / "defs.yaml")
    assert found.config.name == "orders"
