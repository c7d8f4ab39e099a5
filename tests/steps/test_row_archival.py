"""A table with row archival: archived rows are captured like all others, on both paths, and their state nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

T = table_id("T")


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9)) ROW ARCHIVAL",
            "INSERT INTO T VALUES (1, 'a')",
            "INSERT INTO T VALUES (2, 'b')",
            "UPDATE T SET ORA_ARCHIVE_STATE = '1' WHERE ID = 2",
        )
        yield running


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "T") as opened:
        yield opened


def test_archived_rows_are_in_the_mirror(oracle: Oracle, source: Source) -> None:
    source.run()
    assert source.lake.image(T) == [(1, "a"), (2, "b")]
    oracle.run(
        "INSERT INTO T VALUES (3, 'c')",
        "UPDATE T SET V = 'unseen' WHERE ID = 2",
        "UPDATE T SET ORA_ARCHIVE_STATE = '1' WHERE ID = 1",
        "UPDATE T SET V = 'd' WHERE ID = 3",
    )
    source.run()
    assert source.lake.image(T) == [(1, "a"), (2, "b"), (3, "d")]
    source.check_current("T")
