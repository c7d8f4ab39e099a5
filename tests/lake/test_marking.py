"""Windows into mirrors with deletion vectors switched on: rows are marked as deleted, without Spark, and every reader of vectors sees the table as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.delta import appending
from cdc_core.delta import deletion_vectors as vectors
from cdc_core.delta.appending import OldFile
from cdc_core.delta.commits import put_commit
from cdc_core.delta.deletion_vectors import (
    Deleted,
    Vector,
    places_of,
    read_vector,
    with_places,
    write_vectors,
)
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import DuplicateKeyError, FencedError, LakeError, StoreUnavailableError
from cdc_core.lake.lake import Lake
from cdc_core.lake.mirror import copy_on_write as rewriting
from cdc_core.lake.mirror import files as mirror_files
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.stage.layout import mirror_schema
from cdc_core.stage.merge import Effects
from cdc_core.stage.reduction import source_schema
from tests.delta.vectors import with_vectors
from tests.lake.test_rewriting import Mirror, _actions, _held, _path, _rename, _rewrite, _window
from tests.lake.who_merges import SparkAskedError, plain_lake
from tests.stage.landed import Row, Source, order, orders_schema
from tests.stage.merges import KINDS, random_case

LOCAL = pafs.LocalFileSystem()
ROWS = 60


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which only what needs no Spark works."""
    return plain_lake(tmp_path)


def _filled(source: Source, lake: Lake, path: str, *, chunks: int = 2) -> None:
    """Orders 0 to 59 by a first snapshot in as many files, with vectors on; the next window begins behind it."""
    tx = source.begin()
    source.ids = {i: tx.insert(order(i, f"name {i}", note=f"note {i}")) for i in range(ROWS)}
    tx.commit()
    scn = source.tick()
    for number in range(chunks):
        source.chunk(scn=scn, number=number, keep=partial(_is_of, number, chunks)).apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    with_vectors(path)


def _is_of(number: int, chunks: int, row: Row) -> bool:
    return bool(row["ID"] * chunks // ROWS == number)


def _vectors(folder: Path) -> dict[str, int]:
    """Deleted rows of each file of the newest version that has a vector, by the log alone."""
    found: dict[str, int] = {}
    for name in sorted((Path(_path(folder)) / "_delta_log").glob("*.json")):
        for line in map(json.loads, name.read_text().splitlines()):
            if "remove" in line:
                found.pop(line["remove"]["path"], None)
            if vector := line.get("add", {}).get("deletionVector"):
                found[line["add"]["path"]] = vector["cardinality"]
    return found


def test_windows_mark_rows_and_leave_the_mirror_as_the_table_was(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror
) -> None:
    """Updates with and without the LOB, deletes, inserts and keys that come back, one window after another; versions stay what they were."""
    _filled(source, lake, _path(tmp_path))
    ids, table, read_scn = source.ids, source.schema.table, source.low
    one = _window(
        source,
        lambda tx: tx.update(ids[1], {"NAME": "without its LOB"}),
        lambda tx: tx.update(ids[2], {"NOTE": "with it", "AMOUNT": None}),
        lambda tx: tx.delete(ids[40]),
        lambda tx: tx.delete(ids[4]),
        lambda tx: tx.insert(order(4, "again", note=None)),
        lambda tx: tx.insert(order(200, "new")),
    )
    files = sorted(file.name for file in Path(_path(tmp_path)).glob("*.parquet"))
    done = one.apply(lake, read_scn=read_scn)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 3, 1)
    assert sorted(one["path"] for one in _actions(tmp_path, "remove")) == files
    assert _vectors(tmp_path) == dict(zip(_by_size(tmp_path, files), (3, 1), strict=True))
    assert mirror(source.schema) == source.state(one.scn_high)
    assert count_rows(_path(tmp_path)) == len(source.state(one.scn_high))
    first = DeltaTable(_path(tmp_path)).version()
    assert one.apply(lake).skipped
    two = _window(
        source,
        lambda tx: tx.update(ids[5], {"NAME": "later"}),
        lambda tx: tx.update(ids[1], {"NAME": "once more"}),
        lambda tx: tx.update(ids[6], {"ID": 600, "NOTE": "all of it"}),
        lambda tx: tx.insert(order(40, "back")),
    )
    assert two.apply(lake, position=one.scn_high, read_scn=read_scn).rows_updated == 2
    assert mirror(source.schema) == source.state(two.scn_high)
    assert mirror(source.schema, first) == source.state(one.scn_high)
    assert lake.table(table).mirror_version_at(one.scn_high) == first
    assert count_rows(_path(tmp_path)) == len(source.state(two.scn_high))
    assert two.replay(lake, applied_scn=two.scn_high).skipped
    assert len(list(Path(_path(tmp_path)).glob("deletion_vector_*.bin"))) == 2


