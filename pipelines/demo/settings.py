"""Where does the demo keep its things, and how is its source configured?

Everything is below one folder (``.redolake/demo``). ``defs.yaml`` there has the form of any
source's configuration, so the command line and Dagster read the demo like a database of one's own.
"""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from cdc_core.config import SourceConfig
from pipelines.demo.server import Served
from pipelines.demo.tables import TABLES, DemoTable

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


def option_for(folder: Path) -> str:
    """The option by which commands find a demo's configuration; empty for the default one."""
    is_default = folder.resolve() == default_folder().resolve()
    return "" if is_default else f" --config {shlex.quote(str(folder / FILE_NAME))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """What a demo was started with: how many flights, the reader of redo (``capture.type``), the
    master's URL of a Spark cluster that sees the folder under the same path (None for Spark in this
    process), and ``lake.merge``."""

    scale: str = "day"
    capture: str = "logminer"
    spark: str | None = None
    merge: str = "auto"


def prepare(folder: Path, how: DemoSettings, *, fresh: bool = False) -> str | None:
    """Make the folder ready. What another scale or another reader left there is removed: its
    flights would not fit, and a source keeps its reader. So is all if it is to be ``fresh``.

    Returns:
        A sentence for people about what was removed or is gone on with, None for a first run.
    """
    before = noted(folder)
    said = None
    if before and (fresh or (before.scale, before.capture) != (how.scale, how.capture)):
        shutil.rmtree(folder)
        said = f"Removed the earlier demo of a {before.scale}; this one starts from the beginning."
    elif before:
        said = "Continuing where the demo stopped (--fresh starts over)."
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PLAN_NAME).write_text(json.dumps(asdict(how)))
    return said


def noted(folder: Path) -> DemoSettings | None:
    """What the folder's demo was started with; None where there is none."""
    path = folder / PLAN_NAME
    return DemoSettings(**json.loads(path.read_text())) if path.exists() else None


def server_options(folder: Path) -> list[str]:
    """Options of ``redolake oracle serve``: the demo's reader finds what it reads."""
    how = noted(folder)
    if how is None or how.capture == "logminer":
        return []
    return [f"--{how.capture}={_redo(folder)}"]


def attributes(folder: Path, served: Served) -> dict[str, Any]:
    """The source's configuration, as under ``attributes`` in ``defs.yaml``."""
    how = noted(folder) or DemoSettings()
    master = {"spark_master": how.spark} if how.spark else {}
    return {
        "name": SOURCE,
        "oracle": {"dsn": served.dsn, "user": served.capture_user, "password_env": PASSWORD_ENV},
        "tables": [_table(served, table, how) for table in TABLES if table.captured],
        "capture": {"close_at": "online"}
        if how.capture == "logminer"
        else {"type": how.capture, "folder": str(_redo(folder))},
        "snapshot": {"chunk_rows": CHUNK_ROWS},
        "landing": {"type": "local", "path": str(folder / "landing")},
        "lake": {"path": str(folder / "lake"), **master, "merge": how.merge},
        "state": {"url": f"sqlite:///{folder / 'state.db'}"},
    }


def left_out(how: DemoSettings) -> list[str]:
    """``TABLE.COLUMN`` of what the reader cannot tell exactly: OpenLogReplicator writes six digits
    of a binary float."""
    return [
        f"{table.name}.{name}"
        for table in TABLES
        for name, definition in table.columns
        if how.capture == "openlogreplicator" and definition.startswith("BINARY_")
    ]


def _table(served: Served, table: DemoTable, how: DemoSettings) -> dict[str, Any]:
    parts = [one.partition(".") for one in left_out(how)]
    excluded = [column for name, _, column in parts if name == table.name]
    named = {"name": f"{served.user.upper()}.{table.name}"}
    return {**named, "columns_exclude": excluded} if excluded else named


def _redo(folder: Path) -> Path:
    """Where the embedded Oracle writes for readers other than LogMiner."""
    return folder / "redo"


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
