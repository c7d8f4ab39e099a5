"""Each table has its own fate: what one table meets stops that table, and never delays or damages the others."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cdc_core.errors import (
    DecodeError,
    LakeError,
    NotYetError,
    SparkMemoryError,
    SparkUnavailableError,
    StoreUnavailableError,
)
from cdc_core.model.identifiers import TableId
from cdc_core.steps.windows import interleaving
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

oracle = oracle_with(
    *(
        f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))"
        for name in ("ONE", "TWO", "LATE")
    ),
    *(f"INSERT INTO {name} VALUES (1, 'first')" for name in ("ONE", "TWO", "LATE")),
)
source = capturing("ONE", "TWO")
"""ONE and TWO, snapshotted, with one window."""


def test_the_harness_mirrors_oracle(oracle: Oracle, source: Source) -> None:
    oracle.run(
        "INSERT INTO ONE VALUES (2, 'second')",
        "UPDATE ONE SET ID = 3, V = NULL WHERE ID = 1",
        "DELETE FROM TWO WHERE ID = 1",
    )
    source.windows()
    source.check_current("ONE", "TWO")
    assert source.lake.image(table_id("ONE")) == [(2, "second"), (3, None)]


def test_a_ddl_that_is_not_followed_ends_one_stream_and_no_other(
    oracle: Oracle, source: Source
) -> None:
    """What committed before the DDL still arrives: a dropped table cannot be read again."""
    oracle.run("INSERT INTO ONE VALUES (2, 'last')", "INSERT INTO TWO VALUES (2, 'x')")
    oracle.run("DROP TABLE ONE PURGE")
    oracle.run("INSERT INTO TWO VALUES (3, 'y')")
    source.windows()
    source.check_current("TWO")
    one = source.record("ONE")
    assert (one.state, one.mirror_scn) == ("failed", one.stopped_scn)
    assert "redolake table resnapshot DEMO.ONE" in (one.way_out or "")
    assert one.since is not None
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "last")]
    oracle.run("INSERT INTO TWO VALUES (4, 'z')")
    source.windows()
    source.check_current("TWO")


def test_a_truncated_table_leaves_right_before_it(oracle: Oracle, source: Source) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'gone soon')")
    oracle.run("TRUNCATE TABLE ONE")
    oracle.run("INSERT INTO ONE VALUES (3, 'after')", "INSERT INTO TWO VALUES (2, 'x')")
    [report] = [one for one in source.pipeline.run_windows() if one.kind == "window-captured"]
    assert [end.table.name for end in report.stopped] == ["ONE"]
    source.check_current("TWO")
    assert source.record("ONE").state == "failed"
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "gone soon")]


def test_a_row_that_cannot_be_applied_stops_its_table_alone(oracle: Oracle, source: Source) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'a')", "INSERT INTO TWO VALUES (2, 'a')")
    source.lake.fail(table_id("ONE"), DecodeError("a row is not understood", hint="Report it."))
    before = source.record("ONE").mirror_scn
    reports = [one for one in source.pipeline.run_windows() if one.kind == "window-applied"]
    assert [end.table.name for report in reports for end in report.stopped] == ["ONE"]
    source.check_current("TWO")
    one = source.record("ONE")
    assert (one.state, one.mirror_scn, one.stopped_scn) == ("failed", before, None)
    assert "redolake table resume" in (one.way_out or "")
    oracle.run("INSERT INTO ONE VALUES (3, 'b')", "INSERT INTO TWO VALUES (3, 'b')")
    source.windows()
    source.check_current("TWO")
    source.check_exact("TWO")
    assert source.record("ONE").mirror_scn == before


def test_a_table_that_left_and_then_fails_in_the_lake_holds_nothing_up(
    oracle: Oracle, source: Source
) -> None:
    """The rest that belongs to it waits by itself; windows are finished, and its rest is taken by one command."""
    oracle.run("INSERT INTO ONE VALUES (2, 'last')", "INSERT INTO TWO VALUES (2, 'x')")
    oracle.run("DROP TABLE ONE PURGE")
    source.lake.fail(table_id("ONE"), DecodeError("a row is not understood", hint="Report it."))
    source.windows()
    assert source.pipeline.pending_windows() == []
    assert source.pipeline.status().windows_captured == 0
    assert "not understood" in (source.status("ONE").rest_waits or "")
    oracle.run("INSERT INTO TWO VALUES (3, 'y')")
    source.windows()
    source.check_current("TWO")
    source.pipeline.resume_tables([table_id("ONE")])
    source.windows()
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "last")]
    one = source.record("ONE")
    assert (one.state, one.rest_waits, one.mirror_scn) == ("failed", None, one.stopped_scn)
    assert source.pipeline.pending_windows() == []


def test_a_table_that_left_can_be_taken_out(oracle: Oracle, source: Source) -> None:
    """Its stream keeps its end: the windows that followed are nothing that it waits for."""
    oracle.run("DROP TABLE ONE PURGE")
    source.windows()
    end = source.record("ONE").stopped_scn
    for number in (2, 3):
        oracle.run(f"INSERT INTO TWO VALUES ({number}, 'x')")
        source.windows()
    source.configure("TWO")
    source.run()
    one = source.record("ONE")
    assert (one.state, one.stopped_scn) == ("removed", end)
    assert source.pipeline.pending_windows() == []


def test_a_paused_table_that_leaves_stays_as_it_is(oracle: Oracle, source: Source) -> None:
    source.pipeline.pause_tables([table_id("ONE")])
    oracle.run("INSERT INTO ONE VALUES (2, 'last')")
    oracle.run("TRUNCATE TABLE ONE")
    source.windows()
    assert source.lake.image(table_id("ONE")) == [(1, "first")]
    assert source.pipeline.pending_windows() == []
    source.pipeline.resume_tables([table_id("ONE")])
    source.windows()
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "last")]


def test_a_table_comes_back_into_new_delta_tables_where_its_own_cannot_hold_it(
    oracle: Oracle, source: Source
) -> None:
    """One command, whatever has become of the table."""
    for statements in (
        ["UPDATE ONE SET V = NULL", "ALTER TABLE ONE MODIFY (V DATE)"],
        ["UPDATE ONE SET V = NULL", "ALTER TABLE ONE MODIFY (V VARCHAR2(20))"],
        ["DROP TABLE ONE PURGE", "CREATE TABLE ONE (K NUMBER(9) PRIMARY KEY)"],
    ):
        for statement in statements:
            oracle.run(statement)
        source.windows()
        generation = source.record("ONE").generation
        source.pipeline.resnapshot_tables([table_id("ONE")])
        source.run()
        source.check_current("ONE", "TWO")
        assert source.record("ONE").generation == generation + 1


def test_a_chunk_of_an_earlier_stream_is_never_applied_again(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Its rows are of another time than the Delta tables that were begun since: what was deleted between would come back."""
    with source_of(oracle, tmp_path, "ONE") as source:
        [old] = source.pipeline.start_snapshot()
        source.run()
        oracle.run("DELETE FROM ONE WHERE ID = 1")
        source.pipeline.resnapshot_tables([table_id("ONE")], fresh=True)
        source.run()
        before = source.lake.image(table_id("ONE"))
        for _ in range(2):
            report = source.pipeline.apply_chunk(old)
            assert report.repeated
            assert source.lake.image(table_id("ONE")) == before


