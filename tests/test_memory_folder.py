"""Tests keep their folders in memory only where nobody has chosen another place, and where there is room."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.memory_folder import FREE_BYTES_MIN, use_memory

BLOCK = 4096


@pytest.mark.parametrize(
    ("chosen", "blocks", "flags", "taken"),
    [
        pytest.param({}, FREE_BYTES_MIN // BLOCK, 0, True, id="room"),
        pytest.param({"TMPDIR": "/mine"}, FREE_BYTES_MIN // BLOCK, 0, False, id="chosen"),
        pytest.param({}, FREE_BYTES_MIN // BLOCK - 1, 0, False, id="no-room"),
        pytest.param({}, FREE_BYTES_MIN // BLOCK, os.ST_NOEXEC, False, id="no-programs"),
    ],
)
def test_memory_is_used_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    chosen: dict[str, str],
    blocks: int,
    flags: int,
    *,
    taken: bool,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())
    found = SimpleNamespace(f_bavail=blocks, f_frsize=BLOCK, f_flag=flags)
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    environment = dict(chosen)
    assert use_memory(environment, str(tmp_path)) is taken
    assert environment == ({"TMPDIR": str(tmp_path)} if taken else chosen)


def test_a_folder_that_is_not_there_is_not_used(tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    assert not use_memory(environment, str(tmp_path / "nothing"))
    assert environment == {}
