"""Every scalar type, from the engine to the driver and from the driver to the engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import oracledb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oracle_embedded.api import ColumnMeta, OraType, OutBind, Outcome, StatementKind
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.values import (
    binary_float_from_float,
    date_from_datetime,
    datetime_from_date,
    decimal_from_number,
    double_from_float,
    float_from_binary_float,
    float_from_double,
    interval_ym_from_months,
    number_from_decimal,
    timestamp_from_datetime,
)
from tests.oracle_embedded.encodings import (
    interval_ds_from_timedelta,
    timedelta_from_interval_ds,
    timestamp_tz_from_datetime,
)
from tests.oracle_embedded.wire.fake_engine import Call, FakeEngine, column

_WHEN = dt.datetime(2024, 2, 29, 23, 59, 58, 123456)
_ROWID = "AAASNFAAHAAAAGZAAD"

_COLUMNS = [
    pytest.param(column("C", OraType.VARCHAR), "Grüße 🔥".encode(), "Grüße 🔥", id="varchar2"),
    pytest.param(column("C", OraType.VARCHAR), b"x" * 252, "x" * 252, id="varchar2-252"),
    pytest.param(column("C", OraType.VARCHAR), b"x" * 253, "x" * 253, id="varchar2-253"),
    pytest.param(column("C", OraType.VARCHAR), b"x" * 32767, "x" * 32767, id="varchar2-32767"),
    pytest.param(column("C", OraType.CHAR), b"ab  ", "ab  ", id="char"),
    pytest.param(
        column("C", OraType.VARCHAR, charset_form=2),
        "Grüße 🔥".encode(),
        "Grüße 🔥",
        id="nvarchar2",
    ),
    pytest.param(column("C", OraType.CHAR, charset_form=2), b"n", "n", id="nchar"),
    pytest.param(column("C", OraType.NUMBER), number_from_decimal(42), 42, id="number"),
    pytest.param(
        column("C", OraType.NUMBER, precision=10, scale=2),
        number_from_decimal(Decimal("-12.5")),
        -12.5,
        id="number-10-2",
    ),
    pytest.param(
        column("C", OraType.BINARY_INTEGER), number_from_decimal(-7), -7, id="binary-integer"
    ),
    pytest.param(
        column("C", OraType.DATE, size=7),
        date_from_datetime(_WHEN),
        _WHEN.replace(microsecond=0),
        id="date",
    ),
    pytest.param(
        column("C", OraType.TIMESTAMP, size=11, scale=6),
        timestamp_from_datetime(_WHEN),
        _WHEN,
        id="timestamp",
    ),
    pytest.param(
        column("C", OraType.TIMESTAMP_LTZ, size=11, scale=6),
        timestamp_from_datetime(_WHEN),
        _WHEN,
        id="timestamp-ltz",
    ),
    pytest.param(
        column("C", OraType.TIMESTAMP_TZ, size=13, scale=6),
        timestamp_tz_from_datetime(_WHEN, -330),
        _WHEN - dt.timedelta(minutes=330),
        id="timestamp-tz",
    ),
    pytest.param(column("C", OraType.RAW), bytes(range(256)), bytes(range(256)), id="raw"),
    pytest.param(
        column("C", OraType.BINARY_DOUBLE, size=8),
        double_from_float(-1.5e300),
        -1.5e300,
        id="double",
    ),
    pytest.param(
        column("C", OraType.BINARY_FLOAT, size=4), binary_float_from_float(0.5), 0.5, id="float"
    ),
    pytest.param(
        column("C", OraType.INTERVAL_DS, size=11, precision=2, scale=6),
        interval_ds_from_timedelta(-dt.timedelta(days=3, seconds=5, microseconds=7)),
        -dt.timedelta(days=3, seconds=5, microseconds=7),
        id="interval-ds",
    ),
    pytest.param(
        column("C", OraType.INTERVAL_YM, size=5, precision=2),
        interval_ym_from_months(-25),
        oracledb.IntervalYM(-2, -1),
        id="interval-ym",
    ),
    pytest.param(column("C", OraType.ROWID, size=10), _ROWID.encode(), _ROWID, id="rowid"),
    pytest.param(column("C", OraType.UROWID, size=4000), _ROWID.encode(), _ROWID, id="urowid"),
    pytest.param(column("C", OraType.LONG), b"l" * 70000, "l" * 70000, id="long"),
    pytest.param(column("C", OraType.LONG_RAW), b"\x00" * 70000, b"\x00" * 70000, id="long-raw"),
    pytest.param(column("C", OraType.BOOLEAN, size=4), b"\x01", True, id="boolean-true"),
    pytest.param(column("C", OraType.BOOLEAN, size=4), b"\x00", False, id="boolean-false"),
]


@pytest.mark.parametrize(("meta", "encoded", "expected"), _COLUMNS)
def test_columns_reach_the_driver(
    connection: oracledb.Connection,
    engine: FakeEngine,
    meta: ColumnMeta,
    encoded: bytes,
    expected: object,
) -> None:
    """A value, NULL and the value again, between neighbours that show whether the row is in step."""
    one = number_from_decimal(1)
    neighbour = column("N", OraType.NUMBER)
    rows = [(encoded, one, encoded), (None, one, None), (encoded, None, encoded)]
    engine.on_query("select c", [meta, neighbour, meta], rows)
    cursor = connection.cursor()
    cursor.execute("select c from t")
    assert cursor.fetchall() == [
        (expected, 1, expected),
        (None, 1, None),
        (expected, None, expected),
    ]
    assert cursor.description[1][0] == "N"


def test_describe_shows_name_type_size_precision_and_nullability(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    columns = [
        ColumnMeta("ID", OraType.NUMBER, precision=10, scale=2, size=22, nullable=False),
        ColumnMeta("größe", OraType.VARCHAR, size=40, char_size=10, charset_form=1),
        ColumnMeta("TS", OraType.TIMESTAMP, scale=3, size=11),
    ]
    engine.on_query("select d", columns, [])
    cursor = connection.cursor()
    cursor.parse("select d from t")
    names = [
        (info.name, info.type_code, info.precision, info.scale, info.null_ok)
        for info in cursor.description
    ]
    assert names == [
        ("ID", oracledb.DB_TYPE_NUMBER, 10, 2, False),
        ("größe", oracledb.DB_TYPE_VARCHAR, None, None, True),
        ("TS", oracledb.DB_TYPE_TIMESTAMP, 0, 3, True),
    ]
    assert cursor.description[1].internal_size == 40
    assert cursor.description[1].display_size == 10
    assert engine.calls == []


_BINDS = [
    pytest.param("Grüße 🔥", None, OraType.VARCHAR, "Grüße 🔥".encode(), id="str"),
    pytest.param("", None, OraType.VARCHAR, None, id="empty-str-is-null"),
    pytest.param("x" * 8000, None, OraType.VARCHAR, b"x" * 8000, id="str-8000"),
    pytest.param("x" * 70000, None, OraType.VARCHAR, b"x" * 70000, id="str-over-long"),
    pytest.param("Grüße", oracledb.DB_TYPE_NVARCHAR, OraType.VARCHAR, "Grüße".encode(), id="nstr"),
    pytest.param("ab", oracledb.DB_TYPE_CHAR, OraType.CHAR, b"ab", id="char"),
    pytest.param(None, None, OraType.VARCHAR, None, id="none"),
    pytest.param(
        12345678901234567890,
        None,
        OraType.NUMBER,
        number_from_decimal(12345678901234567890),
        id="int",
    ),
    pytest.param(-2.5, None, OraType.NUMBER, number_from_decimal(Decimal("-2.5")), id="float"),
    pytest.param(Decimal("1e-130"), None, OraType.NUMBER, b"\x80\x02", id="decimal"),
    pytest.param(True, None, OraType.BINARY_INTEGER, number_from_decimal(1), id="bool"),
    pytest.param(_WHEN, None, OraType.DATE, date_from_datetime(_WHEN), id="datetime"),
    pytest.param(
        dt.date(2024, 2, 29), None, OraType.DATE, bytes((120, 124, 2, 29, 1, 1, 1)), id="date"
    ),
    pytest.param(
        _WHEN,
        oracledb.DB_TYPE_TIMESTAMP,
        OraType.TIMESTAMP,
        timestamp_from_datetime(_WHEN),
        id="timestamp",
    ),
    pytest.param(
        _WHEN.replace(microsecond=0),
        oracledb.DB_TYPE_TIMESTAMP,
        OraType.TIMESTAMP,
        timestamp_from_datetime(_WHEN.replace(microsecond=0)),
        id="timestamp-without-fraction-is-padded",
    ),
    pytest.param(
        _WHEN,
        oracledb.DB_TYPE_TIMESTAMP_TZ,
        OraType.TIMESTAMP_TZ,
        timestamp_tz_from_datetime(_WHEN, 0),
        id="timestamp-tz",
    ),
    pytest.param(
        dt.timedelta(days=-1, seconds=3),
        None,
        OraType.INTERVAL_DS,
        interval_ds_from_timedelta(dt.timedelta(days=-1, seconds=3)),
        id="timedelta",
    ),
    pytest.param(
        oracledb.IntervalYM(3, 4),
        None,
        OraType.INTERVAL_YM,
        interval_ym_from_months(40),
        id="interval-ym",
    ),
    pytest.param(b"\x00\xff", None, OraType.RAW, b"\x00\xff", id="bytes"),
    pytest.param(b"r" * 70000, None, OraType.RAW, b"r" * 70000, id="bytes-over-long"),
    pytest.param(
        1.5,
        oracledb.DB_TYPE_BINARY_DOUBLE,
        OraType.BINARY_DOUBLE,
        double_from_float(1.5),
        id="double",
    ),
    pytest.param(
        1.5,
        oracledb.DB_TYPE_BINARY_FLOAT,
        OraType.BINARY_FLOAT,
        binary_float_from_float(1.5),
        id="binary-float",
    ),
]


@pytest.mark.parametrize(("value", "declared", "ora_type", "encoded"), _BINDS)
def test_binds_reach_the_engine(
    connection: oracledb.Connection,
    engine: FakeEngine,
    value: object,
    declared: object,
    ora_type: OraType,
    encoded: bytes | None,
) -> None:
    engine.on_statement("insert", lambda call: Outcome(StatementKind.DML, row_count=1), binds=3)
    cursor = connection.cursor()
    if declared is not None:
        cursor.setinputsizes(None, declared, None)
    cursor.execute("insert into t values (:1, :2, :3)", [1, value, "z"])
    call = engine.calls[0]
    assert call.binds == [[number_from_decimal(1), encoded, b"z"]]
    assert call.metas[1].type is ora_type


def test_over_long_values_are_put_back_in_place(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_statement("insert", lambda call: Outcome(StatementKind.DML, row_count=2), binds=4)
    connection.cursor().executemany(
        "insert into t values (:1, :2, :3, :4)",
        [["a" * 40000, 1, "b" * 50000, "c"], ["d", 2, None, "e"]],
    )
    assert engine.calls[0].binds == [
        [b"a" * 40000, number_from_decimal(1), b"b" * 50000, b"c"],
        [b"d", number_from_decimal(2), None, b"e"],
    ]


def test_bind_types_that_are_not_supported_are_refused(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_statement("begin", lambda call: Outcome(StatementKind.PLSQL), 2, StatementKind.PLSQL)
    cursor = connection.cursor()
    cursor.setinputsizes(oracledb.DB_TYPE_JSON, None)
    with pytest.raises(oracledb.DatabaseError, match="ORA-03001"):
        cursor.execute("begin p(:1, :2); end;", [{"a": 1}, 5])
    connection.ping()


def test_arrays_go_both_ways(connection: oracledb.Connection, engine: FakeEngine) -> None:
    def run(call: Call) -> Outcome:
        arrays: Any = call.binds  # the value of a bind that is an array is a list
        [[texts, numbers]] = arrays
        assert texts == [b"a", None, b"c"]
        out = OutBind(1, call.metas[1], [[numbers[::-1]]])
        return Outcome(StatementKind.PLSQL, out_binds=[out])

    engine.on_statement("begin", run, 2, StatementKind.PLSQL)
    cursor = connection.cursor()
    numbers = cursor.arrayvar(int, [1, 2, 3], 5)
    cursor.execute("begin p(:1, :2); end;", [cursor.arrayvar(str, ["a", None, "c"]), numbers])
    assert numbers.getvalue() == [3, 2, 1]


@pytest.fixture(scope="module")
def echo() -> Iterator[tuple[oracledb.Connection, FakeEngine]]:
    """One connection for all examples of the property tests."""
    engine = FakeEngine()
    with (
        EmbeddedServer(engine) as server,
        oracledb.connect(user="scott", password="tiger", dsn=server.dsn) as connection,
    ):
        yield connection, engine


_PROPERTY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
_DECIMALS = st.builds(
    lambda digits, exponent: Decimal(f"{digits}E{exponent}"),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-120, 80),
)


def _send(echo: tuple[oracledb.Connection, FakeEngine], value: object, declared: object) -> bytes:
    connection, engine = echo
    engine.calls.clear()
    engine.on_statement("insert", lambda call: Outcome(StatementKind.DML, row_count=1), binds=1)
    cursor = connection.cursor()
    cursor.setinputsizes(declared)
    cursor.execute("insert into t values (:1)", [value])
    sent = engine.calls[0].binds[0][0]
    assert sent is not None
    return sent


def _receive(
    echo: tuple[oracledb.Connection, FakeEngine], meta: ColumnMeta, encoded: bytes
) -> object:
    connection, engine = echo
    sql = f"select {meta.type.name} from t"
    engine.on_query(sql, [meta], [(encoded,)])
    with connection.cursor() as cursor:
        cursor.execute(sql, fetch_decimals=True)
        return cursor.fetchone()[0]


@_PROPERTY
@given(value=_DECIMALS)
def test_numbers_survive_both_ways(
    echo: tuple[oracledb.Connection, FakeEngine], value: Decimal
) -> None:
    encoded = _send(echo, value, oracledb.DB_TYPE_NUMBER)
    assert encoded == number_from_decimal(value)
    assert decimal_from_number(encoded) == value
    assert _receive(echo, column("N", OraType.NUMBER), encoded) == value


@_PROPERTY
@given(value=st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)))
def test_timestamps_survive_both_ways(
    echo: tuple[oracledb.Connection, FakeEngine], value: dt.datetime
) -> None:
    encoded = _send(echo, value, oracledb.DB_TYPE_TIMESTAMP)
    assert encoded == timestamp_from_datetime(value)
    assert datetime_from_date(encoded) == value
    assert _receive(echo, column("T", OraType.TIMESTAMP, size=11, scale=6), encoded) == value


@_PROPERTY
@given(value=st.timedeltas(dt.timedelta(days=-999999999 // 2), dt.timedelta(days=999999999 // 2)))
def test_intervals_survive_both_ways(
    echo: tuple[oracledb.Connection, FakeEngine], value: dt.timedelta
) -> None:
    encoded = interval_ds_from_timedelta(value)
    assert timedelta_from_interval_ds(encoded) == value
    meta = column("I", OraType.INTERVAL_DS, size=11, precision=9, scale=6)
    assert _receive(echo, meta, encoded) == value
    assert timedelta_from_interval_ds(_send(echo, value, oracledb.DB_TYPE_INTERVAL_DS)) == value


@_PROPERTY
@given(value=st.floats(allow_nan=False))
def test_doubles_survive_both_ways(
    echo: tuple[oracledb.Connection, FakeEngine], value: float
) -> None:
    encoded = double_from_float(value)
    assert float_from_double(encoded) == value
    assert _receive(echo, column("D", OraType.BINARY_DOUBLE, size=8), encoded) == value
    assert float_from_double(_send(echo, value, oracledb.DB_TYPE_BINARY_DOUBLE)) == value


@_PROPERTY
@given(value=st.floats(width=32, allow_nan=False))
def test_floats_survive_both_ways(
    echo: tuple[oracledb.Connection, FakeEngine], value: float
) -> None:
    encoded = binary_float_from_float(value)
    assert float_from_binary_float(encoded) == value
    assert _receive(echo, column("F", OraType.BINARY_FLOAT, size=4), encoded) == value


@_PROPERTY
@given(value=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400))
def test_texts_survive_both_ways(echo: tuple[oracledb.Connection, FakeEngine], value: str) -> None:
    for form, declared in ((1, oracledb.DB_TYPE_VARCHAR), (2, oracledb.DB_TYPE_NVARCHAR)):
        assert _send(echo, value, declared) == value.encode()
        meta = column("S", OraType.VARCHAR, charset_form=form)
        assert _receive(echo, meta, value.encode()) == value
