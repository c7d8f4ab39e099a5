"""A whole source for tests of the steps: the embedded Oracle through the real driver, and a lake in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_core.config import SourceConfig
from cdc_core.decode import number_text
from cdc_core.decode.printed import zoned_text
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import StepReport, TableStatus
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import Printed, is_number_text, is_timestamp_text, printed_as
from cdc_core.snapshot.plan import ChunkRange
from cdc_core.snapshot.read import chunk_query
from cdc_core.steps import Pipeline
from cdc_core.steps.reconciliation import _oracle_rows
from tests.oracle.embedded import OWNER, KeptDatabase, Oracle, Recipe
from tests.steps.memory_lake import MemoryLake


def table_id(name: str) -> TableId:
    """A table of the test's schema owner."""
    return TableId(OWNER, name)


def _nothing(_source: Source) -> None:
    """Comes behind the first run unless a test says otherwise."""


@dataclass
class Source:
    """A source on the embedded Oracle, whose pipeline can be closed and opened again, also with another configuration."""

    oracle: Oracle
    path: Path
    tables: list[dict[str, Any]]
    lake: MemoryLake = field(default_factory=MemoryLake)
    more: dict[str, Any] = field(default_factory=dict)
    reports: list[StepReport] = field(default_factory=list)
    _pipeline: Pipeline | None = None

    @classmethod
    def of(cls, oracle: Oracle, path: Path, /, *names: str, **more: Any) -> Source:
        """A source of the named tables."""
        return cls(oracle, path, [{"name": f"{OWNER}.{name}"} for name in names], more=more)

    @property
    def pipeline(self) -> Pipeline:
        """The open pipeline."""
        if self._pipeline is None:
            self._pipeline = Pipeline(
                self.written(), report=self.reports.append, open_lake=self.lake.open
            )
        return self._pipeline

    def asked(self) -> list[str]:
        """The statements that Oracle is sent from now on, in new sessions."""
        sent: list[str] = []
        database = self.pipeline.database
        database._on_statement = sent.append
        database.close()
        return sent

    def written(self) -> SourceConfig:
        """The configuration as a file would have it."""
        return self.oracle.config(self.path, **{**self.more, "tables": self.tables})

    def configure(self, *tables: str | dict[str, Any]) -> None:
        """Go on under a configuration with these tables (a name, or a table's attributes)."""
        self.close()
        self.tables = [
            {"name": f"{OWNER}.{one}"}
            if isinstance(one, str)
            else {**one, "name": f"{OWNER}.{one['name']}"}
            for one in tables
        ]

    def close(self) -> None:
        """End the process, so to speak."""
        if self._pipeline is not None:
            self._pipeline.close()
        self._pipeline = None

    def run(self) -> list[StepReport]:
        """All that there is to do now."""
        return list(self.pipeline.run_once())

    def snapshot(self) -> None:
        """The first snapshot alone."""
        list(self.pipeline.run_snapshot())

    def begin(
        self,
        then: Callable[[Source], object] = _nothing,
        *,
        first: Callable[[Source], object] = run,
    ) -> None:
        """The first run, and what comes ``then``. Sources that begin alike, with equal databases and
        configurations, share it: each goes on with a copy of what it left, in a process of its own,
        so to speak. What is not said in database and configuration must not matter to it."""
        if self.oracle.is_running:
            first(self)
            then(self)
            return
        kept = _first_run(self, first, then)
        self.oracle.start(kept.database)
        for name, content in kept.files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.lake = deepcopy(kept.lake)
        self.reports += kept.reports

    def windows(self) -> list[ScnWindow]:
        """Windows up to the present, captured and applied."""
        return [
            ScnWindow.parse(report.key)
            for report in self.pipeline.run_windows()
            if report.kind == "window-applied"
        ]

    def capture(self) -> list[ScnWindow]:
        """Windows up to the present, captured and not applied."""
        windows = self.pipeline.plan_windows()
        for window in windows:
            self.pipeline.capture_window(window)
        return windows

    def read_chunk(self, table: TableId) -> ChunkKey:
        """A new snapshot of a table that is one chunk, read and not applied."""
        [key] = self.pipeline.start_snapshot([table])
        self.pipeline.snapshot_chunk(key)
        return key

    def ops(self, name: str) -> str:
        """What the change log has of a table besides its snapshot, in order."""
        changes = self.lake.tables[table_id(name)].changes
        places = [(one["_cdc_commit_scn"], one["_cdc_ordinal"]) for one in changes]
        assert places == sorted(places)
        return "".join(one["_cdc_op"] for one in changes)

    def check_replayed(self, name: str, windows: Sequence[ScnWindow]) -> None:
        """Old windows again, newest first, change nothing of a table."""
        rows = dict(self.lake.tables[table_id(name)].rows)
        for window in reversed(windows):
            self.pipeline.replay_window(window)
        assert self.lake.tables[table_id(name)].rows == rows

    def record(self, name: str) -> TableRecord:
        """What the metadata store has of a table."""
        found = self.pipeline.store.tables.get(table_id(name))
        assert found is not None
        return found

    def status(self, name: str) -> TableStatus:
        """What `redolake status` shows of a table."""
        [found] = [one for one in self.pipeline.status().tables if one.table == f"{OWNER}.{name}"]
        return found

    def oracle_rows(self, name: str, scn: int) -> list[tuple[Any, ...]]:
        """The table in Oracle AS OF SCN, as :meth:`MemoryLake.image` gives the mirror."""
        config = self.pipeline.config
        with self.pipeline.database.session() as session:
            schema = read_table_schema(session, config.table(table_id(name)), scn=scn)  # type: ignore[arg-type]
            sql, binds = chunk_query(schema, ChunkRange.whole(), scn, None)  # type: ignore[arg-type]
            return sorted((_row(schema, row) for row in session.fetch_all(sql, binds)), key=repr)

    def compared_rows(self, name: str) -> list[tuple[Any, ...]]:
        """What a comparison with Oracle holds against the mirror, in the order of the first column."""
        at = Scn(self.record(name).mirror_scn or 0)
        schema = self.pipeline.store.schemas.at(table_id(name), at)
        assert schema is not None
        names, whole = list(schema.column_names), [(None, ChunkRange.whole())]
        with self.pipeline.database.session() as session:
            parts = _oracle_rows(self.pipeline, session, schema, whole, at)
            read = [pq.read_table(path, columns=names) for _, paths in parts for path in paths]
        rows = [tuple(row.values()) for one in read for row in one.to_pylist()]
        return sorted(rows, key=lambda row: row[0])

    def check_exact(self, *names: str) -> None:
        """Every named table stands at one position and equals Oracle there."""
        for name in names:
            position = self.record(name).mirror_scn
            assert position is not None, name
            found = self.lake.image(table_id(name), of_oracle=True)
            assert found == self.oracle_rows(name, position), name

    def check_followed(self, name: str) -> None:
        """A table is what :meth:`check_current` says, in the stream that it began with."""
        record = self.record(name)
        assert (record.state, record.generation) == ("ready", 1), record.reason
        self.check_current(name)

    def check_current(self, *names: str) -> None:
        """Every named table has the last window (a snapshot may be ahead of it), and equals Oracle there."""
        newest = self.pipeline.store.windows.find(newest_first=True, limit=1)
        position = (
            newest[0].window.scn_high if newest else 0
        )  # none where nothing followed the snapshot
        for name in names:
            assert (self.record(name).mirror_scn or 0) >= position, name
        self.check_exact(*names)


