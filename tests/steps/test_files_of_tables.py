"""A table reads the files that hold rows of its committing transactions, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from cdc_core.lake.table_part import TablePart
from cdc_core.landing.layout import ORDINAL_SHIFT, TRANSACTION_SCHEMA
from cdc_core.model.identifiers import TableId
from cdc_core.steps.windows.redo_inputs import windows_holding
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id
from tests.steps.memory_lake import MemoryLake

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in ("ONE", "TWO")),
)


def test_a_long_transaction_reads_only_the_windows_in_which_its_rows_landed(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other windows have rows of the same table, and of the same transaction in another table."""
    read: dict[str, list[str]] = {}
    apply_window = MemoryLake.apply_window

    def noted(lake: MemoryLake, part: TablePart, *rest: Any, **more: Any) -> Any:
        read[part.table.name] = list(part.landed.redo_paths)
        return apply_window(lake, part, *rest, **more)

    monkeypatch.setattr(MemoryLake, "apply_window", noted)
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.run()
        with oracle.owner() as connection, connection.cursor() as cursor:
            for number in range(8):
                if number in (1, 5):
                    for key in range(100 * number, 100 * number + 40):
                        cursor.execute(f"INSERT INTO ONE VALUES ({key}, 'long')")
                if number == 3:
                    cursor.execute("INSERT INTO TWO VALUES (1000, 'long')")
                oracle.run(f"INSERT INTO ONE VALUES ({5000 + number}, 'short')")
                source.windows()
            connection.commit()
        source.windows()
        source.check_current("ONE", "TWO")
        landing = tmp_path / "landing"
        having = {str(path) for path in landing.rglob("redo-*") if _texts(path, table_id("ONE"))}
        assert len(having) >= 8, "each window has rows of the table"
        for name, most in (("ONE", 4), ("TWO", 2)):
            assert 1 <= len(read[name]) <= most
            assert all("long" in _texts(Path(path), table_id(name)) for path in read[name])


def test_the_windows_that_are_noted_are_read(tmp_path: Path) -> None:
    row: dict[str, Any] = {
        "xid": "00", "state": "commit", "commit_scn": 50, "first_ordinal": 3 << ORDINAL_SHIFT, "has_rollback": False,
        "tables": ["HR.EMP"], "rows": 5, "windows": [3, 3, 6, 7, 9, 9],
    }  # fmt: skip
    path = str(tmp_path / "transactions.parquet")
    pq.write_table(pa.Table.from_pylist([row], schema=TRANSACTION_SCHEMA), path)
    assert windows_holding(path, 10, "HR.EMP", 9) == {3, 6, 7}
    assert windows_holding(path, 50, "HR.EMP", 9) == set()
    assert windows_holding(path, 10, "HR.DEPT", 9) == set()


def _texts(path: Path, table: TableId) -> str:
    rows = pq.read_table(path, columns=["table_name", "sql_redo"])
    return "".join(rows.filter(pc.equal(rows["table_name"], table.name))["sql_redo"].to_pylist())
