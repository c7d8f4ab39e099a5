"""A reader of Delta tables that shares nothing with Redolake, delta-rs and Spark: the log by the protocol's words, files by DuckDB."""

from __future__ import annotations

import base64
import json
import string
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
from pyroaring import BitMap64

_FILE_NAME = "delta.columnMapping.physicalName"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = (string.digits + string.ascii_lowercase + string.ascii_uppercase).encode()
_FROM_Z85 = bytes.maketrans(_Z85 + b".-:+=^!/*?&<>()[]{}@%$#", _B85)


def rows_of(path: str) -> list[tuple[Any, ...]]:
    """All rows of the newest version, sorted: the schema's columns in their order, by the names that
    files have, NULL where one is older than a column."""
    columns, files = _newest(Path(path) / "_delta_log")
    found: list[tuple[Any, ...]] = []
    with duckdb.connect() as connection:
        for name, vector in files.items():
            file = f"{path}/{unquote(name)}"
            described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet('{file}')")
            there = {row[0] for row in described.fetchall()}
            listed = ", ".join(f'"{one}"' if one in there else "NULL" for one in columns)
            sql = f"SELECT file_row_number, {listed} FROM read_parquet('{file}', file_row_number=true)"
            gone = _places(path, vector) if vector else set()
            found += [row[1:] for row in connection.execute(sql).fetchall() if row[0] not in gone]
    return sorted(found)


def _newest(log: Path) -> tuple[list[str], dict[str, Any]]:
    """Columns, and the files with their deletion vectors: the newest checkpoint, and the commits behind it."""
    checkpoints = sorted(log.glob("*.checkpoint.parquet"))
    actions: list[dict[str, Any]] = []
    start = -1
    if checkpoints:
        start = int(checkpoints[-1].name[:20])
        with duckdb.connect() as connection:
            query = connection.sql(f"SELECT * FROM read_parquet('{checkpoints[-1]}')")
            names = query.columns
            actions = [dict(zip(names, row, strict=True)) for row in query.fetchall()]
    for commit in sorted(log.glob("*.json")):
        if commit.stem.isdecimal() and int(commit.stem) > start:
            actions += map(json.loads, commit.read_text().splitlines())
    columns: list[str] = []
    files: dict[tuple[Any, ...], dict[str, Any]] = {}
    for action in actions:
        if said := action.get("metaData"):
            fields = json.loads(said["schemaString"])["fields"]
            columns = [one["metadata"].get(_FILE_NAME, one["name"]) for one in fields]
        if gone := action.get("remove"):
            files.pop(_named(gone), None)
        if added := action.get("add"):
            files[_named(added)] = added
    return columns, {one["path"]: one.get("deletionVector") for one in files.values()}


def _named(action: dict[str, Any]) -> tuple[Any, ...]:
    """What tells one logical file from another: the path, and its deletion vector."""
    vector = action.get("deletionVector") or {}
    return action["path"], vector.get("pathOrInlineDv"), vector.get("offset")


def _places(path: str, vector: dict[str, Any]) -> set[int]:
    """The places of a file's deleted rows."""
    place = vector["pathOrInlineDv"]
    if vector["storageType"] == "i":
        content = _decoded(place)[: vector["sizeInBytes"]]
    else:
        prefix, name = place[:-20], uuid.UUID(bytes=_decoded(place[-20:]))
        file = Path(path) / prefix / f"deletion_vector_{name}.bin"
        start = vector["offset"] + 4
        content = file.read_bytes()[start : start + vector["sizeInBytes"]]
    return set(BitMap64.deserialize(content[4:]))


def _decoded(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(_FROM_Z85))
