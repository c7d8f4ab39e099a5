"""Columns and properties that a Delta table gets by a commit of ours, without Spark: what its readers make of it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.delta.altering import (
    Change,
    TableMetadata,
    commit_change,
    create_mapped_table,
    takes_changes,
)
from cdc_core.delta.appending import (
    CommitInfo,
    FileChanges,
    commit_files,
    create_table,
    write_file,
)
from cdc_core.delta.history import read_log
from cdc_core.errors import CommitConflictError, LakeError
from tests.delta.plain_reader import rows_of
from tests.jvm import small_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, Any]
FIRST = pa.schema([("ID", pa.int64()), ("after", pa.struct([("A", pa.string())]))])
TEXT = pa.field("NAME", pa.string(), metadata={"comment": "VARCHAR2(9)"})
TIME = pa.field("SEEN", pa.timestamp("us"), metadata={"comment": "DATE"})
NTZ = ["timestampNtz"]
OF_VERSION_5 = [
    "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "generatedColumns",
    "invariants",
]  # fmt: skip


def _info(kind: str = "schema") -> CommitInfo:
    return CommitInfo(doing="altering", metadata=json.dumps({"kind": kind, "scn_high": 1}))


def _alter(path: str, change: Change, fence: Callable[[], None] = lambda: None) -> None:
    commit_change(path, "CHANGE COLUMN", change, _info(), fence=fence)


def _append(path: str, schema: pa.Schema, row: Row) -> None:
    file = write_file(path, schema, [pa.RecordBatch.from_pylist([row], schema)], ["ID"])
    assert file is not None
    commit_files(path, FileChanges(added=[file]), _info("test"), fence=lambda: None)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """One row, in a table as Redolake creates it."""
    path = str(tmp_path / "t")
    create_table(path, FIRST, {"redolake.source": "shop"}, doing="creating", facts={})
    _append(path, FIRST, {"ID": 1, "after": {"A": "x"}})
    return path


def _by_delta_rs(path: str) -> list[Row]:
    query = QueryBuilder().register("t", DeltaTable(path)).execute('SELECT * FROM t ORDER BY "ID"')
    return pa.table(query.read_all()).to_pylist()


def _by_spark(session: Any, path: str) -> list[Row]:
    rows = session.sql(f"SELECT * FROM delta.`{path}` ORDER BY ID").collect()
    return [row.asDict(recursive=True) for row in rows]


def _protocol(reader: int, writer: int, readers: Any = None, writers: Any = None) -> dict[str, Any]:
    named = {"readerFeatures": readers, "writerFeatures": writers}
    said = {name: one for name, one in named.items() if one is not None}
    return {"minReaderVersion": reader, "minWriterVersion": writer, **said}


@pytest.mark.parametrize(
    ("protocol", "reached"),
    [
        pytest.param(_protocol(1, 1), _protocol(3, 7, NTZ, NTZ), id="first-versions"),
        pytest.param(
            _protocol(1, 2),
            _protocol(3, 7, NTZ, ["appendOnly", "invariants", *NTZ]),
            id="what-version-2-implied-is-named",
        ),
        pytest.param(
            _protocol(1, 7, None, ["domainMetadata"]),
            _protocol(3, 7, NTZ, ["domainMetadata", *NTZ]),
            id="features-of-writers-alone",
        ),
        pytest.param(
            _protocol(2, 5),
            _protocol(3, 7, ["columnMapping", *NTZ], [*OF_VERSION_5, *NTZ]),
            id="what-version-5-implied-is-named",
        ),
        pytest.param(
            _protocol(2, 7, None, ["columnMapping"]),
            _protocol(3, 7, ["columnMapping", *NTZ], ["columnMapping", *NTZ]),
            id="the-mapping-of-reader-version-2-is-named",
        ),
        pytest.param(_protocol(3, 7, NTZ, NTZ), _protocol(3, 7, NTZ, NTZ), id="is-there-already"),
    ],
)
def test_a_column_of_a_new_kind_brings_its_feature(
    protocol: dict[str, Any], reached: dict[str, Any]
) -> None:
    schema = json.dumps({"type": "struct", "fields": []})
    before = TableMetadata(protocol, {"schemaString": schema, "configuration": {}})
    assert before.with_columns([TIME]).protocol == reached
    assert before.with_columns([TEXT]).protocol == protocol, "text asks for nothing"


def test_a_table_is_created_with_column_mapping(tmp_path: Path) -> None:
    """Once; each column and each field has a name and a number of its own in files."""
    path, kinds = str(tmp_path / "t"), pa.struct([("x.y", pa.string())])
    schema = pa.schema([("ID", pa.int64()), ("a b", pa.list_(pa.string())), ("after", kinds), TIME])
    for _ in range(2):
        create_mapped_table(path, schema, {"redolake.source": "shop"}, doing="creating", facts={})
    row = {"ID": 1, "a b": ["z"], "after": {"x.y": "v"}, "SEEN": datetime(2026, 1, 2)}
    _append(path, schema, row)
    assert _by_delta_rs(path) == [row]
    log = read_log(path)
    assert log is not None
    assert (log.version, log.properties["redolake.source"]) == (1, "shop")
    assert {"columnMapping", "timestampNtz"} <= log.writer_features
    paths = {("ID",), ("a b",), ("after",), ("after", "x.y"), ("SEEN",)}
    assert log.file_names.names.keys() == paths
    assert len(set(log.file_names.names.values())) == len(paths)
    assert sorted(log.file_names.numbers.values()) == [*range(1, len(paths) + 1)]
    assert log.properties["delta.columnMapping.maxColumnId"] == str(len(paths))


@pytest.mark.spark
def test_three_readers_agree_after_each_change(
    table: str, spark_process: None, tmp_path: Path
) -> None:
    """Columns, fields and comments in a plain table, of which DuckDB is the third reader; then names by column mapping, and Spark goes on
    with what it finds."""
    session = small_session(tmp_path)
    _alter(table, lambda one: one.with_columns([TEXT, TIME]))
    _alter(table, lambda one: one.with_columns([pa.field("B", pa.int64())], ["after"]))
    _alter(table, lambda one: one.commented(["after", "B"], "Oracle column C"))
    kinds = pa.struct([("A", pa.string()), ("B", pa.int64())])
    schema = pa.schema([("ID", pa.int64()), ("after", kinds), TEXT, TIME])
    _append(table, schema, {"ID": 2, "after": {"A": "y", "B": 7}, "NAME": "n", "SEEN": datetime(2026, 1, 2)})  # fmt: skip
    rows = [
        {"ID": 1, "after": {"A": "x", "B": None}, "NAME": None, "SEEN": None},
        {"ID": 2, "after": {"A": "y", "B": 7}, "NAME": "n", "SEEN": datetime(2026, 1, 2)},
    ]
    assert _by_delta_rs(table) == _by_spark(session, table) == rows
    by_duckdb = [(*found[:1], *found[2:]) for found in rows_of(table)]
    assert by_duckdb == [(row["ID"], row["NAME"], row["SEEN"]) for row in rows]
    log = read_log(table)
    assert log is not None
    assert log.comments == {"after": {"B": "Oracle column C"}}

    _alter(table, TableMetadata.mapped)
    assert _by_delta_rs(table) == _by_spark(session, table) == rows
    _alter(table, lambda one: one.renamed("NAME", "TITLE"))
    _alter(table, lambda one: one.with_columns([TEXT]))
    title = pa.field("TITLE", pa.string())
    schema = pa.schema([("ID", pa.int64()), ("after", kinds), title, TIME, TEXT])
    _append(table, schema, {"ID": 3, "after": None, "TITLE": "t", "SEEN": None, "NAME": "new"})
    rows = [{"TITLE": one.pop("NAME"), **one, "NAME": None} for one in rows] + [
        {"ID": 3, "after": None, "TITLE": "t", "SEEN": None, "NAME": "new"}
    ]
    assert _by_delta_rs(table) == _by_spark(session, table) == rows
    DeltaTable(table).create_checkpoint()
    _alter(table, lambda one: one.with_properties({"redolake.source": "other"}))
    session.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (LAST STRING)")
    session.sql(f"UPDATE delta.`{table}` SET LAST = TITLE WHERE ID = 3")
    rows = [{**row, "LAST": "t" if row["ID"] == 3 else None} for row in rows]
    assert _by_spark(session, table) == _by_delta_rs(table) == rows
    log = read_log(table)
    assert log is not None
    assert log.properties["redolake.source"] == "other"


def test_another_writer_wins(table: str) -> None:
    """Who commits between the reading and the commit is not overwritten."""

    def fence() -> None:
        DeltaTable(table).alter.set_table_properties({"delta.logRetentionDuration": "interval 1 day"})  # fmt: skip

    with pytest.raises(CommitConflictError):
        _alter(table, lambda one: one.with_columns([TEXT]), fence)
    log = read_log(table)
    assert log is not None
    assert "NAME" not in log.columns
    assert log.properties["delta.logRetentionDuration"] == "interval 1 day"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda one: one.with_columns([pa.field("id", pa.string())]), id="another-case"
        ),
        pytest.param(lambda one: one.with_columns([TEXT], ["before"]), id="no-such-struct"),
        pytest.param(lambda one: one.renamed("NAME", "TITLE"), id="no-such-column"),
        pytest.param(lambda one: _renamed_field(one), id="a-field-that-somebody-renamed"),
    ],
)
def test_what_the_table_does_not_have_is_refused(table: str, change: Change) -> None:
    version = DeltaTable(table).version()
    with pytest.raises(LakeError, match="altering"):
        _alter(table, change)
    assert DeltaTable(table).version() == version


def _renamed_field(table: TableMetadata) -> TableMetadata:
    """The field A is called B now; its values stand in files as A."""
    mapped = table.mapped()
    said = mapped.metadata["schemaString"].replace('"name": "A"', '"name": "B"')
    renamed = TableMetadata(mapped.protocol, {**mapped.metadata, "schemaString": said})
    return renamed.with_columns([pa.field("A", pa.string())], ["after"])


def test_a_table_that_asks_for_more_is_left_to_others(table: str) -> None:
    log = read_log(table)
    assert log is not None
    assert takes_changes(table, log)
    DeltaTable(table).alter.add_constraint({"kept": "TRUE"})
    log = read_log(table)
    assert log is not None
    assert not takes_changes(table, log)
