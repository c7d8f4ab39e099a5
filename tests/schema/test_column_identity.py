"""What are columns for life, whatever a table's DDL calls them?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.errors import SchemaMismatchError
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.scn import Scn
from cdc_core.schema.evolution import (
    held_by,
    identified,
    judge,
    refuse_mixed_values,
    reused_names,
)
from cdc_core.schema.table import TableSchema
from tests.stage.landed import number, orders_schema

FIRST = replace(orders_schema(), columns=tuple(number(one, 9, 0) for one in ("ID", "A", "B")))


def told(first: TableSchema, *steps: str) -> list[TableSchema]:
    """The versions of a table, ten SCNs apart; a step is ``B>C`` for a rename, ``-B`` for a drop,
    ``+B`` for a new column."""
    versions = [first]
    for step in steps:
        old = versions[-1]
        names = [one.name for one in old.columns]
        before, _, now = step.partition(">")
        if now:
            names[names.index(before)] = now
        elif step[0] == "-":
            names.remove(step[1:])
        else:
            names.append(step[1:])
        ddl = f"ALTER TABLE {old.table.sql} RENAME COLUMN {before} TO {now}" if now else ""
        key = tuple(now if name == before else name for name in old.key)
        columns = tuple(number(name, 9, 0) for name in names)
        new = replace(
            old, scn_from=Scn(old.scn_from + 10), columns=columns, key=key, dropped=(), given=()
        )
        new = identified(old, new, ddl)
        evolution = judge(old, new)
        assert evolution.refusal is None, evolution.refusal
        versions.append(evolution.followed(old, new))
    return versions


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        pytest.param(("B>C",), "ID A C=B", id="renamed"),
        pytest.param(("-B", "+B"), "ID A B__dropped=B B=B__2", id="added-again"),
        pytest.param(("B>C", "+B"), "ID A C=B B=B__2", id="beside-a-renamed-one"),
        pytest.param(
            ("-B", "+B", "-B", "+B"), "ID A B__dropped=B B__2__dropped=B__2 B=B__3", id="thrice"
        ),
        pytest.param(("B>C", "-C", "+C"), "ID A B__dropped=B C", id="renamed-and-dropped"),
        pytest.param(("+B__2", "-B", "+B"), "ID A B__dropped=B B__2 B=B__3", id="a-number-is-taken"),
        pytest.param(("-B", "+b", "-b", "+B"), "ID A B__dropped=B b__2__dropped=b__2 B=B__3", id="in-another-case"),
        pytest.param(("A>X", "B>A", "X>B"), "ID B=A A=B", id="swapped"),
        pytest.param(("A>X", "B>A", "X>B") * 2, "ID A B", id="swapped-twice"),
        pytest.param(("B>C", "C>B"), "ID A B", id="there-and-back"),
        pytest.param(("-B", "A>B"), "ID B=A B__dropped=B", id="onto-a-dropped-one"),
        pytest.param(("ID>X", "A>ID", "X>A"), "A=ID ID=A B", id="of-the-key"),
    ],
)  # fmt: skip
def test_each_column_is_stored_as_one_name(steps: tuple[str, ...], wanted: str) -> None:
    """Whether the Delta tables follow each version, or the newest alone. The JSON form keeps it."""
    versions = told(FIRST, *steps)
    pairs = (one.partition("=") for one in wanted.split())
    names = {name: stored_as or name for name, _, stored_as in pairs}
    for followed in (versions, [versions[0], versions[-1]]):
        held = held_by(followed)
        assert held is not None
        assert {*held.stored_names.values()} <= {*names.values()}
        assert {*held.in_oracle().stored_names} == {*versions[-1].column_names}
    newest = held_by(versions)
    assert newest is not None
    assert newest.stored_names == names
    assert newest.as_logged().column_names == tuple(names.values())
    read = from_json(TableSchema, as_json(newest))
    assert (read.columns, read.dropped, read.given) == (newest.columns, newest.dropped, newest.given)  # fmt: skip
    assert versions[0].keeping(newest).stored_names.items() <= newest.stored_names.items()


def test_an_identity_that_a_version_lacks_has_no_name_of_it() -> None:
    """A mirror that has lost the dropped B: what lists B as absent does not mean its new B."""
    newest = told(FIRST, "-B", "+B")[-1]
    assert newest.present_names == {"ID": "ID", "A": "A", "B__2": "B", "B": ""}


def test_a_column_that_is_left_out_keeps_what_it_is_stored_as() -> None:
    """Nobody else is stored so later."""
    renamed = told(FIRST, "B>C")[-1]
    assert told(renamed.without(["C"]), "+B")[-1].stored_names == {"ID": "ID", "A": "A", "B": "B__2"}  # fmt: skip


def test_delta_tables_that_begin_anew_do_not_know_the_columns_of_older_ones() -> None:
    *_, dropped = versions = told(FIRST, "-B", "+B")
    fresh = replace(FIRST, scn_from=Scn(dropped.scn_from + 10))
    assert held_by([*versions, fresh]) == fresh


@pytest.mark.parametrize(
    ("steps", "known", "read_behind", "is_refused"),
    [
        pytest.param(("-B", "+B"), 0, 21, True, id="not-followed"),
        pytest.param(("-B", "+B"), 1, 21, True, id="followed-up-to-there"),
        pytest.param(("-B", "+B"), 2, 21, False, id="followed"),
        pytest.param(("-B", "+B"), 0, 0, False, id="read-before"),
        pytest.param(("-A", "B>A"), 0, 21, True, id="renamed-onto-it"),
    ],
)
def test_a_chunk_that_was_read_ahead_of_a_name_s_new_column_is_found(
    steps: tuple[str, ...], known: int, read_behind: int, *, is_refused: bool
) -> None:
    versions = told(FIRST, *steps)
    assert reused_names(versions) == [21]
    if is_refused:
        with pytest.raises(SchemaMismatchError, match="took the name of another one"):
            refuse_mixed_values(versions[known], versions, read_behind)
    else:
        refuse_mixed_values(versions[known], versions, read_behind)


def test_a_definition_of_then_that_takes_one_column_for_another_is_found() -> None:
    """A chunk behind two DDLs brought the second one's column, and its B for the first B."""
    versions = told(FIRST, "-B", "+B", "+N")
    wrong = replace(FIRST, scn_from=Scn(versions[-1].scn_from + 5), columns=(*FIRST.columns, number("N", 9, 0)))  # fmt: skip
    with pytest.raises(SchemaMismatchError):
        refuse_mixed_values(wrong, versions, 21)
    assert reused_names(told(FIRST, "B>C", "C>B")) == []
