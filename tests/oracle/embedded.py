"""An embedded Oracle for tests: a server on loopback, its owner's connection, and a capture session."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import oracledb

from cdc_core.config import SourceConfig
from cdc_core.oracle.session import OracleSession, connect
from cdc_core.state.store import Store
from oracle_embedded.api import StandbySite
from oracle_embedded.containers import Containers, plug_in
from oracle_embedded.containers import drop as drop_container
from oracle_embedded.database import ADMIN, CAPTURE, OWNER, OpenDatabase, open_database
from oracle_embedded.likeness import Likeness
from oracle_embedded.redo import LobRows, RedoSettings, Wart, XmlRows
from oracle_embedded.redo.settings import NEXT_CHANGE_OPEN
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.standby import Standby

WAIT_ROUNDS = 600
LIKE = "REDOLAKE_TEST_LIKE"
"""Names a report of ``redolake certify``: the suites run on a database that is like that one."""
LOCAL_CAPTURE = "REDOLAKE"
"""A capture user of the pluggable database alone."""
PASSWORDS = {ADMIN: "admin", CAPTURE: "capture", OWNER: "owner", LOCAL_CAPTURE: "local"}
SCRIPTS = Path(__file__).resolve().parents[2] / "deploy" / "oracle"
_SQLPLUS = ("WHENEVER", "SET ", "ACCEPT", "--", "PROMPT", "EXIT", "/")
MERGED_BY_SPARK = {"rewrite_mirrors_up_to_mb": 0}
"""``lake`` of a source whose windows Spark merges, however small its mirrors are."""
STRAND_RECORDS = 2
"""So few that an open transaction has some of its redo in the log and some not: both must be met at a window's border. With the
default, all redo of a small transaction is in the window of its COMMIT."""
IDLE_REDO_SECONDS = 0.3
"""Who waits for redo that an idle database writes waits so long; a real one writes some every three
seconds."""
DATABASE_FILE = "database.sqlite"


_DDL = ("ALTER ", "CREATE ", "DROP ", "TRUNCATE ")


def _hasten_driver() -> None:
    """The driver derives the same key from the same password at each log-in, in some milliseconds
    of CPU time, and looks up the signature of each method at each call: a test run logs in ten
    thousand times, with four passwords, and makes a million calls, of a dozen methods."""
    driver: Any = sys.modules["oracledb.thin_impl"]
    driver.get_derived_key = lru_cache(maxsize=256)(driver.get_derived_key)
    known: dict[Any, inspect.Signature] = {}

    def signature(method: Any) -> inspect.Signature:
        key = getattr(method, "__func__", method)
        if key not in known:
            known[key] = inspect.signature(method)
        return known[key]

    for name in ("oracledb.thin_impl", "oracledb.base_impl"):
        looked_up = ModuleType("inspect")
        vars(looked_up).update({**vars(inspect), "signature": signature})
        vars(sys.modules[name])["inspect"] = looked_up


_hasten_driver()


def script(name: str, **words: str) -> list[str]:
    """The SQL statements of a script in deploy/oracle, its substitution variables and other words replaced."""
    lines = (SCRIPTS / name).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith(_SQLPLUS))
    for word, value in words.items():
        text = text.replace(word, value)
    return [statement.strip() for statement in text.split(";") if statement.strip()]


@dataclass(slots=True)
class Clock:
    """The database's clock, which may be put forward."""

    ahead: float = 0

    def __call__(self) -> float:
        return time.time() + self.ahead


def reported() -> Likeness:
    """The database of the report that the environment names, or the default one."""
    path = os.environ.get(LIKE)
    return Likeness() if path is None else Likeness.read(Path(path))


