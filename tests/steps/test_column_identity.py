"""A column is what it is for life, whatever it is called: dropped and added again, renamed, renamed
onto others' names, swapped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import TableStoppedError, WindowFirstError
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.ddl_story import CUTS, DdlStory, T, check, rows_of, running_story, tell
from tests.steps.harness import Source, capturing, source_of


def called(old: str, new: str) -> str:
    return f"RENAME COLUMN {old} TO {new}"


def swapped(one: str, other: str) -> tuple[str, ...]:
    return called(one, "X"), called(other, one), called("X", other)


DROP, UNUSED, NEW = "DROP COLUMN B", "SET UNUSED (B)", "ADD (B DATE)"
REPLACED = ("ADD (N NUMBER(9))", DROP, called("N", "B"))

CASES = {
    "dropped": DdlStory((DROP,), "ID A -B C D E"),
    "two-dropped": DdlStory(("DROP (B, C)",), "ID A -B -C D E"),
    "unused-and-dropped": DdlStory((UNUSED, "DROP UNUSED COLUMNS"), "ID A -B C D E"),
    "unused-and-another-dropped": DdlStory((UNUSED, "DROP COLUMN C"), "ID A -B -C D E"),
    "dropped-beside-a-new-one": DdlStory((DROP, "ADD (B2 VARCHAR2(9))"), "ID A -B C D E B2"),
    "renamed": DdlStory((called("B", "B2"),), "ID A B2=B C D E"),
    "renamed-twice": DdlStory((called("B", "B2"), called("B2", "B3")), "ID A B3=B C D E"),
    "renamed-beside-others": DdlStory(
        (called("B", "B2"), "DROP COLUMN A", "ADD (A2 DATE)"), "ID -A B2=B C D E A2"
    ),
    "added-again": DdlStory((DROP, NEW), "ID A -B__dropped=B C D E B=B__2"),
    "unused-and-added-again": DdlStory((UNUSED, NEW), "ID A -B__dropped=B C D E B=B__2"),
    "added-again-twice": DdlStory(
        (DROP, "ADD (B NUMBER(9))", DROP, NEW), "ID A -B__dropped=B C D E -B__2__dropped=B__2 B=B__3"
    ),
    "added-beside-a-renamed-one": DdlStory((called("B", "B2"), NEW), "ID A B2=B C D E B=B__2"),
    "added-beside-two-renamed-ones": DdlStory(
        (called("B", "B2"), "ADD (B VARCHAR2(9))", called("B", "B3"), NEW),
        "ID A B2=B C D E B3=B__2 B=B__3",
    ),
    "renamed-dropped-and-both-names-added": DdlStory(
        (called("B", "B2"), "DROP COLUMN B2", "ADD (B2 NUMBER(9))", NEW),
        "ID A -B__dropped=B C D E B2 B=B__2",
    ),
    "replaced": DdlStory(REPLACED, "ID A -B__dropped=B C D E B=N"),
    "replaced-twice": DdlStory(
        (*REPLACED, "ADD (N DATE)", DROP, called("N", "B")),
        "ID A -B__dropped=B C D E -N__dropped=N B=N__2",
    ),
    "swapped": DdlStory(swapped("A", "B"), "ID B=A A=B C D E"),
    "swapped-twice": DdlStory(swapped("A", "B") * 2, "ID A B C D E"),
    "lobs-swapped": DdlStory(swapped("D", "E"), "ID A B C E=D D=E"),
    "lobs-swapped-thrice": DdlStory(swapped("D", "E") * 3, "ID A B C E=D D=E"),
    "swapped-and-the-third-name-taken": DdlStory(
        (*swapped("A", "B"), "ADD (X NUMBER(9))"), "ID B=A A=B C D E X"
    ),
    "there-and-back": DdlStory((called("A", "X"), called("X", "A")) * 2, "ID A B C D E"),
    "onto-one-that-was-renamed-away": DdlStory(
        (called("A", "A2"), called("B", "A")), "ID A2=A A=B C D E"
    ),
    "back-over-a-dropped-one": DdlStory(
        (called("A", "X"), "ADD (A NUMBER(9))", "DROP COLUMN A", called("X", "A")),
        "ID A B C D E -A__2__dropped=A__2",
    ),
    "a-name-with-a-number-is-taken": DdlStory(
        ("ADD (B__2 NUMBER(9))", DROP, NEW), "ID A -B__dropped=B C D E B__2 B=B__3"
    ),
}  # fmt: skip


OFTEN = {"added-again", "replaced", "swapped"}
"""Stories that are told with all cuts; others in the long form."""


@pytest.mark.parametrize(
    ("story", "cut"),
    [
        pytest.param(
            story,
            cut,
            id=f"{name}-{cut or 'one-window'}",
            marks=() if name in OFTEN or cut in ("", "everywhere") else pytest.mark.slow,
        )
        for name, story in CASES.items()
        for cut in CUTS
    ],
)
def test_columns_keep_their_values(tmp_path: Path, story: DdlStory, cut: str) -> None:
    with running_story(tmp_path, story) as (oracle, source):
        tell(oracle, source, story, cut)
        check(source, story)


@pytest.mark.parametrize("cut", ["", "everywhere"])
@pytest.mark.parametrize("name", ["added-again", "replaced-twice", "swapped"])
def test_so_they_do_where_the_rowid_identifies_a_row(tmp_path: Path, name: str, cut: str) -> None:
    wanted = CASES[name].wanted.replace(" D E", "")
    story = DdlStory(CASES[name].clauses, wanted, {"identity": "rowid"}, has_lobs=False)
    with running_story(tmp_path, story) as (oracle, source):
        tell(oracle, source, story, cut)
        check(source, story)


@pytest.mark.parametrize("name", ["added-again-twice", "replaced", "swapped"])
def test_a_table_that_is_read_again_goes_on_with_the_columns_that_it_has(
    tmp_path: Path, name: str
) -> None:
    """A snapshot behind the DDL knows the names alone; the windows said which columns they are. One
    that was dropped is NULL in all rows then."""
    story = CASES[name]
    with running_story(tmp_path, story) as (oracle, source):
        tell(oracle, source, story, "")
        source.pipeline.resnapshot_tables([T])
        source.run()
        oracle.run("UPDATE T SET A = NULL WHERE ID = 8", "DELETE FROM T WHERE ID = 7")
        source.windows()
        assert (source.record("T").state, source.record("T").generation) == ("ready", 1)
        source.check_current("T")
        schema = source.lake.tables[T].schema
        assert schema is not None
        assert schema.stored_names == story.columns


@pytest.mark.parametrize("cut", ["", "everywhere"])
def test_columns_of_the_key_change_names_with_others(tmp_path: Path, cut: str) -> None:
    story = DdlStory(swapped("ID", "C"), "C=ID A B ID=C D E")
    with running_story(tmp_path, story) as (oracle, source):
        oracle.run("UPDATE T SET ID = 30 WHERE ID = 3")
        for number, clause in enumerate(story.clauses):
            oracle.run(f"ALTER TABLE T {clause}")
            oracle.run(f"UPDATE T SET A = 'step {number}' WHERE B = 'b4'")
            oracle.run(f"DELETE FROM T WHERE B = 'b{number + 5}'")
            if cut:
                source.windows()
        oracle.run("UPDATE T SET C = 60, ID = 6 WHERE B = 'b3'")
        source.windows()
        assert (source.record("T").state, source.record("T").generation) == ("ready", 1)
        source.check_current("T")


@pytest.mark.parametrize("gone", ["ALTER TABLE P DROP COLUMN B", ""])
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"columns_mask": {"B": "stars(3)"}}, "names that columns_mask names"),
        ({"columns_exclude": ["B"]}, "became virtual or excluded: B"),
    ],
)
def test_a_pattern_s_protection_does_not_come_behind_the_values(
    tmp_path: Path, entry: dict[str, Any], reason: str, gone: str
) -> None:
    """A column that is renamed to a protected name has values in the lake that are not."""
    with running_oracle() as oracle, source_of(oracle, tmp_path, "P") as source:
        oracle.run("CREATE TABLE P (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20))")
        if gone:
            oracle.run("ALTER TABLE P ADD (B VARCHAR2(20))")
        oracle.run("INSERT INTO P (ID, A) VALUES (1, 'open')")
        source.configure({"name": "P*", **entry})
        source.run()
        oracle.run(*filter(None, [gone]), "ALTER TABLE P RENAME COLUMN A TO B")
        oracle.run("INSERT INTO P VALUES (2, 'shut')")
        source.windows()
        record = source.record("P")
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert reason in str(record.reason)


# -- a chunk that is read ahead of the windows: nothing in the dictionary tells a column from the
# one that had its name and its place ----------

AGAIN = ("ALTER TABLE T DROP COLUMN C", "ALTER TABLE T ADD (C NUMBER(9,1))", "UPDATE T SET C = 77 WHERE ID = 2")  # fmt: skip


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, C NUMBER(9,1))",
    "INSERT INTO T VALUES (1, 1.5)",
    "INSERT INTO T VALUES (2, 2.5)",
)
"""T's last column is the one that goes and comes, so that its place is the same."""


