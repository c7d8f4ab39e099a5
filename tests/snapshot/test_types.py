"""Every type of the type table goes through the snapshot and through the log, and gives the same values.

The cases stand under the table's own rows: a type that joins the table without a case fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from cdc_core.decode.plan import Kind, plan_table
from cdc_core.errors import DecodeError, PreflightError
from cdc_core.model.scn import Scn
from cdc_core.schema import types
from cdc_core.schema.dictionary import read_table_schema
from tests.oracle.backends import BACKENDS, Database, open_backend
from tests.snapshot.test_parity import Paths

NATIONAL_SET = (
    "SELECT VALUE FROM NLS_DATABASE_PARAMETERS WHERE PARAMETER = 'NLS_NCHAR_CHARACTERSET'"
)

CASES: dict[str, dict[str, list[str]]] = {
    "NUMBER(p, s), 0 < s <= p": {
        "NUMBER(9,2)": ["0", "-0.01", "1234567.89", "-9999999.99"],
        "NUMBER(38,38)": ["0." + "9" * 38, "-0." + "0" * 37 + "1"],
        "NUMBER(*,3)": ["1.2345", "-1E34", "9" * 35 + ".999"],
        "NUMBER(38,17)": ["1" * 21 + "." + "2" * 17],
    },
    "NUMBER(p, 0), p <= 18": {
        "NUMBER(1)": ["0", "9", "-9"],
        "NUMBER(18)": ["9" * 18, "-" + "9" * 18],
    },
    "NUMBER(p, 0), p > 18": {
        "NUMBER(19)": ["9" * 19],
        "NUMBER(38)": ["-" + "9" * 38],
        "NUMBER(*,0)": ["12345678901234567890"],
        "INTEGER": ["-1"],
    },
    "NUMBER(p, -s)": {
        "NUMBER(10,-2)": ["1234", "-99950"],
        "NUMBER(20,-5)": ["1E24"],
        "NUMBER(38,-2)": ["9" * 38 + "00", "-100"],
        "NUMBER(*,-2)": ["1250"],
    },
    "NUMBER(p, s), s > p": {
        "NUMBER(3,5)": ["0.00999", "-0.00001"],
        "NUMBER(38,60)": ["1E-23", "-1E-60"],
    },
    "NUMBER, FLOAT": {
        "NUMBER": [
            "1E125",
            "-1E-130",
            "0.1",
            "1" * 38,
            "-100",
            "9" * 40 + "E85",
            "9" * 40 + "E86",
            "-" + "9" * 40 + "E86",
        ],
        "FLOAT": ["1.5", "-1E-20"],
        "FLOAT(10)": ["0.125"],
        "FLOAT(126)": ["9" * 38 + "E88", "-" + "9" * 38 + "E88", "-1E-130", "1234567890" * 4],
    },
    "BINARY_DOUBLE, BINARY_FLOAT": {
        "BINARY_DOUBLE": [
            "1.1",
            "TO_BINARY_DOUBLE('-1E300')",
            "0",
            "-0d",
            "BINARY_DOUBLE_INFINITY",
            "BINARY_DOUBLE_NAN",
            "5E-324d",
        ],
        "BINARY_FLOAT": [
            "0.1",
            "TO_BINARY_FLOAT('-3E38')",
            "-BINARY_FLOAT_INFINITY",
            "BINARY_FLOAT_NAN",
            "-0f",
            "1E-45f",
        ],
    },
    "CHAR, VARCHAR2, NCHAR, NVARCHAR2, CLOB, NCLOB": {
        "CHAR(5)": ["'a'", "'é'"],
        "CHAR(2000)": ["'a'", "'" + "é" * 1000 + "'"],
        "VARCHAR2(40 CHAR)": ["'it''s'", "' x '", "UNISTR('\\D83D\\DD25')", "''", "'a\\b'"],
        "NCHAR(4)": ["N'ab'"],
        "NVARCHAR2(20)": ["N'日本'", "UNISTR('\\D83D\\DD25')"],
        "CLOB": ["'small'", "EMPTY_CLOB()"],
        "NCLOB": ["N'日本'", "EMPTY_CLOB()", "'it''s'"],
    },
    "DATE, TIMESTAMP(0-6)": {
        "DATE": [
            "DATE '1999-12-31'",
            "TO_DATE('2024-02-29 23:59:58', 'YYYY-MM-DD HH24:MI:SS')",
            "DATE '1600-03-01'",
        ],
        "TIMESTAMP(0)": ["TIMESTAMP '2001-02-03 04:05:06'"],
        "TIMESTAMP(3)": ["TIMESTAMP '2001-02-03 04:05:06.789'"],
        "TIMESTAMP(6)": ["TIMESTAMP '9999-12-31 23:59:59.999999'"],
    },
    "TIMESTAMP(7-9)": {
        "TIMESTAMP(7)": ["TIMESTAMP '2001-02-03 04:05:06.1234567'"],
        "TIMESTAMP(8)": ["TIMESTAMP '2001-02-03 04:05:06'"],
        "TIMESTAMP(9)": [
            "TIMESTAMP '2001-02-03 04:05:06.000000001'",
            "DATE '-4712-01-01'",
            "DATE '1500-02-29'",
        ],
    },
    "TIMESTAMP WITH TIME ZONE": {
        "TIMESTAMP WITH TIME ZONE": [
            "TIMESTAMP '2001-02-03 04:05:06.789 +02:00'",
            "TIMESTAMP '2001-07-03 04:05:06 Europe/Berlin'",
            "TIMESTAMP '2001-01-01 00:30:00 -05:30'",
            "TIMESTAMP '0001-01-01 00:00:00 -00:30'",
        ],
        "TIMESTAMP(9) WITH TIME ZONE": ["TIMESTAMP '9999-12-31 23:59:59.999999999 +14:00'"],
        "TIMESTAMP(0) WITH TIME ZONE": ["TIMESTAMP '2001-02-03 04:05:06 +00:00'"],
    },
    "TIMESTAMP WITH LOCAL TIME ZONE": {
        "TIMESTAMP WITH LOCAL TIME ZONE": ["TIMESTAMP '2001-02-03 01:05:06.789 +02:00'"],
        "TIMESTAMP(9) WITH LOCAL TIME ZONE": ["TIMESTAMP '2001-02-03 04:05:06.000000001 +00:00'"],
    },
    "INTERVAL YEAR TO MONTH": {
        "INTERVAL YEAR TO MONTH": ["INTERVAL '-1-2' YEAR TO MONTH", "INTERVAL '0' MONTH"],
        "INTERVAL YEAR(9) TO MONTH": [
            "INTERVAL '123456789-11' YEAR(9) TO MONTH",
            "INTERVAL '-1' MONTH",
        ],
    },
    "INTERVAL DAY TO SECOND": {
        "INTERVAL DAY TO SECOND": [
            "INTERVAL '5 04:03:02.5' DAY TO SECOND",
            "INTERVAL '-0.000001' SECOND",
        ],
        "INTERVAL DAY(9) TO SECOND(9)": [
            "INTERVAL '-999999999 23:59:59.999999999' DAY(9) TO SECOND(9)"
        ],
        "INTERVAL DAY(0) TO SECOND(0)": ["INTERVAL '23:59:59' HOUR TO SECOND"],
    },
    "RAW, BLOB": {
        "RAW(10)": ["HEXTORAW('00FF')", "HEXTORAW('')"],
        "BLOB": ["HEXTORAW('00FF')", "EMPTY_BLOB()"],
    },
    "XMLTYPE": {},  # its documents take rows of their own, beside INSERT and UPDATE: tests/steps/test_xml.py
    "ROWID": {"ROWID": ["CHARTOROWID('AAAAECAABAAAAgiAAA')"]},
}


def _labels() -> set[str]:
    """The first cells of the type table, continuation lines joined."""
    table = re.split(r"^=+ .*$", types.__doc__ or "", flags=re.M)[2]
    width = len("===========================")
    labels: list[str] = []
    for line in table.strip("\n").splitlines():
        cell, arrow = line[:width].strip(), line[width : width + 24].strip()
        if arrow:
            labels.append(cell)
        elif cell:
            labels[-1] += f" {cell}"
    return set(labels)


@pytest.fixture(scope="module", params=BACKENDS)
def oracle(request: pytest.FixtureRequest) -> Iterator[Database]:
    with open_backend(request.param) as oracle:
        yield oracle


HELD: dict[str, dict[str, tuple[list[str], list[object]]]] = {
    "text": {
        "NUMBER(10,2)": (["1.50", "-0.01"], ["1.5", "-0.01"]),
        "RAW(20)": (["HEXTORAW('616263')", "HEXTORAW('C3A9')"], ["abc", "é"]),
        "DATE": (["DATE '1999-12-31'"], ["1999-12-31 00:00:00.000000000"]),
        "TIMESTAMP(6)": (
            ["TIMESTAMP '2001-02-03 04:05:06.5'"],
            ["2001-02-03 04:05:06.500000000"],
        ),
    },
    "decimal(20,4)": {
        "NUMBER": (["1.25", "-9E15"], [Decimal("1.2500"), Decimal("-9000000000000000.0000")]),
        "FLOAT": (["0.5"], [Decimal("0.5000")]),
    },
    "double": {
        "NUMBER": (
            ["0.1", "1E125", "-1E-130", "12345678901234567891"],
            [0.1, 1e125, -1e-130, 12345678901234567891.0],
        ),
        "NUMBER(38,10)": (["1.0000000001"], [1.0000000001]),
    },
    "boolean": {"NUMBER(1)": (["0", "1"], [False, True])},
    "hex": {
        "RAW(10)": (["HEXTORAW('00FF1A')", "HEXTORAW('7F')"], ["00ff1a", "7f"]),
        "BLOB": (["HEXTORAW('DEADBEEF')", "EMPTY_BLOB()"], ["deadbeef", ""]),
    },
    "base64": {
        "RAW(10)": (
            ["HEXTORAW('FB')", "HEXTORAW('FBFF')", "HEXTORAW('FBFFBE')", "HEXTORAW('FBFFBE00')"],
            ["+w==", "+/8=", "+/++", "+/++AA=="],
        ),
        "BLOB": (["HEXTORAW('FBFFBE')", "EMPTY_BLOB()"], ["+/++", ""]),
    },
    "base64url": {"RAW(10)": (["HEXTORAW('FBFFBE')", "HEXTORAW('FB')"], ["-_--", "-w=="])},
    "iso8601": {
        "INTERVAL YEAR(4) TO MONTH": (
            ["INTERVAL '-3-6' YEAR TO MONTH", "INTERVAL '1234' YEAR(4)", "INTERVAL '-11' MONTH"],
            ["P-3Y-6M0DT0H0M0S", "P1234Y0M0DT0H0M0S", "P0Y-11M0DT0H0M0S"],
        ),
        "INTERVAL DAY(3) TO SECOND(9)": (
            [
                "INTERVAL '-1 2:3:4.56' DAY TO SECOND",
                "INTERVAL '0' SECOND",
                "INTERVAL '-0.000000001' SECOND(1,9)",
                "INTERVAL '100 10:20:30' DAY(3) TO SECOND",
                "INTERVAL '-7' DAY",
            ],
            [
                "P0Y0M-1DT-2H-3M-4.56S",
                "P0Y0M0DT0H0M0S",
                "P0Y0M0DT0H0M-0.000000001S",
                "P0Y0M100DT10H20M30S",
                "P0Y0M-7DT0H0M0S",
            ],
        ),
        "DATE": (
            ["DATE '2018-03-27'", "DATE '-0044-03-15'"],
            ["2018-03-27T00:00:00Z", "-0044-03-15T00:00:00Z"],
        ),
        "TIMESTAMP(9)": (
            ["TIMESTAMP '2018-03-27 12:34:10.130000000'", "TIMESTAMP '2018-03-27 12:34:00'"],
            ["2018-03-27T12:34:10.13Z", "2018-03-27T12:34:00Z"],
        ),
        "TIMESTAMP WITH TIME ZONE": (
            [
                "TIMESTAMP '2018-03-27 01:34:56.007891 -11:00'",
                "TIMESTAMP '2018-03-27 01:34:50 +00:00'",
            ],
            ["2018-03-27T01:34:56.007891-11:00", "2018-03-27T01:34:50Z"],
        ),
        "TIMESTAMP WITH LOCAL TIME ZONE": (
            ["TIMESTAMP '2018-03-27 01:34:56.5 +02:00'"],
            ["2018-03-26T23:34:56.5Z"],
        ),
    },
    "microseconds": {
        "INTERVAL YEAR TO MONTH": (
            ["INTERVAL '-3-6' YEAR TO MONTH", "INTERVAL '1' MONTH"],
            [-110451600000000, 2629800000000],
        ),
        "INTERVAL DAY TO SECOND": (
            ["INTERVAL '-1 2:3:4.56' DAY TO SECOND", "INTERVAL '0.000001' SECOND"],
            [-93784560000, 1],
        ),
        "DATE": (["DATE '1969-12-31'", "DATE '9999-12-31'"], [-86400000000, 253402214400000000]),
        "TIMESTAMP(6)": (["TIMESTAMP '1970-01-01 00:00:01.000002'"], [1000002]),
    },
    "nanoseconds": {
        "TIMESTAMP(9)": (["TIMESTAMP '1970-01-01 00:00:01.000000002'"], [1000000002]),
        "DATE": (["DATE '1970-01-02'"], [86400000000000]),
    },
    "timestamp": {
        "TIMESTAMP(9)": (
            ["TIMESTAMP '2001-02-03 04:05:06.123456'"],
            [datetime(2001, 2, 3, 4, 5, 6, 123456)],
        ),
    },
    "date": {
        "DATE": (
            ["DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1582-10-04'", "DATE '1969-12-31'"],
            [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4), date(1969, 12, 31)],
        ),
        "TIMESTAMP(9)": (["TIMESTAMP '2024-02-29 00:00:00'"], [date(2024, 2, 29)]),
    },
    "instant": {
        "TIMESTAMP(6) WITH TIME ZONE": (
            [
                "TIMESTAMP '2018-03-27 01:34:56.007891 -11:00'",
                "TIMESTAMP '0001-01-01 14:00:00 +14:00'",
                "TIMESTAMP '9999-12-31 11:59:59.999999 -12:00'",
                "TIMESTAMP '1969-12-31 23:59:59.999999 +00:00'",
                "TIMESTAMP '2020-02-29 05:44:59 +05:45'",
                "TIMESTAMP '2020-02-29 00:00:00 -03:30'",
            ],
            [
                datetime(2018, 3, 27, 12, 34, 56, 7891, UTC),
                datetime(1, 1, 1, tzinfo=UTC),
                datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
                datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
                datetime(2020, 2, 28, 23, 59, 59, tzinfo=UTC),
                datetime(2020, 2, 29, 3, 30, tzinfo=UTC),
            ],
        ),
        "TIMESTAMP(9) WITH LOCAL TIME ZONE": (
            ["TIMESTAMP '2018-03-27 01:34:56.5 +02:00'"],
            [datetime(2018, 3, 26, 23, 34, 56, 500000, UTC)],
        ),
    },
    "boolean(>0)": {
        "NUMBER(1)": (["0", "1", "9", "-9"], [False, True, True, False]),
        "NUMBER(18)": (["999999999999999999", "-1"], [True, False]),
    },
    "text(WE8ISO8859P1)": {
        "RAW(10)": (["HEXTORAW('5AFCE9FF')", "HEXTORAW('41')"], ["Z\u00fc\u00e9\u00ff", "A"])
    },
    "text(AL16UTF16)": {"RAW(10)": (["HEXTORAW('D83DDE00')"], ["\U0001f600"])},
}
"""What ``columns_as`` makes of columns: literals, and the values in the lake."""


@pytest.mark.parametrize(
    ("held_as", "declaration"), [(held, one) for held, cases in HELD.items() for one in cases]
)
def test_a_column_is_held_as_the_configuration_says(
    oracle: Database, tmp_path: Path, held_as: str, declaration: str
) -> None:
    literals, values = HELD[held_as][declaration]
    table = f"HELD_{list(HELD).index(held_as)}_{list(HELD[held_as]).index(declaration)}"
    oracle.run(f"CREATE TABLE {table} (ID NUMBER(5) PRIMARY KEY, V {declaration})")
    paths = Paths(oracle, tmp_path, table, columns_as={"V": held_as})
    rows = [f"({at}, {literal})" for at, literal in enumerate([*literals, "NULL"])]
    oracle.run(*(f"INSERT INTO {table} VALUES {row}" for row in rows))
    snapshot = paths.snapshot()
    assert [row["V"] for row in snapshot] == [*values, None]
    assert repr(paths.log()) == repr(snapshot)


def test_a_number_that_does_not_fit_the_decimal_is_refused_on_both_paths(
    oracle: Database, tmp_path: Path
) -> None:
    for at, number in enumerate(("1.23456", "1E17")):
        oracle.run(f"CREATE TABLE UNFIT_{at} (ID NUMBER(5) PRIMARY KEY, V NUMBER)")
        paths = Paths(oracle, tmp_path, f"UNFIT_{at}", columns_as={"V": "decimal(20,4)"})
        oracle.run(f"INSERT INTO UNFIT_{at} VALUES (1, {number})")
        with pytest.raises(DecodeError, match="columns_as"):
            paths.snapshot()
        with pytest.raises(DecodeError):
            paths.log()


UNFIT = [
    ("boolean", "NUMBER(1)", "2"),
    ("text", "RAW(10)", "HEXTORAW('FF')"),
    ("timestamp", "TIMESTAMP(9)", "TIMESTAMP '2001-02-03 04:05:06.000000001'"),
    ("nanoseconds", "DATE", "DATE '2300-01-01'"),
    ("microseconds", "INTERVAL DAY TO SECOND(9)", "INTERVAL '0.000000001' SECOND(1,9)"),
    ("microseconds", "INTERVAL YEAR(9) TO MONTH", "INTERVAL '300000' YEAR(9)"),
    ("microseconds", "INTERVAL DAY(9) TO SECOND", "INTERVAL '106751991' DAY(9)"),
    ("microseconds", "DATE", "DATE '-0044-03-15'"),
    ("timestamp", "TIMESTAMP(9)", "TIMESTAMP '1500-02-29 00:00:00'"),
    ("date", "DATE", "TO_DATE('2001-02-03 00:00:01', 'YYYY-MM-DD HH24:MI:SS')"),
    ("date", "DATE", "DATE '-0044-03-15'"),
    ("instant", "TIMESTAMP(9) WITH TIME ZONE", "TIMESTAMP '2001-02-03 04:05:06.000000001 +00:00'"),
    ("instant", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP '0001-01-01 00:00:00 +14:00'"),
    ("text(US7ASCII)", "RAW(10)", "HEXTORAW('C3')"),
    ("text(AL16UTF16)", "RAW(10)", "HEXTORAW('D83D')"),
]
"""A form, and a value that it does not hold."""


@pytest.mark.parametrize(("held_as", "declaration", "literal"), UNFIT)
def test_what_a_form_does_not_hold_is_refused_on_both_paths(
    oracle: Database, tmp_path: Path, held_as: str, declaration: str, literal: str
) -> None:
    """An error that names the column, and its row so that quarantine can take it; never another value."""
    table = "NOT_HELD"
    oracle.run(f"CREATE TABLE {table} (ID NUMBER(5) PRIMARY KEY, V {declaration})")
    try:
        paths = Paths(oracle, tmp_path, table, columns_as={"V": held_as})
        oracle.run(
            f"INSERT INTO {table} VALUES (1, NULL)", f"INSERT INTO {table} VALUES (2, {literal})"
        )
        for path in (paths.snapshot, paths.log):
            with pytest.raises(DecodeError, match="columns_as") as refused:
                path()
            assert (refused.value.facts["column"], refused.value.facts["row"]) == ("V", 1)
    finally:
        oracle.run(f"DROP TABLE {table} PURGE")


def test_every_row_of_the_type_table_has_cases() -> None:
    """But for those that snapshots alone read, and those of whose tables LogMiner shows no row."""
    assert {*CASES, "LONG, LONG RAW, UROWID", "JSON, BOOLEAN, VECTOR"} == _labels()


@pytest.mark.parametrize(
    ("number", "declaration", "literals"),
    [
        pytest.param(number, declaration, literals, id=declaration)
        for number, (declaration, literals) in enumerate(
            case for cases in CASES.values() for case in cases.items()
        )
    ],
)
def test_both_paths_give_the_same_values(
    oracle: Database, tmp_path: Path, number: int, declaration: str, literals: list[str]
) -> None:
    """But texts of a national set that the driver does not read, of which it says so."""
    table = f"TYPE_{number}"
    oracle.run(f"CREATE TABLE {table} (ID NUMBER(5) PRIMARY KEY, V {declaration})")
    paths = Paths(oracle, tmp_path, table)
    oracle.run(
        *(
            f"INSERT INTO {table} VALUES ({at}, {literal})"
            for at, literal in enumerate([*literals, "NULL"])
        )
    )
    if declaration.startswith("N") and not declaration.startswith("NUMBER"):
        [(national,)] = paths.session.fetch_all(NATIONAL_SET)
        if national != "AL16UTF16":
            with pytest.raises(PreflightError, match="national character set"):
                paths.snapshot()
            return
    snapshot = paths.snapshot()
    assert len(snapshot) == len(literals) + 1
    assert snapshot[-1]["V"] is None
    assert any(row["V"] is not None for row in snapshot)
    assert repr(paths.log()) == repr(snapshot)


def test_every_kind_of_literal_is_among_the_cases(oracle: Database, tmp_path: Path) -> None:
    columns = [declaration for cases in CASES.values() for declaration in cases]
    listed = ", ".join(f"C{at} {declaration}" for at, declaration in enumerate(columns))
    oracle.run(f"CREATE TABLE ALL_KINDS (ID NUMBER(5) PRIMARY KEY, {listed})")
    paths = Paths(oracle, tmp_path, "ALL_KINDS")
    schema = read_table_schema(paths.session, paths.config.tables[0], scn=Scn(paths.start))
    no_literals = {Kind.SKIPPED, Kind.TOKEN}  # the latter stands in messages of other readers
    assert {column.kind for column in plan_table(schema).columns} == set(Kind) - no_literals
