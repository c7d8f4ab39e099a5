"""Views of a lake on S3 (moto), as ``redolake at --format duckdb`` prints them, in DuckDB with its own extensions, which main Python does not have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc_core.delta.appending import create_table
from cdc_core.model.reports import MirrorVersion
from cdc_core.views.consistent_cut import files_view_sql, view_sql
from tests.delta.test_appending import SCHEMA, append, rows
from tests.landing.clouds import make_bucket
from tests.landing.s3_process import S3Process
from tests.peers import views_on_s3

PACKAGES = ("duckdb==1.5.5", "duckdb-extension-delta==1.5.5", "duckdb-extension-httpfs==1.5.5")


@pytest.mark.slow
def test_duckdb_reads_each_version_by_its_extension_and_by_files(
    bucket_server: S3Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket_server.environment().items():
        monkeypatch.setenv(name, value)
    make_bucket(bucket_server, "views-on-s3")
    table = "s3a://views-on-s3/lake/t"
    create_table(table, SCHEMA, {}, doing="creating", facts={})
    append(table, rows(1), 100)
    append(table, rows(2), 200)
    assert DeltaTable(table).version() == 2
    statements = []
    for version in (1, 2):
        one = MirrorVersion("SHOP.T", version, table)
        files = files_view_sql(one)
        assert files is not None
        statements += [view_sql("duckdb", one), files]
    python = tmp_path / "readers" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "readers")], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    endpoint = bucket_server.endpoint.removeprefix("http://")
    told = subprocess.run(
        [str(python), views_on_s3.__file__, endpoint, *statements],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-2000:]
    first, second = "[(1, 'n')]", "[(1, 'n'), (2, 'n')]"
    assert told.stdout.splitlines() == [first, first, second, second]
