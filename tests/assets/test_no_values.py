"""Nothing that Dagster keeps of windows, failures and checks holds a row's value, a key's included."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from cdc_core.landing.layout import window_folder
from tests.assets.site import MemorySite
from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of

MARKED = "Zq7Marked"
BEFORE_CHRIST = "TO_DATE('-0044-03-15', 'SYYYY-MM-DD')"
"""A value that Redolake refuses: its row cannot be decoded."""


def test_windows_that_fail_say_nothing_of_their_rows(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """One table stops at a row, another puts it into quarantine, a third meets a DDL; then landing is damaged, and the run fails."""
    with running_oracle() as oracle:
        for name in ("STOPS", "KEEPS", "CHANGES"):
            oracle.run(
                f"CREATE TABLE {name} (K VARCHAR2(40) PRIMARY KEY, V VARCHAR2(40), AT DATE)",
                f"INSERT INTO {name} VALUES ('{MARKED}0', '{MARKED}', NULL)",
            )
        with source_of(oracle, tmp_path, "STOPS", "KEEPS", "CHANGES") as source:
            source.configure("STOPS", {"name": "KEEPS", "on_undecodable": "quarantine"}, "CHANGES")
            source.run()
            site = MemorySite(source, instance)
            for name in ("STOPS", "KEEPS"):
                oracle.run(f"INSERT INTO {name} VALUES ('{MARKED}1', '{MARKED}', {BEFORE_CHRIST})")
            oracle.run(
                f"UPDATE CHANGES SET K = '{MARKED}2'",
                f"ALTER TABLE CHANGES ADD (W VARCHAR2(30) DEFAULT '{MARKED}')",
            )
            oracle.run("TRUNCATE TABLE CHANGES")
            for request in site.tick("windows"):
                site.run(request)
            assert source.status("STOPS").state == "failed"
            assert source.status("CHANGES").state == "failed"
            oracle.run(f"INSERT INTO KEEPS VALUES ('{MARKED}3', '{MARKED}', SYSDATE)")
            [window] = source.pipeline.plan_windows()
            source.pipeline.capture_window(window)
            folder = tmp_path / "landing" / window_folder("src", window)
            [redo] = folder.glob("redo*.parquet")
            redo.write_bytes(redo.read_bytes()[:-40] + MARKED.encode())
            [request] = site.tick("windows")
            assert not site.run(request).success
            runs = instance.get_runs()
            events = [str(log) for run in runs for log in instance.all_logs(run.run_id)]
    assert len(events) > 50
    assert [text for text in events if MARKED in text] == []
