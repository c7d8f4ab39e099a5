"""Rows that cannot be decoded, in Delta: the quarantine table, and what the mirror becomes beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdc_core.config import MaintenanceConfig
from cdc_core.errors import DecodeError
from cdc_core.stage.quarantine import FOLLOWS
from tests.stage.landed import Source, Transaction, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_core.lake.lake import Lake
    from tests.stage.landed import Row


class Killed(BaseException):
    """The process ends here."""


class KillAt:
    """A fence at which the process ends when it is asked for the n-th time."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


@pytest.fixture
def lake(open_lake: Callable[..., Lake], source: Source, row: Callable[..., Row]) -> Lake:
    """Orders 1 to 9 by a first snapshot; the next window begins behind it."""
    tx = source.begin()
    for i in range(1, 10):
        tx.insert(row(i), row_id=f"AAASuZROW{i}")
    tx.commit()
    lake = open_lake()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    return lake


def refuse(tx: Transaction) -> None:
    """LogMiner could not translate the transaction's last row."""
    tx.source.pending[-1]["status"] = 2


def first_window(source: Source, row: Callable[..., Row]) -> Window:
    """An insert, an update and a delete go into quarantine; another insert does not."""
    tx = source.begin()
    tx.insert(row(20), row_id="AAASuZROW20")
    refuse(tx)
    tx.insert(row(21), row_id="AAASuZROW21")
    tx.update("AAASuZROW4", {"NAME": "lost"})
    refuse(tx)
    tx.delete("AAASuZROW3")
    refuse(tx)
    tx.commit()
    return source.cut()


def second_window(source: Source, row: Callable[..., Row]) -> Window:
    """Whole changes of the rows in quarantine, partial ones of 4 and of another row, and a key that comes back in one window."""
    tx = source.begin()
    tx.update("AAASuZROW20", {"NAME": "whole", "NOTE": "whole"})
    tx.insert(row(3, "new"), row_id="AAASuZROW3B")
    tx.update("AAASuZROW4", {"AMOUNT": 4})
    tx.update("AAASuZROW5", {"NAME": "partial"})
    tx.delete("AAASuZROW6")
    tx.commit()
    tx = source.begin()
    tx.insert(row(6, "again"), row_id="AAASuZROW6B")
    refuse(tx)
    tx.update("AAASuZROW6B", {"NAME": "whole", "NOTE": "whole"})
    tx.commit()
    return source.cut()


def files_of_quarantine(path: Path) -> int:
    from deltalake import DeltaTable

    return len(DeltaTable(str(path / "lake" / "shop" / "quarantine" / "shop.orders")).file_uris())


def quarantine(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    from deltalake import DeltaTable

    table = DeltaTable(str(path / "lake" / "shop" / "quarantine" / "shop.orders"))
    rows = table.to_pyarrow_table(columns=["_cdc_ordinal", *columns]).sort_by("_cdc_ordinal")
    return [tuple(row[name] for name in columns) for row in rows.to_pylist()]


@pytest.mark.spark(merges=False)
def test_the_mirror_is_right_but_for_the_rows_in_quarantine(
    lake: Lake,
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    tmp_path: Path,
) -> None:
    one = first_window(source, row)
    with pytest.raises(DecodeError, match="could not translate"):
        one.apply(lake)
    with pytest.raises(DecodeError, match="than the quarantine may hold"):
        one.apply(lake, quarantine_max=2)
    for nth in (1, 2, 3):  # the table, its rows, the change log
        with pytest.raises(Killed):
            one.apply(lake, quarantine_max=9, fence=KillAt(nth))
    done = one.apply(lake, quarantine_max=9)
    assert (done.quarantined, done.in_quarantine, done.changes) == (3, 3, 1)
    names = {found["ID"]: found["NAME"] for found in mirror(source.schema)}
    assert names == {**dict.fromkeys(range(1, 10), "n"), 21: "n"}
    assert quarantine(tmp_path, "operation") == [("INSERT",), ("UPDATE",), ("DELETE",)]

    two = second_window(source, row)
    done = two.apply(lake, quarantine_max=9)
    assert (done.quarantined, done.in_quarantine) == (2, 5)
    assert two.apply(lake, quarantine_max=9).skipped
    expected = [found for found in source.state(two.scn_high) if found["ID"] != 4]
    assert [found for found in mirror(source.schema) if found["ID"] != 4] == expected
    [stale] = [found for found in mirror(source.schema) if found["ID"] == 4]
    assert (stale["NAME"], str(stale["AMOUNT"])) == ("n", "1.50")  # not a mixture

    before = mirror(source.schema, hidden=True)
    noted = quarantine(tmp_path, "operation", "sql_redo", "_cdc_window")
    table = source.schema.table
    assert files_of_quarantine(tmp_path) == 2
    lake.table(table).maintain(MaintenanceConfig(vacuum_hours=None), source.schema.key)
    assert files_of_quarantine(tmp_path) == 1
    assert quarantine(tmp_path, "operation", "sql_redo", "_cdc_window") == noted
    assert two.replay(lake).skipped
    assert one.replay(lake).skipped
    lake.table(source.schema.table).rebuild_mirror(source.schema)
    assert mirror(source.schema, hidden=True) == before


def test_rows_that_were_read_since_count_no_more(
    lake: Lake, source: Source, row: Callable[..., Row], tmp_path: Path
) -> None:
    one, two = first_window(source, row), second_window(source, row)
    for window in (one, two):
        window.apply(lake, quarantine_max=9)
    assert quarantine(tmp_path, "reason")[3] == (FOLLOWS,)
    table = source.schema.table
    assert lake.table(table).resolve_quarantine(one.scn_high) == 2
    assert lake.table(table).resolve_quarantine(one.scn_high) == 2
    assert sum(lake.table(table).quarantine_reasons().values()) == 2
    assert lake.table(table).purge_quarantine() == [
        str(tmp_path / "lake/shop/quarantine/shop.orders")
    ]
    assert lake.table(table).purge_quarantine() == []
    assert {text for (text,) in quarantine(tmp_path, "sql_redo")} == {None}
    assert lake.table(table).applied().windows[two.scn_high].quarantined == 2
