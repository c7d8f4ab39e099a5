"""The script for the database administrator: what doctor found missing, and nothing else, and what takes it back."""

from __future__ import annotations

import re
from pathlib import Path

import oracledb
import pytest

from cdc_core.config import LogsBy, SourceConfig
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.preflight.script import Platform, Site, dba_script, read_site, statements_of
from cdc_core.steps.source_checks import missing_sql, oracle_findings
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import OWNER, PASSWORDS, Oracle
from tests.oracle.fake_session import FakeSession
from tests.oracle.fixtures import oracle_with

USER = "C##POOR"
ROOT = "CDB$ROOT"
SITES: dict[Platform, Site] = {
    "non-cdb": Site("non-cdb", "ORCL"),
    "cdb": Site("cdb", "ORCLPDB1"),
    "pdb": Site("pdb", "ORCLPDB1"),
    "rds": Site("rds", "ORCL"),
    "autonomous": Site("autonomous", "ADB"),
}
GRANT = "GRANT SELECT ON SYS.V_$LOG TO {}"
LOGGING = "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA"
ARCHIVELOG = "SHUTDOWN IMMEDIATE; STARTUP MOUNT; ALTER DATABASE ARCHIVELOG; ALTER DATABASE OPEN"

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER PRIMARY KEY)",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)",
    logging=False,
)


