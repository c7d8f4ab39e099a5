"""Golden texts: what SQL_REDO and SQL_UNDO show per type, operation and option."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from oracle_embedded import values
from oracle_embedded.api import OraType, RowOp, StoredColumn, TableVersion, Value
from tests.oracle_embedded.encodings import interval_ds_from_timedelta, timestamp_tz_from_datetime
from tests.oracle_embedded.redo.conftest import FakeSession, World, column, num, table

WHEN = datetime(2024, 1, 17, 23, 5, 9, 123456)
ROW_ID = "AAAR3sAAEAAAACXAAA"


def at(kind: OraType, **facts: object) -> StoredColumn:
    return column(2, "C", kind, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stored", "value", "literal"),
    [
        pytest.param(at(OraType.NUMBER), num(1), "'1'", id="number"),
        pytest.param(at(OraType.NUMBER), num("-12.5"), "'-12.5'", id="negative-fraction"),
        pytest.param(at(OraType.NUMBER), num(".5"), "'.5'", id="no-leading-zero"),
        pytest.param(at(OraType.NUMBER), num("1e38"), "'1" + "0" * 38 + "'", id="39-digits"),
        pytest.param(at(OraType.NUMBER), num(0), "'0'", id="zero"),
        pytest.param(at(OraType.VARCHAR), b"O'Neil", "'O''Neil'", id="quote"),
        pytest.param(at(OraType.VARCHAR), "Zoë 🔥".encode(), "'Zoë 🔥'", id="unicode"),
        pytest.param(at(OraType.VARCHAR), b"a\nb", "'a\nb'", id="newline"),
        pytest.param(at(OraType.CHAR), b"x   ", "'x   '", id="blank-padded"),
        pytest.param(
            at(OraType.VARCHAR, national=True),
            "caf\u00e9 \U0001f525 'x' \\".encode(),
            r"UNISTR('caf\00E9 \D83D\DD25 ''x'' \005C')",
            id="national",
        ),
        pytest.param(at(OraType.RAW), b"\x0a\x1b", "HEXTORAW('0a1b')", id="raw"),
        pytest.param(
            at(OraType.DATE),
            values.date_from_datetime(WHEN),
            "TO_DATE('2024-01-17 23:05:09', 'YYYY-MM-DD HH24:MI:SS')",
            id="date",
        ),
        pytest.param(
            at(OraType.TIMESTAMP, scale=6),
            values.timestamp_from_datetime(WHEN),
            "TO_TIMESTAMP('2024-01-17 23:05:09.123456000')",
            id="timestamp",
        ),
        pytest.param(
            at(OraType.TIMESTAMP_TZ, scale=6),
            timestamp_tz_from_datetime(WHEN, -330),
            "TO_TIMESTAMP_TZ('2024-01-17 17:35:09.123456000 -05:30')",
            id="timestamp-with-time-zone",
        ),
        pytest.param(
            at(OraType.TIMESTAMP_LTZ, scale=6),
            values.timestamp_from_datetime(WHEN),
            "TO_TIMESTAMP_TZ('2024-01-17 23:05:09.123456000')",
            id="timestamp-with-local-time-zone",
        ),
        pytest.param(
            at(OraType.INTERVAL_DS, precision=2, scale=6),
            interval_ds_from_timedelta(
                -timedelta(days=2, hours=11, minutes=22, seconds=33, microseconds=500000)
            ),
            "TO_DSINTERVAL('-02 11:22:33.500000')",
            id="interval-day-to-second",
        ),
        pytest.param(
            at(OraType.INTERVAL_YM, precision=2),
            values.interval_ym_from_months(60),
            "TO_YMINTERVAL('+05-00')",
            id="interval-year-to-month",
        ),
        pytest.param(
            at(OraType.BINARY_DOUBLE),
            values.double_from_float(3.14),
            "'3.1400000000000001E+000'",
            id="double",
        ),
        pytest.param(
            at(OraType.BINARY_DOUBLE), values.double_from_float(-0.5), "'-5.0E-001'", id="half"
        ),
        pytest.param(
            at(OraType.BINARY_DOUBLE),
            values.double_from_float(float("inf")),
            "'Inf'",
            id="infinity",
        ),
        pytest.param(
            at(OraType.BINARY_DOUBLE), values.double_from_float(float("nan")), "'Nan'", id="nan"
        ),
        pytest.param(
            at(OraType.BINARY_FLOAT),
            values.binary_float_from_float(1.5),
            "'1.5E+000'",
            id="float",
        ),
        pytest.param(at(OraType.UROWID), b"*BAEA", "Unsupported Type", id="urowid"),
        pytest.param(at(OraType.NUMBER), None, "NULL", id="null"),
    ],
)
def test_an_insert_shows_each_type_as_its_literal(
    world: World, stored: StoredColumn, value: Value, literal: str
) -> None:
    world.supplemental("")
    made = table(column(1, "ID", OraType.NUMBER), stored)
    world.insert(world.begin(), made, {"ID": num(1), "C": value})
    assert world.redo_texts() == [f'insert into "APP"."T"("ID","C") values (\'1\',{literal});']


@pytest.mark.parametrize(
    ("settings", "stored", "value", "literal"),
    [
        pytest.param(
            {"NLS_DATE_FORMAT": "DD-MON-RR"},
            at(OraType.DATE),
            values.date_from_datetime(WHEN),
            "TO_DATE('17-JAN-24', 'DD-MON-RR')",
            id="default-date",
        ),
        pytest.param(
            {"NLS_TIMESTAMP_FORMAT": "DD-MON-RR HH.MI.SSXFF AM"},
            at(OraType.TIMESTAMP, scale=3),
            values.timestamp_from_datetime(WHEN),
            "TO_TIMESTAMP('17-JAN-24 11.05.09.123 PM')",
            id="default-timestamp",
        ),
        pytest.param(
            {"NLS_TIMESTAMP_TZ_FORMAT": "DD-MON-RR HH.MI.SSXFF AM TZR"},
            at(OraType.TIMESTAMP_TZ, scale=6),
            timestamp_tz_from_datetime(WHEN, 60),
            "TO_TIMESTAMP_TZ('18-JAN-24 12.05.09.123456 AM +01:00')",
            id="default-timestamp-tz",
        ),
        pytest.param(
            {"TIME_ZONE": "-08:00"},
            at(OraType.TIMESTAMP_LTZ, scale=6),
            values.timestamp_from_datetime(WHEN),
            "TO_TIMESTAMP_TZ('2024-01-17 15:05:09.123456000')",
            id="local-time-zone",
        ),
        pytest.param(
            {"NLS_NUMERIC_CHARACTERS": ",."},
            at(OraType.NUMBER),
            num("-12.5"),
            "'-12,5'",
            id="decimal-comma",
        ),
        pytest.param(
            {"NLS_DATE_FORMAT": 'YYYY"T"HH24:MI:SS Mon Y'},
            at(OraType.DATE),
            values.date_from_datetime(WHEN),
            "TO_DATE('2024T23:05:09 Jan 4', 'YYYY\"T\"HH24:MI:SS Mon Y')",
            id="quoted-text",
        ),
    ],
)
def test_literals_follow_the_sessions_nls_settings(
    world: World, settings: dict[str, str], stored: StoredColumn, value: Value, literal: str
) -> None:
    made = table(column(1, "ID", OraType.NUMBER), stored)
    world.supplemental("")
    world.insert(world.begin(), made, {"ID": num(1), "C": value})
    session = FakeSession(**settings)
    assert world.redo_texts(session=session) == [
        f'insert into "APP"."T"("ID","C") values (\'1\',{literal});'
    ]


def test_a_date_format_that_is_none_is_refused(world: World) -> None:
    made = table(column(1, "ID", OraType.NUMBER), at(OraType.DATE))
    row: dict[str, Value] = {"ID": num(1), "C": values.date_from_datetime(WHEN)}
    world.insert(world.begin(), made, row)
    with pytest.raises(Exception, match="ORA-01821"):
        world.redo_texts(session=FakeSession(NLS_DATE_FORMAT="YYYY-QQ"))


def test_update_and_delete_show_old_values_null_as_is_null(
    world: World, people: TableVersion
) -> None:
    world.supplemental("", " (ALL) COLUMNS")
    tx = world.begin()
    old: dict[str, Value] = {"ID": num(1), "NAME": b"O'Neil", "AGE": None}
    world.change(tx, people, RowOp.UPDATE, old, {"AGE": num(5), "NAME": None})
    world.change(tx, people, RowOp.DELETE, {**old, "AGE": num(5)})
    assert world.redo_texts() == [
        'update "APP"."T" set "NAME" = NULL, "AGE" = \'5\''
        " where \"ID\" = '1' and \"NAME\" = 'O''Neil' and \"AGE\" IS NULL;",
        'delete from "APP"."T" where "ID" = \'1\' and "NAME" = \'O\'\'Neil\' and "AGE" = \'5\';',
    ]


def test_undo_is_the_inverse_statement(world: World, people: TableVersion) -> None:
    world.supplemental("", " (ALL) COLUMNS")
    tx = world.begin()
    old: dict[str, Value] = {"ID": num(1), "NAME": b"a", "AGE": None}
    world.insert(tx, people, old)
    world.change(tx, people, RowOp.UPDATE, old, {"AGE": num(5)})
    world.change(tx, people, RowOp.DELETE, {**old, "AGE": num(5)})
    undos = [row["SQL_UNDO"] for row in world.mine() if row["OPERATION_CODE"] in (1, 2, 3)]
    rowid = f"ROWID = '{ROW_ID}';"
    assert undos == [
        f'delete from "APP"."T" where "ID" = \'1\' and "NAME" = \'a\' and "AGE" IS NULL and {rowid}',
        'update "APP"."T" set "AGE" = NULL where'
        f" \"ID\" = '1' and \"NAME\" = 'a' and \"AGE\" = '5' and {rowid}",
        'insert into "APP"."T"("ID","NAME","AGE") values (\'1\',\'a\',\'5\');',
    ]


def test_options_shape_the_statement(world: World, people: TableVersion) -> None:
    world.supplemental("")
    tx = world.begin()
    world.change(
        tx, people, RowOp.UPDATE, {"ID": num(1), "NAME": b"a", "AGE": None}, {"NAME": b"b"}
    )

    def text(*options: str) -> str:
        return next(r["SQL_REDO"] for r in world.mine(*options) if r["OPERATION_CODE"] == 3)

    update = 'update "APP"."T" set "NAME" = \'b\' where "NAME" = \'a\''
    assert text() == f"{update} and ROWID = '{ROW_ID}';"
    assert text("NO_ROWID_IN_STMT") == f"{update};"
    assert text("NO_ROWID_IN_STMT", "NO_SQL_DELIMITER") == update
    assert text("NO_ROWID_IN_STMT", "PRINT_PRETTY_SQL") == (
        'update "APP"."T"\n  set\n    "NAME" = \'b\'\n where\n    "NAME" = \'a\';'
    )


def test_string_literals_leave_out_the_functions(world: World) -> None:
    made = table(column(1, "ID", OraType.NUMBER), at(OraType.DATE))
    world.supplemental("")
    world.insert(world.begin(), made, {"ID": num(1), "C": values.date_from_datetime(WHEN)})
    assert world.redo_texts("STRING_LITERALS_IN_STMT") == [
        'insert into "APP"."T"("ID","C") values (\'1\',\'2024-01-17 23:05:09\');'
    ]


def test_names_are_shown_as_they_are(world: World) -> None:
    odd = table(
        column(1, "ID", OraType.NUMBER), column(2, "50% {odd}'s", OraType.VARCHAR), name="My $Table"
    )
    world.supplemental("", " (ALL) COLUMNS")
    tx = world.begin()
    row: dict[str, Value] = {"ID": num(1), "50% {odd}'s": b"{x} %s"}
    world.insert(tx, odd, row)
    world.change(tx, odd, RowOp.DELETE, row)
    assert world.redo_texts() == [
        'insert into "APP"."My $Table"("ID","50% {odd}\'s") values (\'1\',\'{x} %s\');',
        'delete from "APP"."My $Table" where "ID" = \'1\' and "50% {odd}\'s" = \'{x} %s\';',
    ]


def test_long_text_continues_in_rows_with_csf(world: World) -> None:
    made = table(column(1, "ID", OraType.NUMBER), at(OraType.VARCHAR))
    world.supplemental("")
    text = "ä€" * 1500
    world.insert(world.begin(), made, {"ID": num(1), "C": text.encode()})
    rows = [row for row in world.mine() if row["OPERATION"] == "INSERT"]
    assert [row["CSF"] for row in rows] == [1, 0]
    assert all(len(row["SQL_REDO"].encode()) <= 4000 for row in rows)
    joined = "".join(row["SQL_REDO"] for row in rows)
    assert joined == f'insert into "APP"."T"("ID","C") values (\'1\',\'{text}\');'
    assert len({(row["SCN"], row["RS_ID"], row["SSN"], row["ROW_ID"]) for row in rows}) == 1
