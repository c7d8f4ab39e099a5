"""How is dlt brought here and run? Into an environment of its own, from locked wheels, and with its
own source and destination."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.peers.debezium import PeerUnavailableError

_HERE = Path(__file__).parent
_FOLDER = _HERE.parents[1] / ".redolake" / "peers" / "dlt"
_LOCK, _PROGRAM = _HERE / "dlt.lock", _HERE / "dlt_snapshot.py"
_BACKEND = "pyarrow"
"""The quicker one of the two that need no further driver."""
_SECONDS_MAX = 300


def snapshot(dsn: str, user: str, password: str, table: str, folder: Path) -> tuple[float, Path]:
    """Let dlt bring a table of the user's into Delta; the seconds of its run without imports, and
    the Delta table's folder.

    Raises:
        PeerUnavailableError: dlt cannot be installed, or its run failed.
    """
    python = _environment()
    address, _, service = dsn.partition("/")
    url = f"oracle+oracledb://{user}:{password}@{address}/?service_name={service}"
    done = _run(
        [str(python), "-P", str(_PROGRAM), url, user.lower(), table.lower(), str(folder), _BACKEND]
    )
    return float(done.split()[-1]), folder / "lake" / "bench" / table.lower()


def _environment() -> Path:
    """The Python of dlt's environment; installed at first use, and again when the lock file
    changes."""
    python, seal = _FOLDER / "bin" / "python", _FOLDER / "installed.lock"
    if seal.exists() and seal.read_text() == _LOCK.read_text():
        return python
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise PeerUnavailableError("there is no uv to install dlt with")
    _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(_FOLDER)])
    install = [uv, "pip", "install", "--quiet", "--require-hashes", "--python", str(python)]
    _run([*install, "-r", str(_LOCK)])
    seal.write_text(_LOCK.read_text())
    return python


def _run(command: list[str]) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_SECONDS_MAX
        ).stdout
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerUnavailableError(f"{Path(command[0]).name} failed: {last[:200]}") from error
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailableError(f"{Path(command[0]).name} took too long") from error
