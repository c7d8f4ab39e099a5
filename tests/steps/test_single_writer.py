"""Where Delta's commits are not atomic, one process writes to the lake, and a second one is refused before it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.config import LakeConfig
from cdc_core.errors import LeaseHeldError, SecondWriterError
from cdc_core.steps import context
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of

SINGLE = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO T VALUES (1)",
    scope="module",
)


@pytest.mark.parametrize(
    ("path", "settings", "is_atomic"),
    [
        pytest.param("/data/lake", {}, True, id="a-folder"),
        pytest.param("abfss://c@a.dfs.core.windows.net/lake", {}, True, id="azure"),
        pytest.param("s3a://bucket/lake", {}, False, id="plain-s3"),
        pytest.param("s3a://bucket/lake", SINGLE, False, id="the-log-store-of-one-driver"),
    ],
)
def test_which_lakes_have_atomic_commits(
    path: str, settings: dict[str, str], is_atomic: bool
) -> None:
    assert LakeConfig(path=path, spark_config=settings).has_atomic_commits is is_atomic


def test_a_second_writer_is_refused_at_the_start(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "refuse_moved", lambda *_: None)  # there is no bucket
    lake = {"path": "s3a://bucket/lake"}
    with source_of(oracle, tmp_path, "T", lake=lake) as one:
        [key] = one.pipeline.start_snapshot()
        one.pipeline.snapshot_chunk(key)
        with source_of(oracle, tmp_path, "T", lake=lake) as other:
            other.lake = one.lake
            one.pipeline.apply_chunk(key)
            calls = len(one.lake.calls)
            with pytest.raises(SecondWriterError, match="no atomic commits") as caught:
                other.pipeline.apply_chunk(key)
            assert isinstance(caught.value, LeaseHeldError), "Dagster tries it again"
            assert len(one.lake.calls) == calls
            one.close()
            assert other.pipeline.apply_chunk(key).repeated
