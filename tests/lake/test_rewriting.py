"""Windows that are merged without Spark: the files of the mirror that they change are written anew, in one commit, and only where that is right."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake

from cdc_core.config import MaintenanceConfig
from cdc_core.delta import appending
from cdc_core.delta.added_files import AddedFile
from cdc_core.delta.appending import CommitInfo
from cdc_core.delta.deletion_vectors import Vector
from cdc_core.delta.history import features_of
from cdc_core.delta.patched_files import write_patched
from cdc_core.errors import (
    CdcError,
    CommitConflictError,
    DuplicateKeyError,
    FencedError,
    LakeError,
    NotYetError,
    RowCountError,
    StoreUnavailableError,
)
from cdc_core.lake.lake import Lake
from cdc_core.lake.mirror import copy_on_write as rewriting
from cdc_core.lake.mirror.copy_on_write import rewrite_files
from cdc_core.lake.mirror.files import MirrorFiles, MirrorVersion
from cdc_core.lake.mirror.merge import KeyRule, MergeRule, ReplaceRule, run_merge
from cdc_core.lake.mirror.merge_audit import SentReplacement, SentRows
from cdc_core.lake.mirror.ways import choose
from cdc_core.lake.rows.staging import staged_rows
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.stage.layout import mirror_schema
from cdc_core.stage.merge import WindowMerge
from cdc_core.stage.reduction import source_schema
from cdc_core.stage.snapshot import replacing
from tests.jvm import small_session
from tests.lake.test_foreign_writer import append_foreign
from tests.lake.who_merges import SparkAskedError, plain_lake
from tests.stage.landed import Row, Source, Window, order, orders_schema
from tests.stage.merges import COVERED, KINDS, Case, random_case

Mirror = Callable[..., list[Row]]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which only what needs no Spark works."""
    return plain_lake(tmp_path)


def _filled(source: Source, lake: Lake, *borders: int) -> None:
    """Orders 1 to 9 by a first snapshot, in files that end with these; the next window begins behind it."""
    tx = source.begin()
    source.ids = {i: tx.insert(order(i, f"name {i}", note=f"note {i}")) for i in range(1, 10)}
    tx.commit()
    scn = source.tick()
    low = 0
    for number, high in enumerate((*borders, 9)):
        chunk = source.chunk(scn=scn, number=number, keep=partial(_lies_in, low, high))
        chunk.apply(lake)
        low = high
    source.low, source.pending, source.ended = source.scn, [], []


def _lies_in(low: int, high: int, row: Row) -> bool:
    return bool(low < row["ID"] <= high)


def _window(source: Source, *changes: Callable[[Any], Any]) -> Window:
    tx = source.begin()
    for change in changes:
        change(tx)
    tx.commit()
    return source.cut()


def _path(folder: Path) -> str:
    return str(folder / "lake" / "shop" / "mirror" / orders_schema().table.path)


def _actions(folder: Path, kind: str) -> list[Any]:
    """Those of the mirror's newest commit."""
    newest = max((Path(_path(folder)) / "_delta_log").glob("*.json"))
    return [one[kind] for one in map(json.loads, newest.read_text().splitlines()) if kind in one]


def test_windows_leave_the_mirror_as_the_table_was(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror
) -> None:
    """Updates with and without the LOB, deletes, inserts, keys that come back, and versions that stay what they were."""
    _filled(source, lake)
    ids, read_scn = source.ids, source.low
    one = _window(
        source,
        lambda tx: tx.update(ids[1], {"NAME": "without its LOB"}),
        lambda tx: tx.update(ids[2], {"NOTE": "with it", "AMOUNT": None}),
        lambda tx: tx.delete(ids[3]),
        lambda tx: tx.delete(ids[4]),
        lambda tx: tx.insert(order(4, "again", note=None)),
        lambda tx: tx.insert(order(20, "new")),
    )
    done = one.apply(lake, read_scn=read_scn)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 3, 1)
    known = lake.table(source.schema.table).applied().windows[one.scn_high]
    assert known == replace(done, seconds=0.0, in_quarantine=None), "by the mirror's log alone"
    assert mirror(source.schema) == source.state(one.scn_high)
    first = DeltaTable(_path(tmp_path)).version()
    assert one.apply(lake).skipped
    two = _window(source, lambda tx: tx.update(ids[9], {"NAME": "later"}))
    assert two.apply(lake, position=one.scn_high).rows_updated == 1
    assert mirror(source.schema) == source.state(two.scn_high)
    assert mirror(source.schema, first) == source.state(one.scn_high)
    assert lake.table(source.schema.table).mirror_version_at(one.scn_high) == first
    assert lake.table(source.schema.table).position().mirror_scn == two.scn_high
    [said] = _actions(tmp_path, "commitInfo")
    assert json.loads(said["userMetadata"])["kind"] == "window"


