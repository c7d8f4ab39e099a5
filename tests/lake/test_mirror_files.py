"""Which keys a mirror has, by its files' key columns: a MERGE that inserts nothing is right where it has all of them, and only there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.config import LakeConfig
from cdc_core.delta.added_files import AddedFile
from cdc_core.delta.deletion_vectors import Deleted, Vector, write_vectors
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.lake import Lake
from cdc_core.lake.mirror import files as mirror_files
from cdc_core.lake.mirror.files import MirrorFiles, MirrorVersion
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.layout import mirror_schema
from tests.stage.landed import Source, number, varchar

if TYPE_CHECKING:
    from cdc_core.stage.changes import Bounds
    from tests.stage.landed import Row

ID, TEXT, LONG = number("ID", 9, 0), varchar("CODE"), number("LONG", 30, 0)
FLOAT = Column("RATE", "BINARY_DOUBLE", 8, 0, None, None, nullable=True)


def _mirror(folder: Path, schema: TableSchema, *chunks: Sequence[Row]) -> MirrorFiles:
    """A mirror of one file for each chunk."""
    lake = DeltaLake(LakeConfig(path=str(folder / "lake")), "shop")
    source = Source(folder / "landing", schema)
    tx = source.begin()
    for rows in chunks:
        for row in rows:
            tx.insert(row)
    tx.commit()
    scn = source.tick()
    for at, rows in enumerate(chunks):
        own = partial(_is_one_of, schema.key[0], {row[schema.key[0]] for row in rows})
        source.chunk(scn=scn, number=at, keep=own).apply(lake)
    work = TableWork(str(folder / "lake"), "shop", schema.table, 0, no_fence, lambda: None)
    return MirrorFiles.read(work)


def _is_one_of(key: str, values: set[object], row: Row) -> bool:
    return row[key] in values


def _schema(*key: Column) -> TableSchema:
    names = tuple(column.name for column in key)
    return TableSchema(TableId("SHOP", "PLAIN"), Scn(1), (*key, varchar("NAME")), names)


def _has(mirror: MirrorFiles, schema: TableSchema, keys: Row, bounds: Bounds | None = None) -> bool:
    wanted = pa.schema([arrow_schema(schema).field(name) for name in keys])
    return mirror.has_all(pa.table(keys, wanted), bounds or {})


def test_keys_are_found_in_whichever_file_they_are(tmp_path: Path) -> None:
    schema = _schema(ID)
    rows = [{"ID": at, "NAME": "n"} for at in range(6)]
    mirror = _mirror(tmp_path, schema, rows[:3], rows[3:])
    assert _has(mirror, schema, {"ID": [4, 0, 2]})
    assert _has(mirror, schema, {"ID": []})
    assert _has(mirror, schema, {"ID": [1, 2]}, {"ID": (1, 2)})
    assert not _has(mirror, schema, {"ID": [1, 6]})
    assert not _has(mirror, schema, {"ID": [10**8]}, {"ID": (10**8, 10**8)})


@pytest.mark.parametrize(
    ("key", "there", "other"),
    [
        pytest.param((TEXT,), {"CODE": ["a"]}, {"CODE": ["A"]}, id="texts"),
        pytest.param((LONG,), {"LONG": [10**29]}, {"LONG": [10**28]}, id="decimals"),
        pytest.param(
            (TEXT, ID), {"CODE": ["a"], "ID": [1]}, {"CODE": ["a"], "ID": [2]}, id="two-columns"
        ),
    ],
)
def test_keys_of_other_kinds(
    tmp_path: Path, key: tuple[Column, ...], there: Row, other: Row
) -> None:
    schema = _schema(*key)
    row = {name: values[0] for name, values in there.items()}
    mirror = _mirror(tmp_path, schema, [{**row, "NAME": "n"}])
    assert _has(mirror, schema, there)
    assert not _has(mirror, schema, other)


def test_what_would_take_long_or_be_unsure_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    floating = _schema(FLOAT)
    assert not _has(_mirror(tmp_path / "a", floating, []), floating, {"RATE": [float("nan")]})
    schema = _schema(ID)
    mirror = _mirror(tmp_path / "b", schema, [{"ID": 1, "NAME": "n"}], [{"ID": 2, "NAME": "n"}])
    for limit in ("KEYS_READ_MAX", "FILES_READ_MAX"):
        with monkeypatch.context() as patched:
            patched.setattr(mirror_files, limit, 1)
            assert not _has(mirror, schema, {"ID": [1]})
            assert _has(mirror, schema, {"ID": [1]}, {"ID": (1, 1)})


def _appended(path: str) -> None:
    write_deltalake(path, _rows(7, 8), mode="append")


def _rewritten(path: str) -> None:
    DeltaTable(path).delete('"ID" = 2')


def _put_together(path: str) -> None:
    DeltaTable(path).optimize.compact()


def _configured(path: str) -> None:
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "true"})


def _with_a_checkpoint(path: str) -> None:
    _appended(path)
    DeltaTable(path).create_checkpoint()


def _begun_anew(path: str) -> None:
    """As many commits, and other files."""
    commits = DeltaTable(path).version()
    shutil.rmtree(path)
    for at in range(commits + 1):
        write_deltalake(path, _rows(at), mode="append")


def _rows(*ids: int) -> pa.Table:
    schema = mirror_schema(_schema(ID))
    return pa.Table.from_pylist([{"ID": at, "NAME": "n"} for at in ids], schema)


def _said(log: MirrorVersion) -> tuple[object, ...]:
    files = log.files.sort_by([(name, "ascending") for name in ("min.ID", "path")])
    return log.version, log.features, log.properties, files.to_pylist()


@pytest.mark.parametrize(
    "change",
    [_appended, _rewritten, _put_together, _configured, _with_a_checkpoint, _begun_anew],
)
def test_a_mirror_that_is_known_is_followed_as_delta_rs_reads_it(
    tmp_path: Path, change: Callable[[str], None]
) -> None:
    chunks = [[{"ID": at, "NAME": "n"} for at in ids] for ids in ((1, 2, 3), (4, 5))]
    work = _mirror(tmp_path, _schema(ID), *chunks).work
    for _ in range(2):
        change(work.mirror)
        found = MirrorFiles.read(work).log
        assert _said(found) == _said(mirror_files._read(work.mirror))


def test_a_file_of_which_nobody_knows_the_bounds_may_have_every_key(tmp_path: Path) -> None:
    work = _mirror(tmp_path, _schema(ID), [{"ID": 1, "NAME": "n"}]).work
    newest = max((Path(work.mirror) / "_delta_log").glob("*.json"))
    [added] = [line for line in newest.read_text().splitlines() if "add" in json.loads(line)]
    action = json.loads(added)
    action["add"] |= {"path": "mine.parquet", "stats": None}
    following = newest.with_name(f"{int(newest.stem) + 1:020d}.json")
    following.write_text(json.dumps(action) + "\n")
    mirror = MirrorFiles.read(work)
    apart = dict(
        zip(mirror.files["path"].to_pylist(), mirror.apart({"ID": (9, 9)}).to_pylist(), strict=True)
    )
    assert (len(apart), apart["mine.parquet"]) == (2, False)
    assert mirror.files["num_records"].null_count == 1


def test_a_deletion_vector_that_comes_is_followed_where_the_log_says_that_some_come() -> None:
    """Else its commit is of no form that Redolake knows, and delta-rs reads the log again."""
    log = mirror_files.MirrorVersion(
        version=1, features=frozenset(), properties={}, fields=(), partition_columns=(),
        files=mirror_files._columns(["ID"]).empty_table(),
    )  # fmt: skip
    vector = {"storageType": "i", "pathOrInlineDv": "-", "sizeInBytes": 34, "cardinality": 1}
    added = {"path": "a.parquet", "size": 1, "stats": '{"numRecords": 2}'}
    marked = {"add": {**added, "deletionVector": vector}}
    assert mirror_files._followed(log, 2, [{"add": added}]) is not None
    assert mirror_files._followed(log, 2, [{"add": {**added, "deletionVector": {}}}]) is not None
    for action in (
        marked,
        {"add": {**added, "path": "a%20b.parquet"}},
        {"remove": {"path": "of-nobody.parquet"}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}},
    ):
        assert mirror_files._followed(log, 2, [action]) is None
    log = replace(log, features=frozenset({"deletionVectors"}))
    first = mirror_files._followed(log, 2, [{"add": added}])
    assert first is not None
    then = mirror_files._followed(first, 3, [{"remove": {"path": "a.parquet"}}, marked])
    assert then is not None
    assert then.files["path"].to_pylist() == ["a.parquet"]
    assert (first.added["a.parquet"].vector, then.added["a.parquet"].vector) == (
        None,
        Vector("i", "-", None, 34, 1),
    )


def test_rows_that_a_deletion_vector_names_are_not_there(tmp_path: Path) -> None:
    """Here and in ``test_marking`` by our own vectors, in ``test_maintaining`` by Spark's."""
    schema = _schema(ID)
    mirror = _mirror(tmp_path, schema, [{"ID": at, "NAME": "n"} for at in range(4)])
    [file] = mirror.files["path"].to_pylist()
    found, _ = write_vectors(pafs.LocalFileSystem(), mirror.work.mirror, {file: Deleted([1])})
    log = replace(mirror.log, added={file: AddedFile(None, found[file])})
    mirror = MirrorFiles(mirror.work, log)
    wanted = [True, False, True, True, False]
    assert [_has(mirror, schema, {"ID": [at]}) for at in range(5)] == wanted


