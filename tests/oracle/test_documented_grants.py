"""The scripts in deploy/oracle make a capture user that can capture, and a grant that is missing is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oracledb
import pytest

from cdc_core.capture.logs.coverage import cover, read_logs, read_threads
from cdc_core.capture.logs.naming import where_logminer_runs
from cdc_core.capture.logs.positions import read_start, upper_bound
from cdc_core.capture.passes.mining import mined_batches, mining
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.wanted_rows import WantedRows
from cdc_core.capture.transactions.orphans import read_living
from cdc_core.config import LogMinerConfig, LogsBy, SourceConfig
from cdc_core.errors import PreflightError
from cdc_core.model.findings import Finding
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import connect
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.types import select_expression
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import PASSWORDS, Oracle, running_oracle, script, wait_until
from tests.oracle.findings import findings_of

PASSWORD = "secret"


@dataclass(frozen=True, slots=True)
class Setup:
    """A way to set a capture user up, and how such a user reads redo."""

    user: str
    script: str
    logs_by: LogsBy

    def statements(self, name: str) -> list[str]:
        """The SQL statements of a script for this user. Calls of Amazon's package are what they do."""
        words = {
            "'REDOLAKE": f"'{self.user}",
            "C##REDOLAKE": self.user,
            " REDOLAKE": f" {self.user}",
            "&1": "DEMO",
            "&2": "T",
            "&3": self.user,
        }
        said = script(name, **words, **{"&capture_password": PASSWORD})
        if name != "user_rds.sql":
            return said
        granted = (_GRANT_SYS_OBJECT.search(one) for one in said)
        plain = [one for one in said if one.startswith(("CREATE", "GRANT"))]
        return plain + [f"GRANT {one[3]} ON SYS.{one[1]} TO {one[2]}" for one in granted if one]


_GRANT_SYS_OBJECT = re.compile(r"grant_sys_object\('(\S+)', '(\S+)', '(\S+)'\)")
COMMON = Setup("C##DOCUMENTED", "user_cdb.sql", "files")
LOCAL = Setup("DOCUMENTED", "user_pdb.sql", "scn_range")
RDS = Setup("ONRDS", "user_rds.sql", "scn_range")
SETUPS = [
    pytest.param(RDS, id="rds"),
    pytest.param(COMMON, id="common-user"),
    pytest.param(LOCAL, id="local-user"),
]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        for setup in (COMMON, LOCAL, RDS):
            with administrator(oracle) as connection:
                for statement in setup.statements(setup.script):
                    connection.cursor().execute(statement)
                connection.cursor().execute("ALTER SESSION SET CONTAINER = ORCLPDB1")
                logging, *rights = setup.statements("table.sql")
                for statement in [logging, *rights] if setup is COMMON else rights:
                    connection.cursor().execute(statement)
        oracle.clock.ahead += 2
        yield oracle


def administrator(oracle: Oracle) -> oracledb.Connection:
    return oracledb.connect(user=ADMIN, password=PASSWORDS[ADMIN], dsn=oracle.server.dsn)


def config(setup: Setup, oracle: Oracle, path: Path) -> SourceConfig:
    return oracle.config(
        path,
        "T",
        oracle={"dsn": oracle.server.dsn, "user": setup.user, "password": PASSWORD},
        capture={"close_at": "online", "logs": setup.logs_by},
    )


def problems(setup: Setup, oracle: Oracle, path: Path) -> list[Finding]:
    source = config(setup, oracle, path)
    with connect(source.oracle) as session:
        return [finding for finding in findings_of(session, source) if finding.is_problem]


def read_everything(setup: Setup, oracle: Oracle, path: Path, low: Scn) -> list[tuple[str, int]]:
    """Read and mine the table as capture does: the number of its rows, and of INSERTs in the redo above ``low``."""
    source = config(setup, oracle, path)
    with connect(source.oracle) as session:
        start = read_start(session)
        schema = read_table_schema(session, source.tables[0])
        rows = session.fetch_all(
            f"SELECT {select_expression(schema.columns[0])} FROM {schema.table.sql} AS OF SCN :scn",
            {"scn": start.snapshot_scn},
        )
        high = Scn(wait_until(start.snapshot_scn, lambda: upper_bound(session, "online")))
        with where_logminer_runs(session, setup.logs_by):
            logs = cover(read_logs(session, low), read_threads(session), low, high)
            with mining(session, logs, low, high, how=LogMinerConfig(logs=setup.logs_by)):
                wanted = WantedRows([schema], {}, False, Reading(low, None, {}))
                batches = list(mined_batches(session, wanted, high, rows=1000))
    mined = [row for batch in batches for row in batch.to_pylist()]
    inserts = sum(row["operation_code"] == Operation.INSERT for row in mined)
    return [("rows", len(rows)), ("inserts", inserts)]


@pytest.mark.parametrize("setup", SETUPS)
def test_the_documented_grants_are_enough(oracle: Oracle, tmp_path: Path, setup: Setup) -> None:
    assert problems(setup, oracle, tmp_path) == []
    with connect(config(setup, oracle, tmp_path).oracle) as session:
        before = current_scn(session)
        rows = session.fetch_all("SELECT COUNT(*) FROM DEMO.T")[0][0]
    oracle.run(f"INSERT INTO T VALUES ({rows + 1})")
    found = read_everything(setup, oracle, tmp_path, before)
    assert found == [("rows", rows + 1), ("inserts", 1)]