@dataclass(frozen=True)
class KeptRun:
    """What a first run left: the database, the files of the source by their paths, and the lake."""

    database: KeptDatabase
    files: dict[str, bytes]
    lake: MemoryLake
    reports: tuple[StepReport, ...]


_RUNS: OrderedDict[tuple[Recipe, str, type, object, object], KeptRun] = OrderedDict()
_RUNS_KEPT = 8


def _first_run(
    source: Source, first: Callable[[Source], object], then: Callable[[Source], object]
) -> KeptRun:
    """Of a source like this one."""
    recipe = source.oracle.recipe
    key = (recipe, repr((source.tables, source.more)), type(source.lake), first, then)
    if key not in _RUNS:
        with TemporaryDirectory() as name:
            folder, oracle = Path(name), Oracle(recipe)
            made = Source(
                oracle, folder, deepcopy(source.tables), type(source.lake)(), more=source.more
            )
            try:
                first(made)
                then(made)
                made.close()
                paths = [path for path in folder.rglob("*") if path.is_file()]
                files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
                _RUNS[key] = KeptRun(oracle.kept(), files, made.lake, tuple(made.reports))
            finally:
                made.close()
                oracle.stop()
        if len(_RUNS) > _RUNS_KEPT:
            _RUNS.popitem(last=False)
    return _RUNS[key]