def test_a_chunk_of_a_snapshot_that_was_given_up_stops_nothing(
    oracle: Oracle, source: Source
) -> None:
    """A run that still goes over the old chunks when the table joins anew."""
    source.configure("ONE", "TWO", "LATE")
    [old] = source.pipeline.start_snapshot()
    source.pipeline.snapshot_chunk(old)
    source.pipeline.remove_tables([table_id("LATE")])
    oracle.run("INSERT INTO LATE VALUES (2, 'new')")
    source.pipeline.add_tables([table_id("LATE")])
    for step in (source.pipeline.snapshot_chunk, source.pipeline.apply_chunk):
        with pytest.raises(NotYetError, match="no longer planned"):
            step(old)
    assert source.record("LATE").state == "snapshotting"
    source.run()
    source.check_current("ONE", "TWO", "LATE")


def test_a_table_that_failed_in_the_lake_goes_on_from_landing(
    oracle: Oracle, source: Source
) -> None:
    """Its redo was captured all the time: no row needs to be read from Oracle again."""
    for number in (2, 3):
        oracle.run(f"INSERT INTO ONE VALUES ({number}, 'a')")
        if number == 2:
            source.lake.fail(table_id("ONE"), LakeError("no space"))
        source.windows()
    source.pipeline.resume_tables([table_id("ONE")])
    source.windows()
    source.check_current("ONE", "TWO")


def test_what_is_not_about_a_table_stops_all(oracle: Oracle, source: Source) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'a')")
    source.lake.fail(table_id("ONE"), StoreUnavailableError("the store is down"))
    with pytest.raises(StoreUnavailableError):
        source.windows()
    assert source.record("ONE").state == "ready"
    source.windows()
    source.check_current("ONE", "TWO")


