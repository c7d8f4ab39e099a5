"""Every conversion of a column that Oracle's MODIFY allows, through the driver: followed with the right values, or a stop that says why.

SQL Language Reference 19c, ALTER TABLE, modify_column_clauses: any type for a column without values, but to and from LOBs; with values a longer text
or RAW, more digits, more digits of seconds, CHAR to VARCHAR2 and back, DATE to TIMESTAMP and to TIMESTAMP WITH LOCAL TIME ZONE, the latter to DATE.
"""

from __future__ import annotations

from pathlib import Path

import oracledb
import pytest

from cdc_core.schema.types import printed_as
from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

T = table_id("T")
LOCAL = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
DAY, SECOND, ZONED = "DATE '2026-01-02'", "TIMESTAMP '2026-01-02 03:04:05.678'", "TIMESTAMP '2026-01-02 03:04:05.678 +02:00'"  # fmt: skip
ITS_TYPE, ITS_BLANKS = (
    "columns changed their type: C",
    "other blanks without a change of the row: C",
)

oracle = oracle_with(warts=[Wart.UNNAMED_COLUMNS])


def check_values(source: Source) -> None:
    """The mirror equals Oracle; what the lake holds as Oracle prints it equals what a new snapshot reads."""
    found = source.lake.tables[T].schema
    assert found is not None
    if printed_as(found.column("C")) is None:
        source.check_current("T")
        return
    followed = source.lake.image(T)
    assert followed[-1][1]
    source.pipeline.resnapshot_tables([T], fresh=True)
    source.run()
    assert source.lake.image(T) == followed


@pytest.mark.parametrize(
    ("old", "value", "new", "other", "reason"),
    [
        pytest.param("VARCHAR2(5)", "'abc'", "NVARCHAR2(5)", "N'äö'", "", id="national-text"),
        pytest.param("CHAR(4)", "'abc'", "VARCHAR2(9)", "'abcdefg'", "", id="text-without-blanks"),
        pytest.param("TIMESTAMP(3) WITH TIME ZONE", ZONED, LOCAL, ZONED, "", id="of-one-zone"),
        pytest.param("TIMESTAMP(6)", SECOND, "DATE", DAY, "", id="a-date-of-a-timestamp"),
        pytest.param("BINARY_FLOAT", "1.5", "BINARY_DOUBLE", "2.25", "", id="double"),
        pytest.param("NUMBER(5)", "1", "FLOAT", "1.5", "", id="float"),
        pytest.param("NUMBER(5)", "1", "VARCHAR2(9)", "'x'", ITS_TYPE, id="a-number-becomes-a-text"),
        pytest.param("NUMBER", "1", "VARCHAR2(9)", "'x'", ITS_TYPE, id="any-number-becomes-a-text"),
        pytest.param("VARCHAR2(9)", "'x'", "NUMBER", "1.5", ITS_TYPE, id="a-text-becomes-any-number"),
        pytest.param("VARCHAR2(20)", "'x'", "INTERVAL DAY TO SECOND", "INTERVAL '1' DAY", ITS_TYPE, id="a-text-becomes-an-interval"),
        pytest.param("NUMBER(5)", "1", "BINARY_DOUBLE", "1.5", ITS_TYPE, id="a-number-becomes-binary"),
        pytest.param("RAW(4)", "HEXTORAW('01')", "VARCHAR2(9)", "'x'", ITS_TYPE, id="bytes-become-a-text"),
        pytest.param("NUMBER(5)", "1", "DATE", DAY, ITS_TYPE, id="a-number-becomes-a-date"),
        pytest.param("DATE", DAY, LOCAL, SECOND, ITS_TYPE, id="a-date-gets-a-local-zone"),
        pytest.param("TIMESTAMP(9)", SECOND, LOCAL, SECOND, ITS_TYPE, id="a-text-of-a-moment-gets-a-local-zone"),
        pytest.param(LOCAL, SECOND, "DATE", DAY, ITS_TYPE, id="a-local-zone-goes"),
        pytest.param("TIMESTAMP(6)", SECOND, "TIMESTAMP(6) WITH TIME ZONE", ZONED, ITS_TYPE, id="a-zone-comes"),
        pytest.param("INTERVAL YEAR TO MONTH", "INTERVAL '1' YEAR", "INTERVAL DAY TO SECOND", "INTERVAL '1' DAY", ITS_TYPE, id="years-become-days"),
        pytest.param("CHAR(4)", "'abc'", "CHAR(8)", "'abcdefg'", ITS_BLANKS, id="a-longer-char"),
        pytest.param("VARCHAR2(4)", "'abc'", "CHAR(4)", "'ab'", ITS_BLANKS, id="a-text-gets-blanks"),
    ],
)  # fmt: skip
def test_a_column_without_values_gets_any_type(
    oracle: Oracle, tmp_path: Path, old: str, value: str, new: str, other: str, reason: str
) -> None:
    """It had values, so that the change log has them."""
    oracle.run(f"CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, C {old}, D NUMBER(5))")
    oracle.run(f"INSERT INTO T VALUES (1, {value}, 1)")
    with source_of(oracle, tmp_path, "T") as source:
        source.run()
        oracle.run(f"INSERT INTO T VALUES (2, {value}, 2)", "UPDATE T SET C = NULL")
        if old == LOCAL:  # of rows from before a DDL nothing tells the zone of the stored bytes
            source.windows()
        oracle.run(f"ALTER TABLE T MODIFY C {new}")
        oracle.run(f"INSERT INTO T VALUES (3, {other}, 3)", f"UPDATE T SET C = {other} WHERE ID = 1")  # fmt: skip
        source.windows()
        record = source.record("T")
        if reason:
            assert (record.state, record.trouble) == ("failed", "unsupported_ddl"), record.reason
            assert reason in (record.reason or "")
            assert source.lake.image(T) == [(1, None, 1), (2, None, 2)], "up to the DDL"
            source.pipeline.resnapshot_tables([T])
            source.run()
        assert source.record("T").state == "ready", source.record("T").reason
        assert source.record("T").generation == (2 if reason else 1)
        check_values(source)