def statements(text: str, prefix: str = "") -> list[str]:
    """What SQL*Plus would run of a script, or of the lines with a prefix."""
    lines = text.splitlines()
    if prefix:
        lines = [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
    else:
        lines = [line for line in lines if not line.startswith(("--", "WHENEVER"))]
    return [one.strip() for one in "\n".join(lines).split(";") if one.strip()]


def run_as_admin(oracle: Oracle, found: list[str]) -> None:
    with (
        oracledb.connect(
            user=ADMIN, password=PASSWORDS[ADMIN], dsn=oracle.server.dsn
        ) as connection,
        connection.cursor() as cursor,
    ):
        for statement in found:
            cursor.execute(statement)
    oracle.clock.ahead += 5


def poor(oracle: Oracle, path: Path) -> SourceConfig:
    """A source whose capture user may connect, and nothing else."""
    run_as_admin(
        oracle,
        [
            f"ALTER SESSION SET CONTAINER = {ROOT}",
            f'CREATE USER {USER} IDENTIFIED BY "poor" CONTAINER = ALL',
            f"GRANT CREATE SESSION TO {USER} CONTAINER = ALL",
            f"GRANT SET CONTAINER TO {USER} CONTAINER = ALL",
        ],
    )
    return oracle.config(path, "T", "U", oracle=oracle.login(USER, "poor"))


def missing(config: SourceConfig) -> set[str]:
    return {one.problem for one in oracle_findings(config)[0] if one.is_problem}


def test_what_is_missing_comes_with_the_script_and_goes_with_its_undo(
    oracle: Oracle, tmp_path: Path
) -> None:
    config = poor(oracle, tmp_path)
    before = missing(config)
    assert before
    scripts: list[str] = []
    while statements(text := missing_sql(config)):
        assert len(scripts) < 6, "each round gives more rights"
        assert text not in scripts
        scripts.append(text)
        run_as_admin(oracle, statements(text))
    assert missing(config) == set()
    given = "\n".join(scripts)
    assert f"GRANT SELECT ON SYS.V_$DATABASE TO {USER} CONTAINER = ALL;" in given
    assert (
        f"ALTER TABLE {TableId(OWNER, 'T').sql} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;" in given
    )
    assert "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA;" in given
    assert "ARCHIVELOG;" not in given, "the database is in that mode"
    assert "DBA_OBJECTS" not in given, "no table has partitions"
    granted = [one for text in scripts for one in statements(text) if "GRANT" in one]
    assert len(granted) == len(set(granted)), "nothing twice"

    for text in reversed(scripts):
        run_as_admin(oracle, statements(text, "--undo "))
    assert missing(config) == before


@pytest.mark.parametrize("platform", SITES)
def test_a_right_is_given_as_the_platform_wants_it(platform: Platform) -> None:
    user = USER if platform == "cdb" else "REDOLAKE"
    [found] = statements_of(GRANT.format(user), SITES[platform])
    expected = {
        "cdb": f"GRANT SELECT ON SYS.V_$LOG TO {USER} CONTAINER = ALL;",
        "rds": "BEGIN rdsadmin.rdsadmin_util.grant_sys_object('V_$LOG', 'REDOLAKE', 'SELECT'); END;\n/",
    }
    assert found.run == expected.get(platform, "GRANT SELECT ON SYS.V_$LOG TO REDOLAKE;")
    assert found.container == (ROOT if platform == "cdb" else "")
    assert "revoke" in found.undo.lower()


@pytest.mark.parametrize("platform", SITES)
def test_settings_of_the_database_are_left_out_where_the_root_is_out_of_reach(
    platform: Platform,
) -> None:
    site = SITES[platform]
    logging = [one.run for one in statements_of(LOGGING, site)]
    archive = [one.run for one in statements_of(ARCHIVELOG, site)]
    assert bool(logging) is (platform in {"non-cdb", "cdb", "rds"})
    assert bool(archive) is (platform in {"non-cdb", "cdb"}), "RDS: by automated backups"
    if platform == "rds":
        assert "alter_supplemental_logging('ADD')" in logging[0]
    text = dba_script("src", [(site, [Finding("no log data", LOGGING)])])
    assert ("-- * no log data: " in text) is not bool(logging), "told in words then"


@pytest.mark.parametrize(
    ("remedy", "run", "undo"),
    [
        (
            "ALTER TABLE HR.EMP ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
            "ALTER TABLE HR.EMP ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;",
            "ALTER TABLE HR.EMP DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS;",
        ),
        (
            'GRANT FLASHBACK ON HR."Odd name" TO C##R',
            'GRANT FLASHBACK ON HR."Odd name" TO C##R;',
            'REVOKE FLASHBACK ON HR."Odd name" FROM C##R;',
        ),
        (
            "ALTER DATABASE FORCE LOGGING, or ALTER TABLESPACE … FORCE LOGGING",
            "ALTER DATABASE FORCE LOGGING;",
            "ALTER DATABASE NO FORCE LOGGING;",
        ),
        (
            "GRANT SET CONTAINER TO C##R CONTAINER = ALL (to a common user, C##…); where the root",
            "GRANT SET CONTAINER TO C##R CONTAINER = ALL;",
            "REVOKE SET CONTAINER FROM C##R CONTAINER = ALL;",
        ),
        (
            "ALTER USER C##R SET CONTAINER_DATA = ALL CONTAINER = CURRENT, in CDB$ROOT",
            "ALTER USER C##R SET CONTAINER_DATA = ALL CONTAINER = CURRENT;",
            "ALTER USER C##R SET CONTAINER_DATA = DEFAULT CONTAINER = CURRENT;",
        ),
        (
            "GRANT SELECT, FLASHBACK ON SYS.DBA_OBJECTS TO C##R",
            "GRANT SELECT, FLASHBACK ON SYS.DBA_OBJECTS TO C##R;",
            "REVOKE SELECT, FLASHBACK ON SYS.DBA_OBJECTS FROM C##R;",
        ),
    ],
)
def test_each_statement_has_what_takes_it_back(remedy: str, run: str, undo: str) -> None:
    [found] = statements_of(remedy, SITES["cdb"])
    assert (found.run, found.undo) == (run, undo)


@pytest.mark.parametrize(
    "remedy",
    [
        "Rename the table or the columns, or leave the table out",
        "Run deploy/oracle/build_dictionary.sql as a database administrator",
        "DELETE FROM A.B; INSERT INTO A.B (LAST_SCN) VALUES (0); COMMIT",
        "",
    ],
)
def test_words_and_statements_that_change_rows_are_not_run(remedy: str) -> None:
    assert list(statements_of(remedy, SITES["cdb"])) == []


def test_what_is_only_recommended_is_a_comment() -> None:
    finding = Finding("loads", "ALTER DATABASE FORCE LOGGING", is_problem=False)
    text = dba_script("src", [(SITES["non-cdb"], [finding, Finding("w", "Rename it.")])])
    assert statements(text) == []
    assert statements(text, "--optional ") == ["ALTER DATABASE FORCE LOGGING"]
    assert statements(text, "--undo-optional ") == ["ALTER DATABASE NO FORCE LOGGING"]
    assert "-- * w: Rename it." in text


def test_parts_of_one_container_database_ask_the_root_once() -> None:
    found = [
        (
            Site("cdb", pdb),
            [Finding("a", GRANT.format(USER)), Finding("b", f"GRANT SELECT ON A.T TO {USER}")],
        )
        for pdb in ("ONE", "TWO")
    ]
    text = dba_script("src", found)
    assert statements(text) == [
        f"ALTER SESSION SET CONTAINER = {ROOT}",
        f"GRANT SELECT ON SYS.V_$LOG TO {USER} CONTAINER = ALL",
        "ALTER SESSION SET CONTAINER = ONE",
        f"GRANT SELECT ON A.T TO {USER}",
        "ALTER SESSION SET CONTAINER = TWO",
        f"GRANT SELECT ON A.T TO {USER}",
    ]
    assert re.findall(r"--undo .*CONTAINER = (\S+);", text) == ["TWO", "ONE", ROOT, "ALL"]


@pytest.mark.parametrize(
    ("service", "amazon", "cdb", "logs", "platform"),
    [
        ("OLTP", 0, "ORCLCDB", "scn_range", "autonomous"),
        (None, 1, "ORCLCDB", "scn_range", "rds"),
        (None, 1, None, "files", "rds"),
        (None, 0, "ORCLCDB", "scn_range", "pdb"),
        (None, 0, "ORCLCDB", "files", "cdb"),
        (None, 0, None, "files", "non-cdb"),
    ],
)
def test_a_platform_is_known_by_what_it_says(
    service: str | None, amazon: int, cdb: str | None, logs: LogsBy, platform: Platform
) -> None:
    session = FakeSession(
        {
            "CLOUD_SERVICE": [(service,)],
            "RDSADMIN": [(amazon,)],
            "CDB_NAME": [(cdb, "ORCLPDB1")],
        }
    )
    assert read_site(session, logs) == Site(platform, "ORCLPDB1")  # type: ignore[arg-type]
