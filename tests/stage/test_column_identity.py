"""Files name columns as they are stored for life; what is read from them has the names of now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema
from cdc_core.stage.absent_names import renamed_lists
from cdc_core.stage.changes import LoggedChanges, of_window
from cdc_core.stage.layout import change_schema
from cdc_core.stage.snapshot import ChunkRows, deletions
from tests.stage.landed import orders_schema

OLD = orders_schema()
WINDOW = 9


@pytest.fixture
def new() -> TableSchema:
    """ID is NUM, NAME is NOTE, and the CLOB has gone from the mirror."""
    names = {"ID": "NUM", "NAME": "NOTE"}
    columns = tuple(
        replace(column, name=names.get(column.name, column.name)) for column in OLD.columns[:-1]
    )
    return replace(OLD, scn_from=Scn(OLD.scn_from + 5), columns=columns, key=("NUM",))


def test_changes_are_read_under_the_names_of_now(tmp_path: Path, new: TableSchema) -> None:
    """The same field for rows of both times. The NOTE that they list is the CLOB, which is another
    column than the present NOTE."""
    facts = {"_cdc_op": "u", "_cdc_window": WINDOW, "_cdc_commit_scn": 5}
    rows: list[dict[str, object]] = [
        {"before": {"ID": 1}, "after": {"ID": 1, "NAME": "one"}, "_cdc_absent": ["NOTE"]},
        {"before": {"ID": 2}, "after": {"ID": 2}, "_cdc_absent": ["NAME"]},
    ]
    written = [facts | {"_cdc_ordinal": at} | row for at, row in enumerate(rows)]
    path = tmp_path / "changes.parquet"
    pq.write_table(pa.Table.from_pylist(written, schema=change_schema(OLD)), path)
    changes = LoggedChanges(pafs.LocalFileSystem(), [str(path)], new, of_window(WINDOW))
    facts_ = changes.facts()
    assert (facts_.changes, facts_.absent, facts_.bounds) == (2, ("NOTE",), {"NUM": (1, 2)})
    assert changes.light().lacking("NOTE").tolist() == [False, True]
    taken = changes.take("after", "NOTE", np.array([1, 0, -1]))
    assert taken.to_pylist() == [None, "one", None]
    changes.close()


def test_a_chunk_is_read_by_its_own_names_and_logged_by_what_columns_are(
    tmp_path: Path, new: TableSchema
) -> None:
    path = tmp_path / "chunk.parquet"
    pq.write_table(pa.table({"ID": [1], "NAME": ["one"], "AMOUNT": ["1.00"], "NOTE": ["n"]}), path)
    [batch] = ChunkRows([str(path)], OLD, new).batches(["NUM", "NOTE"])
    assert batch.to_pylist() == [{"NUM": 1, "NOTE": "one"}]
    chunk = ChunkRows([str(path)], OLD, new)
    [row] = pa.Table.from_batches(chunk.as_changes("s1/1", 5)).to_pylist()
    assert (row["after"]["ID"], row["after"]["NAME"]) == (1, "one")
    [gone] = pa.Table.from_batches(deletions(chunk.batches(), "s1/gone", 5, new)).to_pylist()
    assert (gone["before"]["ID"], gone["_cdc_absent"]) == (1, ["NAME", "AMOUNT"])


def test_lists_change_names_and_nothing_else() -> None:
    lists = pa.array([["A", "B"], None, [], ["C"]], pa.list_(pa.string()))
    found = renamed_lists(lists.slice(0), {"A": "B", "B": "A", "D": "D"})
    assert found.to_pylist() == [["B", "A"], None, [], ["C"]]
    assert renamed_lists(lists.slice(3), {"C": "X"}).to_pylist() == [["X"]]
