"""Windows through the driver: whole transactions, proved logs, and nothing but reading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc_core.capture.logs.coverage import read_logs
from cdc_core.capture.logs.positions import upper_bound
from cdc_core.capture.logs.windows import cut_windows
from cdc_core.errors import (
    ConfigError,
    OracleUnavailableError,
    PreflightError,
    RedoUnavailableError,
)
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import connect
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.snapshot.cutting import plan_chunks
from cdc_core.snapshot.read import FetchOptions, read_chunk, unread_chunk
from oracle_embedded.database import ADMIN, CAPTURE, OWNER
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.capture.source import Source
from tests.oracle.backends import BACKENDS, Database, open_backend
from tests.oracle.embedded import Oracle, running_oracle, script, wait_until
from tests.oracle.findings import findings_of
from tests.oracle.fixtures import oracle_with

EMP = TableId("DEMO", "EMP")
BIND = "ALTER SYSTEM SWITCH LOGFILE"
"""Redo of open transactions waits in their strands until a switch binds it."""


TABLES = (
    "CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY, NAME VARCHAR2(40))",
    "CREATE TABLE OTHER (ID NUMBER(10) PRIMARY KEY)",
    "INSERT INTO EMP VALUES (1, 'before')",
)


@pytest.fixture(params=BACKENDS)
def oracle(request: pytest.FixtureRequest) -> Iterator[Database]:
    with open_backend(request.param) as oracle:
        oracle.run(*TABLES)
        yield oracle


embedded = oracle_with(
    *TABLES,
)
"""For what cannot be asked of a real database: faults, lost logs, its administrator's mistakes."""


def test_a_transaction_over_three_windows_is_whole_in_that_of_its_commit(
    oracle: Database, tmp_path: Path
) -> None:
    long = oracle.owner()
    long.cursor().execute("INSERT INTO EMP VALUES (100, 'before the snapshot')")
    source = Source.begin(oracle, tmp_path)
    assert source.start.mining_low < source.start.snapshot_scn

    long.cursor().execute("UPDATE EMP SET NAME = 'in the first window' WHERE ID = 100")
    oracle.run("INSERT INTO EMP VALUES (2, 'short')")
    oracle.run(BIND, user=ADMIN)
    first = source.window()
    assert (first.transactions_committed, first.transactions_open) == (1, 1)

    long.cursor().execute("INSERT INTO EMP VALUES (101, 'in the second window')")
    oracle.run(BIND, user=ADMIN)
    second = source.window()
    assert (second.rows_by_table, second.tables_committed) == ({"DEMO.EMP": 1}, ())

    long.commit()
    third = source.window()
    assert third.tables_committed == ("DEMO.EMP",)
    [ended] = source.transactions(third)
    assert (ended["state"], ended["rows"], ended["first_ordinal"] >> 40) == ("commit", 3, 0)
    assert third.window.scn_low < ended["commit_scn"] <= third.window.scn_high
    own = [row for one in (first, second) for row in source.rows(one) if row["xid"] == ended["xid"]]
    assert [row["operation_code"] for row in own] == [1, 3, 1]
    ordinals = [row["ordinal"] for one in (first, second) for row in source.rows(one)]
    assert ordinals == sorted(set(ordinals))
    assert source.store.ledger.open_transactions() == []


def test_rollbacks_and_savepoints_are_told_apart(oracle: Database, tmp_path: Path) -> None:
    source = Source.begin(oracle, tmp_path)
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO EMP VALUES (10, 'undone')")
        connection.rollback()
        cursor.execute("INSERT INTO EMP VALUES (11, 'kept')")
        cursor.execute("SAVEPOINT S")
        cursor.execute("INSERT INTO EMP VALUES (12, 'undone')")
        cursor.execute("ROLLBACK TO SAVEPOINT S")
        connection.commit()
    manifest = source.window()
    assert (manifest.transactions_committed, manifest.transactions_rolled_back) == (1, 1)
    states = {one["state"]: one for one in source.transactions(manifest)}
    assert states["commit"]["has_rollback"]
    kept = [row for row in source.rows(manifest) if row["xid"] == states["commit"]["xid"]]
    assert [row["rollback"] for row in kept] == [False, False, True]


