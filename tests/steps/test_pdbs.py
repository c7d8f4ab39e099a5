"""One configuration of two pluggable databases: a source for each, from one connect string that leads to the root."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import oracledb
import pytest
from tenacity import nap

from cdc_core.capture import source as source_module
from cdc_core.capture.passes import shared as shared_pass
from cdc_core.config import OracleConfig, SourceConfig, sources_of
from cdc_core.errors import ConfigError, OracleUnavailableError, PreflightError
from cdc_core.fleet import Round, common_scn, newest_end, run_together
from cdc_core.fleet.rounds import REDO_ATTEMPTS, REDO_SECONDS
from cdc_core.landing import redo_files
from cdc_core.landing.manifest import LandedFile
from cdc_core.model.scn import ScnWindow
from cdc_core.oracle.session import OracleSession, connect, settings_block
from cdc_core.steps import Pipeline
from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import (
    ADMIN,
    CAPTURE,
    LOCAL_CAPTURE,
    ContainerDatabase,
    container_database,
    source_config,
)
from tests.steps.harness import Source, table_id
from tests.steps.memory_lake import MemoryLake
from tests.steps.ways import ARCHIVE, changes

ONE, TWO = "ORCLPDB1", "ORCLPDB2"
XIDS = "SELECT RAWTOHEX(XID) FROM V$TRANSACTION"
IDLE = 3600.0
"""So many seconds an idle database waits before it writes redo of its own: longer than a test takes."""


@dataclass
class PdbSource(Source):
    """The source of one pluggable database of the configuration."""

    pdb: str = ""

    def written(self) -> SourceConfig:
        config = source_config(self.path, **{**self.more, "tables": self.tables})
        return sources_of(config)[self.pdb]


@dataclass
class Both:
    """Two pluggable databases, and the source of each."""

    cdb: ContainerDatabase
    sources: dict[str, PdbSource]
    paused: list[float] = field(default_factory=list)

    def run(self) -> Round:
        """One round. While it waits for redo, one of them writes some."""
        return run_together(self.pipelines, sleep=self.pause)

    def pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        self.cdb.pdbs[ONE].run("UPDATE T SET V = 'meanwhile' WHERE ID = 3")

    @property
    def pipelines(self) -> dict[str, Pipeline]:
        return {name: source.pipeline for name, source in self.sources.items()}

    def archive(self) -> None:
        self.cdb.pdbs[ONE].run(ARCHIVE, user=ADMIN)

    def check(self) -> None:
        """Both stand at one SCN, and equal Oracle there."""
        scn = common_scn(self.pipelines)
        assert scn is not None
        for source in self.sources.values():
            assert source.record("T").mirror_scn == scn
            source.check_exact("T")


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    (tmp_path / "both").mkdir()
    yield from opened(tmp_path / "both", "completed_logs")


def opened(path: Path, close_at: str) -> Iterator[Both]:
    """In each a table of one name and one number, with other rows."""
    with ExitStack() as stack:
        cdb = stack.enter_context(container_database(warts=DEFAULT_WARTS, idle_redo_seconds=IDLE))
        for name, oracle in cdb.pdbs.items():
            oracle.run(
                "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
                *(f"INSERT INTO T VALUES ({key}, '{name}')" for key in range(1, 4)),
            )
        more = {"capture": {"close_at": close_at}, "oracle": cdb.login(pdbs=[ONE, TWO])}
        sources = {
            name: PdbSource(oracle, path, [{"name": "DEMO.T"}], more=dict(more), pdb=name)
            for name, oracle in cdb.pdbs.items()
        }
        for source in sources.values():
            stack.callback(source.close)
        yield Both(cdb, sources)


@pytest.mark.parametrize(
    "close_at", ["completed_logs", pytest.param("online", marks=pytest.mark.slow)]
)
def test_equal_names_numbers_and_xids_are_captured_apart_and_up_to_one_scn(
    tmp_path: Path, close_at: str
) -> None:
    """With one XID open in both over a window's border: a commit in one, a rollback in the other."""
    for both in opened(tmp_path, close_at):
        assert not both.run().errors
        both.check()
        with ExitStack() as stack:
            owners = {
                name: stack.enter_context(oracle.owner()) for name, oracle in both.cdb.pdbs.items()
            }
            for name, owner in owners.items():
                owner.cursor().execute(f"UPDATE T SET V = '{name} changed' WHERE ID = 1")
                owner.cursor().execute(f"INSERT INTO T VALUES (4, '{name} new')")
            xids = {name: open_xids(both.cdb, name) for name in owners}
            assert xids[ONE] == xids[TWO] != []
            both.archive()
            assert not both.run().errors
            both.check()
            owners[ONE].commit()
            owners[TWO].rollback()
        both.cdb.pdbs[ONE].run("DELETE FROM T WHERE ID = 2")
        both.cdb.pdbs[TWO].run("UPDATE T SET ID = 12 WHERE ID = 2")
        both.archive()
        assert not both.run().errors
        both.check()
        ops = {
            name: [change["_cdc_op"] for change in changes(one)]
            for name, one in both.sources.items()
        }
        assert ops[ONE] == ["u", "c", "d"]
        for name, source in both.sources.items():
            images = [change[side] for change in changes(source) for side in ("before", "after")]
            assert {image["V"].split()[0] for image in images if image and image.get("V")} == {name}


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passes of LogMiner."""
    found: list[str] = []
    block = OracleSession.execute_block

    def noted(session: OracleSession, plsql: str, binds: Any = None) -> None:
        if "START_LOGMNR" in plsql:
            found.append(session.container)
        block(session, plsql, binds)

    monkeypatch.setattr(OracleSession, "execute_block", noted)
    return found


def landed(source: PdbSource, window: ScnWindow) -> list[LandedFile]:
    """The redo files of a window, with their digests."""
    return list(source.pipeline.window_manifest(window)[0].redo_files)


@pytest.mark.parametrize("query_filter", ["in", "none"])
def test_redo_is_read_once_for_both_and_lands_as_if_each_had_read_it(
    both: Both,
    passes: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query_filter: str,
) -> None:
    """Rows of more than one batch, statements that LogMiner splits, and a column that is left out, in transactions side by side. Where
    row groups end depends on the batches."""
    monkeypatch.setattr(redo_files, "HELD_ROWS_MAX", 50)
    for source in both.sources.values():
        source.more["oracle"] = both.cdb.login(pdbs=[ONE, TWO], fetch_rows=100)
        source.more["capture"] = {"close_at": "completed_logs", "query_filter": query_filter}
        source.tables = [{"name": "DEMO.T"}, {"name": "DEMO.W", "columns_exclude": ["SECRET"]}]
    for oracle in both.cdb.pdbs.values():
        oracle.run(
            "CREATE TABLE W (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(4000), B VARCHAR2(4000), SECRET VARCHAR2(30))",
            "CREATE TABLE N (ID NUMBER(9))",
        )
    both.run()
    both.archive()
    both.run()
    for source in both.sources.values():
        source.close()
    shutil.copytree(tmp_path / "both", before := tmp_path / "before")
    passes.clear()
    with ExitStack() as stack:
        owners = [stack.enter_context(oracle.owner()) for oracle in both.cdb.pdbs.values()]
        for low in range(10, 130, 30):
            for number, owner in enumerate(owners):
                keys = [(key, f"of {number}") for key in range(low, low + 30)]
                owner.cursor().executemany("INSERT INTO T VALUES (:1, :2)", keys)
        for owner in owners:
            owner.cursor().execute("INSERT INTO N SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 150")
            owner.cursor().execute(
                "INSERT INTO W VALUES (1, RPAD('a', 3000, 'b'), RPAD('c', 3000, 'd'), 'not to land')"
            )
            owner.commit()
    both.archive()
    assert not both.run().errors
    assert passes == [ONE], "one window of both, one pass"
    both.check()
    for source in both.sources.values():
        source.check_exact("W")
        newest = source.pipeline.records.windows(newest_first=True, limit=1)[0].window
        assert sum(file.rows for file in landed(source, newest)) == 121
        alone = replace(source, path=before, _pipeline=None)
        alone.more = {**source.more, "capture": {"close_at": "completed_logs"}}
        alone.pipeline.plan_windows(until=newest.scn_high)
        alone.pipeline.capture_window(newest)
        assert landed(alone, newest) == landed(source, newest)
        alone.close()
    assert passes == [ONE, ONE, TWO]


def test_what_cannot_be_shared_is_read_by_each(
    both: Both, passes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass for both that fails stops nobody; neither does one whose rows one of them cannot take."""
    both.run()
    both.archive()
    both.run()
    for failing in (
        ("mined_of_all", shared_pass),
        ("stored_answer", shared_pass),
    ):
        passes.clear()
        for oracle in both.cdb.pdbs.values():
            oracle.run("UPDATE T SET V = V || '+' WHERE ID = 1")
        both.archive()
        with monkeypatch.context() as patch:
            patch.setattr(failing[1], failing[0], _lost)
            assert not both.run().errors
        assert passes == [ONE, ONE, TWO]
        both.check()


