"""What makes the redo, through the driver, beside a count of what was run."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from pipelines.commands.redo_profile import show_profile
from pipelines.commands.shared import LineConsole
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(2000))",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(2000))",
    "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)",
)


def test_rows_and_bytes_are_those_that_were_written(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T", "U") as source:
        source.begin()
        assert source.pipeline.redo_profile().shares == ()
        oracle.run(*(f"INSERT INTO T VALUES ({key}, '{'x' * 1000}')" for key in range(6)))
        source.windows()
        oracle.run("UPDATE T SET V = 'y' WHERE ID < 2", "INSERT INTO U VALUES (1, 'z')")
        oracle.run("DELETE FROM T WHERE ID = 5", "INSERT INTO OTHER VALUES (1)")
        source.windows()
        found = source.pipeline.redo_profile()

        counts = {(one.table, one.operation): one.rows for one in found.shares}
        assert counts == {
            (f"{OWNER}.T", "INSERT"): 6,
            (f"{OWNER}.T", "UPDATE"): 2,
            (f"{OWNER}.T", "DELETE"): 1,
            (f"{OWNER}.U", "INSERT"): 1,
        }
        assert {one.username for one in found.shares} == {OWNER}
        texts: Counter[str] = Counter()
        for path in (tmp_path / "landing").rglob("redo-*.parquet"):
            for row in pq.read_table(path).to_pylist():
                texts[f"{row['seg_owner']}.{row['table_name']}"] += len(row["sql_redo"].encode())
        by_table = {name: size for name, _, size in found.grouped(lambda one: one.table)}
        assert by_table == texts
        assert by_table[f"{OWNER}.T"] > 6 * 1000
        assert next(iter(by_table)) == f"{OWNER}.T", "the largest first"
        kept = {one.window.key for one in source.pipeline.records.windows()}
        captured = [
            one for one in source.reports if one.kind == "window-captured" and one.key in kept
        ]
        assert len(captured) == found.windows == 2, "an idle one is forgotten"
        assert found.rows_mined == sum(one.facts["rows_mined"] for one in captured)
        assert found.rows == sum(one.rows for one in captured) == 10

        newest = source.pipeline.redo_profile(windows=1)
        assert (newest.windows, newest.rows) == (1, 4)

        shown = io.StringIO()
        show_profile(found, LineConsole(file=shown, width=160))
        text = shown.getvalue()
        assert "10 landed redo rows" in text
        assert f"{OWNER}.T" in text
        assert "never land" in text
        assert "zzz" not in text
        assert "xxx" not in text


def test_rows_that_take_others_back_are_counted_apart(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T") as source:
        source.begin()
        with oracle.owner() as connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO T VALUES (1, 'kept')")
            cursor.execute("SAVEPOINT HERE")
            cursor.execute("INSERT INTO T VALUES (2, 'taken back')")
            cursor.execute("ROLLBACK TO SAVEPOINT HERE")
            connection.commit()
        source.windows()
        found = source.pipeline.redo_profile()
        counts = {one.operation: one.rows for one in found.shares}
        assert counts == {"INSERT": 2, "ROLLBACK": 1}
