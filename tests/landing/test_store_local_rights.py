"""Who may read what Redolake writes on this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.landing.store_local import LocalLandingStore
from cdc_core.state.store import Store


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def _rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_landing_and_metadata_store_are_for_their_user_alone(
    tmp_path: Path, open_umask: None
) -> None:
    LocalLandingStore(str(tmp_path / "landing"))
    assert _rights(tmp_path / "landing") == 0o700
    with Store.open(f"sqlite:///{tmp_path}/state.db", "src"):
        assert {_rights(file) for file in tmp_path.glob("state.db*")} == {0o600}


def test_rights_that_somebody_gave_are_kept(tmp_path: Path, open_umask: None) -> None:
    shared = tmp_path / "landing"
    shared.mkdir(mode=0o750)
    LocalLandingStore(str(shared))
    assert _rights(shared) == 0o750
