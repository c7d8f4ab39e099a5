"""What is the database as a whole?"""

from __future__ import annotations

import itertools
import json
import secrets
import shutil
import sqlite3
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from oracle_embedded.api import (
    EngineSession,
    Logon,
    OracleError,
    OraType,
    Procedure,
    RedoProvider,
    TableVersion,
    TransactionInfo,
    Value,
    VirtualTable,
)
from oracle_embedded.charsets import CharacterSets, character_sets
from oracle_embedded.engine.compile.compilation import StoredFunction
from oracle_embedded.engine.compile.dml import RowPlan
from oracle_embedded.engine.datatypes import temporal
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.dictionary import (
    activity,
    empty,
    objects,
    policies,
    programs,
    recycle_bin,
    system,
    tables,
    user_types,
)
from oracle_embedded.engine.dictionary.registry import Dictionary
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.functions.context import NLS_DEFAULTS
from oracle_embedded.engine.functions.sorting import is_sort
from oracle_embedded.engine.plsql.lobs import CONSTANTS as LOB_CONSTANTS
from oracle_embedded.engine.plsql.packages import BUILT_IN
from oracle_embedded.engine.plsql.policies import CONSTANTS, PROCEDURES
from oracle_embedded.engine.plsql.stored import StoredPrograms
from oracle_embedded.engine.run.contracts import Programs, SessionState, StatementKey
from oracle_embedded.engine.run.prepared import PreparedStatement
from oracle_embedded.engine.run.security import SYS, Security
from oracle_embedded.engine.session import Session
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import Definition, TableDef, UserDef
from oracle_embedded.engine.storage.rows import Shape
from oracle_embedded.engine.storage.sequences import Sequences
from oracle_embedded.engine.storage.store import Store
from oracle_embedded.engine.storage.transactions import Transactions

_FILE = "database.sqlite"
_OF_ALL = frozenset(
    f"V${name}"
    for name in (
        "VERSION", "OPTION", "NLS_PARAMETERS", "TIMEZONE_NAMES", "SESSION_CONNECT_INFO", "SESSION_LONGOPS",
    )
)  # fmt: skip
"""V$ views that Oracle's catalog scripts grant to PUBLIC."""
ROOT = "CDB$ROOT"


def _counted(session: Session) -> dict[str, int]:
    """The statistics of a session by their names."""
    return {
        "SQL*Net roundtrips to/from client": session.round_trips,
        "parse count (total)": session.parses,
        "execute count": session.executions,
        "user commits": session.commits,
        "user rollbacks": session.rollbacks,
        "opened cursors current": len(session.open_rows) + len(session.cursors),
    }


