"""A table with row archival: archived rows are captured like all others, on both paths, and their state nowhere."""

from __future__ import annotations

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

T = table_id("T")

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9)) ROW ARCHIVAL",
    "INSERT INTO T VALUES (1, 'a')",
    "INSERT INTO T VALUES (2, 'b')",
    "UPDATE T SET ORA_ARCHIVE_STATE = '1' WHERE ID = 2",
)
source = capturing("T", runs=False)


def test_archived_rows_are_in_the_mirror(oracle: Oracle, source: Source) -> None:
    source.begin()
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
