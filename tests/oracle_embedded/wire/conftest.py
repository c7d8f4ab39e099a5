"""A server with a scripted engine, once with common packets and once with everything split."""

from __future__ import annotations

from collections.abc import Iterator

import oracledb
import pytest

from oracle_embedded.server import EmbeddedServer
from oracle_embedded.wire.session import WireSettings
from tests.oracle_embedded.wire.fake_engine import FakeEngine


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture(params=[65535, 512], ids=["sdu-65535", "sdu-512"])
def server(engine: FakeEngine, request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(engine, settings=WireSettings(sdu=request.param)) as server:
        yield server


@pytest.fixture
def connection(server: EmbeddedServer) -> Iterator[oracledb.Connection]:
    connection = oracledb.connect(user="scott", password="tiger", dsn=server.dsn)
    yield connection
    if connection.is_healthy():
        connection.close()
