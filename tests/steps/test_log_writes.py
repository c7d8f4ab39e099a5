"""Log writes that gather several transactions in any order, and undo rows with the SCN of their COMMIT: the tables equal Oracle's."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from cdc_core.capture.logs.windows import cut_windows
from oracle_embedded.redo.settings import DEFAULT_WARTS, Wart
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of
from tests.steps.ways import WINDOW, Step, check_whole, play

TABLES = ("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",)


oracle = oracle_with(
    *TABLES,
    "INSERT INTO T SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 9",
    warts={*DEFAULT_WARTS, Wart.GATHERED_WRITES},
    strand_records=100,
)


def story(seed: int) -> list[Step]:
    """Short transactions of three sessions, one behind the other in few undo slots, with savepoints and rollbacks."""
    dice = Random(seed)
    steps: list[Step] = []
    keys = {"a": (1, 2, 3), "b": (4, 5, 6), "c": (7, 8, 9)}
    for number in range(24):
        session = dice.choice("abc")
        key = dice.choice(keys[session])
        steps.append((session, f"UPDATE T SET V = '{number}' WHERE ID = {key}"))
        if dice.random() < 0.4:
            steps += [
                (session, "SAVEPOINT S"),
                (session, f"UPDATE T SET V = 'goes {number}' WHERE ID = {key}"),
                (session, "ROLLBACK TO S"),
            ]
        if dice.random() < 0.6:
            steps.append((session, "COMMIT" if dice.random() < 0.85 else "ROLLBACK"))
        if dice.random() < 0.08:
            steps.append(WINDOW)
    return [*steps, *((session, "COMMIT") for session in keys)]


@pytest.mark.parametrize("seed", range(4))
def test_log_writes_in_any_order_are_followed(seed: int, oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T", capture={"close_at": "completed_logs"}) as source:
        source.begin()
        play(oracle, {"": source}, story(seed))
        source.check_current("T")
        check_whole(oracle, source)
        assert source.record("T").state == "ready"
        assert not source.pipeline.status().transactions_evicted


def test_log_writes_in_any_order_are_followed_online(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T", capture={"close_at": "online"}) as source:
        source.begin()
        for seed in (10, 11):
            with oracle.owner() as one, oracle.owner() as other:
                for number in range(6):
                    for session, key in ((one, 1), (other, 2)):
                        session.cursor().execute(
                            f"UPDATE T SET V = '{seed}/{number}' WHERE ID = {key}"
                        )
                        session.commit()
            source.windows()
            source.check_current("T")
        assert source.record("T").state == "ready"


SAVEPOINTS: tuple[str, ...] = (
    "UPDATE T SET V = 'one' WHERE ID = 1",
    "SAVEPOINT A",
    "UPDATE T SET V = 'goes' WHERE ID = 1",
    "ROLLBACK TO A",
    "UPDATE T SET V = 'two' WHERE ID = 1",
    "SAVEPOINT B",
    "DELETE FROM T WHERE ID IN (1, 2)",
    "ROLLBACK TO B",
    "UPDATE T SET V = 'three' WHERE ID = 1",
    "INSERT INTO T VALUES (20, 'stays')",
)


def test_an_undo_row_with_its_commits_scn_is_right_wherever_windows_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every SCN of the transaction is the end of a window, one after the other: each row lands with another one."""
    with running_oracle(warts=DEFAULT_WARTS, unsupported_undo=True) as oracle:
        oracle.run(*TABLES, "INSERT INTO T SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 3")
        with source_of(oracle, tmp_path, "T", capture={"close_at": "online"}) as source:
            source.run()
            oracle.run(*SAVEPOINTS)

            def at_every_scn(low: Any, high: Any, *_: Any) -> Any:
                return [one for at in range(low, high) for one in cut_windows(at, at + 1, (), 1)]  # type: ignore[arg-type]

            monkeypatch.setattr("cdc_core.capture.source.cut_windows", at_every_scn)
            assert len(source.windows()) > 5
            source.check_current("T")