@pytest.mark.spark
def test_a_window_of_rows_that_are_there_is_merged_without_an_insert(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    tmp_path: Path,
) -> None:
    """And one with a row that the mirror lacks, which no insert announces, brings it."""
    lake = open_lake()
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 7)}
    tx.commit()
    source.chunk(keep=lambda r: r["ID"] != 5).apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    log = tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path / "_delta_log"

    def inserts_of_a_window(*changes: Callable[[Any], None]) -> bool:
        tx = source.begin()
        for change in changes:
            change(tx)
        tx.commit()
        cut = source.cut()
        cut.apply(lake, read_scn=0)
        wanted = [
            one for one in source.state(cut.scn_high) if one["ID"] != 5 or "late" in one["NAME"]
        ]
        assert mirror(source.schema) == wanted
        actions = map(json.loads, max(log.glob("*.json")).read_text().splitlines())
        [done] = [one["commitInfo"] for one in actions if "commitInfo" in one]
        return bool(done["operationParameters"]["notMatchedPredicates"] != "[]")

    assert not inserts_of_a_window(
        lambda tx: tx.update(ids[1], {"NAME": "first"}), lambda tx: tx.delete(ids[2])
    )
    assert not inserts_of_a_window(lambda tx: tx.delete(ids[3]))
    assert inserts_of_a_window(
        lambda tx: tx.update(ids[1], {"NAME": "second"}),
        lambda tx: tx.update(ids[5], {"NAME": "late", "NOTE": "all there is"}),
    )
    assert inserts_of_a_window(lambda tx: tx.update(ids[4], {"ID": 40, "NOTE": "all there is"}))
