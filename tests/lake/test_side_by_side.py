"""Several tables at once, a repeat under a new generation, and what another writer's commit does."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdc_core.errors import LakeError, WindowConflictError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn

if TYPE_CHECKING:
    from cdc_core.lake.lake import Lake
    from cdc_core.schema.table import TableSchema
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source


@pytest.mark.spark
def test_tables_are_merged_side_by_side(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., Source],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    changelog: Callable[[TableSchema], list[Row]],
) -> None:
    """Identifiers and metadata are settings of a session: threads must not see each other's."""
    lake = open_lake()
    other_schema = type(source.schema)(
        TableId("SHOP", "Other"), Scn(1), source.schema.columns, source.schema.key
    )
    other = make_source(other_schema)
    other.folder = source.folder / "other"
    windows = []
    for one, rows in ((source, 3), (other, 5)):
        tx = one.begin()
        for i in range(rows):
            tx.insert(row(i))
        tx.commit()
        windows.append(one.cut())
    first = windows[0]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda window: window.apply(lake), windows))
    assert [report.rows_inserted for report in done] == [3, 5], "appended: there was nothing"
    before = len(changelog(source.schema))
    windows = []
    for one in (source, other):
        tx = one.begin()
        for rid in list(one.rows):
            tx.update(rid, {"NAME": "changed"})
        tx.commit()
        windows.append(one.cut())
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda window: window.apply(lake), windows))
    assert [report.rows_updated for report in done] == [3, 5]
    for one, window in zip((source, other), windows, strict=True):
        assert mirror(one.schema) == one.state(window.scn_high)
        assert lake.table(one.schema.table).position().mirror_scn == window.scn_high

    # A new generation begins fresh tables; whoever still works on the older one is refused.
    assert lake.table(source.schema.table, 1).position().mirror_scn is None
    first.apply(lake, generation=1)
    assert len(changelog(source.schema)) == before
    assert mirror(source.schema) == source.state(first.scn_high)
    with pytest.raises(LakeError, match="has replaced"):
        first.apply(lake)

    # What the store and Delta's log say must fit together.
    with pytest.raises(LakeError, match="metadata store says"):
        first.apply(lake, generation=2, position=first.scn_high)
    source.chunk()  # only ticks the clock
    source.low = first.manifest.window.scn_low + 1
    with pytest.raises(WindowConflictError, match="overlaps"):
        source.cut().apply(lake, generation=1)


def test_names_that_delta_cannot_hold_are_refused(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., Source],
    columns: type[Columns],
    source: Source,
    tmp_path: Path,
) -> None:
    from cdc_core.errors import SchemaMismatchError

    schema = type(source.schema)(
        TableId("SHOP", "ODD"),
        Scn(1),
        (
            columns.number("ID", 9, 0),
            columns.varchar("a b"),
            columns.varchar("_CDC_OP"),
            columns.varchar("id"),
        ),
        ("ID",),
    )
    odd = make_source(schema)
    odd.folder = tmp_path / "odd"
    with pytest.raises(SchemaMismatchError) as caught:
        odd.chunk(scn=100).apply(open_lake())
    assert caught.value.facts["columns"] == "'ID', '_CDC_OP', 'id'"
