"""Which transactions of a window's ledger file count for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_core.errors import LandingDamagedError
from cdc_core.lake.committed import CommittedTransactions, read_committed
from cdc_core.landing.layout import ORDINAL_SHIFT, TRANSACTION_SCHEMA
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow

EMP = TableId("HR", "EMP")
WINDOW, ORDINAL = ScnWindow(Scn(100), Scn(200)), 5


def found(folder: Path, *rows: dict[str, Any]) -> CommittedTransactions:
    usual: dict[str, Any] = {field.name: None for field in TRANSACTION_SCHEMA} | {
        "state": "commit", "commit_scn": 150, "first_ordinal": ORDINAL << ORDINAL_SHIFT,
        "commit_ordinal": (ORDINAL << ORDINAL_SHIFT) + 9, "has_rollback": False, "tables": ["HR.EMP"], "rows": 1,
    }  # fmt: skip
    full = [{**usual, "xid": f"{number:016x}", **row} for number, row in enumerate(rows)]
    path = folder / "transactions.parquet"
    pq.write_table(pa.Table.from_pylist(full, TRANSACTION_SCHEMA), path)
    return read_committed([str(path)], EMP, WINDOW, ordinal=ORDINAL)


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


def test_transactions_that_began_in_earlier_windows_are_named(tmp_path: Path) -> None:
    begins = [(ORDINAL << ORDINAL_SHIFT) - 1, ORDINAL << ORDINAL_SHIFT, 3 << ORDINAL_SHIFT]
    assert found(tmp_path, *({"first_ordinal": at} for at in begins)).earlier == (
        f"{0:016x}",
        f"{2:016x}",
    )


@pytest.mark.parametrize("rolled", [(True, False), (False, True), (False, False)])
def test_one_rollback_is_enough(tmp_path: Path, rolled: tuple[bool, bool]) -> None:
    rows = ({"has_rollback": one} for one in rolled)
    assert found(tmp_path, *rows).has_rollback is any(rolled)


def test_a_missing_file_is_damage(tmp_path: Path) -> None:
    with pytest.raises(LandingDamagedError):
        read_committed([str(tmp_path / "none.parquet")], EMP, WINDOW, ordinal=ORDINAL)
