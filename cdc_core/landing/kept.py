"""What is kept in landing besides windows and chunks, so that a lost metadata store can be made
anew?

Where the source's windows begin, each table's fate and definitions, what the chunks of each
snapshot were to be, and up to where windows were retired. All but the plans are written again when
they change, under a higher number: the highest counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.errors import OvertakenError
from cdc_core.landing.damage import reading_file
from cdc_core.landing.layout import PLAN_SCHEMA, kept_folder
from cdc_core.landing.manifest import MANIFEST_NAME, LandedFile, damaged, opened, sealed
from cdc_core.landing.store import LandingStore
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.records import ChunkRecord, SourceRecord, TableRecord
from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema

_PLAN_FILE = "plan.parquet"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table's record, and its definitions with the DDL that made each."""

    record: TableRecord
    versions: tuple[tuple[TableSchema, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPlan:
    """A snapshot as it was planned. ``stream`` is the snapshot with which the table's stream began
    that it belongs to."""

    table: TableId
    snapshot_id: str
    stream: str | None
    chunks: tuple[ChunkRecord, ...]


@dataclass(frozen=True, slots=True)
class RetiredWindows:
    """Every window below ``ordinal`` was retired; the last of them ended at ``scn``.

    ``touched`` maps tables to the upper end of the last of these windows that brought them changes:
    every one of these tables had it when the window was retired.
    """

    ordinal: int
    scn: int
    touched: dict[str, int]


def keep_source(landing: LandingStore, record: SourceRecord) -> None:
    """Keep where a source begins, and in which database. Repeatable."""
    folder = kept_folder(record.name, "source")
    _keep_newest(landing, folder, record.revision, sealed("source", as_json(record)))


def kept_source(landing: LandingStore, source: str) -> SourceRecord | None:
    """Where the source begins; None where that was never kept."""
    folders = landing.list_folders(kept_folder(source, "source"))
    if not folders:
        return None
    return _read(landing, folders[-1], "source", partial(from_json, SourceRecord))


def keep_table(landing: LandingStore, kept: KeptTable) -> None:
    """Keep a table's present revision, and forget older ones. Repeatable."""
    record = replace(kept.record, awaits_rows=False)  # its chunks say it
    data = as_json(replace(kept, record=record))
    folder = kept_folder(record.source, "tables", record.table.path)
    _keep_newest(landing, folder, record.revision, sealed("table", data))


def kept_revisions(landing: LandingStore, source: str) -> dict[str, int]:
    """The newest revision that is kept of each table, by the table's path."""
    found: dict[str, int] = {}
    for folder in landing.list_folders(kept_folder(source, "tables")):
        table, _, number = folder.rpartition("/")
        path = table.rpartition("/")[2]
        found[path] = max(found.get(path, 0), int(number))
    return found


def kept_tables(landing: LandingStore, source: str) -> list[KeptTable]:
    """All tables that were kept, in the order of their names."""
    found = [
        _read(
            landing,
            kept_folder(source, "tables", path, f"{revision:012d}"),
            "table",
            partial(from_json, KeptTable),
        )
        for path, revision in kept_revisions(landing, source).items()
    ]
    return sorted(found, key=lambda one: one.record.table)


def keep_plan(landing: LandingStore, stream: str | None, chunks: list[ChunkRecord]) -> None:
    """Keep what the chunks of one snapshot are to be. Does nothing if that is kept already, by
    another process meanwhile too."""
    first = chunks[0]
    folder = _plan_folder(first.source, first.table, first.snapshot_id)
    if landing.exists(folder, MANIFEST_NAME):
        return
    try:
        _write_plan(landing, folder, stream, chunks)
    except OvertakenError:
        if not landing.exists(folder, MANIFEST_NAME):
            raise


def _write_plan(
    landing: LandingStore, folder: str, stream: str | None, chunks: list[ChunkRecord]
) -> None:
    first = chunks[0]
    rows = [
        {"number": one.number, "scn": one.scn, "range": json.dumps(one.range)} for one in chunks
    ]
    with landing.writer(folder, _PLAN_FILE, PLAN_SCHEMA) as writer:
        writer.write(pa.RecordBatch.from_pylist(rows, schema=PLAN_SCHEMA))
        file = writer.close()
    data = {
        "table": as_json(first.table),
        "snapshot_id": first.snapshot_id,
        "stream": stream,
        "condition": first.condition,
        "signal_id": first.signal_id,
        "file": as_json(file),
    }
    landing.write_manifest(folder, sealed("plan", data))


def kept_plan_names(landing: LandingStore, source: str) -> set[tuple[str, str]]:
    """Path of the table and id of every snapshot whose plan is kept."""
    folders = landing.list_folders(kept_folder(source, "plans"))
    return {(folder.split("/")[-2], folder.split("/")[-1]) for folder in folders}


def kept_plans(
    landing: LandingStore, source: str, names: Iterable[tuple[str, str]]
) -> list[KeptPlan]:
    """The plans of some snapshots (path of the table, snapshot id), in order."""
    folders = (kept_folder(source, "plans", *name) for name in sorted(names))
    return [_plan(landing, source, folder) for folder in folders]


def keep_applied(landing: LandingStore, source: str, table: TableId, snapshot_id: str) -> None:
    """Keep that every chunk of a snapshot is applied, and what no chunk has is deleted.
    Repeatable."""
    folder = kept_folder(source, "applied", table.path, snapshot_id)
    landing.write_manifest(folder, sealed("applied", {"snapshot_id": snapshot_id}))


def kept_applied(landing: LandingStore, source: str) -> set[tuple[str, str]]:
    """Path of the table and id of every snapshot that is applied."""
    folders = landing.list_folders(kept_folder(source, "applied"))
    return {(folder.split("/")[-2], folder.split("/")[-1]) for folder in folders}


def keep_retired(landing: LandingStore, source: str, retired: RetiredWindows) -> None:
    """Keep up to where windows were retired. Repeatable."""
    folder = kept_folder(source, "retired")
    _keep_newest(landing, folder, retired.ordinal, sealed("retired", as_json(retired)))


def kept_retired(landing: LandingStore, source: SourceRecord) -> RetiredWindows:
    """Up to where windows were retired; of a source without such windows, where they begin."""
    folders = landing.list_folders(kept_folder(source.name, "retired"))
    if not folders:
        return RetiredWindows(0, source.snapshot_scn, {})
    return _read(landing, folders[-1], "retired", partial(from_json, RetiredWindows))


def _keep_newest(landing: LandingStore, folder: str, number: int, content: bytes) -> None:
    own = f"{folder}/{number:012d}"
    if not landing.exists(own, MANIFEST_NAME):
        try:
            landing.write_manifest(own, content)
        except OvertakenError:  # another process kept it in the meantime
            return
    for other in landing.list_folders(folder):
        if other < own:
            landing.remove(other)


def _read(
    landing: LandingStore, folder: str, kind: str, parse: Callable[[dict[str, Any]], _T]
) -> _T:
    where = f"{folder}/{MANIFEST_NAME}"
    try:
        return parse(opened(kind, landing.read(folder, MANIFEST_NAME), where))
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(where, "a field is missing or has a wrong type") from error


def _plan(landing: LandingStore, source: str, folder: str) -> KeptPlan:
    data = _read(landing, folder, "plan", lambda data: data)
    table = TableId(**data["table"])
    [path] = landing.local_paths(folder, [LandedFile(**data["file"])])
    with reading_file(path):
        rows = pq.read_table(path).to_pylist()
    chunks = tuple(
        ChunkRecord(
            source=source,
            table=table,
            snapshot_id=data["snapshot_id"],
            number=row["number"],
            scn=Scn(row["scn"]),
            range=json.loads(row["range"]),
            condition=data["condition"],
            signal_id=data["signal_id"],
        )
        for row in rows
    )
    return KeptPlan(
        table=table, snapshot_id=data["snapshot_id"], stream=data["stream"], chunks=chunks
    )


def _plan_folder(source: str, table: TableId, snapshot_id: str) -> str:
    return kept_folder(source, "plans", table.path, snapshot_id)
