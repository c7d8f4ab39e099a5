"""Notifications as observations in Dagster: each once, of what it is about."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from tests.assets.site import MemorySite
from tests.oracle.embedded import OWNER, running_oracle
from tests.steps.harness import source_of, table_id


def observed(site: MemorySite) -> list[tuple[str, str]]:
    """What one tick reports: the asset, and what happened."""
    events = site.evaluate("snapshots").asset_events
    return [
        (one.asset_key.path[1], one.description or "")
        for one in events
        if isinstance(one, dg.AssetObservation)
    ]


def test_notifications_are_observations_once(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        how = {"notifications": {"channels": ["dagster"]}}
        with source_of(oracle, tmp_path, "T", **how) as source:
            site = MemorySite(source, instance)
            source.run()
            assert observed(site) == [
                ("mirror", "Table: JOINED"),
                ("snapshot", "Initial Snapshot: STARTED"),
                ("snapshot", "Initial Snapshot: IN_PROGRESS"),
                ("snapshot", "Initial Snapshot: TABLE_SCAN_COMPLETED"),
                ("snapshot", "Initial Snapshot: COMPLETED"),
            ]
            assert observed(site) == []
            source.pipeline.remove_tables([table_id("T")])
            events = site.evaluate("snapshots").asset_events
            [stopped] = [one for one in events if isinstance(one, dg.AssetObservation)]
            assert stopped.metadata["cdc/scanned_collection"].value == f"{OWNER}.T"
            assert stopped.metadata["cdc/notification"].value == "STOPPED"
