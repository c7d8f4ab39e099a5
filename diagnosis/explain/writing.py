"""How is an explanation written to a file: one object for each statement of the export?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.errors import ConfigError
from diagnosis.explain.outcomes import ExplainedRow

_BATCH_ROWS = 5_000
_INTEGERS = {"first_row", "last_row", "scn", "part_of"}
_SCHEMA = pa.schema(
    [
        pa.field(one.name, pa.int64() if one.name in _INTEGERS else pa.string())
        for one in fields(ExplainedRow)
    ]
)
_JSON_SUFFIXES = {".jsonl", ".ndjson", ".json"}


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is read.

    Raises:
        ConfigError: Its name does not say what to write, it exists, or its folder does not.
    """
    if path.suffix.lower() not in {*_JSON_SUFFIXES, ".parquet"}:
        raise ConfigError(
            "the name of the file does not say what to write",
            hint="Let it end with .jsonl or .parquet.",
            file=path.name,
        )
    if path.exists():
        raise ConfigError(
            "the file exists already", hint="Remove it, or give another name.", file=path.name
        )
    if not path.parent.is_dir():
        raise ConfigError("there is no such folder", hint="Create it.", folder=path.parent)


def write_rows(path: Path, rows: Iterable[ExplainedRow]) -> int:
    """Write rows as JSON lines, or as Parquet with the images as JSON; returns their number. The
    file has its name once it is whole."""
    unfinished = path.with_name(f"{path.name}.part")
    try:
        is_parquet = path.suffix.lower() == ".parquet"
        count = _write_parquet(unfinished, rows) if is_parquet else _write_lines(unfinished, rows)
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _write_lines(path: Path, rows: Iterable[ExplainedRow]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
            count += 1
    return count


def _write_parquet(path: Path, rows: Iterable[ExplainedRow]) -> int:
    count = 0
    with pq.ParquetWriter(path, _SCHEMA) as writer:
        for part in _parts(rows):
            writer.write_table(pa.Table.from_pylist(part, _SCHEMA))
            count += len(part)
    return count


def _parts(rows: Iterable[ExplainedRow]) -> Iterator[list[dict[str, Any]]]:
    part = []
    for row in rows:
        values = asdict(row)
        for name in ("before", "after"):
            if values[name] is not None:
                values[name] = json.dumps(values[name], ensure_ascii=False)
        part.append(values)
        if len(part) == _BATCH_ROWS:
            yield part
            part = []
    if part:
        yield part
