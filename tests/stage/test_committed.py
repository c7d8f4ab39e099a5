"""Which transactions of a window's ledger file count for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_core.errors import LandingDamagedError
from cdc_core.landing.layout import ORDINAL_SHIFT, REDO_SCHEMA, TRANSACTION_SCHEMA
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.stage.committed import (
    CommittedTransactions,
    LandedInput,
    read_committed,
)

EMP = TableId("HR", "EMP")
WINDOW, ORDINAL = ScnWindow(Scn(100), Scn(200)), 5


def found(folder: Path, *rows: dict[str, Any]) -> CommittedTransactions:
    usual: dict[str, Any] = {field.name: None for field in TRANSACTION_SCHEMA if field.name != "table_rows"} | {
        "state": "commit", "commit_scn": 150, "first_ordinal": ORDINAL << ORDINAL_SHIFT,
        "commit_ordinal": (ORDINAL << ORDINAL_SHIFT) + 9, "has_rollback": False, "tables": ["HR.EMP"], "rows": 1, "windows": [],
    }  # fmt: skip
    full = [{**usual, "xid": f"{number:016x}", **row} for number, row in enumerate(rows)]
    full = [{"table_rows": [1] * len(row["tables"])} | row for row in full]
    path = folder / "transactions.parquet"
    pq.write_table(pa.Table.from_pylist(full, TRANSACTION_SCHEMA), path)
    return read_committed([str(path)], EMP, WINDOW)


@pytest.mark.parametrize(
    ("row", "count"),
    [
        pytest.param({"commit_scn": 100}, 0, id="at-the-lower-end-is-the-window-before"),
        pytest.param({"commit_scn": 101}, 1, id="the-first-scn"),
        pytest.param({"commit_scn": 200}, 1, id="the-upper-end-belongs-to-it"),
        pytest.param({"commit_scn": 201}, 0, id="behind-it"),
        pytest.param({"tables": ["HR.DEPT"]}, 0, id="another-table"),
        pytest.param({"tables": ["HR.DEPT", "HR.EMP"]}, 1, id="among-other-tables"),
        pytest.param({"state": "open", "commit_scn": None}, 0, id="still-open"),
        pytest.param({"state": "rollback"}, 0, id="rolled-back"),
    ],
)
def test_a_transaction_counts_in_the_window_of_its_commit(
    tmp_path: Path, row: dict[str, Any], count: int
) -> None:
    assert found(tmp_path, row).count == count


@pytest.mark.parametrize("rolled", [(True, False), (False, True), (False, False)])
def test_one_rollback_is_enough(tmp_path: Path, rolled: tuple[bool, bool]) -> None:
    rows = ({"has_rollback": one} for one in rolled)
    assert found(tmp_path, *rows).has_rollback is any(rolled)


def test_a_missing_file_is_damage(tmp_path: Path) -> None:
    with pytest.raises(LandingDamagedError):
        read_committed([str(tmp_path / "none.parquet")], EMP, WINDOW)


def rows_of(folder: Path, ledger: list[dict[str, Any]], redo: list[dict[str, Any]]) -> list[int]:
    """Ordinals of the redo rows that a window takes, given its ledger."""
    usual: dict[str, Any] = {field.name: None for field in REDO_SCHEMA} | {
        "scn": 140, "operation_code": 1, "rollback": False, "seg_owner": "HR", "table_name": "EMP", "sql_redo": "x",
    }  # fmt: skip
    committed = found(folder, *ledger)
    path = folder / "redo.parquet"
    pq.write_table(pa.Table.from_pylist([usual | row for row in redo], REDO_SCHEMA), path)
    landed = LandedInput(table=EMP, window=WINDOW, redo_paths=[str(path)], transactions_paths=[])
    batches = landed.rows(committed).batches()
    return [ordinal for batch in batches for ordinal in batch["ordinal"].to_pylist()]


def test_a_slot_that_is_used_again_keeps_its_transactions_apart(tmp_path: Path) -> None:
    """Rows between two transactions of one XID, before the first and behind the last belong to none that committed."""
    first = ORDINAL << ORDINAL_SHIFT
    ledger = [
        {
            "xid": "aa",
            "first_ordinal": first + begin,
            "commit_ordinal": first + end,
            "commit_scn": scn,
            "table_rows": [2],
        }
        for begin, end, scn in ((10, 20, 120), (30, 40, 130), (50, 60, 140))
    ]
    redo = [{"xid": xid, "ordinal": first + at} for xid in ("aa", "bb") for at in range(5, 70, 5)]
    taken = [at - first for at in rows_of(tmp_path, ledger, redo)]
    assert taken == [10, 15, 30, 35, 50, 55]


def test_ddl_is_left_out_but_for_truncate(tmp_path: Path) -> None:
    first = ORDINAL << ORDINAL_SHIFT
    redo = [
        {"xid": f"{0:016x}", "ordinal": first + at, "operation_code": 5, "sql_redo": text}
        for at, text in enumerate(["ALTER TABLE EMP ADD X NUMBER", "  truncate table EMP", None])
    ]
    assert [at - first for at in rows_of(tmp_path, [{"table_rows": [0]}], redo)] == [1]


def test_rows_of_another_table_or_schema_are_not_taken(tmp_path: Path) -> None:
    first = ORDINAL << ORDINAL_SHIFT
    names = [("HR", "EMP"), ("HR", "DEPT"), ("SHOP", "EMP"), (None, None)]
    redo = [
        {"xid": f"{0:016x}", "ordinal": first + at, "seg_owner": owner, "table_name": name}
        for at, (owner, name) in enumerate(names)
    ]
    assert [at - first for at in rows_of(tmp_path, [{}], redo)] == [0]
