"""Which reader reads which feature of Delta? Each line of docs/reference/readers.md is tried: Spark makes the table, and readers in a Python of their
own read it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import LakeConfig
from cdc_core.spark.session import start_session
from tests.peers import delta_readers

ROOT = Path(__file__).parents[2]
PACKAGES = ("deltalake>=1.6,<1.7", "polars==2.1.0", "duckdb==1.5.5", "duckdb-extension-delta==1.5.5", "pyarrow>=21")  # fmt: skip
VECTORS = "delta.enableDeletionVectors"
MAPPED = {
    "delta.columnMapping.mode": "name",
    "delta.minReaderVersion": "3",
    "delta.minWriterVersion": "7",
}
FEATURES: dict[str, dict[str, str]] = {
    "plain": {},
    "deletion vectors": {VECTORS: "true"},
    "column mapping": MAPPED,
    "column mapping and deletion vectors": {**MAPPED, VECTORS: "true"},
    "liquid clustering": {},
    "change data feed": {"delta.enableChangeDataFeed": "true"},
    "in-commit timestamps": {"delta.enableInCommitTimestamps": "true"},
    "row tracking": {"delta.enableRowTracking": "true"},
    "v2 checkpoints": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    "Iceberg compatibility": {**MAPPED, "delta.enableIcebergCompatV2": "true"},
    "type widening": {"delta.enableTypeWidening": "true"},
}


def documented() -> dict[str, dict[str, str]]:
    """The page's table: per kind of table and reader what it says."""
    lines = (ROOT / "docs/reference/readers.md").read_text().splitlines()
    at = next(number for number, one in enumerate(lines) if one.startswith("| table |"))
    rows = [[cell.strip() for cell in one.strip("|").split("|")] for one in lines[at:] if one]
    table = rows[: next((n for n, row in enumerate(rows) if len(row) != len(rows[0])), len(rows))]
    head, _, *body = table
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


def made(session: Any, path: Path, name: str) -> list[dict[str, Any]]:
    """A table with a feature that was used, and its rows."""
    table, column = f"delta.`{path}`", "NAME"
    properties = {VECTORS: "false", **FEATURES[name]}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    clustered = "CLUSTER BY (ID)" if name == "liquid clustering" else ""
    session.sql(
        f"CREATE TABLE {table} (ID INT, NAME STRING, AT TIMESTAMP_NTZ) USING delta {clustered}"
        f" TBLPROPERTIES ({listed})"
    )
    values = ", ".join(f"({number}, '{word}', NULL)" for number, word in enumerate(("one", "two", "three", "four"), 1))  # fmt: skip
    session.sql(f"INSERT INTO {table} VALUES {values}")
    session.sql(f"DELETE FROM {table} WHERE ID = 2")
    if "delta.columnMapping.mode" in properties:
        column = "TITLE"
        session.sql(f"ALTER TABLE {table} RENAME COLUMN NAME TO {column}")
    if name == "type widening":
        session.sql(f"ALTER TABLE {table} ALTER COLUMN ID TYPE BIGINT")
    session.sql(f"INSERT INTO {table} VALUES (5, 'five', NULL)")
    session.sql(f"UPDATE {table} SET {column} = 'drei' WHERE ID = 3")
    found = session.sql(f"SELECT ID, {column} FROM {table} ORDER BY ID").collect()
    words = {1: "one", 3: "drei", 4: "four", 5: "five"}
    rows = [{"ID": number, column: word} for number, word in words.items()]
    assert [one.asDict() for one in found] == rows, name
    return rows


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_reader_does_what_the_page_says(tmp_path: Path, spark_process: None) -> None:
    del spark_process
    session = start_session(LakeConfig(path=str(tmp_path / "lake"), driver_memory="1g"))
    folder = tmp_path / "tables"
    folder.mkdir()
    # Polars does not find files with deletion vectors in a folder whose name has a space.
    folders = {name: name.replace(" ", "_") for name in FEATURES}
    rows = {folders[name]: made(session, folder / folders[name], name) for name in FEATURES}
    (folder / "rows.json").write_text(json.dumps(rows))
    python = tmp_path / "readers" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "readers")], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    told = subprocess.run(
        [str(python), delta_readers.__file__, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(told.stdout)
    page = documented()
    assert page.keys() == FEATURES.keys()
    words = {"right": "yes", "refused": "refused"}
    for name, readers in page.items():
        assert readers.pop("Spark") == "yes"
        readers.pop("Trino")  # test_trino.py
        assert {reader: words[outcome] for reader, (outcome, _) in found[folders[name]].items()} == readers, (name, found)  # fmt: skip
    changes = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)  # fmt: skip
    gone = changes.load(str(folder / "change_data_feed")).where("_change_type = 'delete'")
    assert [row.ID for row in gone.collect()] == [2]
    assert found["changes of the feed"]["delta-rs, QueryBuilder"][0] == "right"
