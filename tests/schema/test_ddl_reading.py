"""What the text of a DDL says of its table, and what does not count in it.

``tests/golden/ddl.txt`` has statements of every kind; here are the forms in which each may be written.
"""

from __future__ import annotations

import random
import re

import pytest

from cdc_core.schema.ddl_reading import (
    Ddl,
    concerns_partitions,
    moves_rows,
    read_ddl,
    removes_rows,
    removes_table,
)
from tests.schema.ddl_catalog import CASES, Case


@pytest.mark.parametrize(
    ("ddl", "removes"),
    [
        ("truncate table emp", True),
        ("/* c */ TRUNCATE TABLE hr.emp DROP STORAGE", True),
        ("alter table emp truncate partition p1", True),
        ("ALTER TABLE emp DROP SUBPARTITION p1", True),
        ("alter table emp exchange partition p1 with table x", True),
        ("alter table emp add (truncate_flag number)", False),
        ("comment on table emp is 'truncate table emp'", False),
        ('alter table emp add ("DROP PARTITION" number)', False),
        ("alter table emp drop column c", False),
        ("create index truncate_i on emp (id) -- truncate", False),
    ],
)
def test_ddl_that_removes_rows_is_known_by_its_text(ddl: str, removes: bool) -> None:
    assert removes_rows(ddl) is removes


@pytest.mark.parametrize(
    ("ddl", "moves"),
    [
        ("alter table emp move", True),
        ("ALTER TABLE emp MOVE ONLINE", True),
        ('ALTER TABLE "HR"."EMP" MOVE TABLESPACE users', True),
        ('alter table hr."EMP"\n move parallel 4', True),
        ("alter table hr.emp move partition p1 update indexes", True),
        ("alter table emp shrink space cascade", True),
        ("alter table emp modify partition p1 shrink space compact", True),
        ("FLASHBACK TABLE emp TO SCN 5", True),
        ("ALTER TABLE emp SPLIT PARTITION p1 AT (5) INTO (PARTITION a, PARTITION b)", True),
        ("alter table emp merge subpartitions a, b into subpartition c", True),
        ("alter table emp coalesce partition", True),
        ("alter table emp add partition p9", True),
        ("alter table emp modify partition p1 add subpartition s9", True),
        ("alter table emp add partition p9 values less than (90)", False),
        ("alter table emp modify partition by hash (id) partitions 4 online", True),
        ("alter table emp add (move number)", False),
        ("alter table emp add move number", False),
        ('alter table emp add ("SHRINK SPACE" number)', False),
        ("alter table emp enable row movement", False),
        ("alter table emp drop column c", False),
        ("alter table emp rename partition a to b", False),
        ("comment on table emp is 'alter table emp move'", False),
    ],
)
def test_ddl_that_gives_rows_other_rowids_is_known_by_its_text(ddl: str, moves: bool) -> None:
    assert moves_rows(ddl) is moves


@pytest.mark.parametrize(
    ("ddl", "concerns"),
    [
        ("ALTER TABLE emp SPLIT PARTITION p1 AT (5) INTO (PARTITION a, PARTITION b)", True),
        ("alter table emp merge subpartitions a, b", True),
        ("alter table emp modify partition by hash (id) partitions 4 online", True),
        ("ALTER TABLE emp ADD (part_no NUMBER)", False),
        ("COMMENT ON TABLE emp IS 'split partition'", False),
        ('alter table emp add ("PARTITION" number)', False),
    ],
)
def test_ddl_that_may_make_partitions_is_known_by_its_text(ddl: str, concerns: bool) -> None:
    assert concerns_partitions(ddl) is concerns


