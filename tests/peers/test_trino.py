"""What does Trino read of Delta tables with features, and of a lake of Redolake's? The column Trino of docs/reference/readers.md is tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import LakeConfig
from cdc_core.spark.session import start_session
from cdc_core.steps import Pipeline
from tests.oracle.embedded import running_oracle
from tests.peers.test_delta_readers import FEATURES, documented, made
from tests.peers.trino_server import RefusedError, Trino, running_trino

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def trino(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    with running_trino(tmp_path_factory.mktemp("trino")) as running:
        yield running


@pytest.mark.spark
def test_trino_does_what_the_page_says(tmp_path: Path, trino: Trino, spark_process: None) -> None:
    del spark_process
    session = start_session(LakeConfig(path=str(tmp_path / "lake"), driver_memory="1g"))
    found = {}
    for number, feature in enumerate(FEATURES):
        path = tmp_path / f"t{number}"
        rows = made(session, path, feature)
        found[feature] = outcome(trino, f"t{number}", path, rows)
    assert found == {feature: said["Trino"] for feature, said in documented().items()}


def outcome(trino: Trino, name: str, path: Path, rows: list[dict[str, Any]]) -> str:
    """What becomes of a table with these rows, in the words of the page."""
    listed = ", ".join(f'"{column}"' for column in rows[0])
    try:
        trino.register("features", name, str(path))
        told = trino.ask(f"SELECT {listed} FROM delta.features.{name} ORDER BY 1")
    except RefusedError as error:
        return "hides the column" if "Column 'id' cannot be resolved" in str(error) else "refused"
    own = [{column.lower(): value for column, value in row.items()} for row in rows]
    assert [{column.lower(): value for column, value in row.items()} for row in told] == own, name
    return "yes"


def test_views_of_one_cut(tmp_path: Path, trino: Trino) -> None:
    """Made by what `redolake at --format trino` prints; a mirror has deletion vectors, and both tables change again behind the cut."""
    with running_oracle() as oracle:
        oracle.run(
            *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), P NUMBER(12,2), AT TIMESTAMP)" for name in ("ONE", "TWO")),
            "INSERT INTO ONE SELECT LEVEL, 'first', LEVEL / 4, TIMESTAMP '2026-01-02 03:04:05.678901' FROM DUAL CONNECT BY LEVEL <= 100",
            "INSERT INTO TWO SELECT LEVEL, 'first', 1, NULL FROM DUAL CONNECT BY LEVEL <= 10",
        )  # fmt: skip
        vectors = {"maintenance": {"deletion_vectors": "always"}}
        with Pipeline(oracle.config(tmp_path, "ONE", "TWO", **vectors)) as pipeline:
            list(pipeline.run_once())
            oracle.run("UPDATE ONE SET V = 'now' WHERE ID <= 3", "DELETE FROM ONE WHERE ID = 4", "UPDATE TWO SET V = 'now' WHERE ID = 1")  # fmt: skip
            list(pipeline.run_once())
            cut = pipeline.cut_at()
            oracle.run("UPDATE ONE SET V = 'later'", "DELETE FROM TWO")
            list(pipeline.run_once())
            names = {"view": "delta.cut.{owner}_{table}", "table": "delta.shop.{table}"}
            statements = pipeline.cut_sql(cut, "trino", **names)
        for one in cut.tables:
            trino.register("shop", one.table.split(".")[1].lower(), one.path)
        trino.ask("CREATE SCHEMA IF NOT EXISTS delta.cut")
        for statement in statements:
            trino.ask(statement.removesuffix(";"))
        joined = "SELECT a.id, a.v, b.v AS w FROM delta.cut.demo_one a JOIN delta.cut.demo_two b ON a.id = b.id ORDER BY a.id"
        found = [tuple(row.values()) for row in trino.ask(joined)]
        assert found == [
            (1, "now", "now"), (2, "now", "first"), (3, "now", "first"),
            *((key, "first", "first") for key in range(5, 11)),
        ]  # fmt: skip
        [row] = trino.ask(
            "SELECT count(*) AS n, sum(p) AS p, max(at) AS at FROM delta.cut.demo_one"
        )
        assert (row["n"], row["p"], row["at"]) == (99, "1261.50", "2026-01-02 03:04:05.678901")
        newest = trino.ask("SELECT count(*) AS n FROM delta.shop.one WHERE v = 'later'")
        assert newest == [{"n": 99}]
