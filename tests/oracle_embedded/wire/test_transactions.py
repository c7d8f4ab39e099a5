"""Commit and rollback, call status, pools, piggybacks, breaks, lost connections and faults."""

from __future__ import annotations

import asyncio
import threading
import time

import oracledb
import pytest

from oracle_embedded.api import OracleError, OraType, Outcome, StatementKind
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.values import number_from_decimal
from tests.oracle_embedded.wire.fake_engine import (
    PATIENCE_SECONDS,
    Call,
    FakeEngine,
    Script,
    column,
)

_NUMBERS = [column("N", OraType.NUMBER)]
CALL_MILLISECONDS = 1_000
"""After this time the driver interrupts a call, and waits as long again for the answer before it closes the connection."""


@pytest.fixture(autouse=True)
def scripts(engine: FakeEngine) -> None:
    rows = [(number_from_decimal(n),) for n in range(1000)]
    engine.on_query("select n", _NUMBERS, rows)
    engine.on_statement("insert", lambda call: Outcome(StatementKind.DML, row_count=1))


def _wait(engine: FakeEngine) -> None:
    def run(call: Call) -> Outcome:
        engine.sessions[-1].wait_for_interrupt()
        return Outcome(StatementKind.DML)

    engine.on_statement("update", run)


# --- transactions ---


