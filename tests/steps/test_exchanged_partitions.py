"""EXCHANGE PARTITION that is followed (``on_truncate: follow_or_resnapshot``), through the driver: the partition's rows go, those that came are read."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_emptied_partitions import DAYS, LISTS, MOMENTS, RANGES, create, rows

P, OTHER = table_id("P"), table_id("OTHER")
FOLLOW = {"policies": {"on_truncate": "follow_or_resnapshot"}}

oracle = oracle_with()


def coming(oracle: Oracle, *values: str, name: str = "CAME") -> None:
    """A table of the columns of P with some rows: ID, K, R and a day."""
    oracle.run(
        f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, K NUMBER(9), R VARCHAR2(9), D DATE, T TIMESTAMP(6), NOTE VARCHAR2(20))",
        *(
            f"INSERT INTO {name} (ID, K, R, D, T, NOTE) VALUES ({one}, TIMESTAMP '2026-03-01 00:00:00', 'came')"
            for one in values
        ),
    )


def chunks(source: Source) -> list[tuple[str, str]]:
    """The chunks of P besides its first snapshot, and how far each is."""
    found = source.pipeline.store.chunks.find(P)
    return [(one.snapshot_id[0], one.state) for one in found if one.snapshot_id[0] != "s"]


@pytest.mark.parametrize(
    ("partitioned", "name", "came", "gone"),
    [
        pytest.param(RANGES, "P3", ["15, 11, 'US', DATE '2026-03-02'", "4, 19, 'US', NULL"], [4, 5], id="a-range"),
        pytest.param(LISTS, "EU", ["15, 1, 'it''s', NULL", "16, 1, NULL, NULL"], [1, 2, 3], id="a-list"),
        pytest.param(DAYS, "D2", ["15, 1, 'US', DATE '2026-03-02'"], [2, 3], id="a-day"),
        pytest.param(RANGES, "P4", ["15, 25, 'US', NULL", "16, NULL, 'US', NULL"], [6, 7], id="the-last-range"),
        pytest.param(LISTS, "REST", ["15, 1, 'XX', NULL"], [5, 6, 7], id="the-default", marks=pytest.mark.slow),
        pytest.param(MOMENTS, "T1", ["15, 1, 'XX', NULL"], [1, 3, 5], id="moments", marks=pytest.mark.slow),
        pytest.param(RANGES, "P1", [], [1], id="nothing-came", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_the_rows_of_an_exchanged_partition_go_and_those_that_came_are_read(
    oracle: Oracle, tmp_path: Path, partitioned: str, name: str, came: list[str], gone: list[int]
) -> None:
    """Alone: what else is in the window, in front and behind, comes from the log."""
    create(oracle, partitioned)
    rows(oracle, 1)
    coming(oracle, *came)
    with source_of(oracle, tmp_path, "P", "OTHER", **FOLLOW) as source:
        source.begin()
        oracle.run("UPDATE P SET NOTE = 'in front' WHERE ID IN (1, 4, 7)")
        oracle.run(f"ALTER TABLE P EXCHANGE PARTITION {name} WITH TABLE CAME INCLUDING INDEXES")
        oracle.run(
            "UPDATE P SET NOTE = 'behind' WHERE ID IN (2, 15)",
            "DELETE FROM P WHERE ID = 6",
            "INSERT INTO P (ID, K, R, D) VALUES (20, 12, 'US', DATE '2026-03-02')",
            "INSERT INTO OTHER VALUES (1)",
        )
        source.run()
        record = source.record("P")
        assert (record.state, record.generation, record.snapshot_id) == ("ready", 1, source.record("OTHER").snapshot_id), record.reason  # fmt: skip
        assert chunks(source) == [("x", "applied")]
        source.check_current("P", "OTHER")
        [read] = [one for one in source.reports if one.kind == "chunk-landed" and one.key[0] == "x"]
        assert read.rows <= len(came) + 1, "nothing else is read"
        changes = source.lake.tables[P].changes
        deleted = {one["before"]["ID"] for one in changes if one["_cdc_op"] == "d"}
        assert deleted == {*gone, 6}
        oracle.run("UPDATE P SET NOTE = 'and on'")
        source.windows()
        source.check_current("P")


def story(oracle: Oracle, source: Source) -> None:
    """A window in which a partition is exchanged, with rows in front and behind."""
    create(oracle, RANGES)
    rows(oracle, 1)
    coming(oracle, "15, 11, 'US', NULL", "4, 19, 'US', NULL", "16, 12, 'US', NULL")
    source.run()
    oracle.run("UPDATE P SET NOTE = 'in front' WHERE ID IN (1, 4)")
    oracle.run("ALTER TABLE P EXCHANGE PARTITION P3 WITH TABLE CAME")
    oracle.run("UPDATE P SET NOTE = 'behind' WHERE ID IN (2, 15)", "DELETE FROM P WHERE ID = 16")
    oracle.run("INSERT INTO OTHER VALUES (1)")


def test_the_table_waits_right_before_the_exchange_and_nobody_else_does(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Its windows are kept, and are no work that could be done."""
    with source_of(oracle, tmp_path, "P", "OTHER", **FOLLOW) as source:
        story(oracle, source)
        before = source.lake.image(P)
        [window] = source.windows()
        record = source.record("P")
        assert record.awaits_rows
        assert record.mirror_scn is not None
        assert window.scn_low < record.mirror_scn < window.scn_high
        assert [row[0] for row in source.lake.image(P)] == [row[0] for row in before]
        assert source.pipeline.pending_windows() == []
        [*_, planned] = source.pipeline.store.chunks.find(P)
        assert planned.scn == window.scn_high, (
            "not before the DDL, which Oracle does not look back over"
        )
        assert "still to be read" in (source.status("P").reason or "")
        oracle.run("INSERT INTO OTHER VALUES (2)", "UPDATE P SET NOTE = 'later' WHERE ID IN (4, 7)")
        source.windows()
        source.check_current("OTHER")
        assert source.record("P").mirror_scn == record.mirror_scn
        assert chunks(source) == [("x", "planned")]
        source.run()
        assert not source.record("P").awaits_rows
        source.check_current("P", "OTHER")
        assert source.status("P").reason is None
        source.check_replayed("P", [window])


