"""A window that executors stage is the window that the process's threads stage: the same changes, the same row per key, the same errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pydantic import ValidationError
from pyspark import cloudpickle
from pyspark.errors import PythonException

from cdc_core.config import LakeConfig
from cdc_core.errors import (
    DecodeError,
    FencedError,
    LakeError,
    PreflightError,
    RowCountError,
    SparkMemoryError,
)
from cdc_core.lake.apply.windows import _staged
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.lake import Lake
from cdc_core.lake.mirror.merge import KeyRule
from cdc_core.lake.mirror.merge_audit import SentRows
from cdc_core.lake.rows.executors import Reduction, StagedWindow, WindowStaging
from cdc_core.lake.rows.staging import staged_by_executors
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema
from cdc_core.spark.tasks import run_tasks
from cdc_core.stage.changes import LoggedChanges, of_window
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.layout import change_schema
from cdc_core.stage.quarantine import Sieve, Suspects
from cdc_core.stage.reduction import merge_sources
from cdc_core.stage.window import staged_changes
from tests.stage.landed import Row, Source, Window, order, orders_schema, varchar


class InProcess:
    """A Spark session whose executors are functions of this process; what they run is pickled on its way, as Spark does it."""

    def __init__(self, *, twice: int | None = None, without: int | None = None) -> None:
        self.sparkContext = SimpleNamespace(master="spark://host:7077")
        self.tasks = 0
        self._twice, self._without = twice, without

    def range(self, start: int, end: int, step: int, partitions: int) -> InProcess:
        assert (start, step, partitions) == (0, 1, end), "one part is one task"
        self.tasks = end
        return self

    def mapInArrow(self, task: Any, _columns: str) -> InProcess:
        self._task = cloudpickle.loads(cloudpickle.dumps(task))
        return self

    def toArrow(self) -> pa.Table:
        parts = [part for part in range(self.tasks) if part != self._without]
        parts += [part for part in parts if part == self._twice]
        batches = [pa.RecordBatch.from_pydict({"id": [part]}) for part in parts]
        try:
            return pa.Table.from_batches(
                [done for one in batches for done in self._task(iter([one]))]
            )
        except RuntimeError as error:  # as PySpark passes on what ended a task
            raise PythonException(f"Traceback …\nRuntimeError: {error}\n") from None


def without_lobs(**more: Any) -> TableSchema:
    schema = orders_schema(**more)
    return replace(schema, columns=tuple(one for one in schema.columns if not one.is_lob))


def lives(source: Source, seed: int, *, transactions: int = 12, cuts: int = 3) -> list[Window]:
    """Transactions side by side over some windows, which insert, change, move and delete rows, write LOBs, and take some of it back."""
    chance, keys = random.Random(seed), iter(range(1, 1000))
    has_lob = any(column.is_lob for column in source.schema.columns)
    lists = [column.name for column in source.schema.columns]
    own: dict[str, list[str]] = {}
    opened = [source.begin() for _ in range(transactions)]
    windows = []
    for _ in range(cuts):
        for _ in range(60):
            if not opened:
                break
            one = chance.choice(opened)
            rows = own.setdefault(one.xid, [])
            match chance.randrange(8):
                case 0 | 1 | 2:
                    new = order(next(keys), f"it's {chance.random()}")
                    rows.append(one.insert({name: new[name] for name in lists}))
                case 3 if rows:
                    one.update(chance.choice(rows), {"NAME": f"n{chance.random()}"})
                case 4 if rows:
                    moved = {"ID": next(keys), "AMOUNT": None}
                    one.update(chance.choice(rows), moved | ({"NOTE": "m"} if has_lob else {}))
                case 5 if rows and not has_lob:
                    point = one.savepoint()
                    undone = order(next(keys), "never")
                    one.insert({name: undone[name] for name in lists})
                    one.update(chance.choice(rows), {"NAME": "never"})
                    one.rollback_to(point)
                case 6 if rows and has_lob:
                    one.write_lob(chance.choice(rows), "NOTE", "y" * chance.randrange(1, 3000))
                case 7 if rows and chance.random() < 0.5:
                    one.delete(rows.pop(chance.randrange(len(rows))))
                case _ if chance.random() < 0.4:
                    opened.remove(one)
                    one.commit()
        windows.append(source.cut())
    for one in opened:
        one.commit()
    return [*windows, source.cut()]


def staging(window: Window, folder: Path, *, task_rows: int, **more: Any) -> WindowStaging:
    (folder / "changelog").mkdir(exist_ok=True)
    decoder = ChangeDecoder(window.schema, window.scn_high, **more)
    return WindowStaging(window.part().landed, decoder, str(folder / "changelog"), task_rows)


def both(one: WindowStaging) -> tuple[pa.Table, pa.Table, StagedWindow, InProcess]:
    """The window's changes in order as threads stage them, and as executors do."""
    committed = one.landed.committed()
    batches = staged_changes(one.landed.rows(committed), one.decoder)
    threads = pa.Table.from_batches(list(batches), change_schema(one.decoder.schema))
    session = InProcess()
    found = one.run(session, committed, {}) if committed.count else StagedWindow(())
    files = [pq.read_table(f"{one.changelog}/{name}") for name in found.names]
    staged = pa.concat_tables([threads.schema.empty_table(), *files])
    assert [file.rows for file in found.files] == [file.num_rows for file in files]
    return threads.sort_by("_cdc_ordinal"), staged.sort_by("_cdc_ordinal"), found, session


