"""Who gets in, who does not, and what a client may break."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from pathlib import Path

import oracledb
import pytest

from oracle_embedded.api import OraType, Outcome, StatementKind
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.values import number_from_decimal
from oracle_embedded.wire.session import WireSettings
from tests.oracle_embedded.wire.fake_engine import PATIENCE_SECONDS, FakeEngine, column


def _connect(server: EmbeddedServer, **changes: object) -> oracledb.Connection:
    return oracledb.connect(**{"user": "scott", "password": "tiger", "dsn": server.dsn, **changes})


def test_login_opens_a_session_with_the_clients_name(
    server: EmbeddedServer, engine: FakeEngine
) -> None:
    with _connect(server, program="a" * 300) as connection:
        session = engine.sessions[0]
        assert (connection.session_id, connection.serial_num) == (session.session_id, 7)
        assert connection.version.startswith("19.3")
        assert connection.service_name == "freepdb1"
        assert connection.max_open_cursors == 300
        assert session.user == "SCOTT"
        assert session.log[0].startswith("ALTER SESSION SET TIME_ZONE='")
    assert session.closed.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"password": "lion"}, 1017, id="wrong-password"),
        pytest.param({"user": "nobody"}, 1017, id="unknown-user"),
        pytest.param({"user": '"scott"'}, 1017, id="quoted-name-keeps-its-case"),
        pytest.param({"user": "lockedout"}, 1045, id="engine-refuses-the-session"),
        pytest.param({"mode": oracledb.AUTH_MODE_SYSDBA}, 1031, id="sysdba-is-not-for-users"),
        pytest.param({"user": "scott[adams]"}, 28150, id="proxy-login"),
    ],
)
def test_login_is_refused(
    server: EmbeddedServer, engine: FakeEngine, change: dict[str, object], code: int
) -> None:
    engine.users["LOCKEDOUT"] = "tiger"
    with pytest.raises(oracledb.DatabaseError) as caught:
        _connect(server, **change)
    assert caught.value.args[0].code == code


def test_unknown_service_is_refused_by_the_listener(server: EmbeddedServer) -> None:
    with pytest.raises(oracledb.OperationalError, match="is not registered") as caught:
        _connect(server, dsn=f"127.0.0.1:{server.port}/nope")
    assert "DPY-6001" in str(caught.value)


@pytest.mark.parametrize("service", ["freepdb1", "FREEPDB1:dedicated"])
def test_service_names_ignore_case_and_server_type(server: EmbeddedServer, service: str) -> None:
    _connect(server, dsn=f"127.0.0.1:{server.port}/{service}").close()


def test_long_connect_descriptors_follow_in_data_packets(server: EmbeddedServer) -> None:
    descriptor = (
        f"(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=127.0.0.1)(PORT={server.port}))"
        f"(CONNECT_DATA=(SERVICE_NAME=FREEPDB1)(FAILOVER_MODE=(TYPE=NONE)(BACKUP={'b' * 600}))))"
    )
    _connect(server, dsn=descriptor).close()


def test_sid_of_no_instance_is_refused(server: EmbeddedServer) -> None:
    dsn = oracledb.makedsn("127.0.0.1", server.port, sid="ORCL")
    with pytest.raises(oracledb.OperationalError, match="DPY-6003"):
        _connect(server, dsn=dsn)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="http"),
        pytest.param(b"\x00\x0a\x00\x00\x06\x00\x00\x00\x00\x00", id="data-before-connect"),
        pytest.param(b"\x00\x04\x00\x00\x01\x00\x00\x00", id="length-below-header"),
        pytest.param(b"\x00\x3a\x00\x00\x01\x00\x00\x00", id="cut-connect"),
    ],
)
def test_malformed_packets_close_only_their_connection(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture, raw: bytes
) -> None:
    with _connect(server) as good:
        with (
            caplog.at_level(logging.DEBUG),
            socket.create_connection(("127.0.0.1", server.port)) as bad,
        ):
            bad.sendall(raw)
            bad.shutdown(socket.SHUT_WR)
            bad.settimeout(PATIENCE_SECONDS)
            assert bad.recv(100) == b""
        good.ping()
    assert any(record.message.startswith("connection") for record in caplog.records)


def test_many_sessions_at_once(server: EmbeddedServer, engine: FakeEngine) -> None:
    engine.on_query(
        "select n", [column("N", OraType.NUMBER)], [(number_from_decimal(n),) for n in range(20)]
    )

    async def one() -> int:
        async with oracledb.connect_async(
            user="scott", password="tiger", dsn=server.dsn
        ) as connection:
            return len(await connection.fetchall("select n from t"))

    async def many() -> list[int]:
        return await asyncio.gather(*(one() for _ in range(25)))

    assert asyncio.run(many()) == [20] * 25
    assert len(engine.sessions) == 25


def test_stop_ends_open_connections_and_rolls_back(engine: FakeEngine) -> None:
    engine.on_statement("insert", lambda call: Outcome(StatementKind.DML, row_count=1))
    server = EmbeddedServer(engine)
    server.start()
    connection = _connect(server)
    connection.cursor().execute("insert into t values (1)")
    server.stop()
    server.stop()
    session = engine.sessions[0]
    assert session.closed.wait(PATIENCE_SECONDS)
    assert session.log[-1] == "ROLLBACK"
    with pytest.raises(oracledb.Error):
        connection.ping()


def test_server_refuses_what_is_not_loopback(engine: FakeEngine) -> None:
    with pytest.raises(ValueError, match="loopback"):
        EmbeddedServer(engine, host="0.0.0.0")
    with pytest.raises(ValueError, match="sdu"):
        EmbeddedServer(engine, settings=WireSettings(sdu=100))
    with pytest.raises(RuntimeError, match="not started"):
        _ = EmbeddedServer(engine).port


def test_connections_leave_no_file_behind(server: EmbeddedServer) -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    _connect(server).close()
    before = open_files()
    for _ in range(20):
        _connect(server).close()
        with pytest.raises(oracledb.Error):
            _connect(server, dsn=f"127.0.0.1:{server.port}/nope")
    while server.connection_count or open_files() > before:
        time.sleep(0.01)