class Database:
    """The engine: implements :class:`~oracle_embedded.api.Engine` and ``DatabaseView``.

    Args:
        folder: Where the data lives; None for a temporary folder that goes away with the database.
        container: Name of the pluggable database in which sessions start.
        container_id: Its number; 1 is the root's, 2 the seed's.
        now: The clock, in seconds since 1970.
        sets: Character sets of a new database; one that is there keeps its own.
        time_zone: DBTIMEZONE of a new database.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        database_name: str = "ORCLCDB",
        container: str = "ORCLPDB1",
        container_id: int = 3,
        now: Callable[[], float] = time.time,
        sets: CharacterSets | None = None,
        time_zone: str = "+00:00",
    ) -> None:
        self._temporary = (
            None if folder is not None else Path(tempfile.mkdtemp(prefix="oracle_embedded_"))
        )
        base = folder or self._temporary
        assert base is not None
        base.mkdir(parents=True, exist_ok=True)
        self.folder = base
        self.database_name = database_name
        self.instance_name = database_name
        self.container_name = container
        self.container_id = container_id
        self.container_dbid = zlib.crc32(container.encode())
        self.closed_containers: set[str] = set()
        self.other_containers: dict[str, int] = {}
        self.service_names: Sequence[str] = (container.upper(), database_name)
        self.store = Store(base / _FILE, now)
        self.started = now()
        self.security = Security(self.store.catalog)
        self.sequences = Sequences(self.store)
        self.dictionary = Dictionary(
            (
                activity.VIEWS,
                empty.VIEWS,
                tables.VIEWS,
                objects.VIEWS,
                policies.VIEWS,
                programs.VIEWS,
                recycle_bin.VIEWS,
                system.VIEWS,
                user_types.VIEWS,
            )
        )
        self.shapes: dict[tuple[int, int], Shape] = {}
        self.check_plans: dict[tuple[int, int], RowPlan] = {}
        self.packaged_types: dict[str, SqlType] = {}
        self.constants: dict[tuple[str, str], int] = {
            ("DBMS_METADATA", "SESSION_TRANSFORM"): -1,
            **CONSTANTS,
            **LOB_CONSTANTS,
        }
        self.virtual_tables: dict[str, VirtualTable] = {}
        self.procedures: dict[tuple[str, str], Procedure] = {
            (procedure.package, procedure.name): procedure for procedure in (*BUILT_IN, *PROCEDURES)
        }
        self.programs: Programs = StoredPrograms(self.store.catalog)
        self.system_settings: set[str] = set()
        self.sessions: dict[int, Session] = {}
        self._ended: Counter[str] = Counter()
        self._system_hooks: dict[str, Callable[[EngineSession], None]] = {}
        self._database_hooks: dict[str, Callable[[EngineSession], None]] = {}
        self._session_numbers = itertools.count(21)
        self.prepared: dict[StatementKey, tuple[int, PreparedStatement]] = {}
        first = self.store.catalog.setting("first_scn")
        self.is_new = first is None
        self.release = "19c"
        self.has_extended_strings = self.store.catalog.setting("max_string_size") == "EXTENDED"
        self.character_sets = sets if sets is not None and self.is_new else self._kept_sets()
        with self.store.writing():
            if first is None:
                self.store.catalog.set_setting("first_scn", str(self.store.clock.value))
                self.store.catalog.set_setting("created", str(now()))
                self.store.catalog.set_setting("sys_password", secrets.token_urlsafe(12))
                self.store.catalog.set_setting("character_set", self.character_sets.database.name)
                self.store.catalog.set_setting(
                    "national_character_set", self.character_sets.national.name
                )
        self.first_scn = int(first or self.store.clock.value)
        kept_zones = self.store.catalog.setting("time_zones")
        self._zones: list[tuple[int, str]] = [
            (scn, zone) for scn, zone in json.loads(kept_zones or f'[[0, "{time_zone}"]]')
        ]
        if kept_zones is None:
            self._keep_zones(self._zones)
        kept = self.store.catalog.setting
        own = {name: kept(f"parameter.{name}") for name in ("NLS_SORT", "NLS_COMP")}
        self.nls = NLS_DEFAULTS | {name: value for name, value in own.items() if value}
        with self.store.lock:
            self.transactions = Transactions(self.store)

    def _kept_sets(self) -> CharacterSets:
        kept = [
            self.store.catalog.setting(name) for name in ("character_set", "national_character_set")
        ]
        return character_sets(kept[0] or "AL32UTF8", kept[1] or "AL16UTF16")

    def attach(self, provider: RedoProvider) -> None:
        """Take over the redo side's sink, views and procedures, then roll back what a dead process
        left open."""
        self.store.sink = provider.sink
        self.virtual_tables.update({table.name.upper(): table for table in provider.virtual_tables})
        self.add_procedures(provider.procedures)
        for constant in provider.constants:
            self.constants[constant.package.upper(), constant.name.upper()] = constant.value

    def _keep_zones(self, zones: list[tuple[int, str]]) -> None:
        with self.store.writing():
            self.store.catalog.set_setting("time_zones", json.dumps(zones))
        self._zones = zones

    def zone_at(self, scn: int | None = None) -> str:
        """DBTIMEZONE, now or as of an SCN: an offset, or the name of a region."""
        found = [zone for since, zone in self._zones if scn is None or since <= scn]
        return found[-1] if found else self._zones[0][1]

    def zone_minutes(self, zone: str, moment: bytes) -> int:
        """By how much a zone is ahead of UTC at a moment in UTC."""
        return temporal.zone_offset(zone, temporal.instant(moment))

    def set_time_zone(self, zone: str) -> None:
        """Change DBTIMEZONE. On Oracle it is another one when the database starts again; here at
        once.

        Source: Oracle Database SQL Language Reference 19c, "ALTER DATABASE", set_time_zone_clause.

        Raises:
            OracleError: ORA-30079 while a table has a column WITH LOCAL TIME ZONE; ORA-01882 for
                what is no zone.
        """
        temporal.zone_offset(zone, temporal.now())
        for table in self.store.catalog.tables():
            if any(column.stored.type is OraType.TIMESTAMP_LTZ for column in table.columns):
                raise OracleError(
                    30079,
                    "cannot alter database timezone when database has TIMESTAMP WITH LOCAL TIME ZONE columns",
                )
        self._keep_zones([*self._zones, (self.current_scn(), zone)])

    def set_sort(self, sort: str, comparison: str) -> None:
        """Let sessions begin with this NLS_SORT and NLS_COMP, as parameters of the instance do; for
        ever.

        Raises:
            ValueError: There is no such sort, or no such way to compare.
        """
        if not is_sort(sort) or comparison not in ("BINARY", "ANSI", "LINGUISTIC"):
            raise ValueError("NLS_SORT or NLS_COMP has a value that is not known")
        for name, value in (("NLS_SORT", sort), ("NLS_COMP", comparison)):
            with self.store.writing():
                self.store.catalog.set_setting(f"parameter.{name}", value)
            self.nls[name] = value

    def extend_strings(self) -> None:
        """Allow VARCHAR2, NVARCHAR2 and RAW of up to 32,767 bytes, for ever, as MAX_STRING_SIZE =
        EXTENDED does."""
        with self.store.writing():
            self.store.catalog.set_setting("max_string_size", "EXTENDED")
        self.has_extended_strings = True

    def add_procedures(self, procedures: Sequence[Procedure]) -> None:
        """Serve further packaged procedures."""
        for procedure in procedures:
            self.procedures[procedure.package.upper(), procedure.name.upper()] = procedure

    def recover(self) -> None:
        """Roll back the transactions of a process that died."""
        with self.store.lock:
            self.transactions.recover(self._table)
            self.store.flush()

    def _table(self, oid: int) -> TableDef | None:
        found = self.store.catalog.by_id(oid)
        return found if isinstance(found, TableDef) else None

    # --- Engine -----------------------------------------------------------------------------------

    def password_of(self, user: str, service: str = "") -> str | None:
        """Clear password of a user."""
        found = self._user_in(user, service)
        if found is None or found.locked:
            return None
        return found.password

    def _user_in(self, user: str, service: str) -> UserDef | None:
        """The user as the container of a service has it: the root has common users only. SYS is
        everywhere, and in no catalog."""
        if user == SYS:
            password = self.store.catalog.setting("sys_password") or ""
            return UserDef(0, SYS, password, ("SYSDBA",), created=self.started, common=True)
        found = self.store.catalog.user(user)
        if found is None or found.is_role:
            return None
        return found if found.common or self._container_of(service) != ROOT else None

    def _container_of(self, service: str) -> str:
        return ROOT if service == self.database_name else self.container_name

    def open_session(self, logon: Logon) -> Session:
        """Start a session."""
        found = self._user_in(logon.user, logon.service)
        if logon.as_sysdba:
            if found is None or "SYSDBA" not in found.privileges:
                raise ora(1031)
            logon = replace(logon, user=SYS)
            found = self._user_in(SYS, logon.service)
        elif logon.user == SYS:
            raise OracleError(28009, "connection as SYS should be as SYSDBA or SYSOPER")
        if logon.proxy and (found is None or logon.proxy not in found.proxies):
            raise OracleError(28150, "proxy not authorized to connect as client")
        if found is None:
            raise OracleError(1017, "invalid username/password; logon denied")
        if found.locked:
            raise OracleError(28000, "The account is locked.")
        if not self.security.has(found.name, "CREATE SESSION"):
            raise OracleError(
                1045, f"user {found.name} lacks CREATE SESSION privilege; logon denied"
            )
        session = Session(
            self, found, next(self._session_numbers), secrets.randbelow(60000) + 1, logon
        )
        session.container = self._container_of(logon.service)
        self.sessions[session.session_id] = session
        return session

    def forget_session(self, session: SessionState) -> None:
        """A session has ended."""
        ended = self.sessions.pop(session.session_id, None)
        if ended is not None:
            self._ended.update(_counted(ended))

    def is_connected(self, user: str) -> bool:
        """Has a user a session?"""
        return any(session.username == user for session in self.sessions.values())

    def close(self) -> None:
        """End all sessions, flush and release the storage."""
        if self.store.closed:
            return
        for session in list(self.sessions.values()):
            session.close()
        self.store.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    # --- DatabaseView -----------------------------------------------------------------------------

    def current_scn(self) -> int:
        """The SCN of now; asking moves it on."""
        with self.store.lock:
            scn = self.store.clock.tick()
            if self.store.clock.needs_saving():
                self.store.flush()
            return scn

    def next_scn(self) -> int:
        """Take the next SCN."""
        with self.store.lock:
            return self.store.clock.next()

    def scn_time(self, scn: int) -> float | None:
        """When an SCN was current."""
        return self.store.clock.time_of(scn)

    def connection(self) -> sqlite3.Connection:
        """The writer's connection."""
        return self.store.writer.sqlite

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for short queries; what was reported before is in it."""
        self.store.flush()
        connection = self.store.take_reader()
        try:
            yield connection.sqlite
        finally:
            self.store.give_back(connection)

    def read_connection(self) -> sqlite3.Connection:
        """A fresh read-only connection; what was reported before is in it."""
        self.store.flush()
        connection = sqlite3.connect(
            f"file:{self.store.path}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.text_factory = bytes
        return connection

    def segment_version(self, object_id: int) -> TableVersion | None:
        """The present definition of the table that has a segment."""
        return self.store.catalog.segment_version(object_id)

    def segment_versions(self) -> dict[int, TableVersion]:
        """The present definitions of all tables, by the numbers of their segments."""
        return {
            number: version
            for table in self.store.catalog.tables()
            for number, version in table.segment_versions.items()
        }

    def open_transactions(self) -> Sequence[TransactionInfo]:
        """Transactions with at least one change."""
        with self.store.lock:
            return [
                transaction.info
                for transaction in self.transactions.open.values()
                if transaction.begun
            ]

    def session_statistics(self) -> dict[int, dict[str, int]]:
        """What each session has counted."""
        return {number: _counted(session) for number, session in list(self.sessions.items())}

    def ended_statistics(self) -> Counter[str]:
        """What sessions had counted that have ended."""
        return self._ended

    def alter_system_hooks(self) -> dict[str, Callable[[EngineSession], None]]:
        """Actions of ALTER SYSTEM by text."""
        return self._system_hooks

    def alter_database_hooks(self) -> dict[str, Callable[[EngineSession], None]]:
        """Actions of ALTER DATABASE by text."""
        return self._database_hooks

    def writing(self) -> AbstractContextManager[None]:
        """The writer's lock and a SQLite transaction."""
        return self.store.writing()

    # --- names ------------------------------------------------------------------------------------

    def find(self, session: SessionState, owner: str, name: str) -> Definition | None:
        """An object by name, as a session sees it: in the root, objects of local users are not
        there."""
        if session.container == ROOT and owner != "PUBLIC":
            user = self.store.catalog.user(owner)
            if user is not None and not user.common:
                return None
        found = self.store.catalog.find(owner, name)
        if isinstance(found, TableDef) and found.temporary:
            return self.sessions[session.session_id].private_table(found)
        return found

    def find_virtual(
        self, session: SessionState, name: str, owner: str | None
    ) -> tuple[VirtualTable, bool] | None:
        """A computed view that a session may read, and whether it belongs to the dictionary."""
        if owner not in (None, "SYS", "PUBLIC"):
            return None
        plain = name.replace("V_$", "V$", 1) if name.startswith(("V_$", "GV_$")) else name
        view = self.dictionary.views.get(plain)
        dictionary = view is not None
        if view is None:
            view = self.virtual_tables.get(plain)
        if view is None:
            return None
        restricted = plain.startswith(("DBA_", "CDB_", "V$", "GV$")) and plain not in _OF_ALL
        if restricted and not self.security.may_read_catalog(session.username, plain):
            return None
        return view, dictionary

    def stored_function(self, session: SessionState, name: ast.Name) -> StoredFunction | None:
        """A stored function that a session's SQL may call."""
        return self.programs.function(session, name)

    def computed_views(self) -> set[str]:
        """Names of all computed views."""
        return {*self.dictionary.views, *self.virtual_tables}

    def dictionary_rows(
        self,
        name: str,
        session: SessionState,
        scn: int | None,
        filters: Sequence[tuple[str, str, Value]],
        read: Sequence[int],
    ) -> Iterator[Sequence[Value]]:
        """Rows of a dictionary view, as of an SCN if one is given, each with the columns at the
        places ``read``; filters as in :class:`VirtualTable`."""
        return self.dictionary.rows(name, session, scn, filters, read)

    def is_system_object(self, owner: str, name: str) -> bool:
        """Is this a dictionary view or a package?"""
        plain = name.replace("V_$", "V$", 1)
        packages = {package for package, _ in self.procedures} | {
            "DBMS_LOGMNR",
            "DBMS_LOGMNR_D",
            "DBMS_FLASHBACK",
        }
        return (
            plain in self.dictionary.views
            or plain in self.virtual_tables
            or name in packages
            or owner == "SYS"
        )

    # --- DDL --------------------------------------------------------------------------------------

    @contextmanager
    def changing_catalog(self) -> Iterator[None]:
        """The writer's lock for a DDL statement; if it fails, the catalog is read again."""
        with self.store.lock:
            try:
                with self.store.writing():
                    yield
            except BaseException:
                self.store.catalog.load()
                known = {table.object_id for table in self.store.catalog.tables()}
                known |= set(self.store.catalog.private)
                for oid in set(self.store.activity) - known:
                    self.store.activity.pop(oid, None)
                    self.store.segments.pop(oid, None)
                raise
            finally:
                self.shapes.clear()

    def log_ddl(self, session: SessionState, text: str, table: TableDef | None = None) -> None:
        """Put a statement that concerns the whole database into the redo, or a table with the
        definition that it makes."""
        with self.changing_catalog():
            transaction = session.need_transaction()
            try:
                scn, now = self.store.clock.next(), self.store.now()
                if table is not None:
                    changed = replace(table, object_version=table.object_version + 1, changed=now)
                    self.store.catalog.put(changed, scn)
                if self.store.sink is not None:
                    subject: tuple[str, str | None, int] = ("SYS", None, 0)
                    if table is not None:
                        subject = (table.owner, table.name, table.object_id)
                    self.store.sink.ddl(transaction.info, scn, now, text, *subject)
            finally:
                session.transaction = None
                self.transactions.abandon(transaction)

    def create_user(
        self,
        name: str,
        password: str,
        privileges: Sequence[str],
        grants: Sequence[tuple[str, str, str]] = (),
        *,
        is_role: bool = False,
        common: bool = False,
        container_data: bool = False,
    ) -> None:
        """Make a user or role when the database is created; a common one exists in every
        container."""
        with self.changing_catalog():
            catalog = self.store.catalog
            user = UserDef(
                catalog.new_id(), name, password, tuple(privileges), tuple(grants), created=self.store.now(),
                common=common, is_role=is_role, container_data=container_data,
            )  # fmt: skip
            catalog.put(user, self.store.clock.next())

    def set_password(self, name: str, password: str) -> None:
        """Give a user another password."""
        with self.changing_catalog():
            user = self.store.catalog.user(name)
            if name == SYS:
                self.store.catalog.set_setting("sys_password", password)
            elif user is None:
                raise ora(1435)
            else:
                self.store.catalog.put(replace(user, password=password), self.store.clock.next())
