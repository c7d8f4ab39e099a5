"""A process may end before and after each commit to the metadata store, and before and after each call of the lake: what runs
next finishes the work, and nothing is lost or doubled."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection

from cdc_core.errors import LakeError
from cdc_core.state.captured_tables import CapturedTables
from cdc_core.state.chunks import Chunks
from cdc_core.state.database import Database
from cdc_core.state.windows import Windows
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

NAMES = ("ONE", "TWO")


class CrashError(BaseException):
    """The end of the process, so to speak."""


class Crash:
    """Ends the process in a method of the store: before its commit is there, or right after it."""

    def __init__(self) -> None:
        self._inside = threading.local()
        self._when = ""
        self._method = ""
        self.happened = False

    def arm(self, method: str, when: str) -> None:
        self._method, self._when, self.happened = method, when, False

    def install(self, monkeypatch: pytest.MonkeyPatch, *methods: str) -> None:
        for method in methods:
            part, name = method.split(".")
            original = getattr(PARTS[part], name)
            monkeypatch.setattr(PARTS[part], name, self._named(method, original))
        writing = Database.writing

        @contextmanager
        def wrapped(database: Database, **options: bool) -> Iterator[Connection]:
            is_it = getattr(self._inside, "method", "") == self._method and not self.happened
            with writing(database, **options) as connection:
                yield connection
                if is_it and self._when == "before":
                    self._happen()
            if is_it and self._when == "after":
                self._happen()

        monkeypatch.setattr(Database, "writing", wrapped)

    def _named(self, method: str, original: Any) -> Any:
        def named(*args: Any, **kwargs: Any) -> Any:
            self._inside.method = method
            try:
                return original(*args, **kwargs)
            finally:
                self._inside.method = ""

        return named

    def _happen(self) -> None:
        self.happened = True
        raise CrashError


PARTS: dict[str, type] = {"windows": Windows, "chunks": Chunks, "tables": CapturedTables}
WINDOW_METHODS = (
    "windows.plan",
    "windows.record_captured",
    "windows.advance_tables",
    "windows.record_applied",
)
CHUNK_METHODS = (
    "chunks.plan",
    "chunks.record_landed",
    "chunks.record_applied",
    "tables.finish_snapshot",
)

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in NAMES),
    *(
        f"INSERT INTO {name} SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 250"
        for name in NAMES
    ),
)
source = capturing(*NAMES, snapshot={"chunk_rows": 100}, runs=False)


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch) -> Crash:
    made = Crash()
    made.install(monkeypatch, *WINDOW_METHODS, *CHUNK_METHODS, "tables.plan_chunks")
    return made


def crashed(source: Source) -> None:
    with pytest.raises(CrashError):
        source.run()
    source.close()


def change(oracle: Oracle, number: int) -> None:
    """New rows, rows that move, rows that go; and a transaction that spans windows."""
    oracle.run(
        f"INSERT INTO ONE VALUES ({1000 + number}, 'new')",
        f"UPDATE TWO SET ID = {2000 + number} WHERE ID = (SELECT MIN(ID) FROM TWO)",
        f"UPDATE ONE SET V = 'v{number}' WHERE ID = 3",
        f"DELETE FROM ONE WHERE ID = {999 + number}",
    )


def test_a_crash_at_any_commit_of_the_log_path_loses_and_doubles_nothing(
    oracle: Oracle, source: Source, crash: Crash
) -> None:
    source.begin()
    with oracle.owner() as long:
        number = 0
        for method in WINDOW_METHODS:
            for when in ("before", "after"):
                number += 1
                for base in (5000, 6000):  # so one of them at least is in the log before its COMMIT
                    long.cursor().execute(f"INSERT INTO TWO VALUES ({base + number}, 'long')")
                change(oracle, number)
                crash.arm(method, when)
                crashed(source)
                assert crash.happened, (method, when)
                source.run()
                source.check_current(*NAMES)
        long.commit()
    source.run()
    source.check_current(*NAMES)
    for name in NAMES:
        changes = source.lake.tables[table_id(name)].changes
        assert len({one["_cdc_ordinal"] for one in changes}) == len(changes)
    assert sum(1 for row in source.lake.image(table_id("TWO")) if row[1] == "long") == 2 * number


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["tables.plan_chunks", *CHUNK_METHODS[1:]])
def test_a_crash_at_any_commit_of_the_snapshot_path_loses_and_doubles_nothing(
    oracle: Oracle, source: Source, crash: Crash, method: str, when: str
) -> None:
    crash.arm(method, when)
    crashed(source)
    assert crash.happened
    for name in NAMES:
        assert source.record(name).state != "ready" or not unfinished(source, name)
    source.close()
    change(oracle, 1)
    source.run()
    source.check_current(*NAMES)


def unfinished(source: Source, name: str) -> list[Any]:
    chunks = source.pipeline.store.chunks.find(table_id(name))
    return [one for one in chunks if one.state != "applied"]


def test_no_table_is_ready_before_its_last_chunk_is_in_the_lake(
    oracle: Oracle, source: Source
) -> None:
    keys = source.pipeline.start_snapshot()
    for key in keys:
        source.pipeline.snapshot_chunk(key)
    left = Counter(key.table.name for key in keys)
    assert min(left.values()) > 1
    for key in keys:
        assert source.record(key.table.name).state == "snapshotting"
        source.pipeline.apply_chunk(key)
        left[key.table.name] -= 1
        assert (source.record(key.table.name).state == "ready") is (left[key.table.name] == 0)


def test_a_position_is_not_recorded_before_the_lake_has_the_window(
    oracle: Oracle, source: Source
) -> None:
    source.begin()
    before = source.record("ONE").mirror_scn
    change(oracle, 1)
    seen: list[int | None] = []
    source.lake.before = lambda call, table: (
        seen.append(source.record(table.name).mirror_scn) if call == "apply_window" else None
    )
    source.lake.fail(table_id("ONE"), LakeError("the folder is not writable", hint="Mend it."))
    source.run()
    assert source.record("ONE").mirror_scn == before
    assert len(seen) == 2
    source.pipeline.resume_tables([table_id("ONE")])
    source.run()
    source.check_current(*NAMES)
