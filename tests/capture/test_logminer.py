"""One window from redo to landing, with a prepared LogMiner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_core.capture.logminer import capture_window
from cdc_core.capture.passes.rows import landing_rows
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.transactions.ledger import TransactionLedger
from cdc_core.change_reader import WindowWork
from cdc_core.config import LocalLandingConfig, TableConfig
from cdc_core.errors import (
    LogsNotReadyError,
    OracleError,
    OracleUnavailableError,
    RedoUnavailableError,
    RowCountError,
)
from cdc_core.landing import redo_files
from cdc_core.landing.layout import window_folder
from cdc_core.landing.manifest import MANIFEST_NAME, read_window_manifest, window_manifest_bytes
from cdc_core.landing.open import open_landing
from cdc_core.landing.store import LandingStore
from cdc_core.model.operations import Operation
from cdc_core.model.records import SourceRecord, WindowRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from tests.capture.landed import landed_window
from tests.capture.test_rows import DEPT, EMP, X1, X2, batch, row
from tests.landing.facts import PLANNED
from tests.oracle.fake_session import FakeSession

WINDOW = ScnWindow(Scn(100), Scn(200))
RECORD = WindowRecord(
    source="src",
    ordinal=2,
    window=WINDOW,
    mining_low=Scn(90),
    state="planned",
    rows=None,
    seconds=None,
    apply_seconds=None,
    manifest_sha256=None,
    created=datetime.now(UTC),
    captured=None,
    applied=None,
    last_error=None,
    key=WINDOW.key,
)
SOURCE = SourceRecord(name="src", snapshot_scn=Scn(50), mining_low=Scn(40), resetlogs_change=1)
NO_SESSION = OracleError("no LogMiner session", ora="ORA-01307")
COLUMNS = [("HR", "EMP", "ID", "NUMBER", 22, 0, 10, 0, "N", None, "NO", "NO", 1)]
ADDED = [("HR", "EMP", "NOTE", "VARCHAR2", 10, 10, None, None, "Y", None, "NO", "NO", 2)]


CONFIGS = (TableConfig(name="HR.EMP"), TableConfig(name='HR."Dept"'))
RULES = CaptureRules(
    tables=CONFIGS, rows=1000, rewrites_wider=frozenset(one.table for one in CONFIGS)
)


def answers(**more: Any) -> dict[str, Any]:
    return {
        "SELECT RESETLOGS_CHANGE#": [(1,)],
        "FROM V$THREAD": [(1, "OPEN", "PUBLIC", 1, 0, 0, 500, 1, 500)],
        "FROM V$LOG L": [(1, 5, "/redo5", 80, None, 1000, "CURRENT")],
        "MAX(A.SEQUENCE#)": [],
        "A.BLOCKS": [],
        "RAWTOHEX(XID) FROM V$TRANSACTION": [(X1,), (X2,)],
        "GV$SESSION": [],
        "CURRENT_SCN": [(500,)],
        "FROM V$LOGMNR_LOGS": [(0,)],
        "SUPPLEMENTAL_LOG_DATA_MIN": [("YES", "YES")],
        "UNRECOVERABLE_CHANGE#": [],
        "END_RESETLOGS_SCN": [],
        "DATA_OBJECT_ID), MAX(": [],
        "FROM ALL_TABLES": [],
        "P.OBJECT_NAME = T.OBJECT_NAME": [],
        "SELECT OBJECT_ID, OWNER": [(501, "HR", "EMP"), (502, "HR", "Dept")],
        "OBJECT_ID IN": [("HR", "EMP", 501), ("HR", "Dept", 502)],
        "LAST_DDL_TIME <=": [],
        "VALIDATED <> 'VALIDATED'": [],
        **more,
    }


def dictionary(columns: list[Any], key: str = "ID", object_id: int = 501) -> dict[str, Any]:
    return {
        "ALL_TAB_COLS": columns,
        "ALL_CONSTRAINTS": [("HR", "EMP", key, "NOT DEFERRABLE")],
        "ALL_INDEXES": [],
        "ALL_OBJECTS": [("HR", "EMP", object_id)],
    }


@pytest.fixture
def landing(tmp_path: Path) -> LandingStore:
    return open_landing(LocalLandingConfig(path=str(tmp_path)))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)


def work_of(**more: Any) -> WindowWork:
    """The window's work."""
    return WindowWork(
        source=replace(SOURCE, resetlogs_change=more.get("resetlogs_change", 1)),
        record=RECORD,
        tables=more.get("tables", [EMP, DEPT]),
        ledger=more.get("ledger", []),
        positions=more.get("positions", ()),
        joins={},
        planned=PLANNED,
    )


