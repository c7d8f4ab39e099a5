"""LogMiner runs on a physical standby, everything else on the primary: the same changes land, and nothing above what the standby has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.capture.logs.standby import miner_of
from cdc_core.capture.passes.prefetch import prefetch
from cdc_core.capture.stream_ends.later_ddl import is_altered_soon_after
from cdc_core.config import LogMinerConfig
from cdc_core.errors import (
    ConfigError,
    LogsNotReadyError,
    OracleUnavailableError,
    PreflightError,
    RedoUnavailableError,
)
from cdc_core.model.findings import Finding
from cdc_core.model.scn import Scn
from cdc_core.steps.source_checks import oracle_findings
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import ADMIN, Oracle, StandbyOracle, running_oracle, standby_of
from tests.steps.harness import Source, source_of, table_id
from tests.steps.ways import (
    FILE,
    SWITCH,
    WINDOW,
    Step,
    build_in_file,
    changes,
    check_equal,
    play,
)

FROM_FILE = {"close_at": "completed_logs", "strategy": "dictionary_from_file", "dictionary_file": FILE}  # fmt: skip


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle(warts=DEFAULT_WARTS) as running:
        running.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            *(f"INSERT INTO T VALUES ({key}, 'first')" for key in range(1, 5)),
        )
        running.run(SWITCH, user=ADMIN)
        build_in_file(running)
        yield running


@pytest.fixture
def standby(oracle: Oracle) -> Iterator[StandbyOracle]:
    with standby_of(oracle) as running:
        yield running


def capture_on(standby: StandbyOracle, **more: Any) -> dict[str, Any]:
    return {**FROM_FILE, "standby_dsn": standby.server.dsn, **more}


@pytest.fixture
def source(oracle: Oracle, standby: StandbyOracle, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "T", capture=capture_on(standby)) as opened:
        opened.run()
        yield opened


def newest_scn(source: Source) -> int:
    with source.pipeline.database.session() as session:
        return int(session.fetch_all("SELECT CURRENT_SCN FROM V$DATABASE")[0][0])


STORY: list[Step] = [
    ("open", "INSERT INTO U VALUES (1, 'late')"),
    "INSERT INTO T VALUES (5, 'new')",
    ("a", "UPDATE T SET V = 'stays' WHERE ID = 2"),
    ("a", "SAVEPOINT S"),
    ("a", "UPDATE T SET V = 'goes' WHERE ID = 3"),
    WINDOW,
    ("a", "ROLLBACK TO S"),
    ("a", "COMMIT"),
    "ALTER TABLE T ADD (C NUMBER(5))",
    "INSERT INTO T VALUES (6, 'six', 6)",
    WINDOW,
    ("open", "COMMIT"),
    "UPDATE T SET C = 1, ID = ID + 10 WHERE ID < 3",
]


def test_the_same_changes_land_from_a_standby(
    oracle: Oracle, standby: StandbyOracle, tmp_path: Path
) -> None:
    """Open transactions, rollbacks and DDL, over several windows, beside a source that mines the primary."""
    ways = {
        "primary": {},
        "standby": capture_on(standby),
    }
    sources = {}
    for name, capture in ways.items():
        (tmp_path / name).mkdir()
        more = {"capture": {"close_at": "completed_logs", **capture}}
        sources[name] = Source.of(oracle, tmp_path / name, "T", "U", **more)
        sources[name].run()
    try:
        play(oracle, sources, STORY)
        check_equal(sources, "T", "U")
    finally:
        for one in sources.values():
            one.close()


def test_logminer_runs_on_the_standby_and_everything_else_on_the_primary(
    oracle: Oracle, standby: StandbyOracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The primary's archived logs are gone, so the standby's are what was read; its queries see nothing new."""
    standby.site.applied_scn = None
    oracle.run("INSERT INTO T VALUES (5, 'new')")
    for _ in range(4):
        oracle.run(SWITCH, user=ADMIN)
    for sequence in range(1, 6):
        oracle.database.redo.delete_archived_log(sequence)
    [window] = source.windows()
    manifest, _ = source.pipeline.window_manifest(window)
    assert {"/ORCL_STBY/archive/" in log.name for log in manifest.logs} == {True}
    source.check_current("T")


