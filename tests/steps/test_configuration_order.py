"""What an operator types holds from an SCN on, and never changes what a DDL of another time means."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_excluded import landed

T = table_id("T")
KEPT = {"ADD": "ID, NOTE, GONE, OLD, W", "DROP": "ID, NOTE, OLD", "RENAME": "ID, NOTE, GONE, NEW", "MODIFY": "ID, NOTE, GONE, OLD"}  # fmt: skip
DDL = {
    "ADD": "ALTER TABLE T ADD (W VARCHAR2(40))",
    "DROP": "ALTER TABLE T DROP COLUMN GONE",
    "RENAME": "ALTER TABLE T RENAME COLUMN OLD TO NEW",
    "MODIFY": "ALTER TABLE T MODIFY (NOTE VARCHAR2(77))",
}
CHANGES: dict[str, dict[str, Any]] = {
    "exclude": {"columns_exclude": ["SECRET"]},
    "mask": {"columns_mask": {"SECRET": "stars(3)"}},
    "key": {"key": ["ID"]},
}

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(40), NOTE VARCHAR2(40), GONE VARCHAR2(40), OLD VARCHAR2(40))",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T VALUES (1, 'known', 'a', 'a', 'a')",
)


def check(oracle: Oracle, source: Source, columns: str) -> None:
    """The mirror has what Oracle has of these columns."""
    assert source.record("T").state == "ready", source.record("T").reason
    with oracle.owner() as connection:
        cursor = connection.cursor()
        expected = cursor.execute(f"SELECT {columns} FROM T ORDER BY ID").fetchall()
    names = columns.split(", ")
    found = source.lake.rows_by_name(T)
    assert sorted(tuple(row[name] for name in names) for row in found) == [
        tuple(row) for row in expected
    ]
    source.check_current("U")


@pytest.mark.parametrize("ddl", DDL)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "windows", [1, pytest.param(2, marks=pytest.mark.slow)], ids=["in-one-window", "in-two"]
)
def test_a_ddl_that_waits_is_followed_under_a_configuration_that_came_later(
    oracle: Oracle, tmp_path: Path, change: str, ddl: str, windows: int
) -> None:
    """The windows are planned, the operator changes the configuration, and then they are captured."""
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.begin()
        oracle.run("INSERT INTO T VALUES (2, 'known', 'b', 'b', 'b')")
        if windows > 1:
            source.pipeline.plan_windows()
        oracle.run(DDL[ddl], "UPDATE T SET SECRET = 'top secret', NOTE = 'behind' WHERE ID = 1")
        if ddl in ("ADD", "RENAME"):
            oracle.run(f"UPDATE T SET {'W' if ddl == 'ADD' else 'NEW'} = 'x' WHERE ID = 1")
        source.pipeline.plan_windows()
        source.configure({"name": "T", **CHANGES[change]}, "U")
        source.run()
        check(oracle, source, KEPT[ddl])
        oracle.run("UPDATE T SET NOTE = 'later', SECRET = 'top secret'")
        source.run()
        check(oracle, source, KEPT[ddl])
        assert ("top secret" in landed(source)) == (change == "key")
        values = {row["SECRET"] for row in source.lake.rows_by_name(T)}
        assert values == {"exclude": {None}, "mask": {"***"}, "key": {"top secret"}}[change]


NAMED: dict[str, dict[str, Any]] = {
    "exclude": {"columns_exclude": ["LATER"]},
    "mask": {"columns_mask": {"LATER": "stars(3)"}},
    "type": {"columns_as": {"LATER": "text"}},
}


@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("joins", [True, False], ids=["from-the-join", "typed-later"])
@pytest.mark.parametrize("unnamed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_column_is_named_before_it_is_there(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture, named: str, *, joins: bool, unnamed: bool
) -> None:  # fmt: skip
    """The only way in which no value of it lands. Other DDL in between changes nothing."""
    with source_of(oracle, tmp_path, "T", "U") as source:
        if joins:
            source.configure({"name": "T", **NAMED[named]}, "U")
        with caplog.at_level(logging.WARNING):
            source.run()
        said = [one.getMessage() for one in caplog.records]
        assert joins == any("that the table does not have: LATER" in one for one in said)
        source.configure({"name": "T", **NAMED[named]}, "U")
        oracle.run("COMMENT ON TABLE T IS 'a text'", "INSERT INTO U VALUES (1)")
        source.run()
        check(oracle, source, "ID, NOTE, GONE, OLD")
        if unnamed:
            oracle.database.redo.set_wart(Wart.UNNAMED_COLUMNS, shown=True)
        oracle.run(
            "ALTER TABLE T ADD (LATER NUMBER(9))" if named == "type" else "ALTER TABLE T ADD (LATER VARCHAR2(40), W VARCHAR2(40))",
            f"UPDATE T SET LATER = {'77' if named == 'type' else repr('top secret')}, NOTE = 'behind' WHERE ID = 1",
        )  # fmt: skip
        source.run()
        check(oracle, source, "ID, NOTE, GONE, OLD")
        assert "top secret" not in landed(source)
        expected = {"exclude": None, "mask": "***", "type": "77"}[named]
        [row] = source.lake.rows_by_name(T)
        assert row.get("LATER") == expected


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(["ALTER TABLE T DROP COLUMN SECRET"], id="dropped"),
        pytest.param(["ALTER TABLE T SET UNUSED (SECRET)"], id="unused"),
        pytest.param(["ALTER TABLE T SET UNUSED (SECRET)", "ALTER TABLE T DROP UNUSED COLUMNS"], id="unused-and-dropped"),
        pytest.param(["ALTER TABLE T MODIFY (SECRET VARCHAR2(45))"], id="modified"),
        pytest.param(["ALTER TABLE T MODIFY (SECRET VARCHAR2(45))", "ALTER TABLE T ADD (W VARCHAR2(9))", "UPDATE T SET W = 'w'"], id="modified-and-another-added"),
        pytest.param(["ALTER TABLE T ADD (W VARCHAR2(9))", "ALTER TABLE T MODIFY (SECRET VARCHAR2(45))", "UPDATE T SET W = 'w'"], id="another-added-and-modified"),
        pytest.param(["COMMENT ON COLUMN T.SECRET IS 'a text'", "ALTER TABLE T ADD (W VARCHAR2(9))", "UPDATE T SET W = 'w'"], id="commented-and-another-added"),
        pytest.param(["ALTER TABLE T DROP COLUMN SECRET", "ALTER TABLE T ADD (SECRET VARCHAR2(40))", "UPDATE T SET SECRET = 'top secret'"], id="dropped-and-added"),
        pytest.param(["ALTER TABLE T ADD (W VARCHAR2(9))", "ALTER TABLE T RENAME COLUMN NOTE TO NOTES", "UPDATE T SET W = 'w', NOTES = 'n'"], id="another-renamed"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("waits", [False, True], ids=["at-once", "typed-while-it-waits"])
def test_a_ddl_of_an_excluded_column_stops_nothing(
    oracle: Oracle, tmp_path: Path, statements: list[str], *, waits: bool
) -> None:
    entry = {"name": "T", "columns_exclude": ["SECRET"]}
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.begin()
        if not waits:
            source.configure(entry, "U")
            source.run()
        oracle.run("UPDATE T SET SECRET = 'top secret' WHERE ID = 1", *statements)
        oracle.run("UPDATE T SET OLD = 'behind'")
        source.pipeline.plan_windows()
        source.configure(entry, "U")
        source.run()
        oracle.run("INSERT INTO T (ID, OLD) VALUES (7, 'later')")
        source.run()
        added = any("(W " in one for one in statements)
        note = "NOTES" if any("NOTES" in one for one in statements) else "NOTE"
        check(oracle, source, f"ID, {note}, GONE, OLD{', W' if added else ''}")
        assert "top secret" not in landed(source)


@pytest.mark.parametrize(
    "statement",
    ["ALTER TABLE T RENAME COLUMN SECRET TO OPEN", "ALTER TABLE T RENAME COLUMN NOTE TO LATER"],
)
def test_a_rename_from_or_to_an_excluded_name_stops_the_table(
    oracle: Oracle, tmp_path: Path, statement: str
) -> None:
    """Nobody has said that the values may be captured, or what becomes of those that are in the lake."""
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.configure({"name": "T", "columns_exclude": ["SECRET", "LATER"]}, "U")
        source.begin()
        oracle.run("UPDATE T SET SECRET = 'top secret'", statement, "UPDATE T SET OLD = 'behind'")
        if "OPEN" in statement:
            oracle.run("UPDATE T SET OPEN = 'top secret'")
        source.run()
        record = source.record("T")
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert "excluded" in (record.reason or "")
        assert "top secret" not in landed(source)
        source.check_current("U")


def test_a_rename_of_a_column_with_a_type_of_its_own_stops_the_table(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run("ALTER TABLE T ADD (N NUMBER(9))")
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.configure({"name": "T", "columns_as": {"N": "text"}}, "U")
        source.run()
        oracle.run("ALTER TABLE T RENAME COLUMN N TO M", "UPDATE T SET M = 7")
        source.run()
        record = source.record("T")
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert "columns_as" in (record.reason or "")