source = capturing("T")


def values(source: Source, *names: str) -> dict[int, tuple[float | None, ...]]:
    found = rows_of(source)
    return {key: tuple(None if row.get(one) is None else float(row[one]) for one in names) for key, row in found.items()}  # fmt: skip


def capture(source: Source) -> None:
    for window in source.pipeline.plan_windows():
        source.pipeline.capture_window(window)


def snapshot(source: Source) -> None:
    source.pipeline.start_snapshot([T])
    for key in source.pipeline.pending_chunks():
        source.pipeline.snapshot_chunk(key)
        source.pipeline.apply_chunk(key)


@pytest.mark.parametrize("also", [(), ("ALTER TABLE T ADD (N NUMBER(9))",)], ids=["", "with-more"])
@pytest.mark.parametrize("is_captured", [True, False], ids=["captured", "ahead"])
def test_a_chunk_has_the_values_of_the_new_column_or_the_table_stops(
    oracle: Oracle, source: Source, is_captured: bool, also: tuple[str, ...]
) -> None:
    """With the window captured, the new column is known for another one. Ahead of it the table
    stops, and a new snapshot reads its values."""
    oracle.run(*AGAIN, *also)
    if is_captured:
        capture(source)
    snapshot(source)
    source.run()
    assert (source.record("T").state == "failed") is not is_captured
    if not is_captured:
        assert "took the name of another one" in (source.record("T").reason or "")
        source.pipeline.resnapshot_tables([T])
        source.run()
    if not also:  # the lake got C behind N, Oracle N behind C
        source.check_current("T")
    assert values(source, "C") == {1: (None,), 2: (77,)}


