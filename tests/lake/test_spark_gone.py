"""The JVM dies in the middle, or has no memory left: one error that says what to do, and the next attempt has another JVM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from cdc_core.config import LakeConfig
from cdc_core.errors import CdcError, LakeError, SparkMemoryError, SparkUnavailableError
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.mirror.merge import merge_sql
from cdc_core.spark.session import translated

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_core.lake.lake import Lake
    from tests.stage.landed import Row, Source


@pytest.mark.spark
def test_another_jvm_takes_the_place_of_one_that_ended(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pyspark import SparkContext

    monkeypatch.setattr("cdc_core.spark.session._EXIT_SECONDS", 600)
    lake = open_lake()
    tx = source.begin()
    first = tx.insert(row(1))
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    tx = source.begin()
    tx.insert(row(2))
    tx.update(first, {"NAME": "changed"})
    tx.commit()
    window = source.cut()
    ended: list[int] = []
    commits: list[str] = []

    def fence() -> None:
        commits.append("the change log's" if not commits else "the mirror's")
        if len(commits) == 2:
            process = SparkContext._gateway.proc
            process.kill()
            process.wait()
            ended.append(process.pid)

    with pytest.raises(SparkUnavailableError, match="JVM has ended") as caught:
        window.apply(lake, fence=fence)
    assert "run --loop" in caught.value.hint
    assert capfd.readouterr().err.count("Traceback") == 0
    assert [one["ID"] for one in mirror(source.schema)] == [1]
    window.apply(lake)
    assert [one["ID"] for one in mirror(source.schema)] == [1, 2]
    assert SparkContext._gateway.proc.pid != ended[0]

    # The same window's successor needs a text of 400 MB for each row, and so more than the JVM has.
    tx = source.begin()
    tx.insert(row(3))
    tx.update(first, {"NAME": "changed again"})
    tx.commit()
    large = source.cut()

    def too_large(*given: Any, **options: Any) -> str:
        return merge_sql(*given, **options).replace(
            "VALUES (s.`ID`, s.`NAME`", "VALUES (s.`ID`, REPEAT(s.`NAME`, 400000000 + INT(RAND()))"
        )

    with monkeypatch.context() as patched:
        patched.setattr("cdc_core.lake.mirror.merge.merge_sql", too_large)
        with pytest.raises(SparkMemoryError, match="ran out of memory") as out:
            large.apply(lake)
    assert "lake.driver_memory" in out.value.hint
    assert SparkContext._gateway.proc.poll() is not None
    assert [one["ID"] for one in mirror(source.schema)] == [1, 2]
    by_itself = DeltaLake(LakeConfig(path=str(tmp_path / "lake")), "shop")
    large.apply(by_itself)  # what another JVM makes of it was seen above
    assert [one["ID"] for one in mirror(source.schema)] == [1, 2, 3]


def test_a_context_that_is_stopped_for_memory_while_a_statement_ends_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The statement meets a scheduler that is no more, in place of the error that stopped it."""
    from pyspark import SparkContext

    said = (
        'java.lang.NullPointerException: Cannot invoke "…cleanupQueryJobs(long)" because the return '
        'value of "org.apache.spark.SparkContext.dagScheduler()" is null'
    )
    monkeypatch.setattr("cdc_core.spark.session._EXIT_SECONDS", 600)
    ending = [sys.executable, "-c", "import sys, time; time.sleep(0.5); sys.exit(52)"]
    with subprocess.Popen(ending) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        with pytest.raises(SparkMemoryError), translated("merging"):
            raise PySparkException(said)


@pytest.mark.parametrize(
    ("seconds", "patience", "wanted"),
    [(0.5, 600, SparkUnavailableError), (600, 0.5, LakeError)],
    ids=["ends", "goes-on"],
)
def test_a_jvm_that_is_still_ending_is_lost(
    monkeypatch: pytest.MonkeyPatch, seconds: float, patience: float, wanted: type[CdcError]
) -> None:
    """Its connections are closed before it is gone. A call that meets that raises an error without a Java exception, as other calls do of
    a JVM that is well."""
    from pyspark import SparkContext

    sleeping = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
    process = subprocess.Popen(sleeping)
    try:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        monkeypatch.setattr("cdc_core.spark.session._EXIT_SECONDS", patience)
        with pytest.raises(wanted) as caught, translated("configuring Spark"):
            raise Py4JError("An error occurred while calling o29.sessionState")
        assert type(caught.value) is wanted
    finally:
        process.kill()
        process.wait()
