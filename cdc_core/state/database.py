"""How is the metadata store's database opened, migrated and spoken to, SQLite and PostgreSQL alike?

Writers take turns in both: ``BEGIN IMMEDIATE`` in SQLite, an advisory lock for the transaction in
PostgreSQL. So a method of the store may read, decide and write without anything changing in
between.

A PostgreSQL database is often shared, and roles and poolers have habits. So each transaction names
its own isolation level and access mode, and how long it waits; no session state is left behind,
since a pooler may hand the session to somebody else between two transactions; and the revision of
the tables stands in a table of its own name, since Dagster's storage keeps its revision in
Alembic's usual one.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cache, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, RowMapping, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.util import LRUCache

from cdc_core.errors import ConfigError, PreflightError, StoreUnavailableError
from cdc_core.state.fencing import HeldLeases, refuse_lost
from cdc_core.state.machine import Machine
from cdc_core.state.read_cache import ProcessConnection, ReadCache
from cdc_core.state.texts import storable_parameters
from cdc_core.state.turns import turn

T = TypeVar("T")
P = ParamSpec("P")
Part = TypeVar("Part", bound="StorePart")

_BUSY_SECONDS = 30
_WRITES = "redolake_writes"
_ADVISORY_LOCK = 7_236_540_118
TURN_SECONDS = 300
"""How long a writer waits in PostgreSQL for its turn."""
IDLE_SECONDS = 60
"""After how long PostgreSQL ends a writer that stands still in the middle of its transaction, so
that others get theirs."""
VERSION_TABLE = "redolake_alembic_version"
"""Holds the revision of the store's tables."""


_READS: Mapping[str, Mapping[str, Any]] = {
    "sqlite": {_WRITES: False},
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}
_WRITES_AFTER_ITS_TURN: Mapping[str, Mapping[str, Any]] = {
    "sqlite": {_WRITES: True},
    # At a higher level, the statement that waits for the turn would fix what the transaction sees.
    "postgresql": {
        _WRITES: True, "isolation_level": "READ COMMITTED", "postgresql_readonly": False,
    },
}  # fmt: skip


