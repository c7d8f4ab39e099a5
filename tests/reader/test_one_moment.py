"""A join over several mirrors, read again and again while windows are applied, is always one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.model.reports import Cut
from cdc_core.state.windows import Windows
from cdc_core.steps import Pipeline
from redolake.reader import open as open_lake
from tests.oracle.embedded import Oracle, running_oracle

TABLES = ("ACCOUNT_A", "ACCOUNT_B", "ACCOUNT_C")
ACCOUNTS = 5
START = 1000
WHOLE = len(TABLES) * ACCOUNTS * START
WINDOWS, WINDOWS_MAX = 8, 400


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    """Accounts in three tables, and one more table in which nothing happens."""
    with running_oracle() as running:
        for name in TABLES:
            running.run(
                f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, BALANCE NUMBER(9))",
                *(f"INSERT INTO {name} VALUES ({key}, {START})" for key in range(ACCOUNTS)),
            )
        running.run("CREATE TABLE IDLE (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO IDLE VALUES (1)")
        yield running


@contextmanager
def _beside(work: Any) -> Iterator[None]:
    """Call this again and again in a thread, for as long as the block lasts; its error is ours."""
    ended, errors = Event(), []

    def loop() -> None:
        turn = 0
        try:
            while not ended.is_set():
                work(turn)
                turn += 1
                ended.wait(0.01)
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]


def _sum(tables: Iterator[Any]) -> int:
    return sum(sum(one.select("BALANCE").to_arrow()["BALANCE"].to_pylist()) for one in tables)


def test_the_accounts_of_all_mirrors_together_hold_what_they_held(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transfers between tables are one transaction; a sum over versions of two moments differs from the whole."""
    config = oracle.config(
        tmp_path,
        *TABLES,
        "IDLE",
    )
    connection = oracle.owner()
    seen: list[int] = []
    apart: list[bool] = []

    def transfer(turn: int) -> None:
        out_of, into = TABLES[turn % 3], TABLES[(turn + 1 + turn % 2) % 3]
        cursor = connection.cursor()
        cursor.execute(f"UPDATE {out_of} SET BALANCE = BALANCE - 7 WHERE ID = {turn % ACCOUNTS}")
        cursor.execute(f"UPDATE {into} SET BALANCE = BALANCE + 7 WHERE ID = {turn % 2}")
        connection.commit()

    def read(_turn: int) -> None:
        cut = open_lake(tmp_path / "lake").at()
        found = [one for one in cut.tables() if not one.name.endswith("IDLE")]
        assert (len(found), list(cut.left_out())) == (3, [])
        assert _sum(iter(found)) == WHOLE, cut.scn
        seen.append(cut.scn)
        newest = [DeltaTable(one.path) for one in found]
        apart.append(sum(map(_balance, newest)) != WHOLE)

    advance = Windows.advance_tables

    def look_between(self: Windows, *given: Any) -> None:
        """One look falls between the commits of two mirrors in any case."""
        advance(self, *given)
        if len(given) > 2:
            read(0)

    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        monkeypatch.setattr(Windows, "advance_tables", look_between)
        with _beside(transfer), _beside(read):
            for turn in range(WINDOWS_MAX):
                list(pipeline.run_once())
                if turn + 1 >= WINDOWS and len(set(seen)) > 3 and any(apart):
                    break
        assert len(seen) > WINDOWS
        assert len(set(seen)) > 3, "the cut went forward meanwhile"
        assert any(apart), "newest versions alone are of several moments now and then"
        _check_duckdb(pipeline, tmp_path / "views.duckdb", sorted(set(seen))[-2:])


def _balance(table: DeltaTable) -> int:
    rows = QueryBuilder().register("t", table).execute('SELECT SUM("BALANCE") AS s FROM t')
    return int(rows.read_all()["s"][0].as_py())


def _check_duckdb(pipeline: Pipeline, file: Path, scns: list[int]) -> None:
    """The views of a file show one cut after the other."""
    union = " UNION ALL ".join(f"SELECT BALANCE FROM demo_{name.lower()}" for name in TABLES)
    sums: list[Cut] = []
    for scn in scns:
        found = pipeline.create_duckdb_views(pipeline.cut_at(scn), file)
        assert (len(found.tables), found.left_out) == (4, ())
        with duckdb.connect(str(file)) as database:
            [(whole,)] = database.execute(f"SELECT SUM(BALANCE) FROM ({union})").fetchall()
        assert whole == WHOLE
        sums.append(found)
    assert sums[0].tables != sums[1].tables
