"""An instance of a cluster in which nobody works holds windows back; an update of its flush row lets them go on."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.config import LogMinerConfig
from cdc_core.errors import PreflightError
from cdc_core.model.findings import Finding
from cdc_core.oracle.session import settings_block
from cdc_core.steps.source_checks import oracle_findings
from oracle_embedded.instances import Instance
from oracle_embedded.server import EmbeddedServer
from tests.oracle.embedded import ADMIN, CAPTURE, OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

FLUSHED = f"{OWNER}.FLUSHED"
ONLINE = {"close_at": "online"}


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE FLUSHED (LAST_SCN NUMBER(19))",
    "INSERT INTO FLUSHED VALUES (0)",
    f"GRANT SELECT, UPDATE ON FLUSHED TO {CAPTURE}",
    threads=2,
    idle_redo_seconds=math.inf,
)
"""Two instances are open, and write no redo but that of their sessions."""


@contextmanager
def second_instance(oracle: Oracle) -> Iterator[str]:
    """Its connect string."""
    with EmbeddedServer(Instance(oracle.database, 2), faults=oracle.database.faults) as server:
        yield server.dsn


@contextmanager
def source(oracle: Oracle, path: Path, **capture: Any) -> Iterator[Source]:
    with source_of(oracle, path, "T", capture={**ONLINE, **capture}) as opened:
        yield opened


def findings(source: Source) -> list[Finding]:
    """What doctor says of the flush table."""
    found, _ = oracle_findings(source.pipeline.config)
    return [finding for finding in found if "flush_table" in finding.problem]


def flushed(oracle: Oracle) -> list[int]:
    """What the flush table holds."""
    with oracle.owner() as connection:
        return sorted(row[0] for row in connection.cursor().execute("SELECT LAST_SCN FROM FLUSHED"))


def rows(source: Source) -> int:
    return len(source.lake.image(table_id("T"), of_oracle=True))


def test_without_a_flush_row_windows_wait_for_the_instance_in_which_nobody_works(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source(oracle, tmp_path) as one:
        one.run()
        sent = one.asked()
        oracle.run("INSERT INTO T VALUES (1, 'waits')")
        one.run()
        assert rows(one) == 0
        assert sent
        assert not [sql for sql in sent if sql.startswith("UPDATE")]


def test_with_one_in_each_instance_they_go_on(oracle: Oracle, tmp_path: Path) -> None:
    with (
        second_instance(oracle) as second,
        source(
            oracle, tmp_path, flush_table=FLUSHED, flush_dsns=[oracle.server.dsn, second]
        ) as one,
    ):
        one.run()
        oracle.run("INSERT INTO T VALUES (1, 'comes')")
        one.run()
        assert rows(one) == 1
        one.check_current("T")
    assert flushed(oracle) > [0]


def test_one_update_in_the_own_instance_is_all_that_is_written(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run("BEGIN DBMS_REDOLAKE_FAULTS.CLOSE_THREAD(2); END;", user=ADMIN)
    with source(oracle, tmp_path, flush_table=FLUSHED) as one:
        one.run()
        sent = one.asked()
        oracle.run("INSERT INTO T VALUES (1, 'comes')")
        one.run()
        one.run()
        assert rows(one) == 1
        written = {sql for sql in sent if not sql.lstrip().startswith(("SELECT", settings_block(), "BEGIN SYS.DBMS_LOGMNR", "ALTER SESSION"))}  # fmt: skip
        assert written == {
            f'UPDATE "{OWNER}"."FLUSHED" SET LAST_SCN = (SELECT CURRENT_SCN FROM V$DATABASE)',
            "COMMIT",
        }


def test_an_instance_that_is_down_is_a_warning(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with second_instance(oracle) as second:
        oracle.run("BEGIN DBMS_REDOLAKE_FAULTS.CLOSE_THREAD(2); END;", user=ADMIN)
        nodes = [second, oracle.server.dsn]
        with (
            source(oracle, tmp_path, flush_table=FLUSHED, flush_dsns=nodes) as one,
            caplog.at_level(logging.WARNING),
        ):
            one.run()
            oracle.run("INSERT INTO T VALUES (1, 'comes')")
            one.run()
            assert rows(one) == 1
        assert f"redo buffer is not flushed dsn={second}" in caplog.text


def test_a_row_that_another_session_holds_keeps_no_window_waiting(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source(oracle, tmp_path, flush_table=FLUSHED) as one:
        one.run()
        with oracle.owner() as other:
            other.cursor().execute("UPDATE FLUSHED SET LAST_SCN = 1")
            one.run()


@pytest.mark.parametrize("change", ["DELETE FROM FLUSHED", "INSERT INTO FLUSHED VALUES (1)"])
def test_a_flush_table_without_exactly_one_row_is_an_error_with_its_remedy(
    oracle: Oracle, tmp_path: Path, change: str
) -> None:
    with source(oracle, tmp_path, flush_table=FLUSHED) as one:
        one.run()
        oracle.run(change)
        before = flushed(oracle)
        with pytest.raises(PreflightError, match="needs one") as caught:
            one.run()
        assert "INSERT INTO" in caught.value.hint
        assert flushed(oracle) == before
        [found] = findings(one)
        assert found.is_problem
        assert "needs one" in found.problem


def test_doctor_names_a_flush_table_that_the_user_may_not_update(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source(oracle, tmp_path, flush_table=FLUSHED) as one:
        assert findings(one) == []
        oracle.run(f"REVOKE UPDATE ON FLUSHED FROM {CAPTURE}")
        [found] = findings(one)
        assert "UPDATE" in found.remedy


def test_a_pattern_never_takes_the_flush_table_in(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("ALTER TABLE FLUSHED ADD PRIMARY KEY (LAST_SCN)")
    with source(oracle, tmp_path, flush_table=FLUSHED) as one:
        one.configure({"name": "*"})
        one.run()
        assert [status.table for status in one.pipeline.status().tables] == [f"{OWNER}.T"]


def test_an_entry_that_names_it_is_refused(oracle: Oracle, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"is captured and capture\.flush_table"):
        oracle.config(
            tmp_path, tables=[{"name": FLUSHED}], capture={**ONLINE, "flush_table": FLUSHED}
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"flush_table": "A.B"}, "flush_table needs close_at: online", id="logs-are-switched"),
        pytest.param({**ONLINE, "flush_table": "B"}, "this is not a table name", id="no-owner"),
        pytest.param({**ONLINE, "flush_dsns": ["db/x"]}, "flush_dsns needs flush_table", id="no-table"),
        pytest.param(
            {**ONLINE, "flush_table": "A.B", "flush_dsns": ["me/secret@db/x"]},
            "it holds a user name or a password",
            id="secret",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        LogMinerConfig(**given)
