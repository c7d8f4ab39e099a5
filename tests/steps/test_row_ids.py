"""Tables without a key, whose rows are identified by ROWID: loaded, changed, killed, replayed, held against Oracle; and what gives
rows other ROWIDs takes the table out of the stream, never its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pytest

from cdc_core.errors import PreflightError
from cdc_core.model.scn import SLACK_SECONDS
from cdc_core.steps.source_checks import oracle_findings
from tests.oracle.embedded import ADMIN, Oracle, minimal_logging, running_oracle
from tests.steps.harness import Source, capturing, source_of, table_id
from tests.steps.memory_lake import MemoryLake

LOOSE = {"name": "LOOSE", "identity": "rowid"}


@pytest.fixture(params=[True, False], ids=["all-columns-logged", "minimal-logging"])
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    with running_oracle(
        *(() if request.param else (minimal_logging,)),
        "CREATE TABLE LOOSE (A NUMBER(9), B VARCHAR2(40), C DATE) ENABLE ROW MOVEMENT",
        "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
        "ALTER TABLE TWO ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
        *("INSERT INTO LOOSE VALUES (1, 'same', DATE '2020-01-01')" for _ in range(3)),
        "INSERT INTO LOOSE VALUES (2, NULL, NULL)",
        "INSERT INTO TWO VALUES (1, 'first')",
        logging=request.param,
        release="19c",
    ) as running:
        yield running


source = capturing(LOOSE, "TWO", snapshot={"chunk_rows": 100})
"""LOOSE and TWO, snapshotted, with one window."""


def check(oracle: Oracle, source: Source, *names: str) -> None:
    """The mirror equals Oracle as of its position, by the driver alone; so does its change log, walked from its beginning."""
    for name in names:
        scn = source.record(name).mirror_scn
        found = source.lake.tables[table_id(name)]
        expected = rows_of(oracle, name, scn or 0)
        mirror = [tuple(values.values()) for values, _, _ in found.rows.values()]
        assert Counter(mirror) == Counter(expected), name
        assert Counter(walked(source.lake, name, scn or 0)) == Counter(expected), name


def rows_of(oracle: Oracle, name: str, scn: int) -> list[tuple[Any, ...]]:
    with oracledb.connect(user=ADMIN, password="admin", dsn=oracle.server.dsn) as connection:
        query = f"SELECT ROWIDTOCHAR(ROWID), T.* FROM DEMO.{name} AS OF SCN :scn T"
        return connection.cursor().execute(query, scn=scn).fetchall()


def walked(lake: MemoryLake, name: str, scn: int) -> list[tuple[Any, ...]]:
    """What the change log's rows make of the table, by ROWID, in the order of their positions."""
    rows: dict[str, dict[str, Any]] = {}
    history = lake.tables[table_id(name)].history
    for one in sorted(history, key=lambda one: (one["_cdc_commit_scn"], one["_cdc_ordinal"])):
        if one["_cdc_commit_scn"] > scn:
            continue
        before, after = one["before"], one["after"]
        if one["_cdc_op"] == "d":
            assert before["_cdc_row_id"] in rows, "what is deleted was there"
            del rows[before["_cdc_row_id"]]
            continue
        place = after["_cdc_row_id"]
        assert one["_cdc_op"] != "c" or place not in rows, "what is inserted was not there"
        assert one["_cdc_op"] == "r" or one["_cdc_row_id"] == place
        kept = {column: rows[place][column] for column in one["_cdc_absent"]} if before else {}
        rows[place] = {**after, **kept}
    return [tuple(row.values()) for row in rows.values()]


def settle(oracle: Oracle, source: Source) -> None:
    """Some time passes, and a window."""
    oracle.clock.ahead += 3 * SLACK_SECONDS
    oracle.run("INSERT INTO TWO SELECT MAX(ID) + 1, 'later' FROM TWO")
    source.windows()


def test_equal_rows_are_rows_of_their_own(oracle: Oracle, source: Source) -> None:
    check(oracle, source, "LOOSE")
    oracle.run(
        "INSERT INTO LOOSE VALUES (1, 'same', DATE '2020-01-01')",
        "UPDATE LOOSE SET B = 'other' WHERE A = 1 AND ROWNUM = 1",
        "DELETE FROM LOOSE WHERE B = 'same' AND ROWNUM = 1",
        "INSERT INTO LOOSE (A) VALUES (NULL)",
        "UPDATE LOOSE SET C = DATE '2021-02-03', B = NULL WHERE A = 2",
    )
    source.windows()
    check(oracle, source, "LOOSE")
    assert source.record("LOOSE").state == "ready"