@pytest.mark.parametrize("where", ["apply_chunk", "truncate", "apply_window"])
def test_a_process_that_ends_at_any_place_does_nothing_twice(
    oracle: Oracle, tmp_path: Path, where: str
) -> None:
    """The chunk is read and not applied; it is applied and the rows from before are still there; the rest of the window is left."""
    with source_of(oracle, tmp_path, "P", "OTHER", **FOLLOW) as source:
        story(oracle, source)
        source.windows()

        def end(call: str, table: object) -> None:
            if call == where and table == P:
                raise KeyboardInterrupt

        source.lake.before = end
        with pytest.raises(KeyboardInterrupt):
            source.run()
        source.lake.before = lambda _call, _table: None
        source.close()
        source.run()
        source.check_current("P", "OTHER")
        assert len(chunks(source)) == 1
        changes = source.lake.tables[P].changes
        deleted = [one["before"]["ID"] for one in changes if one["_cdc_op"] == "d"]
        assert sorted(deleted) == [4, 5, 16]
        source.pipeline.rebuild_from_landing(P)
        source.check_current("P")


@pytest.mark.parametrize("read", [False, True])
def test_a_lost_store_knows_that_rows_are_still_to_be_read(
    oracle: Oracle, tmp_path: Path, read: bool
) -> None:
    """Also where their chunk has landed."""
    with source_of(oracle, tmp_path, "P", "OTHER", **FOLLOW) as source:
        story(oracle, source)
        source.windows()
        if read:
            [key] = source.pipeline.pending_chunks()
            source.pipeline.snapshot_chunk(key)
        source.close()
        for file in source.path.glob("*.db*"):
            file.unlink()
        source.pipeline.rebuild_state()
        source.run()
        assert chunks(source) == [("x", "applied")]
        source.check_current("P", "OTHER")