def _row(schema: TableSchema, fetched: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of :func:`chunk_query`, behind whose columns stands for each LOB whether it is empty, in place of NULL; numbers that are held as
    text come in Oracle's own bytes, times with zone as it prints them."""
    columns = schema.columns
    lobs = (at for at, column in enumerate(columns) if column.may_be_empty)
    row = [
        number_text(pa.array([value], pa.large_binary()))[0].as_py()
        if is_number_text(column)
        else zoned_text(value)
        if value is not None and printed_as(column) is Printed.ZONED
        else value.lstrip(" ")  # the place of a year's sign
        if is_timestamp_text(column) and value is not None
        else value
        for column, value in zip(columns, fetched, strict=False)
    ]
    for at, is_empty in zip(lobs, fetched[len(columns) :], strict=True):
        if is_empty:
            row[at] = b"" if columns[at].data_type == "BLOB" else ""
    return tuple(row)


def run_random_changes(
    source: Source, rng: Random, change: Callable[..., None], *, steps: int, created: int, last: str
) -> None:
    """Transactions of several changes, some of which are taken back, with windows inside of two.

    ``change(rng, cursor, key, is_new=…)`` writes one row; the first ``created`` steps are new rows.
    ``last`` are the statements, behind semicolons, that end the transaction that is open then.
    """
    with source.oracle.owner() as connection:
        cursor = connection.cursor()
        for step in range(steps):
            is_new = step < created
            change(rng, cursor, step if is_new else rng.randrange(created), is_new=is_new)
            if step in (4, 9):
                cursor.execute("SAVEPOINT here")
                change(rng, cursor, 100 + step, is_new=True)
                change(rng, cursor, 200 + step, is_new=True)
                cursor.execute("ROLLBACK TO SAVEPOINT here")
            if step in (7, 21):
                source.windows()
            if step % 6 == 5:
                connection.commit()
        for statement in last.split("; "):
            cursor.execute(statement)
        connection.commit()
    source.windows()


@contextmanager
def source_of(oracle: Oracle, path: Path, /, *names: str, **more: Any) -> Iterator[Source]:
    """A source for the block."""
    source = Source.of(oracle, path, *names, **more)
    try:
        yield source
    finally:
        source.close()


def capturing(
    *tables: str | dict[str, Any],
    runs: bool = True,
    then: Callable[[Source], object] = _nothing,
    **more: Any,
) -> Any:
    """A fixture: a source of the fixture ``oracle`` with these tables, which has run once, and has
    done what comes ``then``.

    Tables and ``more`` are those of :meth:`Source.configure` and :func:`source_of`. A module says
    ``source = capturing("ONE", "TWO")``.
    """

    @pytest.fixture
    def source(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
        with source_of(oracle, tmp_path, **more) as opened:
            opened.configure(*tables)
            if runs:
                opened.begin(then)
            yield opened

    return source
