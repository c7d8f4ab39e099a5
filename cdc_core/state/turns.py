"""How do the processes of a store do something one after the other, without writing to it?

Each holds a lock of the operating system beside the SQLite file, or an advisory lock of PostgreSQL.
Either ends with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

_POLL_SECONDS = 0.05
_IDLE_SECONDS = 60
"""After how long PostgreSQL takes the turn of a process that stands still."""
_TRY = text(
    "SELECT pg_try_advisory_xact_lock(:key),"
    f" set_config('idle_in_transaction_session_timeout', '{_IDLE_SECONDS}s', true)"
)


@contextmanager
def turn(engine: Engine, name: str, seconds: float) -> Iterator[None]:
    """A block that runs in one thread of all processes at a time, for each ``name``. It begins
    after ``seconds`` in any case: a process may have been suspended in its turn.

    Raises:
        SQLAlchemyError: PostgreSQL cannot be reached.
    """
    key = hashlib.sha256(name.encode()).digest()[:8]
    with ExitStack() as held:
        take = _of_file if engine.dialect.name == "sqlite" else _of_postgresql
        is_mine = take(engine, key, held)
        deadline = time.monotonic() + seconds
        while not is_mine() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        yield


def _of_file(engine: Engine, key: bytes, held: ExitStack) -> Callable[[], bool]:
    """A file of its own: SQLite loses its locks where a process opens and closes its file."""
    try:
        path = f"{engine.url.database}-{key.hex()}.lock"
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:  # the store itself will say so, where that matters
        return lambda: True
    held.callback(os.close, file)

    def end() -> None:
        with suppress(OSError):  # a child that was forked meanwhile keeps the file open
            fcntl.flock(file, fcntl.LOCK_UN)

    held.callback(end)

    def is_mine() -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True

    return is_mine


def _of_postgresql(engine: Engine, key: bytes, held: ExitStack) -> Callable[[], bool]:
    connection = engine.connect()

    def end() -> None:
        with suppress(SQLAlchemyError):  # the turn has ended already
            connection.close()

    held.callback(end)
    connection.execution_options(isolation_level="READ COMMITTED", postgresql_readonly=True)
    number = int.from_bytes(key, signed=True)

    def is_mine() -> bool:
        if connection.execute(_TRY, {"key": number}).scalar_one():
            return True
        connection.rollback()  # who has the turn may need the session that a pooler keeps for it
        return False

    return is_mine
