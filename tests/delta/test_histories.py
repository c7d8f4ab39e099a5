"""What readers see of a table with commits of ours, in any order, beside those of others: the same rows, and those of a model."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.delta.row_counts import count_rows
from tests.delta.histories import History, Row
from tests.delta.plain_reader import rows_of
from tests.delta.vectors import with_vectors
from tests.jvm import small_session

OURS = ("append", "append", "replace", "alter", "say_nothing", "try_again", "clean_up")
MARKING = (*OURS, "mark", "mark", "mark")
RENAMING = ("rename", "rename", "alter")
DELTA_RS = ("rs_append", "rs_delete", "rs_optimize", "rs_vacuum", "rs_alter", "rs_checkpoint")
SPARK = ("spark_insert", "spark_delete", "spark_update", "spark_optimize", "spark_vacuum", "spark_alter")  # fmt: skip


def by_delta_rs(path: str) -> list[Row]:
    query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    return sorted(tuple(row.values()) for row in pa.table(query.read_all()).to_pylist())


def by_spark(session: Any, path: str) -> list[Row]:
    return sorted(map(tuple, session.sql(f"SELECT * FROM delta.`{path}`").collect()))


def check(history: History, session: Any = None) -> None:
    """All readers agree with the model."""
    said = f"after {', '.join(history.done)}"
    assert rows_of(history.path) == history.wanted, f"DuckDB, {said}"
    assert by_delta_rs(history.path) == history.wanted, f"delta-rs, {said}"
    assert count_rows(history.path) in (None, len(history.rows)), f"our count, {said}"
    if session is not None:
        assert by_spark(session, history.path) == history.wanted, f"Spark, {said}"


def live(history: History, steps: tuple[str, ...], count: int, session: Any = None) -> None:
    """So many commits, looked at after each; by Spark, for which each version is dear, after every third."""
    history.append()
    for number in range(count):
        history.step(steps)
        check(history, None if number % 3 else session)


@pytest.mark.parametrize("seed", range(3))
def test_beside_delta_rs(tmp_path: Path, seed: int) -> None:
    history = History(str(tmp_path / "t"), Random(seed), {})
    live(history, OURS + DELTA_RS, 20)


@pytest.mark.parametrize("seed", range(3))
def test_with_deletion_vectors(tmp_path: Path, seed: int) -> None:
    """Rows that vectors delete are deleted for every reader, and stay so when their file is marked again, or goes."""
    history = History(str(tmp_path / "t"), Random(seed), {})
    with_vectors(history.path)
    live(history, MARKING, 20)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("steps", [MARKING, OURS], ids=["with-vectors", "rewritten"])
def test_with_column_mapping(tmp_path: Path, seed: int, steps: tuple[str, ...]) -> None:
    """Columns come, and get names that other ones had, while files keep the names that they were
    written with."""
    history = History(str(tmp_path / "t"), Random(seed), {})
    if steps is MARKING:
        with_vectors(history.path)
    history.append()
    history.map_columns()
    live(history, (*steps, *RENAMING), 20)


KINDS = {
    "plain": (*OURS, *DELTA_RS, *SPARK),
    "with-vectors": (*MARKING, *SPARK),
    "with-column-mapping": (*MARKING, *RENAMING, *SPARK, "spark_rename", "spark_drop"),
}


def beside_spark(history: History, kind: str, count: int, session: Any) -> None:
    """So many commits of ours and of others to a table of this kind."""
    if kind != "plain":
        with_vectors(history.path)
    if kind == "with-column-mapping":
        history.map_columns()
    live(history, KINDS[kind], count, session)


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_beside_spark(tmp_path: Path, spark_process: None, kind: str) -> None:
    """Three readers, and a third writer."""
    session = small_session(tmp_path)
    beside_spark(History(str(tmp_path / "t"), Random(5), {}, session), kind, 10, session)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(10, 13))
@pytest.mark.parametrize("kind", KINDS)
def test_long_histories(tmp_path: Path, spark_process: None, seed: int, kind: str) -> None:
    """The same over checkpoints of all three writers, and logs that were cleaned up between them."""
    session = small_session(tmp_path)
    beside_spark(History(str(tmp_path / "t"), Random(seed), {}, session), kind, 40, session)
