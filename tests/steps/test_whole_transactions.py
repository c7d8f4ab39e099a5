"""Each transaction comes whole, once, as LogMiner itself would assemble it: rollbacks to savepoints, transactions over the borders of
windows, LOBs, DDL, several redo threads."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import ADMIN, LOCAL_CAPTURE, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of
from tests.steps.ways import (
    SWITCH,
    WINDOW,
    Step,
    changes,
    check_equal,
    check_whole,
    play,
    sources_of,
)

CAPTURE = {"close_at": "completed_logs"}

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, C CLOB, B BLOB)",
    *(f"INSERT INTO T VALUES ({key}, 'first')" for key in range(1, 5)),
    "INSERT INTO L VALUES (1, 'small', HEXTORAW('01'))",
    warts=DEFAULT_WARTS,
)


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
    "story", [SAVEPOINTS, BORDERS, LOBS], ids=["savepoints", "borders", "lobs"]
)
def test_the_changes_are_those_of_whole_transactions(
    oracle: Oracle, tmp_path: Path, story: list[Step]
) -> None:
    with source_of(oracle, tmp_path, "T", "L", capture=CAPTURE) as source:
        source.begin()
        play(oracle, {"": source}, story)
        source.check_current("T", "L")
        check_whole(oracle, source)


@pytest.mark.slow
@pytest.mark.parametrize(
    "story", [SAVEPOINTS, BORDERS, LOBS], ids=["savepoints", "borders", "lobs"]
)
def test_the_same_changes_land_by_every_way(
    oracle: Oracle, tmp_path: Path, story: list[Step]
) -> None:
    with sources_of(oracle, tmp_path, "T", "L") as sources:
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
def test_generated_transactions_come_whole(oracle: Oracle, tmp_path: Path, seeds: range) -> None:
    with source_of(oracle, tmp_path, "T", capture=CAPTURE) as source:
        source.begin()
        for seed in seeds:
            play(oracle, {"": source}, story_of(seed))
            source.check_current("T")
            check_whole(oracle, source)


def test_redo_that_has_landed_is_not_needed_for_a_transaction_that_stays_open(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, "T", capture=CAPTURE) as source:
        source.begin()
        with oracle.owner() as slow:
            slow.cursor().execute("UPDATE T SET V = 'slow' WHERE ID = 1")
            for _ in range(4):  # no online file holds the first of its redo any more
                play(oracle, {"": source}, ["UPDATE T SET V = 'quick' WHERE ID = 2"])
            [one] = source.pipeline.store.ledger.open_transactions()
            with source.pipeline.database.session() as session:
                [(sequence,)] = session.fetch_all(
                    "SELECT SEQUENCE# FROM V$ARCHIVED_LOG WHERE FIRST_CHANGE# <= :scn AND NEXT_CHANGE# > :scn",
                    {"scn": one.start_scn},
                )
            oracle.database.redo.delete_archived_log(int(sequence))
            slow.commit()
        oracle.run(SWITCH, user=ADMIN)
        source.windows()
        source.check_current("T")


def test_transactions_of_two_instances_come_whole(oracle: Oracle, tmp_path: Path) -> None:
    oracle.open_threads(2)
    other = ("b", "BEGIN DBMS_REDOLAKE_FAULTS.USE_THREAD(2); END;")
    with source_of(oracle, tmp_path, "T", "L", capture=CAPTURE) as source:
        source.begin()
        play(oracle, {"": source}, [other, *BORDERS])
        source.check_current("T", "L")
        check_whole(oracle, source)
        assert {change["_cdc_thread"] for change in changes(source)} >= {1, 2}


def test_inside_a_pluggable_database_transactions_come_whole(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.add_local_capture()
    with source_of(oracle, tmp_path, "T", capture={**CAPTURE, "logs": "scn_range"}) as source:
        source.more["oracle"] = oracle.login(LOCAL_CAPTURE)
        source.run()
        play(oracle, {"": source}, SAVEPOINTS[:-2])
        source.check_current("T")
        check_whole(oracle, source)
