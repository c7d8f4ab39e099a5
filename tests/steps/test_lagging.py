"""Why a source is behind, through the driver: causes that are made on purpose, and the numbers counted in another way."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import oracledb
import pytest

from cdc_core.model.lag import LagFacts, explain_lag
from oracle_embedded.database import ADMIN
from pipelines.commands.lag import as_json, show_lag, show_work
from pipelines.commands.shared import LineConsole
from tests.oracle.embedded import OWNER, PASSWORDS, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id

SWITCH = "ALTER SYSTEM SWITCH LOGFILE"

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    *(f"INSERT INTO T VALUES ({key}, 'first')" for key in range(5)),
)


def scn_by_oracle(oracle: Oracle) -> int:
    login = {"user": ADMIN, "password": PASSWORDS[ADMIN], "dsn": oracle.server.dsn}
    with oracledb.connect(**login) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_SCN FROM V$DATABASE")
        [scn] = cursor.fetchone()
        return int(scn)


def seconds_of(facts: LagFacts) -> dict[str, float]:
    return {one.what: one.seconds or 0 for one in facts.parts}


@pytest.mark.parametrize("apart", [-7200, 7200], ids=["oracle-behind", "oracle-ahead"])
def test_clocks_that_differ_change_no_lag(oracle: Oracle, tmp_path: Path, apart: int) -> None:
    """Ages of what Oracle dated are measured by its clock; ours stands in where it is not asked."""
    with source_of(oracle, tmp_path, "T", capture={"close_at": "online"}) as source:
        source.run()
        oracle.clock.ahead += apart
        with oracle.owner() as connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO T VALUES (20, 'open')")
            oracle.run("INSERT INTO U VALUES (20, 'new')", "INSERT INTO T VALUES (21, 'new')")
            source.windows()
            oracle.clock.ahead += 600
            asked, unasked = (source.pipeline.status(ask_oracle=each) for each in (True, False))
            lags = [one.lag_seconds for one in asked.tables]
            assert all(590 < (lag or 0) < 4000 for lag in lags), lags
            assert 590 < (asked.oldest_open[0].open_seconds or 0) < 4000
            assert all((one.lag_seconds or 0) >= 0 for one in unasked.tables)
            assert (unasked.oldest_open[0].open_seconds or 0) >= 0
            connection.rollback()


def test_each_stretch_is_named_when_it_is_the_longest(oracle: Oracle, tmp_path: Path) -> None:
    """An hour passes four times: before a log switch, before capture, before applying, and for a
    table that is paused."""
    with source_of(oracle, tmp_path, "T", "U", capture={"close_at": "completed_logs"}) as source:
        source.begin()
        oracle.run(SWITCH, user=ADMIN)
        source.windows()
        assert explain_lag(source.pipeline.lag()).cause == "nothing"

        oracle.run("INSERT INTO T VALUES (10, 'new')")
        oracle.clock.ahead += 3600
        oracle.run("INSERT INTO T VALUES (11, 'new')")
        facts, before = source.pipeline.lag(), scn_by_oracle(oracle)
        assert explain_lag(facts).cause == "log-switch"
        assert 3500 < seconds_of(facts)["open"] < 3800
        assert (facts.scn_oracle or 0) <= before
        assert facts.parts[0].scn_low == facts.scn_table == source.record("T").mirror_scn
        assert facts.parts[-1].scn_high == facts.scn_oracle
        assert facts.scns == (facts.scn_oracle or 0) - (facts.scn_table or 0)

        oracle.run(SWITCH, user=ADMIN)
        oracle.clock.ahead += 3600
        oracle.run("INSERT INTO T VALUES (12, 'new')")
        later = datetime.now(UTC) + timedelta(hours=1)
        planned_before = source.pipeline.records.windows()
        facts = source.pipeline.lag(now=later)
        assert explain_lag(facts).cause == "nobody"
        assert source.pipeline.records.windows() == planned_before, "nothing is planned"
        ends = [one.scn_high for one in source.capture()]
        assert (facts.windows_to_capture, facts.scn_closable) == (len(ends), ends[-1])

        facts = source.pipeline.lag(now=later)
        assert facts.windows_to_apply == len(ends)
        assert facts.scn_captured == ends[-1]
        assert seconds_of(facts)["apply"] > 3500
        assert seconds_of(facts)["capture"] == 0
        with source.pipeline.lease("table/X"):
            assert "src/table/X" in source.pipeline.lag(now=later).holders

        captured = [one for one in source.reports if one.kind == "window-captured"]
        assert facts.work.windows == len({one.key for one in captured})
        assert facts.work.rows_landed == sum(one.rows for one in captured)
        assert facts.work.rows_mined == sum(one.facts["rows_mined"] for one in captured)
        assert abs(facts.work.capture_seconds - sum(one.seconds for one in captured)) < 1
        assert 0 < facts.work.fetch_seconds + facts.work.start_seconds <= facts.work.capture_seconds

        source.pipeline.pause_tables([table_id("U")])
        oracle.run("INSERT INTO U VALUES (1, 'new')")
        oracle.clock.ahead += 7200
        oracle.run("INSERT INTO T VALUES (13, 'new')")
        oracle.run(SWITCH, user=ADMIN)
        source.windows()
        facts = source.pipeline.lag(now=later)
        verdict = explain_lag(facts)
        assert verdict.cause == "table"
        assert f"{OWNER}.U is paused" in verdict.why
        assert "redolake table resume" in verdict.change
        assert [one.table for one in facts.waiting] == [f"{OWNER}.U"]
        brought = {one.table: one.changes for one in facts.work.tables}
        assert brought == {f"{OWNER}.T": 4}, "those of the change log"
        assert len([op for op in source.ops("T") if op == "c"]) == 4
        written = io.StringIO()
        shown = LineConsole(file=written, width=200)
        show_lag(facts, verdict, shown)
        show_work(facts, shown)
        text = written.getvalue()
        assert f"src is {facts.scns:,} SCNs and {facts.seconds:,.0f} s behind Oracle" in text
        assert f"What to change: {verdict.change}" in text
        assert f"for {facts.work.rows_mined:,} rows" in text
        assert "at work now: no process" in text
        printed = json.loads(json.dumps(as_json(facts, verdict), default=str))
        assert printed["verdict"]["cause"] == "table"
        assert "first" not in json.dumps(printed)
        assert "'new'" not in json.dumps(printed)
