"""Two independent readers of one database: Debezium's events are those of our change log, one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diagnosis.events import compare_events
from oracle_embedded.database import CAPTURE
from oracle_embedded.redo import Wart
from tests.lake.test_envelope import events_by_duckdb, written
from tests.oracle.embedded import PASSWORDS, running_oracle
from tests.peers.debezium import debezium, events_of_change_log, require_debezium
from tests.peers.exact import Options, our_value, their_value
from tests.peers.two_readers import COLUMNS, KINDS, TABLES, Load, compare, run_load
from tests.steps.harness import source_of, table_id

pytestmark = pytest.mark.slow

TRANSACTIONS = 10_000
SHORT = 400


@pytest.fixture(autouse=True)
def _peer() -> None:
    require_debezium()


@pytest.mark.parametrize("strategy", ["online_catalog", "redo_log_catalog"])
def test_debezium_and_the_change_log_say_the_same(strategy: str, tmp_path: Path) -> None:
    """Without the oddities of a real LogMiner that make Debezium lose rows. ``python -m tests.peers.two_readers --help`` has other
    numbers of transactions, seeds and oddities."""
    found = compare(tmp_path, transactions=TRANSACTIONS, strategy=strategy)
    assert found.is_equal, (found.missing[:3], found.extra[:3])
    assert found.transactions > TRANSACTIONS
    assert found.ours == found.theirs > 2 * TRANSACTIONS


@pytest.mark.parametrize("strategy", ["online_catalog", "redo_log_catalog"])
def test_columns_come_and_go(strategy: str, tmp_path: Path) -> None:
    found = compare(tmp_path, transactions=SHORT, strategy=strategy, load=Load.DDL)
    assert found.is_equal, (found.missing[:3], found.extra[:3])
    assert found.transactions > SHORT


def test_lobs_are_the_same(tmp_path: Path) -> None:
    """The rows that each transaction changed, as they are after it; in the shape of releases before 23ai, which Debezium reads."""
    found = compare(tmp_path, transactions=SHORT, load=Load.LOBS)
    assert found.is_equal, (len(found.missing), len(found.extra))
    assert found.transactions > SHORT


def test_what_reaches_the_redo_late_is_missing_in_debezium(tmp_path: Path) -> None:
    """It continues at the highest SCN that it has seen while it knows no open transaction; the first row of one that was open
    then enters the log later, with a lower SCN. The rest of that transaction arrives."""
    with running_oracle(strand_records=500) as oracle:
        for wart in (Wart.SPURIOUS_ROLLBACKS, Wart.PARTIAL_XIDS):
            oracle.database.redo.set_wart(wart, shown=False)
        oracle.run(f"CREATE TABLE ONE ({COLUMNS})")
        folder = tmp_path / "debezium"
        folder.mkdir()
        with (
            source_of(oracle, tmp_path / "ours", "ONE") as source,
            debezium(oracle.server.port, PASSWORDS[CAPTURE], folder, ["DEMO.ONE"]) as peer,
            oracle.owner() as late,
        ):
            source.run()
            late.cursor().execute("INSERT INTO ONE (ID) VALUES (1)")
            for key in (2, 3):
                oracle.run(f"INSERT INTO ONE (ID) VALUES ({key})")
                peer.wait(lambda key=key: f'"ID":"{key}"' in peer.newest())  # type: ignore[misc]
            late.cursor().execute("INSERT INTO ONE (ID) VALUES (4)")
            late.commit()
            oracle.run("INSERT INTO ONE (ID) VALUES (5)")
            peer.wait(lambda: '"ID":"5"' in peer.newest())
            source.windows()
            source.check_current("ONE")
            theirs = [dict(event.after or ())["ID"] for event in peer.events(KINDS)]
            history = source.lake.tables[table_id("ONE")].history
            ours = [
                dict(event.after or ())["ID"]
                for event in events_of_change_log("ONE", history, KINDS, "ID")
            ]
    assert ours == [2, 3, 1, 4, 5]
    assert theirs == [2, 3, 4, 5]


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
        oracle.run(*(f"CREATE TABLE {name} ({COLUMNS})" for name in TABLES))
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
            run_load(oracle, peer, transactions=40)
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
            compared = compare_events(source.pipeline, lines)
    assert (compared.differences, compared.of_other_tables) == ((), 0)
    assert compared.equal == len(theirs)
    for name in TABLES:
        own = [envelope(event) for event in theirs if event["source"]["table"] == name]
        assert own == [envelope(event) for event in ours[name]]
    assert len(theirs) > 60


MARKS = ("first", *["true"] * 3, "last_in_data_collection", "first_in_data_collection", *["true"] * 3, "last")  # fmt: skip
OWN_MOMENT = ("snapshot", "scn", "ts_ms", "ts_us", "ts_ns")
"""Of a row that a snapshot read: either reader has a snapshot of its own."""


def test_snapshot_events_are_debeziums(tmp_path: Path) -> None:
    """Rows of a snapshot, field by field. Debezium marks the first and the last of a table and of the whole; here each has "true", as
    chunks have no order among each other. Both name the SCN as of which they read, and a moment: here that of reading."""
    with running_oracle() as oracle:
        oracle.run(*(f"CREATE TABLE {name} ({COLUMNS})" for name in TABLES))
        values = "'it''s', -1.5, DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03.456789', HEXTORAW('0AFF')"
        oracle.run(*(f"INSERT INTO {name} VALUES ({key}, {values})" for name in TABLES for key in range(5)))  # fmt: skip
        folder = tmp_path / "debezium"
        folder.mkdir()
        more = {
            "snapshot.mode": "initial",
            "provide.transaction.metadata": "true",
            "decimal.handling.mode": "precise",
        }
        lake = {"path": str(tmp_path / "lake")}
        names = [f"DEMO.{name}" for name in TABLES]
        with (
            source_of(oracle, tmp_path / "ours", *TABLES, lake=lake) as source,
            debezium(oracle.server.port, PASSWORDS[CAPTURE], folder, names, **more) as peer,
        ):
            source.run()
            peer.wait(lambda: '"snapshot":"last"' in peer.newest())
            lines = (folder / "events.json").read_text().splitlines()
            theirs = [event for line in lines if "source" in (event := json.loads(line))]
            for name in TABLES:
                written(source, name)
            query = source.pipeline.records.events_sql
            ours = [
                event
                for name in TABLES
                for event in events_by_duckdb(query(table_id(name), "duckdb", "UTC", "ORCLPDB1"))
            ]
    assert [event["source"]["snapshot"] for event in theirs] == list(MARKS)
    assert {event["source"]["snapshot"] for event in ours} == {"true"}
    both = [sorted((_read_row(event) for event in events), key=repr) for events in (theirs, ours)]
    assert both[0] == both[1]
    assert len(ours) == 10
    for events in (theirs, ours):
        assert len({event["source"]["scn"] for event in events} - {None}) == 1
    for event in ours:
        assert event["source"]["ts_us"] == event["ts_us"]
    assert len({event["source"]["ts_ms"] for event in theirs} - {None}) == 1


def _read_row(event: dict[str, Any]) -> dict[str, Any]:
    """What both say of a row that a snapshot read, with its values."""
    declared = {one.split()[0]: one.split()[1] for one in COLUMNS.split(", ")}
    is_ours = event["source"]["name"] == "src"
    exact = our_value if is_ours else their_value
    return {
        **{name: value for name, value in envelope(event).items() if name not in OWN_MOMENT},
        "before": event["before"],
        "after": {
            column: exact(value, declared[column], Options())
            for column, value in event["after"].items()
        },
    }
