"""Tables whose rows their values identify: equal rows come, go and change in number; held against Oracle, by the driver alone, with counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import oracledb
import pytest

from cdc_core.config import SourceConfig
from tests.lake.test_envelope import events_by_duckdb, written
from tests.oracle.embedded import ADMIN, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

LOOSE = {"name": "LOOSE", "identity": "all_columns"}
SAME = "INSERT INTO LOOSE VALUES (1, 'same', DATE '2020-01-01')"

oracle = oracle_with(
    "CREATE TABLE LOOSE (A NUMBER(9), B CHAR(6), C DATE) ENABLE ROW MOVEMENT",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    *(SAME for _ in range(3)),
    "INSERT INTO LOOSE VALUES (2, NULL, NULL)",
    "INSERT INTO LOOSE VALUES (NULL, NULL, NULL)",
    "INSERT INTO TWO VALUES (1, 'first')",
)
source = capturing(LOOSE, "TWO", snapshot={"chunk_rows": 100})


def rows_of(oracle: Oracle, scn: int) -> Counter[tuple[Any, ...]]:
    with oracledb.connect(user=ADMIN, password="admin", dsn=oracle.server.dsn) as connection:
        query = "SELECT T.* FROM DEMO.LOOSE AS OF SCN :scn T"
        return Counter(connection.cursor().execute(query, scn=scn).fetchall())


def check(oracle: Oracle, source: Source) -> None:
    """The mirror equals Oracle as of its position, and what its change log says by itself."""
    record = source.record("LOOSE")
    assert record.mirror_scn is not None
    assert record.state == "ready", record.reason
    table = table_id("LOOSE")
    found = source.lake.tables[table]
    assert Counter(source.lake.image(table)) == rows_of(oracle, record.mirror_scn)
    assert found.schema is not None
    merged = dict(found.rows)
    source.lake.rebuild_mirror(table, found.schema)
    assert found.rows == merged


def test_equal_rows_come_go_and_change(oracle: Oracle, source: Source) -> None:
    check(oracle, source)
    oracle.run(SAME, "DELETE FROM LOOSE WHERE A = 1 AND ROWNUM = 1")
    source.windows()
    check(oracle, source)
    oracle.run(
        "UPDATE LOOSE SET B = 'other' WHERE A = 1 AND ROWNUM <= 2",
        "UPDATE LOOSE SET A = 1, B = 'other', C = DATE '2020-01-01' WHERE A = 2",
        "UPDATE LOOSE SET A = A WHERE A = 1",
        "INSERT INTO LOOSE (A) VALUES (NULL)",
        "DELETE FROM LOOSE WHERE A IS NULL AND ROWNUM = 1",
        *(SAME for _ in range(3)),
    )
    source.windows()
    check(oracle, source)
    oracle.run("DELETE FROM LOOSE", SAME)
    source.windows()
    check(oracle, source)
    assert sum(rows_of(oracle, source.record("LOOSE").mirror_scn or 0).values()) == 1


def test_what_a_transaction_takes_back_does_not_count(oracle: Oracle, source: Source) -> None:
    cursor = (connection := oracle.owner()).cursor()
    for statement in (
        SAME,
        SAME,
        "UPDATE LOOSE SET B = 'kept' WHERE A = 1 AND ROWNUM = 1",
        "SAVEPOINT S",
        "DELETE FROM LOOSE WHERE A = 1",
        SAME,
        "UPDATE LOOSE SET B = 'undone'",
        "ROLLBACK TO S",
        "DELETE FROM LOOSE WHERE B = 'same' AND ROWNUM <= 2",
    ):
        cursor.execute(statement)
    source.windows()
    check(oracle, source)
    connection.commit()
    source.windows()
    check(oracle, source)


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("ALTER TABLE LOOSE MOVE", id="move"),
        pytest.param("ALTER TABLE LOOSE SHRINK SPACE", id="shrink"),
    ],
)
def test_rows_may_move(oracle: Oracle, source: Source, ddl: str) -> None:
    """Before and behind changes of a window, and while a transaction of another table is open."""
    oracle.run("DELETE FROM LOOSE WHERE ROWNUM = 1", SAME)
    oracle.run(ddl)
    oracle.run("UPDATE LOOSE SET B = 'after' WHERE ROWNUM <= 2", SAME)
    source.windows()
    check(oracle, source)
    oracle.run("DELETE FROM LOOSE WHERE B = 'after' AND ROWNUM = 1")
    source.windows()
    check(oracle, source)


def test_old_windows_again_change_nothing(oracle: Oracle, source: Source) -> None:
    windows = []
    for number in range(4):
        oracle.run(SAME, f"UPDATE LOOSE SET B = 'n{number}' WHERE ROWNUM <= 2")
        oracle.run("DELETE FROM LOOSE WHERE A = 1 AND ROWNUM = 1")
        windows += source.windows()
    rows = dict(source.lake.tables[table_id("LOOSE")].rows)
    for window in [*reversed(windows), *windows]:
        report = source.pipeline.replay_window(window)
        assert all(one.skipped for one in report.tables)
        assert source.lake.tables[table_id("LOOSE")].rows == rows
    check(oracle, source)


def test_windows_are_taken_once_whoever_takes_them_again(oracle: Oracle, source: Source) -> None:
    writer = oracle.owner()
    for number in range(4):
        writer.cursor().execute(SAME)
        if number % 2:
            writer.commit()
        oracle.run("DELETE FROM LOOSE WHERE A = 1 AND ROWNUM = 1", SAME, SAME)
        for window in source.pipeline.plan_windows():
            source.pipeline.capture_window(window)
            source.close()
            source.pipeline.apply_window(window)
            source.close()
            source.pipeline.apply_window(window)
        check(oracle, source)


def test_an_update_of_a_row_without_a_key_is_one_event(oracle: Oracle, tmp_path: Path) -> None:
    """As in Debezium: only a change of key is two."""
    with source_of(oracle, tmp_path, lake={"path": str(tmp_path / "lake")}) as source:
        source.configure(LOOSE)
        source.run()
        oracle.run("UPDATE LOOSE SET B = 'other' WHERE A = 1 AND ROWNUM = 1", SAME)
        source.windows()
        written(source, "LOOSE")
        sql = source.pipeline.records.events_sql(table_id("LOOSE"), "duckdb", "UTC")
        events = [one for one in events_by_duckdb(sql) if one["op"] != "r"]
    assert [one["op"] for one in events] == ["u", "c"]
    assert [events[0][image]["B"] for image in ("before", "after")] == ["same  ", "other "]


def test_a_mirror_without_a_key_is_not_clustered(source: Source) -> None:
    list(source.pipeline.maintain([table_id("LOOSE")]))
    [call] = [call for call in source.lake.calls if call[:2] == ("maintain", "LOOSE")]
    assert call[2].endswith(" ()")


@pytest.mark.parametrize("is_own", [True, False], ids=["of-the-table", "of-the-source"])
def test_there_is_no_quarantine_for_counted_rows(source: Source, *, is_own: bool) -> None:
    quarantine = {"on_undecodable": "quarantine"}
    written = source.written().model_dump()
    policies = {} if is_own else quarantine
    entry = {"name": "DEMO.LOOSE", "identity": "all_columns", **(quarantine if is_own else {})}
    with pytest.raises(ValueError, match="counts that lack a change stay wrong"):
        SourceConfig.model_validate({**written, "policies": policies, "tables": [entry]})
    stops = {**entry, "on_undecodable": "stop"}
    SourceConfig.model_validate({**written, "policies": quarantine, "tables": [stops]})


def test_a_lost_store_and_a_table_taken_anew_from_landing_have_the_same_rows(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("DELETE FROM LOOSE WHERE A = 1 AND ROWNUM = 1", SAME)
    source.windows()
    oracle.run("UPDATE LOOSE SET B = 'x' WHERE A = 1 AND ROWNUM = 1", SAME)
    source.windows()
    rows = dict(source.lake.tables[table_id("LOOSE")].rows)
    source.close()
    for file in source.path.glob("state.db*"):
        file.unlink()
    source.pipeline.rebuild_state()
    source.windows()
    check(oracle, source)
    source.pipeline.rebuild_from_landing(table_id("LOOSE"))
    source.run()
    check(oracle, source)
    assert source.lake.tables[table_id("LOOSE")].rows == rows


def test_what_a_truncate_removes_is_gone_with_all_its_copies(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, policies={"on_truncate": "follow"}) as source:
        source.configure(LOOSE)
        source.run()
        oracle.run(SAME, "TRUNCATE TABLE LOOSE", SAME, SAME)
        oracle.run("DELETE FROM LOOSE WHERE ROWNUM = 1")
        windows = source.windows()
        check(oracle, source)
        for window in windows:
            source.pipeline.replay_window(window)
        check(oracle, source)
