"""What `redolake status` says of transactions that stay open, through the driver, and how one is given up."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import oracledb

from oracle_embedded.database import ADMIN
from tests.oracle.embedded import OWNER, PASSWORDS, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id

SWITCH = "ALTER SYSTEM SWITCH LOGFILE"
PAGE = Path(__file__).parents[2] / "docs/how-to/stuck-window.md"

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    *(f"INSERT INTO T VALUES ({key}, 'first')" for key in range(9)),
)


def next_window(oracle: Oracle) -> None:
    oracle.run("UPDATE T SET V = 'quick' WHERE ID = 0")
    oracle.run(SWITCH, user=ADMIN)


def test_the_oldest_are_named_with_what_they_hold_back_until_their_session_is_killed(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, "T") as source:
        source.begin()
        slow = oracle.owner()
        slow.client_identifier = "till 7"
        slow.cursor().execute("UPDATE T SET V = 'secret' WHERE ID IN (1, 2)")
        next_window(oracle)
        first = source.windows()[-1]
        younger = [oracle.owner() for _ in range(6)]
        for key, one in enumerate(younger, start=3):
            one.cursor().execute("UPDATE T SET V = 'secret' WHERE ID = :1", [key])
        next_window(oracle)
        source.windows()

        status = source.pipeline.status(ask_oracle=False)
        assert (status.open_transactions, len(status.oldest_open)) == (7, 5)
        oldest = status.oldest_open[0]
        assert (oldest.username, oldest.client_id, oldest.tables, oldest.rows, oldest.state) == (
            OWNER, "till 7", (f"{OWNER}.T",), 2, "open"
        )  # fmt: skip
        assert (oldest.session_id, oldest.serial) == (slow.session_id, slow.serial_num)
        assert oldest.start_scn == status.oldest_open_scn
        assert oldest.keeps_windows_from == first.key
        assert oldest.started
        assert oldest.seen
        assert datetime.fromisoformat(oldest.started).tzinfo is None
        assert datetime.fromisoformat(oldest.seen).tzinfo is not None
        assert all(one.keeps_windows_from != first.key for one in status.oldest_open[1:])
        assert "secret" not in repr(asdict(status))

        sid, serial = found_by(oracle, oldest.xid)
        assert (sid, serial) == (slow.session_id, slow.serial_num)
        oracle.run(f"ALTER SYSTEM KILL SESSION '{sid},{serial},@1' IMMEDIATE", user=ADMIN)
        for one in younger:
            one.commit()
        for _ in range(4):  # its ROLLBACK row may be one that closes a savepoint only
            next_window(oracle)
            source.windows()
            status = source.pipeline.status(ask_oracle=False)
            assert {(one.xid, one.state) for one in status.oldest_open} <= {(oldest.xid, "undone")}
        assert (status.open_transactions, status.oldest_open) == (0, ())
        assert status.transactions_released == (), "its end was seen"
        source.check_current("T")


def found_by(oracle: Oracle, xid: str) -> tuple[int, int]:
    """SID and SERIAL# of the transaction's session, by the statement of the page."""
    [sql] = re.findall(r"```sql\n *(SELECT s\.INST_ID.*?);\n", PAGE.read_text(), re.DOTALL)
    with oracledb.connect(
        user=ADMIN, password=PASSWORDS[ADMIN], dsn=oracle.server.dsn
    ) as connection:
        cursor = connection.cursor()
        cursor.execute(sql.replace("0100020003000000", xid))
        names = [column[0] for column in cursor.description]
        [row] = cursor.fetchall()
    shown = dict(zip(names, row, strict=True))
    return shown["SID"], shown["SERIAL#"]


def test_a_transaction_whose_start_is_not_assigned_yet_is_read_from_its_beginning(
    oracle: Oracle, tmp_path: Path
) -> None:
    """V$TRANSACTION has START_SCN 0 of it when the first snapshot looks."""
    with oracle.owner() as slow, source_of(oracle, tmp_path, "T") as source:
        slow.cursor().execute("UPDATE T SET V = 'slow' WHERE ID IN (1, 2)")
        oracle.run("UPDATE T SET V = 'quick' WHERE ID = 3")
        source.run()
        slow.commit()
        assert source.windows()
        source.check_current("T")
        found = {row[0]: row[1] for row in source.lake.image(table_id("T"), of_oracle=True)}
        assert [str(found[key]) for key in sorted(found)][1:4] == ["slow", "slow", "quick"]