def test_only_the_files_that_change_are_written_anew(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror
) -> None:
    """And no other is read, where the log says that the window's keys are not there."""
    _filled(source, lake, 3, 6)
    files = {
        one["min.ID"]: one
        for one in pa.table(DeltaTable(_path(tmp_path)).get_add_actions(flatten=True)).to_pylist()
    }
    (Path(_path(tmp_path)) / files[1]["path"]).rename(tmp_path / "aside")
    ids = source.ids
    window = _window(
        source,
        lambda tx: tx.update(ids[5], {"NAME": "changed"}),
        lambda tx: tx.delete(ids[6]),
        lambda tx: tx.insert(order(12)),
    )
    window.apply(lake)
    (tmp_path / "aside").rename(Path(_path(tmp_path)) / files[1]["path"])
    [gone] = _actions(tmp_path, "remove")
    assert (gone["path"], gone["size"]) == (files[4]["path"], files[4]["size_bytes"])
    assert gone["dataChange"]
    assert gone["partitionValues"] == {}
    [new] = _actions(tmp_path, "add")
    statistics = json.loads(new["stats"])
    assert (
        statistics["numRecords"],
        statistics["minValues"]["ID"],
        statistics["maxValues"]["ID"],
    ) == (3, 4, 12)
    assert mirror(source.schema) == source.state(window.scn_high)