def test_what_stops_every_table_of_a_window_is_not_about_a_table(
    oracle: Oracle, source: Source
) -> None:
    """A full disk does not make every table fail."""
    oracle.run("INSERT INTO ONE VALUES (2, 'a')", "INSERT INTO TWO VALUES (2, 'a')")
    for name in ("ONE", "TWO"):
        source.lake.fail(table_id(name), LakeError("no space left on device"))
    with pytest.raises(LakeError):
        source.windows()
    assert {source.record(name).state for name in ("ONE", "TWO")} == {"ready"}
    source.windows()
    source.check_current("ONE", "TWO")


NO_MEMORY = SparkMemoryError("merging a window into the mirror: Spark ran out of memory", table=table_id("ONE"))  # fmt: skip
JVM_ENDED = SparkUnavailableError("merging a window into the mirror: Spark's JVM has ended")


@pytest.mark.parametrize("times", [1, 2])
def test_a_table_for_which_spark_has_not_enough_memory_stops_alone(
    oracle: Oracle, source: Source, times: int
) -> None:
    """Its JVM ends, and with it the work on the table beside it. What both need at once, each may get by itself."""
    oracle.run("INSERT INTO ONE VALUES (2, 'a')", "INSERT INTO TWO VALUES (2, 'a')")
    source.lake.fail(table_id("ONE"), NO_MEMORY, times=times)
    source.lake.fail(table_id("TWO"), JVM_ENDED)
    source.windows()
    source.check_current("TWO")
    if times == 1:
        source.check_current("ONE")
        return
    status = source.status("ONE")
    assert status.state == "failed"
    assert "Spark ran out of memory, for this table alone" in str(status.reason)
    assert str(status.way_out).startswith("Raise lake.driver_memory")
    oracle.run("INSERT INTO ONE VALUES (3, 'a')", "INSERT INTO TWO VALUES (3, 'a')")
    source.windows()
    source.check_current("TWO")
    source.pipeline.resume_tables([table_id("ONE")])
    source.windows()
    source.check_current("ONE", "TWO")


def test_a_spark_that_ends_again_and_again_is_about_no_table(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'a')", "INSERT INTO TWO VALUES (2, 'a')")
    for name in ("ONE", "TWO"):
        source.lake.fail(table_id(name), JVM_ENDED)
    with pytest.raises(SparkUnavailableError):
        source.windows()
    source.lake.fail(table_id("ONE"), NO_MEMORY, times=2)
    source.lake.fail(table_id("TWO"), JVM_ENDED, times=2)
    with pytest.raises(SparkUnavailableError):
        source.windows()
    for name in ("ONE", "TWO"):
        source.lake.fail(table_id(name), NO_MEMORY, times=2)
    with pytest.raises(LakeError, match="ran out of memory"):
        source.windows()
    assert {source.record(name).state for name in ("ONE", "TWO")} == {"ready"}
    source.windows()
    source.check_current("ONE", "TWO")


@pytest.mark.parametrize("times", [1, 2])
def test_a_chunk_for_which_spark_has_not_enough_memory_stops_its_table_alone(
    oracle: Oracle, source: Source, times: int
) -> None:
    source.configure("ONE", "TWO", "LATE")
    source.lake.fail(table_id("LATE"), NO_MEMORY, times=times)
    oracle.run("INSERT INTO ONE VALUES (2, 'x')")
    source.run()
    source.check_current("ONE", "TWO")
    if times == 1:
        source.check_current("LATE")
        return
    assert source.record("LATE").state == "failed"
    source.pipeline.resume_tables([table_id("LATE")])
    source.run()
    source.check_current("LATE")


def test_a_paused_table_is_captured_and_takes_its_backlog_when_resumed(
    oracle: Oracle, source: Source
) -> None:
    source.pipeline.pause_tables([table_id("ONE")])
    before = source.record("ONE").mirror_scn
    for number in (2, 3):
        oracle.run(
            f"INSERT INTO ONE VALUES ({number}, 'a')", f"INSERT INTO TWO VALUES ({number}, 'a')"
        )
        source.windows()
        source.check_current("TWO")
    assert source.record("ONE").mirror_scn == before
    assert source.pipeline.pending_windows() == []
    source.pipeline.resume_tables([table_id("ONE")])
    assert len(source.pipeline.pending_windows()) == 2
    source.windows()
    source.check_current("ONE", "TWO")


