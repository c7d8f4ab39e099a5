"""What are columns called, now, before, and in the change log, where names were taken anew?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.model.scn import Scn
from cdc_core.schema.evolution import judge, knowing_taken_names
from cdc_core.schema.table import TableSchema
from tests.stage.landed import number, orders_schema

FIRST = replace(orders_schema(), columns=(number("ID", 9, 0), number("B", 9, 0)))


def after(old: TableSchema, *names: str, renamed: tuple[str, str] | None = None) -> TableSchema:
    """The version behind a DDL that leaves these columns."""
    new = replace(
        old,
        scn_from=Scn(old.scn_from + 10),
        columns=tuple(number(name, 9, 0) for name in ("ID", *names)),
        renamed=(*old.renamed, *([renamed] if renamed else [])),
    )
    new = knowing_taken_names(old, new)
    evolution = judge(old, new)
    assert evolution.refusal is None
    return evolution.followed(old, new)


DROPPED = after(after(FIRST), "B")
RENAMED = after(after(FIRST, "C", renamed=("B", "C")), "C", "B")
TWICE = after(after(DROPPED), "B")
CHAIN = after(after(after(FIRST, "C", renamed=("B", "C"))), "C")


@pytest.mark.parametrize(
    ("version", "column", "earlier", "logged"),
    [
        pytest.param(DROPPED, "B", (), ("B",), id="the-new-one"),
        pytest.param(DROPPED, "B__dropped_21", ("B",), ("B__dropped_21",), id="the-dropped-one"),
        pytest.param(RENAMED, "C", ("B",), ("C", "B__renamed_21"), id="the-renamed-one"),
        pytest.param(RENAMED, "B", (), ("B",), id="beside-a-renamed-one"),
        pytest.param(TWICE, "B__dropped_21", ("B",), ("B__dropped_21",), id="the-first-of-three"),
        pytest.param(TWICE, "B__dropped_41", ("B",), ("B__dropped_41",), id="the-second"),
        pytest.param(TWICE, "B", (), ("B",), id="the-third"),
        pytest.param(CHAIN, "C__dropped_31", ("C", "B"), ("C__dropped_31", "B"), id="renamed-and-dropped"),
        pytest.param(CHAIN, "C", (), ("C",), id="under-a-name-that-came-by-a-rename"),
    ],
)  # fmt: skip
def test_each_column_has_its_own_names(
    version: TableSchema, column: str, earlier: tuple[str, ...], logged: tuple[str, ...]
) -> None:
    assert version.earlier_names(column) == earlier
    assert version.logged_names(column) == logged
    assert TableSchema.from_json(version.as_json()).displaced == version.displaced


def test_a_name_means_the_column_of_its_version() -> None:
    """Also in a version that knows nothing of the others, as the dictionary shows it."""
    shown = replace(TWICE, renamed=(), displaced=(), dropped=())
    assert [TWICE.present_name("B", one) for one in (FIRST, DROPPED, TWICE, shown)] == [
        "B__dropped_21", "B__dropped_41", "B", "B"
    ]  # fmt: skip
    held = DROPPED.keeping(FIRST)
    assert held.column_names == ("ID", "B__dropped_21", "B")
    assert TWICE.keeping(held).column_names == ("ID", "B__dropped_21", "B__dropped_41", "B")
