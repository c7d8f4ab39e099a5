"""Rows that are appended without Spark to a Delta table with column mapping, which somebody else created."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.delta.appending import CommitInfo, FileChanges, NewFile, commit_files, write_file
from cdc_core.errors import LakeError
from cdc_core.lake.rows.logged_changes import files_of, logged_changes
from cdc_core.lake.side_tables.source_tables import count_events
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.schema.table import TableSchema
from cdc_core.stage.changes import of_window
from cdc_core.stage.layout import change_schema
from tests.stage.landed import number, varchar

SCHEMA = TableSchema(
    TableId("SHOP", "T"), Scn(1), (number("the id", 10, 0), varchar("a.b"), varchar("a")), ("the id",)
)  # fmt: skip
COLUMNS = change_schema(SCHEMA)


def _type(kind: pa.DataType) -> object:
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field(one) for one in kind]}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": "string", "containsNull": True}
    names = {pa.int64(): "long", pa.int32(): "integer", pa.timestamp("us"): "timestamp_ntz"}
    return names.get(kind, "string")


_NUMBERS = count(1)


def _field(one: pa.Field) -> dict[str, object]:
    number = next(_NUMBERS)
    metadata = {
        "delta.columnMapping.id": number,
        "delta.columnMapping.physicalName": f"col-{number}",
    }
    kind = _type(one.type)
    return {"name": one.name, "type": kind, "nullable": True, "metadata": metadata}


@pytest.fixture
def changelog(tmp_path: Path) -> str:
    """A change log with column mapping and no rows, as Spark creates it."""
    fields = [_field(one) for one in COLUMNS]
    features = ["columnMapping", "timestampNtz"]
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}},
        {"metaData": {"id": "0" * 8, "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
                      "schemaString": json.dumps({"type": "struct", "fields": fields}),
                      "configuration": {"delta.columnMapping.mode": "name"}, "createdTime": 0}},
    ]  # fmt: skip
    path = Path(DEFAULT_PATHS.path("changelog", str(tmp_path), "shop", SCHEMA.table))
    log = path / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("".join(json.dumps(one) + "\n" for one in actions))
    return str(path)


def _rows() -> pa.RecordBatch:
    image = {"the id": 1, "a.b": "dotted", "a": "plain"}
    row = {
        "_cdc_op": "c", "_cdc_commit_scn": 150, "_cdc_ordinal": 7, "_cdc_xid": "0A", "_cdc_window": 200,
        "_cdc_columns": 3, "_cdc_absent": [], "_cdc_before_absent": [], "after": image,
    }  # fmt: skip
    return pa.RecordBatch.from_pylist([row], COLUMNS)


def _commit(changelog: str, file: NewFile | None) -> None:
    assert file is not None
    info = CommitInfo(doing="appending", metadata="{}", txn=("app", 200))
    commit_files(changelog, FileChanges(added=[file]), info, fence=lambda: None)


def test_appended_changes_are_read_back_by_delta_rs_and_by_us(
    changelog: str, tmp_path: Path
) -> None:
    _commit(changelog, write_file(changelog, COLUMNS, [_rows()], ["_cdc_window"]))
    found = QueryBuilder().register("t", DeltaTable(changelog)).execute("SELECT after FROM t")
    assert pa.table(found.read_all()).to_pylist() == [
        {"after": {"the id": 1, "a.b": "dotted", "a": "plain"}}
    ]
    work = TableWork(str(tmp_path), "shop", SCHEMA.table, 0, no_fence, lambda: None)
    assert files_of(work, 201) == [], "statistics stand under the names of files"
    with logged_changes(changelog, SCHEMA, of_window(200), files_of(work, 200)) as changes:
        light = changes.light()
        assert light.after[0].to_pylist() == [1]
        values = [changes.take("after", one, light.table["row"].to_numpy()) for one in ("a.b", "a")]
    assert [one.to_pylist() for one in values] == [["dotted"], ["plain"]]
    assert count_events(work, 199, 200).to_pylist() == [
        {"xid": "0A", "commit_scn": 150, "events": 1}
    ]


def test_a_file_with_other_names_is_not_committed(changelog: str, tmp_path: Path) -> None:
    """Its rows would read as NULL."""
    plain = tmp_path / "plain"
    plain.mkdir()
    file = write_file(str(plain), COLUMNS, [_rows()], ["_cdc_window"])
    with pytest.raises(LakeError, match="other names"):
        _commit(changelog, file)
    assert DeltaTable(changelog).version() == 0