def _by_size(folder: Path, names: list[str]) -> list[str]:
    """The files in the order of their least keys."""
    found = pa.table(DeltaTable(_path(folder)).get_add_actions(flatten=True)).to_pylist()
    least = {one["path"]: one["min.ID"] for one in found}
    return sorted(names, key=lambda name: least[name])


@pytest.mark.parametrize(
    "kind",
    [
        one if one in ("double", "composite") else pytest.param(one, marks=pytest.mark.slow)
        for one in KINDS
    ],
)
def test_marked_and_rewritten_mirrors_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The same windows, one after another, of keys of every kind, with columns that changes lack and rows that are newer than the window."""
    monkeypatch.setattr(rewriting, "DELETED_SHARE_MAX", 0.5)
    case = random_case(Random(kind), kind)
    sent = pa.Table.from_pylist(case.source, source_schema(case.schema))
    rows = pa.Table.from_pylist(case.mirror, mirror_schema(case.schema))
    works = []
    for name in ("marked", "rewritten"):
        work = TableWork(str(tmp_path / name), "shop", case.schema.table, 0, no_fence, lambda: None)
        write_deltalake(work.mirror, rows)
        works.append(work)
    with_vectors(works[0].mirror)
    size = sent.num_rows // 3 + 1
    for at in range(0, sent.num_rows, size):
        counts = []
        for work in works:
            counts.append(_rewrite(work, case, sent.slice(at, size), at))
        assert counts[0] == counts[1]
        assert _held(works[0]) == _held(works[1])
    assert any(one.vector for one in MirrorFiles.read(works[0]).log.added.values())


def test_many_windows_leave_few_files_and_few_deleted_rows(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New rows are put together by the windows that come, one file that lost its share is written anew at a time, and what goes is as much as comes."""
    monkeypatch.setattr(rewriting, "SMALL_BYTES", 3_000)
    _filled(source, lake, _path(tmp_path), chunks=3)
    dice, most, anew = Random(1), 0, 0
    for _ in range(40):
        own = dice.sample(list(source.rows), 2)
        window = _window(source, *(partial(_rename, row_id) for row_id in own))
        window.apply(lake)
        files = pa.table(DeltaTable(_path(tmp_path)).get_add_actions(flatten=True))
        most = max(most, files.num_rows)
        added = {one["path"] for one in _actions(tmp_path, "add")}
        gone = {one["path"] for one in _actions(tmp_path, "remove")} - added
        anew = max(anew, len(gone))
        shares = _shares(tmp_path)
        assert sum(share > rewriting.DELETED_SHARE_MAX for share in shares) <= 2
    assert mirror(source.schema) == source.state(window.scn_high)
    assert most <= 3 + 7, "files pile up"
    DeltaTable(_path(tmp_path)).create_checkpoint()
    mirror_files._known._known.clear()
    known = MirrorFiles.read(_work(tmp_path))
    assert {
        name: one.vector.cardinality for name, one in known.log.added.items() if one.vector
    } == _vectors(tmp_path)
    again = _window(source, partial(_rename, next(iter(source.rows))))
    again.apply(lake)
    assert mirror(source.schema) == source.state(again.scn_high)


def _work(folder: Path) -> TableWork:
    table = orders_schema().table
    return TableWork(str(folder / "lake"), "shop", table, 0, no_fence, lambda: None)


def _shares(folder: Path) -> list[float]:
    """Which share of its rows each file of the newest version has lost."""
    mirror = MirrorFiles.read(_work(folder))
    gone = _vectors(folder)
    return [
        gone.get(one["path"], 0) / one["num_records"]
        for one in mirror.files.select(["path", "num_records"]).to_pylist()
    ]


def test_a_file_that_loses_its_rows_goes(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror
) -> None:
    """At once where all of them go, and anew where too many do."""
    _filled(source, lake, _path(tmp_path), chunks=3)
    ids = source.ids
    window = _window(
        source,
        *(partial(_delete, ids[at]) for at in (*range(25), 45)),
    )
    window.apply(lake)
    assert mirror(source.schema) == source.state(window.scn_high)
    gone = [one["path"] for one in _actions(tmp_path, "remove")]
    [new, marked] = sorted(_actions(tmp_path, "add"), key=lambda one: "deletionVector" in one)
    assert (len(gone), marked["path"] in gone) == (3, True)
    assert json.loads(new["stats"])["numRecords"] == 15
    assert marked["deletionVector"]["cardinality"] == 1
    said = json.loads(marked["stats"])
    assert (said["numRecords"], said["tightBounds"], said["minValues"]["ID"]) == (20, False, 40)