def test_other_tables_do_not_land_and_idle_windows_are_empty(
    oracle: Database, tmp_path: Path
) -> None:
    source = Source.begin(oracle, tmp_path)
    oracle.run("INSERT INTO OTHER VALUES (1)")
    manifest = source.window()
    assert (manifest.rows_by_table, manifest.redo_files, manifest.tables_committed) == ({}, (), ())
    idle = source.window()
    assert idle.window.scn_low == manifest.window.scn_high


def test_log_switches_within_a_window_lose_nothing(oracle: Database, tmp_path: Path) -> None:
    source = Source.begin(oracle, tmp_path)
    with oracle.owner() as connection:
        for number in range(5):
            connection.cursor().execute(f"INSERT INTO EMP VALUES ({200 + number}, 'x')")
            connection.commit()
            oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        connection.cursor().execute("INSERT INTO EMP VALUES (299, 'x')")
        connection.commit()
    logs = read_logs(source.session, source.start.mining_low)
    high = wait_until(current_scn(source.session), lambda: upper_bound(source.session, "online"))
    assert len(cut_windows(source.start.snapshot_scn, Scn(high), logs, 1)) >= 5
    manifest = source.window()
    assert manifest.rows_by_table == {"DEMO.EMP": 6}
    assert len(manifest.logs) >= 6


def test_a_deleted_log_stops_the_window(embedded: Oracle, tmp_path: Path) -> None:
    source = Source.begin(embedded, tmp_path)
    embedded.run("INSERT INTO EMP VALUES (300, 'x')")
    for _ in range(5):
        embedded.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    needed = [
        log for log in read_logs(source.session, source.start.mining_low) if log.state == "archived"
    ]
    embedded.database.redo.delete_archived_log(min(log.sequence for log in needed))
    with pytest.raises(RedoUnavailableError, match="deleted"):
        source.window()


def test_logs_that_are_not_archived_yet_are_read_online(embedded: Oracle, tmp_path: Path) -> None:
    source = Source.begin(embedded, tmp_path)
    embedded.database.redo.hold_archiver(held=True)
    embedded.run("INSERT INTO EMP VALUES (310, 'x')")
    embedded.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    embedded.run("INSERT INTO EMP VALUES (311, 'x')")
    assert source.window().rows_by_table == {"DEMO.EMP": 2}


def test_a_database_opened_with_resetlogs_stops_the_window(
    embedded: Oracle, tmp_path: Path
) -> None:
    source = Source.begin(embedded, tmp_path)
    source.window()
    embedded.database.redo.open_resetlogs()
    embedded.run("INSERT INTO EMP VALUES (320, 'x')")
    with pytest.raises(RedoUnavailableError, match="RESETLOGS"):
        source.window()


def test_columns_that_come_go_and_get_names_are_followed(oracle: Database, tmp_path: Path) -> None:
    source = Source.begin(oracle, tmp_path)
    oracle.run("INSERT INTO EMP VALUES (400, 'old form')")
    oracle.run("ALTER TABLE EMP ADD (NOTE VARCHAR2(20) DEFAULT 'n')")
    oracle.run("INSERT INTO EMP VALUES (401, 'new form', 'note')")
    oracle.run("CREATE INDEX EMP_NAME ON EMP (NAME)")
    oracle.run("COMMENT ON TABLE EMP IS 'x'")
    manifest = source.window()
    [change] = manifest.schema_changes
    assert change.schema.column("NOTE").default == "'n'"
    assert manifest.schemas == (change.schema,)
    assert source.store.schemas.at(EMP, Scn(change.scn)) == change.schema
    before, after = (row for row in source.rows(manifest) if row["operation_code"] == 1)
    assert before["scn"] < change.scn < after["scn"]

    oracle.run("ALTER TABLE EMP RENAME COLUMN NOTE TO BODY")
    oracle.run("ALTER TABLE EMP DROP COLUMN NAME")
    manifest = source.window()
    assert manifest.left == ()
    renamed, dropped = (change.schema for change in manifest.schema_changes)
    assert (renamed.stored_names["BODY"], renamed.dropped) == ("NOTE", ())
    assert (dropped.stored_names["BODY"], dropped.dropped) == ("NOTE", ("NAME",))
    assert manifest.schemas == (dropped,)
    assert manifest.schemas[0].dropped == ("NAME",)
    oracle.run("ALTER TABLE EMP ADD (NAME VARCHAR2(20))")
    manifest = source.window()
    [added] = (change.schema for change in manifest.schema_changes)
    assert manifest.left == ()
    assert added.stored_names["NAME"] == "NAME__2"