class _Compiled(LRUCache[Any, Any]):
    """Statements that are compiled once per process, however many stores it opens one after the
    other: SQLAlchemy keeps them by engine, and to compile one takes longer than to run it."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_any_engine(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_of_any_engine(key), value)


def _of_any_engine(key: Any) -> Any:
    """The key of a compiled statement, whose first part is the dialect of its engine."""
    dialect, *rest = key
    return type(dialect), dialect.server_version_info, *rest


_COMPILED = {"compiled_cache": _Compiled(500)}


class Database:
    """The store's database. Every ``with`` block of :meth:`reading` or :meth:`writing` is one SQL
    transaction."""

    def __init__(self, engine: Engine, clock: Callable[[], float] | None, machine: Machine) -> None:
        self._engine = engine
        self._clock = clock
        self.machine = machine
        self.held_leases = HeldLeases()
        is_file = engine.dialect.name == "sqlite"
        self._own = ProcessConnection(engine) if is_file else None
        self._cache = ReadCache()
        event.listen(engine, "before_cursor_execute", self._note)
        self._counting = threading.Lock()
        self.write_count = 0
        """Transactions of this process that may have changed something but leases."""

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads, from one state of the database."""
        with _translated(), self._connected() as connection:
            yield connection.execution_options(**_READS[connection.dialect.name])

    @contextmanager
    def writing(self, *, leases_only: bool = False) -> Iterator[Connection]:
        """A transaction that writes, with no other writer beside it; committed when the block ends
        well.

        Raises:
            FencedError: The calling thread has lost a lease that it works under, and must not
                change anything.
        """
        with _translated(), self._connected() as connection, self._cache.writing():
            connection.execution_options(**_WRITES_AFTER_ITS_TURN[connection.dialect.name])
            try:
                with connection.begin():
                    if not leases_only:
                        refuse_lost(connection, self.held_leases.here)
                    yield connection
            finally:  # a commit that raises may have been one
                if not leases_only:
                    with self._counting:
                        self.write_count += 1

    @contextmanager
    def turn(self, name: str, seconds: float) -> Iterator[None]:
        """A block that runs in one thread of all processes of the store at a time
        (:func:`~cdc_core.state.turns.turn`). It may use the store."""
        with _translated(), turn(self._engine, name, seconds):
            yield

    def _connected(self) -> AbstractContextManager[Connection]:
        return self._engine.connect() if self._own is None else self._own.connected()

    def cached(self, question: Hashable, ask: Callable[[], T]) -> T:
        """What ``ask`` gives, or gave for an equal question, if it would give that again
        (:mod:`cdc_core.state.read_cache`)."""
        version = None if self._own is None else self._own.version()
        if version is None:
            return ask()
        return self._cache.answer(version, question, ask)

    def _note(self, _connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        self._cache.note(statement)

    def now(self) -> float:
        """Seconds since 1970 by this process's clock: for what people look at."""
        return (self._clock or time.time)()

    def moment(self) -> datetime:
        """The same as a time in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)

    def now_for_all(self, connection: Connection) -> float:
        """Seconds since 1970 by the one clock that all processes of the store share: PostgreSQL's
        own. A SQLite file belongs to one machine, so its clock is the machine's."""
        if self._clock is None and connection.dialect.name == "postgresql":
            text = "SELECT EXTRACT(EPOCH FROM clock_timestamp())"
            return float(connection.exec_driver_sql(text).scalar_one())
        return self.now()

    def close(self) -> None:
        """Close all connections. May be called twice."""
        if self._own is not None:
            self._own.close()
        self._engine.dispose()


class StorePart:
    """One subject of the store, of one source, in a database that all parts share."""

    def __init__(self, database: Database, source: str) -> None:
        self._database = database
        self._source = source

    def _rows(self, query: Any) -> list[RowMapping]:
        """The rows of a query, in a transaction of its own."""
        with self._database.reading() as connection:
            return list(connection.execute(query).mappings())


def cached(ask: Callable[Concatenate[Part, P], T]) -> Callable[Concatenate[Part, P], T]:
    """For a method of a part that only reads: an answer is served again while it
    holds (:meth:`Database.cached`)."""

    @wraps(ask)
    def answered(part: Part, /, *args: P.args, **named: P.kwargs) -> T:
        given = (*args, *named.items())
        question = (ask, part._source, tuple(map(_hashable, given)))
        return part._database.cached(question, lambda: ask(part, *args, **named))

    return answered


def _hashable(value: Any) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    return frozenset(value) if isinstance(value, set) else value


def open_database(
    url: str, *, clock: Callable[[], float] | None = None, machine: Machine | None = None
) -> Database:
    """Open a database and bring its tables to the newest form. Safe when several processes do so at
    once.

    Raises:
        ConfigError: The URL is not one.
        PreflightError: A newer Redolake wrote the store.
        StoreUnavailableError: The database cannot be reached, or is not a database.
    """
    database = Database(_engine(_checked(url)), clock, machine or Machine.here())
    try:
        _migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError("state.url is not a database URL", hint=_URLS) from error
    if backend not in {"sqlite", "postgresql"}:
        raise ConfigError(
            "the metadata store needs SQLite or PostgreSQL", hint=_URLS, given=backend
        )
    if backend == "sqlite":
        if parsed.database in {None, "", ":memory:"}:
            raise ConfigError("the metadata store needs a file", hint=_URLS)
        folder = Path(str(parsed.database)).absolute().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Plans of chunks and SCNs are for the user who captures; SQLite gives its journals the
            # rights of the file.
            file = Path(str(parsed.database))
            if not file.exists():
                file.touch(mode=0o600)
        except OSError as error:
            raise ConfigError(
                "the folder of the metadata store cannot be created", hint=_URLS, folder=folder
            ) from error
    return parsed


_URLS = (
    "Write state.url as sqlite:////absolute/path.db, or as postgresql+psycopg2://user@host/db with the password in an "
    "environment variable that state.password_env names."
)


def _engine(url: URL) -> Engine:
    try:
        if url.get_backend_name() == "postgresql":
            # A pooler may give a statement that one session has prepared to another session.
            unprepared = {"prepare_threshold": None} if url.get_driver_name() == "psycopg" else {}
            engine = create_engine(
                url,
                connect_args=unprepared,
                pool_pre_ping=True,
                hide_parameters=True,
                execution_options=_COMPILED,
            )
            event.listen(engine, "begin", _begin_postgresql)
            event.listen(engine, "before_cursor_execute", _make_storable, retval=True)
            return engine
        engine = create_engine(
            url,
            connect_args={"timeout": _BUSY_SECONDS},
            hide_parameters=True,
            execution_options=_COMPILED,
        )
    except (NoSuchModuleError, ImportError, TypeError) as error:
        raise ConfigError("state.url names an unknown driver", hint=_URLS) from error
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    event.listen(engine, "before_cursor_execute", _make_storable, retval=True)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself; _begin_sqlite does
    for pragma in (
        f"busy_timeout = {int(_BUSY_SECONDS * 1000)}",
        "journal_mode = WAL",
        "synchronous = FULL",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    is_write = connection.get_execution_options().get(_WRITES)
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if is_write else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    if connection.get_execution_options().get(_WRITES):
        connection.exec_driver_sql(
            f"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '{TURN_SECONDS}s'; "
            f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'; "
            f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"
        )


def _make_storable(
    _connection: Connection, _cursor: Any, statement: str, parameters: Any, *_: Any
) -> tuple[str, Any]:
    return statement, storable_parameters(parameters)


def _migrate(database: Database) -> None:
    scripts = _migrations()
    with database.reading() as connection:
        if _revision(connection) == scripts.get_current_head():
            return
    with database.writing() as connection:
        try:
            _upgrade(connection, scripts)
        except CommandError as error:
            raise PreflightError(
                "the metadata store was written by a newer Redolake",
                hint="Run the newer version, or name another store under state.url.",
                revision=_revision(connection),
            ) from error


@cache
def _migrations() -> ScriptDirectory:
    """Our migrations. A process reads them once, however many stores it opens."""
    config = Config()
    config.set_main_option("script_location", "cdc_core.state:migrations")
    return ScriptDirectory.from_config(config)


def _upgrade(connection: Connection, scripts: ScriptDirectory) -> None:
    """What ``alembic upgrade head`` does, without reading all files anew (Alembic's documentation,
    ``EnvironmentContext``)."""

    def steps(revision: Any, _context: Any) -> Any:
        return scripts._upgrade_revs("head", revision)

    options = {
        "fn": steps, "script": scripts, "destination_rev": "head", "version_table": VERSION_TABLE,
    }  # fmt: skip
    context = MigrationContext.configure(connection, opts=options)
    with Operations.context(context):
        context.run_migrations()


def _revision(connection: Connection) -> str | None:
    options = {"version_table": VERSION_TABLE}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        cause = getattr(error, "orig", None) or error
        raise StoreUnavailableError(
            "the metadata store failed",
            hint="Check that the database of state.url is running, reachable, and not damaged or full.",
            reason=f"{type(cause).__name__}: {str(cause).splitlines()[0][:200] if str(cause) else ''}",
        ) from error
