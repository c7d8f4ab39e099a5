"""Where the demo keeps its things."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.demo import settings

ROOT = Path(__file__).parents[3]


def test_in_the_projects_folder_the_demo_is_kept_there() -> None:
    assert settings.default_folder() == ROOT / ".redolake" / "demo"


def test_of_an_installed_package_the_demo_is_kept_in_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Never below ``site-packages``."""
    installed = tmp_path / "site-packages" / "pipelines" / "demo" / "settings.py"
    monkeypatch.setattr(settings, "__file__", str(installed))
    monkeypatch.chdir(tmp_path)
    assert settings.default_folder() == tmp_path / ".redolake" / "demo"
