"""Undo that is overwritten while a chunk is fetched, and SCNs whose time Oracle has forgotten, stop nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.database import CAPTURE
from oracle_embedded.engine.run.query_run import QueryRows
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of

WEEK = 7 * 86_400

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO T SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 1500",
)


@pytest.fixture
def undo_rows_max(oracle: Oracle) -> Iterator[int]:
    oracle.database.engine.transactions.undo_rows_max = 400
    yield 400
    oracle.database.engine.transactions.undo_rows_max = None


def test_a_chunk_is_read_again_whose_undo_is_overwritten_in_the_middle(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undo_rows_max: int
) -> None:
    """Others change rows that the chunk has not fetched yet, more than the undo keeps."""
    fetch, fetched = QueryRows.fetch, 0

    def counted(self: QueryRows, count: int) -> list[Any]:
        nonlocal fetched
        if [column.name for column in self.columns] == ["ID", "V"]:
            fetched += 1
            if fetched == 3:
                for low in (500, 800, 1100):
                    oracle.run(
                        f"UPDATE T SET V = 'meanwhile' WHERE ID BETWEEN {low} AND {low + 299}"
                    )
        return fetch(self, count)

    with source_of(oracle, tmp_path, "T", snapshot={"chunk_rows": 5000}) as source:
        source.close()
        source.more["oracle"] = {**oracle.login(CAPTURE), "fetch_rows": 100}
        monkeypatch.setattr(QueryRows, "fetch", counted)
        list(source.pipeline.run_snapshot())
        monkeypatch.undo()
        assert fetched > 1500 / 100 + 3, "it was read again"
        oracle.run("UPDATE T SET V = 'last' WHERE ID = 1")
        source.windows()
        source.check_current("T")


def test_a_source_that_rested_for_a_week_goes_on(oracle: Oracle, tmp_path: Path) -> None:
    """Oracle maps SCNs to times some days back only: what was written and altered before is followed all the same."""
    with source_of(oracle, tmp_path, "T") as source:
        source.begin()
        oracle.run("UPDATE T SET V = 'a week ago' WHERE ID = 2")
        oracle.run("ALTER TABLE T ADD (W NUMBER(5))", "UPDATE T SET W = 7 WHERE ID = 3")
        oracle.clock.ahead += WEEK
        oracle.run("UPDATE T SET V = 'today' WHERE ID = 4")
        source.run()
        source.check_current("T")
        shown = source.pipeline.records.windows()
        assert all(one.state == "applied" for one in shown)
