"""How much of node-oracledb's own test suite passes on the embedded Oracle?

``python -m tests.peers.node_suite CHECKOUT [FILE …]`` runs the suite of a checkout of node-oracledb
in thin mode, file by file, each in a process of its own, and prints how many of the tests that
apply pass, and the names of those that do not. The files are copied into a folder that goes away.
Mocha comes from npm at first use.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import oracledb

from oracle_embedded.database import ADMIN, open_database
from oracle_embedded.server import EmbeddedServer
from tests.peers.driver_suite import Result, print_result
from tests.peers.programs import NoEnvironmentError

MOCHA = "mocha@11.7.5"
FILE_SECONDS_MAX = 120.0
TEST_MILLISECONDS_MAX = 30_000
USER, PASSWORD = "nodb", "Node0Test"
_FOLDER = Path(__file__).parents[2] / ".redolake" / "peers" / "node"

LEFT_OUT = {
    "aq": "advanced queues",
    "teq": "advanced queues",
    "executeQueue": "advanced queues",
    "cqn": "change notification",
    "soda": "SODA",
    "tpc": "two-phase commit",
    "external": "external authentication",
    "dataTypeVector": "vectors, which are not in this release",
    "jsonDualityViews": "duality views, which are not in this release",
}
"""Files that are about what the embedded Oracle does not have, by the beginning of their names."""


def mocha() -> Path:
    """Mocha's program, installed at first use.

    Raises:
        NoEnvironmentError: There is no Node.js, or npm cannot install it.
    """
    program = _FOLDER / "node_modules" / "mocha" / "bin" / "mocha.js"
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise NoEnvironmentError("there is no node and npm on the path")
    if not program.exists():
        _FOLDER.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-save", "--prefix", str(_FOLDER), MOCHA]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise NoEnvironmentError(made.stderr.strip()[-300:])
    return program


def suite_files(checkout: Path, wanted: Sequence[str]) -> list[str]:
    """The files that the suite's own configuration names and that apply, or those of them whose
    names begin as wanted."""
    listed = (checkout / "test" / "opts" / ".mocharc.yaml").read_text()
    names = re.findall(r"^\s*- test/(\w+)\.js$", listed, re.MULTILINE)
    return [
        name
        for name in names
        if name not in ("hooks", "dbconfig", "random", "testsUtil")
        and not name.startswith(tuple(LEFT_OUT))
        and (not wanted or name.startswith(tuple(wanted)))
    ]


@contextmanager
def suite_copy(checkout: Path) -> Iterator[Path]:
    """A folder with the suite as it runs here, the driver beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(checkout / "test", folder / "test")
        for item in ("lib", "index.js", "package.json", "examples", "plugins"):
            (folder / item).symlink_to(checkout / item)
        (folder / "node_modules").mkdir()
        (folder / "node_modules" / "oracledb").symlink_to(checkout)
        yield folder


def run_file(folder: Path, name: str, environment: dict[str, str], result: Result) -> None:
    """Run one file of the suite and add what came of it."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = ["node", str(mocha()), "--timeout", str(TEST_MILLISECONDS_MAX), "--exit", "--reporter", "json"]  # fmt: skip
    command += ["--reporter-option", f"output={report}", f"test/{name}.js"]
    try:
        subprocess.run(
            command,
            cwd=folder,
            env=environment,
            timeout=FILE_SECONDS_MAX,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        result.broken.append(f"{name} hung")
        return
    if not report.exists():
        result.broken.append(f"{name} died")
        return
    told = json.loads(report.read_text())
    result.passed += [f"{name}::{one['fullTitle']}" for one in told["passes"]]
    for one in told["failures"]:
        message = one["err"].get("message") or one["err"].get("code") or ""
        result.failed[f"{name}::{one['fullTitle']}"] = str(message)
    result.skipped |= {f"{name}::{one['fullTitle']}": "" for one in told["pending"]}


def run_suite(checkout: Path, wanted: Sequence[str] = ()) -> Result:
    """Start an embedded Oracle, make the suite's user and run its files.

    Raises:
        NoEnvironmentError: There is no Node.js, or no Mocha.
    """
    mocha()
    result = Result()
    database = open_database()
    try:
        with (
            EmbeddedServer(database.engine, faults=database.faults) as server,
            suite_copy(checkout) as folder,
        ):
            dsn, password = f"127.0.0.1:{server.port}/ORCLPDB1", database.password(ADMIN)
            with oracledb.connect(user=ADMIN, password=password, dsn=dsn) as connection:
                connection.cursor().execute(f"CREATE USER {USER} IDENTIFIED BY {PASSWORD}")
                connection.cursor().execute(f"GRANT DBA TO {USER}")
            environment = os.environ | {
                "NODE_ORACLEDB_USER": USER,
                "NODE_ORACLEDB_PASSWORD": PASSWORD,
                "NODE_ORACLEDB_CONNECTIONSTRING": dsn,
                "NODE_ORACLEDB_DBA_PRIVILEGE": "true",
                "NODE_ORACLEDB_DBA_USER": "sys",
                "NODE_ORACLEDB_DBA_PASSWORD": database.password("SYS"),
            }
            for name in suite_files(checkout, wanted):
                failed = len(result.failed)
                run_file(folder, name, environment, result)
                print(f"{name}: {len(result.failed) - failed} failed", file=sys.stderr)
    finally:
        database.close()
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite and print what came of it; 0 where nothing hung or died."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of node-oracledb")
    parser.add_argument("files", nargs="*", help="beginnings of names of files; all by default")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    options = parser.parse_args(arguments)
    checkout = options.checkout.resolve()
    result = run_suite(checkout, options.files)
    version = json.loads((checkout / "package.json").read_text())["version"]
    return print_result(f"node-oracledb {version}", result, options.json)


if __name__ == "__main__":
    sys.exit(main())
