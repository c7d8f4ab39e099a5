"""Columns of the key that get other names while changes are captured, through the driver: rows of both names, before, inside and behind a
window, in chunks, replays and rebuilt state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import WindowFirstError
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

T = table_id("T")
RENAME = "ALTER TABLE T RENAME COLUMN ID TO NUM"

oracle = oracle_with(
    "CREATE TABLE T (PART VARCHAR2(5), ID NUMBER(9), V VARCHAR2(20), PRIMARY KEY (ID, PART))",
    *(f"INSERT INTO T VALUES ('p', {key}, 'v{key}')" for key in range(1, 6)),
    warts=[Wart.UNNAMED_COLUMNS],
)
source = capturing("T")


def before(oracle: Oracle) -> None:
    oracle.run(
        "INSERT INTO T VALUES ('p', 6, 'v6')",
        "UPDATE T SET V = 'before' WHERE ID = 1",
        "UPDATE T SET ID = 20 WHERE ID = 2",
        "DELETE FROM T WHERE ID = 3",
    )


def after(oracle: Oracle, name: str = "NUM") -> None:
    oracle.run(
        f"INSERT INTO T (PART, {name}, V) VALUES ('p', 7, 'v7')",
        f"UPDATE T SET V = 'after' WHERE {name} IN (4, 20)",
        f"UPDATE T SET {name} = 60, PART = 'q' WHERE {name} = 6",
        f"DELETE FROM T WHERE {name} = 5",
    )


def check_followed(source: Source, *key: str) -> None:
    """The same stream and the same Delta tables, and every row under its key's names of today."""
    record, found = source.record("T"), source.lake.tables[T]
    assert (record.state, record.generation) == ("ready", 1), record.reason
    source.check_current("T")
    assert found.schema is not None
    assert found.schema.key == key
    keys = {tuple(row[name] for name in key) for row in source.lake.rows_by_name(T)}
    assert keys == {(1, "p"), (20, "p"), (4, "p"), (60, "q"), (7, "p")}


def test_a_column_of_the_key_gets_a_name_that_must_be_quoted(
    oracle: Oracle, source: Source
) -> None:
    before(oracle)
    oracle.run(RENAME, 'ALTER TABLE T RENAME COLUMN NUM TO "n m"')
    after(oracle, '"n m"')
    source.windows()
    check_followed(source, "n m", "PART")


def test_chunks_replays_and_a_lost_store_know_both_names(oracle: Oracle, source: Source) -> None:
    """A chunk that landed before the DDL, a transaction that is open over it, redo of both names again, the metadata store from landing."""
    oracle.run("CREATE TABLE OTHER (N NUMBER)")
    source.read_chunk(T)
    before(oracle)
    with oracle.owner() as slow:
        slow.cursor().execute("INSERT INTO T VALUES ('s', 8, 'open')")
        oracle.run("INSERT INTO OTHER VALUES (1)")
        source.windows()
        slow.commit()
    oracle.run(RENAME)
    after(oracle)
    oracle.run("DELETE FROM T WHERE NUM = 8 AND PART = 's'")
    source.run()
    check_followed(source, "NUM", "PART")
    rows = dict(source.lake.tables[T].rows)
    windows = source.pipeline.store.windows.find()
    for window in reversed(windows):
        source.pipeline.replay_window(window.window)
    assert source.lake.tables[T].rows == rows
    source.close()
    for file in source.path.glob("state.db*"):
        file.unlink()
    assert source.pipeline.rebuild_state().is_written
    [*_, newest] = source.pipeline.store.schemas.versions(T)
    assert newest.schema.key == ("NUM", "PART")
    assert newest.schema.stored_names["NUM"] == "ID"
    oracle.run("UPDATE T SET V = 'last' WHERE NUM = 1")
    source.windows()
    check_followed(source, "NUM", "PART")


@pytest.mark.parametrize("way", ["captured", "run", "resnapshot"])
def test_a_chunk_that_is_read_ahead_of_the_windows_waits_for_the_name(
    oracle: Oracle, source: Source, way: str
) -> None:
    """Nothing but the DDL's redo says that it is the same key: with its window the table continues, whoever captures that."""
    before(oracle)
    oracle.run(RENAME)
    source.pipeline.start_snapshot([T])
    [key] = source.pipeline.pending_chunks()
    with pytest.raises(WindowFirstError, match="its key has other columns"):
        source.pipeline.snapshot_chunk(key)
    if way == "captured":
        source.capture()
        source.pipeline.snapshot_chunk(key)
    if way == "resnapshot":
        source.pipeline.resnapshot_tables([T])
    source.run()
    after(oracle)
    source.windows()
    source.check_current("T")
    assert source.record("T").generation == 1


def test_a_chunk_from_before_the_name_is_read_behind_it(oracle: Oracle, source: Source) -> None:
    """Oracle looks a column up under its present name, also as of an SCN at which it had another; the chunk has the name of its SCN."""
    source.pipeline.start_snapshot([T])
    before(oracle)
    oracle.run(RENAME)
    after(oracle)
    source.windows()
    source.run()
    check_followed(source, "NUM", "PART")


