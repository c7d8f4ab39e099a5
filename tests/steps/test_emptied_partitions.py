"""DROP and TRUNCATE PARTITION that are followed (``on_truncate: follow``), through the driver: which rows go, in front, behind and around."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdc_core.capture.stream_ends import ddl_rows
from cdc_core.capture.stream_ends.emptied_partitions import rows_of_partitions
from cdc_core.errors import TableStoppedError
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.model.scn import Scn
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id
from tests.steps.test_quarantine import translates

P, OTHER = table_id("P"), table_id("OTHER")
FOLLOW = {"policies": {"on_truncate": "follow"}}
RANGES = (
    "PARTITION BY RANGE (K) (PARTITION P1 VALUES LESS THAN (-5), PARTITION P2 VALUES LESS THAN (10), PARTITION P3 VALUES LESS THAN (20),"
    " PARTITION P4 VALUES LESS THAN (MAXVALUE))"
)
DAYS_OF_REGIONS = (
    "PARTITION BY RANGE (D) SUBPARTITION BY LIST (R) SUBPARTITION TEMPLATE (SUBPARTITION EU VALUES ('DE', 'it''s', NULL),"
    " SUBPARTITION REST VALUES (DEFAULT)) (PARTITION D1 VALUES LESS THAN (DATE '2026-03-02'), PARTITION D2 VALUES LESS THAN (MAXVALUE))"
)
REGIONS_OF_NUMBERS = (
    "PARTITION BY LIST (R) SUBPARTITION BY RANGE (K) SUBPARTITION TEMPLATE (SUBPARTITION LOW VALUES LESS THAN (-5),"
    " SUBPARTITION HIGH VALUES LESS THAN (MAXVALUE)) (PARTITION EU VALUES ('DE', 'it''s', NULL), PARTITION REST VALUES (DEFAULT))"
)
LISTS = "PARTITION BY LIST (R) (PARTITION EU VALUES ('DE', 'it''s', NULL), PARTITION US VALUES ('US'), PARTITION REST VALUES (DEFAULT))"
DAYS = (
    "PARTITION BY RANGE (D) INTERVAL (NUMTODSINTERVAL(1, 'DAY')) (PARTITION D1 VALUES LESS THAN (DATE '2026-03-02'),"
    " PARTITION D2 VALUES LESS THAN (TO_DATE('2026-03-03', 'YYYY-MM-DD')))"
)
MOMENTS = (
    "PARTITION BY RANGE (T) (PARTITION T1 VALUES LESS THAN (TIMESTAMP '2026-03-02 00:00:00.5'),"
    " PARTITION T2 VALUES LESS THAN (MAXVALUE))"
)

oracle = oracle_with()


def create(oracle: Oracle, partitioned: str) -> None:
    oracle.run(
        "CREATE TABLE P (ID NUMBER(9) PRIMARY KEY, K NUMBER(9), R VARCHAR2(9), D DATE, T TIMESTAMP(6), NOTE VARCHAR2(20))"
        f" {partitioned} ENABLE ROW MOVEMENT",
        "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)",
    )


def rows(oracle: Oracle, *keys: int) -> None:
    """Rows on and around all borders, each with a key from these on."""
    values = [
        ("-6", "'DE'", "2026-03-01 23:59:59", "2026-03-02 00:00:00"),
        ("-5", "'it''s'", "2026-03-02 00:00:00", "2026-03-02 00:00:00.5"),
        ("9", "NULL", "2026-03-02 23:59:59", "2026-03-02 00:00:00.499999"),
        ("10", "'US'", "2026-03-03 00:00:00", "2026-03-02 00:00:00.500001"),
        ("19", "'us'", "2026-03-04 12:00:00", "1999-12-31 00:00:00"),
        ("20", "'FR'", "2026-03-07 00:00:00", "2026-04-01 00:00:00"),
        ("NULL", "'US '", "2026-03-07 23:00:00", ""),
    ]  # fmt: skip
    for first in keys:
        oracle.run(
            *(
                f"INSERT INTO P VALUES ({first + at}, {k}, {r}, TO_DATE('{d}', 'YYYY-MM-DD HH24:MI:SS'),"
                f" TO_TIMESTAMP('{t}', 'YYYY-MM-DD HH24:MI:SS.FF'), 'note')"
                for at, (k, r, d, t) in enumerate(values)
            )
        )


@pytest.mark.parametrize(
    ("partitioned", "ddl", "gone"),
    [
        pytest.param(RANGES, "DROP PARTITION P1", [1], id="drop-the-first-range"),
        pytest.param(RANGES, "TRUNCATE PARTITION P3 DROP STORAGE", [4, 5], id="truncate-a-range"),
        pytest.param(RANGES, "TRUNCATE PARTITION P4", [6, 7], id="truncate-the-last-range"),
        pytest.param(RANGES, "DROP PARTITIONS P1, P3", [1, 4, 5], id="drop-two-ranges"),
        pytest.param(LISTS, "DROP PARTITION EU", [1, 2, 3], id="drop-a-list"),
        pytest.param(LISTS, "TRUNCATE PARTITION REST", [5, 6, 7], id="truncate-the-default"),
        pytest.param(DAYS, "TRUNCATE PARTITION D2", [2, 3], id="truncate-a-day"),
        pytest.param(RANGES, "TRUNCATE PARTITION FOR (19) UPDATE INDEXES", [4, 5], id="truncate-for-a-value"),
        pytest.param(RANGES, "DROP PARTITIONS FOR (-6), P3", [1, 4, 5], id="drop-for-a-value-and-by-name", marks=pytest.mark.slow),
        pytest.param(LISTS, "DROP PARTITION FOR ('it''s')", [1, 2, 3], id="drop-for-a-text", marks=pytest.mark.slow),
        pytest.param(DAYS, "DROP PARTITION FOR (TO_DATE('20260307', 'YYYYMMDD'))", [6, 7], id="drop-an-interval-for-a-day", marks=pytest.mark.slow),
        pytest.param(DAYS_OF_REGIONS, "DROP SUBPARTITION D2_EU", [2, 3], id="drop-a-subpartition"),
        pytest.param(DAYS_OF_REGIONS, "TRUNCATE SUBPARTITIONS D1_EU, D2_REST", [1, 4, 5, 6, 7], id="truncate-two-subpartitions", marks=pytest.mark.slow),
        pytest.param(DAYS_OF_REGIONS, "TRUNCATE SUBPARTITION FOR (DATE '2026-03-02', NULL)", [2, 3], id="truncate-a-subpartition-for-values"),
        pytest.param(REGIONS_OF_NUMBERS, "TRUNCATE SUBPARTITION EU_LOW DROP STORAGE", [1], id="truncate-a-subpartition-by-range", marks=pytest.mark.slow),
        pytest.param(REGIONS_OF_NUMBERS, "TRUNCATE PARTITION EU", [1, 2, 3], id="truncate-a-partition-with-subpartitions", marks=pytest.mark.slow),
        pytest.param(MOMENTS, "TRUNCATE PARTITION T1", [1, 3, 5], id="truncate-moments"),
    ],
)  # fmt: skip
def test_the_rows_of_a_partition_go_with_it(
    oracle: Oracle, tmp_path: Path, partitioned: str, ddl: str, gone: list[int]
) -> None:
    """Those that the snapshot and windows brought; what comes behind it stays, the same keys among it."""
    create(oracle, partitioned)
    rows(oracle, 1)
    with source_of(oracle, tmp_path, "P", "OTHER", **FOLLOW) as source:
        source.begin()
        rows(oracle, 11)
        oracle.run("UPDATE P SET NOTE = 'changed' WHERE ID = 12", "DELETE FROM P WHERE ID = 15")
        oracle.run(f"ALTER TABLE P {ddl}")
        oracle.run(
            *(f"INSERT INTO P (ID, K, R, D) VALUES ({key}, 9, 'US', DATE '2026-03-05')" for key in gone[:1]),
            "INSERT INTO OTHER VALUES (1)",
        )  # fmt: skip
        windows = source.windows()
        record = source.record("P")
        assert (record.state, record.generation) == ("ready", 1), record.reason
        source.check_current("P", "OTHER")
        left = [key for key in (*gone, *(10 + key for key in gone)) if key != 15]
        assert source.ops("P") == "c" * 7 + "u" + "d" + "d" * len(left) + "c"
        [*_, one] = [one for one in source.lake.tables[P].changes if one["_cdc_op"] == "d"]
        assert (set(one["before"]), one["after"], bool(one["_cdc_xid"])) == ({"ID"}, None, True)
        source.check_replayed("P", windows)
        oracle.run("UPDATE P SET NOTE = 'and on'")
        source.windows()
        source.check_current("P")


def test_several_ddls_in_one_window_are_each_taken_where_they_stand(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Each as its table's partitions were right before it; the process ends in front of each, and the tables are made anew from landing."""
    create(oracle, RANGES)
    rows(oracle, 1)
    with source_of(oracle, tmp_path, "P", **FOLLOW) as source:
        source.begin()
        oracle.run("ALTER TABLE P TRUNCATE PARTITION P3")
        oracle.run("INSERT INTO P (ID, K) VALUES (30, 15)", "UPDATE P SET K = 12 WHERE ID = 3")
        oracle.run("ALTER TABLE P SPLIT PARTITION P3 AT (13) INTO (PARTITION P3, PARTITION P3B)")
        oracle.run("ALTER TABLE P DROP PARTITION P3")
        oracle.run("INSERT INTO P (ID, K) VALUES (31, 12)")
        oracle.run("TRUNCATE TABLE P", "INSERT INTO P (ID, K) VALUES (32, 15)")
        oracle.run("ALTER TABLE P DROP PARTITION P3B", "INSERT INTO P (ID, K) VALUES (33, 15)")
        calls = iter(range(10))

        def end(call: str, _table: object) -> None:
            if call == "truncate" and next(calls) % 2 == 0:
                raise KeyboardInterrupt

        source.lake.before = end
        for _ in range(4):
            with pytest.raises(KeyboardInterrupt):
                source.windows()
            source.close()
        source.windows()
        source.lake.before = lambda _call, _table: None
        assert source.record("P").state == "ready", source.record("P").reason
        source.check_current("P")
        assert source.ops("P") == "ddcdcdctcdc"
        source.pipeline.rebuild_from_landing(P)
        source.check_current("P")
        assert source.lake.tables[P].generation == 2