# --- joining ------------------------------------------------------------------------------------


def test_a_table_joins_late_while_windows_go_on(oracle: Oracle, source: Source) -> None:
    """A transaction that was open when it joined, with rows from before, is whole; nothing is doubled."""
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO LATE VALUES (10, 'open since long')")
        cursor.execute("INSERT INTO ONE VALUES (10, 'the same transaction')")
        for number in (2, 3):
            oracle.run(
                f"INSERT INTO LATE VALUES ({number}, 'unseen')",
                f"INSERT INTO ONE VALUES ({number}, 'x')",
            )
            source.windows()
        cursor.execute("UPDATE LATE SET V = 'still open' WHERE ID = 10")
        source.configure("ONE", "TWO", "LATE")
        source.pipeline.start_snapshot()
        assert source.record("LATE").state == "snapshotting"
        oracle.run("INSERT INTO LATE VALUES (4, 'after the snapshot')")
        source.windows()
        source.check_current("ONE", "TWO")
        cursor.execute("INSERT INTO LATE VALUES (11, 'and on')")
        connection.commit()
    source.windows()
    assert source.record("LATE").mirror_scn is None
    source.run()
    source.check_current("ONE", "TWO", "LATE")
    assert (10, "still open") in source.lake.image(table_id("LATE"))
    rows = [
        change
        for change in source.lake.tables[table_id("LATE")].changes
        if change["_cdc_op"] == "c"
    ]
    assert sorted(change["after"]["ID"] for change in rows) == [4, 10, 11]


def test_windows_go_on_between_the_chunks_of_a_table_that_joins(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot may last for hours: the other tables stay current all the time. These chunks take less than the windows, which wait for their
    share of the time otherwise."""
    monkeypatch.setattr(interleaving, "CHUNKS_PER_ROUND", 0)
    oracle.run("INSERT INTO LATE SELECT LEVEL + 1, 'first' FROM DUAL CONNECT BY LEVEL <= 350")
    with source_of(oracle, tmp_path, "ONE", "TWO", snapshot={"chunk_rows": 100}) as source:
        source.run()
        source.configure("ONE", "TWO", "LATE")
        current: list[object] = []
        for report in source.pipeline.run_once():
            if report.kind == "chunk-applied":
                oracle.run(f"INSERT INTO ONE VALUES ({len(current) + 100}, 'meanwhile')")
                oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
                current.append(len(source.lake.image(table_id("ONE"))))
        assert current == list(range(1, len(current) + 1)), (
            "each chunk finds what came before the last one"
        )
        assert len(current) == 4
        source.run()
        source.check_current("ONE", "TWO", "LATE")


def test_a_window_that_is_stopped_stops_no_snapshot(oracle: Oracle, source: Source) -> None:
    """It is tried again behind the chunks, and told then."""
    source.configure("ONE", "TWO", "LATE")
    oracle.run("INSERT INTO ONE VALUES (2, 'x')")
    source.lake.fail(table_id("ONE"), StoreUnavailableError("landing is full"), times=9)
    source.lake.fail(table_id("TWO"), StoreUnavailableError("landing is full"), times=9)
    with pytest.raises(StoreUnavailableError):
        source.run()
    assert source.record("LATE").state == "ready"
    assert source.lake.image(table_id("LATE")) == [(1, "first")]


def test_what_ended_before_the_snapshot_is_not_read_again(oracle: Oracle, source: Source) -> None:
    """A transaction that ended, and one that was rolled back, between the oldest open one and the snapshot."""
    with oracle.owner() as old:
        old.cursor().execute("INSERT INTO ONE VALUES (10, 'keeps mining_low low')")
        oracle.run("INSERT INTO LATE VALUES (2, 'committed before')")
        with oracle.owner() as undone:
            undone.cursor().execute("INSERT INTO LATE VALUES (3, 'rolled back')")
            undone.rollback()
        source.windows()
        oracle.run("INSERT INTO LATE VALUES (4, 'between')")
        source.configure("ONE", "TWO", "LATE")
        source.run()
        old.commit()
    source.windows()
    source.check_current("ONE", "TWO", "LATE")
    assert source.lake.tables[table_id("LATE")].changes == []


def test_a_table_comes_back_into_its_delta_tables(oracle: Oracle, source: Source) -> None:
    """Rows of the transaction that was open all the time are taken once, although they landed twice."""
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO ONE VALUES (10, 'open all the time')")
        source.windows()
        oracle.run("INSERT INTO ONE VALUES (2, 'before')")
        source.windows()
        source.pipeline.remove_tables([table_id("ONE")])
        oracle.run("INSERT INTO ONE VALUES (3, 'missed')", "DELETE FROM ONE WHERE ID = 2")
        source.windows()
        assert source.record("ONE").state == "removed"
        source.pipeline.add_tables([table_id("ONE")])
        source.run()
        source.check_current("ONE", "TWO")
        connection.commit()
    source.windows()
    source.check_current("ONE", "TWO")
    assert sorted(key for (key,) in source.lake.tables[table_id("ONE")].rows) == [1, 3, 10]


def test_one_command_brings_a_truncated_table_back(oracle: Oracle, source: Source) -> None:
    oracle.run("TRUNCATE TABLE ONE")
    oracle.run("INSERT INTO ONE VALUES (5, 'new')")
    source.windows()
    assert source.record("ONE").state == "failed"
    source.pipeline.resnapshot_tables([table_id("ONE")])
    source.run()
    source.check_current("ONE", "TWO")
    assert source.record("ONE").reason is None


def test_the_way_out_of_a_table_with_a_quoted_name_can_be_typed_as_it_is(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Another table has the name that an unquoted one folds to; signals name the table as the hint does."""
    oracle.run(
        *(
            f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))"
            for name in ('"Dept"', "DEPT")
        ),
        """INSERT INTO "Dept" VALUES (1, 'a')""",
    )
    with source_of(oracle, tmp_path, "DEPT", '"Dept"') as source:
        source.run()
        oracle.run('TRUNCATE TABLE "Dept"', """INSERT INTO "Dept" VALUES (2, 'b')""")
        source.windows()
        assert source.record("DEPT").state == "ready"
        way_out = source.record("Dept").way_out or ""
        [command] = re.findall("`redolake table resnapshot (.*?)`", way_out)
        source.pipeline.resnapshot_tables([TableId.parse(*shlex.split(command))])
        source.run()
        source.check_current("DEPT", "Dept")
        assert source.lake.image(table_id("Dept")) == [(2, "b")]


