"""LONG, LONG RAW and UROWID: snapshots read them, and a change in the redo that gives one a value is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import PreflightError
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

L, R = table_id("L"), table_id("R")
AS_SNAPSHOT = {"columns_as": {"BODY": "snapshot"}}
TEXT = "a text of more than 4000 bytes " * 300


def add_long_text(oracle: Oracle) -> None:
    with oracle.owner() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO L VALUES (3, :1, 3)", [TEXT])
        connection.commit()


oracle = oracle_with(
    "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, BODY LONG, N NUMBER(9))",
    "CREATE TABLE R (ID NUMBER(9) PRIMARY KEY, BODY LONG RAW)",
    "INSERT INTO L VALUES (1, 'one', 1)",
    "INSERT INTO L VALUES (2, NULL, 2)",
    "INSERT INTO R VALUES (1, HEXTORAW('00FF'))",
    add_long_text,
)
"""A LONG and a LONG RAW; a table may have one of them."""


def entries(**more: Any) -> list[dict[str, Any]]:
    """Both tables, with the columns as snapshots read them."""
    return [{"name": name, **AS_SNAPSHOT, **more} for name in "LR"]


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "L", "R") as opened:
        opened.configure(*entries())
        opened.begin()
        yield opened


def held(source: Source, table: str = "L") -> dict[int, Any]:
    """The mirror's values by key."""
    rows = source.lake.tables[table_id(table)].rows
    return {key[0]: values["BODY"] for key, (values, _, _) in rows.items()}


def test_snapshots_read_them_and_other_changes_leave_them(oracle: Oracle, source: Source) -> None:
    assert (held(source), held(source, "R")) == ({1: "one", 2: None, 3: TEXT}, {1: b"\x00\xff"})
    oracle.run(
        "UPDATE L SET N = 11 WHERE ID = 1",
        "UPDATE L SET ID = 30 WHERE ID = 3",
        "INSERT INTO L VALUES (4, NULL, 4)",
        "DELETE FROM L WHERE ID = 2",
    )
    source.windows()
    assert source.record("L").state == "ready"
    assert held(source) == {1: "one", 30: TEXT, 4: None}
    source.check_current("L", "R")


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        pytest.param("L", "INSERT INTO L VALUES (5, 'five', 5)", id="long-insert"),
        pytest.param("L", "UPDATE L SET BODY = 'other' WHERE ID = 1", id="long-update"),
        pytest.param("R", "INSERT INTO R VALUES (5, HEXTORAW('05'))", id="long-raw-insert"),
        pytest.param("R", "UPDATE R SET BODY = HEXTORAW('01') WHERE ID = 1", id="long-raw-update"),
    ],
)
def test_a_change_that_gives_one_a_value_stops_its_table(
    oracle: Oracle, source: Source, table: str, statement: str
) -> None:
    """The other table goes on, and a new snapshot reads the value."""
    before = held(source, table)
    oracle.run(statement)
    source.windows()
    record = source.record(table)
    assert (record.state, record.trouble) == ("failed", "undecodable")
    assert " a value, which redo does not carry whole" in str(record.reason)
    assert "column=BODY" in str(record.reason)
    assert held(source, table) == before
    source.pipeline.resnapshot_tables([table_id(table)])
    source.run()
    source.check_current("L", "R")


def test_such_rows_may_go_into_quarantine(oracle: Oracle, source: Source) -> None:
    source.configure(*entries(on_undecodable="quarantine"))
    oracle.run("INSERT INTO L VALUES (5, 'five', 5)", "INSERT INTO L VALUES (6, NULL, 6)")
    source.windows()
    assert source.record("L").state == "ready"
    assert source.lake.tables[L].in_quarantine.num_rows == 1
    assert set(held(source)) == {1, 2, 3, 6}


def test_a_pattern_takes_such_a_column_if_it_is_asked_for(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "L", "R") as source:
        source.configure({"name": "*", "types_as": {"LONG": "snapshot"}})
        source.begin()
        assert held(source) == {1: "one", 2: None, 3: TEXT}
        schema = source.lake.tables[R].schema
        assert schema is not None
        assert schema.column_names == ("ID",)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        pytest.param({}, "BODY LONG .the redo does not carry", id="unasked"),
        pytest.param({"columns_as": {"BODY": "text"}}, "not hold this type as text", id="text"),
        pytest.param(
            {"columns_exclude": ["BODY"], "columns_as": {"N": "snapshot"}},
            "not hold this type as snapshot", id="number",
        ),
    ],
)  # fmt: skip
def test_other_forms_are_refused(
    oracle: Oracle, tmp_path: Path, entry: dict[str, Any], reason: str
) -> None:
    with source_of(oracle, tmp_path, "L") as source:
        source.configure({"name": "L", **entry})
        with pytest.raises(PreflightError, match=reason) as error:
            source.run()
        assert "`columns_as: snapshot`" in str(error.value)


def test_a_urowid_is_read_as_its_characters(oracle: Oracle, tmp_path: Path) -> None:
    """Of rows of another table; LogMiner does not print them."""
    oracle.run(
        "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, BODY UROWID, N NUMBER(9))",
        "INSERT INTO U SELECT 1, ROWID, 1 FROM L WHERE ID = 1",
        "INSERT INTO U SELECT 2, ROWID, 2 FROM L WHERE ID = 2",
        "INSERT INTO U VALUES (3, NULL, 3)",
    )
    with source_of(oracle, tmp_path, "U") as source:
        source.configure({"name": "U", **AS_SNAPSHOT})
        source.run()
        with oracle.owner() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT ID, BODY FROM U")
            wanted = dict(cursor)
        assert held(source, "U") == wanted
        assert len([text for text in wanted.values() if text]) == 2
        oracle.run("UPDATE U SET N = 5 WHERE ID = 2", "INSERT INTO U VALUES (4, NULL, 4)")
        source.windows()
        assert held(source, "U") == {**wanted, 4: None}
        oracle.run("INSERT INTO U SELECT 5, ROWID, 2 FROM L WHERE ID = 1")
        source.windows()
        assert source.record("U").trouble == "undecodable"
