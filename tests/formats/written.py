"""What a pipeline writes that another version of it must read: the shapes of it, without values.

``python -m tests.formats.written`` writes the file that ``test_formats.py`` compares with, and the folder that ``test_kept.py`` opens.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from cdc_core.state.sql_tables import METADATA
from cdc_core.steps import Pipeline
from tests.formats.kept import keep
from tests.oracle.embedded import Oracle, running_oracle

KEPT = Path(__file__).with_name("formats.json")
Shape = Any
"""Dictionaries by name, lists of one shape, and the names of types."""

_OWN_WORD = re.compile(r"[a-z][a-z_]*(sha256)?")
"""A key that a format has; others are names and numbers of users."""


def formats() -> dict[str, Any]:
    """The shapes of everything that outlives a process, by the place where it is kept."""
    with tempfile.TemporaryDirectory() as folder, running_oracle() as oracle:
        told = _live(oracle, Path(folder))
        return {
            "metadata store": _store(),
            "landing": _landing(Path(folder) / "landing"),
            "lake": _lake(Path(folder) / "lake"),
            "notifications": told,
        }


def _live(oracle: Oracle, folder: Path) -> Shape:
    """A snapshot, windows, a DDL, and a TRUNCATE, which stops its table; the notifications of it."""
    oracle.run(
        "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), AT DATE)",
        "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)",
        "CREATE TABLE ELSEWHERE (ID NUMBER(9))",
        "INSERT INTO T VALUES (1, 'a', DATE '2026-01-02')",
    )
    lake = {
        "path": str(folder / "lake"),
        "transactions": True,
        "rewrite_mirrors_up_to_mb": 64,
    }
    config = oracle.config(folder, "T", "U", lake=lake, notifications={"channels": ["store"]})
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        oracle.run("INSERT INTO ELSEWHERE VALUES (1)")  # an idle window, which the next one retires
        list(pipeline.run_once())
        oracle.run("UPDATE T SET V = 'b'", "INSERT INTO U VALUES (1)")
        list(pipeline.run_once())
        oracle.run(
            "ALTER TABLE T ADD (W NUMBER(3) DEFAULT 5)", "INSERT INTO T VALUES (2, 'c', NULL, 6)"
        )
        list(pipeline.run_once())
        oracle.run("TRUNCATE TABLE U")
        list(pipeline.run_once())
        told = pipeline.records.notifications(limit=100)
        return _merged(_shape(one.as_json()) for one in told)


def _store() -> dict[str, Any]:
    """Tables and columns of the metadata store."""
    return {
        table.name: {
            column.name: f"{column.type!r}{' key' if column.primary_key else ''}"
            f"{'' if column.nullable else ' not null'}"
            for column in table.columns
        }
        for table in METADATA.sorted_tables
    }


def _landing(folder: Path) -> dict[str, Any]:
    """Manifests, other JSON, and the columns of files, by the names of the files without numbers."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json":
            name = _plain_name(path.relative_to(folder))
            found[name] = _merged([found.get(name), _shape(json.loads(path.read_text()))])
        elif path.suffix == ".parquet":
            found[_plain_name(path.relative_to(folder))] = _columns(pq.read_schema(path))
    return found


def _lake(folder: Path) -> dict[str, Any]:
    """Columns, properties, identifiers of transactions and user metadata of each kind of table."""
    found: dict[str, Any] = {}
    for log in sorted(folder.rglob("_delta_log")):
        table = DeltaTable(str(log.parent))
        kind = log.parent.relative_to(folder).parts[1]
        said = table.metadata().configuration
        metadata = [
            json.loads(action["commitInfo"].get("userMetadata") or "{}")
            for commit in sorted(log.glob("*.json"))
            for action in map(json.loads, commit.read_text().splitlines())
            if "commitInfo" in action
        ]
        own = {
            "columns": {
                one.name: one.type.to_json()
                for one in table.schema().fields
                if one.name.startswith("_cdc")
            },
            "properties": {
                name: _shape(_as_json(value)) if name.startswith("redolake.") else value
                for name, value in sorted(said.items())
            },
            "commits": {
                one_kind: _merged(_shape(one) for one in metadata if one.get("kind") == one_kind)
                for one_kind in sorted({one["kind"] for one in metadata if "kind" in one})
            },
        }
        found[kind] = _merged([found.get(kind), own])
    for path in sorted(folder.rglob("*.json")):
        if "_delta_log" not in path.parts:
            found[path.name] = _shape(json.loads(path.read_text()))
    return found


def _plain_name(path: Path) -> str:
    """A file of landing by its kind: ``windows/manifest.json``."""
    kind = path.parts[1:3] if path.parts[1] == "kept" else path.parts[1:2]
    name = re.sub(r"[0-9a-f-]{8,}|[0-9]+", "N", path.name)
    return "/".join((*kind, "N.json" if path.parts[1] == "kept" else name))


def _columns(schema: pa.Schema) -> Shape:
    """Those of a format, not of the table."""
    return {one.name: str(one.type) for one in schema if one.name.islower()}


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shape(value: Any) -> Shape:
    if isinstance(value, dict):
        found: dict[str, list[Shape]] = {}
        for name, one in value.items():
            key = name if _OWN_WORD.fullmatch(name) else "*"
            found.setdefault(key, []).append(_shape(one))
        return {name: _merged(found[name]) for name in sorted(found)}
    if isinstance(value, list):
        return [_merged(map(_shape, value))] if value else []
    return {type(None): "null", bool: "boolean", str: "text"}.get(type(value), "number")


def _merged(shapes: Iterable[Shape]) -> Shape:
    """What several values of one place can be."""
    there = [one for one in shapes if one is not None]
    if all(isinstance(one, dict) for one in there):
        names = sorted({name for one in there for name in one})
        return {name: _merged(one[name] for one in there if name in one) for name in names}
    if all(isinstance(one, list) for one in there):
        parts = [part for one in there for part in one]
        return [_merged(parts)] if parts else []
    texts = {one if isinstance(one, str) else json.dumps(one, sort_keys=True) for one in there}
    return " or ".join(sorted({part for text in texts for part in text.split(" or ")}))


if __name__ == "__main__":
    KEPT.write_text(json.dumps(formats(), indent=1, sort_keys=True) + "\n")
    keep("0.1.0")
