"""LOBs on their way through changes of key reach Delta: with and without Spark, in windows, replays and rebuilds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cdc_core.steps import Pipeline
from oracle_embedded.redo import DEFAULT_WARTS
from tests.oracle.embedded import MERGED_BY_SPARK, running_oracle
from tests.steps.harness import table_id
from tests.steps.key_walks import KINDS, Walk, create, put


@pytest.mark.parametrize(
    ("lake", "kinds"),
    [
        pytest.param({}, ["document"], id="copy-on-write-of-one-kind"),
        pytest.param({}, list(KINDS), id="copy-on-write"),
        pytest.param(MERGED_BY_SPARK, list(KINDS), id="merge", marks=pytest.mark.spark),
    ],
)
def test_lobs_follow_their_rows_through_keys_in_delta(
    tmp_path: Path, lake: dict[str, int], kinds: list[str]
) -> None:
    """MERGE alone: tests/lake/test_absent.py."""
    tables = {f"T{number}": kind for number, kind in enumerate(kinds)}
    rng = random.Random(5)
    with running_oracle(warts=DEFAULT_WARTS, extended_strings=True) as oracle:
        for table, kind in tables.items():
            create(oracle, table, kind, rows=4)
        create(oracle, "T", "clob-and-blob", rows=3)
        config = oracle.config(
            tmp_path,
            "T",
            *tables,
            capture={"close_at": "online"},
            lake=lake,
        )
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            for _ in range(2):
                with oracle.owner() as connection:
                    cursor = connection.cursor()
                    for sql in (
                        "UPDATE T SET ID = 101 WHERE ID = 1",
                        "UPDATE T SET C = :c WHERE ID = 101",
                        "UPDATE T SET ID = 201 WHERE ID = 101",
                        "UPDATE T SET ID = 1 WHERE ID = 201",
                    ):
                        put(cursor, sql, {"c": "new" * 4000} if ":c" in sql else {})
                        connection.commit()
                    for table, kind in tables.items():
                        walk = Walk(table, kind, rng)
                        walk.keys = [row[0] for row in cursor.execute(f"SELECT ID FROM {table}")]
                        for _ in range(4):
                            walk.transaction(connection)
                list(pipeline.run_once())
            ready = [
                table_id(one.table.partition(".")[2])
                for one in pipeline.status().tables
                if one.state == "ready"
            ]
            assert table_id("T") in ready
            assert len(ready) > 1, "some walks can be followed"
            assert pipeline.reconcile(ready).differences == 0
            windows = [one.window for one in pipeline.records.windows() if not one.is_idle]
            for window in reversed(windows):
                pipeline.replay_window(window, ready)
            assert pipeline.reconcile(ready).differences == 0
            pipeline.rebuild_mirror(table_id("T"))
            assert pipeline.reconcile(ready).differences == 0