def capture(session: FakeSession, landing: LandingStore, **more: Any) -> Any:
    """Capture the window; return its manifest and the ledger after it."""
    capture_window(
        session,  # type: ignore[arg-type]
        work_of(**more),
        RULES,
        landing,
        prefetched=more.get("prefetched"),
    )
    return landed_window(landing, "src", WINDOW)


def test_a_window_lands_with_its_rows_transactions_and_manifest(landing: LandingStore) -> None:
    session = FakeSession(
        answers(),
        [
            batch(row(Operation.START, scn=95), row(1), row(Operation.START, X2)),
            batch(row(1, X2, table_name="Dept"), row(Operation.COMMIT, scn=180)),
        ],
        {"END_LOGMNR": NO_SESSION},
    )
    manifest, ledger = capture(session, landing)
    folder = window_folder("src", WINDOW)
    assert read_window_manifest(landing.read(folder, MANIFEST_NAME), where="") == manifest
    assert manifest.rows_by_table == {"HR.EMP": 1, 'HR."Dept"': 1}
    assert manifest.tables_committed == ("HR.EMP",)
    assert (manifest.transactions_committed, manifest.transactions_open) == (1, 1)
    assert [log.sequence for log in manifest.logs] == [5]
    [redo] = landing.local_paths(folder, manifest.redo_files)
    with pq.ParquetFile(redo) as file:
        groups = [file.read_row_group(at, ["ordinal"]) for at in range(file.num_row_groups)]
    assert [group["ordinal"].to_pylist() for group in groups] == [[(2 << 40) + 3], [(2 << 40) + 1]]
    assert manifest.files_by_table == {'HR."Dept"': (0,), "HR.EMP": (0,)}
    [path] = landing.local_paths(folder, [manifest.transactions_file])
    assert pq.read_table(path).column("state").to_pylist() == ["commit", "open"]
    assert [one.xid for one in ledger] == [X2.lower()]


def test_the_mining_range_and_the_filters_are_sent_as_binds(landing: LandingStore) -> None:
    session = FakeSession(answers(), [batch()], {"END_LOGMNR": NO_SESSION})
    capture(session, landing)
    [(_, started)] = [one for one in session.sent if "START_LOGMNR" in one[0]]
    assert started == {"log0": "/redo5", "scn_low": 91, "scn_high": 200}
    [(sql, binds)] = [one for one in session.sent if "V$LOGMNR_CONTENTS" in one[0]]
    assert binds == {
        "scn_low": 90, "scn_high": 200, "o0": "HR", "n0": "Dept", "n1": "EMP",
    }  # fmt: skip
    assert "DATA_OBJ# IN (501, 502)" in sql
    assert "SRC_CON_NAME" not in sql


def test_logminer_is_ended_also_when_the_pass_fails(landing: LandingStore) -> None:
    lost = OracleUnavailableError("lost")
    session = FakeSession(answers(), [batch(row(Operation.START)), lost])
    with pytest.raises(OracleUnavailableError):
        capture(session, landing)
    assert sum("END_LOGMNR" in sql for sql, _ in session.sent) == 1
    assert not landing.exists(window_folder("src", WINDOW), MANIFEST_NAME)


def test_logminer_that_could_not_be_ended_is_ended_before_the_next_pass(
    landing: LandingStore,
) -> None:
    failed = OracleError("ended neither", ora="ORA-00600")
    session = FakeSession(answers(), [batch(), OracleError("lost", ora="ORA-00600")])
    session.blocks["END_LOGMNR"] = failed
    with pytest.raises(OracleError, match="lost"):
        capture(session, landing)
    assert session.is_mining
    session.blocks.clear()
    session.batches[1:] = []
    capture(session, landing)
    calls = [sql for sql, _ in session.sent if "_LOGMNR(" in sql]
    assert ["END_LOGMNR" in sql for sql in calls] == [False, True, True, False, True]


def test_a_window_without_rows_lands_too(landing: LandingStore) -> None:
    manifest, ledger = capture(FakeSession(answers(), [batch()]), landing)
    assert (manifest.redo_files, manifest.rows_by_table, ledger) == ((), {}, [])
    assert manifest.transactions_file.rows == 0