@pytest.mark.parametrize("is_switched", [False, True], ids=["", "a-log-is-switched-meanwhile"])
def test_redo_that_is_being_written_is_read_once_for_both(
    tmp_path: Path, passes: list[str], monkeypatch: pytest.MonkeyPatch, *, is_switched: bool
) -> None:
    """Windows end at the redo written last. Redo of transactions that are open comes late, into any later window; where a log is switched
    between the pass and the windows' turns, it may have come meanwhile, and each window is read again."""
    read = shared_pass.read_shared
    together: list[list[bool]] = []

    def noted(asked: Any) -> Any:
        found = read(asked)
        together.append([one is not None for one in found])
        if is_switched:
            switch()
        return found

    monkeypatch.setattr(source_module, "read_shared", noted)
    for both in opened(tmp_path, "online"):
        switch = both.archive
        with ExitStack() as stack:
            owners = [stack.enter_context(oracle.owner()) for oracle in both.cdb.pdbs.values()]
            both.run()
            both.archive()  # in the log in which they began, they look back to their beginnings
            both.run()
            for step in range(4):
                for owner in owners:
                    cursor = owner.cursor()
                    cursor.execute(f"INSERT INTO T VALUES ({10 + step}, 'open')")
                    cursor.execute(f"UPDATE T SET V = 'open {step}' WHERE ID = 1")
                    if step == 2:
                        owner.commit()
                for oracle in both.cdb.pdbs.values():
                    oracle.run(f"UPDATE T SET V = 'done {step}' WHERE ID = 2")
                passes.clear()
                together.clear()
                assert not both.run().errors
                both.check()
                assert together[0] == [True, True]
                assert len(passes) == (3 * len(together) if is_switched else len(together))
            for owner in owners:
                owner.commit()
        both.run()
        both.check()


