"""Where does the demo keep its things, and how is its source configured?

Everything is below one folder (``.redolake/demo``). ``defs.yaml`` there has the form of any
source's configuration, so the command line and Dagster read the demo like a database of one's own.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from cdc_core.config import SourceConfig
from pipelines.demo.server import Served
from pipelines.demo.tables import TABLES

SOURCE = "flights"
PASSWORD_ENV = "REDOLAKE_DEMO_PASSWORD"  # noqa: S105 - the name of a variable
COMPONENT = "assets.components.OracleCdc"
FILE_NAME = "defs.yaml"
PLAN_NAME = "plan.json"
CHUNK_ROWS = 10_000
SCALES = ("day", "month", "year")


def default_folder() -> Path:
    """``.redolake/demo``: in the project's folder, or in the working directory where Redolake was
    installed as a package."""
    project = Path(__file__).resolve().parents[2]
    root = project if (project / "pyproject.toml").exists() else Path.cwd()
    return root / ".redolake" / "demo"


def prepare(
    folder: Path, scale: str, *, fresh: bool, spark: str | None = None, merge: str = "auto"
) -> str | None:
    """Make the folder ready for a scale. What another scale left there is removed: its flights
    would not fit.

    Args:
        folder: The demo's folder.
        scale: How many flights.
        fresh: Remove what is there.
        spark: The master's URL of a Spark cluster that sees the folder under the same path; None
            for Spark in this process.
        merge: ``lake.merge``: ``spark`` lets Spark merge everything.

    Returns:
        A sentence for people about what was removed or is gone on with, None for a first run.
    """
    noted = folder / PLAN_NAME
    before = json.loads(noted.read_text())["scale"] if noted.exists() else None
    said = None
    if before and (fresh or before != scale):
        shutil.rmtree(folder)
        said = f"Removed the earlier demo of a {before}; this one starts from the beginning."
    elif before:
        said = "Continuing where the demo stopped (--fresh starts over)."
    folder.mkdir(parents=True, exist_ok=True)
    noted.write_text(json.dumps({"scale": scale, "spark": spark, "merge": merge}))
    return said


def attributes(folder: Path, served: Served) -> dict[str, Any]:
    """The source's configuration, as under ``attributes`` in ``defs.yaml``."""
    return {
        "name": SOURCE,
        "oracle": {"dsn": served.dsn, "user": served.capture_user, "password_env": PASSWORD_ENV},
        "tables": [
            {"name": f"{served.user.upper()}.{table.name}"} for table in TABLES if table.captured
        ],
        "capture": {"close_at": "online"},
        "snapshot": {"chunk_rows": CHUNK_ROWS},
        "landing": {"type": "local", "path": str(folder / "landing")},
        "lake": {"path": str(folder / "lake"), **_lake(folder)},
        "state": {"url": f"sqlite:///{folder / 'state.db'}"},
    }


def _lake(folder: Path) -> dict[str, str]:
    """The cluster that the demo was started with, if it was, and who merges."""
    noted = folder / PLAN_NAME
    found = json.loads(noted.read_text()) if noted.exists() else {}
    master = {"spark_master": found["spark"]} if found.get("spark") else {}
    return {**master, "merge": found.get("merge", "auto")}


def write_definitions(folder: Path, served: Served) -> SourceConfig:
    """Write ``defs.yaml`` and return the same as a checked configuration."""
    written = attributes(folder, served)
    text = yaml.safe_dump({"type": COMPONENT, "attributes": written}, sort_keys=False)
    head = "# The demo's source. Written by `redolake demo`; the password is in oracle.json beside this file.\n"
    fresh = folder / "defs.new"
    fresh.write_text(head + text)
    fresh.replace(folder / FILE_NAME)
    oracle = {key: value for key, value in written["oracle"].items() if key != "password_env"}
    return SourceConfig.model_validate(
        {**written, "oracle": {**oracle, "password": served.capture_password}}
    )
