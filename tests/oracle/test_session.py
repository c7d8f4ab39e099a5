"""The door to the driver, against a scripted server that speaks Oracle's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_core.config import OracleConfig
from cdc_core.errors import ConfigError, OracleUnavailableError, PreflightError
from cdc_core.oracle.session import (
    ROW_ARCHIVAL,
    SETTINGS,
    OracleSession,
    connect,
    settings_block,
)
from oracle_embedded.api import OraType
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.values import date_from_datetime, number_from_decimal
from tests.oracle_embedded.wire.fake_engine import FakeEngine, column

NUMBER = column("N", OraType.NUMBER)
TEXT = column("T", OraType.VARCHAR)
APPLIED = settings_block()


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def server(engine: FakeEngine) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(engine) as server:
        yield server


@pytest.fixture
def sent() -> list[str]:
    return []


@pytest.fixture
def session(server: EmbeddedServer, sent: list[str]) -> Iterator[OracleSession]:
    with connect(config_of(server), on_statement=sent.append) as session:
        yield session


def config_of(server: EmbeddedServer, **changes: str) -> OracleConfig:
    return OracleConfig.model_validate(
        {"dsn": server.dsn, "user": "scott", "password": "tiger", **changes}
    )


def test_settings_are_applied_at_each_connect(session: OracleSession, sent: list[str]) -> None:
    assert sent == [APPLIED]
    for setting in (SETTINGS, ROW_ARCHIVAL):
        assert setting.replace("'", "''") in APPLIED


def test_a_wrong_password_is_a_configuration_error(server: EmbeddedServer) -> None:
    with pytest.raises(ConfigError, match=r"oracle\.password") as caught:
        connect(config_of(server, password="wrongsecret"))
    assert "wrongsecret" not in str(caught.value)


def test_an_unknown_service_is_said_to_be_so(server: EmbeddedServer) -> None:
    with pytest.raises(OracleUnavailableError, match="does not know the service"):
        connect(config_of(server, dsn=server.dsn.replace("FREEPDB1", "NOPE")))


def test_small_queries_give_exact_values(session: OracleSession, engine: FakeEngine) -> None:
    when = datetime(2024, 2, 29, 1, 2, 3)
    engine.on_query(
        "select small",
        [NUMBER, TEXT, column("D", OraType.DATE, size=7)],
        [
            (number_from_decimal(2**64 - 1), "é".encode(), date_from_datetime(when)),
            (number_from_decimal(Decimal("0.1")), None, None),
            (None, b"", None),
        ],
    )
    assert session.fetch_all("select small") == [
        (18446744073709551615, "é", when),
        (Decimal("0.1"), None, None),
        (None, None, None),
    ]


def test_batches_have_the_types_asked_for(session: OracleSession, engine: FakeEngine) -> None:
    rows = [(number_from_decimal(2**62 + at), b"x") for at in range(25)]
    engine.on_query("select big", [NUMBER, TEXT], rows)
    schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
    batches = list(session.fetch_batches("select big", rows=10, schema=schema))
    assert [batch.num_rows for batch in batches] == [10, 10, 5]
    assert batches[2].schema.types == [pa.int64(), pa.string()]
    assert batches[2].column(0)[4].as_py() == 2**62 + 24


def test_an_empty_result_is_one_empty_batch(session: OracleSession, engine: FakeEngine) -> None:
    engine.on_query("select none", [NUMBER], [])
    [batch] = session.fetch_batches("select none", rows=10)
    assert batch.num_rows == 0


def test_the_same_text_may_be_fetched_in_both_ways(
    session: OracleSession, engine: FakeEngine
) -> None:
    engine.on_query("select both", [NUMBER], [(number_from_decimal(1),)])
    assert session.fetch_all("select both") == [(1,)]
    schema = pa.schema([("n", pa.int64())])
    [batch] = session.fetch_batches("select both", rows=10, schema=schema)
    assert batch.column(0).to_pylist() == [1]
    assert session.fetch_all("select both") == [(1,)]


def test_oracles_errors_are_translated(session: OracleSession) -> None:
    with pytest.raises(PreflightError, match="ORA-00942"):
        session.fetch_all("select * from missing")
    with pytest.raises(PreflightError, match="ORA-00942"):
        list(session.fetch_batches("select * from missing", rows=10))


def test_a_lost_session_is_unavailable_and_closes_quietly(
    session: OracleSession, server: EmbeddedServer, engine: FakeEngine
) -> None:
    engine.on_query("select one", [NUMBER], [(number_from_decimal(1),)])
    server.stop()
    with pytest.raises(OracleUnavailableError):
        session.fetch_all("select one")
    session.close()
    session.close()


def container_of(engine: FakeEngine, cdb: bytes, name: bytes) -> None:
    number = number_from_decimal(7)
    columns = [TEXT, TEXT, NUMBER, NUMBER, TEXT]
    engine.on_query("SELECT CDB", columns, [(cdb, name, number, number, b"FREE")])


def test_mining_happens_in_the_root_with_settings_applied_again(
    session: OracleSession, engine: FakeEngine, sent: list[str]
) -> None:
    container_of(engine, b"YES", b"SALES")
    with session.in_root():
        sent.append("work")
    switches = [one for one in sent[1:] if not one.startswith("SELECT")]
    assert switches == [
        "ALTER SESSION SET CONTAINER = CDB$ROOT",
        APPLIED,
        "work",
        'ALTER SESSION SET CONTAINER = "SALES"',
        APPLIED,
    ]


@pytest.mark.parametrize(("cdb", "name"), [(b"NO", b"ORCL"), (b"YES", b"CDB$ROOT")])
def test_nothing_is_switched_where_there_is_nothing_to_switch(
    session: OracleSession, engine: FakeEngine, sent: list[str], cdb: bytes, name: bytes
) -> None:
    container_of(engine, cdb, name)
    with session.in_root():
        pass
    assert not [one for one in sent if "CONTAINER =" in one]
