"""Which programs of other languages and frameworks run against the embedded Oracle, each in an environment of its own?

``python -m tests.peers.programs [NAME …]`` runs their clients and prints each use and its result.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from oracle_embedded.database import ADMIN, open_database
from oracle_embedded.server import EmbeddedServer

PYTHON_PROGRAMS = {
    "django": ("django>=5.2,<5.3", "oracledb>=26.1,<27"),
    "dbt": ("dbt-oracle>=1.9,<1.11", "dbt-core<1.11"),
    "airflow": ("apache-airflow-providers-oracle==4.7.1", "pandas"),
    "sling": ("sling-linux-amd64==1.4.10", "oracledb>=26.1,<27"),
}
"""The packages that each client in Python needs; it is ``NAME_client.py`` in this folder. Later
releases of dbt and of Sling fetch programs from elsewhere when they are installed or imported."""
SECONDS_MAX = 600
_FOLDER = Path(__file__).parents[2] / ".redolake" / "peers"
_GO_CLIENT = Path(__file__).with_name("go_client")


class NoEnvironmentError(RuntimeError):
    """The packages of a program cannot be had here."""


def environment(name: str, packages: tuple[str, ...]) -> Path:
    """The interpreter of an environment with these packages, made at first use.

    Raises:
        NoEnvironmentError: They cannot be installed.
    """
    folder = _FOLDER / name
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", *packages],
        ):
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                raise NoEnvironmentError(made.stderr.strip()[-300:])
        done.touch()
    return python


def run_python(name: str) -> dict[str, str]:
    """Run a client in Python; the result of each use, ``ok`` or what went wrong.

    Raises:
        NoEnvironmentError: Its packages cannot be installed.
    """
    client = Path(__file__).with_name(f"{name}_client.py")
    return _run([str(environment(name, PYTHON_PROGRAMS[name])), str(client)])


def run_go() -> dict[str, str]:
    """Run the client of go-ora, likewise.

    Raises:
        NoEnvironmentError: There is no Go, or the module cannot be fetched.
    """
    if shutil.which("go") is None:
        raise NoEnvironmentError("there is no go on the path")
    program = _FOLDER / "go_client"
    program.parent.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=_GO_CLIENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise NoEnvironmentError(made.stderr.strip()[-300:])
    return _run([str(program)])


def _run(command: list[str]) -> dict[str, str]:
    """Run a client against a new database: it takes a port, a user and a password."""
    database = open_database()
    try:
        with EmbeddedServer(database.engine, faults=database.faults) as server:
            done = subprocess.run(
                [*command, str(server.port), ADMIN, database.password(ADMIN)],
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
                check=False,
            )
    finally:
        database.close()
    results = dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)
    if done.returncode != 0:
        results["the client ends well"] = done.stderr.strip()[-400:]
    return results


def main(names: list[str]) -> None:
    """Run the clients of these names, or all."""
    for name in names or [*PYTHON_PROGRAMS, "go"]:
        for use, result in (run_go() if name == "go" else run_python(name)).items():
            print(f"{name}\t{use}\t{result}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