Statement = str | Callable[["Oracle"], object]
"""What the owner of a new database runs, or a function of the database: of what lies in its file,
nothing else of it is kept."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a database comes about: what is run in it first, and the options of :func:`running_oracle`."""

    statements: tuple[Statement, ...] = ()
    logging: bool = True
    warts: frozenset[Wart] = frozenset()
    strand_records: int = STRAND_RECORDS
    lob_rows: LobRows | None = None
    xml_rows: XmlRows = XmlRows.BINARY
    extended_strings: bool = False
    character_set: str = ""
    national_character_set: str = ""
    release: str = ""
    nls_sort: str = ""
    nls_comp: str = ""
    time_zone: str = ""
    threads: int = 1
    idle_redo_seconds: float = IDLE_REDO_SECONDS
    like: Likeness = field(default_factory=reported)
    unsupported_undo: bool = False
    next_change_open: int = NEXT_CHANGE_OPEN

    def open(self, folder: Path, clock: Clock, *, is_new: bool) -> OpenDatabase:
        """Open a database in a folder, or make it there."""
        like = self.like
        settings = RedoSettings(
            warts=like.warts,
            strand_records=self.strand_records,
            unsupported_undo=self.unsupported_undo,
            next_change_open=self.next_change_open,
            lob_rows=self.lob_rows or like.lob_rows,
            xml_rows=self.xml_rows,
            idle_redo_seconds=self.idle_redo_seconds,
        )
        first: dict[str, Any] = {
            "passwords": {user: PASSWORDS[user] for user in (ADMIN, CAPTURE, OWNER)},
            "extended_strings": self.extended_strings or like.extended_strings,
            "character_set": self.character_set or like.character_set,
            "national_character_set": self.national_character_set or like.national_character_set,
            "nls_sort": self.nls_sort,
            "nls_comp": self.nls_comp,
            "time_zone": self.time_zone or like.time_zone,
        }
        database = open_database(
            folder,
            now=clock,
            redo_settings=settings,
            release=self.release or like.release,
            **first if is_new else {},
        )
        for wart in self.warts:
            database.redo.set_wart(wart, shown=True)
        if is_new:
            database.redo.open_threads(like.threads)
        return database


@dataclass(frozen=True)
class KeptDatabase:
    """The file of a database that was closed, and how far its clock was put forward."""

    file: bytes
    ahead: float


@lru_cache(maxsize=16)
def kept_database(recipe: Recipe, passwords: frozenset[tuple[str, str]]) -> KeptDatabase:
    """A database as its recipe makes it, with these passwords of its users. Tests that begin with
    equal ones begin with its file, since to make one takes as long as many a test's own part."""
    del passwords  # `PASSWORDS` as they are now, which a test may have changed for itself
    plain = replace(recipe, statements=())
    oracle = Oracle(plain)
    if recipe.statements:
        for kind, group in groupby(recipe.statements, type):
            if kind is str:
                oracle.run(*map(str, group))
                continue
            for statement in group:
                assert callable(statement)
                statement(oracle)
    else:
        oracle.create()
    return oracle.kept()


