"""Chunks are read and applied side by side: the same tables come about as one step after the other gives, also where reading begins anew."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_core.delta import history, log_cache
from cdc_core.lake.apply import chunks as apply_chunks
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.stage.snapshot import ChunkRows
from cdc_core.state import chunks
from cdc_core.steps import Pipeline
from oracle_embedded.database import CAPTURE
from oracle_embedded.faults import Fault, FaultKind
from tests.lake.who_merges import no_spark
from tests.oracle.embedded import running_oracle
from tests.steps.harness import table_id

_PLACES = ("_cdc_commit_scn", "_cdc_scn", "_cdc_window", "_cdc_snapshot", "_cdc_landed")


@pytest.mark.parametrize(
    ("chunk_rows", "sessions", "is_read_again"),
    [
        pytest.param(1000, 1, True, id="a-chunk-whose-undo-is-gone-in-the-middle"),
        pytest.param(400, 1, False, id="several-chunks"),
        pytest.param(100, 4, False, id="several-chunks-in-several-sessions"),
    ],
)
def test_chunks_are_written_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chunk_rows: int,
    sessions: int,
    is_read_again: bool,
) -> None:
    """No row is encoded but for landing. What landed of a chunk until its undo was gone goes, and is not in the tables."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE MIXED (ID NUMBER(9) PRIMARY KEY, N NUMBER, P NUMBER(9,2), D DATE, T TIMESTAMP(9), R RAW(4), C CLOB, V VARCHAR2(20))",
            "INSERT INTO MIXED SELECT LEVEL, LEVEL / 8, LEVEL / 4, DATE '2013-02-28' + LEVEL, TIMESTAMP '2013-02-28 23:59:59.123456789',"
            " HEXTORAW('00FF'), CASE WHEN MOD(LEVEL, 3) = 0 THEN NULL ELSE EMPTY_CLOB() END, 'v' || LEVEL FROM DUAL CONNECT BY LEVEL <= 700",
        )

        def pipeline(name: str) -> Pipeline:
            login = {**oracle.login(CAPTURE), "fetch_rows": 100}
            snapshot = {"chunk_rows": chunk_rows, "sessions": sessions}
            more: dict[str, Any] = {"oracle": login, "snapshot": snapshot}
            config = oracle.config(tmp_path / name, "MIXED", **more)
            return Pipeline(config, open_lake=partial(DeltaLake, spark=no_spark))

        with monkeypatch.context() as encoding, pipeline("apart") as apart:
            for name in ("mirror_files", "changelog_files"):
                encoding.setattr(apply_chunks, name, lambda *_: None)
            for key in apart.start_snapshot():
                apart.snapshot_chunk(key)
                apart.apply_chunk(key)
            expected = _tables(apart)
        for name in ("as_changes", "as_mirror"):
            monkeypatch.setattr(ChunkRows, name, lambda *_, **__: pytest.fail("rows are encoded"))
        if is_read_again:
            oracle.server.faults.arm(
                Fault(FaultKind.ORA_ERROR, sql_contains='GETLENGTH("C")', nth=3, code=1555)
            )  # fmt: skip
        with pipeline("at-once") as at_once:
            planned = at_once.start_snapshot()
            [before, *_] = [one.scn for one in at_once.store.chunks.find(table_id("MIXED"))]
            list(at_once.run_snapshot())
            assert _tables(at_once) == expected
            after = [one.scn for one in at_once.store.chunks.find(table_id("MIXED"))]
            assert (after[0] > before) == is_read_again
            for path in _paths(at_once):
                files = len(list(Path(path).glob("*.parquet")))
                assert files == len(DeltaTable(path).file_uris()) == len(planned)


def test_a_chunk_costs_the_same_however_many_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted are records of chunks, commits of the logs, and whole Delta tables that are read."""
    work: Counter[str] = Counter()

    def counting(module: Any, name: str) -> None:
        first = getattr(module, name)

        def counted(*given: Any, **named: Any) -> Any:
            work[name] += 1
            return first(*given, **named)

        monkeypatch.setattr(module, name, counted)

    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE MANY (ID NUMBER(9) PRIMARY KEY)",
            "INSERT INTO MANY SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 3000",
        )
        config = oracle.config(tmp_path, "MANY", snapshot={"chunk_rows": 100})
        with Pipeline(config, open_lake=partial(DeltaLake, spark=no_spark)) as pipeline:
            keys = pipeline.start_snapshot()
            assert len(keys) >= 30
            pipeline.snapshot_chunk(keys[0])
            pipeline.apply_chunk(keys[0])
            counting(chunks, "_chunk_from_row")
            counting(history, "actions_of")
            counting(log_cache, "actions_of")
            counting(deltalake, "DeltaTable")
            costs = []
            for key in keys[1:]:
                pipeline.snapshot_chunk(key)
                work.clear()
                pipeline.apply_chunk(key)
                costs.append(dict(work))
    assert costs[1] == costs[-2]
    assert sum(costs[1].values()) < 10


def _paths(pipeline: Pipeline) -> list[str]:
    lake, table = pipeline.config.lake, table_id("MIXED")
    return [
        DEFAULT_PATHS.path(layer, str(lake.path), pipeline.config.name, table)
        for layer in ("changelog", "mirror")
    ]


def _tables(pipeline: Pipeline) -> list[list[dict[str, Any]]]:
    found = []
    for path in _paths(pipeline):
        rows = pa.table(DeltaTable(path).to_pyarrow_table())
        rows = rows.drop_columns([name for name in _PLACES if name in rows.column_names])
        found.append(sorted(rows.to_pylist(), key=repr))
    return found