def _lost(*_arguments: Any, **_more: Any) -> None:
    raise OracleUnavailableError("the session was lost")


def open_xids(cdb: ContainerDatabase, name: str) -> list[Any]:
    with oracledb.connect(user=CAPTURE, password="capture", dsn=cdb.dsn) as connection:
        connection.cursor().execute(f"ALTER SESSION SET CONTAINER = {name}")
        return list(connection.cursor().execute(XIDS))


def test_a_round_ends_at_one_scn_also_where_one_was_ahead(tmp_path: Path) -> None:
    for both in opened(tmp_path, "online"):
        assert not both.run().errors
        both.check()
        scn = common_scn(both.pipelines)
        for number in (5, 6, 7):
            both.cdb.pdbs[ONE].run(f"INSERT INTO T VALUES ({number}, 'late')")
            assert both.sources[TWO].windows()
        assert len(both.sources[TWO].pipeline.records.windows()) == 1
        assert common_scn(both.pipelines) == scn, "in windows that were forgotten nothing changed"
        assert not both.run().errors
        both.check()
        assert both.paused == []


def test_windows_go_on_to_redo_behind_a_newer_snapshot_of_one(tmp_path: Path) -> None:
    """The database writes it a moment later; a window never ends where redo is not written yet."""
    for both in opened(tmp_path, "online"):
        both.run()
        both.sources[TWO].pipeline.resnapshot_tables([table_id("T")])
        list(both.sources[TWO].pipeline.run_snapshot())
        read_at = both.sources[TWO].record("T").consistent_scn
        assert read_at is not None
        assert common_scn(both.pipelines) is None, "the snapshot is newer than every common end"
        assert not both.run().errors
        both.check()
        assert both.paused == [REDO_SECONDS]
        assert (common_scn(both.pipelines) or 0) >= read_at
        windows = {name: newest_end(pipeline) for name, pipeline in both.pipelines.items()}
        assert windows[ONE] == windows[TWO]


@pytest.mark.slow
def test_redo_behind_a_newer_snapshot_is_not_waited_for_long(tmp_path: Path) -> None:
    for both in opened(tmp_path, "online"):
        both.run()
        both.sources[TWO].pipeline.resnapshot_tables([table_id("T")])
        paused: list[float] = []
        assert not run_together(both.pipelines, sleep=paused.append).errors
        assert paused == [REDO_SECONDS] * (REDO_ATTEMPTS - 1)
        assert common_scn(both.pipelines) is None
        assert not both.run().errors
        both.check()


