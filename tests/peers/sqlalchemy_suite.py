"""How much of SQLAlchemy's own test suite passes on the embedded Oracle?

``python -m tests.peers.sqlalchemy_suite [TEST …]`` runs the suite for dialects and the tests of the Oracle dialect, of the release that
is pinned here, and prints how many pass and the names of those that do not. The tests come with its source archive, which is fetched
once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import oracledb

from oracle_embedded.database import ADMIN, open_database
from oracle_embedded.server import EmbeddedServer
from tests.peers.programs import NoEnvironmentError, environment

VERSION = "2.1.9"
_PACKAGES = (f"sqlalchemy=={VERSION}", "oracledb>=26.1,<27", "pytest", "setuptools>=77", "cython")
_TESTS = ("test/dialect/test_suite.py", "test/dialect/oracle")
_FOLDER = Path(__file__).parents[2] / ".redolake" / "peers" / "sqlalchemy-source"
_USERS = ("SCOTT", "TEST_SCHEMA")


@dataclass(slots=True)
class Result:
    """What the tests came to."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0

    @property
    def share(self) -> float:
        """Those that pass of those that apply."""
        return self.passed / max(self.passed + len(self.failed), 1)


def _source(python: Path) -> Path:
    """The unpacked source archive, fetched at first use."""
    folder = _FOLDER / f"sqlalchemy-{VERSION}"
    if not folder.exists():
        command = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "sqlalchemy", "--no-build-isolation"]  # fmt: skip
        command += [f"sqlalchemy=={VERSION}", "--dest", str(_FOLDER)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise NoEnvironmentError(made.stderr.strip()[-300:])
        with tarfile.open(_FOLDER / f"sqlalchemy-{VERSION}.tar.gz") as archive:
            archive.extractall(_FOLDER, filter="data")
    return folder


def run_suite(tests: Sequence[str] = _TESTS) -> Result:
    """Run the suite against a new database.

    Raises:
        NoEnvironmentError: The packages or the source archive cannot be had.
    """
    python = environment("sqlalchemy", _PACKAGES)
    source = _source(python)
    database = open_database()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        try:
            with EmbeddedServer(database.engine, faults=database.faults) as server:
                dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
                with oracledb.connect(user=ADMIN, password=database.password(ADMIN), dsn=dsn) as connection:  # fmt: skip
                    for user in _USERS:
                        connection.cursor().execute(f"CREATE USER {user} IDENTIFIED BY tiger")
                        connection.cursor().execute(f"GRANT DBA TO {user}")
                url = (
                    f"oracle+oracledb://scott:tiger@127.0.0.1:{server.port}/?service_name=ORCLPDB1"
                )
                command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--maxfail=100000", "--dburi", url]  # fmt: skip
                subprocess.run(
                    [*command, f"--junitxml={report}", *tests],
                    cwd=source,
                    env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=1800,
                    check=False,
                )
        finally:
            database.close()
        return _read(report)


def _read(report: Path) -> Result:
    result = Result()
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            result.skipped += 1
        elif case.find("failure") is None and case.find("error") is None:
            result.passed += 1
        else:
            result.failed.append(f"{case.get('classname')}::{case.get('name')}")
    return result


def main() -> None:
    """Run the suite and print what came of it."""
    result = run_suite(sys.argv[1:] or _TESTS)
    for name in result.failed:
        print(f"failed: {name}")
    count = result.passed + len(result.failed)
    print(f"SQLAlchemy {VERSION}: {result.passed} of {count} tests pass ({100 * result.share:.1f} %), {result.skipped} do not apply")  # fmt: skip


if __name__ == "__main__":
    main()
