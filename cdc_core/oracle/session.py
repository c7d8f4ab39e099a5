"""How is the database spoken to? The only door to the driver.

Only queries, ``ALTER SESSION``, ``SET TRANSACTION READ ONLY`` and DBMS_LOGMNR calls leave here; a
test records every statement.
Exceptions are the update of a flush row, for those who configure a table for it, and the scratch
tables of :mod:`cdc_core.oracle.scratch`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from decimal import Decimal
from typing import Any, Self, TypeVar, overload

import oracledb
import pyarrow as pa

from cdc_core.config import OracleConfig
from cdc_core.errors import CdcError, ConfigError, DecodeError, no_day_hint
from cdc_core.model.identifiers import TableId, quote
from cdc_core.model.logins import Login
from cdc_core.model.texts import NOT_TEXT, NOT_TEXT_IN_ROWS
from cdc_core.oracle.client import choose_client
from cdc_core.oracle.cursors import ManualConnection
from cdc_core.oracle.ora_codes import NO_MORE, MoreCodes, cdc_error, extra_codes
from cdc_core.oracle.prefetch import prefetched
from cdc_core.oracle.refused_logins import REFUSED_LOGINS, RefusalMemory

ROOT = "CDB$ROOT"

SETTINGS = (
    "ALTER SESSION SET"
    " NLS_DATE_FORMAT = 'SYYYY-MM-DD HH24:MI:SS'"
    " NLS_TIMESTAMP_FORMAT = 'SYYYY-MM-DD HH24:MI:SS.FF9'"
    " NLS_TIMESTAMP_TZ_FORMAT = 'SYYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'"
    " NLS_NUMERIC_CHARACTERS = '.,'"
    " NLS_SORT = 'BINARY'"
    " NLS_COMP = 'BINARY'"
    " TIME_ZONE = '+00:00'"
)
"""The shape of literals in SQL_REDO, and the order of text in key ranges, depend on these; applied
at each connect and after each change of container. Years have a sign (SYYYY): without it 44 BC is
printed as the year 44."""

ROW_ARCHIVAL = "ALTER SESSION SET ROW ARCHIVAL VISIBILITY = ALL"
"""Rows that are archived in their table (``ORA_ARCHIVE_STATE``) are in the redo like all others, so
queries shall see them too. Source: SQL Language Reference 19c, ALTER SESSION."""

_DATABASE = "SELECT CDB, SYS_CONTEXT('USERENV', 'CON_NAME'), DBID, CON_DBID, NAME FROM V$DATABASE"
"""Source: Oracle Database Reference 19c, V$DATABASE (CON_DBID: database ID of the PDB)."""
_FETCH_ALL_ROWS = 1000

_READ_ONLY = "SET TRANSACTION READ ONLY"

_LOCK_FLUSH_ROW = "SELECT LAST_SCN FROM {table} FOR UPDATE NOWAIT"
_FLUSH = "UPDATE {table} SET LAST_SCN = (SELECT CURRENT_SCN FROM V$DATABASE)"

DRIVER_ERRORS = (oracledb.Error, OSError)
"""What the driver raises. Most failures of the network are errors of its own; a host name that
cannot be resolved is not."""

Binds = Mapping[str, Any]
S = TypeVar("S", bound="OracleSession")


@overload
def connect(
    config: OracleConfig,
    *,
    on_statement: Callable[[str], None] | None = None,
    refusals: RefusalMemory | None = None,
    insists: bool = False,
) -> OracleSession: ...
@overload
def connect(
    config: OracleConfig, *, on_statement: Callable[[str], None] | None = None, kind: type[S]
) -> S: ...
def connect(
    config: OracleConfig,
    *,
    on_statement: Callable[[str], None] | None = None,
    kind: type[OracleSession] | None = None,
    refusals: RefusalMemory | None = None,
    insists: bool = False,
) -> OracleSession:
    """Open a session with the settings that capture needs, in thin mode unless the configuration
    asks for Oracle's client libraries.

    Args:
        on_statement: Called with the text of each statement before it is sent.
        kind: What kind of session: one that only reads, unless it says otherwise.
        refusals: What other processes know of refused passwords, and ``insists`` whether one is
            sent all the same (:meth:`~cdc_core.oracle.refused_logins.RefusedLogins.attempt`).

    Raises:
        ConfigError: User name or password is wrong, or was refused before; or the DSN is none.
        OracleUnavailableError: The database cannot be reached: its host, its listener or its
            service is not there.
        PreflightError: The user may not log on, the server's certificate is not trusted, or
            Oracle's client libraries are not there.
    """
    more = extra_codes(config.retriable_ora_codes, config.resnapshot_ora_codes)
    choose_client(config.thick)
    sent = _login(config)
    with (
        REFUSED_LOGINS.attempt(Login(config.dsn, **sent), refusals, insists=insists)
        if "password" in sent
        else nullcontext()
    ):
        connection = _connected(config, more)
    made = OracleSession if kind is None else kind
    session = made(connection, user=config.working_user, on_statement=on_statement, more_codes=more)
    try:
        if config.pdb is None:
            session.apply_settings()
        else:
            session.enter(config.pdb)
    except BaseException:
        session.close()
        raise
    return session


def _connected(config: OracleConfig, more: MoreCodes) -> Any:
    try:
        connection = oracledb.connect(
            **_login(config),
            dsn=config.dsn,
            tcp_connect_timeout=config.connect_timeout_seconds,
            program="redolake",
            **_network_options(config),
            conn_class=ManualConnection,
            # Fetch types belong to a cached statement's text; without the cache a CLOB that was
            # fetched as a locator once cannot get in the way of a later Arrow fetch (DPY-3030).
            stmtcachesize=0,
        )
        connection.call_timeout = config.call_timeout_seconds * 1000
    except DRIVER_ERRORS as error:
        ours = cdc_error(error, user=config.working_user, more=more)
        facts = {"dsn": config.dsn, "user": config.user, **ours.facts}
        raise type(ours)(ours.message, hint=ours.hint, **facts) from error
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "this is not a connect string", hint="Write host:port/service.", dsn=config.dsn
        ) from error
    return connection


def _login(config: OracleConfig) -> dict[str, Any]:
    """Who logs in. A proxy is written as the driver parses it: ``user[session_user]``."""
    if config.external_auth:
        proxy = {} if config.session_user is None else {"user": f"[{config.session_user}]"}
        return {"externalauth": True, **proxy}
    named = config.user
    if config.session_user is not None:
        named = f"{config.user}[{config.session_user}]"
    return {"user": named, "password": config.password.get_secret_value()}


def _network_options(config: OracleConfig) -> dict[str, Any]:
    """Only what the configuration names: the driver takes its own defaults, and TNS_ADMIN, for the
    rest."""
    secret = config.wallet_password
    options = {
        "config_dir": config.config_dir,
        "wallet_location": config.wallet_location,
        "wallet_password": None if secret is None else secret.get_secret_value(),
        "ssl_server_cert_dn": config.server_certificate_dn,
        "ssl_server_dn_match": config.server_certificate_match,
        "expire_time": config.keepalive_minutes,
        **config.driver,
    }
    return {name: value for name, value in options.items() if value is not None}


def settings_block() -> str:
    """All settings of a session, in one round trip: PL/SQL has no statement of its own for
    them."""
    quoted = (one.replace("'", "''") for one in (SETTINGS, ROW_ARCHIVAL))
    calls = (f"EXECUTE IMMEDIATE '{one}';" for one in quoted)
    return f"BEGIN {' '.join(calls)} END;"


def flush_statement(table: TableId) -> str:
    """The update of a flush table's row."""
    return _FLUSH.format(table=table.sql)


