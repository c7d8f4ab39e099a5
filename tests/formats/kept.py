"""A folder as one version leaves it: metadata store, landing with a window that waits, Delta tables; and what Oracle has.

``python -m tests.formats.written`` makes that of the present version again. One of a released version is never made again.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from cdc_core.steps import Pipeline
from tests.oracle.embedded import Oracle, running_oracle

FOLDER = Path(__file__).with_name("versions")
TABLES = ("T", "DOCS")
ROWS = "rows.json"
"""What each table has in Oracle as of the end of the window that waits, as texts."""
LAKE = {"transactions": True, "rewrite_mirrors_up_to_mb": 64}


def keep(version: str) -> None:
    """Write the archive of a version."""
    with tempfile.TemporaryDirectory() as name, running_oracle() as oracle:
        folder = Path(name)
        _live(oracle, folder)
        FOLDER.mkdir(exist_ok=True)
        with tarfile.open(FOLDER / f"{version}.tar.xz", "w:xz", preset=9) as archive:
            archive.add(folder, arcname=".")


def lake_of(folder: Path) -> dict[str, Any]:
    """The lake of a source in that folder."""
    return {**LAKE, "path": str(folder / "lake")}


def _live(oracle: Oracle, folder: Path) -> None:
    oracle.run(
        "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), AT DATE)",
        "CREATE TABLE DOCS (ID NUMBER(9) PRIMARY KEY, C CLOB, R NUMBER)",
        "INSERT INTO T SELECT LEVEL, 'row ' || LEVEL, DATE '2026-01-01' + LEVEL FROM DUAL CONNECT BY LEVEL <= 20",
        "INSERT INTO DOCS VALUES (1, RPAD('a', 3000, 'b'), 1.5)",
    )
    config = oracle.config(folder, *TABLES, lake=lake_of(folder))
    with Pipeline(config) as pipeline, oracle.owner() as writing:
        list(pipeline.run_once())
        oracle.run(
            "ALTER TABLE T ADD (W NUMBER(3) DEFAULT 5)", "INSERT INTO T VALUES (21, 'new', NULL, 6)"
        )
        list(pipeline.run_once())
        oracle.run("UPDATE T SET V = 'changed' WHERE ID < 5", "DELETE FROM T WHERE ID = 20")
        writing.cursor().execute("UPDATE T SET V = 'long transaction' WHERE ID = 10")
        list(pipeline.run_once())
        oracle.run(
            "UPDATE DOCS SET C = C || 'end', R = 2.25", "INSERT INTO DOCS VALUES (2, NULL, -1)"
        )
        writing.commit()
        list(pipeline.run_capture())
        [waiting] = pipeline.pending_windows()
        (folder / ROWS).write_text(json.dumps(_rows(oracle, waiting.scn_high)))


def _rows(oracle: Oracle, scn: int) -> dict[str, list[list[str]]]:
    with oracle.owner() as reading:
        cursor = reading.cursor()
        found = {}
        for table in TABLES:
            cursor.execute(f"SELECT * FROM {table} AS OF SCN {scn} ORDER BY ID")
            found[table] = [
                [str(one.read() if hasattr(one, "read") else one) for one in row] for row in cursor
            ]
    return found
