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


def test_a_column_may_get_its_own_name_back() -> None:
    """Nothing is displaced, whether rows are read by a version that knows the renames or by one that the dictionary showed."""
    away = after(FIRST, "C", renamed=("B", "C"))
    back = after(away, "B", renamed=("C", "B"))
    assert (back.displaced, back.logged_names("B")) == ((), ("B", "C"))
    shown = [replace(one, renamed=()) for one in (FIRST, away, back)]
    names = [one.column_names[1] for one in (FIRST, away, back)]
    for versions in ([FIRST, away, back], shown):
        assert [back.present_name(*one) for one in zip(names, versions, strict=True)] == ["B"] * 3
    assert back.keeping(away).column_names == ("ID", "B")


def test_columns_that_swap_their_names_keep_their_values() -> None:
    """A name means the column that has it in a version, or as of an SCN; rows list each under a name that is its own."""
    first = replace(FIRST, columns=(*FIRST.columns, number("C", 9, 0)))
    versions = [first]
    for _ in range(3):
        for names, pair in (
            (("X", "C"), ("B", "X")),
            (("X", "B"), ("C", "B")),
            (("C", "B"), ("X", "C")),
        ):
            versions.append(after(versions[-1], *names, renamed=pair))
        versions[-1:] = [
            replace(versions[-1], columns=(FIRST.columns[0], *versions[-1].columns[:0:-1]))
        ]
        first = versions[-1]
    newest = versions[-1]
    for version in versions:
        named = version.under_names_of(newest)
        assert set(named.column_names) == {"ID", "B", "C"}
        for old, new in zip(version.column_names, named.column_names, strict=True):
            assert newest.present_name(old, scn=version.scn_from) == new
    assert versions[0].under_names_of(newest).column_names == ("ID", "C", "B")
    listed = [name for one in ("B", "C") for name in newest.listed_names(one)]
    assert len(set(listed)) == len(listed)
    assert [newest.listed_names(one)[0].split("__")[0] for one in ("B", "C")] == ["B", "C"]


@pytest.mark.parametrize("renamed", [(), (("C", "B"),)], ids=["added", "renamed"])
def test_a_version_that_does_not_say_whose_name_a_column_took_is_refused(
    renamed: tuple[tuple[str, str], ...],
) -> None:
    first = replace(FIRST, columns=(*FIRST.columns, number("C", 9, 0)))
    dropped = after(first, "C")
    columns = FIRST.columns if renamed else (*dropped.columns, FIRST.columns[1])
    new = replace(dropped, columns=columns, renamed=renamed, dropped=())
    assert "names of dropped or renamed ones: B" in (judge(dropped, new).refusal or "")