def test_truncation_ends_the_table_s_stream(oracle: Database, tmp_path: Path) -> None:
    source = Source.begin(oracle, tmp_path)
    oracle.run("TRUNCATE TABLE EMP")
    manifest = source.window()
    [end] = manifest.left
    assert "without redo" in end.reason
    assert manifest.window.scn_low < end.scn < manifest.window.scn_high


def test_long_statements_land_in_one_piece(oracle: Database, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE LONGER (ID NUMBER(10) PRIMARY KEY, A VARCHAR2(4000), B VARCHAR2(4000))"
    )
    source = Source.begin(oracle, tmp_path, "LONGER")
    with oracle.owner() as connection:
        rows = [(n, f"{n}" + "a" * 3900, "é" * 1900) for n in range(150)]
        connection.cursor().executemany("INSERT INTO LONGER VALUES (:1, :2, :3)", rows)
        connection.commit()
    manifest = source.window()
    landed = source.rows(manifest)
    assert len(landed) == 150
    assert all(row["sql_redo"].endswith("é');") and "a" * 3900 in row["sql_redo"] for row in landed)


def test_only_queries_session_settings_and_logminer_calls_are_sent(
    oracle: Database, tmp_path: Path
) -> None:
    source = Source.begin(oracle, tmp_path)
    findings_of(source.session, source.config)
    oracle.run("INSERT INTO EMP VALUES (500, 'x')")
    oracle.run("ALTER TABLE EMP ADD (NOTE VARCHAR2(20))")
    source.window()
    schema = read_table_schema(source.session, source.config.tables[0])
    scn = current_scn(source.session)
    for by in ("key", "rowid"):
        config = source.config.snapshot.model_copy(update={"cut": by, "chunk_rows": 1})
        for number, chunk in enumerate(plan_chunks(source.session, schema, scn=scn, config=config)):
            unread = unread_chunk("src", schema, ChunkKey(schema.table, by, number), chunk, scn)
            read_chunk(
                source.session, unread, chunk, source.landing, FetchOptions(rows=100), masks={}
            )
    assert len(oracle.sent) > 25
    strange = [sql for sql in oracle.sent if not _ALLOWED.fullmatch(sql) or _REFUSED.search(sql)]
    assert strange == []


_ALLOWED = re.compile(
    r"\s*SELECT\s[^;]*"
    r"|ALTER SESSION SET\s[^;]*"
    r"|BEGIN (?:EXECUTE IMMEDIATE 'ALTER SESSION SET\s[^;]*'; ){2}END;"
    r"|BEGIN (?:SYS\.DBMS_LOGMNR\.(?:ADD_LOGFILE|START_LOGMNR|END_LOGMNR)\([^;]*\); )+END;",
    re.DOTALL,
)
_REFUSED = re.compile(r"\bFOR\s+UPDATE\b|\bLOCK\s+TABLE\b", re.IGNORECASE | re.DOTALL)


# --- bad set-ups --------------------------------------------------------------------------------


def test_preflight_finds_everything_at_once(tmp_path: Path) -> None:
    with running_oracle(logging=False) as oracle:
        oracle.run("CREATE TABLE KEYLESS (ID NUMBER(10))", "CREATE TABLE FINE (ID NUMBER(10) PRIMARY KEY)")  # fmt: skip
        config = oracle.config(tmp_path, "KEYLESS", "FINE", "NOWHERE")
        with oracle.capture_session(config) as session:
            findings = findings_of(session, config)
        problems = [one for one in findings if one.is_problem]
        text = "\n".join(f"{one.problem}: {one.remedy}" for one in problems)
        assert "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA" in text
        assert 'ALTER TABLE "DEMO"."FINE" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS' in text
        assert "identity: rowid" in text
        assert "DEMO.NOWHERE" in text

        oracle.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)
        oracle.run("ALTER TABLE FINE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
        config = oracle.config(tmp_path, "FINE")
        with oracle.capture_session(config) as session:
            assert not [one for one in findings_of(session, config) if one.is_problem]


def test_containers_that_are_closed_are_told_and_stop_logminer(
    embedded: Oracle, tmp_path: Path
) -> None:
    """What stops LogMiner is told as a problem; what might, as information."""
    config = embedded.config(tmp_path, "EMP")

    def found() -> list[Finding]:
        with embedded.capture_session(config) as session:
            return [one for one in findings_of(session, config) if "open" in one.problem]

    assert found() == []
    embedded.run("BEGIN DBMS_REDOLAKE_FAULTS.CLOSE_CONTAINER('OTHER'); END;", user=ADMIN)
    closed, stopped = found()
    assert (closed.is_problem, stopped.is_problem) == (False, True)
    assert "OTHER is not open" in closed.problem
    assert "cannot read the newest redo" in stopped.problem
    assert "ALTER PLUGGABLE DATABASE" in stopped.remedy


def test_a_log_that_is_just_switched_is_no_finding(
    embedded: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=slept.append))
    config = embedded.config(tmp_path, "EMP")
    changed = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "START_LOGMNR", code=1368, times=2)
    embedded.database.faults.arm(changed)
    with embedded.capture_session(config) as session:
        assert [one for one in findings_of(session, config) if one.is_problem] == []
    assert slept == [1, 1]


