"""Descriptions of tables: scripts are read as the dictionary has the tables that they make, and what is not understood is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from cdc_core.decode import decode_dml
from cdc_core.errors import ConfigError, DecodeError
from cdc_core.model.identifiers import TableId
from cdc_core.schema.create_table import DescribedTable, tables_in
from diagnosis.explain.outcomes import Finding
from diagnosis.explain.tables import read_tables
from tests.explain.exports import described
from tests.oracle.embedded import OWNER, running_oracle

EVERY_TYPE = """
CREATE TABLE THINGS (
    ID NUMBER(9) PRIMARY KEY, N1 NUMBER, N2 NUMBER(5, -2), N3 NUMBER(*, 2), N4 INTEGER, N5 DECIMAL(8, 3), N6 NUMERIC, F1 FLOAT, F2 FLOAT(20),
    F3 REAL, F4 DOUBLE PRECISION, B1 BINARY_FLOAT, B2 BINARY_DOUBLE, C1 CHAR, C2 CHAR(7 CHAR), C3 VARCHAR2(30 BYTE), C4 VARCHAR(5), C5 NCHAR(3),
    C6 NVARCHAR2(9), D1 DATE DEFAULT DATE '2020-01-01' NOT NULL, T1 TIMESTAMP, T2 TIMESTAMP(9), T3 TIMESTAMP WITH TIME ZONE,
    T4 TIMESTAMP(3) WITH LOCAL TIME ZONE, I1 INTERVAL YEAR TO MONTH, I2 INTERVAL DAY(4) TO SECOND(2), R1 RAW(16), L1 CLOB, L2 NCLOB, L3 BLOB,
    "Odd, name" VARCHAR2(9) DEFAULT 'a, b) c')
