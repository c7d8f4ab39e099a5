"""Windows into mirrors with column mapping: columns are renamed, come and go, and each way of
writing without Spark leaves the mirror as the table was, for readers that share no code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from cdc_core.delta.altering import TableMetadata
from cdc_core.delta.commits import put_commit
from cdc_core.delta.history import read_log
from cdc_core.delta.log_files import Action
from cdc_core.lake.lake import Lake
from cdc_core.lake.mirror import copy_on_write
from cdc_core.lake.mirror import files as mirror_files
from cdc_core.lake.mirror.files import MirrorFiles, MirrorVersion
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.schema.table import Column
from tests.delta.plain_reader import rows_of
from tests.delta.test_histories import by_delta_rs, by_spark
from tests.delta.vectors import with_vectors
from tests.jvm import small_session
from tests.lake.test_rewriting import Mirror, _actions, _filled, _path
from tests.lake.who_merges import plain_lake
from tests.stage.landed import Row, Source, orders_schema, prepare_schema, varchar

ID, NAME, AMOUNT, NOTE = orders_schema().columns
TITLE, TEXT = replace(NAME, name="TITLE"), replace(NOTE, name="TEXT")
SECOND = varchar("TITLE", default="'new'")

Definition = tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]
"""What a DDL leaves: the columns, and which of them were renamed."""
RENAMED: Definition = ((ID, TITLE, AMOUNT, NOTE), (("NAME", "TITLE"),))
BACK: Definition = ((ID, NAME, AMOUNT, NOTE), (("TITLE", "NAME"),))
ADDED: Definition = ((ID, NAME, AMOUNT, NOTE, SECOND), ())
DROPPED: Definition = ((ID, NAME, NOTE, SECOND), ())
LAST: Definition = ((ID, NAME, TEXT, SECOND), (("NOTE", "TEXT"),))


class Story:
    """Windows into a mirror of orders 1 to 9, each behind DDL, into which ``lake`` writes."""

    def __init__(self, folder: Path, source: Source, lake: Lake, mirror: Mirror) -> None:
        self.folder, self.path, self.source, self.mirror = folder, _path(folder), source, mirror
        _filled(source, lake, 3, 6)

    def window(
        self, lake: Lake, definitions: Sequence[Definition], *changes: Callable[[Any], Any]
    ) -> str:
        """Apply a window; the way that the mirror took it."""
        source, earlier = self.source, []
        ddl = []
        for columns, renamed in definitions:
            earlier.append(source.schema)
            ddl.append(source.ddl(columns, renamed))
            prepare_schema(lake, ddl[-1])
        tx = source.begin()
        for change in changes:
            change(tx)
        tx.commit()
        window = source.cut(*ddl)
        done = window.apply(lake, earlier=earlier)
        assert self.mirror(source.schema) == source.state(window.scn_high)
        assert rows_of(self.path) == by_delta_rs(self.path)
        return str(done.write.way)

    def row(self, key: int) -> Row:
        """A new row of the present definition."""
        known = {"ID": key, "AMOUNT": Decimal("1.50")}
        return {name: known.get(name, f"{name} {key}") for name in self.source.schema.column_names}

    def check_files(self) -> None:
        """Each file of the newest commit has the names and numbers that the log gives its columns,
        and statistics of them; what is known of the mirror is what the log says."""
        log = read_log(self.path)
        assert log is not None
        names = log.file_names
        numbers = {names.of(name): names.numbers[name,] for name in log.columns}
        for added in _actions(self.folder, "add"):
            if "deletionVector" not in added:  # written before, perhaps before the mapping
                said = pq.read_schema(Path(self.path) / added["path"])
                assert {one.name: int(one.metadata[b"PARQUET:field_id"]) for one in said} == numbers
            assert json.loads(added["stats"])["nullCount"].keys() <= numbers.keys()
        work = TableWork(
            str(self.folder / "lake"), "shop", self.source.schema.table, 0, no_fence, lambda: None
        )
        known, anew = MirrorFiles.read(work).log, mirror_files._read(self.path)
        assert _said(known) == _said(anew)
        assert known.files["min.ID"].null_count == 0


def _said(log: MirrorVersion) -> tuple[object, ...]:
    return log.version, log.names, log.files.sort_by("path").to_pylist()


def _update(source: Source, key: int, **values: object) -> Callable[[Any], Any]:
    return lambda tx: tx.update(source.ids[key], values)


def _put_into_a_folder(path: str) -> None:
    """What OPTIMIZE of Spark does with the files of a table with column mapping."""
    live: dict[str, Action] = {}
    logs = sorted(Path(path, "_delta_log").glob("*.json"))
    for action in (json.loads(line) for one in logs for line in one.read_text().splitlines()):
        live.pop(action.get("remove", {}).get("path"), None)
        if added := action.get("add"):
            live[added["path"]] = {**added, "dataChange": False}
    Path(path, "aB").mkdir()
    actions: list[Action] = [{"commitInfo": {"timestamp": 0, "operation": "OPTIMIZE"}}]
    for name, added in live.items():
        shutil.copy(f"{path}/{name}", f"{path}/aB/{name}")
        actions += [{"remove": added}, {"add": {**added, "path": f"aB/{name}"}}]
    put_commit(pafs.LocalFileSystem(), path, len(logs), actions)


@pytest.mark.parametrize("kind", ["encoded", "patched", "marked"])
def test_windows_behind_renames_need_no_spark(
    tmp_path: Path, source: Source, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Names go from column to column, a column comes with a default, another one is dropped; a
    change of key carries what it does not show; and rows of new keys are appended. Spark has put
    files into folders of their own meanwhile."""
    if kind == "patched":
        monkeypatch.setattr(copy_on_write, "SMALL_BYTES", -1)
        monkeypatch.setattr(copy_on_write, "ROW_GROUP_ROWS", 1)
    lake = plain_lake(tmp_path)
    story = Story(tmp_path, source, lake, mirror)
    if kind == "marked":
        with_vectors(story.path)
    way = "deletion vectors" if kind == "marked" else "copy-on-write"
    found = [
        story.window(
            lake,
            [RENAMED],
            _update(source, 5, TITLE="its title"),
            lambda tx: tx.delete(source.ids[1]),
            lambda tx: tx.insert(story.row(20)),
        )
    ]
    story.check_files()
    _put_into_a_folder(story.path)
    found.append(
        story.window(
            lake,
            [BACK, ADDED],
            _update(source, 4, NAME="its name", TITLE="its second title"),
            _update(source, 6, ID=60, AMOUNT=None),
        )
    )
    story.check_files()
    change = _update(source, 7, TEXT="its text"), _update(source, 8, NAME=None)
    found.append(story.window(lake, [DROPPED, LAST], *change))
    story.check_files()
    assert found == [way] * 3
    last = story.window(lake, [], lambda tx: tx.insert(story.row(100)))
    assert last == ("deletion vectors" if kind == "marked" else "append")
    story.check_files()


