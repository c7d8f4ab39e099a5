"""Sources of many tables in Dagster: what a run asks of the metadata store does not grow with the square of their number."""

from __future__ import annotations

import logging
from pathlib import Path

import dagster as dg
import pytest

from assets.components import OracleCdc
from assets.history import add_partitions
from assets.runs import RANGE_END_TAG, RANGE_START_TAG
from assets.streams import CHECK_NAME
from assets.translator import Translator
from assets.waiting import NOTHING, Tick
from cdc_core.config import SourceConfig
from cdc_core.config.tables import TableConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import FoundTable
from cdc_core.steps.source_view import SourceView
from tests.assets.standin import StandIn, config_in, partition


def _of_many(folder: Path, count: int) -> StandIn:
    folder.mkdir()
    given = dict(config_in(folder))
    config = SourceConfig.model_validate(
        given | {"tables": [{"name": f"HR.T{number}"} for number in range(count)]}
    )
    return StandIn(config)


def test_a_run_reads_the_states_of_all_tables_as_often_as_those_of_a_few(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these readings gives a row for each table: one for each table would be the square of their number."""
    read = SourceView.tables
    readings = 0

    def counted(records: SourceView) -> list[TableRecord]:
        nonlocal readings
        readings += 1
        return read(records)

    monkeypatch.setattr(SourceView, "tables", counted)
    found = []
    for count in (2, 6):
        pipeline = _of_many(tmp_path / str(count), count).snapshotted()
        pipeline.plan_windows()
        repository = OracleCdc(pipeline.config, pipeline.opened).build_defs().get_repository_def()
        add_partitions(instance, pipeline.records, pipeline.config, Translator("hr"))
        tags = {RANGE_START_TAG: partition(1000, 1500), RANGE_END_TAG: partition(1500, 2000)}
        readings = 0
        run = repository.get_job("hr_windows").execute_in_process(instance=instance, tags=tags)
        found.append(readings)
        assert run.success
        checks = [one for one in run.get_asset_check_evaluations() if one.check_name == CHECK_NAME]
        assert [one.passed for one in checks] == [True] * count
        pipeline.store.close()
    few, many = found
    assert few == many


def test_a_tick_looks_at_each_table_as_often_as_at_those_of_a_few(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where patterns name the tables, each is looked for among those that are loaded."""
    table, looked = vars(TableConfig)["table"], 0

    def counted(config: TableConfig) -> TableId:
        nonlocal looked
        looked += 1
        return table.fget(config)

    monkeypatch.setattr(TableConfig, "table", property(counted))
    found = []
    for count in (2, 4, 6):
        pipeline = _of_many(tmp_path / str(count), count).snapshotted()
        later = TableId("HR", "LATER")
        pipeline.store.matches.save([FoundTable(one) for one in (*pipeline.tables, later)])
        log, names = logging.getLogger(__name__), Translator("hr")
        tick = Tick(instance, log, NOTHING, pipeline.config, names, pipeline)
        looked = 0
        assert tick.not_loaded().endswith("HR.LATER")
        found.append(looked)
        pipeline.store.close()
    two, four, six = found
    assert six - four == four - two