def test_a_chunk_behind_the_captured_window_does_not_hide_one_ahead_of_it(
    oracle: Oracle, source: Source
) -> None:
    """The second chunk knows the new column for another one; the first did not, and was applied."""
    oracle.run(*AGAIN)
    snapshot(source)
    capture(source)
    with pytest.raises(TableStoppedError, match="took the name of another one"):
        snapshot(source)


@pytest.mark.parametrize("is_captured", [True, False], ids=["captured", "ahead"])
def test_of_swapped_columns_a_chunk_waits_for_the_window(
    oracle: Oracle, source: Source, is_captured: bool
) -> None:
    """Of columns of one type, the dictionary behind a swap shows another order."""
    oracle.run("ALTER TABLE T ADD (D NUMBER(9,1))", "UPDATE T SET D = -C")
    source.windows()
    oracle.run(*(f"ALTER TABLE T {clause}" for clause in swapped("C", "D")))
    oracle.run("UPDATE T SET C = 77 WHERE ID = 2")
    if is_captured:
        capture(source)
        snapshot(source)
    else:
        with pytest.raises(WindowFirstError):
            snapshot(source)
    source.run()
    assert source.record("T").state == "ready"
    source.check_current("T")
    assert values(source, "C", "D") == {1: (-1.5, 1.5), 2: (77, 2.5)}


def test_a_policy_brings_the_table_back(oracle: Oracle, source: Source) -> None:
    source.more["policies"] = {"on_unsupported_ddl": "resnapshot"}
    source.configure("T")
    oracle.run(*AGAIN)
    snapshot(source)
    source.run()
    source.check_current("T")
    assert source.record("T").state == "ready"
    assert values(source, "C") == {1: (None,), 2: (77,)}
