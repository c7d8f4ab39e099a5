"""``python -m oracle_embedded``: a database on loopback until it is ended."""

from __future__ import annotations

import argparse
import fcntl
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from oracle_embedded.database import ADMIN, OWNER, open_database
from oracle_embedded.engine.run.security import SYS
from oracle_embedded.server import EmbeddedServer

_USERS = {OWNER: "an ordinary user", ADMIN: "has the role DBA", SYS: "logs in AS SYSDBA"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; 0 then, 1 where the port or the folder is in use."""
    parser = argparse.ArgumentParser(
        prog="python -m oracle_embedded",
        description="A database that speaks Oracle's wire protocol, on loopback, for trials and tests. "
        "Never put production data into it.",
    )
    parser.add_argument("--port", type=int, default=1521, help="default 1521; 0: any free one")
    parser.add_argument("--data", type=Path, help="folder that keeps the database; default: none")
    parser.add_argument("--password", help="of all its users; default: generated ones")
    parser.add_argument("--release", choices=("19c", "23ai"), default="19c")
    options = parser.parse_args(arguments)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with ExitStack() as stack:
        folder = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        lock = stack.enter_context((folder / "serve.lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return _refused(f"another process serves {folder}: end it, or name another --data")
        passwords = dict.fromkeys(_USERS, options.password) if options.password else None
        database = open_database(folder, passwords=passwords, release=options.release)
        stack.callback(database.close)
        server = EmbeddedServer(database.engine, port=options.port, faults=database.faults)
        try:
            server.start()
        except OSError as error:
            return _refused(f"port {options.port}: {error.strerror}; --port 0 takes any free one")
        stack.callback(server.stop)
        print(f"Connect to {server.dsn} as")
        for user, what in _USERS.items():
            print(f"  {user:<15} {database.password(user):<20} {what}")
        print("Ctrl-C ends it.", flush=True)
        ended.wait()
    return 0


def _refused(why: str) -> int:
    print(why, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