@pytest.mark.parametrize(
    ("old", "value", "new", "other"),
    [
        pytest.param("RAW(4)", "HEXTORAW('01')", "RAW(9)", "HEXTORAW('0102030405')", id="bytes"),
        pytest.param("INTERVAL DAY(2) TO SECOND(3)", "INTERVAL '1 2:3:4.5' DAY TO SECOND", "INTERVAL DAY(4) TO SECOND(9)", "INTERVAL '1000' DAY(4)", id="days"),
        pytest.param("TIMESTAMP(3) WITH TIME ZONE", ZONED, "TIMESTAMP(9) WITH TIME ZONE", ZONED, id="seconds-of-a-zone"),
        pytest.param("DATE", DAY, "TIMESTAMP(6)", SECOND, id="date"),
    ],
)  # fmt: skip
def test_a_column_with_values_gets_longer(
    oracle: Oracle, tmp_path: Path, old: str, value: str, new: str, other: str
) -> None:
    """Its values stay what they are."""
    oracle.run(f"CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, C {old})")
    oracle.run(f"INSERT INTO T VALUES (1, {value})")
    with source_of(oracle, tmp_path, "T") as source:
        source.run()
        oracle.run(f"INSERT INTO T VALUES (2, {value})", f"ALTER TABLE T MODIFY C {new}")
        oracle.run(f"INSERT INTO T VALUES (3, {other})")
        source.windows()
        assert source.record("T").state == "ready", source.record("T").reason
        check_values(source)


@pytest.mark.parametrize(
    ("old", "value", "new", "code"),
    [
        pytest.param("NUMBER(5)", "1", "VARCHAR2(9)", 1439, id="another-type"),
        pytest.param("TIMESTAMP(6)", SECOND, "DATE", 1439, id="a-date-of-a-timestamp"),
        pytest.param("NUMBER(5)", "1", "NUMBER(3)", 1440, id="fewer-digits"),
        pytest.param("VARCHAR2(5)", "'abcd'", "VARCHAR2(3)", 1441, id="too-short"),
        pytest.param("VARCHAR2(5)", "NULL", "CLOB", 22858, id="a-lob"),
        pytest.param("TIMESTAMP(6)", SECOND, "TIMESTAMP(3)", 30082, id="fewer-digits-of-seconds"),
    ],
)
def test_oracle_refuses_what_would_change_values(
    oracle: Oracle, old: str, value: str, new: str, code: int
) -> None:
    oracle.run(f"CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, C {old})")
    oracle.run(f"INSERT INTO T VALUES (1, {value})")
    with pytest.raises(oracledb.DatabaseError, match=f"ORA-{code:05}"):
        oracle.run(f"ALTER TABLE T MODIFY C {new}")


def test_one_form_of_a_date_and_of_a_local_zone_is_a_stop_too(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Both are ISO 8601 text in the lake, one of a wall clock, the other of an instant."""
    oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, C DATE)")
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "T", "columns_as": {"C": "iso8601"}})
        source.run()
        oracle.run("INSERT INTO T (ID) VALUES (1)", f"ALTER TABLE T MODIFY C {LOCAL}")
        oracle.run(f"INSERT INTO T VALUES (2, {ZONED})")
        source.windows()
        assert ITS_TYPE in (source.record("T").reason or "")
        assert source.lake.image(T) == [(1, None)]