@pytest.mark.parametrize(
    ("ddl", "removes"),
    [
        ("drop table emp purge", True),
        ('ALTER TABLE "HR"."EMP" RENAME TO "BIN$x==$0"', True),
        ("rename emp to emp2", True),
        ("alter table emp rename column a to b", False),
        ("alter table emp drop column rename_to", False),
        ("REVOKE SELECT ON emp FROM cdc -- drop table", False),
        ("comment on table emp is 'drop table rename to'", False),
    ],
)
def test_ddl_that_removes_the_table_is_known_by_its_text(ddl: str, removes: bool) -> None:
    assert removes_table(ddl) is removes


def test_the_catalogue_is_large_and_says_everything_once() -> None:
    assert len(CASES) >= 400
    assert len({case.statement for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.statement[:60])
def test_statements_are_read_as_the_catalogue_says(case: Case) -> None:
    found = read_ddl(case.statement)
    assert (found.owner, found.table, found.effects) == (case.owner, case.table, case.effects)


_NOISE = (
    " ", "\n", "\t", " /* truncate table x */ ", " -- drop table x\n", " /*+ rename to */ ", " --'\n", ' /*"*/ '
)  # fmt: skip
_ODD = ("drop partition p1", "MOVE", "a/b.c", "größe", "rename to", "it's", "--x", "shrink space")


def _varied(case: Case, chance: random.Random) -> tuple[str, Case]:
    """The statement in another writing: case, comments and blanks, and its table under a quoted name."""
    text, owner, table = case.statement, case.owner, case.table
    pieces = re.findall(r"n?q'\[.*?\]'|n?q'!.*?!'|'(?:[^']|'')*'|\"[^\"]*\"|[\w$#]+|\s+|.", text)
    odd = chance.choice(_ODD)
    is_odd = chance.random() < 0.5 and table is not None
    fresh = []
    for piece in pieces:
        if is_odd and piece.upper() == table:
            fresh.append(f'"{odd}"')
        elif piece.isspace():
            fresh.append("".join(chance.choices(_NOISE, k=chance.randint(1, 3))))
        elif piece[0] in "'\"" or (piece[0].lower() in "nq" and "'" in piece):
            fresh.append(piece)
        else:
            fresh.append("".join(chance.choice((str.upper, str.lower))(one) for one in piece))
    is_renamed = is_odd and any(piece.upper() == table for piece in pieces)
    named = Case(text, owner, odd if is_renamed else table, case.effects)
    return chance.choice(("", "/* c */ ", "\n")) + "".join(fresh) + chance.choice(
        ("", ";", " ;\0", " -- x")
    ), named


def test_no_writing_of_a_statement_changes_what_it_is() -> None:
    chance = random.Random(7)
    for _ in range(4):
        for case in CASES:
            text, expected = _varied(case, chance)
            found = read_ddl(text)
            seen = (found.owner, found.table, found.effects)
            assert seen == (expected.owner, expected.table, expected.effects), text


def test_any_part_of_a_statement_is_read_without_an_error() -> None:
    chance = random.Random(8)
    for case in CASES:
        text = case.statement
        low, high = sorted(chance.choices(range(len(text) + 1), k=2))
        assert isinstance(read_ddl(text[low:high]), Ddl)
        assert isinstance(read_ddl(text[:low] + "'" + text[high:] + '"'), Ddl)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "alter table t modify (c default q'[it's) drop partition p]')", id="own-quotes"
        ),
        pytest.param("alter index i drop partition p1", id="an-index-has-no-rows-of-the-table"),
        pytest.param("create trigger x after insert on t begin drop partition; end;", id="code"),
        pytest.param('alter table t add ("DROP PARTITION" number)', id="a-quoted-name"),
    ],
)
def test_what_only_looks_like_rows_going_is_not(text: str) -> None:
    assert not removes_rows(text)


def test_a_move_with_a_filter_removes_the_other_rows() -> None:
    """Source: SQL Language Reference 19c, ALTER TABLE, filter_condition: rows that do not satisfy it are gone."""
    assert removes_rows("ALTER TABLE emp MOVE INCLUDING ROWS WHERE salary > 0")
    assert not removes_rows("ALTER TABLE emp MOVE ONLINE")
