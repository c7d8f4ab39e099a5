"""A value that must not be there is found wherever a file may hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.invariants.hidden import MARK, files_with_marks

REDO = f'insert into "T"("PIN") values (\'{MARK}-1\')'


@pytest.mark.parametrize(
    "values",
    [
        [None, REDO],
        ["", f"values (HEXTORAW('{MARK.encode().hex().upper()}31'))"],
        [{"pin": f"{MARK}-2"}],
        [[f"{MARK}-3"]],
        [f"{MARK}-4".encode()],
    ],
    ids=["text", "digits", "field", "list", "bytes"],
)
def test_a_value_in_a_parquet_file_is_found(tmp_path: Path, values: list[Any]) -> None:
    pq.write_table(pa.table({"N": [1] * len(values), "V": values}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"N": [1], "V": ["other"]}), tmp_path / "b.parquet")
    assert files_with_marks(tmp_path, without="oracle") == ([tmp_path / "a.parquet"], 2)


def test_a_value_in_another_file_is_found_but_not_in_the_database(tmp_path: Path) -> None:
    for name in ("landing", "oracle"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(REDO)
    (tmp_path / "state.db").write_bytes(b"\0" + MARK.upper().encode())
    found, read = files_with_marks(tmp_path, without="oracle")
    assert (found, read) == ([tmp_path / "landing" / "manifest.json", tmp_path / "state.db"], 2)