def test_a_user_that_does_not_see_other_containers_is_told(
    embedded: Oracle, tmp_path: Path
) -> None:
    setup = [one for one in script("user_cdb.sql", **{"C##REDOLAKE": "C##BLIND"}) if "CONTAINER_DATA" not in one]  # fmt: skip
    embedded.run(*setup, "GRANT SELECT ANY TABLE, FLASHBACK ANY TABLE TO C##BLIND", user=ADMIN)
    login = {**embedded.login(CAPTURE), "user": "C##BLIND", "password": "&capture_password"}
    config = embedded.config(tmp_path, "EMP", oracle=login)
    with connect(config.oracle) as session:
        findings = findings_of(session, config)
    assert [one for one in findings if one.is_problem] == []
    assert any("SET CONTAINER_DATA = ALL" in one.remedy for one in findings)


def test_a_standby_is_refused(embedded: Oracle, tmp_path: Path) -> None:
    role = "BEGIN DBMS_REDOLAKE_FAULTS.SHOW_ROLE('PHYSICAL STANDBY', 'READ ONLY WITH APPLY'); END;"
    embedded.run(role, user=ADMIN)
    config = embedded.config(tmp_path, "EMP")
    with embedded.capture_session(config) as session:
        [problem] = [one for one in findings_of(session, config) if one.is_problem]
    assert "PHYSICAL STANDBY" in problem.problem


def test_a_user_without_grants_is_told_each_of_them(oracle: Database, tmp_path: Path) -> None:
    config = oracle.config(tmp_path, "EMP", oracle=oracle.login(OWNER))  # fmt: skip
    with connect(config.oracle) as session:
        problems = [one.remedy for one in findings_of(session, config) if one.is_problem]
    assert "GRANT SELECT ON SYS.V_$ARCHIVED_LOG TO DEMO" in problems
    assert any("GRANT LOGMINING" in remedy for remedy in problems)


def test_a_wrong_password_is_said_without_it(oracle: Database, tmp_path: Path) -> None:
    config = oracle.config(tmp_path, "EMP", oracle=oracle.login(OWNER, "nosecret"))  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        connect(config.oracle)
    assert "nosecret" not in str(caught.value)


def test_a_table_without_key_is_refused(oracle: Database, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE KEYLESS (ID NUMBER(10), V VARCHAR2(5))")
    with pytest.raises(PreflightError, match="identity: rowid"):
        Source.begin(oracle, tmp_path, "KEYLESS")


@pytest.mark.parametrize("kind", [FaultKind.LOST_CONNECTION, FaultKind.ORA_ERROR])
def test_a_window_that_fails_in_the_middle_can_be_captured_again(
    embedded: Oracle, tmp_path: Path, kind: FaultKind
) -> None:
    source = Source.begin(embedded, tmp_path)
    with embedded.owner() as connection:
        rows = [(1000 + n, "x") for n in range(1000)]
        connection.cursor().executemany("INSERT INTO EMP VALUES (:1, :2)", rows)
        connection.commit()
    fault = Fault(kind, sql_contains="V$LOGMNR_CONTENTS", nth=3, code=1291)
    embedded.server.faults.arm(fault)
    if kind is FaultKind.LOST_CONNECTION:
        with pytest.raises(OracleUnavailableError):
            source.window()
        source.session = embedded.capture_session(source.config)
        manifest = source.capture(source.store.windows.find()[0])
    else:
        manifest = source.window()
    assert manifest.rows_by_table == {"DEMO.EMP": 1000}
    assert manifest.transactions_committed == 1
