"""A table that leaves the stream is seen in Dagster, and the others go on: real steps, real runs, the lake in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from assets.streams import verdict
from cdc_core.errors import DecodeError
from cdc_core.model.records import TableRecord
from tests.assets.site import MemorySite
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

ONE = table_id("ONE")

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in ("ONE", "TWO")),
    "INSERT INTO ONE VALUES (1, 'first')",
    "INSERT INTO TWO VALUES (1, 'first')",
)


@pytest.fixture
def site(oracle: Oracle, tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[MemorySite]:
    """ONE and TWO, snapshotted, with one window that Dagster ran."""
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin(first=Source.snapshot)
        oracle.run("INSERT INTO ONE VALUES (2, 'a')", "INSERT INTO TWO VALUES (2, 'a')")
        made = MemorySite(source, instance)
        assert made.windows().success
        yield made


def change_both(oracle: Oracle, number: int) -> None:
    oracle.run(f"INSERT INTO ONE VALUES ({number}, 'x')", f"INSERT INTO TWO VALUES ({number}, 'x')")


def test_a_table_that_stops_at_capture_is_not_materialized_and_its_check_fails(
    oracle: Oracle, site: MemorySite
) -> None:
    """A table that takes every window passes."""
    assert site.check("ONE").passed
    assert site.partitions("ONE") == site.partitions("TWO")
    assert len(site.partitions("ONE")) == 1
    change_both(oracle, 3)
    oracle.run("TRUNCATE TABLE ONE")
    oracle.run("INSERT INTO TWO VALUES (4, 'y')")
    result = site.windows()
    assert result.success, "the others go on"
    assert len(site.partitions("ONE")) == len(site.partitions("ONE", "changelog")) == 1
    assert len(site.partitions("TWO")) == 2
    site.source.check_current("TWO")
    found, record = site.check("ONE"), site.source.record("ONE")
    assert not found.passed
    assert found.severity == dg.AssetCheckSeverity.ERROR
    assert record.stopped_scn is not None
    assert found.metadata["cdc/scn"].value == record.stopped_scn
    assert found.metadata["cdc/reason"].value == record.reason
    assert "redolake table resnapshot DEMO.ONE" in str(found.metadata["cdc/what_to_do"].value)
    assert f"at SCN {record.stopped_scn}: {record.reason}" in (found.description or "")
    assert site.check("TWO").passed


def test_a_table_that_its_policy_brings_back_is_requested(oracle: Oracle, site: MemorySite) -> None:
    """As an ad hoc snapshot is: runs over chunks, then the windows that followed."""
    site.source.configure({"name": "ONE", "on_truncate": "resnapshot"}, "TWO")
    change_both(oracle, 3)
    oracle.run("TRUNCATE TABLE ONE")
    change_both(oracle, 4)
    assert site.windows().success
    found = site.check("ONE")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "on_truncate reads the table again" in str(found.metadata["cdc/what_to_do"].value)
    [request] = site.tick("snapshots")
    assert request.asset_selection == [site.names.key("snapshot", ONE)]
    assert site.run(request).success
    assert site.check("ONE").passed
    change_both(oracle, 5)
    assert site.windows().success
    site.source.check_current("ONE", "TWO")
    assert site.tick("snapshots") == []


def test_a_table_that_stops_in_the_lake_is_not_materialized_and_its_check_fails_until_it_is_back(
    oracle: Oracle, site: MemorySite
) -> None:
    change_both(oracle, 3)
    site.source.lake.fail(ONE, DecodeError("a row is not understood", hint="Report it."))
    assert site.windows().success
    assert len(site.partitions("ONE")) == 1
    assert len(site.partitions("TWO")) == 2
    found = site.check("ONE")
    assert not found.passed
    assert "a row is not understood" in str(found.metadata["cdc/reason"].value)
    assert "redolake table resume DEMO.ONE" in str(found.metadata["cdc/what_to_do"].value)
    change_both(oracle, 4)
    assert site.windows().success
    assert not site.check("ONE").passed
    site.source.pipeline.resume_tables([ONE])
    [request] = site.tick()
    assert site.check("ONE").passed, "a sensor's tick sees what a command did"
    assert site.run(request).success
    site.source.check_current("ONE", "TWO")
    assert site.partitions("ONE") == site.partitions("TWO"), "the windows that it missed"
    assert site.tick() == []


def test_a_resumed_table_takes_idle_windows_too(oracle: Oracle, site: MemorySite) -> None:
    """They are no partitions, so that the sensor takes them, and a run never reaches beyond one."""
    oracle.run("CREATE TABLE OTHER (ID NUMBER(9))")
    site.source.pipeline.pause_tables([ONE])
    change_both(oracle, 3)
    site.windows()
    oracle.run("INSERT INTO OTHER VALUES (1)")
    assert site.tick() == []
    change_both(oracle, 4)
    site.windows()
    site.source.pipeline.resume_tables([ONE])
    for _ in range(2):
        assert site.windows().success
    assert site.tick() == []
    site.source.check_current("ONE", "TWO")
    assert site.partitions("ONE") == site.partitions("TWO")


def test_a_pause_that_somebody_asked_for_is_a_warning(oracle: Oracle, site: MemorySite) -> None:
    site.source.pipeline.pause_tables([ONE])
    change_both(oracle, 3)
    assert site.windows().success
    found = site.check("ONE")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert len(site.partitions("ONE")) == 1
    assert len(site.partitions("TWO")) == 2
    site.source.pipeline.pause_tables([table_id("TWO")])
    change_both(oracle, 4)
    assert site.windows().success
    assert site.tick() == [], "a run in which every table is out ends the window"


def test_a_backfill_replays_the_tables_that_have_the_window(
    oracle: Oracle, site: MemorySite
) -> None:
    change_both(oracle, 3)
    oracle.run("TRUNCATE TABLE ONE")
    [request] = site.tick()
    site.run(request)
    site.source.lake.calls.clear()
    assert site.run(request).success
    replayed = {name for call, name, _ in site.source.lake.calls if call == "replay_window"}
    assert replayed == {"TWO"}
    assert len(site.partitions("ONE")) == 1


def test_what_depends_on_a_stopped_table_is_skipped(oracle: Oracle, site: MemorySite) -> None:
    """An asset downstream in the same run must not take the mirror for made."""
    made = []

    def below(name: str) -> dg.AssetsDefinition:
        @dg.asset(
            name=f"below_{name.lower()}",
            deps=[site.names.key("mirror", table_id(name))],
            partitions_def=site.names.windows,
        )
        def asset() -> None:
            made.append(name)

        return asset

    change_both(oracle, 3)
    site.source.lake.fail(ONE, DecodeError("a row is not understood", hint="Report it."))
    [request] = site.tick()
    defs = site.component.build_defs()
    selection = dg.AssetSelection.assets(
        site.names.redo_key,
        *(
            site.names.key(layer, table_id(n))
            for layer in ("changelog", "mirror")
            for n in ("ONE", "TWO")
        ),
        "below_one",
        "below_two",
    )
    result = dg.materialize(
        [*defs.assets, below("ONE"), below("TWO")],  # type: ignore[misc]
        instance=site.instance,
        resources=defs.resources,
        selection=selection,
        tags=request.tags,
    )
    assert result.success
    assert made == ["TWO"]


def test_rows_in_quarantine_fail_the_check_of_a_table_that_goes_on() -> None:
    """Its mirror is not what Oracle has."""
    record = TableRecord(source="src", table=ONE, state="ready", in_quarantine=3)
    found = verdict(ONE, record)
    assert not found.passed
    assert "3 redo rows" in found.description
    assert found.metadata["cdc/rows_in_quarantine"] == 3
    assert "redolake repair" in found.metadata["cdc/what_to_do"]
    assert verdict(ONE, replace(record, in_quarantine=0)).passed


def test_the_check_alone_can_be_executed(oracle: Oracle, site: MemorySite) -> None:
    site.source.pipeline.pause_tables([ONE])
    defs = site.component.build_defs()
    checks = dg.AssetSelection.checks(
        *(
            dg.AssetCheckKey(site.names.key("mirror", table_id(name)), "in_the_stream")
            for name in ("ONE", "TWO")
        )
    )
    result = dg.materialize(
        list(defs.assets or []),  # type: ignore[arg-type]
        instance=site.instance,
        resources=defs.resources,
        selection=checks,
    )
    assert result.success
    assert [one.passed for one in result.get_asset_check_evaluations()] == [False, True]


def test_a_table_that_its_snapshot_stops_fails_its_run_and_its_check(
    oracle: Oracle, site: MemorySite
) -> None:
    site.source.pipeline.resnapshot_tables([ONE])
    site.source.lake.fail(ONE, DecodeError("a row is not understood", hint="Report it."))
    [request] = site.tick("snapshots")
    result = site.run(request)
    assert not result.success
    found = site.check("ONE")
    assert not found.passed
    assert "a row is not understood" in str(found.metadata["cdc/reason"].value)


def test_tables_of_a_pattern_are_assets_when_they_were_found(
    oracle: Oracle, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """Definitions take the tables from the metadata store; what is found later is an asset after a reload."""
    oracle.run("DROP TABLE TWO PURGE", "CREATE TABLE KEYLESS (ID NUMBER(9))")
    with source_of(oracle, tmp_path) as source:
        source.configure("*")
        before = MemorySite(source, instance)
        assert not before.tables(), "nobody has looked yet"
        source.snapshot()
        site = MemorySite(source, instance)
        assert site.tables() == {"one"}
        oracle.run("CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY)")
        assert site.windows().success
        said = site.evaluate("windows").skip_message or ""
        assert said.endswith(
            "reload the code location to see tables that patterns name now: DEMO.TWO"
        )
        assert MemorySite(source, instance).tables() == {"one", "two"}
