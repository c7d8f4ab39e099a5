"""Databases, sessions, and a short way to run SQL with plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import oracledb
import pytest

from oracle_embedded.api import BindMeta, ColumnMeta, Logon, OraType, Value
from oracle_embedded.database import OpenDatabase, open_database
from oracle_embedded.engine.session import Session
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.values import (
    date_from_datetime,
    datetime_from_date,
    float_from_double,
    number_from_decimal,
    text_from_number,
)


def encoded(value: Any) -> tuple[Value, BindMeta]:
    """A plain value as the driver would send it."""
    match value:
        case None:
            return None, BindMeta(OraType.VARCHAR, 4, 1)
        case int() | Decimal():
            return number_from_decimal(value), BindMeta(OraType.NUMBER, 22)
        case datetime():
            return date_from_datetime(value), BindMeta(OraType.DATE, 7)
        case bytes():
            return value, BindMeta(OraType.RAW, len(value))
    text = str(value).encode()
    return text, BindMeta(OraType.VARCHAR, 4 * len(text), 1)


def plain(value: Value, column: ColumnMeta) -> Any:
    """A value as tests compare it: numbers as their text, dates as ISO text."""
    if value is None:
        return None
    match column.type:
        case OraType.NUMBER:
            return text_from_number(value)
        case OraType.DATE | OraType.TIMESTAMP | OraType.TIMESTAMP_LTZ | OraType.TIMESTAMP_TZ:
            return datetime_from_date(value).isoformat(" ")
        case OraType.BINARY_DOUBLE:
            return float_from_double(value)
        case OraType.RAW:
            return value.hex()
        case OraType.CLOB | OraType.BLOB:
            return value
    return value.decode()


class Client:
    """Runs SQL in one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __call__(self, sql: str, *binds: Any) -> Any:
        """Rows of a query as tuples, the row count of anything else."""
        pairs = [encoded(value) for value in binds]
        outcome = self.session.run(sql, [value for value, _ in pairs], [meta for _, meta in pairs])
        if outcome.rows is None:
            return outcome.row_count
        columns = outcome.rows.columns
        rows: list[tuple[Any, ...]] = []
        while True:
            batch = outcome.rows.fetch(100)
            rows.extend(tuple(map(plain, row, columns)) for row in batch)
            if len(batch) < 100:
                return rows

    def one(self, sql: str, *binds: Any) -> Any:
        """The only value of the only row."""
        ((value,),) = self(sql, *binds)
        return value

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> Any:
        """Array DML; gives the outcome."""
        pairs = [[encoded(value) for value in row] for row in rows]
        metas = [meta for _, meta in pairs[0]]
        values = [[value for value, _ in row] for row in pairs]
        return self.session.execute(self.session.parse(sql), values, bind_metas=metas)

    def scn(self) -> int:
        """The current SCN."""
        return int(self.one("select dbms_flashback.get_system_change_number from dual"))


Connect = Callable[..., Client]
"""Opens a session of a user, DEMO if none is named."""


@pytest.fixture
def database() -> Iterator[OpenDatabase]:
    opened = open_database()
    yield opened
    opened.close()


@pytest.fixture
def connect(database: OpenDatabase) -> Connect:
    def open_client(user: str = "DEMO") -> Client:
        return Client(
            database.engine.open_session(Logon(user, program="pytest", machine="localhost"))
        )

    return open_client


@pytest.fixture
def sql(connect: Connect) -> Client:
    return connect()


@pytest.fixture
def server(database: OpenDatabase) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(database.engine) as running:
        yield running


@pytest.fixture
def driver(database: OpenDatabase, server: EmbeddedServer) -> Iterator[oracledb.Connection]:
    """A connection of the schema owner through the driver, its NUMBERs exact."""
    with oracledb.connect(
        user="DEMO", password=database.password("DEMO"), dsn=server.dsn
    ) as connection:
        connection.outputtypehandler = _exact
        yield connection


def _exact(cursor: Any, metadata: Any) -> Any:
    if metadata.type_code is oracledb.DB_TYPE_NUMBER:
        return cursor.var(Decimal, arraysize=cursor.arraysize)
    return None


@pytest.fixture(scope="session")
def shared() -> Iterator[Client]:
    """A session for queries that change nothing."""
    opened = open_database()
    yield Client(opened.engine.open_session(Logon("DEMO", program="pytest", machine="localhost")))
    opened.close()
