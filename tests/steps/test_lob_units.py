"""Offsets of CLOBs count characters or UTF-16 units: what a statement writes is right either way, the rest is read from Oracle or stops the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.redo import LobRows, Wart
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of

FIRE = "🔥 it's fire " * 900


@pytest.fixture(params=["characters", "units"])
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    rows = LobRows.BLOCKS if request.param == "units" else LobRows.PIECES
    with running_oracle(release="23ai", lob_rows=rows) as running:
        running.database.redo.set_wart(Wart.LOB_OFFSETS_IN_UNITS, shown=request.param == "units")
        running.run("CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, C CLOB, NC NCLOB)")
        running.run("INSERT INTO L VALUES (1, 'old', 'old')")
        yield running


@pytest.fixture(params=["key", "rowid"])
def table(request: pytest.FixtureRequest) -> Any:
    return "L" if request.param == "key" else {"name": "L", "identity": "rowid"}


@pytest.fixture(params=["redo", "reselect"])
def source(
    request: pytest.FixtureRequest, oracle: Oracle, table: Any, tmp_path: Path
) -> Iterator[Source]:
    with source_of(
        oracle, tmp_path, capture={"close_at": "online", "lobs": request.param}
    ) as opened:
        opened.configure(table)
        list(opened.pipeline.run_snapshot())
        yield opened


def test_what_a_statement_wrote_is_right_in_either_units(oracle: Oracle, source: Source) -> None:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.setinputsizes(oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_NCLOB)
        cursor.execute("INSERT INTO L VALUES (2, :1, :2)", [FIRE, FIRE])
        cursor.setinputsizes(oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_NCLOB)
        cursor.execute("UPDATE L SET C = :1, NC = :2 WHERE ID = 1", [FIRE, FIRE[:4000]])
        connection.commit()
    list(source.pipeline.run_windows())
    source.check_current("L")


def test_what_a_call_wrote_behind_such_a_character_is_read_from_oracle_or_stops_the_table(
    oracle: Oracle, source: Source
) -> None:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("UPDATE L SET C = '🔥' WHERE ID = 1")
        cursor.execute("SELECT C FROM L WHERE ID = 1 FOR UPDATE")
        (clob,) = cursor.fetchone()
        clob.write("behind", clob.size() + 1)
        connection.commit()
    list(source.pipeline.run_windows())
    record = source.record("L")
    if source.more["capture"]["lobs"] == "reselect":
        source.check_current("L")
        return
    assert record.state == "failed"
    assert "can be read in two ways" in (record.reason or "")
