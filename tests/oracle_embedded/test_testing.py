"""The embedded Oracle in the tests of others: three lines, a state to return to, faults and oddities by name."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import oracledb
import pytest

from oracle_embedded.faults import Fault, FaultKind
from oracle_embedded.testing import ADMIN, EmbeddedOracle, oracle

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
import pytest

pytest_plugins = ["oracle_embedded.pytest"]


@pytest.fixture(scope="session")
def oracle_schema():
    return ["CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO ORDERS VALUES (1)"]
"""
TESTS = """
import pytest


@pytest.mark.parametrize("number", [2, 3])
def test_each_finds_the_schema_s_rows_alone(oracle, oracle_connection, number):
    cursor = oracle_connection.cursor()
    assert cursor.execute("SELECT ID FROM ORDERS").fetchall() == [(1,)]
    oracle.run(f"INSERT INTO ORDERS VALUES ({number})", "CREATE TABLE MORE (ID NUMBER)")
    assert cursor.execute("SELECT COUNT(*) FROM ORDERS").fetchall() == [(2,)]
"""


def ids(database: EmbeddedOracle) -> list[int]:
    with database.connect() as connection:
        return [one for (one,) in connection.cursor().execute("SELECT ID FROM T ORDER BY ID")]


def test_a_kept_state_comes_back_with_users_tables_rows_and_scn(tmp_path: Path) -> None:
    with oracle(tmp_path) as database:
        dsn = database.dsn
        database.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        open_connection = database.connect()
        open_connection.cursor().execute("INSERT INTO T VALUES (5)")
        first = database.keep()
        assert ids(database) == [1], "what was open is rolled back"
        database.run("INSERT INTO T VALUES (2)")
        second = database.keep()
        database.run("CREATE USER GUEST IDENTIFIED BY x", user=ADMIN)
        database.run("DROP TABLE T PURGE")
        database.faults.arm(Fault(FaultKind.ORA_ERROR, code=1555, times=0))
        database.seconds_ahead = 3600.0
        for state, wanted in ((second, [1, 2]), (first, [1]), (second, [1, 2])):
            database.restore(state)
            assert (ids(database), database.dsn) == (wanted, dsn)
        assert database.faults.armed() == ()
        with database.connect(ADMIN) as admin:
            query = "SELECT COUNT(*) FROM ALL_USERS WHERE USERNAME = 'GUEST'"
            assert admin.cursor().execute(query).fetchall() == [(0,)]
        assert database.seconds_ahead == 0


def test_faults_and_oddities_are_asked_for_by_name() -> None:
    with oracle(release="23ai") as database:
        database.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")
        database.faults.arm(Fault(FaultKind.ORA_ERROR, sql_contains="FROM T", code=1555))
        with pytest.raises(oracledb.DatabaseError, match="ORA-01555"):
            ids(database)
        assert ids(database) == []
        database.show("LATE_REDO", shown=False)
        with pytest.raises(ValueError, match="NO_SUCH"):
            database.show("NO_SUCH")
        with pytest.raises(KeyError):
            database.connect("NOBODY")


def test_a_project_s_tests_get_a_database_in_three_lines(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_orders.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_package_has_a_command_of_its_own(tmp_path: Path) -> None:
    """It says how to connect, keeps one folder for itself, and ends by a signal."""
    command = [sys.executable, "-m", "oracle_embedded", "--port", "0", "--data", str(tmp_path), "--password", "secret"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        lines = [served.stdout.readline() for _ in range(5)]
        dsn = lines[0].split()[2]
        with oracledb.connect(user="demo", password="secret", dsn=dsn) as connection:
            assert connection.cursor().execute("SELECT USER FROM DUAL").fetchone() == ("DEMO",)
        mode = oracledb.AUTH_MODE_SYSDBA
        oracledb.connect(user="sys", password="secret", dsn=dsn, mode=mode).close()
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (again.returncode, again.stderr.split(":")[0]) == (1, f"another process serves {tmp_path}")  # fmt: skip
        served.send_signal(signal.SIGINT)
    assert served.returncode == 0
    assert [line.split()[0] for line in lines[1:4]] == ["DEMO", "REDOLAKE_ADMIN", "SYS"]
