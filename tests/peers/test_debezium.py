"""Two independent readers of one database: Debezium's events are those of our change log, one by one."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.debezium import PeerUnavailableError, installed_jars
from oracle_embedded.database import CAPTURE
from oracle_embedded.redo import Wart
from tests.lake.test_envelope import events_by_duckdb, written
from tests.oracle.embedded import PASSWORDS, Oracle, running_oracle
from tests.peers.debezium import debezium, events_of_change_log
from tests.peers.jdbc import has_java_compiler
from tests.steps.harness import source_of, table_id

pytestmark = pytest.mark.slow

KINDS = {"ID": "number", "V": "text", "N": "number", "D": "date", "T": "timestamp", "R": "raw"}
TABLES = ("ONE", "TWO")
TRANSACTIONS = 300
SEED = 1
LAST = 9_999_999


@pytest.fixture(autouse=True)
def _peer() -> None:
    if not has_java_compiler():
        pytest.skip("there is no JDK (java and javac) on the path")
    try:
        installed_jars()
    except PeerUnavailableError as error:
        pytest.skip(f"Debezium's jars cannot be installed: {error}")


def load(oracle: Oracle, seed: int, transactions: int) -> None:
    """Interleaved transactions of three sessions with savepoints, rollbacks and changes of keys, then one last row."""
    dice = random.Random(seed)
    with ExitStack() as stack:
        sessions = [stack.enter_context(oracle.owner()) for _ in range(3)]
        owned: list[dict[str, list[int]]] = [{name: [] for name in TABLES} for _ in sessions]
        for number in range(transactions):
            at = dice.randrange(len(sessions))
            with sessions[at].cursor() as cursor:
                for step in range(dice.randrange(1, 6)):
                    if dice.random() < 0.2:
                        cursor.execute("SAVEPOINT S")
                        change(cursor, dice, owned[at], number * 20 + step)
                        cursor.execute("ROLLBACK TO SAVEPOINT S")
                    change(cursor, dice, owned[at], number * 20 + 10 + step)
            if dice.random() < 0.7:
                (sessions[at].commit if dice.random() < 0.8 else sessions[at].rollback)()
        for session in sessions:
            session.commit()
    for name in TABLES:
        oracle.run(f"INSERT INTO {name} (ID) VALUES ({LAST})")


def change(cursor: Any, dice: random.Random, owned: dict[str, list[int]], number: int) -> None:
    """One statement on rows that the session made, so that sessions do not wait for each other."""
    table = dice.choice(TABLES)
    ids = owned[table]
    what = dice.random()
    if not ids or what < 0.5:
        new = number * 3 + 1
        values = [
            new,
            dice.choice(("a'b", "naïve ✓", None, "x" * 60)),
            dice.randrange(-(10**9), 10**9) / 100,
        ]
        cursor.execute(
            f"INSERT INTO {table} VALUES (:1, :2, :3, DATE '2024-02-29' + :4,"
            " TIMESTAMP '2024-02-29 01:02:03.456789', HEXTORAW('0AFF'))",
            [*values, dice.randrange(900)],
        )
        ids.append(new)
    elif what < 0.75:
        cursor.execute(
            f"UPDATE {table} SET V = :1, N = :2 WHERE ID = :3",
            [f"v{number}", dice.randrange(100), dice.choice(ids)],
        )
    elif what < 0.85:
        old = dice.choice(ids)
        cursor.execute(f"UPDATE {table} SET ID = :1 WHERE ID = :2", [number * 3 + 2, old])
        ids.append(number * 3 + 2)
    else:
        cursor.execute(f"DELETE FROM {table} WHERE ID = :1", [dice.choice(ids)])


@pytest.mark.parametrize("strategy", ["online_catalog", "redo_log_catalog"])
def test_debezium_and_the_change_log_say_the_same(strategy: str, tmp_path: Path) -> None:
    """Without the two oddities of a real LogMiner that make Debezium lose rows: docs/reference/clients.md has the figures."""
    with running_oracle() as oracle:
        for wart in (Wart.SPURIOUS_ROLLBACKS, Wart.PARTIAL_XIDS):
            oracle.database.redo.set_wart(wart, shown=False)
        oracle.run(
            *(
                f"CREATE TABLE {name} (ID NUMBER(10) PRIMARY KEY, V VARCHAR2(60), N NUMBER(12,2), D DATE, T TIMESTAMP(6), R RAW(8))"
                for name in TABLES
            )
        )
        folder = tmp_path / "debezium"
        folder.mkdir()
        with (
            source_of(oracle, tmp_path / "ours", *TABLES) as source,
            debezium(
                oracle.server.port,
                PASSWORDS[CAPTURE],
                folder,
                [f"DEMO.{name}" for name in TABLES],
                **{"log.mining.strategy": strategy},
            ) as peer,
        ):
            source.run()
            load(oracle, SEED, TRANSACTIONS)
            lasts = len(TABLES)
            peer.wait(lambda: (folder / "events.json").read_text().count(f'"ID":"{LAST}"') == lasts)
            source.windows()
            theirs = peer.events(KINDS)
            ours = [
                event
                for name in TABLES
                for event in events_of_change_log(
                    name, source.lake.tables[table_id(name)].history, KINDS, "ID"
                )
            ]
    for name in TABLES:
        assert [event for event in theirs if event.table == name] == [
            event for event in ours if event.table == name
        ]
    assert len(theirs) > TRANSACTIONS


COMPARED = (
    "connector", "snapshot", "db", "sequence", "schema", "table", "txId", "scn", "commit_scn", "lcr_position", "rs_id", "redo_thread",
    "user_name", "row_id", "ts_ms", "ts_us", "ts_ns", "commit_ts_ms", "start_ts_ms", "txSeq",
)  # fmt: skip
"""Of the block ``source``. Not compared: the program's own version and name; ``ssn``, which Debezium never fills; and ``start_scn``, which is that of
the first captured change there, and that of the transaction's beginning here."""


