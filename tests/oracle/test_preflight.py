"""What preflight finds, with a prepared database."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.config import SourceConfig, TableConfig
from cdc_core.errors import (
    OracleError,
    OracleUnavailableError,
    PreflightError,
    SchemaMismatchError,
)
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.preflight.tables import check_tables
from tests.oracle.fake_session import FakeSession
from tests.oracle.findings import findings_of

READY = ("PRIMARY", "READ WRITE", "ARCHIVELOG", "YES", "NO", "YES")
"""What V$DATABASE says of a database that can be captured."""
NO_VIEW = PreflightError("no", ora="ORA-00942")
NO_LOGMINER = OracleError("no LogMiner session", ora="ORA-01307")
NOT_STARTED = OracleError("LogMiner is not started", ora="ORA-01306")


def config(*tables: str) -> SourceConfig:
    return SourceConfig.model_validate(
        {
            "name": "src",
            "oracle": {"dsn": "x", "user": "u", "password": "p"},
            "tables": [{"name": name} for name in tables or ("HR.EMP",)],
            "landing": {"type": "local", "path": "/nowhere"},
            "lake": {"path": "/nowhere"},
            "state": {"url": "sqlite:///x"},
        }
    )


def column(name: str, kind: str = "NUMBER", nullable: str = "N") -> tuple[Any, ...]:
    return ("HR", "EMP", name, kind, 22, 0, 10, 0, nullable, None, "NO", "NO", 1)


def session_with(**more: Any) -> FakeSession:
    answers: dict[str, Any] = {
        "LOG_MODE": [READY],
        "ARCHIVE_DEST_STATUS": [],
        "MIN(FIRST_TIME)": [(70,)],
        "FROM V$LOG L": [(1, 5, "/redo5", 80, None, 1000, "CURRENT")],
        "MAX(A.SEQUENCE#)": [],
        "A.BLOCKS": [],
        "V$THREAD T": [(1, "OPEN", "PUBLIC", 1, 0, 0, 99, 1, 100)],
        "STATUS FROM V$LOGMNR_LOGS": [(0,)],
        "OBJECT_TYPE FROM ALL_OBJECTS": [("TABLE",)],
        "ALL_LOG_GROUPS": [("HR", "EMP")],
        "ALL_TAB_COLS": [column("ID")],
        "FROM ALL_TABLES WHERE (": [("HR", "EMP")],
        "C.VALIDATED": [],
        "ALL_CONSTRAINTS": [("HR", "EMP", "ID", "NOT DEFERRABLE")],
        "NESTED = 'YES'": [],
        "ALL_ALL_TABLES": [],
        "ALL_QUEUE_TABLES": [],
        "ALL_XML_TABLES": [],
        "ALL_EXTERNAL_TABLES": [],
        "TEMPORARY = 'Y'": [],
        "ALL_POLICIES": [],
        "REDACTION_POLICIES": [],
        "SESSION_PRIVS": [],
        "ALL_INDEXES": [],
        "ALL_OBJECTS": [("HR", "EMP", 5)],
        "FROM V$PARAMETER": [("900",)],
        "CURRENT_SCN": [(100,)],
        "ROWNUM = 0": [],
        "UTL_RAW": [(b"\x80",)],
        "NLS_CHARACTERSET": [
            ("NLS_CHARACTERSET", "WE8MSWIN1252"),
            ("NLS_NCHAR_CHARACTERSET", "AL16UTF16"),
        ],
    }
    blocks = more.pop("blocks", {"END_LOGMNR": NO_LOGMINER})
    session = FakeSession(
        {
            "LENGTHB": [],
            "COLLATION": more.pop("COLLATION", []),
            "PARTITIONED": more.pop("PARTITIONED", []),
            "'VECTOR'": more.pop("'VECTOR'", []),
            "ALL_NESTED_TABLES": more.pop("ALL_NESTED_TABLES", []),
            **more,
            **{k: v for k, v in answers.items() if k not in more},
        },
        blocks=blocks,
    )

    def contents(_binds: Any) -> list[tuple[Any, ...]]:
        if not any("START_LOGMNR" in sql for sql, _ in session.sent):
            raise NOT_STARTED
        return [(1,)]

    session.answers.setdefault("V$LOGMNR_CONTENTS", contents)
    return session


def problems(session: FakeSession, *tables: str) -> list[Finding]:
    found = findings_of(session, config(*tables))
    return [finding for finding in found if finding.is_problem]


def test_a_database_that_is_ready_has_no_problems_and_tells_how_long_redo_and_undo_are_kept() -> (
    None
):
    session = session_with()
    redo, undo = findings_of(session, config())
    assert not redo.is_problem
    assert "back 70 hours" in redo.problem
    assert not undo.is_problem
    assert "900 seconds" in undo.problem
    [(_, started)] = [one for one in session.sent if "START_LOGMNR" in one[0]]
    assert started == {"log0": "/redo5", "scn_low": 80, "scn_high": 98}, (
        "a real pass over the newest log"
    )


def test_a_database_that_does_not_force_logging_is_told_and_may_be_captured() -> None:
    found = findings_of(session_with(LOG_MODE=[(*READY[:5], "NO")]), config())
    [notice] = [one for one in found if "FORCE LOGGING" in one.problem]
    assert not notice.is_problem
    assert "FORCE LOGGING" in notice.remedy


@pytest.mark.parametrize(
    ("change", "problem", "remedy"),
    [
        pytest.param(
            {"LOG_MODE": [("PRIMARY", "READ WRITE", "NOARCHIVELOG", "YES", "NO", "YES")]},
            "ARCHIVELOG", "ALTER DATABASE ARCHIVELOG", id="noarchivelog",
        ),
        pytest.param(
            {"LOG_MODE": [("PRIMARY", "READ WRITE", "ARCHIVELOG", "NO", "NO", "YES")]},
            "no supplemental logging", "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", id="minimal-logging",
        ),
        pytest.param(
            {"LOG_MODE": [("PHYSICAL STANDBY", "READ ONLY WITH APPLY", "ARCHIVELOG", "YES", "NO", "YES")]},
            "role PHYSICAL STANDBY, open mode READ ONLY WITH APPLY", "primary database in oracle.dsn", id="standby",
        ),
        pytest.param(
            {"LOG_MODE": [("PRIMARY", "MOUNTED", "ARCHIVELOG", "YES", "NO", "YES")]},
            "open mode MOUNTED", "ALTER DATABASE OPEN", id="mounted",
        ),
        pytest.param(
            {"blocks": {"START_LOGMNR": OracleUnavailableError("closed", hint="OPEN it", ora="ORA-16331")}},
            "cannot read the newest redo: closed", "OPEN it", id="container-not-open",
        ),
        pytest.param(
            {"A.BLOCKS": [], "FROM V$LOG L": [(1, 6, "/redo6", 99, None, 1000, "CURRENT")]},
            "cannot read the newest redo", "Restore", id="redo-not-there",
        ),
        pytest.param(
            {"ALL_LOG_GROUPS": []}, "all columns",
            'ALTER TABLE "HR"."EMP" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS', id="table-logging",
        ),
        pytest.param(
            {
                "ALL_TAB_COLS": [("HR", "EMP", "ID", "NUMBER", 22, 0, None, None, "N", None, "NO", "NO", 1)],
                "UTL_RAW": SchemaMismatchError("invalid identifier", hint="", ora="ORA-00904"),
            },
            "may not run UTL_RAW", "GRANT EXECUTE ON SYS.UTL_RAW TO CAPTURE", id="utl-raw",
        ),
        pytest.param(
            {"FROM V$LOG ": NO_VIEW}, "may not read V$LOG", "GRANT SELECT ON SYS.V_$LOG TO CAPTURE",
            id="view-not-granted",
        ),
        pytest.param(
            {"blocks": {"END_LOGMNR": PreflightError("no", ora="ORA-06550")}},
            "LogMiner", "GRANT LOGMINING TO CAPTURE", id="logminer-not-granted",
        ),
        pytest.param(
            {"ALL_CONSTRAINTS": []}, "no primary key", "identity: rowid", id="no-key"
        ),
        pytest.param(
            {"ALL_TAB_COLS": [column("ID"), column("first name"), column("id", "DATE", "Y")]},
            "names that a Delta table cannot have", "columns_exclude", id="names-of-columns",
        ),
        pytest.param(
            {"ALL_TAB_COLS": [column("ID"), column("X", "BFILE", "Y")]},
            "X BFILE", "columns_exclude", id="unsupported-type",
        ),
        pytest.param(
            {"ALL_TAB_COLS": [], "FROM ALL_TABLES WHERE OWNER": [("HR", "EMPLOYEES")]},
            "no such table", "Did you mean HR.EMPLOYEES?", id="unknown-table",
        ),
        pytest.param(
            {"ALL_TAB_COLS": [], "FROM ALL_TABLES WHERE OWNER": [("HR", "EMPLOYEES"), ("HR", "EMP")]},
            "no such table", 'If it exists: GRANT SELECT, FLASHBACK ON "HR"."EMP" TO CAPTURE',
            id="table-that-is-there-but-not-granted",
        ),
        pytest.param(
            {"ALL_CONSTRAINTS": [], "OBJECT_TYPE FROM ALL_OBJECTS": [("VIEW",)]},
            "HR.EMP is a view", "Capture the tables that it reads", id="view",
        ),
        pytest.param(
            {"LENGTHB": [("HR", "EMP", "L" * 31)]},
            "longer than 30", "leave the table out", id="long-names",
        ),
        pytest.param(
            {'FROM "HR"."EMP" WHERE': NO_VIEW}, "lacks SELECT", 'GRANT SELECT ON "HR"."EMP" TO CAPTURE',
            id="table-not-granted",
        ),
        pytest.param(
            {"AS OF SCN :scn WHERE ROWNUM": PreflightError("no", ora="ORA-01031")},
            "lacks FLASHBACK", 'GRANT FLASHBACK ON "HR"."EMP" TO CAPTURE', id="flashback-not-granted",
        ),
        pytest.param(
            {"TEMPORARY = 'Y'": [("HR", "EMP")]}, "temporary table", "Leave it out", id="temporary-table"
        ),
        pytest.param(
            {"ALL_POLICIES": [("HR", "EMP", "REGIONS")]},
            "row-level security (REGIONS)", "GRANT EXEMPT ACCESS POLICY TO CAPTURE", id="row-level-security",
        ),
        pytest.param(
            {"REDACTION_POLICIES": [("HR", "EMP", "CARDS")]},
            "Data Redaction (CARDS)", "GRANT EXEMPT REDACTION POLICY TO CAPTURE", id="redaction",
        ),
        pytest.param(
            {"C.VALIDATED": [("HR", "EMP", "EMP_PK", "ENABLED", "NOT VALIDATED", "NOT DEFERRABLE")]},
            "not validated", 'MODIFY CONSTRAINT "EMP_PK" ENABLE VALIDATE', id="key-not-validated",
        ),
    ],
)  # fmt: skip
def test_each_problem_comes_with_what_mends_it(
    change: dict[str, Any], problem: str, remedy: str
) -> None:
    [finding] = problems(session_with(**change))
    assert problem in finding.problem
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"REDACTION_POLICIES": NO_VIEW}, "may not see", id="redaction-cannot-be-seen"),
        pytest.param(
            {"ARCHIVE_DEST_STATUS": [("LOG_ARCHIVE_DEST_2", "ERROR")]},
            "LOG_ARCHIVE_DEST_2 has the status ERROR",
            id="archive-destination",
        ),
        pytest.param(
            {"'VECTOR'": [("HR", "EMP", "DOC", "JSON")]}, "DOC of type JSON", id="untranslated-type"
        ),
        pytest.param(
            {"ALL_NESTED_TABLES": [("HR", "EMP", "TAGS", "TAGS_T")]},
            "TAGS of type TAGS_T",
            id="nested-table",
        ),
        pytest.param(
            {"PARTITIONED": [("HR", "EMP")], "FROM DBA_OBJECTS": NO_VIEW},
            "may not read DBA_OBJECTS",
            id="segments-of-which-one-may-not-see-whose-they-are",
        ),
        pytest.param(
            {"ARCHIVE_DEST_STATUS": NO_VIEW},
            "reach back 70 hours",
            id="archive-destinations-cannot-be-seen",
        ),
        pytest.param(
            {"C.VALIDATED": [("HR", "EMP", "P", "ENABLED", "VALIDATED", "DEFERRABLE")]},
            "deferrable",
            id="deferrable-key",
        ),
        pytest.param(
            {"C.VALIDATED": [("HR", "EMP", "P", "DISABLED", "NOT VALIDATED", "NOT DEFERRABLE")]},
            "disabled",
            id="disabled-key-beside-a-unique-index",
        ),
    ],
)
def test_what_only_needs_to_be_known_is_no_problem(change: dict[str, Any], words: str) -> None:
    found = findings_of(session_with(**change), config())
    assert [one.is_problem for one in found if words in one.problem] == [False]
    assert not [one for one in found if one.is_problem]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"ALL_EXTERNAL_TABLES": [("HR", "EMP")]}, "an external table", id="external"),
        pytest.param(
            {"NESTED = 'YES'": [("HR", "EMP", "N", "YES", "N", None)]},
            "a nested table",
            id="nested",
        ),
        pytest.param(
            {"NESTED = 'YES'": [("HR", "EMP", "N", "NO", "Y", None)]}, "an index", id="secondary"
        ),
        pytest.param(
            {"NESTED = 'YES'": [("HR", "EMP", "N", "NO", "N", "IOT_OVERFLOW")]},
            "the overflow",
            id="overflow",
        ),
    ],
)
def test_a_table_of_a_kind_without_redo_of_its_own_is_refused_by_that_and_not_for_its_key(
    change: dict[str, Any], reason: str
) -> None:
    """By itself; the embedded Oracle shows all of them but what belongs to an index (tests/steps/test_kinds_of_tables.py)."""
    session: Any = session_with(**change, ALL_CONSTRAINTS=[], ALL_INDEXES=[])
    found = check_tables(session, [TableConfig(name="HR.EMP")])
    own = [one for one in found if one.table == TableId("HR", "EMP")]
    assert [one.is_problem for one in own] == [True]
    assert reason in own[0].problem
    assert "Leave it out" in own[0].remedy


def test_a_table_in_a_cluster_is_not_known_by_rowids() -> None:
    """Those of another table may equal them, and an UPDATE of the cluster key moves rows."""
    answers: dict[str, Any] = {
        "CLUSTER_NAME IS NOT NULL": [("HR", "EMP", "BY_DEPT")],
        "IOT_TYPE IS NOT NULL": [],
    }
    for identity, refused in (("rowid", True), ("key", False)):
        table = TableConfig(name="HR.EMP", identity=identity)
        session: Any = session_with(**answers)
        found = check_tables(session, [table])
        said = [one.problem for one in found if one.is_problem]
        assert [("BY_DEPT" in one, "in a cluster" in one) for one in said] == [
            (True, True)
        ] * refused


def test_an_exempt_user_sees_the_rows_that_the_redo_has() -> None:
    session = session_with(
        **{
            "SESSION_PRIVS": [("EXEMPT ACCESS POLICY",), ("EXEMPT REDACTION POLICY",)],
            "ALL_POLICIES": [("HR", "EMP", "REGIONS")],
            "REDACTION_POLICIES": [("HR", "EMP", "CARDS")],
        }
    )
    assert problems(session) == []


@pytest.mark.parametrize(
    ("held", "missing"),
    [
        ("EXEMPT ACCESS POLICY", "EXEMPT REDACTION POLICY"),
        ("EXEMPT REDACTION POLICY", "EXEMPT ACCESS POLICY"),
    ],
)
def test_a_user_who_passes_one_kind_of_policy_is_not_exempt_from_the_other(
    held: str, missing: str
) -> None:
    session = session_with(
        **{
            "SESSION_PRIVS": [(held,)],
            "ALL_POLICIES": [("HR", "EMP", "REGIONS")],
            "REDACTION_POLICIES": [("HR", "EMP", "CARDS")],
        }
    )
    assert [one.remedy for one in problems(session)] == [f"GRANT {missing} TO CAPTURE"]


def test_all_problems_come_at_once() -> None:
    found = problems(
        session_with(**{
            "LOG_MODE": [("PRIMARY", "READ WRITE", "NOARCHIVELOG", "NO", "NO", "YES")],
            "ALL_LOG_GROUPS": [],
            "ALL_CONSTRAINTS": [],
            "V$ARCHIVED_LOG": NO_VIEW,
        })
    )  # fmt: skip
    assert len(found) == 5


def test_logging_of_all_columns_of_the_database_covers_its_tables() -> None:
    change = {
        "LOG_MODE": [("PRIMARY", "READ WRITE", "ARCHIVELOG", "IMPLICIT", "YES", "YES")],
        "ALL_LOG_GROUPS": [],
    }
    assert problems(session_with(**change)) == []


def test_a_database_that_is_lost_is_no_finding() -> None:
    with pytest.raises(OracleUnavailableError):
        problems(session_with(LOG_MODE=OracleUnavailableError("lost")))


def test_a_session_that_is_lost_while_logminer_is_tried_is_no_finding() -> None:
    lost = OracleUnavailableError("lost", ora="ORA-03113")
    with pytest.raises(OracleUnavailableError):
        problems(session_with(blocks={"START_LOGMNR": lost}))


def test_an_excluded_column_may_not_have_a_long_name() -> None:
    """LogMiner shows no row of such a table, whatever is captured of it."""
    session = session_with(LENGTHB=[("HR", "EMP", "L" * 31)])
    [table] = config().tables
    excluded = config().model_copy(
        update={"tables": (table.model_copy(update={"columns_exclude": ("L" * 31,)}),)}
    )
    [found] = [one for one in findings_of(session, excluded) if "longer" in one.problem]
    assert found.is_problem
    assert "columns_exclude" not in found.remedy


def test_a_character_set_whose_bytes_cannot_be_read_is_a_problem() -> None:
    sets = [("NLS_CHARACTERSET", "WE8EBCDIC37"), ("NLS_NCHAR_CHARACTERSET", "AL16UTF16")]
    [found] = problems(session_with(NLS_CHARACTERSET=sets))
    assert "WE8EBCDIC37" in found.problem
    assert found.remedy


def test_national_columns_in_utf8_are_a_problem_unless_they_are_left_out() -> None:
    sets = [("NLS_CHARACTERSET", "AL32UTF8"), ("NLS_NCHAR_CHARACTERSET", "UTF8")]
    more = {"NLS_CHARACTERSET": sets, "NVARCHAR2": [("HR", "EMP", "N")]}
    [found] = problems(session_with(**more))
    assert "UTF8 of N" in found.problem
    assert str(found.table) == "HR.EMP"
    without = config()
    [table] = without.tables
    columns = [column("ID"), column("N", "NVARCHAR2")]
    left = without.model_copy(
        update={"tables": (table.model_copy(update={"columns_exclude": ("N",)}),)}
    )
    assert not [
        one
        for one in findings_of(session_with(**more, ALL_TAB_COLS=columns), left)
        if one.is_problem
    ]


def test_a_key_by_a_collation_of_its_own_is_a_problem() -> None:
    """Elsewhere such a column is one like any other; before 12.2 there is none."""
    [found] = problems(
        session_with(
            COLLATION=[("HR", "EMP", "ID", "BINARY_CI"), ("HR", "EMP", "NAME", "GERMAN_AI")]
        )
    )
    assert "ID has the collation BINARY_CI" in found.problem
    assert "identity: rowid" in found.remedy
    older = SchemaMismatchError("no such column", ora="ORA-00904")
    assert not problems(session_with(COLLATION=older))
    with pytest.raises(OracleError):
        problems(session_with(COLLATION=OracleError("no", ora="ORA-00600")))
