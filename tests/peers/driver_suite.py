"""How much of python-oracledb's own test suite passes on the embedded Oracle?

``python -m tests.peers.driver_suite CHECKOUT [FILE …]`` runs the suite of a checkout of python-oracledb, in thin mode, file by file,
each in a process of its own, and prints how many of the tests that apply pass, and the names of those that do not. Nothing of the
suite is copied: its own scripts make its schema. A statement of theirs that the embedded Oracle refuses is named and left out.
A suite tests the driver of its own release: ``--python`` names an interpreter that has that driver, and pytest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import oracledb

from oracle_embedded.database import ADMIN, open_database
from oracle_embedded.server import EmbeddedServer

FILE_SECONDS_MAX = 300.0
MAIN, PROXY, EDITION, PASSWORD = "pythontest", "pythontestproxy", "pythonedition", "Python0Test"

LEFT_OUT = {
    "aq/": "advanced queues",
    "soda/": "SODA",
    "connection/test_1400": "two-phase commit",
    "connection/test_1500": "two-phase commit",
    "connection/test_1800": "events (change notification)",
    "connection/test_1900": "external authentication",
    "ext/": "tests that need other servers and set-ups",
    "py314/": "templates of Python 3.14",
}
"""Files that are about what the embedded Oracle does not have, by the beginning of their names; this is the order of the suite since
26.0."""


@dataclass(slots=True)
class Result:
    """What the tests of some files came to; names are ``file::test``."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    """Files whose process hung or died, and sessions that were lost."""

    @property
    def applicable(self) -> int:
        """Tests that the suite itself did not skip."""
        return len(self.passed) + len(self.failed)


def statements_of(script: Path, names: dict[str, str]) -> Iterator[str]:
    """The statements of a script that ends each with a slash on a line of its own, names filled in."""
    lines: list[str] = []
    for line in script.read_text().splitlines(keepends=True):
        if line.strip() != "/":
            lines.append(line)
            continue
        text = "".join(lines).strip()
        lines.clear()
        for name, value in names.items():
            text = text.replace(f"&{name}.", value).replace(f"&{name}", value)
        if text:
            yield text


def create_schema(checkout: Path, connection: oracledb.Connection) -> list[tuple[str, str]]:
    """Run the suite's scripts for this version of the database; gives the statements that were refused, with the error."""
    names = {
        "main_user": MAIN,
        "main_password": PASSWORD,
        "proxy_user": PROXY,
        "proxy_password": PASSWORD,
        "edition_name": EDITION,
    }
    refused = []
    with connection.cursor() as cursor:
        for text in statements_of(checkout / "tests" / "sql" / "create_schema.sql", names):
            try:
                cursor.execute(text)
            except oracledb.Error as error:
                refused.append((text, str(error)))
    return refused


def run_file(
    checkout: Path, file: Path, environment: dict[str, str], result: Result, python: str
) -> None:
    """Run one file of the suite and add what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", str(file)]  # fmt: skip
        try:
            subprocess.run(
                command,
                cwd=checkout,
                env=environment,
                timeout=FILE_SECONDS_MAX,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            result.broken.append(f"{_name(checkout, file)} hung")
            return
        if not report.exists():
            result.broken.append(f"{_name(checkout, file)} died")
            return
        _read_report(report, _name(checkout, file), result)


def _read_report(report: Path, file: str, result: Result) -> None:
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{file}::{case.get('name')}"
        trouble = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)  # fmt: skip
        skipped = case.find("skipped")
        if trouble is not None:
            result.failed[name] = trouble.get("message") or ""
        elif skipped is not None:
            result.skipped[name] = skipped.get("message") or ""
        else:
            result.passed.append(name)


def suite_files(checkout: Path, wanted: Sequence[str]) -> list[Path]:
    """The files of the suite that apply, or those of them whose names begin as wanted."""
    files = sorted((checkout / "tests").rglob("test_*.py"))
    return [
        file
        for file in files
        if not _name(checkout, file).startswith(tuple(LEFT_OUT))
        and (not wanted or _name(checkout, file).startswith(tuple(wanted)))
    ]


def _name(checkout: Path, file: Path) -> str:
    return file.relative_to(checkout / "tests").with_suffix("").as_posix()


def run_suite(
    checkout: Path, wanted: Sequence[str] = (), python: str = sys.executable
) -> tuple[Result, list[tuple[str, str]]]:
    """Start an embedded Oracle, make the suite's schema and run its files."""
    result = Result()
    database = open_database()
    try:
        with EmbeddedServer(database.engine, faults=database.faults) as server:
            dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
            password = database.password(ADMIN)
            with oracledb.connect(user=ADMIN, password=password, dsn=dsn) as connection:
                refused = create_schema(checkout, connection)
            environment = os.environ | {
                "PYO_TEST_MAIN_USER": MAIN,
                "PYO_TEST_MAIN_PASSWORD": PASSWORD,
                "PYO_TEST_PROXY_USER": PROXY,
                "PYO_TEST_PROXY_PASSWORD": PASSWORD,
                "PYO_TEST_CONNECT_STRING": dsn,
                "PYO_TEST_ADMIN_USER": ADMIN,
                "PYO_TEST_ADMIN_PASSWORD": password,
            }
            for file in suite_files(checkout, wanted):
                before = time.monotonic()
                done = len(result.failed)
                run_file(checkout, file, environment, result, python)
                print(f"{_name(checkout, file)}: {time.monotonic() - before:.1f} s, {len(result.failed) - done} failed", file=sys.stderr)  # fmt: skip
                if not _answers(dsn, password):
                    result.broken.append(
                        f"the server does not answer after {_name(checkout, file)}"
                    )
                    break
    finally:
        database.close()
    return result, refused


def _answers(dsn: str, password: str) -> bool:
    """Is the database there, and can a new session work in it?"""
    try:
        with oracledb.connect(user=ADMIN, password=password, dsn=dsn, tcp_connect_timeout=20) as connection:  # fmt: skip
            return connection.ping() is None
    except oracledb.Error:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite and print what came of it; 0 where nothing hung or died."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of python-oracledb")
    parser.add_argument("files", nargs="*", help="beginnings of names of files; all by default")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    parser.add_argument("--python", default=sys.executable, help="has the driver to test")
    options = parser.parse_args(arguments)
    result, refused = run_suite(options.checkout.resolve(), options.files, options.python)
    for text, error in refused:
        print(f"refused: {' '.join(text.split())[:90]}: {error.splitlines()[0]}")
    version = [options.python, "-c", "import oracledb; print(oracledb.__version__)"]
    told = subprocess.run(version, capture_output=True, text=True, check=True).stdout.strip()
    return print_result(f"python-oracledb {told}", result, options.json)


def print_result(driver: str, result: Result, file: Path | None) -> int:
    """Print what fails by name, and how much passes; the exit status, 0 where nothing hung."""
    for name, message in result.failed.items():
        print(f"failed: {name}: {' '.join(message.split())[:200]}")
    for trouble in result.broken:
        print(f"broken: {trouble}")
    applicable = result.applicable
    share = 100 * len(result.passed) / applicable if applicable else 0.0
    print(f"{driver}: {len(result.passed)} of {applicable} tests pass ({share:.1f} %), {len(result.skipped)} do not apply")  # fmt: skip
    if file is not None:
        body = {"passed": result.passed, "failed": result.failed, "skipped": result.skipped}
        file.write_text(json.dumps(body, indent=1))
    return 1 if result.broken else 0


if __name__ == "__main__":
    sys.exit(main())