def test_a_row_is_known_although_the_redo_names_changed_columns_alone(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("UPDATE LOOSE SET B = 'x' WHERE A = 2")
    oracle.run("UPDATE LOOSE SET C = DATE '2022-01-01' WHERE A = 2")
    source.windows()
    check(oracle, source, "LOOSE")


def test_the_rowid_of_a_row_that_is_gone_is_a_new_rows(oracle: Oracle, source: Source) -> None:
    """In one window and over windows; the order of commits says whose it is."""
    before = {row[0] for row in rows_of(oracle, "LOOSE", source.record("LOOSE").mirror_scn or 0)}
    for number in range(4):
        oracle.run("DELETE FROM LOOSE WHERE A = (SELECT MAX(A) FROM LOOSE)")
        oracle.run(f"INSERT INTO LOOSE (A, B) VALUES ({number + 10}, 'again')")
        oracle.run("UPDATE LOOSE SET C = SYSDATE WHERE B = 'again'")
        if number % 2:
            source.windows()
            check(oracle, source, "LOOSE")
    source.windows()
    check(oracle, source, "LOOSE")
    after = {row[0] for row in rows_of(oracle, "LOOSE", source.record("LOOSE").mirror_scn or 0)}
    assert after == before, "every new row has the ROWID of an old one"


def test_what_a_transaction_takes_back_is_not_there(oracle: Oracle, source: Source) -> None:
    connection = oracle.owner()
    cursor = connection.cursor()
    cursor.execute("UPDATE LOOSE SET B = 'kept' WHERE A = 1 AND ROWNUM = 1")
    cursor.execute("SAVEPOINT S")
    cursor.execute("DELETE FROM LOOSE WHERE A = 1")
    cursor.execute("INSERT INTO LOOSE VALUES (3, 'undone', NULL)")
    cursor.execute("UPDATE LOOSE SET B = 'undone too'")
    cursor.execute("ROLLBACK TO S")
    cursor.execute("INSERT INTO LOOSE VALUES (4, 'kept', NULL)")
    source.windows()
    check(oracle, source, "LOOSE")
    connection.commit()
    source.windows()
    check(oracle, source, "LOOSE")


def test_transactions_over_windows_and_kills_are_applied_once(
    oracle: Oracle, source: Source
) -> None:
    """Each window is captured and applied again by another process, as after a kill before it was recorded."""
    writers = [oracle.owner() for _ in range(2)]
    for number in range(6):
        cursor = writers[number % 2].cursor()
        cursor.execute(f"INSERT INTO LOOSE VALUES ({number}, 'n', NULL)")
        cursor.execute(f"UPDATE LOOSE SET B = B || '{number}' WHERE A = {number}")
        if number % 3 == 2:
            writers[number % 2].commit()
        oracle.run("INSERT INTO LOOSE VALUES (1, 'same', DATE '2020-01-01')")
        for window in source.pipeline.plan_windows():
            source.pipeline.capture_window(window)
            source.close()
            source.pipeline.capture_window(window)
            source.pipeline.apply_window(window)
            source.close()
            source.pipeline.apply_window(window)
        check(oracle, source, "LOOSE")
    for writer in writers:
        writer.commit()
    source.windows()
    check(
        oracle,
        source,
        "LOOSE",
    )


def test_a_new_snapshot_while_rows_change_gives_the_same_rows(
    oracle: Oracle, source: Source
) -> None:
    """Chunks between ROWIDs, joined with the windows by the apply rule."""
    oracle.run("INSERT INTO LOOSE SELECT LEVEL, 'many', NULL FROM DUAL CONNECT BY LEVEL <= 350")
    source.windows()
    chunks = source.pipeline.start_snapshot([table_id("LOOSE")])
    assert len(chunks) > 2
    for number, chunk in enumerate(chunks):
        oracle.run(
            f"UPDATE LOOSE SET B = 'during' WHERE A = {number + 5}",
            f"DELETE FROM LOOSE WHERE A = {number + 50}",
        )
        source.pipeline.snapshot_chunk(chunk)
        source.pipeline.apply_chunk(chunk)
        oracle.run("INSERT INTO LOOSE VALUES (900, 'new', NULL)")
    source.run()
    source.windows()
    check(oracle, source, "LOOSE")


@pytest.mark.parametrize(
    ("ddl", "why"),
    [
        pytest.param("ALTER TABLE LOOSE MOVE", "changes ROWIDs", id="move"),
        pytest.param("ALTER TABLE LOOSE SHRINK SPACE", "changes ROWIDs", id="shrink"),
    ],
)
def test_a_table_whose_rows_move_leaves_and_comes_back(
    oracle: Oracle, source: Source, ddl: str, why: str
) -> None:
    oracle.run("DELETE FROM LOOSE WHERE ROWNUM = 1", "INSERT INTO LOOSE VALUES (7, 'before', NULL)")
    oracle.run(ddl)
    oracle.run("UPDATE LOOSE SET B = 'after' WHERE A = 7", "INSERT INTO TWO VALUES (2, 'x')")
    source.windows()
    one = source.record("LOOSE")
    assert (one.state, one.trouble, one.mirror_scn) == (
        "failed",
        "unsupported_ddl",
        one.stopped_scn,
    )
    assert why in (one.reason or "")
    assert "redolake table resnapshot DEMO.LOOSE" in (one.way_out or "")
    image = source.lake.image(table_id("LOOSE"))
    assert len(image) == 4
    assert any(row[2] == "before" for row in image)
    source.check_current("TWO")
    source.pipeline.resnapshot_tables([table_id("LOOSE")])
    source.run()
    oracle.run("UPDATE LOOSE SET C = SYSDATE WHERE A = 7")
    source.windows()
    check(oracle, source, "LOOSE")
    assert source.record("LOOSE").state == "ready"


def test_a_move_that_no_row_of_the_redo_tells_is_noticed(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number with which ROWIDs begin is looked at with every window, whatever DDL the redo shows."""
    monkeypatch.setattr("cdc_core.capture.stream_ends.ddl_rows.moves_rows", lambda _ddl: False)
    settle(oracle, source)
    position = source.record("LOOSE").mirror_scn
    oracle.run("ALTER TABLE LOOSE MOVE", "UPDATE LOOSE SET B = 'after' WHERE A = 2")
    settle(oracle, source)
    one = source.record("LOOSE")
    assert (one.state, one.stopped_scn) == ("failed", position)
    source.check_current("TWO")


def test_a_ddl_that_leaves_rows_in_place_is_followed(oracle: Oracle, source: Source) -> None:
    oracle.run("ALTER TABLE LOOSE ADD (D NUMBER(5) DEFAULT 4)")
    oracle.run("INSERT INTO LOOSE (A, D) VALUES (8, 9)", "UPDATE LOOSE SET D = 1 WHERE A = 2")
    oracle.run("CREATE INDEX LOOSE_A ON LOOSE (A)")
    oracle.run("UPDATE LOOSE SET B = 'indexed' WHERE A = 8")
    settle(oracle, source)
    settle(oracle, source)
    assert source.record("LOOSE").state == "ready"
    assert {row[-1] for row in source.lake.image(table_id("LOOSE")) if row[1] == 8} == {9}


def test_without_the_option_the_refusal_names_it_and_what_it_means(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, "LOOSE") as source, pytest.raises(PreflightError) as raised:
        source.run()
    text = str(raised.value)
    assert "no primary key and no unique index" in text
    assert "identity: rowid" in text
    assert "MOVE" in text
    assert "until you resnapshot it" in text
    assert "ADD PRIMARY KEY" not in text


@pytest.mark.parametrize("entry", [{"key": ["ID"]}, {}], ids=["a-key", "its-own-key"])
def test_another_identity_asks_for_new_delta_tables(
    oracle: Oracle, source: Source, entry: dict[str, Any]
) -> None:
    places = [row[0] for row in rows_of(oracle, "LOOSE", source.record("LOOSE").mirror_scn or 0)]
    oracle.run("ALTER TABLE LOOSE ADD (ID NUMBER(9))")
    for number, place in enumerate(places):
        oracle.run(f"UPDATE LOOSE SET ID = {number} WHERE ROWID = '{place}'")
    oracle.run("ALTER TABLE LOOSE ADD PRIMARY KEY (ID)")
    oracle.run("ALTER TABLE LOOSE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
    source.windows()
    check(oracle, source, "LOOSE")
    for attributes in (entry, {"identity": "rowid"}):
        source.configure({"name": "LOOSE", **attributes}, "TWO")
        source.run()
        one = source.record("LOOSE")
        assert one.state == "failed"
        assert "--fresh" in (one.way_out or "")
        source.pipeline.resnapshot_tables([table_id("LOOSE")], fresh=True)
        source.run()
        oracle.run("UPDATE LOOSE SET B = 'known' WHERE ID = 2")
        source.run()
        source.check_exact("LOOSE")
    check(oracle, source, "LOOSE")


PARTITIONED = (
    "CREATE TABLE PARTS (K NUMBER(9), V VARCHAR2(40)) PARTITION BY RANGE (K) (PARTITION P1 VALUES LESS THAN (10),"
    " PARTITION P2 VALUES LESS THAN (20)) ENABLE ROW MOVEMENT"
)


@pytest.fixture
def partitioned(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    oracle.run(PARTITIONED, *(f"INSERT INTO PARTS VALUES ({k}, 'first')" for k in (1, 1, 11)))
    with source_of(oracle, tmp_path) as opened:
        opened.configure({"name": "PARTS", "identity": "rowid"}, "TWO")
        opened.run()
        settle(oracle, opened)
        yield opened


def test_rows_that_go_to_another_partition_are_followed(
    oracle: Oracle, partitioned: Source
) -> None:
    """The redo shows a row go and another one come."""
    oracle.run("ALTER TABLE PARTS ADD PARTITION P3 VALUES LESS THAN (30)")
    oracle.run("UPDATE PARTS SET K = K + 10, V = 'moved'", "INSERT INTO PARTS VALUES (2, 'new')")
    for _ in range(2):
        settle(oracle, partitioned)
        check(oracle, partitioned, "PARTS")
    assert partitioned.record("PARTS").state == "ready"


@pytest.mark.parametrize("is_told", [True, False], ids=["by-its-text", "by-data-objects-alone"])
@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("ALTER TABLE PARTS MOVE PARTITION P1", id="move"),
        pytest.param("ALTER TABLE PARTS SPLIT PARTITION P1 AT (2) INTO (PARTITION A, PARTITION B)", id="split"),
        pytest.param("ALTER TABLE PARTS MERGE PARTITIONS P1, P2 INTO PARTITION P2", id="merge"),
    ],
)  # fmt: skip
def test_partitions_whose_rows_move_take_the_table_out(
    oracle: Oracle,
    partitioned: Source,
    monkeypatch: pytest.MonkeyPatch,
    ddl: str,
    *,
    is_told: bool,
) -> None:
    """Where DDL of a parent does it to a table that is partitioned by reference, no row of the redo names the table."""
    if not is_told:
        monkeypatch.setattr("cdc_core.capture.stream_ends.ddl_rows.moves_rows", lambda _ddl: False)
    position = partitioned.record("PARTS").mirror_scn
    oracle.run(ddl)
    oracle.run("UPDATE PARTS SET V = 'after'")
    settle(oracle, partitioned)
    settle(oracle, partitioned)
    one = partitioned.record("PARTS")
    assert one.state == "failed"
    assert is_told or one.stopped_scn == position
    partitioned.check_current("TWO")


def test_doctor_tells_what_the_identity_means(oracle: Oracle, source: Source) -> None:
    findings, _ = oracle_findings(source.written())
    own = [one for one in findings if one.table == table_id("LOOSE")]
    assert not [one for one in own if one.is_problem]
    [means] = [one for one in own if "identifies its rows by ROWID" in one.problem]
    assert "MOVE" in means.problem
    assert "redolake table resnapshot DEMO.LOOSE" in means.remedy


def test_what_gives_rows_no_rowids_to_know_them_by_is_refused_by_name(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run(
        "CREATE TABLE IOT (ID NUMBER(9) PRIMARY KEY) ORGANIZATION INDEX",
        "CREATE TABLE NOTES (A NUMBER(9), N XMLTYPE)",
    )
    with source_of(oracle, tmp_path) as source:
        source.configure(*({"name": name, "identity": "rowid"} for name in ("IOT", "NOTES")))
        with pytest.raises(PreflightError) as raised:
            source.run()
    text = str(raised.value)
    assert "not for an index-organized table" in text
    assert "needs Oracle 23ai" in text, "whatever its LOBs are"


def test_a_policy_reads_a_table_again_whose_rows_moved(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, policies={"on_unsupported_ddl": "resnapshot"}) as source:
        source.configure(LOOSE, "TWO")
        source.begin()
        oracle.run("ALTER TABLE LOOSE MOVE", "UPDATE LOOSE SET B = 'after' WHERE A = 2")
        for _ in range(2):
            source.run()
        oracle.run("UPDATE LOOSE SET C = SYSDATE WHERE A = 2")
        source.run()
        assert source.record("LOOSE").state == "ready"
        check(oracle, source, "LOOSE")


def test_a_lost_store_and_a_table_taken_anew_from_landing_have_the_same_rows(
    oracle: Oracle, source: Source
) -> None:
    oracle.run(
        "DELETE FROM LOOSE WHERE A = 1 AND ROWNUM = 1", "UPDATE LOOSE SET B = 'x' WHERE A = 1"
    )
    source.windows()
    oracle.run("INSERT INTO LOOSE VALUES (1, 'same', NULL)")
    source.windows()
    source.close()
    for file in source.path.glob("state.db*"):
        file.unlink()
    source.pipeline.rebuild_state()
    oracle.run("UPDATE LOOSE SET B = 'y' WHERE A = 2")
    source.windows()
    check(oracle, source, "LOOSE")
    source.pipeline.rebuild_from_landing(table_id("LOOSE"))
    source.run()
    check(oracle, source, "LOOSE")
    assert source.record("LOOSE").state == "ready"
