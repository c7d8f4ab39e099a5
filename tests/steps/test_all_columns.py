"""Tables without a key whose rows their values identify: snapshots as of one SCN, DDL, equal rows, held against Oracle as multisets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import oracledb
import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.scn import SLACK_SECONDS
from cdc_core.model.signals import Signal
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import ADMIN, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

LOG = {"name": "LOG", "identity": "all_columns"}
TABLE = table_id("LOG")
MANY = "INSERT INTO LOG SELECT MOD(LEVEL, 7), 'many', NULL FROM DUAL CONNECT BY LEVEL <= 350"
READ_CHUNK = 'FROM "DEMO"."LOG" AS OF SCN :scn WHERE (ROWID'

oracle = oracle_with(
    "CREATE TABLE LOG (A NUMBER(9), B VARCHAR2(40), C DATE) ENABLE ROW MOVEMENT",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    *("INSERT INTO LOG VALUES (1, 'same', DATE '2020-01-01')" for _ in range(3)),
    "INSERT INTO LOG VALUES (2, NULL, NULL)",
    "INSERT INTO TWO VALUES (1, 'first')",
)
source = capturing(LOG, "TWO", snapshot={"chunk_rows": 100})
"""LOG and TWO, snapshotted, with one window."""


def check(oracle: Oracle, source: Source, name: str = "LOG") -> None:
    """The mirror equals Oracle as of its position, by the driver alone."""
    record = source.record(name)
    assert record.state == "ready", record.reason
    mirror = source.lake.image(table_id(name))
    assert Counter(mirror) == rows_of(oracle, name, record.mirror_scn or 0)


def rows_of(oracle: Oracle, name: str, scn: int) -> Counter[tuple[Any, ...]]:
    with oracledb.connect(user=ADMIN, password="admin", dsn=oracle.server.dsn) as connection:
        query = f"SELECT T.* FROM DEMO.{name} AS OF SCN :scn T"
        return Counter(connection.cursor().execute(query, scn=scn).fetchall())


def test_chunks_are_ranges_of_rowids_as_of_one_scn(oracle: Oracle, source: Source) -> None:
    """Rows that move to another range while chunks are read are in one of them."""
    oracle.run(MANY)
    source.windows()
    chunks = source.pipeline.start_snapshot([TABLE])
    assert len(chunks) > 2
    planned = source.pipeline.store.chunks.find(TABLE, snapshot_id=chunks[0].snapshot_id)
    assert {one.range["kind"] for one in planned} == {"rowid"}
    assert len({one.scn for one in planned}) == 1
    for number, chunk in enumerate(chunks):
        oracle.run(
            f"UPDATE LOG SET B = 'during' WHERE A = {number}",
            f"DELETE FROM LOG WHERE A = {number + 3} AND ROWNUM <= 20",
            "INSERT INTO LOG SELECT 1, 'many', NULL FROM DUAL CONNECT BY LEVEL <= 20",
        )
        source.pipeline.snapshot_chunk(chunk)
        source.pipeline.apply_chunk(chunk)
    source.run()
    check(oracle, source)


@pytest.mark.slow
def test_a_new_snapshot_begins_new_delta_tables(oracle: Oracle, source: Source) -> None:
    before = source.record("LOG").generation
    oracle.run("DELETE FROM LOG WHERE ROWNUM = 1")
    source.pipeline.resnapshot_tables([TABLE])
    source.run()
    oracle.run("INSERT INTO LOG VALUES (1, 'same', DATE '2020-01-01')")
    source.run()
    check(oracle, source)
    assert source.record("LOG").generation == before + 1


def too_old(oracle: Oracle, *, nth: int, times: int = 1) -> None:
    oracle.server.faults.arm(
        Fault(FaultKind.ORA_ERROR, sql_contains=READ_CHUNK, code=1555, nth=nth, times=times)
    )


def test_a_snapshot_without_undo_begins_again_as_a_whole(oracle: Oracle, source: Source) -> None:
    """The chunk before it has its rows in the mirror by then; none of them stays."""
    oracle.run(MANY)
    source.windows()
    [first, second, *_] = source.pipeline.start_snapshot([TABLE])
    source.pipeline.snapshot_chunk(first)
    source.pipeline.apply_chunk(first)
    oracle.run("UPDATE LOG SET B = 'meanwhile' WHERE ROWNUM <= 200")
    too_old(oracle, nth=1)
    source.run()
    check(oracle, source)
    chunks = source.pipeline.store.chunks.find(TABLE, snapshot_id=source.record("LOG").snapshot_id)
    assert chunks[0].snapshot_id != second.snapshot_id
    assert len({one.scn for one in chunks}) == 1
    [again] = source.record("LOG").read_again
    assert again.trouble == "snapshot_too_old"
    oracle.run("DELETE FROM LOG WHERE B = 'meanwhile' AND ROWNUM <= 7")
    source.run()
    check(oracle, source)


@pytest.mark.slow
def test_a_table_whose_undo_does_not_suffice_twice_stops_with_the_reason(
    oracle: Oracle, source: Source
) -> None:
    oracle.run(MANY)
    source.pipeline.resnapshot_tables([TABLE])
    too_old(oracle, nth=1, times=0)
    source.run()
    source.run()
    oracle.server.faults.disarm_all()
    one = source.record("LOG")
    assert (one.state, one.mirror_scn) == ("failed", None)
    assert "only once" in (one.reason or "")
    assert "undo" in (one.reason or "")
    assert "redolake table resnapshot DEMO.LOG" in (one.way_out or "")
    source.check_current("TWO")
    source.pipeline.resnapshot_tables([TABLE])
    source.run()
    check(oracle, source)


def signal(source: Source, name: str, **data: Any) -> Signal:
    source.pipeline.add_signal(
        Signal(
            id=name,
            source="src",
            type="execute-snapshot",
            data={"type": "incremental", "data-collections": ["DEMO.LOG"], **data},
            channel="store",
        )
    )
    source.run()
    [found] = [one for one in source.pipeline.store.signals.find() if one.id == name]
    return found


def test_a_signal_reads_the_whole_table_again_and_no_part(oracle: Oracle, source: Source) -> None:
    before = source.record("LOG").generation
    oracle.run("DELETE FROM LOG WHERE ROWNUM = 1")
    part = {"additional-conditions": [{"data-collection": "DEMO.LOG", "filter": "A = 1"}]}
    rejected = signal(source, "part", **part)
    assert rejected.state == "rejected"
    assert "nothing tells which rows" in (rejected.reason or "")
    assert source.record("LOG").generation == before
    assert signal(source, "whole").state == "done"
    assert source.record("LOG").generation == before + 1
    oracle.run("UPDATE LOG SET B = 'x' WHERE ROWNUM = 1")
    source.run()
    check(oracle, source)


def test_a_command_with_a_condition_is_refused(source: Source) -> None:
    with pytest.raises(ConfigError, match="no part of a table"):
        source.pipeline.start_snapshot([TABLE], condition="A = 1")


@pytest.mark.parametrize(
    ("ddl", "named"),
    [
        pytest.param("ALTER TABLE LOG ADD (D NUMBER(5) DEFAULT 4)", "D", id="add"),
        pytest.param("ALTER TABLE LOG DROP COLUMN C", "C", id="drop"),
        pytest.param("ALTER TABLE LOG SET UNUSED (C)", "C", id="unused"),
        pytest.param("ALTER TABLE LOG RENAME COLUMN C TO D", "C", id="rename"),
        pytest.param("ALTER TABLE LOG MODIFY (A NUMBER(30))", "A", id="modify"),
    ],
)
def test_a_ddl_that_changes_the_columns_ends_the_stream(
    oracle: Oracle, tmp_path: Path, ddl: str, named: str
) -> None:
    """What committed before is in the mirror; by the policy, the table joins again with new Delta tables."""
    with source_of(oracle, tmp_path) as source:
        source.configure(LOG, "TWO")
        source.run()
        oracle.run("DELETE FROM LOG WHERE ROWNUM = 1", ddl, "UPDATE LOG SET B = 'after'")
        source.windows()
        one = source.record("LOG")
        assert (one.state, one.trouble) == ("failed", "unsupported_ddl")
        assert f"changed: {named} " in (one.reason or "") or "changed their type: A" in (
            one.reason or ""
        )
        assert "redolake table resnapshot DEMO.LOG" in (one.way_out or "")
        assert len(source.lake.tables[TABLE].rows) == 3
        source.check_current("TWO")
        source.configure({**LOG, "on_unsupported_ddl": "resnapshot"}, "TWO")
        source.run()
        oracle.run("DELETE FROM LOG WHERE ROWNUM = 1", "UPDATE LOG SET B = 'again'")
        source.run()
        assert source.record("LOG").generation == one.generation + 1
        check(oracle, source)


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("ALTER TABLE LOG MODIFY (B VARCHAR2(80))", id="longer"),
        pytest.param("ALTER TABLE LOG ADD (V NUMBER(9) AS (A + 1))", id="virtual"),
        pytest.param("CREATE INDEX LOG_A ON LOG (A)", id="index"),
    ],
)
def test_a_ddl_that_leaves_the_values_as_they_are_is_followed(
    oracle: Oracle, source: Source, ddl: str
) -> None:
    oracle.run(
        "DELETE FROM LOG WHERE ROWNUM = 1", ddl, "UPDATE LOG SET B = 'after' WHERE ROWNUM = 1"
    )
    oracle.run(
        "INSERT INTO LOG (A, B) VALUES (1, RPAD('x', 40, 'x'))", "DELETE FROM LOG WHERE B = 'after'"
    )
    for _ in range(2):
        settle(oracle, source)
        assert source.record("LOG").state == "ready", source.record("LOG").reason
    if "AS (A" not in ddl:
        check(oracle, source)


PARTITIONED = (
    "CREATE TABLE PARTS (K NUMBER(9), V VARCHAR2(40)) PARTITION BY RANGE (K) (PARTITION P1 VALUES LESS THAN (10),"
    " PARTITION P2 VALUES LESS THAN (20)) ENABLE ROW MOVEMENT"
)


def settle(oracle: Oracle, source: Source) -> None:
    """Some time passes, and a window."""
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run("INSERT INTO TWO SELECT MAX(ID) + 1, 'later' FROM TWO")
    source.windows()


def test_partitions_whose_rows_move_are_followed(oracle: Oracle, tmp_path: Path) -> None:
    """MOVE, SPLIT, MERGE, and rows that go to another partition give rows other ROWIDs, by which nobody knows them here."""
    oracle.run(
        PARTITIONED, *(f"INSERT INTO PARTS VALUES ({k}, 'first')" for k in (1, 1, 1, 11, 11))
    )
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "PARTS", "identity": "all_columns"}, "TWO")
        source.run()
        settle(oracle, source)
        for number, ddl in enumerate(
            (
                "MOVE PARTITION P1",
                "SPLIT PARTITION P1 AT (2) INTO (PARTITION A, PARTITION B)",
                "MERGE PARTITIONS A, B INTO PARTITION P1",
                "ADD PARTITION P3 VALUES LESS THAN (30)",
            )
        ):
            oracle.run(
                "INSERT INTO PARTS VALUES (1, 'before')",
                "DELETE FROM PARTS WHERE K = 1 AND ROWNUM = 1",
            )
            oracle.run(f"ALTER TABLE PARTS {ddl}")
            oracle.run(
                f"UPDATE PARTS SET V = 'n{number}' WHERE K = 1 AND ROWNUM = 1",
                "INSERT INTO PARTS VALUES (1, 'first')",
            )
            settle(oracle, source)
            check(oracle, source, "PARTS")
        oracle.run("UPDATE PARTS SET K = K + 10 WHERE ROWNUM <= 4")
        settle(oracle, source)
        check(oracle, source, "PARTS")


@pytest.mark.slow
def test_a_partition_that_goes_without_redo_ends_the_stream(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run(PARTITIONED, *(f"INSERT INTO PARTS VALUES ({k}, 'first')" for k in (1, 1, 11)))
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "PARTS", "identity": "all_columns"}, "TWO")
        source.run()
        oracle.run("ALTER TABLE PARTS DROP PARTITION P1", "INSERT INTO PARTS VALUES (11, 'first')")
        source.windows()
        assert (source.record("PARTS").state, source.record("PARTS").trouble) == (
            "failed",
            "truncate",
        )


@pytest.mark.slow
def test_a_truncate_that_is_followed_empties_the_piles(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path) as source:
        source.configure({**LOG, "on_truncate": "follow"}, "TWO")
        source.run()
        oracle.run("INSERT INTO LOG VALUES (2, NULL, NULL)", "TRUNCATE TABLE LOG")
        oracle.run(
            "INSERT INTO LOG VALUES (2, NULL, NULL)", "INSERT INTO LOG VALUES (2, NULL, NULL)"
        )
        source.windows()
        check(oracle, source)
        oracle.run("DELETE FROM LOG WHERE ROWNUM = 1")
        source.windows()
        check(oracle, source)


@pytest.mark.slow
def test_an_option_that_takes_a_column_away_stops_the_table(oracle: Oracle, source: Source) -> None:
    for options in (
        {"columns_exclude": ["B"]},
        {"columns_mask": {"B": "stars(3)"}},
        {"columns_as": {"A": "double"}},
    ):
        source.configure({**LOG, **options}, "TWO")
        oracle.run("INSERT INTO LOG VALUES (1, 'hidden', NULL)")
        source.windows()
        one = source.record("LOG")
        assert one.state == "failed"
        assert "all columns identify the table's rows" in (one.reason or "")
        image = source.lake.image(TABLE)
        assert not any("hidden" in row for row in image)
        source.configure(LOG, "TWO")
        source.pipeline.resnapshot_tables([TABLE])
        source.run()
        check(oracle, source)
        oracle.run("DELETE FROM LOG WHERE B = 'hidden'")
        source.run()
