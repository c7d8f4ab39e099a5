"""Rows that get lost or doubled between landing and the mirror are noticed by counting, before anything is committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_core.errors import RowCountError
from cdc_core.landing.layout import ORDINAL_SHIFT, REDO_SCHEMA, TRANSACTION_SCHEMA
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.stage import window as stage_window
from cdc_core.stage.committed import LandedInput
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.rollback import RolledBackRows
from tests.stage.landed import Source

EMP, DEPT = TableId("HR", "EMP"), TableId("HR", "DEPT")
WINDOW, FIRST = ScnWindow(Scn(100), Scn(200)), 5 << ORDINAL_SHIFT


def landed(folder: Path, table_rows: Any, rows: list[tuple[str, int]]) -> tuple[str, str]:
    """A window with one transaction, of which the ledger counted ``table_rows``, and its redo rows: (table, operation)."""
    entry = {field.name: None for field in TRANSACTION_SCHEMA} | {
        "xid": "aa", "state": "commit", "commit_scn": 150, "first_ordinal": FIRST, "commit_ordinal": FIRST + 99,
        "has_rollback": False, "tables": ["HR.DEPT", "HR.EMP"], "table_rows": table_rows, "rows": 0, "windows": [],
    }  # fmt: skip
    redo = [
        {field.name: None for field in REDO_SCHEMA} | {
            "ordinal": FIRST + at, "scn": 140, "xid": "aa", "operation_code": operation, "rollback": False,
            "seg_owner": "HR", "table_name": table,
        }
        for at, (table, operation) in enumerate(rows)
    ]  # fmt: skip
    paths = str(folder / "transactions.parquet"), str(folder / "redo.parquet")
    pq.write_table(pa.Table.from_pylist([entry], TRANSACTION_SCHEMA), paths[0])
    pq.write_table(pa.Table.from_pylist(redo, REDO_SCHEMA), paths[1], row_group_size=2)
    return paths


@pytest.mark.parametrize(
    ("table_rows", "fits"),
    [
        pytest.param([1, 3], True, id="as-many-as-were-counted"),
        pytest.param([2, 2], False, id="as-many-of-all-tables-and-too-many-of-one"),
        pytest.param([1, 4], False, id="one-is-lost"),
        pytest.param([1, 2], False, id="one-is-there-twice"),
        pytest.param([1, 0], False, id="rows-of-an-earlier-life"),
    ],
)
def test_rows_that_are_found_are_as_many_as_the_ledger_counted(
    tmp_path: Path, table_rows: list[int], *, fits: bool
) -> None:
    """DDL is not counted, and rows of other tables not with these."""
    rows = [("EMP", 1), ("DEPT", 1), ("EMP", 3), ("EMP", 5), ("EMP", 2)]
    transactions, redo = landed(tmp_path, table_rows, rows)
    own = LandedInput(
        table=EMP, window=WINDOW, redo_paths=[redo], transactions_paths=[transactions]
    )
    batches = own.rows(own.committed())
    if fits:
        assert sum(batch.num_rows for batch in batches.batches(["ordinal"])) == 3
        assert sum(batch.num_rows for batch in batches.batches(["ordinal"])) == 3, "a second time"
        return
    with pytest.raises(RowCountError, match="not as many as were read") as caught:
        list(batches.batches(["ordinal"]))
    assert (caught.value.facts["found"], caught.value.facts["counted"]) == (3, table_rows[1])


def loses(original: Callable[..., Any]) -> Callable[..., Any]:
    """One row of what the original gives is lost."""

    def lossy(self: Any, *given: Any) -> Any:
        found = original(self, *given)
        return found.slice(1)

    return lossy


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(ChangeDecoder, "__call__", id="while-decoding"),
        pytest.param(RolledBackRows, "left_of", id="while-leaving-out-what-was-taken-back"),
    ],
)
def test_rows_that_landed_are_decoded_or_taken_back(
    source: Source, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    transaction = source.begin()
    for key in range(3):
        transaction.insert({"ID": key, "NAME": "x", "AMOUNT": None, "NOTE": None})
    kept = transaction.savepoint()
    transaction.insert({"ID": 9, "NAME": "y", "AMOUNT": None, "NOTE": None})
    transaction.rollback_to(kept)
    transaction.commit()
    window = source.cut()
    own = window.part().landed

    def staged() -> int:
        decoder = ChangeDecoder(source.schema, window.scn_high)
        batches = stage_window.staged_changes(own.rows(own.committed()), decoder)
        return sum(batch.num_rows for batch in batches)

    assert staged() == 3
    monkeypatch.setattr(owner, name, loses(getattr(owner, name)))
    with pytest.raises(RowCountError, match="not as many as"):
        staged()
