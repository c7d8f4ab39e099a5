"""Somebody else commits to a mirror before, during and after our MERGE: nothing of ours is lost or doubled, and what was done is noticed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta.exceptions
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.delta.history import read_commits
from cdc_core.errors import CommitConflictError, RowCountError, TransientError
from cdc_core.spark.session import translated

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_core.lake.lake import Lake
    from tests.stage.landed import Row, Source

TRIES = 39
"""One is enough, mostly; the keys of more would be those that come behind them."""


def append_foreign(path: str, key: int) -> None:
    """A row as a stranger writes it: without our hidden columns."""
    table = DeltaTable(path)
    schema = pa.schema(table.schema().to_arrow())
    row = {**dict.fromkeys(schema.names), "ID": key, "NAME": "foreign"}
    write_deltalake(table, pa.Table.from_pylist([row], schema), mode="append")


class DuringMerge(threading.Thread):
    """Commits as soon as MERGE has written a file of rows, which its own commit names a moment later."""

    def __init__(self, path: str, key: int) -> None:
        super().__init__(daemon=True)
        self._path, self._key = path, key
        self._known = set(Path(path).glob("*.parquet"))
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.001):
            if set(Path(self._path).glob("*.parquet")) - self._known:
                append_foreign(self._path, self._key)
                return

    def end(self) -> None:
        self._ended.set()
        self.join()


@pytest.mark.parametrize("name", delta.exceptions.__all__)
def test_each_conflict_of_delta_s_may_pass(name: str) -> None:
    with pytest.raises(CommitConflictError, match="another writer committed") as caught, translated("merging", table="T"):  # fmt: skip
        raise getattr(delta.exceptions, name)("a row was added")
    assert isinstance(caught.value, TransientError), "no table stops for it"


@pytest.mark.spark
def test_a_foreign_commit_beside_a_merge_is_noticed_and_costs_nothing(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    tmp_path: Path,
) -> None:
    lake = open_lake()
    tx = source.begin()
    ids = {i: tx.insert(row(i, note=None)) for i in (1, 2)}
    tx.commit()
    source.chunk().apply(lake)
    read_scn = source.scn
    source.low, source.pending, source.ended = source.scn, [], []
    path = str(tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path)
    foreign: list[int] = []

    def window(key: int) -> Any:
        tx = source.begin()
        tx.update(ids[1], {"NAME": f"by window {key}"})
        ids[key] = tx.insert(row(key, note=None))
        tx.commit()
        return source.cut()

    def check(at: int) -> None:
        found = [one for one in mirror(source.schema) if one["ID"] not in foreign]
        assert found == source.state(at)
        assert [one["ID"] for one in mirror(source.schema) if one["ID"] in foreign] == foreign

    # Before: between our look at the table and the MERGE, whose result has the stranger's row beside ours.
    before = window(10)
    foreign.append(500)
    before.apply(
        lake, fence=lambda: None if len(read_commits(path)) > 2 else append_foreign(path, 500)
    )
    check(before.scn_high)

    # During: Delta refuses our commit, and the same step is done again behind the stranger's.
    for number in range(TRIES):
        during = window(20 + number)
        stranger = DuringMerge(path, 501 + number)
        stranger.start()
        try:
            during.apply(lake)
        except CommitConflictError as error:
            foreign.append(501 + number)
            assert error.facts["table"] == source.schema.table  # noqa: PT017
            stranger.end()
            during.apply(lake)
            check(during.scn_high)
            break
        finally:
            stranger.end()
        foreign.append(501 + number)  # it came behind our commit
        check(during.scn_high)
    else:
        pytest.fail("the stranger never came in the middle")

    # After: it took a key that our next insert wants. Its row has no position, so it counts as no row of ours.
    append_foreign(path, 60)
    with pytest.raises(RowCountError, match="MERGE reported other row counts") as caught:
        window(60).apply(lake, read_scn=read_scn)
    assert "table rebuild" in caught.value.hint
    assert lake.table(source.schema.table).rebuild_mirror(source.schema) == len(
        source.state(source.scn)
    )
    assert mirror(source.schema) == source.state(source.scn)
