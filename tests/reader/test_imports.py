"""The reader runs where neither Spark nor Oracle's driver nor Dagster is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from cdc_core.delta.appending import create_table
from cdc_core.errors import PreflightError
from redolake.reader import open as open_lake

ALLOWED = frozenset({"arro3", "cdc_core", "cython_runtime", "deltalake", "deprecated", "numpy", "pyarrow", "redolake", "typing_extensions", "wrapt"})  # fmt: skip
"""What pyarrow and deltalake bring along, and the parts of ours that need nothing else."""

READ = """
import json, sys
before = set(sys.modules)
from redolake.reader import open
table = open(sys.argv[1]).table("SHOP.T")
list(table.changes().to_batches())
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
ours = {name for name in sys.modules if name.startswith("cdc_core.")}
print(json.dumps([sorted(loaded - set(sys.stdlib_module_names)), sorted(ours)]))
"""


def _lake(folder: Path) -> Path:
    for kind in ("mirror", "changelog"):
        path = str(folder / "src" / kind / "shop.t")
        properties = {"redolake.role": kind, "redolake.table": "SHOP.T"}
        create_table(path, pa.schema([("ID", pa.int64())]), properties, doing="creating", facts={})
    return folder


def test_reading_loads_arrow_and_delta_rs_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(_lake(tmp_path))],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded, ours = json.loads(done.stdout)
    assert {one for one in loaded if not one.startswith("_")} <= ALLOWED
    assert {".".join(one.split(".")[:2]) for one in ours} == {
        "cdc_core.delta",
        "cdc_core.errors",
        "cdc_core.lake",
        "cdc_core.model",
    }
    assert {one for one in ours if one.startswith("cdc_core.lake.")} == {
        "cdc_core.lake.mirror",
        "cdc_core.lake.mirror.versions",
        "cdc_core.lake.side_tables",
        "cdc_core.lake.side_tables.positions",
    }


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
def test_a_form_whose_library_is_missing_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    rows = open_lake(_lake(tmp_path)).table("SHOP.T").changes()
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(PreflightError, match=f"pip install {library}"):
        getattr(rows, f"to_{library}")()


def test_what_is_printed_names_no_key_of_the_store(tmp_path: Path) -> None:
    lake = open_lake(_lake(tmp_path), storage_options={"aws_secret_access_key": "tell-tale"})
    for one in (lake, lake.table("SHOP.T"), lake.at(10), lake.table("SHOP.T").changes()):
        assert "tell-tale" not in repr(one), type(one).__name__
