"""Rows that are there when a column is added have its default, in whatever order windows, replays and later changes come."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of


@pytest.mark.parametrize("default", ["7", "'text'", "DATE '2020-02-29'"])
def test_rows_that_are_there_have_the_default_of_an_added_column(
    tmp_path: Path, default: str
) -> None:
    kind = {"7": "NUMBER(9)", "'text'": "VARCHAR2(9)"}.get(default, "DATE")
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A NUMBER(9))",
            *(f"INSERT INTO T VALUES ({key}, 1)" for key in range(4)),
        )
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            oracle.run("UPDATE T SET A = 2 WHERE ID = 1")
            oracle.run(f"ALTER TABLE T ADD (B {kind} DEFAULT {default} NOT NULL)")
            oracle.run("UPDATE T SET A = 3 WHERE ID = 2", "INSERT INTO T (ID) VALUES (9)")
            source.windows()
            source.check_current("T")
            oracle.run("ALTER TABLE T RENAME COLUMN B TO C", "DELETE FROM T WHERE ID = 3")
            source.windows()
            source.check_current("T")
            assert source.record("T").reason is None
