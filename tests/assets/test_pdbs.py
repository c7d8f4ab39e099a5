"""Two pluggable databases of one configuration in Dagster: each with sensors and runs of its own, one SCN, and one reading of the redo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from assets.components import OracleCdc
from assets.protocols import Opener
from cdc_core.config import SourceConfig
from cdc_core.fleet import SHARED_LEASE, common_scn, newest_end
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.spark.session import SparkSource
from cdc_core.steps import Pipeline
from cdc_core.steps.windows import retire
from tests.assets.site import in_dagster
from tests.oracle.embedded import container_database, source_config
from tests.steps.test_pdbs import IDLE, ONE, TWO, Both, PdbSource


class Location:
    """A code location with both, whose sensors and runs a test asks for in its own order."""

    def __init__(self, both: Both, config: SourceConfig, instance: dg.DagsterInstance) -> None:
        self.both, self.instance = both, instance
        component = OracleCdc(in_dagster(config), _never)
        for pdb, part in zip(both.sources, component.parts, strict=True):
            part.open_pipeline = _opener(both.sources[pdb])
        self.repository = component.build_defs().get_repository_def()

    def evaluate(self, pdb: str) -> SensorExecutionData:
        sensor = self.repository.get_sensor_def(f"src_{pdb.lower()}_windows_sensor")
        with dg.build_sensor_context(
            instance=self.instance, repository_def=self.repository
        ) as context:
            return sensor.evaluate_tick(context)

    def run(self, pdb: str, data: SensorExecutionData) -> dg.ExecuteInProcessResult:
        [request] = data.run_requests or []
        job = self.repository.get_job(f"src_{pdb.lower()}_windows")
        return job.execute_in_process(
            instance=self.instance, tags=request.tags, raise_on_error=False
        )

    def ends(self) -> set[Scn | None]:
        return {newest_end(pipeline) for pipeline in self.both.pipelines.values()}


@contextmanager
def _never(*, spark: SparkSource | None = None) -> Iterator[Pipeline]:
    raise AssertionError("a configuration of several is no source itself")
    yield


def _opener(source: PdbSource) -> Opener:
    @contextmanager
    def opened(*, spark: SparkSource | None = None) -> Iterator[Pipeline]:
        yield source.pipeline

    return opened


@pytest.fixture
def close_at() -> str:
    return "completed_logs"


@pytest.fixture
def location(tmp_path: Path, close_at: str, instance: dg.DagsterInstance) -> Iterator[Location]:
    """Both have their first snapshots, of other SCNs."""
    with ExitStack() as stack:
        cdb = stack.enter_context(container_database(idle_redo_seconds=IDLE))
        more = {"capture": {"close_at": close_at}, "oracle": cdb.login(pdbs=[ONE, TWO])}
        tables: list[dict[str, Any]] = [{"name": "DEMO.T"}]
        sources = {
            name: PdbSource(oracle, tmp_path, tables, more=dict(more), pdb=name)
            for name, oracle in cdb.pdbs.items()
        }
        for name, source in sources.items():
            source.oracle.run(
                "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
                f"INSERT INTO T VALUES (1, '{name}')",
            )
            stack.callback(source.close)
            list(source.pipeline.run_snapshot())
        config = source_config(tmp_path, **{**more, "tables": tables})
        yield Location(Both(cdb, sources), config, instance)


@pytest.fixture
def passes(location: Location, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passes of LogMiner, by the container whose session ran them."""
    found: list[str] = []
    block = OracleSession.execute_block

    def noted(session: OracleSession, plsql: str, binds: Any = None) -> None:
        if "START_LOGMNR" in plsql:
            found.append(session.container)
        block(session, plsql, binds)

    monkeypatch.setattr(OracleSession, "execute_block", noted)
    return found


def first_windows(location: Location) -> None:
    """The first snapshots are of SCNs of their own; from the newer one on, windows are the same."""
    location.both.cdb.pdbs[TWO].run("UPDATE T SET V = V")  # the SCN passes the newer snapshot's
    location.both.archive()
    for pdb in (ONE, TWO):
        assert location.run(pdb, location.evaluate(pdb)).success
    newest = [
        pipeline.records.windows(newest_first=True, limit=1)[0].window
        for pipeline in location.both.pipelines.values()
    ]
    assert newest[0] == newest[1]
    location.both.check()


def test_a_tick_reads_the_redo_for_both(location: Location, passes: list[str]) -> None:
    """Whoever ticks first; the other finds its window landed, and passes it or requests its own run."""
    first_windows(location)
    for changed, order in (((ONE, TWO), (ONE, TWO)), ((ONE,), (TWO, ONE)), ((), (ONE, TWO))):
        passes.clear()
        for pdb in changed:
            location.both.cdb.pdbs[pdb].run("UPDATE T SET V = V || '+'")
        location.both.archive()
        for pdb in order:
            data = location.evaluate(pdb)
            assert len(data.run_requests or []) == (pdb in changed)
            if pdb in changed:
                assert location.run(pdb, data).success
        assert passes == [order[0]], "one reading of one window of both"
        assert len(location.ends()) == 1
        location.both.check()


def test_a_run_reads_the_redo_for_both_where_a_tick_does_not(
    location: Location, passes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that may take long to read is left to a run; meanwhile another process reads nothing for both."""
    first_windows(location)
    monkeypatch.setattr(retire, "READ_SECONDS_MAX", -1)
    passes.clear()
    for oracle in location.both.cdb.pdbs.values():
        oracle.run("INSERT INTO T VALUES (2, 'new')")
    location.both.archive()
    ticks = {pdb: location.evaluate(pdb) for pdb in (ONE, TWO)}
    assert passes == []
    assert all(location.run(pdb, data).success for pdb, data in ticks.items())
    assert passes == [ONE]
    location.both.check()


def test_a_tick_that_finds_another_process_reading_for_both_waits(
    location: Location, passes: list[str]
) -> None:
    first_windows(location)
    passes.clear()
    location.both.archive()
    with location.both.sources[ONE].pipeline.lease(SHARED_LEASE, of_process=True):
        assert location.evaluate(TWO).run_requests == []
    assert passes == []
    assert location.evaluate(TWO).run_requests == []
    assert passes == [TWO]


def test_one_that_is_gone_leaves_the_other_alone(location: Location) -> None:
    first_windows(location)
    location.both.cdb.drop(TWO)
    for source in location.both.sources.values():
        source.close()
    location.both.cdb.pdbs[ONE].run("INSERT INTO T VALUES (2, 'later')")
    location.both.archive()
    with pytest.raises(Exception, match="there is no such pluggable database"):
        location.evaluate(TWO)
    assert location.run(ONE, location.evaluate(ONE)).success
    location.both.sources[ONE].check_current("T")


@pytest.mark.parametrize("close_at", ["online"])
def test_windows_that_close_at_the_redo_written_last_end_together(location: Location) -> None:
    """Each tick takes the other along to the end that it finds; the other takes that window with its next tick."""
    for number, pdb in enumerate((ONE, TWO, TWO, ONE)):
        location.both.cdb.pdbs[pdb].run(f"INSERT INTO T VALUES ({10 + number}, 'new')")
        for ticking in (TWO, ONE, TWO):
            data = location.evaluate(ticking)
            if data.run_requests:
                assert location.run(ticking, data).success
        assert len(location.ends()) == 1
        location.both.check()
        assert common_scn(location.both.pipelines) in location.ends()
