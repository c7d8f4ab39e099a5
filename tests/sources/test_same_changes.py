"""The same load through LogMiner, OpenLogReplicator's files and recordings of XStream's LCRs gives the same change logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cdc_core.xstream import runs
from oracle_embedded.openlogreplicator import OpenLogReplicator
from tests.openlogreplicator.olr import olr_capture
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, run_random_changes, source_of, table_id
from tests.xstream.lcrs import recorded, recorder_of

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, N NUMBER, PRICE NUMBER(12,2), BIG NUMBER(30), NAME VARCHAR2(40), NAT NVARCHAR2(20),"
    " PAD CHAR(5), DAY DATE, AT TIMESTAMP(6), FINE TIMESTAMP(9), ZONED TIMESTAMP(3) WITH TIME ZONE, SPAN INTERVAL DAY TO SECOND(6),"
    " MONTHS INTERVAL YEAR TO MONTH, R RAW(8))",
    "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10), C CLOB, B BLOB)",
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10))",
    "INSERT INTO T (ID, NAME) VALUES (1, 'one')",
    "INSERT INTO K VALUES (1, 'a')",
)
TABLES = ("T", "L", "K")

DIFFERENCES = {
    "_cdc_window": "windows end where each reader can prove them complete",
    "_cdc_ordinal": "each reader numbers what it reads; the order is the same",
    "_cdc_rs_id": "a stream of changes tells no redo address",
    "_cdc_ssn": "nor LogMiner's number of a statement",
    "_cdc_timestamp": "LogMiner's is in the time zone of the host",
    "_cdc_commit_timestamp": "likewise",
    "_cdc_start_timestamp": "likewise",
    "_cdc_landed": "the moment of landing",
    "_cdc_redo_sql": "a stream of changes has no statements",
}
"""What may differ between the change logs of two readers, and why; docs/how-to/openlogreplicator.md and docs/how-to/xstream.md have the
lists for users. In a table with LOBs LogMiner shows more changes besides: the LOBs of an insert come with updates, and without ROWIDs."""
OF_XSTREAM = {
    "_cdc_start_scn": "no LCR says where its transaction began",
    "_cdc_client_id": "nor the session's client identifier",
}


@dataclass
class Both:
    """A source that reads redo through LogMiner, and one through another reader, to which ``bring`` brings what has committed."""

    logminer: Source
    other: Source
    bring: Callable[[], object]
    differences: dict[str, str]

    def windows(self) -> None:
        """Windows of both up to the present."""
        self.bring()
        self.logminer.windows()
        self.other.windows()

    def changes(self, source: Source, name: str) -> list[dict[str, Any]]:
        """What the change log has of a table besides its snapshot, without what may differ."""
        changes = source.lake.tables[table_id(name)].changes
        left = [one for one in changes if one["_cdc_op"] != "r"]
        return [{key: one[key] for key in one if key not in self.differences} for one in left]

    def check(self) -> None:
        """Change logs and mirrors are alike."""
        for name in TABLES:
            assert self.other.lake.image(table_id(name)) == self.logminer.lake.image(table_id(name))
        for name in ("T", "K"):
            assert self.changes(self.other, name) == self.changes(self.logminer, name)
        assert self.changes(self.other, "K")


@pytest.fixture(params=["openlogreplicator", "xstream", "xstream, positions of version 2"])
def both(
    request: pytest.FixtureRequest, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Both]:
    if request.param == "xstream":
        monkeypatch.setattr(runs, "_RUN_MIN", 1)  # the others read rows of LCRs one by one
    if request.param == "openlogreplicator":
        olr = OpenLogReplicator(oracle.database, tmp_path / "olr")
        olr.write()
        capture, bring, differences = olr_capture(olr), olr.write, DIFFERENCES
    else:
        recorder = recorder_of(
            oracle, tmp_path / "lcrs", version=1 if request.param == "xstream" else 2
        )
        capture, bring, differences = recorded(recorder), recorder.write, DIFFERENCES | OF_XSTREAM
    capture["window_bytes_max"] = 20_000
    forms = {"DEMO.T.ZONED": "instant+offset"}
    online = {"close_at": "online"}
    with (
        source_of(oracle, tmp_path / "one", *TABLES, capture=online, columns_as=forms) as logminer,
        source_of(oracle, tmp_path / "two", *TABLES, capture=capture, columns_as=forms) as other,
    ):
        logminer.run()
        other.run()
        yield Both(logminer, other, bring, differences)


def test_every_type_and_every_kind_of_change(both: Both, oracle: Oracle) -> None:
    """Values with all their digits, keys that change, LOBs, and what is rolled back, in part and whole."""
    oracle.run(
        "INSERT INTO T VALUES (2, 1E-20, 12.5, 123456789012345678901234567890, 'zwei', N'夜', 'ab', DATE '9999-12-31',"
        " TIMESTAMP '2026-01-02 03:04:05.123456', TIMESTAMP '2026-01-02 03:04:05.123456789',"
        " TIMESTAMP '2026-07-02 03:04:05.123 +02:00', INTERVAL '-3 04:05:06.5' DAY TO SECOND, INTERVAL '2-11' YEAR TO MONTH,"
        " HEXTORAW('00FF'))",
        "UPDATE T SET NAME = NULL, PRICE = -0.05 WHERE ID = 1",
        "INSERT INTO L VALUES (1, 'x', 'text', HEXTORAW('0102'))",
        "INSERT INTO K VALUES (2, 'b')",
    )
    oracle.run("UPDATE K SET ID = 3 WHERE ID = 2", "DELETE FROM K WHERE ID = 1")
    oracle.run("UPDATE L SET C = 'other' WHERE ID = 1", "UPDATE L SET V = 'y' WHERE ID = 1")
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO K VALUES (10, 'kept')")
        cursor.execute("SAVEPOINT HERE")
        cursor.execute("INSERT INTO K VALUES (11, 'gone')")
        cursor.execute("UPDATE K SET V = 'gone' WHERE ID = 10")
        cursor.execute("ROLLBACK TO SAVEPOINT HERE")
        connection.commit()
        cursor.execute("INSERT INTO K VALUES (12, 'gone')")
        connection.rollback()
    both.windows()
    both.check()
    both.other.check_exact("K", "L")


def test_random_transactions_in_many_windows(both: Both, oracle: Oracle) -> None:
    """Long transactions beside short ones, windows inside of them."""

    def change(rng: Random, cursor: Any, key: int, *, is_new: bool) -> None:
        if is_new:
            cursor.execute("INSERT INTO K VALUES (:1, 'new')", [key + 1000])
            cursor.execute("INSERT INTO T (ID, N) VALUES (:1, :2)", [key + 1000, rng.random()])
        elif rng.random() < 0.2:
            cursor.execute("DELETE FROM K WHERE ID = :1", [key + 1000])
        else:
            cursor.execute(
                "UPDATE K SET V = :2 WHERE ID = :1", [key + 1000, str(rng.randrange(99))]
            )
        both.bring()
        both.other.windows()

    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO K VALUES (500, 'long')")
        run_random_changes(
            both.logminer, Random(7), change, steps=30, created=18, last="UPDATE K SET V = 'last' WHERE ID = 1000"
        )  # fmt: skip
        connection.commit()
    oracle.run("UPDATE K SET V = 'end' WHERE ID = 1000")
    both.windows()
    both.check()
    both.other.check_exact("K")


def test_ddl_between_changes(both: Both, oracle: Oracle) -> None:
    """Rows before and behind a DDL of one window, each by its definition."""
    oracle.run("INSERT INTO K VALUES (5, 'before')")
    oracle.run("ALTER TABLE K ADD (MORE NUMBER(5))")
    oracle.run("INSERT INTO K VALUES (6, 'behind', 77)", "UPDATE K SET MORE = 1 WHERE ID = 5")
    both.windows()
    both.check()
    assert both.changes(both.other, "K")[-1]["after"]["MORE"] == 1
    both.other.check_followed("K")
