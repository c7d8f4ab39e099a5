"""Passes that a redo log spoils, through the driver: mined again while that may help, and stopped where it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_core.capture.attempts import PASSES_MAX
from cdc_core.capture.logs.dictionaries import names_shown
from cdc_core.capture.logs.shown_names import ShownNames
from cdc_core.capture.passes import question
from cdc_core.config import LogMinerConfig, SnapshotConfig
from cdc_core.errors import OracleError, RedoUnreadableError, SchemaMismatchError
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.cutting import plan_chunks
from cdc_core.snapshot.plan import ChunkRange
from cdc_core.steps.reconciliation import _oracle_rows
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.capture.source import Source
from tests.capture.test_embedded import EMP
from tests.oracle.embedded import Oracle
from tests.oracle.fake_session import FakeSession
from tests.oracle.fixtures import oracle_with

database = oracle_with(
    "CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY)",
    scope="module",
)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between attempts, without waiting."""
    found: list[float] = []
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=found.append))
    return found


@pytest.fixture
def oracle(database: Oracle) -> Iterator[Oracle]:
    yield database
    database.database.faults.disarm_all()


def spoiled(code: int, *, times: int) -> Fault:
    return Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "START_LOGMNR", code=code, times=times)


@pytest.mark.parametrize("code", [310, 334, 1289, 1368])
def test_what_changes_under_logminer_is_mined_again(
    oracle: Oracle, tmp_path: Path, slept: list[float], code: int
) -> None:
    source = Source.begin(oracle, tmp_path)
    oracle.run(f"INSERT INTO EMP VALUES ({code})")
    oracle.database.faults.arm(spoiled(code, times=7))
    assert source.window().rows_by_table == {"DEMO.EMP": 1}
    assert len(slept) == 7


def test_what_changes_in_every_pass_stops_the_window(
    oracle: Oracle, tmp_path: Path, slept: list[float]
) -> None:
    source = Source.begin(oracle, tmp_path)
    oracle.database.faults.arm(spoiled(1368, times=0))
    with pytest.raises(OracleError, match="every pass") as caught:
        source.window()
    assert (caught.value.facts["passes"], caught.value.facts["ora"]) == (PASSES_MAX, "ORA-01368")
    assert len(slept) == PASSES_MAX - 1


def test_a_log_whose_file_is_gone_stops_with_its_name(
    oracle: Oracle, tmp_path: Path, slept: list[float]
) -> None:
    source = Source.begin(oracle, tmp_path)
    oracle.run("INSERT INTO EMP VALUES (1)")
    for _ in range(5):
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    [(name, sequence), *_] = source.session.fetch_all(
        "SELECT NAME, SEQUENCE# FROM V$ARCHIVED_LOG WHERE NEXT_CHANGE# > :scn ORDER BY SEQUENCE#",
        {"scn": source.start.mining_low},
    )
    oracle.database.redo.remove_archived_log(sequence)
    with pytest.raises(RedoUnreadableError) as caught:
        source.window()
    assert caught.value.facts["file"] == name
    assert len(slept) == 1, "the list of logs is read once more"


def test_a_rename_while_redo_is_read_counts_for_another_pass(
    oracle: Oracle, tmp_path: Path, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows were filtered by names that are not theirs any more."""
    oracle.run("CREATE TABLE MOVED (ID NUMBER(10) PRIMARY KEY)")
    source = Source.begin(oracle, tmp_path, "MOVED")
    oracle.run("INSERT INTO MOVED VALUES (1)")
    [record] = source.store.windows.plan([ScnWindow(source.start.snapshot_scn, Scn(source.bound()))])  # fmt: skip
    names: list[ShownNames] = []

    def renamed_after_it(
        session: OracleSession, tables: Sequence[TableSchema], how: LogMinerConfig
    ) -> ShownNames:
        names.append(names_shown(session, tables, how))
        if len(names) == 1:
            oracle.run("ALTER TABLE MOVED RENAME TO MOVED_AWAY")
        return names[-1]

    monkeypatch.setattr(question, "names_shown", renamed_after_it)
    assert source.capture(record).rows_by_table == {"DEMO.MOVED": 1}
    assert (len(names), len(slept)) == (4, 1)


def test_the_past_of_a_table_that_was_altered_a_moment_ago_is_waited_for(
    oracle: Oracle, tmp_path: Path, slept: list[float]
) -> None:
    session = oracle.capture_session(oracle.config(tmp_path, "EMP"))
    oracle.run("ALTER TABLE EMP MODIFY ID NUMBER(11)")
    refused = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", code=1466, times=2)
    oracle.database.faults.arm(refused)
    assert read_after_ddl(session, [EMP], lambda: count(session)) >= 0
    assert slept == [3, 3]


def test_chunks_of_a_table_that_was_altered_a_moment_ago_are_planned_later(
    oracle: Oracle, tmp_path: Path, slept: list[float]
) -> None:
    config = oracle.config(tmp_path, "EMP")
    session = oracle.capture_session(config)
    schema = read_table_schema(session, config.tables[0])
    oracle.run("ALTER TABLE EMP MODIFY ID NUMBER(12)")
    oracle.database.faults.arm(
        Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", code=1466, times=2)
    )
    chunks = SnapshotConfig(chunk_rows=100)
    assert plan_chunks(session, schema, scn=current_scn(session), config=chunks)
    assert slept == [3, 3]


def count(session: OracleSession) -> int:
    [(scn,)] = session.fetch_all("SELECT CURRENT_SCN FROM V$DATABASE")
    [(rows,)] = session.fetch_all("SELECT COUNT(*) FROM DEMO.EMP AS OF SCN :scn", {"scn": scn})
    return int(rows)


def test_a_table_that_was_altered_long_ago_is_not_waited_for(slept: list[float]) -> None:
    error = SchemaMismatchError("altered", hint="", ora="ORA-01466")

    def refuse() -> None:
        raise error

    with pytest.raises(SchemaMismatchError):
        read_after_ddl(FakeSession({"LAST_DDL_TIME": [(0,)]}), [EMP], refuse)
    assert slept == []


def test_reconciling_waits_for_a_table_that_was_altered_a_moment_ago(
    oracle: Oracle, tmp_path: Path, slept: list[float]
) -> None:
    oracle.run("CREATE TABLE COMPARED (ID NUMBER(10) PRIMARY KEY)", "INSERT INTO COMPARED VALUES (1)")  # fmt: skip
    config = oracle.config(tmp_path, "COMPARED")
    session = oracle.capture_session(config)
    schema = read_table_schema(session, config.tables[0])
    ctx: Any = SimpleNamespace(source="src", config=config, masks=lambda _table: {})
    oracle.database.faults.arm(
        Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", code=1466, times=2)
    )
    parts = [(None, ChunkRange.whole())]
    [found] = [
        sum(pq.read_table(path).num_rows for path in paths)
        for _, paths in _oracle_rows(ctx, session, schema, parts, current_scn(session))
    ]
    assert (found, slept) == (1, [3, 3])
