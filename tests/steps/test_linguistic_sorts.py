"""A source whose database lets sessions begin with a linguistic sort: Redolake's own sessions sort and compare bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of, table_id


@pytest.mark.parametrize(
    ("sort", "comparison"),
    [
        pytest.param("GERMAN", "BINARY", id="sorted"),
        pytest.param("BINARY_AI", "LINGUISTIC", id="compared", marks=pytest.mark.slow),
    ],
)
def test_each_key_is_in_one_chunk_whatever_sort_sessions_begin_with(
    tmp_path: Path, sort: str, comparison: str
) -> None:
    """Ranges whose ends come in the order of a language, and whose rows are compared by bytes, would leave rows out."""
    firsts = ["a", "A", "ä", "Ä", "b", "B"]
    keys = [f"{first}{at}" for at in range(60) for first in firsts]
    with running_oracle(nls_sort=sort, nls_comp=comparison) as oracle:
        oracle.run("CREATE TABLE K (V VARCHAR2(8) PRIMARY KEY, N NUMBER(9))")
        with oracle.owner() as connection:
            cursor = connection.cursor()
            cursor.executemany(
                "INSERT INTO K VALUES (:1, :2)", [(key, at) for at, key in enumerate(keys)]
            )
            connection.commit()
            cursor.execute("SELECT V FROM K ORDER BY V")
            assert [key for (key,) in cursor] != sorted(keys), "other sessions sort otherwise"
        snapshot = {"chunk_rows": 110, "cut": "key"}
        with source_of(oracle, tmp_path, "K", snapshot=snapshot) as source:
            reports = source.run()
            read = [report.rows for report in reports if report.kind == "chunk-landed"]
            assert len(read) > 2
            assert sum(read) == len(keys)
            oracle.run("ALTER SESSION SET NLS_COMP = BINARY", "DELETE FROM K WHERE V LIKE 'a%'")
            oracle.run("INSERT INTO K VALUES ('a1', 999)", "UPDATE K SET V = 'A1x' WHERE N = 999")
            source.windows()
            source.check_current("K")
            assert len(source.lake.tables[table_id("K")].rows) == len(keys) - 59
