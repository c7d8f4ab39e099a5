"""TRUNCATE TABLE that is followed (``on_truncate: follow``), through the driver: rows before, behind and around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

T, OTHER = table_id("T"), table_id("OTHER")
TRUNCATE = "TRUNCATE TABLE T"

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), NOTE CLOB)",
    "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20))",
    *(f"INSERT INTO T VALUES ({key}, 'a{key}', 'note {key}')" for key in range(1, 6)),
    "INSERT INTO OTHER VALUES (1, 'other')",
)
source = capturing("T", "OTHER", policies={"on_truncate": "follow"})


def before(oracle: Oracle) -> None:
    oracle.run(
        "INSERT INTO T VALUES (6, 'a6', NULL)",
        "UPDATE T SET A = 'changed' WHERE ID = 1",
        "UPDATE T SET ID = 20 WHERE ID = 2",
        "DELETE FROM T WHERE ID = 3",
        "UPDATE OTHER SET A = 'before' WHERE ID = 1",
    )


def after(oracle: Oracle) -> None:
    """Keys that were there before, and new ones."""
    oracle.run(
        "INSERT INTO T VALUES (1, 'again', 'new note')",
        "INSERT INTO T VALUES (7, 'a7', NULL)",
        "UPDATE T SET A = 'a7 changed' WHERE ID = 7",
        "UPDATE OTHER SET A = 'after' WHERE ID = 1",
    )


@pytest.mark.parametrize(
    ("around", "found"),
    [
        pytest.param("", "cuuudtcucuu", id="inside-a-window"),
        pytest.param("in-front", "cuuudtcucuu", id="behind-a-window"),
        pytest.param("behind", "cuuudtcucuu", id="in-front-of-a-window"),
        pytest.param("twice", "cuuudttcucuu", id="twice"),
        pytest.param("alone", "t", id="alone"),
    ],
)
def test_a_truncate_empties_the_mirror_where_it_stands(
    oracle: Oracle, source: Source, around: str, found: str
) -> None:
    """What was there before goes, what came behind it stays; the change log has one row of it."""
    done = []
    if around != "alone":
        before(oracle)
    if around == "in-front":
        done += source.windows()
    oracle.run(TRUNCATE)
    if around == "twice":
        oracle.run(TRUNCATE)
    if around == "behind":
        done += source.windows()
        assert source.lake.image(T) == []
    if around != "alone":
        after(oracle)
    done += source.windows()
    record = source.record("T")
    assert (record.state, record.generation) == ("ready", 1), record.reason
    source.check_current("T", "OTHER")
    assert source.ops("T") == found
    [truncate, *_] = [one for one in source.lake.tables[T].changes if one["_cdc_op"] == "t"]
    assert (truncate["before"], truncate["after"], bool(truncate["_cdc_xid"])) == (None, None, True)
    source.check_replayed("T", done)
    source.check_current("T", "OTHER")
    oracle.run("UPDATE T SET A = 'and on'")
    source.windows()
    source.check_current("T")


def test_rows_that_a_snapshot_read_count_by_when_it_read_them(
    oracle: Oracle, source: Source
) -> None:
    """A chunk from before the TRUNCATE is applied behind it: none of its rows comes back. One that was read behind it stays, though the window of the
    TRUNCATE is applied later."""
    pipeline = source.pipeline
    [early] = pipeline.start_snapshot([T])
    pipeline.snapshot_chunk(early)
    before(oracle)
    oracle.run(TRUNCATE)
    after(oracle)
    source.windows()
    pipeline.apply_chunk(early)
    source.check_current("T")

    oracle.run(TRUNCATE, "INSERT INTO T VALUES (8, 'a8', NULL)")
    [late] = pipeline.start_snapshot([T])
    pipeline.snapshot_chunk(late)
    pipeline.apply_chunk(late)
    assert (8,) in source.lake.tables[T].rows
    windows = source.windows()
    source.check_current("T")
    assert set(source.lake.tables[T].rows) == {(8,)}
    source.check_replayed("T", windows)


def test_a_table_without_a_key_is_emptied_too(oracle: Oracle, tmp_path: Path) -> None:
    """Its rows are known by ROWIDs, which begin with the number of a data object that TRUNCATE changes."""
    oracle.run("CREATE TABLE LOOSE (A NUMBER(9))", "INSERT INTO LOOSE VALUES (1)")
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "LOOSE", "identity": "rowid", "on_truncate": "follow"})
        source.run()
        oracle.run("INSERT INTO LOOSE VALUES (2)", "TRUNCATE TABLE LOOSE")
        oracle.run("INSERT INTO LOOSE VALUES (3)")
        source.windows()
        oracle.run("INSERT INTO LOOSE VALUES (4)")
        source.windows()
        assert source.record("LOOSE").state == "ready", source.record("LOOSE").reason
        source.check_current("LOOSE")


@pytest.mark.parametrize("ended", ["apply_window", "truncate"])
def test_a_process_that_ends_around_a_truncate_is_gone_on_with(
    oracle: Oracle, source: Source, ended: str
) -> None:
    """Right before the TRUNCATE, or before what follows it; the whole window again, and the tables made anew from landing."""
    before(oracle)
    oracle.run(TRUNCATE)
    after(oracle)
    calls = iter(range(10))

    def end(call: str, table: object) -> None:
        if table == T and call == ended and next(calls) == (1 if ended == "apply_window" else 0):
            raise KeyboardInterrupt

    source.lake.before = end
    with pytest.raises(KeyboardInterrupt):
        source.windows()
    source.lake.before = lambda _call, _table: None
    source.close()
    source.windows()
    source.check_current("T", "OTHER")
    assert source.ops("T") == "cuuudtcucuu"
    source.pipeline.rebuild_from_landing(T)
    source.check_current("T")
    assert source.lake.tables[T].generation == 2


def test_a_lost_store_knows_that_a_truncate_is_still_to_be_taken(
    oracle: Oracle, source: Source
) -> None:
    """Nothing but the TRUNCATE is in the window, which was captured and not applied."""
    source.windows()

    def end(call: str, _table: object) -> None:
        if call == "truncate":
            raise KeyboardInterrupt

    source.lake.before = end
    oracle.run(TRUNCATE)
    with pytest.raises(KeyboardInterrupt):
        source.windows()
    source.lake.before = lambda _call, _table: None
    source.close()
    for file in source.path.glob("*.db*"):
        file.unlink()
    source.pipeline.rebuild_state()
    source.windows()
    assert source.lake.image(T) == []
    source.check_current("T")


def test_rows_that_go_with_a_hash_partition_are_not_followed(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Nothing says which they were."""
    oracle.run(
        "CREATE TABLE PARTS (ID NUMBER(9) PRIMARY KEY) PARTITION BY HASH (ID)"
        " (PARTITION P1, PARTITION P2)",
        "INSERT INTO PARTS VALUES (5)",
        "INSERT INTO PARTS VALUES (15)",
    )
    with source_of(oracle, tmp_path, "PARTS", policies={"on_truncate": "follow"}) as source:
        source.run()
        oracle.run("TRUNCATE TABLE PARTS", "INSERT INTO PARTS VALUES (6)")
        source.windows()
        source.check_current("PARTS")
        oracle.run("ALTER TABLE PARTS TRUNCATE PARTITION P1")
        source.windows()
        record = source.record("PARTS")
        assert (record.state, record.trouble) == ("failed", "truncate")
        assert len(source.lake.image(table_id("PARTS"))) == 1
