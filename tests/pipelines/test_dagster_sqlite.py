"""Dagster's SQLite files through engines that are kept."""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster import OpExecutionContext
from sqlalchemy.sql.compiler import SQLCompiler

from pipelines.ui import prepare_home

KEY = dg.AssetKey("mirror")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As `redolake ui` makes it."""
    made = tmp_path / "dagster"
    monkeypatch.setenv("DAGSTER_HOME", str(made))
    prepare_home(made)
    return made


@pytest.fixture
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(home)) as made:
        yield made


@dg.op
def work(context: OpExecutionContext) -> None:
    context.log_event(dg.AssetMaterialization(KEY, partition="of a run"))


@dg.job
def works() -> None:
    work()


def use(instance: dg.DagsterInstance, name: str) -> None:
    """Write to and read from each of Dagster's three storages."""
    instance.add_dynamic_partitions("windows", [name])
    made = dg.AssetMaterialization(KEY, partition=name, metadata={"cdc/rows": 1})
    instance.report_runless_asset_event(made)
    instance.get_materialized_partitions(KEY)
    instance.get_run_records(limit=5)
    instance.all_instigator_state()


def is_ours(instance: dg.DagsterInstance) -> bool:
    return type(instance.event_log_storage).__module__ == "pipelines.dagster_sqlite"


def test_statements_are_compiled_once(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, compile_ = list[str](), SQLCompiler.__init__

    def counted(self: SQLCompiler, *args: Any, **settings: Any) -> None:
        compile_(self, *args, **settings)
        compiled.append(str(self))

    for name in ("first", "second"):
        use(instance, name)
    monkeypatch.setattr(SQLCompiler, "__init__", counted)
    use(instance, "third")
    assert compiled == []
    assert is_ours(instance)
    assert instance.get_materialized_partitions(KEY) == {"first", "second", "third"}


def test_a_home_changes_between_both_storages(home: Path) -> None:
    """The files are Dagster's: who takes our settings away, or names them later, finds all runs and events."""
    settings = yaml.safe_load((home / "dagster.yaml").read_text())
    own = {name: value for name, value in settings.items() if name != "storage"}
    for number, written in enumerate((settings, own, settings), start=1):
        (home / "dagster.yaml").write_text(yaml.safe_dump(written))
        with dg.DagsterInstance.from_config(str(home)) as instance:
            assert is_ours(instance) == ("storage" in written)
            use(instance, f"number {number}")
            assert works.execute_in_process(instance=instance).success
            assert len(instance.get_run_records()) == number
            assert len(instance.get_materialized_partitions(KEY)) == number + 1
            [newest] = instance.fetch_materializations(KEY, limit=1).records
            assert newest.partition_key == "of a run"
            events = instance.all_logs(newest.run_id)
            assert any(event.message.startswith("Finished execution of run") for event in events)
