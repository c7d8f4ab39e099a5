"""The four uses with nothing stood in for: embedded Oracle, driver, LogMiner, Delta, Dagster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from assets.components import OracleCdc
from assets.runs import RANGE_END_TAG, RANGE_START_TAG
from cdc_core.config import SourceConfig
from cdc_core.delta.row_counts import count_rows
from cdc_core.model.identifiers import TableId
from cdc_core.model.signals import Signal
from cdc_core.spark.session import SparkSource
from cdc_core.steps import Pipeline
from tests.assets.site import in_dagster
from tests.invariants.compare import Verdict, compare
from tests.oracle.embedded import OWNER, Oracle, running_oracle

pytestmark = pytest.mark.timeout(1800)
TABLE = TableId(OWNER, "ITEMS")


class Site:
    """A source, its definitions, and the ticks and runs that a daemon would make."""

    def __init__(self, oracle: Oracle, config: SourceConfig, instance: dg.DagsterInstance) -> None:
        self.oracle = oracle
        self.config = config
        self.instance = instance
        self.component = OracleCdc(in_dagster(config), self.opened)
        self.names = self.component.translator
        self.defs = self.component.build_defs()
        self.repository = self.defs.get_repository_def()

    @contextmanager
    def opened(self, *, spark: SparkSource | None = None) -> Iterator[Pipeline]:
        with Pipeline(self.config, spark=spark) as pipeline:
            yield pipeline

    def tick(self, sensor: str) -> list[dg.RunRequest]:
        with dg.build_sensor_context(
            instance=self.instance, repository_def=self.repository
        ) as context:
            found = self.repository.get_sensor_def(f"src_{sensor}_sensor").evaluate_tick(context)
        return list(found.run_requests or [])

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        if request.asset_selection:
            assets = [self.repository.assets_defs_by_key[key] for key in request.asset_selection]
            return dg.materialize(assets, instance=self.instance, tags=request.tags)
        job = self.repository.get_job("src_windows")
        return job.execute_in_process(instance=self.instance, tags=request.tags)

    def run_all(self, sensor: str) -> int:
        requests = self.tick(sensor)
        assert all(self.run(request).success for request in requests)
        return len(requests)

    def mirror(self) -> Path:
        return Path(self.config.lake.path) / "src" / "mirror" / TABLE.path

    def verdict(self) -> Verdict:
        """The mirror beside Oracle as of the mirror's position, by code that shares nothing with the pipeline's."""
        with Pipeline(self.config) as pipeline:
            [table] = pipeline.status(ask_oracle=False).tables
        assert table.position is not None
        with self.oracle.owner() as connection:
            return compare(connection, TABLE.name, ["ID"], self.mirror(), table.position)


@pytest.fixture
def site(tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[Site]:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE ITEMS (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(20), PRICE NUMBER(9,2))"
        )
        for number in range(300):
            oracle.run(f"INSERT INTO ITEMS VALUES ({number}, 'item {number}', {number}.25)")
        oracle.run(
            "CREATE TABLE CDC_SIGNALS (ID VARCHAR2(42) PRIMARY KEY, TYPE VARCHAR2(32), DATA VARCHAR2(2048))"
        )
        config = oracle.config(
            tmp_path,
            "ITEMS",
            snapshot={"chunk_rows": 100},
            signals={"table": f"{OWNER}.CDC_SIGNALS"},
        )
        yield Site(oracle, config, instance)


def test_the_four_uses(site: Site) -> None:
    """First snapshot, scheduled windows, replay by hand, ad hoc snapshot by signal; equal to Oracle after each."""
    planned = site.repository.get_job("src_start_snapshot").execute_in_process(
        instance=site.instance
    )
    assert planned.success
    assert site.run_all("snapshots") == 1, "one run over all chunks of the table"
    assert count_rows(str(site.mirror())) == 300
    assert site.tick("snapshots") == []

    site.oracle.run(
        "UPDATE ITEMS SET PRICE = PRICE + 1 WHERE ID < 50",
        "DELETE FROM ITEMS WHERE ID >= 290",
        "INSERT INTO ITEMS VALUES (1000, NULL, NULL)",
    )
    assert site.run_all("windows") == 1
    assert site.verdict().is_equal
    key = site.names.key("mirror", TABLE)
    (window,) = site.instance.get_materialized_partitions(key)

    versions = len(list((site.mirror() / "_delta_log").glob("*.json")))
    tags = {RANGE_START_TAG: window, RANGE_END_TAG: window}
    before = shutil.copytree(site.mirror(), site.mirror().with_name("before"))
    assert site.run(dg.RunRequest(tags=tags)).success
    assert count_rows(str(site.mirror())) == count_rows(str(before)) == 291
    assert len(list((site.mirror() / "_delta_log").glob("*.json"))) <= versions + 1
    assert site.verdict().is_equal, "a replay leaves the mirror as it was"

    with Pipeline(site.config) as pipeline:
        data = {
            "data-collections": [str(TABLE)],
            "additional-conditions": [{"data-collection": str(TABLE), "filter": "ID < 20"}],
        }
        pipeline.add_signal(Signal(id="s1", source="src", type="execute-snapshot", data=data))
    filters = [{"data-collection": str(TABLE), "filter": "ID >= 270"}]
    signal = json.dumps(data | {"additional-conditions": filters})
    site.oracle.run(
        f"INSERT INTO CDC_SIGNALS VALUES ('from-oracle', 'execute-snapshot', '{signal}')",
        "INSERT INTO CDC_SIGNALS VALUES ('strange', 'execute-snapshot', '{}')",
        "UPDATE ITEMS SET PRICE = 0 WHERE ID = 6",
    )
    assert site.run_all("snapshots") == 2, "a row of Oracle's signal table is a request too"
    assert site.tick("snapshots") == [], "and each is taken once"
    with Pipeline(site.config) as pipeline:
        states = {signal.id: signal.state for signal in pipeline.store.signals.find()}
    assert states == {"s1": "done", "from-oracle": "done", "strange": "rejected"}
    site.oracle.run("UPDATE ITEMS SET NAME = 'later' WHERE ID = 5")
    assert site.run_all("windows") == 1
    assert site.verdict().is_equal

    checked = site.repository.get_job("src_reconcile").execute_in_process(instance=site.instance)
    assert [one.passed for one in checked.get_asset_check_evaluations()] == [True]
