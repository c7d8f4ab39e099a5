"""Compiled code is kept where it can be written, shared by processes, and never older than the sources."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdc_core.decode import warm_up
from cdc_core.decode.kernels import blocks, cache, messages, records, stored

_PROGRAM = """
import pyarrow as pa
from cdc_core.decode.kernels import blocks
from cdc_core.decode import decode_dml
from tests.decode.golden_table import GOLDEN
decode_dml(pa.array(['delete from "S"."T";']), GOLDEN)
print(sum(blocks.decode_blocks.stats.cache_hits.values()), sum(blocks.decode_blocks.stats.cache_misses.values()))
"""


def test_a_second_process_loads_the_compiled_code() -> None:
    """Spark's Python workers are such processes; NUMBA_CACHE_DIR is not set for them."""
    environment = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    for _process in range(2):
        run = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert run.stdout.split() == ["1", "0"]


def test_the_first_folder_that_can_be_written_is_chosen(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    chosen = cache.choose_cache_folder(iter([blocked, tmp_path / "user"]), "digest")
    assert chosen == str(tmp_path / "user" / "redolake-digest")
    assert Path(chosen).stat().st_mode & 0o777 == 0o700


def test_a_folder_of_another_user_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert cache.choose_cache_folder(iter([tmp_path]), "digest") == ""


def test_no_folder_at_all_is_said_and_survived(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with caplog.at_level(logging.WARNING):
        assert cache.choose_cache_folder(iter([blocked]), "digest") == ""
    assert "NUMBA_CACHE_DIR" in caplog.text


def test_a_change_of_any_source_gives_another_folder(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("A = 1")
    (tmp_path / "two.py").write_text("B = 1")
    before = cache.sources_digest(tmp_path)
    (tmp_path / "two.py").write_text("B = 2")
    assert cache.sources_digest(tmp_path) != before


def test_candidates_end_with_a_folder_of_the_users_own() -> None:
    candidates = list(cache.cache_candidates())
    assert candidates[0].name == "__pycache__"
    assert str(os.getuid()) in candidates[-1].name


def test_a_user_without_a_home_still_has_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert len(list(cache.cache_candidates())) == 2


def test_warm_up_compiles_every_loop() -> None:
    """What set-up calls, so that no later process has to compile."""
    warm_up()
    loops: list[Any] = [blocks.decode_blocks]
    loops += [stored.measure_stored, stored.write_stored]
    loops += [messages.scan_messages, records.measure_kept, records.keep, records.gather]
    for loop in loops:
        assert len(loop.signatures) == 1
