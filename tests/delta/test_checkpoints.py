"""A checkpoint tells the same in each form that Delta's protocol has for it, and a log with a gap tells nothing."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake

from cdc_core.delta.added_files import read_added
from cdc_core.delta.history import read_log
from cdc_core.delta.log_files import log_names
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import LakeError

APP = "redolake/shop/t/0"
ROWS = 95


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three versions, of which the second deletes rows, and a checkpoint of them."""
    path = tmp_path / "t"
    commit = CommitProperties(app_transactions=[Transaction(APP, 7)])
    write_deltalake(path, numbers(0, 100), commit_properties=commit)
    DeltaTable(path).delete("ID < 10")
    write_deltalake(path, numbers(100, 105), mode="append")
    DeltaTable(path).create_checkpoint()
    return path


def numbers(first: int, last: int) -> pa.Table:
    return pa.table({"ID": pa.array(range(first, last), pa.int64())})


def whole(log: Path) -> Path:
    [found] = log.glob("*.checkpoint.parquet")
    return found


def named_by_uuid(log: Path, ending: str) -> Path:
    (log / "_last_checkpoint").unlink()
    return log / f"{2:020d}.checkpoint.{uuid.uuid4()}.{ending}"


def as_it_is(log: Path) -> None:
    assert whole(log).exists()


def by_uuid(log: Path) -> None:
    whole(log).rename(named_by_uuid(log, "parquet"))


def in_parts(log: Path) -> None:
    table, old = pq.read_table(whole(log)), whole(log)
    for part in (1, 2):
        rows = table.slice(0, 3) if part == 1 else table.slice(3)
        pq.write_table(rows, log / f"{2:020d}.checkpoint.{part:010d}.{2:010d}.parquet")
    old.unlink()
    (log / "_last_checkpoint").unlink()


