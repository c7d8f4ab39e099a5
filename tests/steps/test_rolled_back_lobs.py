"""Statements with LOBs that a transaction takes back leave nothing in the mirror. Where the release does not show what closes them, the
table stops by name, unless the redo says it otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of

LARGE, SMALL = "n" * 100_000, "small"
WHOLE = "UPDATE L SET TXT = 'PHANTOM', NCL = :1, BL = HEXTORAW('61') WHERE ID = 1"
NCLOB, CLOB, BLOB = oracledb.DB_TYPE_NCLOB, oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_BLOB

TABLE = (
    "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, TXT VARCHAR2(200), N NUMBER(3), CL CLOB, NCL NCLOB, BL BLOB)",
    "INSERT INTO L VALUES (1, 'old text', 1, 'c', 'n', HEXTORAW('01'))",
    "INSERT INTO L VALUES (2, 'old text', 999, 'c', 'n', HEXTORAW('01'))",
)
newest = oracle_with(*TABLE, scope="module", release="23ai")
older = oracle_with(*TABLE, scope="module", release="19c")


@pytest.fixture(params=["key", "rowid", "key-19c"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def oracle(request: pytest.FixtureRequest, kind: str) -> Oracle:
    found: Oracle = request.getfixturevalue("older" if kind == "key-19c" else "newest")
    return found


@pytest.fixture
def source(oracle: Oracle, kind: str, tmp_path: Path) -> Iterator[Source]:
    table: Any = {"name": "L", "identity": "rowid"} if kind == "rowid" else "L"
    with source_of(oracle, tmp_path, capture={"close_at": "online"}) as opened:
        opened.configure(table)
        list(opened.pipeline.run_snapshot())
        yield opened


def check(source: Source, *, stops: bool) -> None:
    """Is all right, or did the table stop since the redo does not show what closes a statement?"""
    record = source.record("L")
    if stops:
        assert record.state == "failed"
        assert "does not show which rows are of that statement" in (record.reason or "")
        return
    assert record.state == "ready", record.reason
    source.check_current("L")


@pytest.mark.parametrize(
    ("sql", "value", "bind", "may_stop"),
    [
        pytest.param(WHOLE, LARGE, NCLOB, True, id="text-large-and-small"),
        pytest.param("UPDATE L SET NCL = :1, CL = 'small' WHERE ID = 1", LARGE, NCLOB, True, id="large-and-small"),
        pytest.param("UPDATE L SET TXT = 'PHANTOM', NCL = :1 WHERE ID = 1", LARGE, NCLOB, True, id="text-and-large"),
        pytest.param("UPDATE L SET NCL = :1 WHERE ID < 3", LARGE, NCLOB, True, id="large-of-two-rows"),
        pytest.param("UPDATE L SET TXT = 'PHANTOM', CL = :1, BL = NULL WHERE ID = 1", SMALL, CLOB, False, id="small"),
        pytest.param("UPDATE L SET CL = :1 WHERE ID < 3", None, CLOB, False, id="null"),
        pytest.param("INSERT INTO L SELECT ID + 100, TXT, N, :1, NCL, BL FROM L", LARGE, CLOB, False, id="an-insert-of-two-rows"),
        pytest.param("INSERT INTO L SELECT ID + 100, TXT, N, CL, :1, EMPTY_BLOB() FROM L", None, NCLOB, False, id="an-insert-of-two-rows-without-lobs"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["UPDATE L SET N = N WHERE ID = 1", "UPDATE L SET NCL = RPAD(TO_NCLOB('b'), 9000, 'b') WHERE ID = 2"], ids=["small-before", "large-before"])  # fmt: skip
def test_a_statement_with_lobs_that_is_taken_back_is_not_applied(
    oracle: Oracle, source: Source, kind: str, sql: str, value: str | None, bind: Any, may_stop: bool, before: str
) -> None:  # fmt: skip
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute(before)
        cursor.execute("SAVEPOINT S")
        cursor.setinputsizes(bind)
        cursor.execute(sql, [value])
        cursor.execute("ROLLBACK TO SAVEPOINT S")
        cursor.execute("UPDATE L SET TXT = 'other row' WHERE ID = 2")
        connection.commit()
    list(source.pipeline.run_windows())
    check(source, stops=may_stop and kind == "key-19c")


def test_a_statement_that_fails_on_its_second_row_is_not_applied(
    oracle: Oracle, source: Source, kind: str
) -> None:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.setinputsizes(NCLOB)
        with pytest.raises(oracledb.DatabaseError, match="ORA-01438"):
            cursor.execute(
                "UPDATE L SET NCL = :1, BL = HEXTORAW('61'), N = N + 1 WHERE ID < 3", [LARGE]
            )
        cursor.execute("UPDATE L SET TXT = 'other row' WHERE ID = 2")
        connection.commit()
    list(source.pipeline.run_windows())
    check(source, stops=kind == "key-19c")


@pytest.mark.parametrize("kind", ["key"], indirect=True)
def test_what_stands_behind_a_statement_is_taken_back_alone(oracle: Oracle, source: Source) -> None:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.setinputsizes(NCLOB)
        cursor.execute("UPDATE L SET TXT = 'kept', NCL = :1 WHERE ID = 1", [LARGE])
        cursor.execute("SAVEPOINT S")
        cursor.execute("UPDATE L SET CL = 'taken back' WHERE ID = 1")
        cursor.execute("ROLLBACK TO SAVEPOINT S")
        connection.commit()
    list(source.pipeline.run_windows())
    check(source, stops=False)


@pytest.mark.parametrize("kind", ["key"], indirect=True)
def test_a_table_that_gets_its_first_lob_may_stop_but_is_never_wrong(
    oracle: Oracle, kind: str, tmp_path: Path
) -> None:
    """The pass that meets the ALTER was not asked for the rows that close statements."""
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE G (ID NUMBER(9) PRIMARY KEY, TXT VARCHAR2(200))")
        cursor.execute("INSERT INTO G VALUES (1, 'old')")
        connection.commit()
        with source_of(oracle, tmp_path, "G", capture={"close_at": "online"}) as source:
            list(source.pipeline.run_snapshot())
            cursor.execute("ALTER TABLE G ADD (NCL NCLOB)")
            cursor.setinputsizes(NCLOB)
            cursor.execute("UPDATE G SET TXT = 'kept', NCL = :1 WHERE ID = 1", [LARGE])
            cursor.execute("SAVEPOINT S")
            cursor.execute("UPDATE G SET NCL = 'taken back' WHERE ID = 1")
            cursor.execute("ROLLBACK TO SAVEPOINT S")
            connection.commit()
            list(source.pipeline.run_windows())
            assert source.record("G").state == "failed"
            list(source.pipeline.resnapshot_tables([source.written().tables[0].table]))
            list(source.pipeline.run_once())
            source.check_current("G")
