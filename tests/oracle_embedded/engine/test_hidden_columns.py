"""Columns that Oracle makes for itself: in the dictionary of all columns and in rows, and in nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.oracle.embedded import Oracle, running_oracle

ALL = "SELECT COLUMN_NAME, DATA_TYPE, HIDDEN_COLUMN, USER_GENERATED, SEGMENT_COLUMN_ID, COLUMN_ID FROM USER_TAB_COLS WHERE TABLE_NAME = 'T' ORDER BY INTERNAL_COLUMN_ID"  # fmt: skip


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        yield running


def rows(oracle: Oracle, query: str) -> list[tuple[Any, ...]]:
    with oracle.owner() as connection:
        return list(connection.cursor().execute(query).fetchall())


def test_a_nullable_column_with_a_default_brings_a_hidden_one_once(oracle: Oracle) -> None:
    oracle.run(
        "ALTER TABLE T ADD (C VARCHAR2(9) DEFAULT 'x')",
        "ALTER TABLE T ADD (D NUMBER(9) DEFAULT 7)",
        "INSERT INTO T VALUES (2, NULL, 8)",
        "INSERT INTO T (ID) VALUES (3)",
    )
    assert rows(oracle, ALL) == [
        ("ID", "NUMBER", "NO", "YES", 1, 1),
        ("SYS_NC00002$", "RAW", "YES", "NO", 2, None),
        ("C", "VARCHAR2", "NO", "YES", 3, 2),
        ("D", "NUMBER", "NO", "YES", 4, 3),
    ]
    shown = "SELECT COLUMN_NAME FROM USER_TAB_COLUMNS WHERE TABLE_NAME = 'T' ORDER BY COLUMN_ID"
    assert rows(oracle, shown) == [("ID",), ("C",), ("D",)]
    assert rows(oracle, "SELECT * FROM T ORDER BY ID") == [(1, "x", 7), (2, None, 8), (3, "x", 7)]
    assert rows(oracle, 'SELECT "SYS_NC00002$" FROM T ORDER BY ID') == [(None,), (b"\x01",), (b"\x01",)]  # fmt: skip


@pytest.mark.parametrize(
    "added",
    ["C VARCHAR2(9) DEFAULT 'x' NOT NULL", "C VARCHAR2(9)", "C VARCHAR2(9) DEFAULT NULL", "C CLOB DEFAULT 'x'"],
)  # fmt: skip
def test_other_columns_bring_none(oracle: Oracle, added: str) -> None:
    oracle.run(f"ALTER TABLE T ADD ({added})")
    assert [row[0] for row in rows(oracle, ALL)] == ["ID", "C"]
