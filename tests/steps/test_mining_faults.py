"""What ends a call of a session that mines: memory, limits of profiles, a server process that is gone. Nothing is lost, and no table stops."""

from __future__ import annotations

from pathlib import Path

import oracledb
import pytest

from cdc_core.errors import TransientError
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of

CODES = [4030, 4036, 2393, 2396, 2399, 3113]

CALLS = [
    pytest.param(FaultEvent.EXECUTE, "V$DATABASE", id="the-database"),
    pytest.param(FaultEvent.EXECUTE, "V$LOG", id="the-logs"),
    pytest.param(FaultEvent.EXECUTE, "V$ARCHIVED_LOG", id="archived-logs"),
    pytest.param(FaultEvent.EXECUTE, "ADD_LOGFILE", id="naming-a-log"),
    pytest.param(FaultEvent.EXECUTE, "START_LOGMNR", id="the-start"),
    pytest.param(FaultEvent.EXECUTE, "V$LOGMNR_LOGS", id="what-is-missing"),
    pytest.param(FaultEvent.EXECUTE, "V$LOGMNR_CONTENTS", id="the-query"),
    pytest.param(FaultEvent.FETCH, "V$LOGMNR_CONTENTS", id="the-rows"),
    pytest.param(FaultEvent.EXECUTE, "END_LOGMNR", id="the-end"),
    pytest.param(FaultEvent.EXECUTE, "SET CONTAINER", id="another-container"),
]

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    scope="module",
)


@pytest.mark.parametrize("code", [4036, 2399, 3113])
@pytest.mark.parametrize(("event", "call"), CALLS)
def test_a_call_of_a_mining_session_that_fails_loses_nothing(
    oracle: Oracle, tmp_path: Path, event: FaultEvent, call: str, code: int
) -> None:
    faults = oracle.database.faults
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.run()
        oracle.run(
            "INSERT INTO T SELECT NVL(MAX(ID), 0) + 1, 'a' FROM T",
            "INSERT INTO U SELECT NVL(MAX(ID), 0) + 1, 'b' FROM U",
            "UPDATE T SET V = DECODE(V, 'x', 'y', 'x') WHERE ID = 1",
        )
        fault = Fault(FaultKind.ORA_ERROR, event, call, code=code, times=2)
        faults.arm(fault)
        for _ in range(5):
            try:
                source.run()
            except TransientError:
                continue
            finally:
                assert source.record("T").state == source.record("U").state == "ready"
            break
        assert fault.seen, "the call is one of those that are made"
        faults.disarm_all()
        source.run()
        source.check_current("T", "U")


@pytest.mark.parametrize("code", [*CODES, 1555])
def test_a_chunk_whose_fetch_ends_in_the_middle_is_read_again(
    oracle: Oracle, tmp_path: Path, code: int
) -> None:
    """Undo that went by size alone ends a fetch a minute after the query began (ORA-01555)."""
    table = f"CHUNKED_{code}"
    oracle.run(
        f"CREATE TABLE {table} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(200))",
        f"INSERT INTO {table} SELECT LEVEL, RPAD('v', 200, 'v') FROM DUAL CONNECT BY LEVEL <= 2000",
    )
    more = {"snapshot": {"chunk_rows": 800}}
    with source_of(oracle, tmp_path, table, "U", **more) as source:
        source.more["oracle"] = {**oracle.login("C##REDOLAKE"), "fetch_rows": 100}
        fault = Fault(FaultKind.ORA_ERROR, FaultEvent.FETCH, f'"{table}" AS OF', nth=4, code=code)
        oracle.database.faults.arm(fault)
        for _ in range(4):
            try:
                source.run()
            except TransientError:
                continue
            break
        assert fault.seen >= 4
        oracle.database.faults.disarm_all()
        source.run()
        oracle.run(f"UPDATE {table} SET V = 'w' WHERE ID = 5")
        source.run()
        source.check_current(table, "U")
        assert len(source.lake.image(source.record(table).table)) == 2000


def test_a_session_is_over_behind_what_logs_it_off(oracle: Oracle) -> None:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO U VALUES (900, 'never')")
        oracle.database.faults.arm(
            Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "over", code=2399)
        )
        with pytest.raises(oracledb.DatabaseError, match="ORA-02399"):
            cursor.execute("SELECT 'over' FROM DUAL")
        with pytest.raises(oracledb.DatabaseError, match=r"ORA-01012|DPY-1001"):
            cursor.execute("SELECT 1 FROM DUAL")
    oracle.database.faults.disarm_all()
    with oracle.owner() as connection:
        found = connection.cursor().execute("SELECT COUNT(*) FROM U WHERE ID = 900").fetchone()
    assert found == (0,)