def columns_with_default() -> tuple[TableSchema, TableSchema]:
    """A table before and after a column was added in the window."""
    first = without_lobs()
    later = replace(first, scn_from=Scn(160), columns=(*first.columns, varchar("LATER")))
    return first, later


@pytest.mark.parametrize(
    ("kind", "task_rows", "tasks_min"),
    [
        pytest.param("rollbacks", 1, 5, id="rows-that-were-taken-back"),
        pytest.param("lobs", 7, 3, id="lobs-in-pieces"),
        pytest.param("versions", 7, 3, id="rows-of-two-definitions"),
    ],
)
def test_executors_stage_and_reduce_as_threads_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, task_rows: int, tasks_min: int
) -> None:
    """Transactions over several windows, partial rollbacks, changes of key, LOBs in pieces, and rows of two definitions."""
    monkeypatch.setattr("tests.stage.landed.pq.write_table", small_groups(pq.write_table))
    schema = orders_schema() if kind == "lobs" else without_lobs()
    source = Source(tmp_path / "landing", schema)
    tasks = 0
    for window in lives(source, seed=7):
        more: dict[str, Any] = {}
        if kind == "versions":
            first, later = columns_with_default()
            window, more = replace(window, schema=later), {"earlier": (first,)}
        one = staging(window, tmp_path, task_rows=task_rows, **more)
        threads, staged, found, session = both(one)
        assert staged.equals(threads)
        tasks = max(tasks, session.tasks)
        if staged.num_rows:
            check_reduced(one, found, tmp_path, parts=3)
    assert tasks >= tasks_min, "a window is many tasks"


def small_groups(write: Callable[..., None]) -> Callable[..., None]:
    """Row groups of a few rows, as a large window has many."""

    def written(rows: pa.Table, path: Any, **more: Any) -> None:
        write(rows, path, row_group_size=5, **more)

    return written


def check_reduced(one: WindowStaging, found: StagedWindow, folder: Path, *, parts: int) -> None:
    """What is merged of the staged files, in parts by executors, is what threads make of it."""
    schema, own = one.decoder.schema, of_window(one.landed.window.scn_high)
    paths = [f"{one.changelog}/{name}" for name in found.names]
    changes = LoggedChanges(pafs.LocalFileSystem(), paths, schema, own)
    absent = changes.facts().absent
    by_key = [(name, "ascending") for name in schema.key]
    threads = pa.concat_tables(list(merge_sources(changes, schema, absent))).sort_by(by_key)
    reduction = Reduction(
        changelog=one.changelog,
        files=tuple(found.names),
        rule=KeyRule(schema=schema, absent=absent),
        scn_high=one.landed.window.scn_high,
        has_gaps=False,
        parts=parts,
        staging=str(folder / "staging"),
        facts={},
    )
    sent = SentRows(schema, None, {})
    written = reduction.merge_source(InProcess(), sent)
    staged = pa.concat_tables([pq.read_table(path) for path in written]).sort_by(by_key)
    assert staged.equals(threads)
    assert len(written) == parts
    assert sent.rows + sent.gone == threads.num_rows


@pytest.mark.parametrize(
    "breaks",
    [
        pytest.param({"without": 1}, id="a-task-is-lost"),
        pytest.param({"twice": 1}, id="a-task-counts-twice"),
    ],
)
def test_each_part_is_done_once(breaks: dict[str, int]) -> None:
    with pytest.raises(RowCountError, match="each part once"):
        run_tasks(InProcess(**breaks), 3, numbered, doing="-", facts={})


