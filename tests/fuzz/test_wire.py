"""Bytes that no client sends end their own connection at most: the embedded Oracle goes on serving the others."""

from __future__ import annotations

import socket

import oracledb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

SECONDS = 60
CONNECT = (
    b"(DESCRIPTION=(CONNECT_DATA=(SERVICE_NAME=FREEPDB1))(ADDRESS=(PROTOCOL=TCP)(HOST=h)(PORT=1)))"
)

oracle = oracle_with(scope="module", logging=False)


def packet(kind: int, body: bytes) -> bytes:
    """A TNS packet as the first of a connection has it: two bytes of length."""
    return (len(body) + 8).to_bytes(2, "big") + b"\0\0" + bytes([kind, 0, 0, 0]) + body


connects = st.tuples(st.binary(min_size=0, max_size=60), st.binary(max_size=30)).map(
    lambda parts: packet(1, parts[0] + CONNECT + parts[1])
)
packets = st.tuples(st.integers(0, 255), st.binary(max_size=200)).map(lambda one: packet(*one))
streams = st.lists(connects | packets | st.binary(max_size=40), max_size=4).map(b"".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams)
def test_strange_bytes_end_their_own_connection_alone(oracle: Oracle, sent: bytes) -> None:
    """Each is answered or closed; nobody waits for ever."""
    host, _, rest = oracle.server.dsn.partition(":")
    port = int(rest.partition("/")[0])
    with socket.create_connection((host, port), timeout=SECONDS) as client:
        try:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        except ConnectionError:
            pass


def test_after_that_a_client_is_served(oracle: Oracle) -> None:
    with oracle.owner() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM DUAL")
        assert cursor.fetchall() == [(1,)]
    assert isinstance(connection, oracledb.Connection)