def envelope(event: dict[str, Any]) -> dict[str, Any]:
    """What two readers of one change must say alike of it."""
    return {
        "op": event["op"],
        "has_images": (event["before"] is not None, event["after"] is not None),
        "transaction": event["transaction"],
        **{name: event["source"].get(name) for name in COMPARED},
    }


def test_the_envelope_is_debeziums(tmp_path: Path) -> None:
    """The query of `redolake table events` against what Debezium sends, field by field."""
    with running_oracle() as oracle:
        for wart in (Wart.SPURIOUS_ROLLBACKS, Wart.PARTIAL_XIDS):
            oracle.database.redo.set_wart(wart, shown=False)
        oracle.run(
            *(
                f"CREATE TABLE {name} (ID NUMBER(10) PRIMARY KEY, V VARCHAR2(60), N NUMBER(12,2), D DATE, T TIMESTAMP(6), R RAW(8))"
                for name in TABLES
            )
        )
        folder = tmp_path / "debezium"
        folder.mkdir()
        with (
            source_of(
                oracle, tmp_path / "ours", *TABLES, lake={"path": str(tmp_path / "lake")}
            ) as source,
            debezium(
                oracle.server.port,
                PASSWORDS[CAPTURE],
                folder,
                [f"DEMO.{name}" for name in TABLES],
                **{"provide.transaction.metadata": "true"},
            ) as peer,
        ):
            source.run()
            load(oracle, SEED, 60)
            lasts = len(TABLES)
            peer.wait(lambda: (folder / "events.json").read_text().count(f'"ID":"{LAST}"') == lasts)
            source.windows()
            lines = (folder / "events.json").read_text().splitlines()
            theirs = [event for line in lines if "source" in (event := json.loads(line))]
            for name in TABLES:
                written(source, name)
            ours = {
                name: events_by_duckdb(
                    source.pipeline.records.events_sql(table_id(name), "duckdb", "UTC", "ORCLPDB1")
                )
                for name in TABLES
            }
    for name in TABLES:
        own = [envelope(event) for event in theirs if event["source"]["table"] == name]
        assert own == [envelope(event) for event in ours[name]]
    assert len(theirs) > 60
