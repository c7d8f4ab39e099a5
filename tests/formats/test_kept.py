"""What an earlier version left behind is taken over by this one: the waiting window is applied, earlier ones are replayed."""

from __future__ import annotations

import json
import tarfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc_core.steps import Pipeline
from tests.formats.kept import FOLDER, ROWS, TABLES, lake_of
from tests.oracle.embedded import source_config

VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))
NOBODY = {"dsn": "127.0.0.1:1/GONE", "user": "NOBODY", "password": "none"}
"""Behind landing nothing needs Oracle."""


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_version_left_is_taken_over(version: str, tmp_path: Path) -> None:
    with tarfile.open(FOLDER / f"{version}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    rows = json.loads((tmp_path / ROWS).read_text())
    config = source_config(tmp_path, *TABLES, oracle=NOBODY, lake=lake_of(tmp_path))
    with Pipeline(config) as pipeline:
        [waiting] = pipeline.pending_windows()
        assert [one.kind for one in pipeline.run_apply()] == ["window-applied"]
        assert {one.mirror_scn for one in pipeline.records.tables()} == {waiting.scn_high}
        assert mirrors(tmp_path) == rows
        applied = [one.window for one in pipeline.records.windows(states=("applied",))]
        assert len(applied) == 3
        for window in applied[::-1]:
            pipeline.replay_window(window)
        assert mirrors(tmp_path) == rows, "replays leave the mirrors as they were"


def mirrors(folder: Path) -> dict[str, list[list[str]]]:
    return {
        table: sorted(
            (
                [text(row[name]) for name in row if not name.startswith("_cdc")]
                for row in read(folder, table)
            ),
            key=lambda row: int(row[0]),
        )
        for table in TABLES
    }


def read(folder: Path, table: str) -> list[dict[str, Any]]:
    [path] = [one.parent for one in (folder / "lake").rglob("_delta_log") if is_mirror(one, table)]
    found: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return found


def is_mirror(log: Path, table: str) -> bool:
    return "mirror" in log.parts and table.lower() in log.parent.name.lower()


def text(value: Any) -> str:
    """As the driver prints it."""
    return str(value.normalize() if isinstance(value, Decimal) else value)
