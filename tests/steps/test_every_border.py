"""Wherever a window ends, its tables equal Oracle there, and the windows together hold each change once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cdc_core.model.scn import ScnWindow
from cdc_core.oracle.database import current_scn
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

NAMES = ("ONE", "TWO")

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in NAMES),
    *(f"INSERT INTO {name} VALUES (1, 'first')" for name in NAMES),
)
source = capturing(*NAMES, runs=False)


def change_much(oracle: Oracle) -> Counter[tuple[str, str]]:
    """Transactions that lie across each other: one that lasts over all of them, one with rollbacks to savepoints, one that is
    rolled back, keys that move and come back. Returns what is committed, by table and operation."""
    with oracle.owner() as long, oracle.owner() as torn, oracle.owner() as lost:
        run(long, "INSERT INTO ONE VALUES (100, 'long')")
        run(torn, "INSERT INTO TWO VALUES (200, 'kept')", "SAVEPOINT S")
        oracle.run("INSERT INTO ONE VALUES (2, 'a')", "UPDATE ONE SET V = 'b' WHERE ID = 1")
        run(torn, "UPDATE TWO SET V = 'undone' WHERE ID = 200", "DELETE FROM TWO WHERE ID = 1")
        run(lost, "INSERT INTO TWO VALUES (300, 'lost')")
        oracle.run("UPDATE ONE SET ID = 3 WHERE ID = 2", "DELETE FROM ONE WHERE ID = 1")
        run(torn, "ROLLBACK TO SAVEPOINT S", "INSERT INTO TWO VALUES (201, 'late')")
        run(long, "INSERT INTO TWO VALUES (101, 'long')", "UPDATE ONE SET V = 'l' WHERE ID = 100")
        oracle.run("INSERT INTO ONE VALUES (1, 'again')")
        lost.rollback()
        torn.commit()
        oracle.run("DELETE FROM TWO WHERE ID = 200")
        run(long, "DELETE FROM ONE WHERE ID = 3")
        long.commit()
    return Counter(
        {("ONE", "c"): 3, ("ONE", "u"): 3, ("ONE", "d"): 2, ("TWO", "c"): 3, ("TWO", "d"): 1}
    )


def run(connection: Any, *statements: str) -> None:
    for statement in statements:
        connection.cursor().execute(statement)


def now(source: Source) -> int:
    with source.pipeline.database.session() as session:
        return int(current_scn(session))


def carry(source: Source, until: int) -> list[ScnWindow]:
    """Windows up to an SCN, captured and applied; the whole source equals Oracle at each of their ends."""
    windows = source.pipeline.plan_windows(until=until)
    for window in windows:
        source.pipeline.capture_window(window)
        source.pipeline.apply_window(window)
        assert {source.record(name).mirror_scn for name in NAMES} == {window.scn_high}
        source.check_exact(*NAMES)
    return windows


def check_complete(source: Source, committed: Counter[tuple[str, str]]) -> None:
    """What all windows together brought is what was committed, and each change is there once."""
    changes = [(name, one) for name in NAMES for one in source.lake.tables[table_id(name)].changes]
    assert Counter((name, one["_cdc_op"]) for name, one in changes) == committed
    assert len({one["_cdc_ordinal"] for _, one in changes}) == len(changes)
    facts = [one.facts for one in source.pipeline.store.windows.find()]
    assert sum(one["transactions_committed"] for one in facts) == 6
    # A transaction that was rolled back before its strand reached the log left nothing there.
    assert sum(one["transactions_rolled_back"] for one in facts) <= 1


@pytest.mark.parametrize(
    "scns",
    [
        pytest.param(1, id="every-scn"),
        pytest.param(4, id="every-fourth-scn", marks=pytest.mark.slow),
    ],
)
def test_every_scn_is_a_windows_end_once(oracle: Oracle, source: Source, scns: int) -> None:
    list(source.pipeline.run_snapshot())
    start = now(source)
    committed = change_much(oracle)
    oracle.run("CREATE TABLE TICK (ID NUMBER(9))")
    end = start
    for scn in [*range(start, now(source), scns), now(source)]:
        for window in carry(source, scn):
            assert end in (start, window.scn_low)
            end = window.scn_high
        if scns > 1:
            source.close()  # another process carries the next one
    check_complete(source, committed)


def test_a_transaction_that_is_open_at_the_snapshot_arrives_whole(
    oracle: Oracle, source: Source
) -> None:
    with oracle.owner() as early:
        run(early, "INSERT INTO ONE VALUES (50, 'before')")
        oracle.run("INSERT INTO TWO VALUES (2, 'x')")
        list(source.pipeline.run_snapshot())
        run(early, "UPDATE ONE SET V = 'after' WHERE ID = 50")
        early.commit()
    source.windows()
    source.check_current(*NAMES)
    assert (50, "after") in source.lake.image(table_id("ONE"))


def test_a_table_that_joins_late_gets_what_is_open_then(oracle: Oracle, tmp_path: Path) -> None:
    """Its changes from before its first window are read again."""
    with source_of(oracle, tmp_path, "ONE") as source, oracle.owner() as early:
        source.run()
        for key in (
            70,
            71,
            72,
            73,
        ):  # more than a strand holds: most of them are in the log already
            run(early, f"INSERT INTO TWO VALUES ({key}, 'open')")
        oracle.run("INSERT INTO ONE VALUES (7, 'x')")
        source.windows()
        source.configure(*NAMES)
        source.run()
        run(early, "UPDATE TWO SET V = 'done' WHERE ID = 70")
        early.commit()
        source.run()
        source.check_current(*NAMES)
        assert {(70, "done"), *((key, "open") for key in (71, 72, 73))} <= set(
            source.lake.image(table_id("TWO"))
        )
