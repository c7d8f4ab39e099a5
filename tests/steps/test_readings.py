"""Whether Redolake assembles transactions or LogMiner does, the same changes land: rollbacks to savepoints, transactions over the borders
of windows, LOBs, DDL, several redo threads."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from cdc_core.capture.committed import OwnCommits, reach, to_follow, unread
from cdc_core.capture.mining import COMMIT_SCN, MINED_SCHEMA
from cdc_core.config import LogMinerConfig
from cdc_core.errors import ConfigError, RedoUnavailableError, TransientError
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.model.transactions import OpenTransaction
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import ADMIN, LOCAL_CAPTURE, Oracle, running_oracle
from tests.steps.harness import Source, source_of
from tests.steps.ways import (
    ALL_WAYS,
    SWITCH,
    WAYS,
    WINDOW,
    Step,
    changes,
    check_equal,
    play,
    sources_of,
)

BOTH = {name: WAYS[name] for name in ("online_catalog-uncommitted", "online_catalog-committed")}
COMMITTED = {"close_at": "completed_logs", "reading": "committed"}
UNCOMMITTED = {"close_at": "completed_logs"}


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle(warts=DEFAULT_WARTS) as running:
        running.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, C CLOB, B BLOB)",
            *(f"INSERT INTO T VALUES ({key}, 'first')" for key in range(1, 5)),
            "INSERT INTO L VALUES (1, 'small', HEXTORAW('01'))",
        )
        yield running


LONG = "RPAD(TO_CLOB('begin '), 3000, '{}') || RPAD(TO_CLOB('-'), 3000, '{}')"

SAVEPOINTS: list[Step] = [
    ("a", "UPDATE T SET V = 'stays' WHERE ID = 1"),
    ("a", "SAVEPOINT S"),
    ("a", "UPDATE T SET V = 'goes' WHERE ID <= 2"),
    ("a", "INSERT INTO T VALUES (9, 'goes')"),
    ("a", "INSERT INTO T SELECT ID + 7, 'ORA-00001' FROM T"),
    ("b", "DELETE FROM T WHERE ID = 4"),
    ("a", "ROLLBACK TO S"),
    ("a", "INSERT INTO T VALUES (9, 'stays')"),
    ("b", "ROLLBACK"),
    ("c", "UPDATE T SET V = 'goes' WHERE ID = 3"),
    ("c", "ROLLBACK"),
    ("a", "COMMIT"),
    ("b", "INSERT INTO T VALUES (10, 'goes')"),
    ("b", "ROLLBACK"),
]
BORDERS: list[Step] = [
    ("a", "UPDATE T SET V = 'a' WHERE ID = 1"),
    ("gone", "UPDATE T SET V = 'never' WHERE ID = 2"),
    WINDOW,
    "UPDATE T SET V = 'between' WHERE ID = 3",
    ("b", "DELETE FROM T WHERE ID = 4"),
    WINDOW,
    ("a", "SAVEPOINT S"),
    ("a", "INSERT INTO T VALUES (8, 'goes')"),
    WINDOW,
    ("a", "ROLLBACK TO S"),
    ("a", "INSERT INTO T VALUES (8, 'a')"),
    ("gone", "ROLLBACK"),
    WINDOW,
    ("b", "COMMIT"),
    WINDOW,
    "ALTER TABLE L ADD (N NUMBER(3))",
    ("a", "COMMIT"),
    "UPDATE T SET V = 'last' WHERE ID = 8",
]
LOBS: list[Step] = [
    ("a", f"INSERT INTO L VALUES (2, {LONG.format('x', 'y')}, HEXTORAW(RPAD('AB', 3000, 'C')))"),
    ("a", "SAVEPOINT S"),
    ("a", f"INSERT INTO L VALUES (3, {LONG.format('n', 'o')}, NULL)"),
    ("a", "ROLLBACK TO S"),
    WINDOW,
    ("a", f"UPDATE L SET C = {LONG.format('p', 'q')}, B = EMPTY_BLOB() WHERE ID = 1"),
    WINDOW,
    ("a", "COMMIT"),
    "UPDATE L SET C = NULL WHERE ID = 2",
]


@pytest.mark.parametrize(
    ("table", "story"),
    [
        pytest.param("T", SAVEPOINTS, id="savepoints"),
        pytest.param("T", BORDERS, id="borders"),
        pytest.param("L", LOBS, id="lobs"),
    ],
)
def test_the_same_changes_land_with_both_readings(
    oracle: Oracle, tmp_path: Path, table: str, story: list[Step]
) -> None:
    with sources_of(oracle, tmp_path, "T", "L", ways=BOTH) as sources:
        play(oracle, sources, story)
        check_equal(sources, table)
        for source in sources.values():
            source.check_current("T", "L")


@pytest.mark.slow
@pytest.mark.parametrize(
    "story", [SAVEPOINTS, BORDERS, LOBS], ids=["savepoints", "borders", "lobs"]
)
def test_the_same_changes_land_by_every_way(
    oracle: Oracle, tmp_path: Path, story: list[Step]
) -> None:
    with sources_of(oracle, tmp_path, "T", "L", ways=ALL_WAYS) as sources:
        play(oracle, sources, story)
        for source in sources.values():
            source.check_current("T", "L")
        check_equal(sources, "L" if story is LOBS else "T")


def story_of(seed: int, steps: int = 40) -> list[Step]:
    """Sessions that change rows of their own, with savepoints, rollbacks, windows and DDL of T in between; a seed says what."""
    chance = random.Random(seed)
    story: list[Step] = []
    opened: dict[str, list[str]] = {}
    for at in range(steps):
        name = chance.choice("abcd")
        key = 100 * ("abcd".index(name) + 1) + chance.randrange(6)
        kind = chance.choice(
            ["insert", "update", "update", "delete", "savepoint", "undo", "commit", "rollback", "alone", "window"]
        )  # fmt: skip
        savepoints = opened.get(name, [])
        merge = (
            f"MERGE INTO T USING DUAL ON (ID = {key}) WHEN MATCHED THEN UPDATE SET V = 'u{at}'"
            f" WHEN NOT MATCHED THEN INSERT (ID, V) VALUES ({key}, 'i{at}')"
        )
        if kind == "window":
            story.append(WINDOW)
        elif kind == "alone":
            story.append(f"UPDATE T SET V = 'alone{at}' WHERE ID = {1 + at % 4}")
        elif kind == "savepoint" and name in opened:
            savepoints.append(f"S{at}")
            story.append((name, f"SAVEPOINT S{at}"))
        elif kind == "undo" and savepoints:
            story.append((name, f"ROLLBACK TO {savepoints[-1]}"))
        elif kind in ("commit", "rollback") and name in opened:
            del opened[name]
            story.append((name, kind.upper()))
        elif kind in ("insert", "update", "delete"):
            opened.setdefault(name, [])
            story.append((name, f"DELETE FROM T WHERE ID = {key}" if kind == "delete" else merge))
    return [*story, *((name, "COMMIT") for name in opened), "UPDATE T SET V = 'end' WHERE ID = 1"]


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1), id="one"),
        pytest.param(range(1, 40), id="many", marks=pytest.mark.slow),
    ],
)
def test_generated_transactions_land_the_same_with_both_readings(
    oracle: Oracle, tmp_path: Path, seeds: range
) -> None:
    with sources_of(oracle, tmp_path, "T", ways=BOTH) as sources:
        for seed in seeds:
            play(oracle, sources, story_of(seed))
            check_equal(sources, "T")


def test_a_transaction_that_is_open_for_long_needs_its_logs(oracle: Oracle, tmp_path: Path) -> None:
    """Redo of it that has landed is not read again where Redolake assembles transactions."""
    with sources_of(oracle, tmp_path, "T", ways=BOTH) as sources:
        play(oracle, sources, [])
        with oracle.owner() as slow:
            slow.cursor().execute("UPDATE T SET V = 'slow' WHERE ID = 1")
            for _ in range(4):  # no online file holds the first of its redo any more
                play(oracle, sources, ["UPDATE T SET V = 'quick' WHERE ID = 2"])
            sequence = first_log_of_the_oldest(sources["online_catalog-committed"])
            oracle.database.redo.delete_archived_log(sequence)
            oracle.run("UPDATE T SET V = 'next' WHERE ID = 2")
            oracle.run(SWITCH, user=ADMIN)
            sources["online_catalog-uncommitted"].windows()
            with pytest.raises(RedoUnavailableError, match="deleted"):
                sources["online_catalog-committed"].windows()


def first_log_of_the_oldest(source: Source) -> int:
    """The sequence of the log in which the oldest open transaction began."""
    [one] = source.pipeline._ctx.store.ledger.open_transactions("src")
    assert (one.state, one.rows, one.tables) == ("unread", 0, ())
    assert one.start_scn is not None
    with source.pipeline._ctx.database.session() as session:
        [(sequence,)] = session.fetch_all(
            "SELECT SEQUENCE# FROM V$ARCHIVED_LOG WHERE FIRST_CHANGE# <= :scn AND NEXT_CHANGE# > :scn",
            {"scn": one.start_scn},
        )
    return int(sequence)


def test_a_transaction_that_oracle_has_no_memory_for_is_not_lost(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, "T", capture=COMMITTED) as source:
        source.run()
        oracle.run("UPDATE T SET V = 'large'")
        oracle.run(SWITCH, user=ADMIN)
        large = Fault(
            FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "COMMIT_SCN > :commit_low", code=4036, times=99
        )
        oracle.server.faults.arm(large)
        with pytest.raises(TransientError, match=r"capture\.reading: committed"):
            source.windows()
        oracle.server.faults.disarm_all()
        source.close()
        source.more["capture"] = UNCOMMITTED
        source.windows()
        source.check_current("T")


def test_transactions_of_two_instances_land_the_same_with_both_readings(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run(
        "GRANT EXECUTE ON SYS.DBMS_REDOLAKE_FAULTS TO PUBLIC",
        "ALTER DATABASE ENABLE PUBLIC THREAD 2",
        "BEGIN DBMS_REDOLAKE_FAULTS.OPEN_THREAD(2); END;",
        user=ADMIN,
    )
    other = ("b", "BEGIN DBMS_REDOLAKE_FAULTS.USE_THREAD(2); END;")
    with sources_of(oracle, tmp_path, "T", "L", ways=BOTH) as sources:
        play(oracle, sources, [other, *BORDERS])
        check_equal(sources, "T")
        threads = {change["_cdc_thread"] for one in sources.values() for change in changes(one)}
        assert threads == {1, 2}


def test_inside_a_pluggable_database_both_readings_land_the_same(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.add_local_capture()
    found = []
    for reading in ("uncommitted", "committed"):
        folder = tmp_path / reading
        folder.mkdir()
        capture = {**UNCOMMITTED, "reading": reading, "logs": "scn_range"}
        with source_of(oracle, folder, "T", capture=capture) as source:
            source.more["oracle"] = oracle.login(LOCAL_CAPTURE)
            source.run()
            play(oracle, {"": source}, SAVEPOINTS[:-2])
            source.check_current("T")
            found.append([(one["_cdc_op"], one["after"]) for one in changes(source)])
            oracle.run("UPDATE T SET V = 'first'", "DELETE FROM T WHERE ID > 4")
    assert found[0] == found[1]


def test_a_source_goes_over_to_the_other_reading(oracle: Oracle, tmp_path: Path) -> None:
    """With open transactions from uncommitted to committed, back without: rows that did not land would be missing."""
    with source_of(oracle, tmp_path, "T", capture=UNCOMMITTED) as source:
        source.run()
        with oracle.owner() as slow:
            slow.cursor().execute("UPDATE T SET V = 'landed before' WHERE ID = 1")
            play(oracle, {"": source}, ["UPDATE T SET V = 'quick' WHERE ID = 2"])
            become(source, COMMITTED)
            slow.cursor().execute("UPDATE T SET V = 'and behind' WHERE ID = 3")
            play(oracle, {"": source}, [])
            become(source, UNCOMMITTED)
            oracle.run(SWITCH, user=ADMIN)
            with pytest.raises(ConfigError, match=r"capture\.reading was changed"):
                source.windows()
            become(source, COMMITTED)
            slow.commit()
        play(oracle, {"": source}, [])
        source.check_current("T")
        assert len([one for one in changes(source) if "before" in repr(one["after"])]) == 1
        become(source, UNCOMMITTED)
        play(oracle, {"": source}, ["DELETE FROM T WHERE ID = 2"])
        source.check_current("T")


def become(source: Source, capture: dict[str, Any]) -> None:
    source.close()
    source.more["capture"] = capture


def test_a_killed_session_that_is_given_up_stops_its_tables_if_it_commits_after_all() -> None:
    lost = OpenTransaction(xid="0a00", start_scn=10, first_ordinal=0, state="released")
    slow = OpenTransaction(xid="0b00", start_scn=50, first_ordinal=0, rows=3, tables=("A",))
    odd = OpenTransaction(xid="0c00", start_scn=None, first_ordinal=0)
    assert reach([lost], Scn(100), Scn(1)) == 100
    assert reach([lost, slow], Scn(100), Scn(1)) == 49
    assert reach([slow, odd], Scn(100), Scn(1)) == 1
    [kept, open_] = unread([lost, slow], ["A", "B"])
    assert (kept.state, kept.tables, kept.rows) == ("released", ("A", "B"), 2)
    assert open_.state == "unread"
    assert to_follow([kept, open_])[0] == kept
    assert to_follow([kept, open_])[1].rows == 0


def test_transactions_by_their_commits_cannot_be_read_where_rows_come_late() -> None:
    with pytest.raises(ValidationError, match="which rows reached a log late"):
        LogMinerConfig(reading="committed", close_at="online")


# --- the rows of a window ---------------------------------------------------------------------------------------------

START, INSERT, DDL, COMMIT = Operation.START, Operation.INSERT, Operation.DDL, Operation.COMMIT
SHOWN: list[tuple[str, int, int | None, Operation]] = [
    # xid, SCN, COMMIT_SCN, operation; the window's commits lie above 100
    ("01", 90, 99, START), ("01", 91, 99, INSERT), ("01", 99, 99, COMMIT),
    ("02", 92, None, START), ("02", 93, None, DDL), ("02", 100, None, COMMIT),
    ("03", 94, None, START), ("03", 95, None, DDL), ("03", 101, 101, COMMIT),
    ("04", 96, 120, START), ("04", 97, 120, INSERT), ("04", 120, 120, COMMIT),
    ("05", 98, None, START), ("05", 99, None, DDL), ("05", 130, None, COMMIT),
    ("06", 140, None, DDL), ("07", 80, None, DDL),
]  # fmt: skip
OWN = [94, 95, 101, 96, 97, 120, 98, 99, 130, 140]


def shown_in(sizes: Sequence[int]) -> Iterator[pa.RecordBatch]:
    at = 0
    for size in sizes:
        rows = [
            dict.fromkeys(MINED_SCHEMA.names)
            | {"xid": xid, "scn": scn, "commit_scn": commit, "operation_code": int(operation)}
            for xid, scn, commit, operation in SHOWN[at : at + size]
        ]
        at += size
        yield pa.RecordBatch.from_pylist(rows, schema=MINED_SCHEMA.append(COMMIT_SCN))


@pytest.mark.parametrize("size", range(1, len(SHOWN) + 1))
def test_a_windows_rows_are_told_whatever_batches_they_come_in(size: int) -> None:
    batches = OwnCommits(100).read(shown_in([size] * (len(SHOWN) // size + 1)))
    assert [scn for batch in batches for scn in batch.column("scn").to_pylist()] == OWN