def test_commit_and_rollback_reach_the_engine(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    assert not connection.transaction_in_progress
    connection.cursor().execute("insert into t values (1)")
    assert connection.transaction_in_progress
    connection.commit()
    assert not connection.transaction_in_progress
    connection.cursor().execute("insert into t values (1)")
    connection.rollback()
    assert not connection.transaction_in_progress
    assert engine.sessions[0].log[-3:] == ["COMMIT", "insert into t values (1)", "ROLLBACK"]


def test_call_status_is_right_in_every_reply(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("insert into t values (1)")
    cursor.execute("select n from t")
    assert connection.transaction_in_progress
    cursor.fetchall()
    connection.ping()
    with pytest.raises(oracledb.DatabaseError):
        cursor.execute("select missing")
    assert connection.transaction_in_progress


def test_pool_rolls_back_on_release(server: EmbeddedServer, engine: FakeEngine) -> None:
    pool = oracledb.create_pool(
        user="scott", password="tiger", dsn=server.dsn, min=1, max=2, ping_interval=0
    )
    for _ in range(3):
        with pool.acquire() as connection:
            connection.cursor().execute("insert into t values (1)")
    with pool.acquire() as one, pool.acquire() as two:
        two.ping()
        assert not one.transaction_in_progress
    pool.close()
    assert len(engine.sessions) == 2
    assert sum(session.log.count("ROLLBACK") for session in engine.sessions) >= 3
    assert all(session.closed.wait(PATIENCE_SECONDS) for session in engine.sessions)


def test_lost_connections_roll_back(server: EmbeddedServer, engine: FakeEngine) -> None:
    _wait(engine)
    connection = oracledb.connect(user="scott", password="tiger", dsn=server.dsn)
    connection.cursor().execute("insert into t values (1)")
    connection.call_timeout = 100
    thread = threading.Thread(target=_ignore_errors, args=(connection, "update t"))
    thread.start()
    server._open.copy().popitem()[0].close()
    thread.join()
    session = engine.sessions[0]
    assert session.closed.wait(PATIENCE_SECONDS)
    assert "ROLLBACK" in session.log


def _ignore_errors(connection: oracledb.Connection, sql: str) -> None:
    try:
        connection.cursor().execute(sql)
    except oracledb.Error:
        return


# --- piggybacks ---


def test_schema_and_client_attributes_travel_with_the_next_call(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    connection.current_schema = "HR"
    connection.module = "loader"
    connection.action = "größe"
    connection.client_identifier = "me"
    connection.clientinfo = "info"
    connection.dbop = "op"
    assert connection.cursor().execute("select n from t").fetchone() == (0,)
    connection.module = ""
    connection.action = "other"
    connection.clientinfo = ""
    connection.ping()
    connection.ping()
    assert engine.sessions[0].attributes == {
        "CURRENT_SCHEMA": "HR",
        "MODULE": None,
        "ACTION": "other",
        "CLIENT_IDENTIFIER": "me",
        "CLIENT_INFO": None,
        "DBOP": "op",
    }


def test_errors_of_piggybacks_are_those_of_their_call(connection: oracledb.Connection) -> None:
    """The driver repeats the schema with every call (26.1.0)."""
    connection.current_schema = "NOBODY"
    for _ in range(2):
        with pytest.raises(oracledb.DatabaseError, match="ORA-01435"):
            connection.cursor().execute("select n from t")
    connection.current_schema = "SCOTT"
    connection.cursor().execute("select n from t")


def test_application_contexts_are_read_over(
    server: EmbeddedServer,
) -> None:
    context = [("CLIENTCONTEXT", "k1", "v1"), ("CLIENTCONTEXT", "k2", "")]
    with oracledb.connect(
        user="scott", password="tiger", dsn=server.dsn, appcontext=context
    ) as connection:
        connection.ping()


# --- breaks ---


def test_call_timeout_interrupts_the_statement(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    _wait(engine)
    connection.call_timeout = CALL_MILLISECONDS
    for _ in range(2):
        with pytest.raises(oracledb.DatabaseError, match="DPY-4024"):
            connection.cursor().execute("update t set a = 1")
    connection.call_timeout = 0
    assert len(connection.cursor().execute("select n from t").fetchall()) == 1000


def test_cancel_interrupts_the_statement(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    _wait(engine)
    for _ in range(3):
        timer = threading.Timer(0.2, connection.cancel)
        timer.start()
        with pytest.raises(oracledb.DatabaseError, match="ORA-01013"):
            connection.cursor().execute("update t set a = 1")
        timer.join()
    assert len(connection.cursor().execute("select n from t").fetchall()) == 1000


def test_cancel_of_an_idle_connection_ends_the_next_call(connection: oracledb.Connection) -> None:
    connection.cancel()
    with pytest.raises(oracledb.DatabaseError, match="ORA-01013"):
        connection.cursor().execute("select n from t")
    assert len(connection.cursor().execute("select n from t").fetchall()) == 1000


def test_cancel_in_the_middle_of_a_large_fetch(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    started = threading.Event()

    def rows(count: int) -> list[tuple[bytes]]:
        started.set()
        time.sleep(0.01)
        return [(b"x" * 2000,)] * count

    engine.on_query("select x", [column("X", OraType.VARCHAR)], rows)
    cursor = connection.cursor()
    cursor.prefetchrows = 1_000_000

    def cancel() -> None:
        started.wait(PATIENCE_SECONDS)
        connection.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(oracledb.DatabaseError, match="ORA-01013"):
        cursor.execute("select x from t")
    thread.join()
    assert len(connection.cursor().execute("select n from t").fetchall()) == 1000


def test_clients_that_fail_while_reading_rows_stay_in_step(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    """A date before Christ makes the driver raise and reset the call."""
    before_christ = bytes((53, 88, 1, 1, 1, 1, 1))
    rows = [(before_christ,)] * 30000
    engine.on_query("select d", [column("D", OraType.DATE, size=7)], rows)
    cursor = connection.cursor()
    cursor.prefetchrows = 30000
    with pytest.raises(Exception, match="year"):
        cursor.execute("select d from t")
    assert len(connection.cursor().execute("select n from t").fetchall()) == 1000


# --- faults ---


def test_ora_errors_at_the_nth_fetch(
    server: EmbeddedServer, connection: oracledb.Connection
) -> None:
    server.faults.arm(Fault(FaultKind.ORA_ERROR, sql_contains="FROM t", nth=3, code=1555))
    cursor = connection.cursor()
    cursor.arraysize = 100
    cursor.execute("select n from t")
    assert len(cursor.fetchmany(102)) == 102
    with pytest.raises(oracledb.DatabaseError, match="ORA-01555"):
        cursor.fetchall()
    assert len(cursor.execute("select n from t").fetchall()) == 1000


def test_lost_connections_at_the_nth_fetch(
    server: EmbeddedServer, connection: oracledb.Connection, engine: FakeEngine
) -> None:
    server.faults.arm(Fault(FaultKind.LOST_CONNECTION, sql_contains="select n", nth=2))
    connection.cursor().execute("insert into t values (1)")
    cursor = connection.cursor()
    cursor.execute("select n from t")
    with pytest.raises(oracledb.DatabaseError, match="DPY-4011"):
        cursor.fetchall()
    assert engine.sessions[0].closed.wait(PATIENCE_SECONDS)
    assert engine.sessions[0].log[-1] == "ROLLBACK"


def test_delays_and_their_end(server: EmbeddedServer, connection: oracledb.Connection) -> None:
    server.faults.arm(Fault(FaultKind.DELAY, delay_seconds=0.05, times=0))
    started = time.monotonic()
    assert len(connection.cursor().execute("select n from t").fetchall()) == 1000
    assert time.monotonic() - started > 0.3
    server.faults.disarm_all()
    assert server.faults.armed() == ()


def test_calls_that_are_delayed_can_be_cancelled(
    server: EmbeddedServer, connection: oracledb.Connection
) -> None:
    server.faults.arm(Fault(FaultKind.DELAY, delay_seconds=600))
    connection.call_timeout = CALL_MILLISECONDS
    with pytest.raises(oracledb.DatabaseError, match="DPY-4024"):
        connection.cursor().execute("select n from t")
    connection.call_timeout = 0
    assert len(connection.cursor().execute("select n from t").fetchall()) == 1000


def test_async_calls_time_out_and_go_on(server: EmbeddedServer, engine: FakeEngine) -> None:
    _wait(engine)

    async def run() -> int:
        async with oracledb.connect_async(
            user="scott", password="tiger", dsn=server.dsn
        ) as connection:
            connection.call_timeout = CALL_MILLISECONDS
            with pytest.raises(oracledb.DatabaseError, match="DPY-4024"):
                await connection.execute("update t set a = 1")
            connection.call_timeout = 0
            return len(await connection.fetchall("select n from t"))

    assert asyncio.run(run()) == 1000


def test_faults_at_execute_hit_matching_statements_only(
    server: EmbeddedServer, connection: oracledb.Connection
) -> None:
    server.faults.arm(
        Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, sql_contains="INSERT", code=8177)
    )
    connection.cursor().execute("select n from t")
    with pytest.raises(oracledb.DatabaseError, match="ORA-08177"):
        connection.cursor().execute("insert into t values (1)")
    connection.cursor().execute("insert into t values (1)")


def test_sessions_that_were_killed_end_at_the_client(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    def killed(call: Call) -> Outcome:
        raise OracleError(28, "your session has been killed")

    engine.scripts["select k"] = Script(StatementKind.QUERY, killed, _NUMBERS)
    with pytest.raises(oracledb.DatabaseError, match="DPY-4011"):
        connection.cursor().execute("select k from t")
    assert not connection.is_healthy()


@pytest.mark.parametrize(
    ("event", "last"), [(FaultEvent.COMMIT, "ROLLBACK"), (FaultEvent.COMMITTED, "COMMIT")]
)
def test_lost_connections_around_a_commit(
    server: EmbeddedServer,
    connection: oracledb.Connection,
    engine: FakeEngine,
    event: FaultEvent,
    last: str,
) -> None:
    """The client sees the same error, whether the commit was done or not."""
    server.faults.arm(Fault(FaultKind.LOST_CONNECTION, event))
    connection.cursor().execute("insert into t values (1)")
    with pytest.raises(oracledb.DatabaseError, match="DPY-4011"):
        connection.commit()
    assert engine.sessions[0].closed.wait(PATIENCE_SECONDS)
    assert engine.sessions[0].log[-1] == last
