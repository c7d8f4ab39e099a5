"""Queries in many fetches, DML, array DML, RETURNING, PL/SQL, errors and the life of cursors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import oracledb
import pytest

from oracle_embedded.api import (
    BindMeta,
    OracleError,
    OraType,
    OutBind,
    Outcome,
    StatementKind,
    Value,
)
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.values import decimal_from_number, number_from_decimal
from oracle_embedded.wire.placeholders import returning_positions
from tests.oracle_embedded.wire.fake_engine import Call, FakeEngine, FakeRows, Script, column

_NUMBERS = [column("N", OraType.NUMBER)]
_NUMBER_META = BindMeta(OraType.NUMBER, 22)


def _numbers(count: int) -> list[tuple[bytes]]:
    return [(number_from_decimal(n),) for n in range(count)]


def _count_rows(call: Call) -> Outcome:
    counts = [1] * max(len(call.binds), 1)
    return Outcome(StatementKind.DML, row_count=len(counts), row_counts=counts)


# --- queries ---


@pytest.mark.parametrize("count", [0, 1, 2, 3, 99, 100, 101, 102, 5000])
@pytest.mark.parametrize("prefetch", [0, 2, 1000])
def test_all_rows_arrive_whatever_the_fetch_size(
    connection: oracledb.Connection, engine: FakeEngine, count: int, prefetch: int
) -> None:
    engine.on_query("select n", _NUMBERS, _numbers(count))
    cursor = connection.cursor()
    cursor.prefetchrows = prefetch
    for _ in range(3):
        cursor.execute("select n from t")
        assert [n for (n,) in cursor] == list(range(count))


def test_never_more_rows_than_asked_for(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    asked: list[int] = []

    def rows(count: int) -> list[tuple[bytes]]:
        asked.append(count)
        return _numbers(count)

    engine.on_query("select n", _NUMBERS, rows)
    cursor = connection.cursor()
    cursor.arraysize, cursor.prefetchrows = 7, 3
    cursor.execute("select n from t")
    assert [n for (n,) in cursor.fetchmany(10)] == [0, 1, 2, *range(7)]
    assert asked == [3, 7]


def test_cursors_are_interleaved(connection: oracledb.Connection, engine: FakeEngine) -> None:
    engine.on_query("select n", _NUMBERS, _numbers(500))
    one, two = connection.cursor(), connection.cursor()
    one.execute("select n from t")
    two.execute("select n from u")
    pairs = list(zip(one, two, strict=True))
    assert pairs == [((n,), (n,)) for n in range(500)]


def test_queries_take_binds_and_run_again_with_others(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.scripts["select b"] = Script(
        StatementKind.QUERY,
        lambda call: Outcome(
            StatementKind.QUERY, rows=FakeRows(_NUMBERS, [(call.binds[0][0],)] * 3)
        ),
        _NUMBERS,
        2,
    )
    cursor = connection.cursor()
    for value in (1, 2, 3):
        cursor.execute("select b from t where a = :a and b = :b", a=value, b="x" * value)
        assert cursor.fetchall() == [(value,)] * 3
    assert len(engine.calls) == 3


def test_result_is_closed_when_it_ends_and_when_the_cursor_closes(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    opened: list[FakeRows] = []

    def run(call: Call) -> Outcome:
        opened.append(FakeRows(_NUMBERS, _numbers(1000)))
        return Outcome(StatementKind.QUERY, rows=opened[-1])

    engine.scripts["select n"] = Script(StatementKind.QUERY, run, _NUMBERS)
    cursor = connection.cursor()
    cursor.execute("select n from t")
    cursor.fetchall()
    assert opened[0].closed
    cursor.execute("select n from t")
    cursor.fetchone()
    assert not opened[1].closed
    cursor.execute("select n from t")
    assert opened[1].closed


def test_changed_columns_make_the_client_parse_again(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_query("select n", _NUMBERS, _numbers(3))
    cursor = connection.cursor()
    cursor.execute("select n from t")
    assert cursor.fetchall() == [(0,), (1,), (2,)]
    engine.on_query(
        "select n", [column("S", OraType.VARCHAR), column("C", OraType.CLOB)], [(b"s", b"h")]
    )
    engine.lobs[b"h"] = (OraType.CLOB, b"content")
    cursor.execute("select n from t")
    [(text, lob)] = cursor.fetchall()
    assert (text, lob.read()) == ("s", "content")
    assert [info.name for info in cursor.description] == ["S", "C"]


def test_more_statements_than_the_cache_holds(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_query("select n", _NUMBERS, _numbers(1))
    for number in range(70):
        with connection.cursor() as cursor:
            cursor.execute(f"select n from t{number}")
            assert cursor.fetchall() == [(0,)]
    connection.ping()


# --- DML ---


def test_dml_tells_count_and_rowid(connection: oracledb.Connection, engine: FakeEngine) -> None:
    rowid = "AAASNFAAHAAAAGZAAD"
    engine.on_statement(
        "update", lambda call: Outcome(StatementKind.DML, row_count=70000, last_rowid=rowid)
    )
    cursor = connection.cursor()
    cursor.execute("update t set a = 1")
    assert (cursor.rowcount, cursor.lastrowid) == (70000, rowid)


@pytest.mark.parametrize("count", [1, 2, 3000])
def test_array_dml_counts_each_execution(
    connection: oracledb.Connection, engine: FakeEngine, count: int
) -> None:
    engine.on_statement("insert", _count_rows, binds=2)
    cursor = connection.cursor()
    data: list[tuple[int | None, str]] = [(n, str(n)) for n in range(count)]
    cursor.executemany("insert into t values (:1, :2)", data, arraydmlrowcounts=True)
    assert cursor.rowcount == count
    assert cursor.getarraydmlrowcounts() == [1] * count
    assert engine.calls[0].binds == [
        [number_from_decimal(n), str(n).encode()] for n in range(count)
    ]
    cursor.executemany("insert into t values (:1, :2)", data)
    assert len(engine.calls[1].binds) == count


def test_array_dml_collects_batch_errors(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    def run(call: Call) -> Outcome:
        assert call.batch_errors
        errors = [
            (at, OracleError(1, f"unique constraint (S.K{at}) violated")) for at in range(1, 400, 3)
        ]
        return Outcome(StatementKind.DML, row_count=267, row_counts=[], batch_errors=errors)

    engine.on_statement("insert", run, binds=1)
    cursor = connection.cursor()
    cursor.executemany("insert into t values (:1)", [[n] for n in range(400)], batcherrors=True)
    errors = cursor.getbatcherrors()
    assert [error.offset for error in errors] == list(range(1, 400, 3))
    assert errors[0].full_code == "ORA-00001"
    assert "S.K1" in errors[0].message
    assert cursor.rowcount == 267


def test_array_dml_that_fails_midway_tells_how_far_it_came(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    def run(call: Call) -> Outcome:
        error = OracleError(1, "unique constraint (S.K) violated")
        error.row_count = 3
        raise error

    engine.on_statement("insert", run, binds=1)
    cursor = connection.cursor()
    for _ in range(2):
        with pytest.raises(oracledb.IntegrityError, match="ORA-00001"):
            cursor.executemany("insert into t values (:1)", [[n] for n in range(5)])
        assert cursor.rowcount == 3
    engine.on_statement("insert", _count_rows, binds=1)
    cursor.executemany("insert into t values (:1)", [[n] for n in range(5)])
    assert cursor.rowcount == 5


def test_changed_bind_types_bring_new_metadata(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_statement("insert", _count_rows, binds=1)
    cursor = connection.cursor()
    for value in (1, "text", 2.5, "longer text than before"):
        cursor.execute("insert into t values (:1)", [value])
    types = [call.metas[0].type for call in engine.calls]
    assert types == [
        OraType.NUMBER,
        OraType.VARCHAR,
        OraType.NUMBER,
        OraType.VARCHAR,
    ]


def test_missing_binds_are_an_error(connection: oracledb.Connection, engine: FakeEngine) -> None:
    engine.on_statement("insert", _count_rows, binds=2)
    with pytest.raises(oracledb.DatabaseError, match="ORA-01008"):
        connection.cursor().execute("insert into t values (:1)", [1])


def test_autocommit_commits_after_dml_and_not_after_its_failure(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    def fail(call: Call) -> Outcome:
        raise OracleError(1400, "cannot insert NULL")

    connection.autocommit = True
    engine.on_statement("insert", _count_rows, binds=1)
    engine.on_statement("update", fail)
    cursor = connection.cursor()
    cursor.execute("insert into t values (:1)", [1])
    cursor.execute("insert into t values (:1)", [2])
    with pytest.raises(oracledb.IntegrityError):
        cursor.execute("update t set a = null")
    assert engine.sessions[0].log.count("COMMIT") == 2


# --- RETURNING and PL/SQL ---


def test_returning_gives_values_of_every_execution(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    def run(call: Call) -> Outcome:
        values = [[row[0]] * at for at, row in enumerate(call.binds)]
        out = OutBind(1, _NUMBER_META, values)
        return Outcome(StatementKind.DML, row_count=3, row_counts=[0, 1, 2], out_binds=[out])

    engine.on_statement("update", run, binds=2)
    cursor = connection.cursor()
    result = cursor.var(int, arraysize=3)
    cursor.setinputsizes(None, result)
    for _ in range(2):
        cursor.executemany(
            "update t set a = ':x' where b = :1 returning a into :2", [(5,), (6,), (7,)]
        )
        assert result.values == [[], [6], [7, 7]]
    assert [row[0] for row in engine.calls[1].binds] == [number_from_decimal(n) for n in (5, 6, 7)]


def test_returning_without_other_binds(connection: oracledb.Connection, engine: FakeEngine) -> None:
    out = [
        OutBind(0, _NUMBER_META, [[number_from_decimal(9)]]),
        OutBind(1, BindMeta(OraType.VARCHAR, 100, 1), [[b"text"]]),
    ]
    engine.on_statement(
        "insert", lambda call: Outcome(StatementKind.DML, row_count=1, out_binds=out), binds=2
    )
    cursor = connection.cursor()
    number, text = cursor.var(int), cursor.var(str)
    cursor.execute("insert into t values (9, 'text') returning a, b into :a, :b", [number, text])
    assert (number.getvalue(), text.getvalue()) == ([9], ["text"])


@pytest.mark.parametrize(
    ("sql", "positions"),
    [
        pytest.param("insert into t values (:1) returning a into :2", {1}, id="plain"),
        pytest.param("update t set a=':x', b=:b RETURNING a, b INTO :c, :d", {1, 2}, id="string"),
        pytest.param("insert into t values (:1) return a into :2", {1}, id="return"),
        pytest.param("delete t where a=q'[it's :x]' and b=:b returning b into :c", {1}, id="q"),
        pytest.param("delete t /* :a returning into */ where b = :b", set(), id="comment"),
        pytest.param('update t set "A:b" = :1 -- returning\n returning c into :2', {1}, id="line"),
        pytest.param("insert into t values (:1)", set(), id="no-returning"),
        pytest.param("select a returning from t into :1", set(), id="query"),
        pytest.param("begin update t set a=1 returning a into :1; end;", set(), id="plsql"),
        pytest.param('insert into t values (:1) returning a into : "Q q"', {1}, id="quoted"),
    ],
)
def test_returning_positions_follow_the_clients_rules(sql: str, positions: set[int]) -> None:
    assert returning_positions(sql) == positions


def test_python_oracledb_takes_no_return_for_returning() -> None:
    assert not returning_positions("delete t return a into :1", takes_return=False)


def _double(call: Call) -> Outcome:
    values: list[list[Value]] = [
        [number_from_decimal(decimal_from_number(row[-1] or b"\x80") * 2)] for row in call.binds
    ]
    return Outcome(StatementKind.PLSQL, out_binds=[OutBind(0, _NUMBER_META, values)])


def test_plsql_gives_out_values_and_takes_in_values(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_statement("begin :o", _double, 2, StatementKind.PLSQL)
    cursor = connection.cursor()
    out = cursor.var(int)
    for value in (21, 4, 5):
        cursor.execute("begin :o := :i * 2; end;", o=out, i=value)
        assert out.getvalue() == 2 * value
    assert engine.calls[2].binds == [[None, number_from_decimal(5)]]


def test_plsql_in_out_binds_are_sent_again(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    def run(call: Call) -> Outcome:
        outcome = _double(call)
        outcome.out_binds[0].also_in = True
        return outcome

    engine.on_statement("begin :io", run, 1, StatementKind.PLSQL)
    cursor = connection.cursor()
    var = cursor.var(int)
    var.setvalue(0, 3)
    for expected in (6, 12, 24):
        cursor.execute("begin :io := :io * 2; end;", io=var)
        assert var.getvalue() == expected


def test_plsql_runs_many_times(connection: oracledb.Connection, engine: FakeEngine) -> None:
    engine.on_statement("begin :o", _double, 2, StatementKind.PLSQL)
    cursor = connection.cursor()
    out = cursor.var(int, arraysize=4)
    cursor.setinputsizes(out, int)
    cursor.executemany("begin :o := :i * 2; end;", [(None, n) for n in (1, 2, 3, 4)])
    assert out.values == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("var_type", "ora_type", "form", "encoded", "expected"),
    [
        pytest.param(str, OraType.VARCHAR, 1, "ü".encode(), "ü", id="text"),
        pytest.param(oracledb.DB_TYPE_NVARCHAR, OraType.VARCHAR, 2, "ü".encode(), "ü", id="ntext"),
        pytest.param(str, OraType.VARCHAR, 1, None, None, id="null"),
        pytest.param(oracledb.DB_TYPE_BOOLEAN, OraType.BOOLEAN, 0, b"\x01", True, id="true"),
        pytest.param(oracledb.DB_TYPE_BOOLEAN, OraType.BOOLEAN, 0, b"\x00", False, id="false"),
        pytest.param(oracledb.DB_TYPE_BOOLEAN, OraType.BOOLEAN, 0, None, None, id="null-boolean"),
        pytest.param(oracledb.DB_TYPE_RAW, OraType.RAW, 0, b"\x00\x01", b"\x00\x01", id="raw"),
    ],
)
def test_plsql_out_types(
    connection: oracledb.Connection,
    engine: FakeEngine,
    var_type: Any,
    ora_type: OraType,
    form: int,
    encoded: bytes | None,
    expected: object,
) -> None:
    out = OutBind(0, BindMeta(ora_type, 100, form), [[encoded]])
    engine.on_statement(
        "begin", lambda call: Outcome(StatementKind.PLSQL, out_binds=[out]), 1, StatementKind.PLSQL
    )
    cursor = connection.cursor()
    var = cursor.var(var_type)
    cursor.execute("begin p(:1); end;", [var])
    assert var.getvalue() == expected


@pytest.mark.parametrize("value", [True, False, None])
def test_plsql_takes_booleans(
    connection: oracledb.Connection, engine: FakeEngine, value: bool | None
) -> None:
    engine.on_statement("begin", lambda call: Outcome(StatementKind.PLSQL), 2, StatementKind.PLSQL)
    cursor = connection.cursor()
    cursor.setinputsizes(oracledb.DB_TYPE_BOOLEAN, None)
    cursor.execute("begin p(:1, :2); end;", [value, 3])
    expected = None if value is None else bytes([value])
    assert engine.calls[0].binds == [[expected, number_from_decimal(3)]]


# --- errors ---


def test_parse_errors_tell_their_place(connection: oracledb.Connection) -> None:
    with pytest.raises(oracledb.DatabaseError) as caught:
        connection.cursor().execute("select * from missing where a = :1", ["x" * 40000])
    error = caught.value.args[0]
    assert (error.code, error.full_code, error.offset) == (942, "ORA-00942", 14)
    connection.ping()


def test_errors_of_the_first_execution_leave_the_statement_usable(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    def fail(call: Call) -> Outcome:
        raise OracleError(1476, "divisor is equal to zero")

    engine.on_statement("insert", fail, binds=1)
    cursor = connection.cursor()
    for _ in range(3):
        with pytest.raises(oracledb.DatabaseError, match="ORA-01476"):
            cursor.execute("insert into t values (:1)", [1])
    engine.on_statement("insert", _count_rows, binds=1)
    cursor.execute("insert into t values (:1)", [1])
    assert cursor.rowcount == 1


def test_errors_in_the_middle_of_a_fetch_come_after_the_rows(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    batches: Iterator[list[tuple[bytes]] | OracleError] = iter(
        [_numbers(100), OracleError(1555, "snapshot too old")]
    )

    def rows(count: int) -> list[tuple[bytes]]:
        batch = next(batches)
        if isinstance(batch, OracleError):
            raise batch
        return batch

    engine.on_query("select n", _NUMBERS, rows)
    cursor = connection.cursor()
    cursor.prefetchrows, cursor.arraysize = 100, 100
    cursor.execute("select n from t")
    assert len(cursor.fetchmany(100)) == 100
    with pytest.raises(oracledb.DatabaseError, match="ORA-01555"):
        cursor.fetchmany(100)
    connection.ping()


def test_bugs_of_the_engine_become_errors_without_values(
    connection: oracledb.Connection, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(call: Call) -> Outcome:
        raise KeyError("secret value")

    engine.on_statement("insert", fail)
    with pytest.raises(oracledb.DatabaseError, match=r"ORA-00604.*KeyError") as caught:
        connection.cursor().execute("insert into t values ('secret value')")
    assert "secret" not in str(caught.value)
    assert "secret" not in caplog.text
    connection.ping()


def test_parse_only_runs_nothing(connection: oracledb.Connection, engine: FakeEngine) -> None:
    engine.on_statement("insert", _count_rows, binds=1)
    connection.cursor().parse("insert into t values (:1)")
    assert engine.calls == []


def test_dml_without_binds_runs_as_often_as_asked(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_statement("insert", _count_rows)
    cursor = connection.cursor()
    cursor.executemany("insert into t values (1)", 4)
    assert cursor.rowcount == 4


def test_array_dml_with_errors_is_not_committed_by_itself(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    errors = [(0, OracleError(1, "unique constraint (S.K) violated"))]
    engine.on_statement(
        "insert", lambda call: Outcome(StatementKind.DML, row_count=1, batch_errors=errors), binds=1
    )
    connection.autocommit = True
    connection.cursor().executemany("insert into t values (:1)", [[1], [2]], batcherrors=True)
    assert "COMMIT" not in engine.sessions[0].log
    assert connection.transaction_in_progress


def test_call_is_plsql_whatever_the_engine_says(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    out = OutBind(1, _NUMBER_META, [[number_from_decimal(8)]])
    engine.on_statement(
        "call", lambda call: Outcome(StatementKind.OTHER, out_binds=[out]), 2, StatementKind.OTHER
    )
    cursor = connection.cursor()
    result = cursor.var(int)
    for _ in range(2):
        cursor.execute("call f(:1) into :2", ["x" * 9000, result])
        assert result.getvalue() == 8


def test_a_scrollable_cursor_goes_to_any_row(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_query("select n", _NUMBERS, _numbers(300))
    cursor = connection.cursor(scrollable=True)
    cursor.arraysize = cursor.prefetchrows = 7
    cursor.execute("select n from t")
    seen = [cursor.fetchone()]
    for offset, mode in ((250, "absolute"), (-3, "relative"), (0, "first"), (0, "last")):
        cursor.scroll(offset, mode)
        seen.append(cursor.fetchone())
        assert cursor.rowcount == (seen[-1][0] + 1)
    assert seen == [(0,), (249,), (246,), (0,), (299,)]
    assert cursor.fetchone() is None
    with pytest.raises(oracledb.Error, match="DPY-2063"):
        cursor.scroll(301, "absolute")


def test_clients_without_a_statement_cache(server: EmbeddedServer, engine: FakeEngine) -> None:
    engine.on_query("select n", _NUMBERS, _numbers(300))
    with oracledb.connect(
        user="scott", password="tiger", dsn=server.dsn, stmtcachesize=0
    ) as connection:
        for _ in range(10):
            with connection.cursor() as cursor:
                assert len(cursor.execute("select n from t").fetchall()) == 300


def test_fetch_from_a_cursor_that_was_never_executed(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_query("select n", _NUMBERS, _numbers(3))
    cursor = connection.cursor()
    cursor.parse("select n from t")
    with pytest.raises(oracledb.Error):
        cursor.fetchone()
    assert len(cursor.execute("select n from t").fetchall()) == 3