def _with_sidecars(log: Path) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The facts about the table, and the sidecars with its files."""
    table = pq.read_table(whole(log))
    whole(log).unlink()
    (log / "_sidecars").mkdir()
    is_file = [one["add"] is not None or one["remove"] is not None for one in table.to_pylist()]
    files, sidecars = table.filter(pa.array(is_file)).select(["add", "remove"]), []
    for at in range(files.num_rows):
        name = f"{uuid.uuid4()}.parquet"
        pq.write_table(files.slice(at, 1), log / "_sidecars" / name)
        size = (log / "_sidecars" / name).stat().st_size
        sidecars.append({"path": name, "sizeInBytes": size, "modificationTime": 1})
    facts = [name for name in ("txn", "metaData", "protocol") if name in table.column_names]
    return table.filter(pa.array([not one for one in is_file])).select(facts), sidecars


def _nullable(kind: pa.DataType) -> pa.DataType:
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([pa.field(one.name, _nullable(one.type)) for one in kind])


def sidecars_in_parquet(log: Path) -> None:
    facts, sidecars = _with_sidecars(log)
    facts = facts.cast(pa.schema([(one.name, _nullable(one.type)) for one in facts.schema]))
    nothing = pa.nulls(facts.num_rows, pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]))  # fmt: skip
    named = pa.table({"sidecar": pa.array(sidecars, nothing.type)})
    both = pa.concat_tables([facts.append_column("sidecar", nothing), named], promote_options="default")  # fmt: skip
    pq.write_table(both, named_by_uuid(log, "parquet"))


def _as_actions(table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"checkpointMetadata": {"version": 2}}]
    for row in table.to_pylist():
        found += [{name: _as_json(said)} for name, said in row.items() if said is not None]
    return found


def _as_json(said: dict[str, Any]) -> dict[str, Any]:
    """Maps are lists of pairs in Arrow."""
    maps = {"configuration", "partitionValues", "tags", "options"}
    return {
        name: dict(value or []) if name in maps else _as_json(value) if isinstance(value, dict) else value
        for name, value in said.items()
        if value is not None or name in maps
    }  # fmt: skip


def sidecars_in_json(log: Path) -> None:
    facts, sidecars = _with_sidecars(log)
    actions = [*_as_actions(facts), *({"sidecar": one} for one in sidecars)]
    named_by_uuid(log, "json").write_text("\n".join(map(json.dumps, actions)))


def files_in_json(log: Path) -> None:
    """No sidecars at all: the files stand among the facts."""
    actions = _as_actions(pq.read_table(whole(log)))
    whole(log).unlink()
    named_by_uuid(log, "json").write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(
    "form",
    [as_it_is, by_uuid, in_parts, sidecars_in_parquet, sidecars_in_json, files_in_json],
    ids=lambda form: str(form.__name__),
)
@pytest.mark.parametrize("commits_behind", [0, 2])
def test_each_form_is_read_behind_a_log_that_was_cleaned_up(
    path: Path, form: Callable[[Path], None], commits_behind: int
) -> None:
    log = path / "_delta_log"
    form(log)
    rows = ROWS
    for _ in range(commits_behind):
        write_deltalake(path, numbers(0, 1), mode="append")
        rows += 1
    for version in range(2 if commits_behind == 0 else 3):  # the newest commit always stays
        (log / f"{version:020d}.json").unlink()
    found = read_log(str(path))
    assert found is not None
    assert (found.version, found.transactions) == (2 + commits_behind, {APP: 7})
    assert found.columns == {"ID": "long"}
    assert count_rows(str(path)) == rows
    added = read_added(pafs.LocalFileSystem(), str(path), log_names(pafs.LocalFileSystem(), str(path)), found.version)  # fmt: skip
    assert sum(json.loads(one.statistics or "")["numRecords"] for one in added.values()) == rows
    counted = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT COUNT(*) AS n FROM t")
    assert pa.table(counted.read_all()).to_pylist() == [{"n": rows}], "as another reader has it"


def test_of_two_checkpoints_of_one_version_either_will_do(path: Path) -> None:
    log = path / "_delta_log"
    (log / f"{2:020d}.checkpoint.{uuid.uuid4()}.parquet").write_bytes(whole(log).read_bytes())
    (log / f"{0:020d}.json").unlink()
    assert count_rows(str(path)) == ROWS


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        pytest.param(None, False, id="no-checkpoint"),
        pytest.param(f"{2:020d}.checkpoint.of-tomorrow.avro", True, id="a-form-that-nobody-knows"),
    ],
)
@pytest.mark.parametrize(
    "read",
    [
        pytest.param(read_log, id="positions"),
        pytest.param(count_rows, id="rows"),
        pytest.param(
            lambda path: read_added(
                pafs.LocalFileSystem(), path, log_names(pafs.LocalFileSystem(), path), 2
            ),
            id="files",
        ),
    ],
)
def test_what_a_log_lacks_is_never_taken_for_absent(
    path: Path, name: str | None, read: Callable[[str], object], *, is_named: bool
) -> None:
    log = path / "_delta_log"
    checkpoint = whole(log)
    if name is None:
        checkpoint.unlink()
    else:
        checkpoint.rename(log / name)
    (log / "_last_checkpoint").unlink()
    (log / f"{0:020d}.json").unlink()
    with pytest.raises(LakeError, match="the Delta log has a gap") as caught:
        read(str(path))
    assert (name is not None and name in str(caught.value)) == is_named


@pytest.mark.parametrize(
    ("parsed", "rows"),
    [pytest.param(True, ROWS, id="as-columns-alone"), pytest.param(False, None, id="none")],
)
def test_statistics_that_are_no_text_are_counted_as_well(
    path: Path, rows: int | None, *, parsed: bool
) -> None:
    """``delta.checkpoint.writeStatsAsJson = false``, with and without ``writeStatsAsStruct``."""
    file = whole(path / "_delta_log")
    table = pq.read_table(file)
    added = []
    for one in table["add"].to_pylist():
        if one is not None:
            said = json.loads(one.pop("stats"))
            if parsed:
                one["stats_parsed"] = {"numRecords": said["numRecords"]}
        added.append(one)
    kind = [one for one in table["add"].type if one.name != "stats"]
    if parsed:
        kind.append(pa.field("stats_parsed", pa.struct([("numRecords", pa.int64())])))
    at = table.column_names.index("add")
    pq.write_table(table.set_column(at, "add", pa.array(added, pa.struct(kind))), file)
    (path / "_delta_log" / f"{0:020d}.json").unlink()
    assert count_rows(str(path)) == rows