class Oracle:
    """A database that runs from the first look at it on.

    After DDL its clock is put forward: a snapshot waits until the second of the last DDL has
    passed, and tests do not.
    """

    def __init__(
        self,
        recipe: Recipe,
        running: tuple[OpenDatabase, EmbeddedServer] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.recipe = recipe
        self.clock = clock or Clock()
        self.sent: list[str] = []
        self.sessions: list[OracleSession] = []
        self._running = running
        self._folder: TemporaryDirectory[str] | None = None
        self._starting = threading.RLock()

    @property
    def database(self) -> OpenDatabase:
        """The database itself, with its redo and its faults."""
        return self._started()[0]

    @property
    def server(self) -> EmbeddedServer:
        """What listens for clients."""
        return self._started()[1]

    @server.setter
    def server(self, server: EmbeddedServer) -> None:
        self._running = (self.database, server)

    @property
    def is_running(self) -> bool:
        """Has anybody looked at it?"""
        return self._running is not None

    def _started(self) -> tuple[OpenDatabase, EmbeddedServer]:
        with self._starting:
            if self._running is None:
                self.start(kept_database(self.recipe, frozenset(PASSWORDS.items())))
            assert self._running is not None
            return self._running

    def create(self) -> None:
        """Start with a database that is made now, without the statements of its recipe."""
        self.start(None)
        if self.recipe.threads > 1:
            self.open_threads(self.recipe.threads)
        if self.recipe.logging:
            self.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS", user=ADMIN)

    def start(self, kept: KeptDatabase | None) -> None:
        """Go on with a database that was closed, or make a new one."""
        self._folder = TemporaryDirectory(prefix="oracle_embedded_", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        if kept is not None:
            (folder / DATABASE_FILE).write_bytes(kept.file)
            self.clock.ahead += kept.ahead
        database = self.recipe.open(folder, self.clock, is_new=kept is None)
        server = EmbeddedServer(database.engine, faults=database.faults)
        server.start()
        self._running = (database, server)

    def stop(self) -> None:
        """End it, with the sessions that tests left open.

        One that is left to the garbage collector may be closed in a thread of the server, and waits
        there for that thread.
        """
        self.close_sessions()
        if self._running is not None:
            database, server = self._running
            server.stop()
            database.close()
        if self._folder is not None:
            self._folder.cleanup()

    def kept(self) -> KeptDatabase:
        """End it; what is left can be gone on with."""
        database, server = self._started()
        self.close_sessions()
        server.stop()
        database.close()
        file = (database.engine.folder / DATABASE_FILE).read_bytes()
        self.stop()
        return KeptDatabase(file, self.clock.ahead)

    def owner(self) -> Any:
        """A new connection of the schema owner."""
        return oracledb.connect(user=OWNER, password="owner", dsn=self.server.dsn)

    def run(self, *statements: str, user: str = OWNER) -> None:
        """Run statements in one transaction and commit."""
        with oracledb.connect(
            user=user, password=PASSWORDS[user], dsn=self.server.dsn
        ) as connection:
            for statement in statements:
                connection.cursor().execute(statement)
            connection.commit()
        if any(statement.upper().startswith(_DDL) for statement in statements):
            self.clock.ahead += 5

    def open_threads(self, count: int) -> None:
        """Let so many instances write redo; a session is one of the others from `USE_THREAD` on."""
        self.database.redo.open_threads(count)
        self.run("GRANT EXECUTE ON SYS.DBMS_REDOLAKE_FAULTS TO PUBLIC", user=ADMIN)

    def add_local_capture(self) -> None:
        """Make the capture user that deploy/oracle has for a pluggable database alone, which may read all tables."""
        made = script("user_pdb.sql", **{"&capture_password": PASSWORDS[LOCAL_CAPTURE]})
        every = f"GRANT SELECT ANY TABLE, FLASHBACK ANY TABLE TO {LOCAL_CAPTURE}"
        self.run(*made, every, user=ADMIN)

    def config(self, path: Path, *tables: str, **more: Any) -> SourceConfig:
        """A source of this database with local folders below ``path``."""
        oracle = more.pop("oracle", {})
        login = oracle if "dsn" in oracle else {**self.login(CAPTURE), **oracle}
        return source_config(path, *tables, oracle=login, **more)

    def login(self, user: str, password: str | None = None) -> dict[str, str]:
        """``oracle`` of a configuration with another user, or a wrong password."""
        return {"dsn": self.server.dsn, "user": user, "password": password or PASSWORDS[user]}

    def capture_session(self, config: SourceConfig) -> OracleSession:
        """A session as capture opens it; its statements go to ``sent``. It is closed with the database."""
        session = connect(config.oracle, on_statement=self.sent.append)
        self.sessions.append(session)
        return session

    def close_sessions(self) -> None:
        """Close the sessions of :meth:`capture_session`."""
        for session in self.sessions:
            session.close()


def minimal_logging(oracle: Oracle) -> None:
    """Tables log what they are told to, beside minimal supplemental logging: for a database with
    ``logging=False``."""
    oracle.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)


@dataclass(frozen=True, slots=True)
class StandbyOracle:
    """A physical standby of a running database; what it says of itself may be changed."""

    site: StandbySite
    server: EmbeddedServer

    def connect(self, user: str) -> Any:
        """A new connection to the standby."""
        return oracledb.connect(user=user, password=PASSWORDS[user], dsn=self.server.dsn)


@contextmanager
def standby_of(oracle: Oracle) -> Iterator[StandbyOracle]:
    """A physical standby beside a running database, for the block; it applies redo at once until its site says otherwise."""
    engine = Standby(oracle.database)
    with EmbeddedServer(engine, faults=oracle.database.faults) as server:
        yield StandbyOracle(engine.site, server)


@contextmanager
def second_container(
    oracle: Oracle, name: str = "ORCLPDB2", *, idle_redo_seconds: float | None = None
) -> Iterator[Oracle]:
    """Another pluggable database of the same container database, for the block; the first one must be new."""
    first = {user: PASSWORDS[user] for user in (ADMIN, CAPTURE, OWNER)}
    idle = IDLE_REDO_SECONDS if idle_redo_seconds is None else idle_redo_seconds
    settings = RedoSettings(strand_records=STRAND_RECORDS, idle_redo_seconds=idle)
    database = open_database(
        passwords=first, now=oracle.clock, redo_settings=settings, container=name, container_id=4
    )
    if not oracle.is_running:
        oracle.create()
    try:
        plug_in(oracle.database, database)
        with EmbeddedServer(database.engine, faults=database.faults) as server:
            found = Oracle(Recipe(), (database, server), oracle.clock)
            found.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS", user=ADMIN)
            yield found
            found.close_sessions()
    finally:
        database.close()


@dataclass(frozen=True, slots=True)
class ContainerDatabase:
    """A container database: a listener whose service leads to the root, and the pluggable databases by name."""

    server: EmbeddedServer
    pdbs: dict[str, Oracle]

    @property
    def dsn(self) -> str:
        """Leads to CDB$ROOT."""
        return f"127.0.0.1:{self.server.port}/ORCLCDB"

    def login(self, user: str = CAPTURE, **more: Any) -> dict[str, Any]:
        """``oracle`` of a configuration."""
        return {"dsn": self.dsn, "user": user, "password": PASSWORDS[user], **more}

    def drop(self, name: str) -> None:
        """DROP PLUGGABLE DATABASE of the second one."""
        first = next(iter(self.pdbs.values()))
        drop_container(first.database, self.pdbs[name].database)

    def close_pdb(self, name: str) -> None:
        """ALTER PLUGGABLE DATABASE … CLOSE."""
        first = next(iter(self.pdbs.values()))
        first.run(f"BEGIN DBMS_REDOLAKE_FAULTS.CLOSE_CONTAINER('{name}'); END;", user=ADMIN)

    def open_pdbs(self) -> None:
        """ALTER PLUGGABLE DATABASE ALL OPEN."""
        first = next(iter(self.pdbs.values()))
        first.run("BEGIN DBMS_REDOLAKE_FAULTS.OPEN_CONTAINERS; END;", user=ADMIN)


@contextmanager
def container_database(
    *,
    warts: Iterable[Wart] = (),
    idle_redo_seconds: float | None = None,
    second: str = "ORCLPDB2",
) -> Iterator[ContainerDatabase]:
    """A container database with the pluggable databases ORCLPDB1 and ``second``, for the block."""
    with (
        running_oracle(warts=warts, idle_redo_seconds=idle_redo_seconds) as one,
        second_container(one, second, idle_redo_seconds=idle_redo_seconds) as two,
    ):
        pdbs = {oracle.database.engine.container_name: oracle for oracle in (one, two)}
        engines = {name: oracle.database.engine for name, oracle in pdbs.items()}
        listener = Containers(one.database.engine, engines)
        with EmbeddedServer(listener, faults=one.database.faults) as server:
            yield ContainerDatabase(server, pdbs)


@contextmanager
def running_oracle(
    *statements: Statement,
    warts: Iterable[Wart] = (),
    idle_redo_seconds: float | None = None,
    **options: Any,
) -> Iterator[Oracle]:
    """A database for the block, in which the statements have been run.

    It has supplemental logging unless told otherwise, and the oddities of a real LogMiner that are
    named. ``options`` are those of :class:`Recipe`: strands are full at ``strand_records`` records;
    LOBs are written in the shape of ``lob_rows``, documents in that of ``xml_rows``. With
    ``extended_strings`` MAX_STRING_SIZE is EXTENDED; the character sets are AL32UTF8 and AL16UTF16
    unless named. Its views name ``release``, and DBTIMEZONE is ``time_zone``. What is not said is
    as in ``like``, or in the report that ``REDOLAKE_TEST_LIKE`` names. ``threads`` instances write
    redo, or as many as the report has if those are more; an idle one writes some every
    ``idle_redo_seconds``.
    """
    idle = IDLE_REDO_SECONDS if idle_redo_seconds is None else idle_redo_seconds
    recipe = Recipe(
        statements=statements, warts=frozenset(warts), idle_redo_seconds=idle, **options
    )
    oracle = Oracle(recipe)
    try:
        yield oracle
    finally:
        oracle.stop()


@cache
def _empty_store() -> bytes:
    """A metadata store that its migrations have just made: running them takes longer than many a window."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        Store.open(f"sqlite:///{path}", "src").close()
        return path.read_bytes()


def source_config(path: Path, *tables: str, **more: Any) -> SourceConfig:
    """A source named ``src`` with local folders below ``path``, and an empty store; ``more`` are further attributes. Its small mirrors
    need no Spark, unless ``lake`` among them is :data:`MERGED_BY_SPARK`."""
    store = path / "state.db"
    if path.is_dir() and not store.exists():
        store.write_bytes(_empty_store())
    return SourceConfig.model_validate(
        {
            "name": "src",
            "tables": [{"name": f"{OWNER}.{name}"} for name in tables],
            "capture": {"close_at": "online"},
            "landing": {"type": "local", "path": str(path / "landing")},
            "state": {"url": f"sqlite:///{path / 'state.db'}"},
            **more,
            "lake": {"path": str(path / "lake"), "driver_memory": "1g", **more.get("lake", {})},
        }
    )


def wait_until(scn: int, current: Any) -> int:
    """Wait until ``current()`` has passed ``scn``; returns what it gave."""
    for _ in range(WAIT_ROUNDS):
        found: int = current()
        if found >= scn:
            return found
        time.sleep(0.05)
    raise AssertionError(f"SCN {scn} was not passed")
