"""The operator's questions, asked while an application writes: each answer is held against what Oracle itself counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import oracledb
import pytest

from cdc_core.model.lag import explain_lag
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import OWNER, PASSWORDS, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V NUMBER(9))",
    "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T VALUES (0, 0)",
)


@contextmanager
def working(oracle: Oracle) -> Iterator[Callable[[int], None]]:
    """An application that inserts a row, changes the first one and commits, over and over; gives what waits for transactions."""
    done, over = threading.Semaphore(0), threading.Event()

    def work() -> None:
        with oracle.owner() as connection:
            for key in count(1):
                cursor = connection.cursor()
                cursor.execute("INSERT INTO T VALUES (:1, 0)", [key])
                cursor.execute("UPDATE T SET V = V + 1 WHERE ID = 0")
                cursor.execute("INSERT INTO OTHER VALUES (:1)", [key])
                connection.commit()
                done.release()
                if over.wait(0.005):
                    return

    def wait(transactions: int) -> None:
        for _ in range(transactions):
            assert done.acquire(timeout=60)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield wait
    finally:
        over.set()
        thread.join()


def asked(oracle: Oracle, sql: str) -> int:
    """One number, as the administrator."""
    login = {"user": ADMIN, "password": PASSWORDS[ADMIN], "dsn": oracle.server.dsn}
    with oracledb.connect(**login) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        [number] = cursor.fetchone()
        return int(number)


def counted(oracle: Oracle, scn: int) -> tuple[int, int]:
    """How often the application had inserted and updated as of an SCN."""
    inserts = asked(oracle, f"SELECT COUNT(*) FROM {OWNER}.T AS OF SCN {scn}")
    return inserts, asked(oracle, f"SELECT V FROM {OWNER}.T AS OF SCN {scn} WHERE ID = 0")


NOW = "SELECT CURRENT_SCN FROM V$DATABASE"


def test_each_question_under_load(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc_core.model.lag.KEEPS_UP_SECONDS", 3600)  # the machine may be busy
    online = {"close_at": "online"}
    with source_of(oracle, tmp_path, "T", capture=online) as source:
        source.begin()
        began = position(source)
        with working(oracle) as wait:
            for _ in range(3):
                wait(15)
                source.windows()
            profiled(source, oracle, began)
            behind(source, oracle)
            planned(source, oracle)


def position(source: Source) -> int:
    scn = source.record("T").mirror_scn
    assert scn is not None
    return scn


def profiled(source: Source, oracle: Oracle, began: int) -> None:
    """`redolake redo-profile`: inserts and updates between two SCNs, as Oracle's rows have it."""
    shares = {one.operation: one.rows for one in source.pipeline.redo_profile().shares}
    first, last = counted(oracle, began), counted(oracle, position(source))
    for operation, before, after in zip(("INSERT", "UPDATE"), first, last, strict=True):
        open_now = shares[operation] - (after - before)
        assert open_now in (0, 1), "rows of a transaction that is open land with the rest"
    assert shares["INSERT"] > 30


def behind(source: Source, oracle: Oracle) -> None:
    """`redolake lag --explain`: SCNs and seconds from the table's position to Oracle's present."""
    mirror, before = position(source), asked(oracle, NOW)
    facts = source.pipeline.lag()
    after = asked(oracle, NOW)
    assert before <= mirror + facts.scns <= after
    least, most = (
        asked(
            oracle,
            f"SELECT ROUND((CAST(SCN_TO_TIMESTAMP({scn}) AS DATE) - CAST(SCN_TO_TIMESTAMP({mirror}) AS DATE)) * 86400) FROM DUAL",
        )
        for scn in (before, after)
    )
    assert facts.seconds is not None
    assert least - 10 <= facts.seconds <= most + 10, "the grain of Oracle's times, twice"
    assert explain_lag(facts).cause == "nothing"


def planned(source: Source, oracle: Oracle) -> None:
    """`redolake plan`: the windows and logs that are then captured, and how many changes the last windows had."""
    mirror = position(source)
    logs = asked(
        oracle,
        f"SELECT COUNT(*) FROM V$LOG WHERE STATUS <> 'UNUSED' AND (NEXT_CHANGE# > {mirror} OR NEXT_CHANGE# IS NULL)",
    )
    found = source.pipeline.plan_work()
    assert found.headroom is not None
    assert found.headroom.logs == logs
    changes = len(source.ops("T"))
    assert [(one.table, one.changes) for one in found.windows.tables] == [(f"{OWNER}.T", changes)]
    assert 1 <= found.windows.to_capture <= len(source.windows()), "the application went on"
