"""An embedded Oracle in a process of its own, for the prover and other tests that kill things."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import oracledb

ROOT = Path(__file__).resolve().parents[2]


class EmbeddedServer:
    """``redolake oracle serve`` as a child process; a context manager."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def __enter__(self) -> Self:
        command = [
            sys.executable,
            "-m",
            "pipelines.oracle_serve",
            "--port",
            "0",
            "--json",
            "--data",
            str(self._data),
            "--with-parent",
        ]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = json.loads(self._process.stdout.readline())
        self.dsn, self.user, self.password = line["dsn"], line["user"], line["password"]
        self.capture_user, self.capture_password = line["capture_user"], line["capture_password"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(30)

    def connect(self) -> oracledb.Connection:
        """A session of the schema owner."""
        return oracledb.connect(user=self.user, password=self.password, dsn=self.dsn)

    def connect_capture(self) -> oracledb.Connection:
        """A session of the capture user, who may read V$DATABASE."""
        return oracledb.connect(
            user=self.capture_user, password=self.capture_password, dsn=self.dsn
        )

    def arm(self, kind: str, **arguments: object) -> None:
        """Switch a fault on (:mod:`oracle_embedded.faults`)."""
        given = {"kind": kind, **arguments}
        call = ", ".join(f"{name} => :{name}" for name in given)
        self._block(f"DBMS_REDOLAKE_FAULTS.ARM({call});", given)

    def clear_faults(self) -> None:
        """Switch all faults off."""
        self._block("DBMS_REDOLAKE_FAULTS.DISARM_ALL;", {})

    def _block(self, calls: str, binds: dict[str, object]) -> None:
        with self.connect_capture() as connection, connection.cursor() as cursor:
            cursor.execute(f"BEGIN {calls} END;", binds)


def current_scn(connection: oracledb.Connection) -> int:
    """The database's SCN now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_SCN FROM V$DATABASE")
        [(scn,)] = cursor.fetchall()
    return int(scn)
