"""Which part of a window a table takes, by its record alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.landing.manifest import LandedFile, WindowManifest
from cdc_core.model.records import TableRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.windows.table_ranges import part_of, stream_end
from tests.landing.facts import LANDED, PLANNED
from tests.stage.landed import orders_schema

SCHEMA = orders_schema()
MANIFEST = WindowManifest(
    source="src", window=ScnWindow(Scn(100), Scn(200)), ordinal=5, mining_low=100, redo_files=(), files_by_table={},
    transactions_file=LandedFile("t", 0, 0, ""), rows_by_table={}, tables_committed=(), transactions_committed=0,
    transactions_rolled_back=0, transactions_open=0, logs=(), schemas=(SCHEMA,), schema_changes=(), resetlogs_change=1, seconds=0.0,
    positions=(), planned=PLANNED, landed=LANDED,
)  # fmt: skip
TABLE = TableRecord(
    source="src", table=SCHEMA.table, state="ready", mirror_scn=Scn(100), first_ordinal=5
)


def test_a_window_of_an_earlier_life_is_never_taken() -> None:
    """Whatever its SCNs are: windows are of a table's present stream from the one in which it joined."""
    assert stream_end(TABLE, MANIFEST) == 200
    assert stream_end(replace(TABLE, first_ordinal=6), MANIFEST) is None
    assert part_of(replace(TABLE, first_ordinal=6), MANIFEST) is None


@pytest.mark.parametrize(
    ("mirror_scn", "part"),
    [
        pytest.param(100, (100, 200), id="the-whole-window"),
        pytest.param(90, (100, 200), id="a-window-before-is-missing-which-others-judge"),
        pytest.param(150, (150, 200), id="what-follows-the-snapshot"),
        pytest.param(200, None, id="taken-already"),
    ],
)
def test_a_table_takes_what_its_mirror_lacks(mirror_scn: int, part: tuple[int, int] | None) -> None:
    found = part_of(replace(TABLE, mirror_scn=Scn(mirror_scn)), MANIFEST)
    assert found == (None if part is None else ScnWindow(*map(Scn, part)))
