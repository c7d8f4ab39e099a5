"""The end of the demo: the life of the flight that changed most, who merged, and what to do next."""

from __future__ import annotations

from pathlib import Path

from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import MirrorWrite, StepReport
from cdc_core.steps import Pipeline
from pipelines.demo.settings import default_folder, option_for
from pipelines.demo.story import story
from tests.oracle.embedded import running_oracle

FLIGHTS = TableId("DEMO", "FLIGHTS")


def test_the_story_follows_the_flight_that_changed_most(tmp_path: Path) -> None:
    writes: dict[TableId, list[MirrorWrite]] = {}

    def keep(step: StepReport) -> None:
        for one in step.tables:
            if one.write is not None and step.kind == "window-applied":
                writes.setdefault(one.table, []).append(one.write)

    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE AIRLINES (CARRIER CHAR(2) PRIMARY KEY)",
            "CREATE TABLE FLIGHTS (SCHED_DEP DATE, CARRIER CHAR(2), FLIGHT_NO NUMBER(4), STATUS VARCHAR2(12),"
            " PRIMARY KEY (SCHED_DEP, CARRIER, FLIGHT_NO))",
            "INSERT INTO FLIGHTS VALUES (DATE '2013-02-01', 'UA', 1, 'scheduled')",
        )
        config = oracle.config(tmp_path, "AIRLINES", "FLIGHTS")
        with Pipeline(config, report=keep) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                "INSERT INTO FLIGHTS VALUES (DATE '2013-02-01', 'UA', 2, 'scheduled')",
                "INSERT INTO FLIGHTS VALUES (DATE '2013-02-01', 'UA', 3, 'scheduled')",
                "UPDATE FLIGHTS SET STATUS = 'late' WHERE FLIGHT_NO = 1",
                "UPDATE FLIGHTS SET STATUS = 'departed' WHERE FLIGHT_NO = 3",
                "UPDATE FLIGHTS SET STATUS = 'arrived' WHERE FLIGHT_NO = 3",
            )
            list(pipeline.run_once())
        text = "\n".join(story(config, writes, ".venv/bin/redolake"))
    assert "The life of flight UA 3, scheduled 2013-02-01 00:00" in text
    assert """update "DEMO"."FLIGHTS" set "STATUS" = 'arrived' where""" in text
    assert "insert  STATUS 'scheduled'" in text
    assert "update  STATUS 'departed' → 'arrived'" in text
    assert "the mirror, one row per flight: STATUS 'arrived'" in text
    assert ".venv/bin/redolake row DEMO.FLIGHTS '2013-02-01 00:00:00' UA 3" in text
    [merged] = [line for line in text.splitlines() if line.startswith("  FLIGHTS ")]
    assert f"{len(writes[FLIGHTS])} × copy-on-write without Spark (mirror of " in merged
    assert "--merge spark" in text
    assert f"{tmp_path}/lake/src/mirror" in text
    assert ".venv/bin/python -c" in text


def test_a_demo_in_which_nothing_changed_has_no_life_to_tell(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE AIRLINES (CARRIER CHAR(2) PRIMARY KEY)",
            "CREATE TABLE FLIGHTS (SCHED_DEP DATE, CARRIER CHAR(2), FLIGHT_NO NUMBER(4), PRIMARY KEY (SCHED_DEP, CARRIER, FLIGHT_NO))",
            "INSERT INTO FLIGHTS VALUES (DATE '2013-02-01', 'UA', 1)",
        )
        config = oracle.config(tmp_path, "AIRLINES", "FLIGHTS")
        with Pipeline(config) as pipeline:
            list(pipeline.run_snapshot())
        text = "\n".join(story(config, {}, "redolake", option_for(tmp_path / "my demo")))
    assert "The life of" not in text
    assert "no window changed a mirror" in text
    assert "redolake oracle serve" in text
    assert f"redolake ui --config '{tmp_path}/my demo/defs.yaml'" in text
    assert option_for(default_folder()) == ""
