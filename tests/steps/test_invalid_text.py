"""Texts that are not UTF-8, through the embedded Oracle and the driver: one table is concerned, and has a way out; nothing of it lands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_core.model.texts import NOT_TEXT
from oracle_embedded.redo import DEFAULT_WARTS
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

BYTE = "UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('41FF42'))"
"""A, a byte that is in no UTF-8, B."""
READ = "A\ufffdB"

TABLES = (
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40), C CHAR(9))",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    "INSERT INTO T VALUES (1, 'one', 'c')",
    "INSERT INTO U VALUES (1, 'one')",
)

FORMS = [
    pytest.param(f"INSERT INTO T VALUES (9, {BYTE}, 'c')", "V", id="inserted"),
    pytest.param(f"INSERT INTO T VALUES (9, 'v', {BYTE})", "C", id="in-a-char"),
    pytest.param(f"UPDATE T SET V = {BYTE} WHERE ID = 1", "V", id="updated"),
    pytest.param(
        f"INSERT INTO T VALUES (9, '\u00e9' || {BYTE} || '\u20ac', 'c')", "V", id="beside-others"
    ),
]

oracle = oracle_with(*TABLES)


def mirror(source: Source, name: str = "T") -> dict[int, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in source.lake.image(table_id(name))}


def stopped(source: Source, column: str) -> None:
    """T stops, says which column, and U goes on."""
    record = source.record("T")
    assert record.state == "failed", record
    assert record.reason is not None
    assert NOT_TEXT in record.reason
    assert f"column={column}" in record.reason
    assert "DEMO.T" in record.reason
    assert record.way_out is not None
    assert "on_invalid_text: replace" in record.way_out
    source.check_current("U")


def nothing_spoiled(path: Path) -> None:
    """All that landed is readable."""
    files = list(path.rglob("*.parquet"))
    assert files
    for file in files:
        pq.read_table(file).validate(full=True)


@pytest.mark.parametrize(("sql", "column"), FORMS)
def test_a_value_in_the_redo_stops_its_table_alone(
    oracle: Oracle, tmp_path: Path, sql: str, column: str
) -> None:
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.begin()
        oracle.run(sql, "INSERT INTO U VALUES (2, 'two')")
        source.run()
        stopped(source, column)
        nothing_spoiled(tmp_path)
        oracle.run("INSERT INTO U VALUES (3, 'three')")
        source.run()
        source.check_current("U")
        source.configure({"name": "T", "on_invalid_text": "replace"}, "U")
        source.pipeline.resume_tables([table_id("T")])
        source.run()
        assert source.record("T").state == "ready"
        assert any(READ in str(value) for value in mirror(source).values())
        assert NOT_TEXT not in repr(source.record("T"))


def test_a_statement_in_pieces_is_judged_whole(oracle: Oracle, tmp_path: Path) -> None:
    """A piece may end inside a character, which is fine; the byte in another piece is found."""
    oracle.run("CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(4000), W VARCHAR2(4000))")
    with source_of(oracle, tmp_path, "L", "U") as source:
        source.run()
        filled = "RPAD('\U0001f525', 1000, '\U0001f525')"
        oracle.run(f"INSERT INTO L VALUES (1, {filled}, {filled})")
        source.run()
        source.check_current("L")
        oracle.run(f"INSERT INTO L VALUES (2, {filled}, 'x' || {BYTE})")
        source.run()
        assert source.record("L").state == "failed"
        assert "column=W" in (source.record("L").reason or "")
        source.check_current("U")


def test_a_replacement_character_of_the_user_is_a_value(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.begin()
        oracle.run(f"INSERT INTO T VALUES (2, '{READ}', 'c')")
        source.run()
        source.check_current("T")


@pytest.mark.parametrize(("sql", "column"), FORMS)
def test_columns_exclude_is_a_way_out(
    oracle: Oracle, tmp_path: Path, sql: str, column: str
) -> None:
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.begin()
        oracle.run(sql)
        source.run()
        stopped(source, column)
        source.configure({"name": "T", "columns_exclude": [column]}, "U")
        source.pipeline.resume_tables([table_id("T")])
        source.run()
        assert source.record("T").state == "ready"
        assert READ not in str(mirror(source))
        # What is left out never lands, and stops nothing.
        oracle.run(f"UPDATE T SET {column} = {BYTE}")
        source.run()
        assert source.record("T").state == "ready"


def test_quarantine_takes_the_row_and_the_table_goes_on(oracle: Oracle, tmp_path: Path) -> None:
    policies = {"on_undecodable": "quarantine"}
    with source_of(oracle, tmp_path, "T", "U", policies=policies) as source:
        source.begin()
        oracle.run(f"INSERT INTO T VALUES (9, {BYTE}, 'c')", "INSERT INTO T VALUES (10, 'v', 'c')")
        source.run()
        assert source.status("T").in_quarantine == 1
        [row] = source.lake.tables[table_id("T")].in_quarantine.to_pylist()
        assert (row["operation"], row["status"]) == ("INSERT", 0)
        assert NOT_TEXT in row["reason"]
        assert "column=V" in row["reason"]
        assert sorted(mirror(source)) == [1, 10]


def test_a_key_is_never_replaced(oracle: Oracle, tmp_path: Path) -> None:
    """Two keys could become one."""
    oracle.run(
        "CREATE TABLE K (V VARCHAR2(9) PRIMARY KEY, W VARCHAR2(9))",
        "INSERT INTO K VALUES ('k', 'w')",
    )
    policies = {"on_invalid_text": "replace"}
    with source_of(oracle, tmp_path, "K", "U", policies=policies) as source:
        source.run()
        oracle.run(f"INSERT INTO K VALUES ({BYTE}, 'w')")
        source.run()
        record = source.record("K")
        assert record.state == "failed"
        assert "column=V" in (record.reason or "")
        source.pipeline.resnapshot_tables([table_id("K")])
        source.run()
        record = source.record("K")
        assert record.state == "failed"
        assert "column=V" in (record.reason or "")
        source.check_current("U")


@pytest.mark.parametrize("chunk_rows", [100, 500_000])
def test_a_value_in_a_snapshot_stops_its_table_alone(
    oracle: Oracle, tmp_path: Path, chunk_rows: int
) -> None:
    oracle.run(
        f"INSERT INTO T VALUES (2, {BYTE}, 'c')",
        "INSERT INTO T SELECT LEVEL + 100, 'v' || LEVEL, 'c' FROM DUAL CONNECT BY LEVEL <= 400",
    )
    more = {"snapshot": {"chunk_rows": chunk_rows, "sessions": 1}}
    with source_of(oracle, tmp_path, "T", "U", **more) as source:
        source.run()
        stopped(source, "V")
        assert table_id("T") not in source.lake.tables or not mirror(source)
        source.configure({"name": "T", "on_invalid_text": "replace"}, "U")
        source.pipeline.resnapshot_tables([table_id("T")])
        source.run()
        assert mirror(source)[2][0] == READ
        assert len(mirror(source)) == 402
        nothing_spoiled(tmp_path)
        # The same value by the log is the same text.
        oracle.run(f"INSERT INTO T VALUES (3, {BYTE}, 'c')")
        source.run()
        assert mirror(source)[3] == mirror(source)[2]


def test_masked_values_are_the_same_on_both_paths(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run(f"INSERT INTO T VALUES (2, {BYTE}, 'c')")
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "T", "columns_mask": {"V": "truncate(2)"}})
        source.run()
        oracle.run(f"INSERT INTO T VALUES (3, {BYTE}, 'c')")
        source.run()
        assert mirror(source)[2] == mirror(source)[3]
        assert mirror(source)[2][0] == "A\ufffd"


def test_texts_of_ddl_and_of_the_dictionary_stop_nothing(oracle: Oracle, tmp_path: Path) -> None:
    """A comment, a default, a client's identifier, another table's name."""
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.begin()
        block = (
            "BEGIN DBMS_SESSION.SET_IDENTIFIER({byte}); DBMS_APPLICATION_INFO.SET_MODULE({byte}, {byte});"
            " EXECUTE IMMEDIATE 'COMMENT ON TABLE T IS ''' || {byte} || '''';"
            " EXECUTE IMMEDIATE 'COMMENT ON COLUMN U.V IS ''' || {byte} || '''';"
            " EXECUTE IMMEDIATE 'ALTER TABLE U MODIFY (V DEFAULT ''' || {byte} || ''')';"
            " EXECUTE IMMEDIATE 'CREATE TABLE \"x' || {byte} || '\" (ID NUMBER PRIMARY KEY)';"
            " EXECUTE IMMEDIATE 'INSERT INTO \"x' || {byte} || '\" VALUES (1)';"
            " INSERT INTO T VALUES (5, 'five', 'c'); INSERT INTO U VALUES (5, 'five'); COMMIT; END;"
        )
        oracle.run(block.format(byte=BYTE))
        source.run()
        source.check_current("T", "U")
        source.pipeline.check()
        oracle.run(
            f"BEGIN EXECUTE IMMEDIATE 'ALTER TABLE U ADD (W VARCHAR2(9) DEFAULT ''' || {BYTE} || ''')'; END;"
        )
        oracle.run(
            "INSERT INTO U (ID, V) VALUES (6, 'six')", "INSERT INTO T VALUES (6, 'six', 'c')"
        )
        source.run()
        source.check_current("T")


def test_a_pattern_meets_a_table_whose_name_is_no_text(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run(
        f"BEGIN EXECUTE IMMEDIATE 'CREATE TABLE \"T' || {BYTE} || '\" (ID NUMBER PRIMARY KEY)'; END;"
    )
    with source_of(oracle, tmp_path, "*") as source:
        source.run()
        oracle.run("INSERT INTO T VALUES (5, 'five', 'c')")
        source.run()
        source.check_current("T", "U")


def test_rows_from_before_a_ddl_with_such_bytes(tmp_path: Path) -> None:
    """LogMiner prints them in hexadecimal: the row cannot be decoded, the others go on."""
    with (
        running_oracle(warts=DEFAULT_WARTS) as oracle,
        source_of(oracle, tmp_path, "T", "U") as source,
    ):
        oracle.run(*TABLES)
        source.run()
        oracle.run(f"INSERT INTO T VALUES (9, {BYTE}, 'c')", "INSERT INTO U VALUES (2, 'two')")
        oracle.run("ALTER TABLE T ADD (EXTRA NUMBER(9))")
        source.run()
        assert source.record("T").state == "failed"
        source.check_current("U")
        source.configure({"name": "T", "on_undecodable": "quarantine"}, "U")
        source.pipeline.resume_tables([table_id("T")])
        source.run()
        assert source.record("T").state == "ready"


def test_a_signal_with_such_bytes_stops_nothing(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE SIGNALS (ID VARCHAR2(42) PRIMARY KEY, TYPE VARCHAR2(32), DATA VARCHAR2(2048))"
    )
    more = {"signals": {"table": "DEMO.SIGNALS"}}
    with source_of(oracle, tmp_path, "T", "U", **more) as source:
        source.run()
        oracle.run(f"INSERT INTO SIGNALS VALUES ({BYTE}, {BYTE}, {BYTE})")
        source.run()
        oracle.run("INSERT INTO T VALUES (5, 'five', 'c')")
        source.run()
        source.check_current("T", "U")