def test_both_begin_as_of_one_scn_and_lose_nothing_that_is_open(both: Both) -> None:
    """Before any redo is read, both stand at the SCN of their snapshots; what was open there comes with its COMMIT."""
    with ExitStack() as stack:
        for oracle in both.cdb.pdbs.values():
            owner = stack.enter_context(oracle.owner())
            owner.cursor().execute("INSERT INTO T VALUES (9, 'open')")
            stack.callback(owner.commit)
        both.cdb.pdbs[ONE].run("INSERT INTO T VALUES (8, 'before')")
        assert not both.run().errors
        begins = {pipeline.records.begins_at for pipeline in both.pipelines.values()}
        assert begins == {common_scn(both.pipelines)}
        both.check()
    both.archive()
    assert not both.run().errors
    both.check()
    for source in both.sources.values():
        assert "c" in [change["_cdc_op"] for change in changes(source)]


def test_a_closed_pluggable_database_holds_mining_until_it_is_open(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LogMiner wants every container open (ORA-16331); nothing is lost meanwhile."""
    monkeypatch.setattr(nap, "time", SimpleNamespace(sleep=lambda _seconds: None))
    both.run()
    both.cdb.pdbs[TWO].run("INSERT INTO T VALUES (5, 'before')")
    both.archive()
    both.cdb.close_pdb(TWO)
    both.cdb.pdbs[ONE].run("INSERT INTO T VALUES (5, 'meanwhile')")
    both.archive()
    for source in both.sources.values():
        source.close()
    errors = both.run().errors
    assert {name: error.facts["ora"] for name, error in errors.items()} == {
        ONE: "ORA-16331", TWO: "ORA-01109"
    }  # fmt: skip
    assert all(isinstance(error, OracleUnavailableError) for error in errors.values())
    assert errors[TWO].facts["pdb"] == TWO
    both.cdb.open_pdbs()
    assert not both.run().errors
    both.check()


@pytest.mark.slow
def test_a_closed_one_leaves_the_other_alone_where_logminer_runs_inside_each(both: Both) -> None:
    for source in both.sources.values():
        source.more["capture"] = {"close_at": "completed_logs", "logs": "scn_range"}
    both.run()
    both.cdb.close_pdb(TWO)
    both.cdb.pdbs[ONE].run("INSERT INTO T VALUES (5, 'meanwhile')")
    both.archive()
    for source in both.sources.values():
        source.close()
    assert list(both.run().errors) == [TWO]
    both.sources[ONE].check_current("T")
    both.cdb.open_pdbs()
    both.cdb.pdbs[TWO].run("INSERT INTO T VALUES (6, 'open again')")
    both.archive()
    assert not both.run().errors
    both.check()


def test_one_that_was_dropped_stops_and_the_other_goes_on(both: Both) -> None:
    both.run()
    both.cdb.drop(TWO)
    both.cdb.pdbs[ONE].run("INSERT INTO T VALUES (5, 'later')")
    both.archive()
    for source in both.sources.values():
        source.close()
    errors = both.run().errors
    assert list(errors) == [TWO]
    assert isinstance(errors[TWO], PreflightError)
    assert "oracle.pdbs" in errors[TWO].hint
    both.sources[ONE].check_current("T")
    assert (
        len(
            both.sources[ONE].lake.image(
                both.sources[ONE].pipeline.config.tables[0].table, of_oracle=True
            )
        )
        == 4
    )


@pytest.mark.slow
def test_one_that_was_rewound_ends_its_own_tables_alone(both: Both) -> None:
    both.run()
    for oracle in both.cdb.pdbs.values():
        oracle.run("INSERT INTO T VALUES (5, 'before')")
    both.archive()
    both.run()
    both.cdb.pdbs[TWO].database.redo.open_pluggable_resetlogs()
    both.cdb.pdbs[ONE].run("INSERT INTO T VALUES (6, 'after')")
    both.archive()
    assert not both.run().errors
    assert both.sources[TWO].record("T").state == "failed"
    both.sources[ONE].check_current("T")


class _Killed(BaseException):
    """The process ends here."""


@pytest.mark.slow
@pytest.mark.parametrize("killed", [ONE, TWO])
def test_a_process_that_ends_while_redo_lands_for_both_loses_nothing(
    both: Both, killed: str
) -> None:
    """Before the first of them has landed, and between both."""
    both.run()
    both.archive()
    both.run()
    for name, oracle in both.cdb.pdbs.items():
        oracle.run("UPDATE T SET V = 'changed' WHERE ID = 1", f"INSERT INTO T VALUES (7, '{name}')")
    both.archive()

    def ends(*_: Any) -> None:
        raise _Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(both.sources[killed].pipeline.landing, "write_manifest", ends)
        with pytest.raises(_Killed):
            both.run()
    for source in both.sources.values():
        source.close()
    assert not both.run().errors
    both.check()


@pytest.mark.slow
def test_a_run_that_was_cut_short_goes_on_and_replays_change_nothing(both: Both) -> None:
    both.run()
    for number in range(3):
        for name, oracle in both.cdb.pdbs.items():
            oracle.run(
                f"INSERT INTO T VALUES ({10 + number}, '{name}')",
                f"UPDATE T SET V = '{name} {number}' WHERE ID = 1",
            )
        both.archive()
        for source in both.sources.values():
            source.pipeline.plan_windows()
            source.pipeline.capture_window(source.pipeline.pending_windows()[0])
            source.close()
    both.run()
    both.check()
    for source in both.sources.values():
        windows = [one.window for one in source.pipeline.records.windows(states=("applied",))]
        for window in random.Random(7).sample(windows, len(windows)):
            source.pipeline.replay_window(window)
    both.check()


def test_a_table_named_with_its_pluggable_database_is_captured_there_alone(both: Both) -> None:
    for oracle in both.cdb.pdbs.values():
        oracle.run("CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO U VALUES (1)")
    for source in both.sources.values():
        source.tables.append({"name": f"{TWO}.DEMO.U"})
    both.run()
    found = {
        name: [str(one.table) for one in source.pipeline.records.tables()]
        for name, source in both.sources.items()
    }
    assert found == {ONE: ["DEMO.T"], TWO: ["DEMO.T", "DEMO.U"]}


def test_a_session_enters_the_pluggable_database_and_sends_nothing_else(both: Both) -> None:
    sent: list[str] = []
    config = both.sources[TWO].written().oracle
    with connect(config, on_statement=sent.append) as session:
        assert session.fetch_all("SELECT DISTINCT V FROM DEMO.T") == [(TWO,)]
        with session.in_root():
            assert session.fetch_all("SELECT SYS_CONTEXT('USERENV', 'CON_NAME') FROM DUAL") == [
                ("CDB$ROOT",)
            ]
        assert session.container == TWO
        assert session.fetch_all("SELECT DISTINCT V FROM DEMO.T") == [(TWO,)]
    into = f'ALTER SESSION SET CONTAINER = "{TWO}"'
    assert sent[:2] == [into, settings_block()]
    others = (text for text in sent if text != settings_block())
    assert all(text.split()[0] in ("SELECT", "ALTER") for text in others)


def test_a_local_user_is_told_who_may_enter(both: Both) -> None:
    oracle = both.cdb.pdbs[ONE]
    oracle.add_local_capture()
    config = OracleConfig.model_validate({**oracle.login(LOCAL_CAPTURE), "pdb": TWO})
    with pytest.raises(PreflightError, match="GRANT SET CONTAINER TO REDOLAKE"):
        connect(config)


def test_a_pipeline_takes_one_source(tmp_path: Path) -> None:
    config = source_config(
        tmp_path, "T", oracle={"dsn": "x/y", "user": "u", "password": "p", "pdbs": ["A", "B"]}
    )
    with pytest.raises(ConfigError, match="each is a separate source"):
        Pipeline(config)


@pytest.mark.parametrize("named", [{"pdb": '"sales"'}, {"pdbs": ['"sales"']}])
def test_a_pluggable_database_in_lower_case_is_named_in_quotes(
    named: dict[str, Any], tmp_path: Path
) -> None:
    with container_database(second="sales") as database:
        oracle = database.pdbs["sales"]
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        name = '"sales".DEMO.T' if "pdbs" in named else "DEMO.T"
        config = source_config(tmp_path, oracle=database.login(**named), tables=[{"name": name}])
        [own] = sources_of(config).values() if "pdbs" in named else [config]
        lake = MemoryLake()
        with Pipeline(own, open_lake=lake.open) as pipeline:
            list(pipeline.run_once())
            oracle.run("INSERT INTO T VALUES (2)")
            database.pdbs[ONE].run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")
            database.pdbs[ONE].run("INSERT INTO T VALUES (3)")
            list(pipeline.run_once())
        assert lake.image(table_id("T")) == [(1,), (2,)]