_NOT_MISSED = {
    "SYS.UTL_RAW": "PUBLIC has it, unless that was revoked",
    "SYS.GV_$TRANSACTION": "read where several instances are open",
    "SYS.V_$PARAMETER": "read for information alone",
    "SYS.V_$ARCHIVE_DEST_STATUS": "read for information alone",
    "SYS.V_$PDBS": "read for information alone",
    "SYS.GV_$SESSION": "transactions are not given up without it",
}


def grants(setup: Setup) -> Iterator[Any]:
    """Every privilege of the scripts that capture cannot do without, one at a time, with the object that it is on."""
    for statement in [*setup.statements(setup.script), *setup.statements("table.sql")]:
        found = re.match(r"GRANT (.+?)(?: ON (\S+))? TO ", statement)
        if found and found[2] not in _NOT_MISSED:
            for one in found[1].split(","):
                yield pytest.param(
                    setup, one.strip(), found[2] or "", id=f"{setup.user}-{one.strip()}-{found[2]}"
                )


@pytest.mark.parametrize(("setup", "privilege", "target"), [*grants(COMMON), *grants(LOCAL)])
def test_each_missing_grant_is_named(
    oracle: Oracle, tmp_path: Path, setup: Setup, privilege: str, target: str
) -> None:
    on = f" ON {target}" if target else ""
    with administrator(oracle) as connection:
        connection.cursor().execute(f"REVOKE {privilege}{on} FROM {setup.user}")
        try:
            said = told(setup, oracle, tmp_path)
        finally:
            connection.cursor().execute(f"GRANT {privilege}{on} TO {setup.user}")
    assert any(privilege in remedy and target in remedy for remedy in said)


def told(setup: Setup, oracle: Oracle, path: Path) -> list[str]:
    """What mends the problems that preflight finds, or what keeps it from looking."""
    try:
        return [finding.remedy for finding in problems(setup, oracle, path)]
    except PreflightError as error:
        return [error.hint]


@pytest.mark.parametrize("setup", SETUPS)
def test_without_the_sessions_nothing_is_given_up_and_doctor_says_so(
    oracle: Oracle, tmp_path: Path, setup: Setup
) -> None:
    """A notice with its grant, and no problem: windows are captured all the same."""
    source = config(setup, oracle, tmp_path)
    with administrator(oracle) as connection, connection.cursor() as cursor:
        cursor.execute(f"REVOKE SELECT ON SYS.GV_$SESSION FROM {setup.user}")
        try:
            with connect(source.oracle) as session:
                found = [one for one in findings_of(session, source) if "SESSION" in one.remedy]
                assert read_living(session, 1).sessions is None
                before = current_scn(session)
            rows = read_everything(setup, oracle, tmp_path, before)
        finally:
            cursor.execute(f"GRANT SELECT ON SYS.GV_$SESSION TO {setup.user}")
    [notice] = found
    assert not notice.is_problem
    assert "cannot abandon" in notice.problem
    assert notice.remedy == f"GRANT SELECT ON SYS.GV_$SESSION TO {setup.user}"
    assert rows[0][1] > 0
    with connect(source.oracle) as session:
        assert [one for one in findings_of(session, source) if "SESSION" in one.remedy] == []
        assert read_living(session, 1).sessions


def test_amazon_s_script_gives_the_rights_of_the_local_user() -> None:
    def rights(setup: Setup) -> list[str]:
        found = [one for one in setup.statements(setup.script) if one.startswith("GRANT")]
        return sorted(one.replace(setup.user, "U") for one in found)

    assert rights(RDS) == rights(LOCAL)


def test_rights_may_come_by_a_role_and_reading_needs_no_more_than_read(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Views of redo granted as READ to a role, which is all that the capture user holds of them."""
    setup, role = COMMON, "C##REDO_READER"
    views = [
        found[1]
        for statement in setup.statements(setup.script)
        if (found := re.match(r"GRANT SELECT ON (SYS\.\S+) TO ", statement))
    ]
    with administrator(oracle) as connection, connection.cursor() as cursor:
        cursor.execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
        cursor.execute(f"CREATE ROLE {role} CONTAINER = ALL")
        for view in views:
            cursor.execute(f"GRANT READ ON {view} TO {role} CONTAINER = ALL")
            cursor.execute(f"REVOKE SELECT ON {view} FROM {setup.user} CONTAINER = ALL")
        cursor.execute(f"GRANT {role} TO {setup.user} CONTAINER = ALL")
        try:
            assert problems(setup, oracle, tmp_path) == []
            with connect(config(setup, oracle, tmp_path).oracle) as session:
                before = current_scn(session)
            oracle.run("INSERT INTO T SELECT MAX(ID) + 1 FROM T")
            rows = read_everything(setup, oracle, tmp_path, before)
        finally:
            for view in views:
                cursor.execute(f"GRANT SELECT ON {view} TO {setup.user} CONTAINER = ALL")
            cursor.execute(f"REVOKE {role} FROM {setup.user} CONTAINER = ALL")
    assert len(views) > 10
    assert rows[1] == ("inserts", 1)