def test_tasks_that_see_another_ledger_are_noticed(tmp_path: Path) -> None:
    """Each task reads the window's transactions again: here, without one of them."""
    source = Source(tmp_path / "landing", without_lobs())
    for key in range(3):
        transaction = source.begin()
        point = transaction.savepoint()
        transaction.insert({"ID": key, "NAME": "never", "AMOUNT": None})
        transaction.rollback_to(point)
        transaction.insert({"ID": key, "NAME": "x", "AMOUNT": None})
        transaction.commit()
    one = staging(source.cut(), tmp_path, task_rows=5)
    committed = one.landed.committed()
    [kept] = one.landed.transactions_paths
    pq.write_table(pq.read_table(kept).slice(1), kept)
    with pytest.raises(RowCountError, match="have changed since they were read"):
        one.run(InProcess(), committed, {})


def numbered(number: int) -> dict[str, Any]:
    """A task that says its number."""
    return {"number": number}


def test_rows_of_a_share_are_counted_over_all_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tasks of split transactions found must be what capture counted."""
    monkeypatch.setattr("tests.stage.landed.pq.write_table", small_groups(pq.write_table))
    source = Source(tmp_path / "landing", without_lobs())
    transaction = source.begin()
    for key in range(20):
        transaction.insert({"ID": key, "NAME": "x", "AMOUNT": None})
    transaction.commit()
    window = source.cut()
    one = staging(window, tmp_path, task_rows=5)
    assert both(one)[1].num_rows == 20
    [kept] = one.landed.redo_paths
    rows = pq.read_table(kept)
    pq.write_table(pa.concat_tables([rows, rows.slice(7, 1)]), kept)  # a row is there twice
    committed = one.landed.committed()
    with pytest.raises(RowCountError, match="not as many as were read"):
        one.run(InProcess(), committed, {})


def fails(number: int) -> dict[str, Any]:
    """A task that meets a row that it does not understand, or something that nobody thought of."""
    if number:
        raise DecodeError("a row is not understood", hint="Look.", ordinal=7)
    raise ValueError("the value of a row")


def test_errors_of_tasks_come_back_as_they_are() -> None:
    with pytest.raises(DecodeError, match="a row is not understood") as caught:
        run_tasks(InProcess(), 2, refuses, doing="staging", facts={})
    assert caught.value.facts == {"ordinal": "7"}


def test_errors_of_tasks_that_are_not_ours_come_back_without_values() -> None:
    with pytest.raises(LakeError, match="staging failed") as caught:
        run_tasks(InProcess(), 2, breaks, doing="staging", facts={})
    assert caught.value.facts == {"part": "0", "cause": "ValueError"}
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param("ModuleNotFoundError: No module named 'cdc_core'", "no module cdc_core", id="no-redolake"),
        pytest.param("ModuleNotFoundError: No module named 'numba'", "no module numba", id="half-of-it"),
        pytest.param('Cannot run program "/venv/bin/python": error=2', "cannot run Redolake", id="no-python"),
        pytest.param("[PYTHON_VERSION_MISMATCH] Python in worker has", "cannot run Redolake", id="another-python"),
    ],
)  # fmt: skip
def test_executors_without_redolake_are_refused_with_what_helps(said: str, named: str) -> None:
    """The driver says what is missing on the workers, and how to do without it."""

    class Spark(InProcess):
        def toArrow(self) -> pa.Table:
            raise PythonException(said)

    with pytest.raises(PreflightError, match=named) as caught:
        run_tasks(Spark(), 1, numbered, doing="-", facts={})
    assert "stage_on_executors_from_rows: never" in caught.value.hint


def test_another_version_on_an_executor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = iter(["1.0", "2.0", "2.0"])
    monkeypatch.setattr("cdc_core.spark.tasks.installed_version", lambda _: next(versions))
    with pytest.raises(PreflightError, match=r"driver=1\.0, executor=2\.0"):
        run_tasks(InProcess(), 1, numbered, doing="-", facts={})


def test_a_python_that_ended_is_out_of_memory() -> None:
    """The system ends what needs more than there is; Spark has tried it again by then."""

    class Spark(InProcess):
        def toArrow(self) -> pa.Table:
            raise PythonException("Python worker exited unexpectedly (crashed)")

    with pytest.raises(SparkMemoryError, match="Nothing is lost"):
        run_tasks(Spark(), 1, numbered, doing="-", facts={})


@pytest.mark.parametrize("is_suspect", [False, True])
def test_what_cannot_be_decoded_goes_into_quarantine_by_threads(
    tmp_path: Path, *, is_suspect: bool
) -> None:
    """Executors stage a window that has no such row; where one may depend on another, the order of the redo decides."""
    source = Source(tmp_path / "landing", without_lobs())
    one = staging(not_understood(source), tmp_path, task_rows=2)
    suspects = Suspects.of(["AAAB00000000000099"] if is_suspect else [])
    sieve = Sieve(one.decoder, suspects, covered_scn=0, room=9)
    spark = InProcess()
    table = source.schema.table
    work = TableWork(str(tmp_path), "shop", table, 1, no_fence, lambda: spark, executors_from=4)
    Path(work.changelog).mkdir(parents=True)
    committed = one.landed.committed()
    found = _staged(work, one, committed, sieve)
    assert [file.rows for file in found.files] == [5]
    assert sieve.rows["operation"].to_pylist() == ["UNSUPPORTED"]
    assert (spark.tasks > 0) == (not is_suspect)


@pytest.mark.parametrize("configured", ["auto", 1])
def test_without_redolake_on_the_executors_threads_stage_unless_executors_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: Any
) -> None:
    """A cluster that worked before goes on, and is asked once."""
    monkeypatch.setattr("cdc_core.lake.table_context.EXECUTOR_ROWS_MIN", 1)
    source = Source(tmp_path / "landing", without_lobs())
    [window, *_] = lives(source, seed=3)
    one, table = staging(window, tmp_path, task_rows=2), source.schema.table
    spark = WithoutRedolake()
    work = TableWork(
        str(tmp_path), "shop", table, 1, no_fence, lambda: spark, executors_from=configured
    )
    Path(work.changelog).mkdir(parents=True)
    committed = one.landed.committed()
    if configured == 1:
        with pytest.raises(PreflightError, match="no module cdc_core"):
            _staged(work, one, committed, None)
        return
    for _ in range(2):
        found = _staged(work, one, committed, None)
        assert sum(file.rows for file in found.files)
    assert spark.asked == 1


class WithoutRedolake(InProcess):
    """A cluster whose workers have another Python."""

    asked = 0
    sparkContext = SimpleNamespace(master="spark://host:7077")

    def toArrow(self) -> pa.Table:
        self.asked += 1
        raise PythonException("ModuleNotFoundError: No module named 'cdc_core'")


@pytest.mark.parametrize(
    ("configured", "master", "rows", "are_asked"),
    [
        pytest.param("auto", "spark://host:7077", 1_000_000, True, id="many-rows-on-a-cluster"),
        pytest.param("auto", "local-cluster[2,1,1024]", 1_000_000, True, id="executors-of-their-own"),
        pytest.param("auto", "spark://host:7077", 999_999, False, id="fewer"),
        pytest.param("auto", "local[2]", 9_000_000, False, id="no-executors"),
        pytest.param(1000, "local[2]", 1000, True, id="asked-for"),
        pytest.param(1000, "spark://host:7077", 999, False, id="fewer-than-asked-for"),
        pytest.param("never", "spark://host:7077", 9_000_000, False, id="never"),
    ],
)  # fmt: skip
def test_where_a_window_is_staged(
    configured: Any, master: str, rows: int, *, are_asked: bool
) -> None:
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    config = LakeConfig(path="/lake", stage_on_executors_from_rows=configured)
    work = TableWork(
        "/lake", "shop", orders_schema().table, 1, no_fence, lambda: spark,
        executors_from=config.stage_on_executors_from_rows,
    )  # fmt: skip
    assert (work.executors_for(rows) is spark) == are_asked


@pytest.mark.parametrize(
    ("configured", "window", "rows"),
    [
        pytest.param("auto", 1_000_000, 250_000, id="four-where-there-are-just-enough"),
        pytest.param(4_000_000, 4_000_000, 250_000, id="none-larger-than-a-thread-holds-well"),
        pytest.param("auto", 90_000_000, 250_000, id="as-many-as-that-takes"),
        pytest.param(1000, 1000, 250, id="four-of-a-small-border"),
        pytest.param(1, 9, 1, id="each-row-of-nine"),
        pytest.param(1, 205_000, 3_203, id="a-small-border-cuts-no-window-into-rows"),
        pytest.param("never", 9, 250_000, id="none"),
    ],
)
def test_how_many_rows_a_task_stages(configured: Any, window: int, rows: int) -> None:
    table = orders_schema().table
    work = TableWork("/", "s", table, 1, no_fence, object, executors_from=configured)
    assert work.task_rows(window) == rows


def test_a_merge_reads_the_files_of_tasks_that_count(tmp_path: Path) -> None:
    """A task that ran twice has left a file that is not its result."""
    read: list[str] = []
    spark: Any = SimpleNamespace(
        conf=SimpleNamespace(set=lambda *_: None),
        read=SimpleNamespace(
            schema=lambda _: SimpleNamespace(parquet=lambda *paths: read.extend(paths))
        ),
    )
    table = orders_schema().table
    work = TableWork(str(tmp_path), "shop", table, 1, no_fence, lambda: spark)
    folder = Path(work.staging)

    def write() -> list[str]:
        folder.mkdir(parents=True)
        for name in ("00000-a", "00000-b", "00001-c"):
            (folder / f"{name}.parquet").touch()
        return [f"{folder}/00000-b.parquet", f"{folder}/00001-c.parquet"]

    columns, sent = pa.schema([("ID", pa.int64())]), SentRows(orders_schema(), None, {})
    with staged_by_executors(work, spark, columns, write, sent):
        assert [Path(path).name for path in read] == ["00000-b.parquet", "00001-c.parquet"]
    assert not folder.exists()


@pytest.mark.parametrize("configured", [0, -1, "always"])
def test_the_border_is_a_number_of_rows(configured: Any) -> None:
    with pytest.raises(ValidationError):
        LakeConfig(path="/lake", stage_on_executors_from_rows=configured)


def refuses(number: int) -> dict[str, Any]:
    """A task that meets a row that it does not understand."""
    raise DecodeError("a row is not understood", hint="Look.", ordinal=7)


def breaks(number: int) -> dict[str, Any]:
    """A task that meets what nobody thought of."""
    raise ValueError("the value of a row")


def opened(tmp_path: Path) -> Lake:
    config = LakeConfig(
        path=str(tmp_path / "lake"),
        driver_memory="1g",
        stage_on_executors_from_rows=12,
        rewrite_mirrors_up_to_mb=0,
    )
    return DeltaLake(config, "shop")


def fenced() -> None:
    raise FencedError("the lease is lost", hint="-")


@pytest.mark.spark
def test_a_table_lives_on_executors(
    spark_process: None,
    tmp_path: Path,
    changelog: Callable[[TableSchema], list[Row]],
    mirror: Callable[..., list[Row]],
) -> None:
    """Windows in tasks of Spark's own Python processes: appended and merged ones, one again that ended before its commit, a replay."""
    source = Source(tmp_path / "landing", without_lobs())
    lake, folder = opened(tmp_path), tmp_path / "lake" / "shop"
    windows = lives(source, seed=11, cuts=1)
    one = source.begin()
    for place, rid in enumerate(sorted(source.rows)):
        if place % 3 == 0:
            one.delete(rid)
        else:
            one.update(rid, {"NAME": "merged"})
    one.commit()
    windows.append(source.cut())
    for at, window in enumerate(windows):
        if at == len(windows) - 1:
            with pytest.raises(FencedError):
                window.apply(lake, fence=fenced)
        window.apply(lake)
        assert mirror(source.schema) == source.state(window.scn_high)
    log = DeltaTable(str(folder / "changelog" / "shop.orders"))
    files = list((folder / "changelog" / "shop.orders").glob("*.parquet"))
    assert len(files) > len(log.file_uris()) > len(windows), "many tasks, and some for nothing"
    assert [row["_cdc_ordinal"] for row in changelog(source.schema)] == ordinals(windows, tmp_path)
    assert not list((folder / "staging").glob("**/*.parquet"))
    before = mirror(source.schema, hidden=True)
    assert all(window.replay(lake).skipped for window in windows)
    assert mirror(source.schema, hidden=True) == before
    with pytest.raises(DecodeError, match="operation UNSUPPORTED") as caught:
        not_understood(source, rows=20).apply(lake)
    assert caught.value.facts["table"] == "SHOP.ORDERS", "as text: it crossed a process"


def ordinals(windows: Sequence[Window], folder: Path) -> list[int]:
    """Those of the changes, in the order of their commits, as threads stage them."""
    found: list[tuple[int, int]] = []
    for window in windows:
        one = staging(window, folder, task_rows=1)
        committed = one.landed.committed()
        for batch in staged_changes(one.landed.rows(committed), one.decoder):
            found += zip(
                batch["_cdc_commit_scn"].to_pylist(), batch["_cdc_ordinal"].to_pylist(), strict=True
            )
    return [ordinal for _, ordinal in sorted(found)]


def not_understood(source: Source, *, rows: int = 5) -> Window:
    one = source.begin()
    for key in range(900, 900 + rows):
        new = order(key)
        one.insert({name: new[name] for name in source.schema.column_names})
    one.raw(255)
    one.commit()
    return source.cut()
