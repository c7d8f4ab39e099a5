"""What does ``redolake oracle serve`` do?

Serves the embedded Oracle on loopback until it is ended: by SIGTERM, SIGINT, or, where that was
asked for, by the end of the process that started it. One process serves a data folder at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cdc_core.errors import ConfigError, OracleUnavailableError
from oracle_embedded.api import Logon
from oracle_embedded.database import ADMIN, CAPTURE, OWNER, OpenDatabase, open_database
from oracle_embedded.likeness import Likeness
from oracle_embedded.redo import RedoSettings, Wart
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.streams import streaming

DEFAULT_SCHEMA = OWNER
LOCK_SECONDS = 30
NAME_LENGTH_MAX = 30
OWNER_PRIVILEGES = "CREATE SESSION, ALTER SESSION, CREATE TABLE, CREATE VIEW, CREATE SEQUENCE, UNLIMITED TABLESPACE"
NOTICE = (
    "The embedded Oracle is for trying things and for tests: never put production data into it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Users of a served database: the owner of the first schema, one with the grants that capture
    needs, the administrator (who may, for one, create users), and the passwords of all schema
    owners by name."""

    user: str
    password: str = field(repr=False)
    capture_user: str
    capture_password: str = field(repr=False)
    admin_user: str
    admin_password: str = field(repr=False)
    schemas: dict[str, str] = field(repr=False)


def serve(
    *,
    port: int = 0,
    data: Path | None = None,
    schemas: Sequence[str] = (DEFAULT_SCHEMA,),
    as_json: bool = False,
    with_parent: bool = False,
    show: Sequence[str] = (),
    hide: Sequence[str] = (),
    character_set: str = "",
    national_character_set: str = "",
    nls_sort: str = "",
    nls_comp: str = "",
    like: Path | None = None,
    openlogreplicator: str = "",
    xstream: Path | None = None,
) -> int:
    """Serve until ended; returns 0.

    Args:
        port: 0, or one that is taken, lets the system choose.
        data: Folder that keeps the database; a temporary one, removed at the end, when None.
        schemas: Names of the schema owners, created where they are not there; one at least.
        as_json: Print one JSON line (``dsn``, the fields of :class:`Login`, ``port``) when clients
            can connect, instead of lines for people.
        with_parent: End when standard input is closed, as it is when the starting process ends in
            whatever way.
        show: Names of LogMiner's oddities (:class:`oracle_embedded.redo.Wart`) to show beside those
            that are by default.
        hide: Names of oddities not to show.
        character_set: The database's character set; AL32UTF8 unless said. A database that is there
            keeps its own.
        national_character_set: Its national one; AL16UTF16 unless said.
        nls_sort: NLS_SORT of the instance; BINARY unless said.
        nls_comp: NLS_COMP of the instance; BINARY unless said.
        like: A report of ``redolake certify``: the database behaves as that one says, but for what
            the other arguments say.
        openlogreplicator: A folder into which changes are written as OpenLogReplicator writes them,
            or the port on which its network writer listens.
        xstream: A folder into which changes are written as recordings of XStream's LCRs.

    Raises:
        OracleUnavailableError: Another process serves the data folder.
        ConfigError: A schema's name or an oddity's is none, the database cannot have such a
            character set or sort, or the port of the network writer is taken.
    """
    model = Likeness() if like is None else _like(like)
    if model.unlike:
        print(f"Not as the report says: {', '.join(model.unlike)}", file=sys.stderr, flush=True)
    settings = RedoSettings(
        warts=(model.warts | _warts(show)) - _warts(hide), lob_rows=model.lob_rows
    )
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    if with_parent:
        threading.Thread(target=_watch_parent, args=(ended,), daemon=True).start()
    with ExitStack() as stack:
        if data is None:
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redolake-oracle-")))
        data.mkdir(parents=True, exist_ok=True)
        stack.enter_context(only_server(data, ended))
        names = {
            "character_set": character_set or model.character_set,
            "national_character_set": national_character_set or model.national_character_set,
            "nls_sort": nls_sort, "nls_comp": nls_comp,
        }  # fmt: skip
        database = _opened(
            data, settings, {name: one.upper() for name, one in names.items()}, model
        )
        stack.callback(database.close)
        database.redo.open_threads(model.threads)
        login = ensure_users(database, schemas)
        options = _stream(stack, database, data, login, openlogreplicator, xstream)
        server = _listening(database, port)
        stack.callback(server.stop)
        _print_login(server, login, options, as_json=as_json)
        ended.wait()
    return 0


def _like(report: Path) -> Likeness:
    try:
        return Likeness.read(report)
    except ValueError as error:
        raise ConfigError(
            "this is no report of a certification",
            hint="`redolake certify --to report.json` writes one.",
            file=report,
            cause=str(error),
        ) from error


def _opened(
    data: Path, settings: RedoSettings, names: Mapping[str, str], like: Likeness
) -> OpenDatabase:
    try:
        return open_database(
            data,
            redo_settings=settings,
            character_set=names["character_set"],
            national_character_set=names["national_character_set"],
            nls_sort=names["nls_sort"],
            nls_comp=names["nls_comp"],
            release=like.release,
            extended_strings=like.extended_strings,
            time_zone=like.time_zone,
        )
    except ValueError as error:
        raise ConfigError(
            "the embedded Oracle cannot have these character sets or sorts",
            hint=f"{error}. A new folder under --data is a new database.",
            **{name: one for name, one in names.items() if one},
        ) from error


def _warts(names: Sequence[str]) -> frozenset[Wart]:
    known = {wart.value: wart for wart in Wart}
    for name in names:
        if name.upper() not in known:
            raise ConfigError(
                "the embedded Oracle has no such oddity",
                hint=f"Choose from {', '.join(known)}.",
                name=name,
            )
    return frozenset(known[name.upper()] for name in names)


