"""An embedded Oracle in a process of its own, which can be killed, and comes back at the same address with what it had on disk."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import oracledb

from oracle_embedded.database import OWNER, open_database
from oracle_embedded.engine.storage import transactions
from oracle_embedded.redo import RedoSettings
from oracle_embedded.server import EmbeddedServer as WireServer
from oracle_embedded.streams import streaming
from pipelines.oracle_serve import ensure_users
from tests.invariants.deadline import SERVER_SECONDS_MAX, HungError
from tests.invariants.nursery import NURSERY
from tests.invariants.ways import SOURCE

STRAND_RECORDS = 2
"""So few that an open transaction has some of its redo in the log and some not: both must be met at a window's border."""
LOG_BYTES = 64 * 1024
SLOTS = 2
"""Of each undo segment: so few that each is used again after some twenty transactions, under the next sequence."""
DDL_SECONDS = 5
"""By how much the clock is put forward after DDL: a snapshot waits until the second of the last DDL has passed."""


def serve_oracle(
    folder: Path, port: int, ahead: float, streams: dict[str, Any], pipe: Connection
) -> None:
    """Serve the folder's database until the pipe is closed; a number in it puts the clock forward, None lets what tells of changes besides
    (``streams``) tell of all until now."""
    os.setsid()
    clock = [ahead]
    transactions._SLOTS = SLOTS
    settings = RedoSettings(strand_records=STRAND_RECORDS, log_bytes=LOG_BYTES)
    folder.mkdir(parents=True, exist_ok=True)
    database = open_database(folder, redo_settings=settings, now=lambda: time.time() + clock[0])
    login = ensure_users(database, [OWNER])
    with ExitStack() as stack:
        told = streaming(database, name=SOURCE, state=folder / "streams.json", **streams)
        tell = stack.enter_context(told)
        tell()
        server = stack.enter_context(WireServer(database.engine, port=port, faults=database.faults))
        pipe.send((server.dsn, server.port, login))
        while True:
            try:
                asked = pipe.recv()
            except EOFError:
                break
            if asked is None:
                tell()
            else:
                clock[0] += asked
            pipe.send(None)
    database.close()


class EmbeddedServer:
    """The process; a context manager."""

    def __init__(
        self, data: Path, *, ahead: float = 0.0, streams: Mapping[str, Any] | None = None
    ) -> None:
        self._data, self._streams = data, dict(streams or {})
        self._port = 0
        self.ahead = ahead
        """By how many seconds its clock is ahead."""

    def __enter__(self) -> Self:
        self._start()
        return self

    def _start(self) -> None:
        self._pipe, far = NURSERY.Pipe()
        self._process = NURSERY.Process(
            target=serve_oracle,
            args=(self._data, self._port, self.ahead, self._streams, far),
            daemon=True,
        )
        self._process.start()
        far.close()
        self.dsn, self._port, login = self._answer()
        self.user, self.password = login.user, login.password
        self.capture_user, self.capture_password = login.capture_user, login.capture_password
        self._admin = login.admin_user, login.admin_password

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pipe.close()
        self._process.join(30)
        self._process.kill()
        self._process.join()

    def _answer(self) -> Any:
        """What the process says next."""
        if not self._pipe.poll(SERVER_SECONDS_MAX):
            raise HungError(f"the embedded Oracle said nothing for {SERVER_SECONDS_MAX} seconds")
        return self._pipe.recv()

    def kill_and_restart(self) -> None:
        """SIGKILL, and the same database again at the same address."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.join()
        self._pipe.close()
        self._start()

    def begin_cluster(self) -> None:
        """Let a second instance open a redo thread of its own."""
        self.administer("ALTER DATABASE ENABLE PUBLIC THREAD 2")
        self.administer("BEGIN DBMS_REDOLAKE_FAULTS.OPEN_THREAD(2); END;")
        self.administer("GRANT EXECUTE ON SYS.DBMS_REDOLAKE_FAULTS TO PUBLIC")

    def put_forward(self, seconds: float = DDL_SECONDS) -> None:
        """Put the database's clock forward."""
        self.ahead += seconds
        self._pipe.send(seconds)
        self._answer()

    def tell(self) -> None:
        """What tells of changes besides tells of all that has committed until now."""
        self._pipe.send(None)
        self._answer()

    def connect(self) -> oracledb.Connection:
        """A session of the schema owner."""
        return oracledb.connect(user=self.user, password=self.password, dsn=self.dsn)

    def connect_other(self) -> oracledb.Connection:
        """A session of the schema owner on the second instance."""
        connection = self.connect()
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DBMS_REDOLAKE_FAULTS.USE_THREAD(2); END;")
        return connection

    def connect_capture(self) -> oracledb.Connection:
        """A session of the capture user, who may read V$DATABASE."""
        return oracledb.connect(
            user=self.capture_user, password=self.capture_password, dsn=self.dsn
        )

    def administer(self, statement: str, **binds: object) -> None:
        """Run a statement as the administrator."""
        user, password = self._admin
        with (
            oracledb.connect(user=user, password=password, dsn=self.dsn) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement, binds)

    def arm(self, kind: str, **arguments: object) -> None:
        """Switch a fault on (:mod:`oracle_embedded.faults`)."""
        given: dict[str, Any] = {"kind": kind, **arguments}
        call = ", ".join(f"{name} => :{name}" for name in given)
        self.administer(f"BEGIN DBMS_REDOLAKE_FAULTS.ARM({call}); END;", **given)

    def clear_faults(self) -> None:
        """Switch all faults off."""
        self.administer("BEGIN DBMS_REDOLAKE_FAULTS.DISARM_ALL; END;")


def current_scn(connection: oracledb.Connection) -> int:
    """The database's SCN now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_SCN FROM V$DATABASE")
        [(scn,)] = cursor.fetchall()
    return int(scn)