def test_a_window_that_ends_at_any_place_is_merged_once(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its rows are written, before its vectors are, before its commit, behind it, and without its lease."""
    _filled(source, lake, _path(tmp_path))
    window = _window(
        source,
        lambda tx: tx.update(source.ids[1], {"NAME": "x"}),
        lambda tx: tx.delete(source.ids[50]),
    )
    before = mirror(source.schema, hidden=True)

    def crash(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    for place in ("write_file", "write_vectors", "make_durable", "commit_files"):
        with monkeypatch.context() as patched:
            patched.setattr(rewriting, place, crash)
            with pytest.raises(KeyboardInterrupt):
                window.apply(lake)
        assert mirror(source.schema, hidden=True) == before

    def lost() -> None:
        raise FencedError("lost", hint="-")

    with pytest.raises(FencedError):
        window.apply(lake, fence=lost)
    assert mirror(source.schema, hidden=True) == before
    with monkeypatch.context() as patched:
        patched.setattr(appending, "put_commit", _then_crash(put_commit))
        with pytest.raises(KeyboardInterrupt):
            window.apply(lake)
    after = mirror(source.schema, hidden=True)
    assert mirror(source.schema) == source.state(window.scn_high)
    assert window.apply(lake).skipped
    assert mirror(source.schema, hidden=True) == after


def _then_crash(step: Callable[..., Any]) -> Callable[..., Any]:
    def stepped(*given: Any, **more: Any) -> None:
        step(*given, **more)
        raise KeyboardInterrupt

    return stepped


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_chunk_between_watermarks_may_have_seen_an_insert_up_to_its_upper_one(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror, value: str
) -> None:
    """And none behind that, though other chunks of the table were read up to a later SCN: a key that comes twice stops the window."""
    tx = source.begin()
    for number in (1, 2, 50):
        tx.insert(order(number))
    tx.commit()
    low = source.tick()
    source.low, source.pending, source.ended = low, [], []
    tx = source.begin()
    seen = tx.insert(order(3))
    tx.commit()
    high = source.tick()
    for at in range(2):
        scn = high if at == 0 else source.tick()
        chunk = source.chunk(scn=scn, number=at, keep=partial(_is_of, at, 2))
        between: dict[str, Any] = {
            "scn": low if at == 0 else scn,
            "scn_high": scn,
            "have_own_keys": True,
        }
        replace(chunk, manifest=replace(chunk.manifest, **between)).apply(lake)
    with_vectors(_path(tmp_path), value)
    tx = source.begin()
    tx.update(seen, {"NAME": "much later"})
    tx.commit()
    window = source.cut()
    window.apply(lake, position=low, read_scn=scn)
    assert mirror(source.schema) == source.state(window.scn_high)
    double = _window(
        source, lambda tx: tx.insert(order(2, "once more"), row_id=source.new_row_id())
    )
    with pytest.raises(DuplicateKeyError):
        double.apply(lake, position=window.scn_high, read_scn=scn)


def test_vectors_that_are_gone_or_damaged_stop_the_window(
    tmp_path: Path, source: Source, lake: Lake, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No deleted row comes back. VACUUM without a retention may remove the file before its commit: then there is none."""
    _filled(source, lake, _path(tmp_path), chunks=1)
    first = _window(source, lambda tx: tx.delete(source.ids[3]))

    def vacuumed(filesystem: Any, path: str) -> None:
        if path.endswith(".bin"):
            Path(path).unlink()

    with monkeypatch.context() as patched:
        patched.setattr(rewriting, "make_durable", vacuumed)
        with pytest.raises(StoreUnavailableError, match="just written is missing"):
            first.apply(lake)
    first.apply(lake)
    [file] = Path(_path(tmp_path)).glob("deletion_vector_*.bin")
    content = file.read_bytes()
    window = _window(source, lambda tx: tx.update(source.ids[4], {"NAME": "x"}))
    for damaged in (content[:-1] + b"?", content[:9] + b"?" + content[10:], content[:6], None):
        file.unlink(missing_ok=True)
        if damaged is not None:
            file.write_bytes(damaged)
        said = "is damaged" if damaged else r"a deletion vector .* is missing .*VACUUM of delta-rs"
        with pytest.raises(LakeError, match=said):
            window.apply(lake, position=first.scn_high)
    file.write_bytes(content)
    window.apply(lake, position=first.scn_high)
    assert mirror(source.schema) == source.state(window.scn_high)


def test_where_delta_rs_has_to_commit_no_row_is_marked(
    tmp_path: Path, source: Source, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes none: small files are rewritten, and a file that has a vector is Spark's. Nor where vectors are switched off."""
    _filled(source, lake, _path(tmp_path), chunks=1)
    first = _window(source, lambda tx: tx.delete(source.ids[3]))
    with monkeypatch.context() as patched:
        patched.setattr(MirrorFiles, "takes_commits", lambda *_: False)
        window = _window(source, lambda tx: tx.update(source.ids[4], {"NAME": "x"}))
        first.apply(lake)
        assert not any("deletionVector" in one for one in _actions(tmp_path, "add"))
    window.apply(lake, position=first.scn_high)
    assert any("deletionVector" in one for one in _actions(tmp_path, "add"))
    last = _window(source, lambda tx: tx.update(source.ids[5], {"NAME": "x"}))
    with monkeypatch.context() as patched:
        patched.setattr(MirrorFiles, "takes_commits", lambda *_: False)
        with pytest.raises(SparkAskedError):
            last.apply(lake, position=window.scn_high)
    with_vectors(_path(tmp_path), "false")
    last.apply(lake, position=window.scn_high)
    assert not _vectors(tmp_path), "a file is written anew without the rows that its vector named"


def test_what_a_vector_names_is_what_was_written(tmp_path: Path) -> None:
    """A form that the protocol does not name any more is refused, and so is what is not the log's."""
    root = str(tmp_path)
    wanted = {"none": [], "few": [0, 5, 70_000, 2**33], "many": list(range(0, 10**6, 7))}
    given = {name: Deleted(rows) for name, rows in wanted.items()}
    found, file = write_vectors(LOCAL, root, given)
    assert file is not None
    assert (tmp_path / file.name).stat().st_size == file.bytes
    for name, rows in wanted.items():
        vector = Vector.of_action(found[name].as_action())
        assert vector == found[name]
        assert places_of(read_vector(LOCAL, root, vector)).tolist() == rows
    large, name = found["many"], file.name
    older = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"  # as Delta wrote them once
    inline = Vector("i", vectors._to_z85((tmp_path / name).read_bytes()[5:29]), None, 12, 0)
    assert places_of(read_vector(LOCAL, root, inline)).tolist() == []
    for wrong, reason in (
        (replace(large, cardinality=3), "other rows"),
        (Vector("i", older, None, 40, 6), "a form"),
        (replace(inline, bytes=10), "damaged"),
        (replace(large, bytes=large.bytes - 1), "damaged"),
        (replace(large, offset=file.bytes - 2), "cut off"),
    ):
        with pytest.raises(pa.ArrowInvalid, match=reason):
            read_vector(LOCAL, root, wrong)
    with pytest.raises(FileNotFoundError):
        read_vector(LOCAL, root, replace(large, place="ab^-aqEH.-t@S}K{vb[*k^"))


def test_a_file_that_is_marked_again_is_removed_with_its_vector(
    tmp_path: Path, source: Source, lake: Lake
) -> None:
    """Path and vector together say which file goes. Source: the protocol, section "Add File and Remove File"."""
    _filled(source, lake, _path(tmp_path), chunks=1)
    named = []
    for at in (3, 4):
        _window(source, partial(_delete, source.ids[at])).apply(lake)
        [gone], [come] = _actions(tmp_path, "remove"), _actions(tmp_path, "add")
        named.append((gone.get("deletionVector"), come["deletionVector"]))
    (none, first), (again, second) = named
    assert none is None
    assert again == first
    assert (first["cardinality"], second["cardinality"]) == (1, 2)


def _delete(row_id: str, tx: Any) -> None:
    tx.delete(row_id)


def test_files_that_are_full_stay_and_what_is_due_is_bounded_by_what_changes() -> None:
    """A window of as many rows as a file has copies no full file; of those that lost their share it copies as many rows as it changes, or one file."""

    def seen(name: str, size: int, rows: int, deleted: int, changed: int) -> rewriting._Seen:
        updates = np.ones(changed, dtype=np.bool_)
        effects = Effects(np.arange(changed), updates, ~updates)
        gone = with_places(Deleted(), np.arange(deleted))
        places = np.arange(deleted, deleted + changed)
        file = OldFile(name, size, None)
        return rewriting._Seen(file, rows, None, gone, places, pa.table({}), effects)

    def rewritten(*files: rewriting._Seen) -> list[str]:
        plan = rewriting.plan_files(files, 0, marks=True)
        assert {one.file.name for one in (*plan.rewritten, *plan.marked)} >= {
            one.file.name for one in files if one.is_touched
        }
        return [one.file.name for one in plan.rewritten]

    full = rewriting.PORTION_BYTES // 5
    assert rewritten(*(seen(f"{n}", full, 250, 0, 25) for n in range(12))) == []
    small = [seen("part", full // 5, 250, 0, 25), seen("apart", full // 5, 250, 0, 0)]
    assert rewritten(*(seen(f"{n}", full, 250, 0, 25) for n in range(12)), *small) == [
        "part", "apart",
    ]  # fmt: skip
    due = [seen(f"{n}", full, 250, 100 - n, 25) for n in range(12)]
    assert rewritten(*due) == ["0", "1"]  # 125 and 126 rows, of 300 that change
    assert rewritten(*due[:2]) == ["0"]