def test_a_lost_store_knows_that_a_partition_is_still_to_be_emptied(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Nothing but the DDL is in the window, which was captured and not applied."""
    create(oracle, RANGES)
    rows(oracle, 1)
    with source_of(oracle, tmp_path, "P", **FOLLOW) as source:
        source.begin()

        def end(call: str, _table: object) -> None:
            if call == "truncate":
                raise KeyboardInterrupt

        source.lake.before = end
        oracle.run("ALTER TABLE P DROP PARTITION P3")
        with pytest.raises(KeyboardInterrupt):
            source.windows()
        source.lake.before = lambda _call, _table: None
        source.close()
        for file in source.path.glob("*.db*"):
            file.unlink()
        source.pipeline.rebuild_state()
        source.windows()
        assert [row[0] for row in source.lake.image(P)] == [1, 2, 3, 6, 7]
        source.check_current("P")


@pytest.mark.parametrize(
    ("partitioned", "ddl", "more", "reason"),
    [
        pytest.param("PARTITION BY HASH (K) (PARTITION H1, PARTITION H2)", "TRUNCATE PARTITION H1", {}, "partitioned by HASH", id="hash"),
        pytest.param(
            "PARTITION BY LIST (R) SUBPARTITION BY HASH (K) SUBPARTITIONS 1 (PARTITION EU VALUES ('DE', 'US'))",
            "TRUNCATE SUBPARTITION FOR ('DE', 1)", {}, "partitioned by HASH", id="subpartitions-by-hash", marks=pytest.mark.slow,
        ),
        pytest.param(RANGES, "DROP PARTITION FOR (-5 - 1)", {}, "unknown form", id="for-an-expression"),
        pytest.param(
            "PARTITION BY RANGE (K, ID) (PARTITION A VALUES LESS THAN (1, 1), PARTITION B VALUES LESS THAN (MAXVALUE, MAXVALUE))",
            "DROP PARTITION A", {}, "not partitioned by one column", id="two-columns",
        ),
        pytest.param(LISTS, "DROP PARTITION EU", {"columns_mask": {"R": "stars(3)"}}, "values of column R", id="masked"),
        pytest.param(LISTS, "DROP PARTITION EU", {"columns_exclude": ["R"]}, "values of column R", id="excluded"),
        pytest.param(RANGES, "DROP PARTITION P1", {"columns_as": {"K": "text"}}, "does not hold the values of column K", id="held-as-text"),
        pytest.param(RANGES, "DROP PARTITION P1", {"identity": "rowid"}, "no key identifies", id="no-key"),
        pytest.param(RANGES, "EXCHANGE PARTITION P1 WITH TABLE LIKE_P", {}, "without redo", id="exchange"),
    ],
)  # fmt: skip
def test_where_nothing_says_which_rows_went_the_table_stops(
    oracle: Oracle, tmp_path: Path, partitioned: str, ddl: str, more: dict[str, object], reason: str
) -> None:
    """With all rows from before, by the policy's trouble, and alone."""
    key = "" if more.get("identity") else "PRIMARY KEY"
    columns = f"(ID NUMBER(9) {key}, K NUMBER(9), R VARCHAR2(9))"
    oracle.run(
        f"CREATE TABLE P {columns} {partitioned}",
        f"CREATE TABLE LIKE_P {columns}",
        "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)",
        "INSERT INTO P VALUES (1, 1, 'DE')",
    )
    with source_of(oracle, tmp_path, **FOLLOW) as source:
        source.configure({"name": "P", **more}, "OTHER")
        source.run()
        oracle.run("INSERT INTO P VALUES (2, 2, 'US')", f"ALTER TABLE P {ddl}")
        oracle.run("INSERT INTO OTHER VALUES (1)")
        source.windows()
        record = source.record("P")
        assert (record.state, record.trouble) == ("failed", "truncate")
        assert reason in (record.reason or "")
        assert len(source.lake.image(P)) == 2
        source.check_current("OTHER")


@pytest.mark.parametrize("where", ["IN FRONT", "INSIDE"])
def test_a_value_in_quarantine_does_not_say_whose_partition_its_row_was(
    oracle: Oracle, tmp_path: Path, where: str
) -> None:
    """The row went into the partition that is truncated, by a delete and an insert that cannot be decoded: the mirror has the value from before."""
    create(oracle, RANGES)
    rows(oracle, 1)
    policies = {"on_truncate": "follow", "on_undecodable": "quarantine"}
    with source_of(oracle, tmp_path, "P", "OTHER", policies=policies) as source:
        source.begin()
        translates(
            oracle, not_these=("unreadable", 'delete from "DEMO"."P" where "ID" = \'\'3\'\'')
        )
        oracle.run("UPDATE P SET K = 15, NOTE = 'unreadable' WHERE ID = 3")
        if where == "IN FRONT":
            source.windows()
        oracle.run("ALTER TABLE P TRUNCATE PARTITION P3", "INSERT INTO OTHER VALUES (1)")
        source.windows()
        record = source.record("P")
        assert (record.state, record.trouble) == ("failed", "truncate")
        assert "rows that are in quarantine" in (record.reason or "")
        assert "table resnapshot DEMO.P" in (record.way_out or "")
        assert len(source.lake.image(P)) == 7
        source.check_current("OTHER")
        source.configure({"name": "P", "on_truncate": "follow_or_resnapshot"}, "OTHER")
        source.run()
        assert (source.record("P").state, source.record("P").in_quarantine) == ("ready", 0)
        source.check_current("P")
        oracle.run("ALTER TABLE P DROP PARTITION P2")
        source.windows()
        assert source.record("P").state == "ready"
        source.check_current("P")


def test_a_table_that_cannot_be_followed_is_read_again_by_its_policy(
    oracle: Oracle, tmp_path: Path
) -> None:
    """What can be followed is, so that the table keeps its stream."""
    create(oracle, "PARTITION BY HASH (K) (PARTITION H1, PARTITION H2)")
    rows(oracle, 1)
    with source_of(
        oracle, tmp_path, "P", policies={"on_truncate": "follow_or_resnapshot"}
    ) as source:
        source.begin()
        oracle.run("TRUNCATE TABLE P")
        rows(oracle, 1)
        source.run()
        assert source.ops("P") == "t" + "c" * 7
        oracle.run("ALTER TABLE P TRUNCATE PARTITION H1", "INSERT INTO P (ID, K) VALUES (30, 15)")
        source.run()
        source.check_current("P")
        status = source.status("P")
        [answer] = status.read_again
        assert (status.state, answer.policy) == ("ready", "on_truncate")
        assert "partitioned by HASH" in answer.reason


def test_a_dictionary_that_is_not_shown_stops_the_table(oracle: Oracle, tmp_path: Path) -> None:
    """The present bounds may be others."""
    create(oracle, RANGES)
    rows(oracle, 1)
    with source_of(oracle, tmp_path, "P", **FOLLOW) as source:
        source.begin()
        oracle.run("ALTER TABLE P DROP PARTITION P3")
        oracle.server.faults.arm(
            Fault(FaultKind.ORA_ERROR, sql_contains="FROM ALL_TAB_PARTITIONS AS OF", code=1031, times=0)
        )  # fmt: skip
        source.windows()
        assert source.record("P").trouble == "truncate"
        assert "ORA-01031" in (source.record("P").reason or "")


def test_a_chunk_from_before_a_partition_went_is_refused_behind_it(
    oracle: Oracle, tmp_path: Path
) -> None:
    """It may have rows of the partition that the mirror did not have. One from behind it is taken in front of its window."""
    create(oracle, RANGES)
    rows(oracle, 1)
    with source_of(oracle, tmp_path, "P", **FOLLOW) as source:
        source.begin()
        oracle.run("ALTER TABLE P TRUNCATE PARTITION P1", "INSERT INTO P (ID, K) VALUES (1, -7)")
        [late] = source.pipeline.start_snapshot([P])
        source.pipeline.snapshot_chunk(late)
        source.pipeline.apply_chunk(late)
        source.windows()
        source.check_current("P")
        [early] = source.pipeline.start_snapshot([P])
        source.pipeline.snapshot_chunk(early)
        oracle.run("ALTER TABLE P DROP PARTITION P3")
        source.windows()
        with pytest.raises(TableStoppedError, match="were removed with a partition"):
            source.pipeline.apply_chunk(early)
        assert source.record("P").state == "failed"


def test_a_partition_of_an_interval_that_comes_in_between_keeps_its_rows(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An insert makes it right below the one that goes, after the row of the DDL and before its commit."""
    oracle.run(
        "CREATE TABLE P (ID NUMBER(9) PRIMARY KEY, K NUMBER(9)) PARTITION BY RANGE (K) INTERVAL (10) (PARTITION P1 VALUES LESS THAN (10))",
        "INSERT INTO P VALUES (1, 45)",
    )

    def read_earlier(*args: Any, row_scn: Scn, scn: Scn) -> tuple[PartitionRows, ...]:
        return rows_of_partitions(*args, row_scn=Scn(row_scn - 6), scn=scn)

    monkeypatch.setattr(ddl_rows, "rows_of_partitions", read_earlier)
    with source_of(oracle, tmp_path, "P", **FOLLOW) as source:
        source.run()
        oracle.run("INSERT INTO P VALUES (2, 35)")
        [name] = [name for name, high in oracle_partitions(oracle) if high == "50"]
        oracle.run(f"ALTER TABLE P DROP PARTITION {name}")
        source.windows()
        assert source.lake.image(P) == [(2, 35)], source.record("P").reason
        source.check_current("P")


def oracle_partitions(oracle: Oracle) -> list[tuple[str, str]]:
    with oracle.owner() as connection:
        query = "SELECT PARTITION_NAME, HIGH_VALUE FROM USER_TAB_PARTITIONS WHERE TABLE_NAME = 'P'"
        return list(connection.cursor().execute(query))


def test_a_replay_mends_what_stands_in_front_of_the_ddl(oracle: Oracle, tmp_path: Path) -> None:
    """What the window changed before it, in other partitions, counts still."""
    create(oracle, RANGES)
    rows(oracle, 1)
    with source_of(oracle, tmp_path, "P", **FOLLOW) as source:
        source.begin()
        oracle.run("UPDATE P SET R = 'new' WHERE ID = 3", "ALTER TABLE P DROP PARTITION P1")
        [window] = source.windows()
        values, scn, ordinal = source.lake.tables[P].rows[(3,)]
        source.lake.tables[P].rows[(3,)] = {**values, "R": "damaged"}, scn, ordinal
        source.pipeline.replay_window(window)
        source.check_current("P")