def test_windows_end_at_what_the_standby_has_applied(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    """Archived there or not: what is not applied may not be its history."""
    standby.site.applied_scn = newest_scn(source)
    source.windows()
    oracle.run("INSERT INTO T VALUES (5, 'behind')")
    oracle.run(SWITCH, user=ADMIN)
    source.windows()
    assert source.record("T").mirror_scn <= standby.site.applied_scn  # type: ignore[operator]
    half = newest_scn(source)
    oracle.run("INSERT INTO T VALUES (6, 'next')")
    oracle.run(SWITCH, user=ADMIN)
    standby.site.applied_scn = half
    [window] = source.windows()
    assert window.scn_high == half, "in the middle of an archived log"
    source.check_exact("T")
    standby.site.applied_scn = None
    source.windows()
    source.check_current("T")
    assert [change["after"]["ID"] for change in changes(source)[-2:]] == [5, 6]


def test_a_gap_on_the_standby_makes_windows_wait(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    oracle.run("INSERT INTO T VALUES (5, 'new')")
    missing = newest_log(oracle)
    oracle.run(SWITCH, user=ADMIN)
    oracle.run(SWITCH, user=ADMIN)
    standby.site.missing.add((1, missing))
    with pytest.raises(
        LogsNotReadyError, match=rf"not archived or not registered .*sequence={missing}"
    ):
        source.windows()
    standby.site.missing.clear()
    source.windows()
    source.check_current("T")


def test_a_log_that_was_deleted_on_the_standby_is_gone(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    oracle.run("INSERT INTO T VALUES (5, 'new')")
    sequence = newest_log(oracle)
    oracle.run(SWITCH, user=ADMIN)
    oracle.run(SWITCH, user=ADMIN)
    standby.site.deleted.add((1, sequence))
    with pytest.raises(RedoUnavailableError, match="deleted"):
        source.windows()


def test_the_logs_of_each_thread_are_proved_on_the_standby(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    """Which threads there are says the primary; each must have come."""
    oracle.open_threads(2)
    story: list[Step] = [
        ("b", "BEGIN DBMS_REDOLAKE_FAULTS.USE_THREAD(2); END;"),
        ("b", "INSERT INTO T VALUES (5, 'two')"),
        ("b", "COMMIT"),
    ]
    play(oracle, {}, story)
    play(oracle, {}, ["INSERT INTO T VALUES (6, 'one')", WINDOW])
    standby.site.missing.add((2, 2))
    with pytest.raises(LogsNotReadyError, match="thread=2, sequence=2"):
        source.windows()
    standby.site.missing.clear()
    source.windows()
    source.check_current("T")


def test_windows_are_read_early_on_the_standby_too(
    oracle: Oracle, standby: StandbyOracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session that reads ahead has one of its own there; the primary's logs are gone."""
    source.close()
    source.more["capture"] = capture_on(standby, window_redo_bytes_max=1, sessions=2)
    read = []

    def noted(*arguments: Any, **more: Any) -> Any:
        found = prefetch(*arguments, **more)
        read.append(found is not None)
        return found

    monkeypatch.setattr("cdc_core.capture.source.prefetch", noted)
    for key in range(5, 9):
        oracle.run(f"INSERT INTO T VALUES ({key}, 'new')")
        oracle.run(SWITCH, user=ADMIN)
    for sequence in range(1, 5):
        oracle.database.redo.delete_archived_log(sequence)
    assert len(source.windows()) >= 3
    source.check_current("T")
    assert True in read


def newest_log(oracle: Oracle) -> int:
    with oracle.database.engine.reading() as connection:
        [(sequence,)] = connection.execute("SELECT max(sequence) FROM redo_log").fetchall()
    return int(sequence)


def test_a_switchover_and_a_failover_stop_capture(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    """Roles are looked at with every window; an activated standby is another incarnation, as after any RESETLOGS."""
    oracle.run("INSERT INTO T VALUES (5, 'new')")
    oracle.run(SWITCH, user=ADMIN)
    standby.site.role, standby.site.open_mode = "PRIMARY", "READ WRITE"
    with pytest.raises(PreflightError, match=r"capture\.standby_dsn .*role=PRIMARY.*switchover"):
        source.windows()
    standby.site.role, standby.site.open_mode = "PHYSICAL STANDBY", "READ ONLY"
    show_role(oracle, "PHYSICAL STANDBY", "READ ONLY")
    with pytest.raises(PreflightError, match=r"oracle\.dsn does not lead to a primary"):
        source.windows()
    show_role(oracle, "PRIMARY", "READ WRITE")
    source.windows()
    source.check_current("T")
    standby.site.applied_scn = newest_scn(source)
    oracle.database.redo.open_resetlogs()
    with pytest.raises(RedoUnavailableError, match="another incarnation than the primary"):
        source.windows()
    standby.site.applied_scn = None
    oracle.run(SWITCH, user=ADMIN)
    with pytest.raises(RedoUnavailableError, match="opened with RESETLOGS"):
        source.windows()


def show_role(oracle: Oracle, role: str, open_mode: str) -> None:
    oracle.run(f"BEGIN DBMS_REDOLAKE_FAULTS.SHOW_ROLE('{role}', '{open_mode}'); END;", user=ADMIN)


def test_another_databases_standby_is_refused(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    standby.site.dbid = 4711
    with pytest.raises(ConfigError, match=r"standby of another database .*current=4711"):
        source.windows()


def test_a_ddl_waits_for_the_seconds_behind_it(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    """Whether another DDL came within Oracle's grain of time says redo that the standby may not have yet."""
    scn = Scn(newest_scn(source))
    oracle.run("ALTER TABLE T ADD (C NUMBER(5))")
    how = source.pipeline.config.logminer
    database = source.pipeline.database
    with database.session() as session, miner_of(session, database, how) as miner:
        ask = partial(is_altered_soon_after, session, table_id("T"), scn, how=how, miner=miner)
        with pytest.raises(LogsNotReadyError, match="seconds after it yet"):
            ask()
        oracle.clock.ahead += 60
        oracle.run("INSERT INTO T (ID) VALUES (5)")
        oracle.run(SWITCH, user=ADMIN)
        assert ask()


def test_a_standby_that_is_lost_while_it_is_read_loses_nothing(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    """The window is read from its beginning; while nobody can connect to the standby, it waits."""
    oracle.run(*(f"INSERT INTO T VALUES ({key}, 'new')" for key in range(5, 9)))
    oracle.run(SWITCH, user=ADMIN)
    lost = Fault(FaultKind.LOST_CONNECTION, FaultEvent.FETCH, "V$LOGMNR_CONTENTS", nth=1)
    standby.server.faults.arm(lost)
    source.windows()
    assert lost.seen > 1, "the window was read again from its beginning"
    source.check_current("T")
    standby.server.stop()
    with pytest.raises(OracleUnavailableError):
        source.windows()


def test_a_table_that_is_younger_than_the_dictionary_file_is_captured(
    oracle: Oracle, standby: StandbyOracle, source: Source
) -> None:
    """LogMiner shows its rows by number; its definition is the primary's."""
    oracle.run("CREATE TABLE N (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), D DATE)")
    source.configure("T", "N")
    source.run()
    oracle.run(
        "INSERT INTO N VALUES (1, 'new', DATE '2026-01-01')", "INSERT INTO T VALUES (5, 'x')"
    )
    oracle.run("UPDATE N SET V = 'changed'")
    oracle.run(SWITCH, user=ADMIN)
    source.windows()
    source.check_current("T", "N")
    assert [change["_cdc_op"] for change in changes(source, "N")] == ["c", "u"]


def test_doctor_looks_at_both_databases(
    oracle: Oracle, standby: StandbyOracle, tmp_path: Path
) -> None:
    config = oracle.config(tmp_path, "T", capture=capture_on(standby))

    def problems() -> list[Finding]:
        return [one for one in oracle_findings(config)[0] if one.is_problem]

    assert problems() == []
    standby.site.open_mode = "MOUNTED"
    [problem] = problems()
    assert "physical standby that is open read only" in problem.problem
    standby.site.open_mode = "READ ONLY WITH APPLY"
    wrong = capture_on(standby, dictionary_file="/opt/none.ora")
    config = oracle.config(tmp_path, "T", capture=wrong)
    [problem] = problems()
    assert "LogMiner cannot read the newest redo" in problem.problem


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"strategy": "online_catalog", "dictionary_file": None}, "ORA-01300"),
        ({"close_at": "online"}, "close_at: completed_logs"),
        ({"standby_dsn": "scott/tiger@host/ORCL"}, "it holds a user name or a password"),
    ],
)
def test_options_that_a_standby_cannot_have_are_refused(
    options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        LogMinerConfig.model_validate({**FROM_FILE, "standby_dsn": "host/ORCL", **options})