def test_rows_that_get_lost_on_their_way_to_landing_stop_the_window(
    landing: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are counted when they are read, when they land, and by the ledger."""
    original: Callable[..., Any] = landing_rows
    monkeypatch.setattr(
        "cdc_core.capture.window_rows.landing_rows", lambda *given: original(*given).slice(1)
    )
    with pytest.raises(RowCountError) as caught:
        capture(FakeSession(answers(), [batch(row(Operation.START), row(1), row(1))]), landing)
    facts = caught.value.facts
    assert (facts["changes"], facts["landed"], facts["counted"]) == (2, 1, 2)
    assert not landing.exists(window_folder("src", WINDOW), MANIFEST_NAME)


def test_rows_that_the_ledger_misses_stop_the_window(
    landing: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TransactionLedger, "take", lambda _self, found: found)
    with pytest.raises(RowCountError) as caught:
        capture(FakeSession(answers(), [batch(row(Operation.START), row(1))]), landing)
    facts = caught.value.facts
    assert (facts["changes"], facts["landed"], facts["counted"]) == (1, 1, 0)


def test_redo_goes_to_several_files(landing: LandingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redo_files, "FILE_ROWS_MAX", 2)
    monkeypatch.setattr(redo_files, "HELD_ROWS_MAX", 2)
    batches = [batch(row(1), row(1)), batch(row(1))]
    manifest, _ = capture(FakeSession(answers(), batches), landing)
    assert [(file.name, file.rows) for file in manifest.redo_files] == [
        ("redo-00000.parquet", 2),
        ("redo-00001.parquet", 1),
    ]


def test_a_log_that_is_not_ready_is_waited_for_a_few_times(landing: LandingStore) -> None:
    looks = iter([[], [], [(1, 5, "/redo5", 80, None, 1000, "CURRENT")]])
    last = [(1, 5, "/redo5", 80, None, 1000, "CURRENT")]
    session = FakeSession(answers(**{"FROM V$LOG L": lambda _binds: next(looks, last)}), [batch()])
    assert capture(session, landing)[0].logs[0].sequence == 5
    never = FakeSession(answers(**{"FROM V$LOG L": []}), [batch()])
    with pytest.raises(LogsNotReadyError, match="not archived"):
        capture(never, landing)


def test_a_log_that_logminer_misses_makes_the_window_wait(landing: LandingStore) -> None:
    """STATUS 4 of V$LOGMNR_LOGS: LogMiner goes on without the log and shows fewer rows."""
    missing = answers(**{"FROM V$LOGMNR_LOGS": [(0,), (4,)]})
    session = FakeSession(missing, [batch()], {"END_LOGMNR": NO_SESSION})
    with pytest.raises(LogsNotReadyError, match="misses"):
        capture(session, landing)
    assert not landing.exists(window_folder("src", WINDOW), MANIFEST_NAME)


def test_a_log_overwritten_during_the_pass_makes_it_start_again(landing: LandingStore) -> None:
    before, after = (1, 5, "/redo5", 80, None, 9, "CURRENT"), (1, 6, "/redo5", 300, None, 9, "CURRENT")  # fmt: skip
    archived = [(1, 5, "/arc5", 80, 300, 9, "A", "YES", 1, 0)]

    def is_over() -> bool:
        return any("V$LOGMNR_CONTENTS" in sql for sql, _ in session.sent)

    session = FakeSession(
        answers(**{
            "FROM V$LOG L": lambda _: [after if is_over() else before],
            "A.BLOCKS": lambda _: archived if is_over() else [],
        }),
        [batch(row(Operation.START))],
    )  # fmt: skip
    manifest, _ = capture(session, landing)
    assert [log.name for log in manifest.logs] == ["/arc5"]
    assert manifest.transactions_open == 1, "the second pass counts alone"


def test_a_late_commit_is_landed_and_told(
    landing: LandingStore, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = OpenTransaction(
        xid=X1.lower(),
        start_scn=60,
        first_ordinal=0,
        has_rollback=False,
        tables=("HR.EMP",),
        table_rows=(1,),
        rows=1,
    )
    session = FakeSession(answers(), [batch(row(Operation.COMMIT, scn=95))])
    manifest, _ = capture(session, landing, ledger=[waiting])
    assert manifest.left == ()
    assert (manifest.transactions_late, manifest.late_scn) == (1, 95)
    assert manifest.tables_late == manifest.tables_committed == ("HR.EMP",)
    assert read_window_manifest(window_manifest_bytes(manifest), where="") == manifest
    assert "scn=95 tables=HR.EMP" in caplog.text


def test_another_incarnation_stops_the_window(landing: LandingStore) -> None:
    with pytest.raises(RedoUnavailableError, match="RESETLOGS"):
        capture(FakeSession(answers(), [batch()]), landing, resetlogs_change=99)


# --- DDL ----------------------------------------------------------------------------------------


def ddl_rows(text: str, *, commit: int = 161) -> list[Any]:
    info = "USER DDL (PlSql=0 RecDep=0)"
    return [
        batch(
            row(Operation.START),
            row(Operation.DDL, scn=160, sql_redo=text, info=info),
            row(Operation.COMMIT, scn=commit),
        )
    ]


def test_an_added_column_is_followed_from_the_commit_of_its_ddl(landing: LandingStore) -> None:
    session = FakeSession(answers(**dictionary([*COLUMNS, *ADDED])), ddl_rows("alter … add"))
    manifest, _ = capture(session, landing)
    [change] = manifest.schema_changes
    assert (change.scn, change.ordinal, change.ddl) == (161, (2 << 40) + 1, "alter … add")
    assert change.schema.column_names == ("ID", "NOTE")
    assert manifest.schemas[0] == change.schema
    assert {binds["scn"] for sql, binds in session.sent if "ALL_TAB_COLS" in sql} == {161}
    assert manifest.tables_committed == ()


def test_ddl_that_changes_nothing_captured_is_passed_over(landing: LandingStore) -> None:
    session = FakeSession(answers(**dictionary(COLUMNS)), ddl_rows("comment on table emp is 'x'"))
    manifest, _ = capture(session, landing)
    assert manifest.schema_changes == ()
    assert manifest.schemas[0] == EMP


REFUSED_DDL = [
    pytest.param("truncate table emp", dictionary(COLUMNS), "without redo", id="truncate"),
    pytest.param(
        "alter table emp exchange partition p with table x", dictionary(COLUMNS), "without redo", id="exchange-partition",
    ),
    pytest.param(
        "alter table emp rename column id to another",
        dictionary([(*COLUMNS[0][:2], "OTHER", *COLUMNS[0][3:])], key="OTHER"),
        "the key changed from (ID) to (OTHER)", id="a-key-of-which-the-text-says-another-name",
    ),
    pytest.param(
        "drop table emp", {**dictionary([]), "ALL_CONSTRAINTS": []}, "no such table", id="drop-table"
    ),
    pytest.param(
        "create table emp", dictionary(COLUMNS, object_id=999), "created again", id="recreated"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "read", "reason"), REFUSED_DDL)
def test_ddl_that_cannot_be_followed_ends_the_table_s_stream_right_before_it(
    landing: LandingStore, text: str, read: dict[str, Any], reason: str
) -> None:
    session = FakeSession(answers(**read), ddl_rows(text))
    [end] = capture(session, landing)[0].left
    assert (end.table, end.scn) == (EMP.table, 160)
    assert reason in end.reason
    assert text in end.reason
    assert f"redolake table resnapshot {EMP.table}" in end.way_out


def test_ddl_from_before_the_snapshot_is_in_its_schema_already(landing: LandingStore) -> None:
    session = FakeSession(answers(), ddl_rows("truncate table emp"))
    known = replace(EMP, scn_from=Scn(161))
    manifest, _ = capture(session, landing, tables=[known])
    assert manifest.schema_changes == ()


def test_where_the_dictionary_cannot_look_back_the_present_definition_serves(
    landing: LandingStore,
) -> None:
    def columns(binds: Any) -> list[Any]:
        if "scn" in binds:
            raise OracleError("no", ora="ORA-01031")
        return [*COLUMNS, *ADDED]

    read = {**dictionary([]), "ALL_TAB_COLS": columns}
    calm = FakeSession(answers(**{"LAST_DDL_TIME": [], **read}), ddl_rows("alter … add"))
    assert capture(calm, landing)[0].schema_changes[0].scn == 161


def test_a_later_ddl_is_not_mistaken_for_this_one(landing: LandingStore) -> None:
    """The present definition confirms what a text says in full; alone it says nothing of then."""

    def columns(binds: Any) -> list[Any]:
        if "scn" in binds:
            raise OracleError("no", ora="ORA-01031")
        return [*COLUMNS, *ADDED]

    read = {**dictionary([]), "LAST_DDL_TIME": [("HR", "EMP", 1)], "ALL_TAB_COLS": columns}
    manifest, _ = capture(FakeSession(answers(**read), ddl_rows("alter … add")), landing)
    [end] = manifest.left
    assert "altered after this SCN" in end.reason
    assert manifest.schema_changes == ()


def test_a_ddl_that_commits_behind_the_window_is_read_from_the_present_dictionary(
    landing: LandingStore,
) -> None:
    info = "USER DDL (PlSql=0 RecDep=0)"
    rows = [
        batch(row(Operation.START), row(Operation.DDL, scn=199, sql_redo="alter … add", info=info))
    ]
    read = dictionary([*COLUMNS, *ADDED])
    session = FakeSession({"SELECT CURRENT_SCN": [(777,)], **answers(**read)}, rows)
    manifest, ledger = capture(session, landing)
    assert [change.scn for change in manifest.schema_changes] == [199]
    assert {binds["scn"] for sql, binds in session.sent if "ALL_TAB_COLS" in sql} == {777}
    assert [one.xid for one in ledger] == [X1.lower()]