"""


def test_a_script_is_read_as_the_dictionary_has_its_table(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run(EVERY_TYPE)
        rows = described(oracle, ["THINGS"]).write(tmp_path / "rows.csv")
    script = tmp_path / "script.sql"
    script.write_text(EVERY_TYPE)
    [found] = read_tables(script, owner=OWNER, report=print)
    assert [found] == read_tables(rows, report=print)
    assert len(found.columns) == 31


def of(script: str) -> DescribedTable:
    [found] = tables_in(script)
    return found


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE T (ID NUMBER PRIMARY KEY)",
        "create table t (id number not null enable, primary key (id))",
        'CREATE GLOBAL TEMPORARY TABLE T ("ID" NUMBER, CONSTRAINT P PRIMARY KEY (ID) USING INDEX (CREATE UNIQUE INDEX I ON T (ID)))',
        "CREATE TABLE T (ID NUMBER); ALTER TABLE T ADD PRIMARY KEY (ID);",
        "CREATE TABLE T (ID NUMBER)\n/\nALTER TABLE S.T ADD CONSTRAINT P PRIMARY KEY (ID) USING INDEX PCTFREE 10\n/",
        "-- a comment; CREATE TABLE X (\nCREATE TABLE T (ID NUMBER PRIMARY KEY) ORGANIZATION INDEX PARTITION BY RANGE (ID) (PARTITION A VALUES LESS THAN (1))",
        "COMMENT ON TABLE T IS 'CREATE TABLE X (Y NUMBER)'; CREATE TABLE T (ID NUMBER PRIMARY KEY, SUPPLEMENTAL LOG DATA (ALL) COLUMNS)",
        "CREATE VIEW V AS SELECT 1 X FROM DUAL; CREATE TABLE IF NOT EXISTS T (ID NUMBER CONSTRAINT P PRIMARY KEY USING INDEX TABLESPACE X)",
        "CREATE INDEX I ON T (ID); CREATE OR REPLACE TRIGGER R BEFORE INSERT ON T BEGIN NULL; END;\n/\nCREATE TABLE T (ID NUMBER PRIMARY KEY)",
    ],
)  # fmt: skip
def test_the_key_is_found_wherever_it_is_said(script: str) -> None:
    found = of(script)
    assert (found.name, found.primary_key) == ("T", ("ID",))
    assert [(one.name, one.data_type, one.is_nullable) for one in found.columns] == [
        ("ID", "NUMBER", False)
    ]


def test_unique_indexes_are_keys_and_expressions_are_not() -> None:
    found = of(
        "CREATE TABLE T (A NUMBER NOT NULL UNIQUE, B NUMBER, UNIQUE (A, B)); CREATE UNIQUE INDEX I ON T (B, A);"
        "CREATE UNIQUE INDEX J ON T (UPPER(B)); ALTER TABLE T ADD UNIQUE (B)"
    )
    assert found.unique == [("A",), ("A", "B"), ("B", "A"), ("B",)]


def test_virtual_columns_are_left_out_and_invisible_ones_are_not(tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "CREATE TABLE S.T (ID NUMBER PRIMARY KEY, H CHAR(3) INVISIBLE, V AS (UPPER(H)) VIRTUAL, N DATE)"
    )
    [found] = read_tables(script, report=print)
    assert (found.column_names, found.excluded) == (("ID", "H", "N"), ("V",))
    assert found.stored == ("ID", "H", "N")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("CREATE TABLE T (ID NUMBER", "the script ends|is missing"),
        ("CREATE TABLE T AS SELECT * FROM X", "is missing"),
        ("CREATE TABLE T (ID)", "a column has no type"),
        ("CREATE TABLE T (ID NUMBER(many))", "a type that is not understood"),
        ("CREATE TABLE T (ID NUMBER DEFAULT 'secret", "not SQL"),
        ("CREATE TABLE T (PRIMARY KEY (ID))", "no columns"),
        ("SELECT 1 FROM DUAL", "describes no table"),
    ],
)
def test_what_is_not_understood_is_refused_without_its_text(
    script: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "script.sql"
    path.write_text(script)
    with pytest.raises(ConfigError, match=message) as caught:
        read_tables(path, owner="S", report=print)
    assert "secret" not in str(caught.value)


def test_owners_and_keys_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "script.sql"
    path.write_text("CREATE TABLE T (A NUMBER, B VARCHAR2(3), C BFILE); CREATE TABLE X.U (A NUMBER PRIMARY KEY)")  # fmt: skip
    told: list[Finding] = []
    with pytest.raises(ConfigError, match="--owner"):
        read_tables(path, report=told.append)
    with pytest.raises(ConfigError, match=r"--key S\.T="):
        read_tables(path, owner="S", report=told.append)
    table = TableId("S", "T")
    with pytest.raises(ConfigError, match="columns=Z"):
        read_tables(path, owner="S", keys={table: ["Z"]}, report=told.append)
    with pytest.raises(ConfigError, match=r"tables=S\.OTHER"):
        read_tables(path, owner="S", keys={table: ["A"], TableId("S", "OTHER"): ["A"]}, report=told.append)  # fmt: skip
    told.clear()
    one, other = read_tables(path, owner="S", keys={table: ["B", "A"]}, report=told.append)
    assert (one.table, one.key, one.excluded) == (table, ("B", "A"), ("C",))
    assert (other.table.owner, other.key) == ("X", ("A",))
    assert [finding.message.split(":")[0] for finding in told] == ["column C of S.T is left out"]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("T,A,NUMBER,many", "row=1"),
        ("T,,NUMBER,", "row=1"),
        ("T,A,NUMBER", "row=1"),
    ],
)
def test_a_damaged_row_of_the_dictionary_is_refused(line: str, fact: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"TABLE_NAME,COLUMN_NAME,DATA_TYPE,DATA_PRECISION\n{line}\n")
    with pytest.raises(ConfigError, match=fact):
        read_tables(path, owner="S", report=print)
    path.write_text("TABLE_NAME,DATA_TYPE\nT,NUMBER\n")
    with pytest.raises(ConfigError, match="columns=COLUMN_NAME"):
        read_tables(path, owner="S", report=print)


def test_bytes_of_a_text_are_in_the_character_set_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "script.sql"
    path.write_text("CREATE TABLE S.T (A NUMBER(9) PRIMARY KEY, B VARCHAR2(3))")
    sql = """insert into "S"."T"("COL 1","COL 2") values (HEXTORAW('c102'),HEXTORAW('e980'));"""
    [schema] = read_tables(path, character_set="we8mswin1252", report=print)
    assert decode_dml(pa.array([sql]), schema).after.to_pylist() == [{"A": 1, "B": "é\u20ac"}]
    [schema] = read_tables(path, report=print)
    with pytest.raises(DecodeError, match="character set"):
        decode_dml(pa.array([sql]), schema)
    with pytest.raises(ConfigError, match="character set is not known"):
        read_tables(path, character_set="KLINGON", report=print)
