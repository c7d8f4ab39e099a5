"""How does Dagster reach its SQLite files under ``redolake ui``?

Dagster's own SQLite storage makes an SQLAlchemy engine, and opens the file, for each call. So each
call compiles its statements anew, which costs more than executing them. Here each file has one
engine for the life of the process. Files and tables are Dagster's own: a home may change from one
storage to the other at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Self

from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
    INDEX_SHARD_NAME,
    SqliteEventLogStorage,
)
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import (
    DagsterSqliteStorage,
    _event_logs_directory,
    _runs_directory,
    _schedule_directory,
)
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine

ENGINES_MAX = 64
"""Files of which a process keeps the engine; each run has a file of its own."""


class SqliteStorage(DagsterSqliteStorage):
    """Dagster's storage in SQLite files below ``base_dir``; ``dagster.yaml`` names it."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self.base_dir = base_dir
        self._inst_data = inst_data
        super(DagsterSqliteStorage, self).__init__()
        self._run_storage = _Runs.from_local(_runs_directory(base_dir))
        self._event_log_storage = _Events(_event_logs_directory(base_dir))
        self._schedule_storage = _Schedules.from_local(_schedule_directory(base_dir))

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        """What Dagster calls with the keys under ``config``."""
        return cls.from_local(config_value["base_dir"], inst_data)


class _Runs(SqliteRunStorage):
    @contextmanager
    def connect(self) -> Iterator[Connection]:
        with _engine(self._conn_string).begin() as connection:
            yield connection


class _Schedules(SqliteScheduleStorage):
    @contextmanager
    def connect(self) -> Iterator[Connection]:
        with _engine(self._conn_string).begin() as connection:
            yield connection


class _Events(SqliteEventLogStorage):
    def has_table(self, table_name: str) -> bool:
        # Without the lock: Dagster asks while it holds a connection.
        with _engine(self.conn_string_for_shard(INDEX_SHARD_NAME)).connect() as connection:
            return connection.dialect.has_table(connection, table_name)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        if shard not in self._initialized_dbs:  # Dagster makes the file and its tables
            with super()._connect(shard) as connection:
                yield connection
            return
        with self._db_lock, _engine(self.conn_string_for_shard(shard)).begin() as connection:
            yield connection


@lru_cache(maxsize=ENGINES_MAX)
def _engine(url: str) -> Engine:
    """Keeps what it compiled, and one connection: SQLite moves a file's whole log into the file
    each time the last connection to it is closed."""
    waits = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
    return create_engine(url, pool_size=1, max_overflow=-1, connect_args=waits)