def test_a_unique_index_that_is_the_key_stays_it_under_another_name(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Beside it the table got a primary key, which would come first where a table begins."""
    oracle.run(
        "CREATE TABLE K (A NUMBER(9) NOT NULL, B NUMBER(9) NOT NULL, V VARCHAR2(9))",
        "CREATE UNIQUE INDEX KA ON K (A)",
        "INSERT INTO K VALUES (1, 11, 'one')",
    )
    with source_of(oracle, tmp_path, "K") as source:
        source.run()
        oracle.run("ALTER TABLE K ADD PRIMARY KEY (B)", "ALTER TABLE K RENAME COLUMN A TO A2")
        oracle.run("UPDATE K SET B = 12, V = 'new'", "INSERT INTO K VALUES (2, 22, 'two')")
        oracle.run("ALTER TABLE K RENAME COLUMN B TO B2", "UPDATE K SET B2 = 13 WHERE A2 = 1")
        source.windows()
        source.check_current("K")
        record, schema = source.record("K"), source.lake.tables[table_id("K")].schema
        assert (record.state, record.generation) == ("ready", 1), record.reason
        assert schema is not None
        assert schema.key == ("A2",)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        pytest.param({"name": "T", "key": ["PART", "ID"]}, "key names columns that the table does not have", id="key"),
        pytest.param({"name": "T*", "columns_mask": {"NUM": "stars(3)"}}, "columns_mask masks columns of the key otherwise than by a hash", id="mask"),
        pytest.param({"name": "T*", "columns_exclude": ["NUM"]}, "columns_exclude names a column of the primary key", id="exclude"),
        pytest.param({"name": "T*", "columns_as": {"NUM": "text"}}, "columns_as names columns of the key", id="as"),
    ],
)  # fmt: skip
def test_a_name_that_the_configuration_has_is_a_stop_by_name(
    oracle: Oracle, tmp_path: Path, config: dict[str, Any], reason: str
) -> None:
    """The configured key is the old name; masks and other forms are for no column of a key, which the DDL gives their name."""
    with source_of(oracle, tmp_path) as source:
        source.configure(config)
        source.begin()
        before(oracle)
        oracle.run(RENAME)
        after(oracle)
        source.windows()
        record = source.record("T")
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert reason in (record.reason or "")
        assert sorted(row[1] for row in source.lake.image(T)) == [1, 4, 5, 6, 20]
        source.configure({"name": "T", **({"key": ["PART", "NUM"]} if "key" in config else {})})
        source.pipeline.resnapshot_tables([T], fresh=True)
        source.run()
        source.check_current("T")


@pytest.mark.parametrize("cut", ["", "between"])
def test_after_a_long_pause_the_texts_say_the_name(
    oracle: Oracle, source: Source, cut: str
) -> None:
    """The present definition has names that come with later DDL, also of a later window; the key of a moment in between is known by texts."""
    before(oracle)
    oracle.run("ALTER TABLE T ADD W NUMBER(5)", "INSERT INTO T VALUES ('x', 8, 'w', 8)")
    if cut == "between":
        source.pipeline.plan_windows()
    oracle.run(RENAME, "DELETE FROM T WHERE NUM = 8", "ALTER TABLE T MODIFY V VARCHAR2(60)")
    oracle.run("ALTER TABLE T RENAME COLUMN PART TO KIND")
    oracle.run(
        "INSERT INTO T (KIND, NUM, V) VALUES ('p', 7, 'v7')",
        "UPDATE T SET NUM = 60, KIND = 'q' WHERE NUM = 6",
        "DELETE FROM T WHERE NUM = 5",
    )
    oracle.clock.ahead += 4 * 24 * 3600
    oracle.server.faults.arm(Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0))
    source.windows()
    oracle.server.faults.disarm_all()
    check_followed(source, "NUM", "KIND")


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(["ALTER TABLE K DROP PRIMARY KEY", "ALTER TABLE K ADD PRIMARY KEY (B)"], id="made-anew"),
        pytest.param(["ALTER TABLE K RENAME COLUMN A TO A2", "ALTER TABLE K DROP PRIMARY KEY", "ALTER TABLE K ADD PRIMARY KEY (B)"], id="renamed-and-made-anew"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pause", [False, True])
def test_a_key_that_is_made_anew_on_other_columns_stops_the_table(
    oracle: Oracle, tmp_path: Path, statements: list[str], *, pause: bool
) -> None:
    """Right before its constraint goes: from there on nothing holds apart the rows that the lake knows by it."""
    oracle.run("CREATE TABLE K (A NUMBER(9) PRIMARY KEY, B NUMBER(9) NOT NULL)")
    oracle.run("INSERT INTO K VALUES (1, 10)")
    with source_of(oracle, tmp_path, "K") as source:
        source.run()
        oracle.run("INSERT INTO K VALUES (2, 20)", *statements, "INSERT INTO K VALUES (2, 30)")
        if pause:
            oracle.clock.ahead += 4 * 24 * 3600
            oracle.server.faults.arm(
                Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0)
            )
        source.windows()
        oracle.server.faults.disarm_all()
        record = source.record("K")
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert source.lake.image(table_id("K")) == [(1, 10), (2, 20)], record.reason
        source.pipeline.resnapshot_tables([table_id("K")])
        source.run()
        oracle.run("INSERT INTO K VALUES (2, 40)")
        source.windows()
        source.check_current("K")
        assert source.record("K").generation == 2