def test_a_mirror_with_mapping_gets_vectors_and_a_default_in_the_same_window(
    tmp_path: Path, source: Source, mirror: Mirror
) -> None:
    """Vectors are switched on by a commit behind the mapping's, and rows that they delete stay
    deleted where files are rewritten."""
    lake = plain_lake(tmp_path)
    story = Story(tmp_path, source, lake, mirror)
    story.window(lake, [RENAMED], _update(source, 5, TITLE="its title"))
    tx = source.begin()
    tx.update(source.ids[2], {"TITLE": "marked"})
    tx.delete(source.ids[8])
    tx.commit()
    window = source.cut()
    assert window.apply(lake, vectors="always").write.way == "deletion vectors"
    assert any("deletionVector" in one for one in _actions(tmp_path, "add"))
    assert mirror(source.schema) == source.state(window.scn_high)
    assert story.window(lake, [BACK, ADDED], _update(source, 3, NAME="x")) == "deletion vectors"
    story.check_files()


def test_the_mapping_of_older_versions_of_the_protocol_is_known_too(
    tmp_path: Path, source: Source, mirror: Mirror
) -> None:
    """Another writer maps columns under reader version 2 and writer version 5; a feature that comes
    later names all that these stand for."""
    lake = plain_lake(tmp_path)
    story = Story(tmp_path, source, lake, mirror)
    log = read_log(story.path)
    assert log is not None
    actions: list[Action] = [
        {"commitInfo": {"timestamp": 0, "operation": "SET TBLPROPERTIES"}},
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": TableMetadata.of(log).mapped().metadata},
    ]
    put_commit(pafs.LocalFileSystem(), story.path, log.version + 1, actions)
    change = _update(source, 5, TITLE="its title")
    assert story.window(lake, [RENAMED], change) == "copy-on-write"
    assert _protocol(story.path) == (2, 5, None)
    story.check_files()
    tx = source.begin()
    tx.delete(source.ids[8])
    tx.commit()
    window = source.cut()
    assert window.apply(lake, vectors="always").write.way == "deletion vectors"
    assert mirror(source.schema) == source.state(window.scn_high)
    assert rows_of(story.path) == by_delta_rs(story.path)
    assert _protocol(story.path) == (3, 7, {"columnMapping", "deletionVectors"})


def _protocol(path: str) -> tuple[int, int, set[str] | None]:
    log = read_log(path)
    assert log is not None
    readers = log.protocol.get("readerFeatures")
    versions = log.protocol["minReaderVersion"], log.protocol["minWriterVersion"]
    return *versions, None if readers is None else set(readers)


@pytest.mark.spark
def test_spark_and_this_process_write_a_renamed_mirror_in_turns(
    tmp_path: Path, source: Source, mirror: Mirror, open_lake: Callable[..., Lake]
) -> None:
    """Three readers; Spark renames, merges, puts files together, and changes a row by hand."""
    lake, spark = plain_lake(tmp_path), open_lake()
    story = Story(tmp_path, source, lake, mirror)
    session = small_session(tmp_path / "lake")
    table = f"delta.`{story.path}`"

    def agree() -> None:
        assert by_spark(session, story.path) == rows_of(story.path)

    assert story.window(lake, [RENAMED], _update(source, 5, TITLE="ours")) == "copy-on-write"
    agree()
    session.sql(f"OPTIMIZE {table}")
    assert story.window(lake, [], _update(source, 4, TITLE="ours too")) == "copy-on-write"
    agree()
    assert story.window(spark, [BACK, ADDED], _update(source, 3, NAME="Spark's")) == "merge"
    agree()
    assert story.window(lake, [], _update(source, 2, TITLE="again")) == "copy-on-write"
    session.sql(f"UPDATE {table} SET NAME = 'by hand' WHERE ID = 9")
    for one in (source.rows, *source.states.values()):
        if source.ids[9] in one:
            one[source.ids[9]]["NAME"] = "by hand"
    with_vectors(story.path)
    assert story.window(lake, [DROPPED, LAST], _update(source, 7, TEXT="x")) == "deletion vectors"
    agree()
    session.sql(f"OPTIMIZE {table}")
    session.sql(f"DELETE FROM {table} WHERE ID = 9")
    gone = source.rows.pop(source.ids[9])
    for state in source.states.values():
        state.pop(source.ids[9], None)
    assert gone["NAME"] == "by hand"
    assert story.window(lake, [], _update(source, 6, NAME="last")) == "deletion vectors"
    agree()
