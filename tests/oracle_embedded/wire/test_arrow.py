"""Arrow batches, the way that the pipeline reads."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import oracledb
import pyarrow
import pytest

from oracle_embedded.api import OraType
from oracle_embedded.values import (
    date_from_datetime,
    double_from_float,
    number_from_decimal,
    timestamp_from_datetime,
)
from tests.oracle_embedded.wire.fake_engine import FakeEngine, column

_WHEN = dt.datetime(2024, 2, 29, 1, 2, 3, 456789)
_COLUMNS = [
    column("ID", OraType.NUMBER, precision=10, scale=0),
    column("AMOUNT", OraType.NUMBER, precision=38, scale=2),
    column("ANY_NUMBER", OraType.NUMBER),
    column("NAME", OraType.VARCHAR),
    column("DAY", OraType.DATE, size=7),
    column("TS", OraType.TIMESTAMP, size=11, scale=6),
    column("TS9", OraType.TIMESTAMP, size=11, scale=9),
    column("D", OraType.BINARY_DOUBLE, size=8),
    column("R", OraType.RAW),
]


def _row(n: int) -> tuple[bytes | None, ...]:
    return (
        number_from_decimal(n),
        number_from_decimal(Decimal(n).scaleb(-2)),
        number_from_decimal(n),
        f"name {n}".encode() if n % 3 else None,
        date_from_datetime(_WHEN),
        timestamp_from_datetime(_WHEN),
        timestamp_from_datetime(_WHEN, n + 1),
        double_from_float(n / 2),
        n.to_bytes(4, "big"),
    )


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 12345])
def test_batches_hold_all_rows_with_exact_values(
    connection: oracledb.Connection, engine: FakeEngine, count: int
) -> None:
    engine.on_query("select a", _COLUMNS, [_row(n) for n in range(count)])
    frames = list(connection.fetch_df_batches("select a from t", size=1000, fetch_decimals=True))
    table = pyarrow.concat_tables([pyarrow.table(frame) for frame in frames])
    assert table.num_rows == count
    assert [str(field.type) for field in table.schema] == [
        "decimal128(10, 0)",
        "decimal128(38, 2)",
        "double",
        "large_string",
        "timestamp[s]",
        "timestamp[us]",
        "timestamp[ns]",
        "double",
        "large_binary",
    ]
    if count:
        last = table.slice(count - 1).to_pylist()[0]
        n = count - 1
        assert last["ID"] == n
        assert last["AMOUNT"] == Decimal(n).scaleb(-2)
        assert last["NAME"] == (f"name {n}" if n % 3 else None)
        assert last["TS"] == _WHEN
        # The driver (26.1.0) cuts nanoseconds even where the Arrow type would hold them.
        assert (
            table.column("TS9").cast("int64")[n].as_py() % 1_000_000_000 == (n + 1) // 1000 * 1000
        )
    assert table.column("ID").to_pylist() == list(range(count))


def test_requested_schema_keeps_all_digits(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    value = Decimal("1234567890123456789012345678.0123456789")
    engine.on_query("select n", [column("N", OraType.NUMBER)], [(number_from_decimal(value),)])
    schema = pyarrow.schema([("N", pyarrow.decimal128(38, 10))])
    frame = connection.fetch_df_all("select n from t", requested_schema=schema)
    assert pyarrow.table(frame).column("N").to_pylist() == [value]


def test_arrow_tables_are_bound(connection: oracledb.Connection, engine: FakeEngine) -> None:
    from oracle_embedded.api import Outcome, StatementKind

    engine.on_statement("insert", lambda call: Outcome(StatementKind.DML, row_count=3), binds=2)
    table = pyarrow.table({"A": [1, 2, None], "B": ["x", None, "z"]})
    connection.cursor().executemany("insert into t values (:1, :2)", table)
    assert engine.calls[0].binds == [
        [number_from_decimal(1), b"x"],
        [number_from_decimal(2), None],
        [None, b"z"],
    ]