def ensure_users(database: OpenDatabase, schemas: Sequence[str]) -> Login:
    """The users' names and passwords; schema owners are created if they are not there, and redo
    gets what LogMiner needs.

    Raises:
        ConfigError: An owner's name is not a plain one.
    """
    for name in schemas:
        if not (name.isidentifier() and name.isascii() and len(name) <= NAME_LENGTH_MAX):
            raise ConfigError(
                "this is not a plain user name", hint="Use letters, digits and _.", user=name
            )
    owners = [name.upper() for name in schemas]
    session = database.engine.open_session(Logon(ADMIN, program="redolake", machine="localhost"))
    try:
        for owner in owners:
            if database.engine.password_of(owner) is None:
                session.run(f'CREATE USER {owner} IDENTIFIED BY "p{secrets.token_hex(12)}"')
                session.run(f"GRANT {OWNER_PRIVILEGES} TO {owner}")
        session.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA")
    finally:
        session.close()
    passwords = {owner: database.password(owner) for owner in owners}
    return Login(
        user=owners[0],
        password=passwords[owners[0]],
        capture_user=CAPTURE,
        capture_password=database.password(CAPTURE),
        admin_user=ADMIN,
        admin_password=database.password(ADMIN),
        schemas=passwords,
    )


@contextmanager
def only_server(data: Path, ended: threading.Event) -> Iterator[None]:
    """Hold the data folder; wait a while for a predecessor that is ending.

    Raises:
        OracleUnavailableError: It is still held after that.
    """
    give_up = time.monotonic() + LOCK_SECONDS
    with (data / "serve.lock").open("w") as handle:
        while not _locked(handle.fileno()):
            if time.monotonic() > give_up or ended.is_set():
                raise OracleUnavailableError(
                    "another process serves this data folder",
                    hint="End it, or name another folder with --data.",
                    folder=data,
                )
            time.sleep(0.1)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _listening(database: OpenDatabase, port: int) -> EmbeddedServer:
    try:
        server = EmbeddedServer(database.engine, port=port, faults=database.faults)
        server.start()
    except OSError:
        if port == 0:
            raise
        server = EmbeddedServer(database.engine, port=0, faults=database.faults)
        server.start()
    return server


def _stream(
    stack: ExitStack,
    database: OpenDatabase,
    data: Path,
    login: Login,
    openlogreplicator: str,
    xstream: Path | None,
) -> str:
    """Begin to tell of changes, until the stack ends; the options with which ``redolake init``
    configures a source that reads them."""
    port = int(openlogreplicator) if openlogreplicator.isdigit() else None
    folder = Path(openlogreplicator).resolve() if openlogreplicator and port is None else None
    recordings = xstream and xstream.resolve()
    try:
        stack.enter_context(
            streaming(
                database,
                name=login.user,
                replicator_folder=folder,
                replicator_port=port,
                recordings=recordings,
                state=data / "openlogreplicator-chkpt.json",
            )
        )
    except OSError as error:
        raise ConfigError(
            "changes cannot be written as OpenLogReplicator or XStream writes them",
            hint="Name a free port, and folders that may be written.",
            cause=error.strerror,
        ) from error
    place = folder or (port and f"127.0.0.1:{port}")
    options = {"--openlogreplicator": place, "--xstream": recordings}
    return "".join(f" \\\n      {name} {one}" for name, one in options.items() if one)


def _print_login(server: EmbeddedServer, login: Login, options: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"dsn": server.dsn, **asdict(login), "port": server.port}), flush=True)
        return
    print(f"Oracle (embedded) answers at {server.dsn}. {NOTICE}")
    for owner, password in login.schemas.items():
        print(f"  schema owner  {owner} / {password}")
    print(f"  for capture   {login.capture_user} / {login.capture_password}")
    print(f"  administrator {login.admin_user} / {login.admin_password}")
    print(next_steps(server.dsn, login, options), flush=True)


def next_steps(dsn: str, login: Login, options: str = "") -> str:
    """What to type next to capture this database's tables, with an option of ``redolake init``, and
    how other clients connect."""
    own = Path(sys.argv[0])
    redolake = str(own) if own.name == "redolake" and shutil.which(own.name) is None else "redolake"
    return f"""
Make a table, as {login.user} with any client (JDBC: jdbc:oracle:thin:@//{dsn}), for example in another terminal:
{sys.executable} - <<END
import oracledb
with oracledb.connect(user="{login.user}", password="{login.password}", dsn="{dsn}") as owner:
    for sql in (
        "CREATE TABLE ORDERS (ORDER_NO NUMBER PRIMARY KEY, STATUS VARCHAR2(20))",
        "ALTER TABLE ORDERS ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
        "INSERT INTO ORDERS VALUES (4711, 'new')",
    ):
        owner.cursor().execute(sql)
    owner.commit()
END
Then capture it:
  export REDOLAKE_ORACLE_PASSWORD='{login.capture_password}' REDOLAKE_CONFIG=defs.yaml
  {redolake} init --name {login.user.lower()} --dsn {dsn} --user '{login.capture_user}' \\
      --password-env REDOLAKE_ORACLE_PASSWORD --table '{login.user}.*'{options}
  {redolake} doctor && {redolake} snapshot && {redolake} run --loop
Ctrl-C ends this server."""


def _watch_parent(ended: threading.Event) -> None:
    # Not through sys.stdin: its lock would be held by this thread when the interpreter ends.
    while os.read(sys.stdin.fileno(), 4096):
        continue
    ended.set()
