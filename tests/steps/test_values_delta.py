"""A converter, a mask on a key, columns of which LogMiner shows no row, patterns and a template of paths, all in one source: each through
snapshot, window, replay and reconcile, in Delta tables that this process writes, and that Spark does."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from oracle_embedded.redo import DEFAULT_WARTS
from redolake.reader import open as open_lake
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.converters_of_users import __name__ as converters

SALT = "pepper"
PEOPLE, EVENTS = TableId(OWNER, "PEOPLE"), TableId(OWNER, "EVENT_LOG")
SOURCE: dict[str, Any] = {
    "tables": [{"name": rf"re:{OWNER}\.(PEOPLE|EVENT_.+)", "unsupported_columns": "reselect"}],
    "masks": {"salt": SALT},
    "columns_mask": {"*.PEOPLE.SSN": "hash(sha256)"},
    "columns_as": {"*.*.re:.*_YN": f"{converters}:YesNo"},
    "columns_exclude": ["*.*.SECRET"],
    "key": {f"{OWNER}.EVENT_*": ["AT", "SEQ"]},
}
TABLES = (
    "CREATE TABLE PEOPLE (SSN VARCHAR2(11) PRIMARY KEY, ACTIVE_YN CHAR(1), NAME VARCHAR2(20), SECRET VARCHAR2(9))",
    "CREATE TABLE EVENT_LOG (AT NUMBER(9) NOT NULL, SEQ NUMBER(9) NOT NULL, DONE_YN CHAR(1), BODY JSON, OK BOOLEAN)",
    "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)",
    *(f"INSERT INTO PEOPLE VALUES ('111-22-{at:04}', 'Y', 'name {at}', 'hush')" for at in range(5)),
    *(f"INSERT INTO EVENT_LOG VALUES (1, {at}, 'N', '{{\"n\": {at}}}', TRUE)" for at in range(5)),
)
CHANGES = (
    "UPDATE PEOPLE SET SSN = '999-88-0000', NAME = 'moved' WHERE SSN = '111-22-0000'",
    "UPDATE PEOPLE SET ACTIVE_YN = 'N', SECRET = 'hush' WHERE SSN = '111-22-0001'",
    "DELETE FROM PEOPLE WHERE SSN = '111-22-0002'",
    "INSERT INTO PEOPLE VALUES ('111-22-0002', NULL, 'again', 'hush')",
    "DELETE FROM PEOPLE WHERE SSN = '111-22-0003'",
    "UPDATE EVENT_LOG SET BODY = '{\"n\": [1, 2]}', DONE_YN = 'Y' WHERE SEQ = 0",
    "UPDATE EVENT_LOG SET AT = 2 WHERE SEQ = 1",
    "UPDATE EVENT_LOG SET OK = NULL WHERE SEQ = 2",
    "DELETE FROM EVENT_LOG WHERE SEQ = 3",
    "INSERT INTO EVENT_LOG VALUES (3, 9, NULL, NULL, FALSE)",
)
EXPECTED = "SELECT SSN, ACTIVE_YN, NAME FROM PEOPLE"
EXPECTED_EVENTS = "SELECT AT, SEQ, DONE_YN, JSON_SERIALIZE(BODY RETURNING CLOB), CASE WHEN OK = TRUE THEN 1 WHEN OK = FALSE THEN 0 END FROM EVENT_LOG"
_FLAG = {"Y": True, "N": False, None: None}


def in_oracle(oracle: Oracle) -> tuple[set[Any], set[Any]]:
    """What both mirrors must have, made of Oracle's rows by other code than Redolake's."""
    with oracle.owner() as connection, connection.cursor() as cursor:
        cursor.execute(EXPECTED)
        people = {
            (hashlib.sha256((SALT + ssn).encode()).hexdigest(), _FLAG[active], name)
            for ssn, active, name in cursor
        }
        cursor.execute(EXPECTED_EVENTS)
        events = {
            (at, seq, _FLAG[done], body and json.dumps(json.loads(str(body)), separators=(",", ":")), None if ok is None else bool(ok))
            for at, seq, done, body, ok in cursor
        }  # fmt: skip
    return people, events


def in_lake(path: Path) -> tuple[set[Any], set[Any]]:
    cut = open_lake(path / "lake").at()
    people = {
        (row["SSN"], row["ACTIVE_YN"], row["NAME"])
        for row in cut.table(str(PEOPLE)).to_arrow().to_pylist()
    }
    events = {
        (row["AT"], row["SEQ"], row["DONE_YN"], row["BODY"], row["OK"])
        for row in cut.table(str(EVENTS)).to_arrow().to_pylist()
    }
    return people, events


def check_all_ways(path: Path, lake: dict[str, Any]) -> None:
    with running_oracle(warts=DEFAULT_WARTS, release="23ai") as oracle:
        oracle.run(*TABLES)
        options = {
            "path": str(path / "lake"),
            "mirror_path": "bronze/{owner_lower}/{table_lower}",
            **lake,
        }
        with Pipeline(oracle.config(path, lake=options, **SOURCE)) as pipeline:
            list(pipeline.run_once())
            assert in_lake(path) == in_oracle(oracle), "the snapshot"
            for change in CHANGES:
                oracle.run(change)
            list(pipeline.run_once())
            assert in_lake(path) == in_oracle(oracle), "windows"
            assert {one.table for one in pipeline.records.tables()} == {PEOPLE, EVENTS}
            compared = {str(one.table): one.differences for one in pipeline.reconcile().tables}
            assert compared == {str(PEOPLE): 0, str(EVENTS): 0}
            for record in pipeline.records.windows():
                pipeline.replay_window(record.window)
            assert in_lake(path) == in_oracle(oracle), "replays"
            pipeline.start_snapshot([PEOPLE, EVENTS])
            list(pipeline.run_once())
            oracle.run("CREATE TABLE LATER (ID NUMBER(9))")  # windows pass the snapshot's SCN
            list(pipeline.run_once())
            assert in_lake(path) == in_oracle(oracle), "an ad hoc snapshot"
            assert [one.differences for one in pipeline.reconcile().tables] == [0, 0]
    assert (path / "lake" / "bronze" / OWNER.lower() / "event_log" / "_delta_log").is_dir()
    landed = [one for one in (path / "landing").rglob("*") if one.is_file()]
    assert not [
        one for one in landed if b"hush" in one.read_bytes() or b"111-22-" in one.read_bytes()
    ]


def test_every_way_without_spark(tmp_path: Path) -> None:
    check_all_ways(tmp_path, {"rewrite_mirrors_up_to_mb": 64})


@pytest.mark.spark
@pytest.mark.slow  # what a MERGE makes of each type is in tests/steps/test_types_delta.py
def test_every_way_by_spark(tmp_path: Path, spark_process: None) -> None:
    check_all_ways(tmp_path, {"merge": "spark", "driver_memory": "1g"})