def test_a_mirror_from_before_the_rows_came_is_noticed(oracle: Oracle, tmp_path: Path) -> None:
    """It was restored from a backup: windows do not bring the rows back, and landing does."""
    with source_of(oracle, tmp_path, "P", "OTHER", **FOLLOW) as source:
        story(oracle, source)
        source.windows()
        backup = deepcopy(source.lake.tables[P])
        source.run()
        oracle.run("UPDATE P SET NOTE = 'and on'")
        source.windows()
        source.lake.tables[P] = backup
        oracle.run("UPDATE P SET NOTE = 'and on and on'")
        source.windows()
        record = source.record("P")
        assert (record.state, record.trouble) == ("failed", None)
        assert "older than rows that were read again, or read without redo" in (record.reason or "")
        source.pipeline.rebuild_from_landing(P)
        source.windows()
        source.check_current("P")


def test_partitions_that_are_exchanged_again_before_their_rows_were_read(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Back and forth in one window, then emptied in the next one, with a transaction of another partition open all the while."""
    with source_of(oracle, tmp_path, "P", "OTHER", **FOLLOW) as source:
        story(oracle, source)
        with oracle.owner() as late:
            late.cursor().execute("UPDATE P SET NOTE = 'late' WHERE ID = 7")
            oracle.run("ALTER TABLE P EXCHANGE PARTITION P3 WITH TABLE CAME")
            oracle.run("INSERT INTO P (ID, K) VALUES (21, 18)")
            oracle.run("ALTER TABLE P EXCHANGE PARTITION P3 WITH TABLE CAME")
            source.windows()
            late.commit()
        oracle.run("INSERT INTO P (ID, K) VALUES (22, 18)")
        source.windows()
        source.run()
        assert chunks(source) == [("x", "applied")] * 3
        source.check_current("P")
        oracle.run("ALTER TABLE P TRUNCATE PARTITION P3", "INSERT INTO P (ID, K) VALUES (23, 18)")
        coming(oracle, "25, -8, 'US', NULL", name="LAST")
        oracle.run("ALTER TABLE P EXCHANGE PARTITION P1 WITH TABLE LAST")
        oracle.run("ALTER TABLE P DROP PARTITION P1", "INSERT INTO P (ID, K) VALUES (24, 1)")
        source.run()
        assert source.record("P").state == "ready"
        source.check_current("P")
        source.pipeline.rebuild_from_landing(P)
        source.check_current("P")


def test_an_update_that_lacks_a_lob_waits_for_the_row(oracle: Oracle, tmp_path: Path) -> None:
    """It is applied behind the chunk, which has the LOB."""
    columns = "(ID NUMBER(9) PRIMARY KEY, K NUMBER(9), V VARCHAR2(20), C CLOB)"
    oracle.run(
        f"CREATE TABLE P {columns} PARTITION BY RANGE (K) (PARTITION P1 VALUES LESS THAN (10), PARTITION P2 VALUES LESS THAN (MAXVALUE))",
        f"CREATE TABLE CAME {columns}",
        "INSERT INTO P VALUES (1, 1, 'first', 'a text')",
        "INSERT INTO CAME VALUES (2, 2, 'came', 'another text')",
    )
    with source_of(oracle, tmp_path, "P", **FOLLOW) as source:
        source.run()
        oracle.run("ALTER TABLE P EXCHANGE PARTITION P1 WITH TABLE CAME")
        source.windows()
        oracle.run("UPDATE P SET V = 'later' WHERE ID = 2")
        source.windows()
        source.run()
        source.check_current("P")
        assert source.lake.image(P) == [(2, 2, "later", "another text")]


def test_without_reading_the_exchange_stops_the_table_and_names_the_policy(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, "P", "OTHER", policies={"on_truncate": "follow"}) as source:
        story(oracle, source)
        source.windows()
        record = source.record("P")
        assert (record.state, record.trouble) == ("failed", "truncate")
        assert "on_truncate: follow_or_resnapshot" in (record.reason or "")
        source.check_current("OTHER")
        assert chunks(source) == []