class OracleSession:
    """One database session, used by one thread at a time. Closed by :meth:`close` or at the end of
    a ``with`` block. ``opened`` says when it began (``time.monotonic``), ``is_mining`` whether
    LogMiner may be started in it.

    Every method raises the errors of :func:`cdc_core.oracle.ora_codes.cdc_error`.
    """

    def __init__(
        self,
        connection: Any,
        *,
        user: str,
        on_statement: Callable[[str], None] | None = None,
        more_codes: MoreCodes = NO_MORE,
    ) -> None:
        self._connection = connection
        self._more_codes = more_codes
        self._on_statement = on_statement
        self._database: tuple[bool, str, int, int, str] | None = None
        self._known: dict[tuple[bool, str], list[tuple[Any, ...]]] = {}
        self._is_in_root = False
        self.user = user
        self.opened = time.monotonic()
        self.is_mining = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    def fetch_all(
        self, sql: str, binds: Binds | None = None, *, values: bool = False
    ) -> list[tuple[Any, ...]]:
        """All rows of a small query as tuples; NUMBERs are exact (int or Decimal), LONG and CLOB
        are text, BLOB is bytes.

        Texts are names and facts, with U+FFFD in place of bytes that are no UTF-8. With ``values``
        they are values of rows, which may not have such bytes.

        Raises:
            DecodeError: A value has bytes that are no UTF-8.
        """
        with self._cursor(sql) as cursor:
            cursor.arraysize = _FETCH_ALL_ROWS
            cursor.outputtypehandler = _exact if values else _readable
            cursor.execute(sql, dict(binds or {}))
            try:
                rows: list[tuple[Any, ...]] = cursor.fetchall()
            except UnicodeDecodeError as error:
                raise DecodeError(NOT_TEXT, hint=NOT_TEXT_IN_ROWS) from error
            return rows

    def fetch_batches(
        self,
        sql: str,
        binds: Binds | None = None,
        *,
        rows: int,
        schema: pa.Schema | None = None,
    ) -> Generator[pa.RecordBatch]:
        """Rows of a query as Arrow batches of ``rows`` rows, converted to ``schema`` where it is
        given.

        An empty result gives one empty batch. A few batches are held at most: the next ones are
        fetched while the caller works on one. Until the iterator has ended or was closed the
        session must not be used otherwise.
        """
        self._report(sql)
        return prefetched(self._frames(sql, dict(binds or {}), rows, schema))

    def _frames(
        self, sql: str, binds: dict[str, Any], rows: int, schema: pa.Schema | None
    ) -> Iterator[pa.RecordBatch]:
        try:
            frames = self._connection.fetch_df_batches(
                sql, parameters=binds, size=rows, requested_schema=schema, fetch_decimals=True
            )
            for frame in _typed(frames):
                # Not pa.table(frame), which imports pandas to see whether it has one of its frames:
                # that takes a second.
                batches = pa.RecordBatchReader.from_stream(frame)
                is_empty = True
                for batch in batches:
                    is_empty = False
                    yield batch
                if is_empty:
                    yield pa.RecordBatch.from_pylist([], schema=batches.schema)
        except DRIVER_ERRORS as error:
            raise cdc_error(error, user=self.user, more=self._more_codes) from error
        finally:
            self._connection.close_last_cursor()

    def fetch_once(self, sql: str) -> list[tuple[Any, ...]]:
        """As :meth:`fetch_all`, of facts that stay while the instance runs: a session asks once in
        each container."""
        place = (self._is_in_root, sql)
        if place not in self._known:
            self._known[place] = self.fetch_all(sql)
        return self._known[place]

    def execute_block(self, plsql: str, binds: Binds | None = None) -> None:
        """Run a PL/SQL block: calls of DBMS_LOGMNR, or the session's settings."""
        with self._cursor(plsql) as cursor:
            cursor.execute(plsql, dict(binds or {}))

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """All queries of the block see what was committed when it began, which takes no right but
        SELECT.

        Source:
            Oracle Database SQL Language Reference 19c, SET TRANSACTION: "All subsequent queries in
            that transaction see only changes that were committed before the transaction began."
        """
        with self._cursor(_READ_ONLY) as cursor:
            cursor.execute(_READ_ONLY)
        try:
            yield
        except BaseException:
            with suppress(*DRIVER_ERRORS):
                self._connection.rollback()
            raise
        with self._cursor("ROLLBACK"):
            self._connection.rollback()

    def write_flush_row(self, table: TableId) -> int:
        """Update the row of a flush table to the present SCN and commit; the only row that Redolake
        ever writes.

        Returns:
            How many rows the table has; nothing was written unless it is one.

        Raises:
            TransientError: Another session has the row locked (ORA-00054).
        """
        rows = self.fetch_all(_LOCK_FLUSH_ROW.format(table=table.sql))
        if len(rows) == 1:
            with self._cursor(sql := flush_statement(table)) as cursor:
                cursor.execute(sql)
        with self._cursor("COMMIT"):
            self._connection.commit()
        return len(rows)

    def check_statement(self, sql: str) -> None:
        """Let the database parse a statement without running it: does it exist, and may the user
        run it?"""
        with self._cursor(sql) as cursor:
            cursor.parse(sql)

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """The columns of a query that is not run: name, and the driver's name of the type
        (``DB_TYPE_NUMBER``)."""
        with self._cursor(sql) as cursor:
            cursor.parse(sql)
            return [(name, kind.name) for name, kind, *_ in cursor.description]

    def apply_settings(self) -> None:
        """Apply :data:`SETTINGS` and :data:`ROW_ARCHIVAL`."""
        self.execute_block(settings_block())

    def enter(self, pdb: str) -> None:
        """Work in a pluggable database from here on, whatever container the DSN leads to.

        Raises:
            PreflightError: There is none of that name, or the user may not change to it.
            OracleUnavailableError: It is not open.
        """
        try:
            self._set_container(pdb)
            self._describe()  # a session may change to a closed one, and is refused with its first query
        except CdcError as error:
            hint = error.hint
            if error.facts.get("ora") == "ORA-01031":
                hint = (
                    f"GRANT SET CONTAINER TO {self.user} CONTAINER = ALL (to a common user, C##…)."
                )
            facts = {**error.facts, "pdb": pdb}
            raise type(error)(error.message, hint=hint, **facts) from error

    @property
    def is_cdb(self) -> bool:
        """Is the database a container database?"""
        return self._describe()[0]

    @property
    def container(self) -> str:
        """The container that the DSN leads to, or that was entered: where the captured tables
        are."""
        return self._describe()[1]

    @property
    def dbid(self) -> int:
        """Names the database; a clone that was made by copying files has the same."""
        return self._describe()[2]

    @property
    def container_dbid(self) -> int:
        """Names the container; one that is made anew under the same name has another."""
        return self._describe()[3]

    @property
    def database_name(self) -> str:
        """What the database is called."""
        return self._describe()[4]

    @contextmanager
    def in_root(self) -> Iterator[None]:
        """Work in CDB$ROOT for the block, as LogMiner needs; nothing changes in a database without
        containers.

        Raises:
            PreflightError: The user may not change containers.
        """
        if not self.is_cdb or self.container == ROOT:
            yield
            return
        self._set_container(ROOT)
        try:
            yield
        finally:
            self._set_container(self.container)

    def is_alive(self) -> bool:
        """Does the database still answer in this session?"""
        try:
            self._connection.ping()
        except DRIVER_ERRORS:
            return False
        return True

    def close(self) -> None:
        """Close the session. May be called twice; never raises."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except DRIVER_ERRORS:
                return  # a lost session is as closed as it can be

    def _describe(self) -> tuple[bool, str, int, int, str]:
        if self._database is None:
            [(cdb, container, dbid, its, name)] = self.fetch_all(_DATABASE)
            self._database = (cdb == "YES", container, int(dbid), int(its), str(name))
        return self._database

    def _set_container(self, name: str) -> None:
        sql = f"ALTER SESSION SET CONTAINER = {name if name == ROOT else quote(name)}"
        with self._cursor(sql) as cursor:
            cursor.execute(sql)
        self._is_in_root = name == ROOT
        self.apply_settings()

    @contextmanager
    def _cursor(self, sql: str) -> Iterator[Any]:
        self._report(sql)
        try:
            with self._connection.cursor() as cursor:
                yield cursor
        except DRIVER_ERRORS as error:
            raise cdc_error(error, user=self.user, more=self._more_codes) from error

    def _report(self, sql: str) -> None:
        if self._on_statement is not None:
            self._on_statement(sql)


def _typed(frames: Iterator[Any]) -> Iterator[Any]:
    """The driver's frames; what Python cannot hold is an error that says so. Texts in UTF-8 come
    unchecked, which is for the caller to do; those in UTF-16 (NCHAR, NVARCHAR2, NCLOB) are Python's
    for a moment, and may hold halves of surrogate pairs."""
    try:
        yield from frames
    except UnicodeDecodeError as error:
        raise DecodeError(NOT_TEXT, hint=NOT_TEXT_IN_ROWS) from error
    except ValueError as error:
        # On its way to Arrow each date is a Python date for a moment, by year, month and day.
        raise no_such_day() from error


NO_SUCH_DAY = "a date is before the year 1, or exists only in the Julian calendar"


def no_such_day(*columns: str, as_text: bool = True, **facts: object) -> DecodeError:
    """The error for a date that Delta's calendar, the proleptic Gregorian, does not have;
    ``columns`` are those that have one."""
    hint = no_day_hint(*columns, as_text=as_text)
    where = {"column": ", ".join(columns)} if columns else {}
    return DecodeError(NO_SUCH_DAY, hint=hint, **facts, **where)


_TEXTS = (oracledb.DB_TYPE_VARCHAR, oracledb.DB_TYPE_CHAR, oracledb.DB_TYPE_LONG)
_NATIONAL_TEXTS = (
    oracledb.DB_TYPE_NVARCHAR,
    oracledb.DB_TYPE_NCHAR,
    oracledb.DB_TYPE_LONG_NVARCHAR,
)
_CLOBS = (oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_NCLOB)


def _readable(cursor: Any, metadata: Any) -> Any:
    """Output type handler: as :func:`_exact`, and U+FFFD in texts whose bytes are none."""
    kind = metadata.type_code
    if kind in _TEXTS or kind in _NATIONAL_TEXTS or kind in _CLOBS:
        wanted = oracledb.DB_TYPE_LONG if kind in _CLOBS else kind
        return cursor.var(
            wanted, metadata.internal_size or 0, cursor.arraysize, encoding_errors="replace"
        )
    return _exact(cursor, metadata)


def _exact(cursor: Any, metadata: Any) -> Any:
    """Output type handler: NUMBERs without rounding, LOBs as text or bytes."""
    if metadata.type_code is oracledb.DB_TYPE_NUMBER:
        return cursor.var(str, arraysize=cursor.arraysize, outconverter=_number)
    if metadata.type_code in _CLOBS:
        return cursor.var(oracledb.DB_TYPE_LONG, arraysize=cursor.arraysize)
    if metadata.type_code is oracledb.DB_TYPE_BLOB:
        return cursor.var(oracledb.DB_TYPE_LONG_RAW, arraysize=cursor.arraysize)
    return None


def _number(text: str) -> Any:
    value = Decimal(text)
    return int(value) if value == value.to_integral_value() else value