def test_a_table_that_cannot_join_keeps_nobody_from_it(oracle: Oracle, source: Source) -> None:
    """One without key, one that is not there, and a good one; the mended one is added by one command."""
    oracle.run("CREATE TABLE KEYLESS (A NUMBER(9))")
    source.configure("ONE", "TWO", "KEYLESS", "NOWHERE", "LATE")
    reports = source.run()
    source.check_current("ONE", "TWO", "LATE")
    stopped = {end.table.name for report in source.reports for end in report.stopped}
    assert stopped == {"KEYLESS", "NOWHERE"}
    assert reports
    assert "redolake table add DEMO.KEYLESS" in (source.record("KEYLESS").way_out or "")
    oracle.run("ALTER TABLE KEYLESS ADD PRIMARY KEY (A)")
    source.pipeline.add_tables([table_id("KEYLESS")])
    source.run()
    source.check_current("ONE", "TWO", "LATE", "KEYLESS")


def test_the_configuration_takes_tables_out_and_in(oracle: Oracle, source: Source) -> None:
    source.configure("ONE")
    oracle.run("INSERT INTO TWO VALUES (2, 'x')", "INSERT INTO ONE VALUES (2, 'x')")
    source.run()
    two = source.record("TWO")
    assert (two.state, two.asked_by) == ("removed", "configuration")
    source.check_current("ONE")
    assert source.lake.image(table_id("TWO")) == [(1, "first")]
    source.configure("ONE", "TWO")
    source.run()
    source.check_current("ONE", "TWO")


def test_what_an_operator_removed_stays_removed(oracle: Oracle, source: Source) -> None:
    source.pipeline.remove_tables([table_id("TWO")])
    source.run()
    assert source.record("TWO").state == "removed"
    source.configure("ONE", "TWO")
    source.run()
    assert source.record("TWO").state == "removed"


def test_a_snapshot_goes_on_where_its_trouble_stopped_it(oracle: Oracle, source: Source) -> None:
    source.configure("ONE", "TWO", "LATE")
    source.lake.fail(table_id("LATE"), LakeError("a column name is refused"))
    source.run()
    assert source.record("LATE").state == "failed"
    source.check_current("ONE", "TWO")
    source.pipeline.resume_tables([table_id("LATE")])
    assert source.record("LATE").state == "snapshotting"
    source.run()
    source.check_current("ONE", "TWO", "LATE")