def test_files_stay_small_and_in_the_order_of_keys(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that touches all of them leaves files that a later one need not touch, whichever came first."""
    _filled(source, lake, 3, 6)
    monkeypatch.setattr(rewriting, "PORTION_BYTES", 1)
    changes = [partial(_rename, row_id) for row_id in source.ids.values()]
    window = _window(source, *changes, lambda tx: tx.insert(order(20)))
    window.apply(lake)
    again = _window(source, *changes, lambda tx: tx.delete(source.ids[4]))
    again.apply(lake)
    assert mirror(source.schema) == source.state(again.scn_high)
    assert _bounds(tmp_path) == [(1, 3), (5, 6), (7, 9), (20, 20)]
    _window(source, partial(_rename, source.ids[8])).apply(
        lake
    )  # the newest file is not the last one
    # Two by two, then all: small ones are put together.
    others = [change for at, change in zip(source.ids, changes, strict=True) if at != 4]
    others.append(partial(_rename, max(source.rows)))
    monkeypatch.setattr(rewriting, "PORTION_BYTES", 300)
    _window(source, *others).apply(lake)
    assert _bounds(tmp_path) == [(1, 6), (7, 20)]
    monkeypatch.setattr(rewriting, "PORTION_BYTES", 10**6)
    last = _window(source, *others)
    last.apply(lake)
    assert mirror(source.schema) == source.state(last.scn_high)
    assert _bounds(tmp_path) == [(1, 20)]


def _bounds(folder: Path) -> list[tuple[int, int]]:
    files = pa.table(DeltaTable(_path(folder)).get_add_actions(flatten=True)).to_pylist()
    return sorted((one["min.ID"], one["max.ID"]) for one in files)


def test_columns_that_do_not_change_keep_their_pages(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update that sets a name copies amounts and notes as they are encoded; a delete encodes its row group."""
    monkeypatch.setattr(rewriting, "SMALL_BYTES", -1)
    monkeypatch.setattr(rewriting, "ROW_GROUP_ROWS", 1)
    _filled(source, lake)
    old = _pages(tmp_path)
    window = _window(source, lambda tx: tx.update(source.ids[5], {"NAME": "changed"}))
    window.apply(lake)
    new = _pages(tmp_path)
    assert {one for one in old if new[one] != old[one]} == {"NAME", "_cdc_commit_scn", "_cdc_ordinal"}  # fmt: skip
    assert mirror(source.schema) == source.state(window.scn_high)
    window = _window(source, lambda tx: tx.delete(source.ids[4]), lambda tx: tx.insert(order(4)))
    window.apply(lake)
    window = _window(source, lambda tx: tx.delete(source.ids[6]))
    window.apply(lake)
    assert all(new[name] != pages for name, pages in _pages(tmp_path).items())
    assert mirror(source.schema) == source.state(window.scn_high)


def _pages(folder: Path) -> dict[str, bytes]:
    """The pages of each column of the mirror's one file."""
    [name] = pa.table(DeltaTable(_path(folder)).get_add_actions())["path"].to_pylist()
    path = Path(_path(folder)) / name
    data, group = path.read_bytes(), pq.read_metadata(path).row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    starts = [one.dictionary_page_offset or one.data_page_offset for one in columns]
    return {
        one.path_in_schema: data[start : start + one.total_compressed_size]
        for one, start in zip(columns, starts, strict=True)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_copied_and_encoded_columns_make_one_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The same windows, one after another, of keys of every kind: in one mirror the pages of columns that stay are copied, in the other all rows are encoded."""
    monkeypatch.setattr(appending, "ROW_GROUP_ROWS", 7)
    monkeypatch.setattr(rewriting, "ROW_GROUP_ROWS", 1)
    case = random_case(Random(kind), kind)
    sent = pa.Table.from_pylist(case.source, source_schema(case.schema))
    columns = mirror_schema(case.schema)
    rows = pa.Table.from_pylist(case.mirror, columns)
    works = []
    for name in ("copied", "encoded"):
        work = TableWork(str(tmp_path / name), "shop", case.schema.table, 0, no_fence, lambda: None)
        appending.create_table(work.mirror, columns, {}, doing="creating", facts={})
        file = appending.write_file(work.mirror, columns, rows.to_batches(7), columns.names[:3])
        assert file is not None
        added = appending.FileChanges(added=[file])
        appending.commit_files(
            work.mirror, added, work.info("loading", "{}", ("l", 1)), fence=no_fence
        )
        works.append(work)
    made: list[Any] = []

    def counted(*given: Any, **more: Any) -> Any:
        made.append(write_patched(*given, **more))
        return made[-1]

    monkeypatch.setattr(rewriting, "write_patched", counted)
    size = sent.num_rows // 6 + 1
    for at in range(0, sent.num_rows, size):
        counts = []
        for work, small in zip(works, (-1, 10**9), strict=True):
            monkeypatch.setattr(rewriting, "SMALL_BYTES", small)
            counts.append(_rewrite(work, case, sent.slice(at, size), at))
        assert counts[0] == counts[1]
        assert _held(works[0]) == _held(works[1])
    assert len(made) > 3
    assert None not in made


def test_no_file_stays_of_a_window_that_fails(
    tmp_path: Path, source: Source, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(source, lake, 3, 6)
    monkeypatch.setattr(rewriting, "PORTION_BYTES", 1)
    window = _window(source, *(partial(_rename, row_id) for row_id in source.ids.values()))
    before = set(Path(_path(tmp_path)).glob("*.parquet"))
    written: list[Any] = []

    def full(*given: Any) -> Any:
        written.append(appending.write_file(*given))
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        return written[-1]

    with monkeypatch.context() as patched:
        patched.setattr(rewriting, "write_file", full)
        with pytest.raises(StoreUnavailableError):
            window.apply(lake)
    left = set(Path(_path(tmp_path)).glob("*.parquet")) - before
    assert [one.name for one in left] == [written[1].name], (
        "but for what the failed one wrote itself"
    )
    assert window.apply(lake).rows_updated == 9


def _rename(row_id: str, tx: Any) -> None:
    tx.update(row_id, {"NAME": f"again {row_id}"})


def test_a_window_that_leaves_nothing_still_takes_the_mirror_forward(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror
) -> None:
    """Its row came and went, and its key lies between those of the mirror."""
    _filled(source, lake)
    tx = source.begin()
    tx.delete(source.ids[5])
    tx.commit()
    source.cut().apply(lake)
    before = mirror(source.schema, hidden=True)
    window = _window(source, lambda tx: tx.delete(tx.insert(order(5))))
    done = window.apply(lake)
    assert (done.changes, done.rows_inserted, done.rows_updated, done.rows_deleted) == (2, 0, 0, 0)
    assert mirror(source.schema, hidden=True) == before
    assert lake.table(source.schema.table).position().mirror_scn == window.scn_high
    assert not _actions(tmp_path, "add")
    assert not _actions(tmp_path, "remove")


@pytest.mark.parametrize("asked", [1, 2], ids=["before-the-change-log", "before-the-mirror"])
def test_a_process_that_lost_its_lease_commits_nothing(
    source: Source, lake: Lake, mirror: Mirror, asked: int
) -> None:
    _filled(source, lake)
    before, left = mirror(source.schema, hidden=True), [asked]
    window = _window(source, lambda tx: tx.update(source.ids[1], {"NAME": "x"}))

    def fence() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise FencedError("lost", hint="-")

    with pytest.raises(FencedError):
        window.apply(lake, fence=fence)
    assert mirror(source.schema, hidden=True) == before
    assert window.apply(lake).rows_updated == 1
    assert mirror(source.schema) == source.state(window.scn_high)


def test_a_crash_behind_the_commit_is_a_window_that_is_there(
    source: Source, lake: Lake, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(source, lake)
    window = _window(source, lambda tx: tx.update(source.ids[1], {"NAME": "x"}))
    commit = appending.commit_files

    def crash(*given: Any, **more: Any) -> None:
        commit(*given, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rewriting, "commit_files", crash)
        with pytest.raises(KeyboardInterrupt):
            window.apply(lake)
    after = mirror(source.schema, hidden=True)
    assert mirror(source.schema) == source.state(window.scn_high)
    assert window.apply(lake).skipped
    assert mirror(source.schema, hidden=True) == after


def test_only_a_window_that_the_mirror_has_is_replayed(
    tmp_path: Path, source: Source, lake: Lake
) -> None:
    """Of one that left no change, the metadata store alone knows that it was applied; of any other the mirror's log must say so too."""
    _filled(source, lake)
    first = _window(source, lambda tx: tx.update(source.ids[1], {"NAME": "w"}))
    first.apply(lake)
    shutil.copytree(_path(tmp_path), tmp_path / "before")
    window = _window(source, lambda tx: tx.update(source.ids[1], {"NAME": "x"}))
    window.apply(lake, position=first.scn_high)
    assert window.replay(lake, applied_scn=window.scn_high).skipped
    tx = source.begin()
    point = tx.savepoint()
    tx.update(source.ids[2], {"NAME": "taken back"})
    tx.rollback_to(point)
    tx.commit()
    nothing = source.cut()
    nothing.apply(lake, position=window.scn_high)
    with pytest.raises(NotYetError, match="only a window that was applied"):
        nothing.replay(lake)
    assert nothing.replay(lake, applied_scn=nothing.scn_high).skipped
    shutil.rmtree(_path(tmp_path))
    (tmp_path / "before").rename(_path(tmp_path))
    with pytest.raises(NotYetError, match="only a window that was applied"):
        window.replay(lake, applied_scn=nothing.scn_high)


def test_who_commits_in_between_wins_and_loses_no_row(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our look at the mirror and the commit, and when the fence is asked."""
    _filled(source, lake)
    write = appending.write_file

    def in_between(*given: Any) -> Any:
        append_foreign(_path(tmp_path), 500)
        return write(*given)

    window = _window(source, lambda tx: tx.update(source.ids[1], {"NAME": "x"}))
    with monkeypatch.context() as patched:
        patched.setattr(rewriting, "write_file", in_between)
        with pytest.raises(CommitConflictError, match="another writer committed"):
            window.apply(lake)
    asked: list[None] = []

    def late() -> None:
        asked.append(None)
        append_foreign(_path(tmp_path), 501)

    with pytest.raises(CommitConflictError, match="another writer committed"):
        window.apply(lake, fence=late)
    assert asked == [None]
    window.apply(lake)
    found = mirror(source.schema)
    assert [one["ID"] for one in found if one["ID"] >= 500] == [500, 501]
    assert [one for one in found if one["ID"] < 500] == source.state(window.scn_high)


def test_a_window_that_another_process_merges_meanwhile_is_no_wrong_mirror(
    source: Source, lake: Lake, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nor is one behind which it has gone on: this process was stopped past its lease, and no table stops for that."""
    _filled(source, lake)
    ids, read_scn = source.ids, source.low
    window = _window(source, lambda tx: tx.update(ids[1], {"NAME": "x"}))
    later = _window(source, lambda tx: tx.delete(ids[1]))
    read = MirrorFiles.read
    others = [(window, None), (later, window.scn_high)]

    def behind_another(work: TableWork) -> MirrorFiles:
        with monkeypatch.context() as own:
            own.setattr(MirrorFiles, "read", read)
            while others:
                one, position = others.pop(0)
                one.apply(lake, read_scn=read_scn, position=position)
        return read(work)

    with monkeypatch.context() as patched:
        patched.setattr(MirrorFiles, "read", behind_another)
        with pytest.raises(CommitConflictError, match="another process has merged the window"):
            window.apply(lake, read_scn=read_scn)
    assert mirror(source.schema) == source.state(later.scn_high)
    assert window.apply(lake, read_scn=read_scn).skipped


def test_a_mirror_that_is_wrong_stops_the_window_and_stays(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror
) -> None:
    """An insert meets a row, a change without its LOB none, a stranger's row has no position; no value is shown."""
    _filled(source, lake)
    before, read_scn = mirror(source.schema, hidden=True), source.low
    ghost = source.new_row_id()
    source.rows[ghost] = order(70, "secret")
    cases: list[tuple[type[CdcError], Callable[[Any], Any]]] = [
        (DuplicateKeyError, lambda tx: tx.insert(order(9, "secret"))),
        (LakeError, lambda tx: tx.update(ghost, {"NAME": "secret"})),
    ]
    for error, change in cases:
        low, state = source.low, dict(source.states)
        window = _window(source, change)
        with pytest.raises(error) as caught:
            window.apply(lake, read_scn=read_scn)
        assert type(caught.value) is error
        assert "secret" not in str(caught.value)
        assert mirror(source.schema, hidden=True) == before
        source.low, source.states = low, state
    append_foreign(_path(tmp_path), 60)
    before = mirror(source.schema, hidden=True)
    source.rows[ghost] = order(60, "secret", note=None)
    window = _window(source, lambda tx: tx.update(ghost, {"NAME": "y", "NOTE": "all of it"}))
    with pytest.raises(RowCountError, match="MERGE reported other row counts"):
        window.apply(lake, read_scn=read_scn)
    assert mirror(source.schema, hidden=True) == before


@dataclass(frozen=True)
class _Field:
    name: str
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


PLAIN = tuple(_Field(name) for name in mirror_schema(orders_schema()).names)


def _vector_of(name: str, storage: str = "i") -> dict[str, AddedFile]:
    """What the log says of a file that has a deletion vector."""
    return {name: AddedFile("{}", Vector(storage, "-", None, 34, 1))}


@pytest.mark.parametrize(
    ("traits", "reason"),
    [
        pytest.param({}, None, id="plain"),
        pytest.param({"features": frozenset({"timestampNtz", "appendOnly", "invariants"})}, None, id="as-created"),
        pytest.param({"features": frozenset({"deletionVectors"}), "added": _vector_of("a.parquet")}, "have deletion vectors", id="deletion-vectors"),
        pytest.param({"features": frozenset({"deletionVectors"}), "added": _vector_of("b.parquet")}, None, id="deletion-vectors-of-others"),
        pytest.param({"features": frozenset({"deletionVectors"}), "added": _vector_of("a.parquet", "p")}, "in another place", id="deletion-vectors-elsewhere"),
        pytest.param({"features": frozenset({"clustering", "domainMetadata"})}, "clustering", id="clustering"),
        pytest.param({"features": frozenset({"rowTracking"})}, "rowTracking", id="row-tracking"),
        pytest.param({"features": frozenset({"changeDataFeed"})}, "changeDataFeed", id="change-data"),
        pytest.param({"features": frozenset({"of-tomorrow"})}, "of-tomorrow", id="a-feature-of-tomorrow"),
        pytest.param({"features": features_of(6)}, "checkConstraints", id="rules-where-delta-rs-commits"),
        pytest.param({"features": features_of(8)}, "writer version 8", id="a-protocol-of-tomorrow"),
        pytest.param({"properties": {"delta.columnMapping.mode": "none"}}, None, id="column-mapping-was-there"),
        pytest.param({"properties": {"delta.columnMapping.mode": "id"}}, "by number", id="column-mapping-by-number"),
        pytest.param({"features": frozenset({"columnMapping"})}, "columnMapping", id="column-mapping-where-delta-rs-commits"),
        pytest.param({"properties": {"delta.constraints.positive": "ID > 0"}}, "constraints", id="constraint"),
        pytest.param({"properties": {"delta.appendOnly": "TRUE"}}, "appendOnly", id="append-only"),
        pytest.param({"properties": {"delta.enableChangeDataFeed": "true"}}, "enableChangeDataFeed", id="change-data-by-property"),
        pytest.param({"properties": {"delta.enableChangeDataFeed": "false", "redolake.key": "[]"}}, None, id="switched-off"),
        pytest.param({"fields": (*PLAIN, _Field("MINE"))}, "columns of somebody else", id="another-column"),
        pytest.param({"fields": PLAIN[1:]}, "columns of somebody else", id="a-column-less"),
        pytest.param({"fields": (replace(PLAIN[0], nullable=False), *PLAIN[1:])}, "with rules", id="not-null"),
        pytest.param({"fields": (replace(PLAIN[0], metadata={"delta.generationExpression": "1"}), *PLAIN[1:])}, "with rules", id="generated"),
        pytest.param({"fields": (replace(PLAIN[0], metadata={"comment": "NUMBER"}), *PLAIN[1:])}, None, id="comment"),
        pytest.param({"partitions": ("ID",)}, "partitioned", id="partitions"),
        pytest.param({"path": "a%20b.parquet"}, "files of somebody else", id="a-name-in-another-form"),
        pytest.param({"path": "s3://elsewhere/a.parquet"}, "files of somebody else", id="a-file-elsewhere"),
        pytest.param({"path": "a+b.parquet"}, "files of somebody else", id="a-name-that-no-commit-of-ours-removes"),
        pytest.param({"size": 101}, "101 bytes", id="too-large"),
        pytest.param({"rows": 20_000_001}, "many rows", id="many-rows"),
        pytest.param({"rows": None}, "nobody counted", id="rows-that-nobody-counted"),
        pytest.param({"size": 101, "keys": {"ID": (50, 60)}}, None, id="too-large-and-not-near"),
    ],
)  # fmt: skip
def test_what_delta_rs_would_not_write_right_is_merged_by_spark(
    traits: dict[str, Any], reason: str | None
) -> None:
    file = {
        "path": traits.get("path", "a.parquet"),
        "size_bytes": traits.get("size", 100),
        "num_records": traits.get("rows", 9),
        "min.ID": 1,
        "max.ID": 9,
    }
    work = TableWork(
        "/lake", "shop", orders_schema().table, 0, no_fence, lambda: None, rewrite_bytes_max=100
    )
    log = MirrorVersion(
        version=1,
        features=traits.get("features", frozenset()),
        properties=traits.get("properties", {}),
        fields=traits.get("fields", PLAIN),
        partition_columns=traits.get("partitions", ()),
        files=pa.Table.from_pylist([file]),
        added=traits.get("added", {}),
    )
    mirror = MirrorFiles(work, log)
    chosen = choose(mirror, orders_schema(), traits.get("keys", {"ID": (5, 20)}), 1)
    assert chosen.way == ("copy-on-write" if reason is None else "merge")
    assert (reason or "mirror of") in chosen.reason


def test_spark_merges_where_it_is_to_and_what_is_too_large(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(source, plain_lake(tmp_path))
    window = _window(source, lambda tx: tx.update(source.ids[1], {"NAME": "x"}))
    with pytest.raises(SparkAskedError):
        window.apply(plain_lake(tmp_path, rewrite_mirrors_up_to_mb=0))
    with monkeypatch.context() as patched:
        patched.setattr("cdc_core.stage.changes.PART_CHANGES_MAX", 0.5)
        with pytest.raises(SparkAskedError):
            window.apply(plain_lake(tmp_path))
    assert window.apply(plain_lake(tmp_path)).rows_updated == 1


def test_a_file_that_is_gone_stops_the_window_with_a_way_out(
    tmp_path: Path, source: Source, lake: Lake
) -> None:
    _filled(source, lake)
    [file] = Path(_path(tmp_path)).glob("*.parquet")
    content = file.read_bytes()
    window = _window(source, lambda tx: tx.update(source.ids[1], {"NAME": "x"}))
    file.unlink()
    with pytest.raises(LakeError, match=r"is missing .*table rebuild"):
        window.apply(lake)
    file.write_bytes(content[:-40])
    with pytest.raises(LakeError, match="is damaged"):
        window.apply(lake)
    file.write_bytes(content)
    assert window.apply(lake).rows_updated == 1


def _rewrite(work: TableWork, case: Case, sent: pa.Table, number: int) -> dict[str, int]:
    """Rewrite a mirror's files for a part of a case's rows; MERGE's counts."""
    merge = WindowMerge(sent, case.schema, case.absent, covered_scn=COVERED, read_scn=None)
    return rewrite_files(
        MirrorFiles.read(work), case.schema, merge, {},
        check=lambda _: None, commit=work.info("merging", "{}", (f"a{number}", 1)),
    )[0]  # fmt: skip


def _held(work: TableWork) -> list[str]:
    rows = QueryBuilder().register("t", DeltaTable(work.mirror)).execute("select * from t")
    return sorted(repr(list(row.items())) for row in pa.table(rows.read_all()).to_pylist())


@pytest.mark.spark
@pytest.mark.parametrize(
    "kind",
    [
        one if one in ("double", "composite") else pytest.param(one, marks=pytest.mark.slow)
        for one in KINDS
    ],
)
def test_both_forms_make_the_same_mirror(tmp_path: Path, spark_process: None, kind: str) -> None:
    """Spark's MERGE and the rewriting, of the same mirror and window, leave the same rows and count alike."""
    case = random_case(Random(kind), kind)
    sent = pa.Table.from_pylist(case.source, source_schema(case.schema))
    rule = KeyRule(schema=case.schema, absent=case.absent, covered_scn=COVERED)
    _check_both_forms(tmp_path, case, case.mirror, rule, sent, SentRows(case.schema, None, {}))


@pytest.mark.spark
@pytest.mark.parametrize("way", ["the-truth", "in-the-place-of-keys", "keys-go-up-to-an-SCN"])
def test_both_forms_of_other_rules_make_the_same_mirror(
    tmp_path: Path, spark_process: None, way: str
) -> None:
    """Rows of a mirror are double where keys are replaced."""
    case = random_case(Random(4), "composite")
    sent = pa.Table.from_pylist(case.source, source_schema(case.schema))
    if way == "the-truth":
        rule = KeyRule(schema=case.schema, absent=case.absent, covered_scn=COVERED, is_truth=True)
        _check_both_forms(tmp_path, case, case.mirror, rule, sent, SentRows(case.schema, None, {}))
        return
    columns, key = mirror_schema(case.schema), list(case.schema.key)
    is_row = pc.equal(sent["_cdc_kind"], "row" if way == "in-the-place-of-keys" else "none")
    rows = sent.filter(is_row).select(columns.names).cast(columns)
    replaced = replacing(rows, sent.filter(pc.invert(is_row)).select(key), case.schema)
    counted = SentReplacement(case.schema, {}, landed=len(rows))
    scn = None if len(rows) else 20
    replace_rule = ReplaceRule(case.schema, scn)
    _check_both_forms(tmp_path, case, case.mirror * 2, replace_rule, replaced, counted)


def _check_both_forms(
    tmp_path: Path,
    case: Case,
    held: list[Row],
    rule: MergeRule,
    sent: pa.Table,
    counted: SentRows | SentReplacement,
) -> None:
    session = small_session(tmp_path / "lake")
    ours, sparks = (
        TableWork(str(tmp_path / name), "shop", case.schema.table, 0, no_fence, lambda: session)
        for name in ("ours", "sparks")
    )
    for work in (ours, sparks):
        rows = pa.Table.from_pylist(held, mirror_schema(case.schema))
        write_deltalake(work.mirror, rows)
    commit = CommitInfo(doing="merging", metadata="{}", txn=("a", 1))
    list(counted.counting(iter([sent])))
    with staged_rows(sparks, session, iter([sent]), counted) as staged:
        [wanted] = run_merge(sparks, staged, rule, commit)
    counts = rewrite_files(
        MirrorFiles.read(ours), case.schema, rule.in_arrow(sent), {}, check=lambda _: None, commit=commit
    )[0]  # fmt: skip
    assert counts == {name: wanted[name] for name in counts}
    assert _held(ours) == _held(sparks)


@pytest.mark.spark
@pytest.mark.parametrize(
    "is_whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["marked", "whole"]
)
def test_spark_takes_a_mirror_on_that_was_written_anew(
    is_whole: bool,
    tmp_path: Path,
    open_lake: Callable[..., Lake],
    source: Source,
    mirror: Mirror,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read, merged, put together; with deletion vectors both mark rows in turns. In the whole story, vacuumed too, and files are written anew
    again without vectors."""
    monkeypatch.setattr(rewriting, "SMALL_BYTES", -1)  # columns are copied where they stay
    monkeypatch.setattr(rewriting, "ROW_GROUP_ROWS", 1)
    lake, spark = plain_lake(tmp_path), open_lake()
    _filled(source, lake, 3, 6)
    ids, table = source.ids, source.schema.table

    def check(lake: Lake, *changes: Callable[[Any], Any]) -> str:
        window = _window(source, *changes)
        window.apply(lake)
        assert mirror(source.schema) == source.state(window.scn_high)
        [said] = _actions(tmp_path, "commitInfo")
        return str(said["operation"])

    assert (
        check(lake, lambda tx: tx.update(ids[5], {"NAME": "one"}), lambda tx: tx.delete(ids[1]))
        == "WRITE"
    )
    session = small_session(tmp_path / "lake")
    read = session.sql(
        f"SELECT * FROM delta.`{_path(tmp_path)}` WHERE ID BETWEEN 4 AND 6"
    ).collect()
    assert sorted((row["ID"], row["NAME"]) for row in read) == [
        (4, "name 4"),
        (5, "one"),
        (6, "name 6"),
    ]
    assert check(spark, lambda tx: tx.update(ids[5], {"NAME": "two"})) == "MERGE"
    spark.table(table).maintain(
        MaintenanceConfig(deletion_vectors="always", vacuum_hours=1 if is_whole else None), ("ID",)
    )
    by_spark = spark
    read = f"SELECT ID, NAME FROM delta.`{_path(tmp_path)}`"

    def check_marked(lake: Lake, row_id: str, name: str) -> str:
        """Both mark the row in one file, and read what the other one has marked."""
        operation = check(lake, lambda tx: tx.update(row_id, {"NAME": name}))
        assert any("deletionVector" in one for one in _actions(tmp_path, "add"))
        rows = {row["ID"]: row["NAME"] for row in session.sql(read).collect()}
        assert rows == {row["ID"]: row["NAME"] for row in source.rows.values()}
        return operation

    monkeypatch.setattr(rewriting, "DELETED_SHARE_MAX", 0.9)
    assert check_marked(by_spark, ids[8], "three") == "MERGE"
    assert check_marked(lake, ids[7], "three too") == "WRITE"
    if not is_whole:
        return
    assert check_marked(lake, ids[4], "once more") == "WRITE"
    assert check_marked(by_spark, ids[2], "three again") == "MERGE"
    assert check(lake, lambda tx: tx.delete(ids[9])) == "WRITE"
    session.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    session.sql(f"VACUUM delta.`{_path(tmp_path)}` RETAIN 0 HOURS")
    assert check_marked(lake, ids[6], "files of vectors are there still") == "WRITE"
    spark.table(table).maintain(
        MaintenanceConfig(deletion_vectors="always", vacuum_hours=None), ("ID",)
    )
    assert check(lake, lambda tx: tx.insert(order(12))) == "WRITE"
    spark.table(table).maintain(
        MaintenanceConfig(deletion_vectors="never", vacuum_hours=None), ("ID",)
    )
    assert check(lake, lambda tx: tx.update(ids[8], {"NAME": "five"})) == "WRITE"


@pytest.mark.parametrize(("rows", "length"), [(400_000, 80), (4_000, 20_000)], ids=["many", "long"])
def test_rows_pass_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, length: int
) -> None:
    """What is held of a file that is one row group are a few of those that are written; few rows where they are long."""
    monkeypatch.setattr(rewriting, "_BATCH_BYTES", 4 * 1024 * 1024)
    monkeypatch.setattr(rewriting, "PORTION_BYTES", 16 * 1024 * 1024)
    schema = orders_schema()
    work = TableWork(str(tmp_path), "shop", schema.table, 0, no_fence, lambda: None)
    columns = mirror_schema(schema)
    numbers = pa.array(range(rows))
    texts = pc.binary_join_element_wise(numbers.cast(pa.string()), "x" * length, "-")
    ones = pa.repeat(1, rows)
    arrays = [numbers, texts, pa.nulls(rows), texts, ones, ones]
    held = pa.table([one.cast(to.type) for one, to in zip(arrays, columns, strict=True)], columns)
    write_deltalake(work.mirror, held, writer_properties=WriterProperties(max_row_group_size=rows))
    marks = {"_cdc_kind": "row", "_cdc_missing": [], "_cdc_lost": False, "_cdc_new": False}
    place = {"_cdc_commit_scn": 2, "_cdc_ordinal": 1}
    changed = [{"ID": at, "NAME": "new", **place, **marks} for at in range(0, rows, 1000)]
    sent = pa.Table.from_pylist(changed, source_schema(schema))
    merge = WindowMerge(sent, schema, (), covered_scn=0, read_scn=None)
    plain = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(plain)
    pa.set_memory_pool(counted)
    try:
        counts = rewrite_files(
            MirrorFiles.read(work), schema, merge, {},
            check=lambda _: None, commit=work.info("merging", "{}", ("a", 1)),
        )[0]  # fmt: skip
    finally:
        pa.set_memory_pool(plain)
    assert counts["num_updated_rows"] == len(changed)
    assert 0 < (counted.max_memory() or 0) < held.nbytes * 2 / 3, counted
