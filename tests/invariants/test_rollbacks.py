"""Transactions that take rows back in every way, and a LOB transaction that windows cut at each of its rows: the tables equal Oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.redo import DEFAULT_WARTS, LobRows
from tests.invariants import lob_statements
from tests.invariants.rollbacks import run
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_every_border import now


@pytest.mark.parametrize(
    "transactions",
    [
        pytest.param(60, id="some"),
        pytest.param(
            10_000, id="ten-thousand", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]
        ),
    ],
)
def test_what_transactions_take_back_is_in_no_table(transactions: int, tmp_path: Path) -> None:
    """Nested savepoints, statements that are refused, LOBs whole and in part, rows that move, windows between any two statements."""
    met = run(transactions, 20, tmp_path)
    assert met["transactions"] >= transactions
    assert met["comparisons"] >= 6


def test_statements_with_lobs_that_are_taken_back_are_in_no_table(tmp_path: Path) -> None:
    """Large, small, NULL and empty LOBs, one row and several, failures in the middle; by key and by ROWID."""
    met = lob_statements.run(3, 4, tmp_path)
    assert met["rowid: equal"] + met["key: equal"] > 20
    assert met["savepoints taken back"] > 20


@pytest.fixture(params=list(LobRows), ids=lambda shape: shape.value)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    with running_oracle(warts=DEFAULT_WARTS, lob_rows=request.param) as running:
        running.run("CREATE TABLE DOCS (ID NUMBER(9) PRIMARY KEY, N NUMBER(9), C CLOB, B BLOB)")
        yield running


def change_lobs(oracle: Oracle, key: int) -> None:
    """One transaction with LOBs in and out of their rows, several in a row and several times, one INSERT taken back, parts written."""
    rng = random.Random(key)
    text, data = "".join(rng.choices("ab'é🔥", k=9000)), rng.randbytes(17_000)
    with oracle.owner() as connection:
        cursor = connection.cursor()
        kinds = (None, oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_BLOB)

        def put(sql: str, *values: Any) -> None:
            cursor.setinputsizes(*kinds[: len(values)])
            cursor.execute(sql, values)

        put("INSERT INTO DOCS VALUES (:1, 0, :2, :3)", key, text, data)
        cursor.execute("SAVEPOINT here")
        put("INSERT INTO DOCS VALUES (:1, 0, :2, :3)", key + 1, text, data)
        cursor.execute("ROLLBACK TO SAVEPOINT here")
        cursor.execute("UPDATE DOCS SET N = 1 WHERE ID = :1", [key])
        cursor.execute("SELECT C, B FROM DOCS WHERE ID = 0 FOR UPDATE")
        clob, blob = cursor.fetchone()
        clob.write(f"part {key}", 3)
        blob.write(data[:50], 9000)
        cursor.setinputsizes(oracledb.DB_TYPE_CLOB, None)
        cursor.execute("UPDATE DOCS SET C = :1 WHERE ID = :2", [text[:7000], key])
        cursor.execute("UPDATE DOCS SET C = 'small', N = 2 WHERE ID = :1", [key])
        clob.trim(8000 - key)
        connection.commit()


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.setinputsizes(None, oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_BLOB)
        cursor.execute("INSERT INTO DOCS VALUES (:1, 0, :2, :3)", [0, "o" * 9000, bytes(12_000)])
        connection.commit()
    more = {"capture": {"close_at": "online", "lobs": "reselect"}}
    with source_of(oracle, tmp_path, "DOCS", **more) as opened:
        list(opened.pipeline.run_snapshot())
        yield opened


def carry(source: Source, until: int) -> int:
    """Windows up to an SCN, captured and applied; returns how many."""
    windows = source.pipeline.plan_windows(until=until)
    for window in windows:
        source.pipeline.capture_window(window)
        source.pipeline.apply_window(window)
        assert source.record("DOCS").state == "ready", source.record("DOCS").reason
    return len(windows)


def test_a_lob_transaction_that_windows_cut_at_every_row_is_the_same(
    oracle: Oracle, source: Source
) -> None:
    start = now(source)
    change_lobs(oracle, 10)
    windows = sum(carry(source, scn) for scn in range(start, now(source) + 1))
    assert windows > 12
    source.check_current("DOCS")
    assert [row[0] for row in source.lake.image(table_id("DOCS"))] == [0, 10]


@pytest.mark.slow
def test_a_lob_transaction_that_a_window_cuts_at_each_of_its_rows_is_the_same_each_time(
    oracle: Oracle, source: Source
) -> None:
    start = now(source)
    change_lobs(oracle, 10)
    scns = now(source) - start
    carry(source, now(source))
    assert scns > 12
    for cut in range(1, scns):
        start = now(source)
        change_lobs(oracle, 10 + 10 * cut)
        carry(source, start + cut)
        carry(source, now(source))
        source.check_current("DOCS")
