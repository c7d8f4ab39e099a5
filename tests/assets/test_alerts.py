"""The source's alerts in Dagster: checks of the database, by the sensor and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.alerts import show_alerts
from tests.assets.site import MemorySite
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)", scope="module"
)


@pytest.fixture
def site(oracle: Oracle, tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[MemorySite]:
    with source_of(oracle, tmp_path, "T", alerts={"lag_minutes": 30}) as source:
        source.run()
        yield MemorySite(source, instance)


def evaluated(found: list[object]) -> dict[str, tuple[bool, str]]:
    return {
        one.check_name: (one.passed, one.severity.value)
        for one in found
        if isinstance(one, dg.AssetCheckEvaluation)
    }


def test_the_sensor_reports_what_changed_and_nothing_else(
    site: MemorySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = site.evaluate("alerts")
    found = evaluated(list(first.asset_events))
    assert set(found) == {
        "oracle_answers", "windows_advance", "archived_logs_kept",
        "one_active_process", "tables_keep_up",
    }  # fmt: skip
    assert all(passed for passed, _ in found.values())
    assert first.skip_message == "all is well"
    assert list(site.evaluate("alerts").asset_events) == []

    pipeline, status = site.source.pipeline, site.source.pipeline.status

    def dead(**_: object) -> object:
        from dataclasses import replace

        return replace(status(), scn_oracle=None, oracle_error="no listener")

    monkeypatch.setattr("cdc_core.steps.alerts.status", lambda _: dead())
    assert pipeline.alerts()[0].kind == "oracle"
    then = site.evaluate("alerts")
    assert evaluated(list(then.asset_events)) == {"oracle_answers": (False, "ERROR")}
    assert "no listener" in (then.skip_message or "")


def test_the_checks_can_be_executed_by_hand(site: MemorySite) -> None:
    job = site.component.build_defs().resolve_implicit_global_asset_job_def()
    wanted = {
        one
        for one in job.asset_layer.asset_graph.asset_check_keys
        if "database" in one.asset_key.path
    }
    subset = job.get_subset(asset_selection=set(), asset_check_selection=wanted)
    result = subset.execute_in_process(instance=site.instance)
    assert result.success
    assert len(result.get_asset_check_evaluations()) == 5
    one = dg.AssetCheckKey(site.names.database_key, "oracle_answers")
    alone = job.get_subset(asset_selection=set(), asset_check_selection={one})
    again = alone.execute_in_process(instance=site.instance)
    assert [each.asset_check_key for each in again.get_asset_check_evaluations()] == [one]


def test_what_is_known_without_a_sensor_is_shown_once(site: MemorySite) -> None:
    """As `redolake ui` does before it starts: checks that nobody evaluated would say nothing."""
    found = site.source.pipeline.alerts()
    assert show_alerts(site.instance, site.names, found) == 5
    assert show_alerts(site.instance, site.names, found) == 0
    [record] = site.instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [dg.AssetCheckKey(site.names.database_key, "oracle_answers")]
    ).values()
    assert record.status.value == "SUCCEEDED"
