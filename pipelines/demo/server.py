"""How is the demo's Oracle started, found again and ended?

A process of its own, as a database is. It ends when the process that started it ends, however that
comes about, and gives the data folder free; so a demo that was killed finds its database as it left
it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO

from cdc_core.errors import OracleUnavailableError
from pipelines.extras import require_embedded_oracle

OWNER = "NYC"
START_SECONDS = 60
STOP_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A database that answers: where it is, an ordinary schema owner (``user``), and the user that
    captures."""

    dsn: str
    user: str
    password: str = field(repr=False)
    capture_user: str
    capture_password: str = field(repr=False)
    port: int


@contextmanager
def serving(folder: Path, *, options: Sequence[str] = ()) -> Iterator[Served]:
    """Serve the database kept in ``folder`` for the block, on the port that it had before where
    that is free, with further options of ``redolake oracle serve``.

    Raises:
        OracleUnavailableError: It did not start; its own words are in ``<folder>/oracle.log``.
        PreflightError: The embedded Oracle is not installed.
    """
    require_embedded_oracle()
    folder.mkdir(parents=True, exist_ok=True)
    log_path = folder / "oracle.log"
    with log_path.open("ab") as log:
        process = _start(folder, log, options)
        try:
            served = _await_ready(process, log_path)
            _remember(folder, served)
            yield served
        finally:
            _stop(process)


def last_served(folder: Path) -> Served | None:
    """What the folder's database was served as the last time; None if it never was."""
    try:
        return Served(**json.loads(_record(folder).read_text()))
    except FileNotFoundError:
        return None


def _start(folder: Path, log: IO[bytes], options: Sequence[str]) -> subprocess.Popen[str]:
    before = last_served(folder)
    command = [sys.executable, "-m", "pipelines.cli", "oracle", "serve", "--json", "--with-parent"]
    command += ["--data", str(folder / "oracle"), "--schema", OWNER]
    command += ["--port", str(before.port if before else 0)]
    command += options
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
        start_new_session=True,  # Ctrl-C is for the demo: it ends the database after its sessions
    )


def _await_ready(process: subprocess.Popen[str], log_path: Path) -> Served:
    """Read the one line that the server prints when clients can connect."""
    assert process.stdout is not None
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if not line:
        raise OracleUnavailableError(
            "the embedded Oracle did not start",
            hint="See the log for its error message; `redolake ui` or another demo may be using the same database.",
            log=log_path,
            said=_last_words(log_path),
        )
    said = json.loads(line)
    return Served(**{one.name: said[one.name] for one in fields(Served)})


def _last_words(log_path: Path) -> str:
    lines = log_path.read_text(errors="replace").splitlines()
    return " ".join(lines[-2:])[:300] or "nothing"


def _stop(process: subprocess.Popen[str]) -> None:
    """Closing its standard input asks it to end; SIGKILL if it does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _record(folder: Path) -> Path:
    return folder / "oracle.json"


def _remember(folder: Path, served: Served) -> None:
    fresh = _record(folder).with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(served), file)
    fresh.replace(_record(folder))
