"""Columns that come, go, get other names, types or kinds while changes are captured, through the
driver: a column is what it is for life, and rows of each definition have their values."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.steps.ddl_story import CUTS, DdlStory, check, running_story, tell

# -- which column is which ------------------------------------------------------------------------

PLAIN = {"ID": "NUMBER(9) PRIMARY KEY", "A": "VARCHAR2(20)", "B": "VARCHAR2(20)", "C": "NUMBER(9)"}
LOBS = {"D": "CLOB", "E": "CLOB"}
"""Two texts that may change places, a number like the key, and two CLOBs that other changes do not
carry."""


def values(key: int) -> dict[str, Any]:
    """A row as it is before the story."""
    texts = {name: f"{name.lower()}{key}" for name in "ABDE"}
    return {"ID": key, "C": key * 10, **texts}


def identity(ddl: tuple[str, ...], columns: str, *, has_lobs: bool = True) -> DdlStory:
    """The row 3 moves to another key at each step, 5 and 6 change, 2 and others go and come, and 8
    is never touched: it has all that it had, whatever columns are called now."""
    table = PLAIN | (LOBS if has_lobs else {})
    wanted = [one.partition("=") for one in columns.split()]
    living = [name for name, _, _ in wanted if not name.startswith("-")]
    untouched = {
        name.lstrip("-"): values(8)[stored_as or name.lstrip("-")]
        for name, _, stored_as in wanted
        if (stored_as or name.lstrip("-")) in table
    }
    gone = {name.lstrip("-"): None for name, _, _ in wanted if name.startswith("-")}
    last = ", E = 'last'" if has_lobs else ""
    listed = ", ".join(f"{name} {kind}" for name, kind in table.items())
    return DdlStory(
        table=(
            f"CREATE TABLE T ({listed})",
            *(
                f"INSERT INTO T VALUES ({', '.join(repr(values(key)[name]) for name in table)})"
                for key in range(1, 9)
            ),
        ),
        before=(
            f"UPDATE T SET C = C + 1{last} WHERE ID = 1",
            "DELETE FROM T WHERE ID = 2",
            "UPDATE T SET ID = 500 WHERE ID = 3",
        ),
        ddl=ddl,
        between=(
            "UPDATE T SET ID = ID WHERE ID = 5",
            "UPDATE T SET ID = 501 + {n} WHERE ID = 500 + {n}",
            "INSERT INTO T (ID) VALUES (100 + {n})",
        ),
        after=(
            *(f"UPDATE T SET {name} = NULL WHERE ID = 6" for name in living[1:]),
            "DELETE FROM T WHERE ID = 4",
        ),
        columns=columns,
        rows=(untouched, {"ID": 99 + len(ddl), **gone}),
        config={} if has_lobs else {"identity": "rowid"},
    )


def called(old: str, new: str) -> str:
    return f"RENAME COLUMN {old} TO {new}"


def swapped(one: str, other: str) -> tuple[str, ...]:
    return called(one, "X"), called(other, one), called("X", other)


DROP, UNUSED, NEW = "DROP COLUMN B", "SET UNUSED (B)", "ADD (B DATE)"
REPLACED = ("ADD (N NUMBER(9))", DROP, called("N", "B"))

IDENTITY: dict[str, tuple[tuple[str, ...], str]] = {
    "dropped": ((DROP,), "ID A -B C D E"),
    "two-dropped": (("DROP (B, C)",), "ID A -B -C D E"),
    "unused-and-dropped": ((UNUSED, "DROP UNUSED COLUMNS"), "ID A -B C D E"),
    "unused-and-another-dropped": ((UNUSED, "DROP COLUMN C"), "ID A -B -C D E"),
    "dropped-beside-a-new-one": ((DROP, "ADD (B2 VARCHAR2(9))"), "ID A -B C D E B2"),
    "renamed": ((called("B", "B2"),), "ID A B2=B C D E"),
    "renamed-twice": ((called("B", "B2"), called("B2", "B3")), "ID A B3=B C D E"),
    "renamed-beside-others": (
        (called("B", "B2"), "DROP COLUMN A", "ADD (A2 DATE)"), "ID -A B2=B C D E A2"
    ),
    "added-again": ((DROP, NEW), "ID A -B__dropped=B C D E B=B__2"),
    "unused-and-added-again": ((UNUSED, NEW), "ID A -B__dropped=B C D E B=B__2"),
    "added-again-twice": (
        (DROP, "ADD (B NUMBER(9))", DROP, NEW), "ID A -B__dropped=B C D E -B__2__dropped=B__2 B=B__3"
    ),
    "added-beside-a-renamed-one": ((called("B", "B2"), NEW), "ID A B2=B C D E B=B__2"),
    "added-beside-two-renamed-ones": (
        (called("B", "B2"), "ADD (B VARCHAR2(9))", called("B", "B3"), NEW),
        "ID A B2=B C D E B3=B__2 B=B__3",
    ),
    "renamed-dropped-and-both-names-added": (
        (called("B", "B2"), "DROP COLUMN B2", "ADD (B2 NUMBER(9))", NEW),
        "ID A -B__dropped=B C D E B2 B=B__2",
    ),
    "replaced": (REPLACED, "ID A -B__dropped=B C D E B=N"),
    "replaced-twice": (
        (*REPLACED, "ADD (N DATE)", DROP, called("N", "B")),
        "ID A -B__dropped=B C D E -N__dropped=N B=N__2",
    ),
    "swapped": (swapped("A", "B"), "ID B=A A=B C D E"),
    "swapped-twice": (swapped("A", "B") * 2, "ID A B C D E"),
    "lobs-swapped": (swapped("D", "E"), "ID A B C E=D D=E"),
    "lobs-swapped-thrice": (swapped("D", "E") * 3, "ID A B C E=D D=E"),
    "swapped-and-the-third-name-taken": (
        (*swapped("A", "B"), "ADD (X NUMBER(9))"), "ID B=A A=B C D E X"
    ),
    "there-and-back": ((called("A", "X"), called("X", "A")) * 2, "ID A B C D E"),
    "onto-one-that-was-renamed-away": (
        (called("A", "A2"), called("B", "A")), "ID A2=A A=B C D E"
    ),
    "back-over-a-dropped-one": (
        (called("A", "X"), "ADD (A NUMBER(9))", "DROP COLUMN A", called("X", "A")),
        "ID A B C D E -A__2__dropped=A__2",
    ),
    "a-name-with-a-number-is-taken": (
        ("ADD (B__2 NUMBER(9))", DROP, NEW), "ID A -B__dropped=B C D E B__2 B=B__3"
    ),
}  # fmt: skip

OFTEN = {
    "added-again": ("pause", "behind"),
    "swapped": ("everywhere", "named"),
    "replaced": ("in-front",),
    "lobs-swapped": ("",),
}
BY_ROWID = {"added-again": ("",), "replaced-twice": (), "swapped": ("everywhere",)}

# -- types that get wider -------------------------------------------------------------------------

BIG = 12345678901234567890


def wider(
    *ddl: str, columns: str = "ID N D A", after: tuple[str, ...] = (), **more: Any
) -> DdlStory:
    """Columns of each kind."""
    return DdlStory(
        table=(
            "CREATE TABLE T (ID NUMBER(5) PRIMARY KEY, N NUMBER(9), D NUMBER(10,2), A VARCHAR2(20))",
            *(f"INSERT INTO T VALUES ({key}, {key}0, {key}.50, 'a{key}')" for key in range(1, 6)),
        ),
        before=(
            "INSERT INTO T VALUES (6, 60, -6.25, 'a6')",
            "UPDATE T SET N = 11, D = 1 WHERE ID = 1",
            "UPDATE T SET ID = 20 WHERE ID = 2",
            "DELETE FROM T WHERE ID = 3",
        ),
        ddl=ddl,
        between=("UPDATE T SET D = {n}.75 WHERE ID = 4",),
        after=(
            *after,
            "UPDATE T SET ID = 60, A = 'moved' WHERE ID = 6",
            "DELETE FROM T WHERE ID = 5",
        ),
        columns=columns,
        **more,
    )


def to_big(name: str, value: object = BIG) -> dict[str, Any]:
    """The row 1 gets a number that the column had no room for."""
    held = Decimal(value) if isinstance(value, str) else value
    return {"after": (f"UPDATE T SET {name} = {value} WHERE ID = 1",), "rows": ({name: held},)}


WIDER = {
    "more-digits": wider(
        "MODIFY (N NUMBER(20), D NUMBER(14,4))",
        after=(f"INSERT INTO T VALUES (7, {BIG}, 0.1234, 'a7')", f"UPDATE T SET N = {BIG} WHERE ID = 1"),
        rows=({"ID": 1, "N": BIG}, {"ID": 20, "N": 20}, {"ID": 60, "N": 60, "A": "moved"}, {"ID": 7, "D": Decimal("0.1234")}),
        cuts=("", "in-front"),
    ),
    "more-digits-twice": wider("MODIFY N NUMBER(20)", "MODIFY N NUMBER(24,4)", **to_big("N", "12345678901234567890.5")),
    "any-number": wider("MODIFY N NUMBER", after=("UPDATE T SET N = 1E40 WHERE ID = 1",), rows=({"ID": 1, "N": "1" + "0" * 40},), cuts=()),
    "of-the-key": wider("MODIFY (ID NUMBER(22), N NUMBER(22))", **to_big("N"), cuts=()),
    "of-the-key-as-text": wider("MODIFY (ID NUMBER, N NUMBER(22))", **to_big("N")),
    "and-renamed": wider("MODIFY N NUMBER(20)", called("N", "M"), columns="ID M=N D A", **to_big("M")),
    "renamed-before": wider(called("N", "M"), "MODIFY M NUMBER(20)", columns="ID M=N D A", **to_big("M"), cuts=()),
    "and-added": wider("ADD X NUMBER(5)", "MODIFY (N NUMBER(20), X NUMBER(20,2))", columns="ID N D A X", **to_big("N"), cuts=()),
}  # fmt: skip

# -- columns of the key ---------------------------------------------------------------------------


def of_key(*ddl: str, name: str = "NUM", columns: str, **more: Any) -> DdlStory:
    """A key of two columns, of which one gets another name."""
    own = name.strip('"')
    return DdlStory(
        table=(
            "CREATE TABLE T (PART VARCHAR2(5), ID NUMBER(9), V VARCHAR2(20), PRIMARY KEY (ID, PART))",
            *(f"INSERT INTO T VALUES ('p', {key}, 'v{key}')" for key in range(1, 6)),
        ),
        before=(
            "INSERT INTO T VALUES ('p', 6, 'v6')",
            "UPDATE T SET V = 'before' WHERE ID = 1",
            "UPDATE T SET ID = 20 WHERE ID = 2",
            "DELETE FROM T WHERE ID = 3",
        ),
        ddl=ddl,
        after=(
            f"INSERT INTO T (PART, {name}, V) VALUES ('p', 7, 'v7')",
            f"UPDATE T SET V = 'after' WHERE {name} IN (4, 20)",
            f"UPDATE T SET {name} = 60, PART = 'q' WHERE {name} = 6",
            f"DELETE FROM T WHERE {name} = 5",
        ),
        columns=columns,
        key=(own, "PART"),
        rows=(
            {own: 1, "V": "before"},
            *({own: key, "PART": "p", "V": "after"} for key in (4, 20)),
            {own: 60, "PART": "q", "V": "v6"},
        ),
        **more,
    )


KEYS = {
    "key-renamed": of_key(called("ID", "NUM"), columns="PART NUM=ID V"),
    "key-renamed-and-others": of_key(
        called("ID", "NUM"), "ADD (W DATE)", "MODIFY NUM NUMBER(12)", columns="PART NUM=ID V W"
    ),
}
# -- defaults, dates, kinds of columns ------------------------------------------------------------


def added(kind: str, default: str, value: Any, **more: Any) -> DdlStory:
    """Rows that are there when a column is added have its default, and a later name."""
    return DdlStory(
        table=(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A NUMBER(9))",
            *(f"INSERT INTO T VALUES ({key}, 1)" for key in range(4)),
        ),
        before=("UPDATE T SET A = 2 WHERE ID = 1",),
        ddl=(f"ADD (B {kind} DEFAULT {default} NOT NULL)", called("B", "C")),
        between=("UPDATE T SET A = 3 WHERE ID = 2", "INSERT INTO T (ID) VALUES (9 + {n})"),
        after=("DELETE FROM T WHERE ID = 3",),
        columns="ID A C=B",
        rows=tuple({"ID": key, "C": value} for key in (0, 1, 2, 9, 10)),
        **more,
    )


def kinds(*ddl: str, columns: str, is_whole: bool = True, **more: Any) -> DdlStory:
    """Beside plain columns an invisible and a virtual one."""
    return DdlStory(
        table=(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), HID NUMBER(9) INVISIBLE,"
            " TWICE AS (ID * 2), B VARCHAR2(20))",
            "INSERT INTO T (ID, A, HID, B) VALUES (1, 'a1', 10, 'b1')",
        ),
        before=(
            "INSERT INTO T (ID, A, HID, B) VALUES (2, 'a2', 20, 'b2')",
            "UPDATE T SET HID = 11, B = 'changed' WHERE ID = 1",
            "UPDATE T SET ID = TWICE * 10 WHERE ID = 2",
        ),
        ddl=ddl,
        after=(
            "INSERT INTO T (ID, A, HID, B) VALUES (3, 'a3', 30, 'b3')",
            "UPDATE T SET A = 'after' WHERE ID = 40",
            "DELETE FROM T WHERE ID = 1",
        )
        if is_whole
        else (),
        columns=columns,
        rows=({"ID": 3, "A": "a3", "HID": 30, "B": "b3"}, {"ID": 40, "A": "after", "HID": 20, "B": "b2"})
        if is_whole
        else ({"ID": 1, "B": "changed"},),
        never=("pause",),
        **more,
    )  # fmt: skip


OTHERS = {
    "default-number": added("NUMBER(9)", "7", 7, cuts=("everywhere",)),
    "default-text": added("VARCHAR2(9)", "'text'", "text"),
    "default-date": added("DATE", "DATE '2020-02-29'", datetime(2020, 2, 29)),
    "seen-and-unseen": kinds(
        "MODIFY (A INVISIBLE)", "MODIFY (HID VISIBLE, A VISIBLE)", columns="ID A HID B"
    ),
    "invisible-added": kinds(
        "ADD (NEW NUMBER(9) INVISIBLE)", "MODIFY NEW VISIBLE", columns="ID A HID B NEW"
    ),
    "virtual-added": kinds(
        "ADD (THRICE GENERATED ALWAYS AS (HID * 3) VIRTUAL, NEW NUMBER(9))",
        columns="ID A HID B NEW",
    ),
    "virtual-dropped": kinds(
        "MODIFY TWICE INVISIBLE", "DROP COLUMN TWICE", columns="ID A HID B", is_whole=False, cuts=()
    ),
    "invisible-dropped": kinds(
        "DROP COLUMN HID", called("A", "A2"), columns="ID A2=A -HID B", is_whole=False, cuts=()
    ),
}

OWN = {
    "came-and-went": DdlStory(  # a dropped column's place stays taken
        table=("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20))", "INSERT INTO T VALUES (1, 'a')"),
        ddl=("ADD (E VARCHAR2(9))", "DROP COLUMN E", "ADD (F VARCHAR2(9))"),
        between=("INSERT INTO T (ID) VALUES (8 + {n})", "UPDATE T SET A = 'a{n}' WHERE ID = 1"),
        after=("UPDATE T SET F = 'f' WHERE ID = 8",),
        columns="ID A -E F",
        rows=({"ID": 1, "A": "a2", "E": None}, {"ID": 8, "F": "f"}, {"ID": 10, "F": None}),
    ),
    "lob-renamed": DdlStory(
        table=("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, N NUMBER(9), TXT CLOB)",
               "INSERT INTO T VALUES (1, 1, 'one')", "INSERT INTO T VALUES (2, 2, 'two')"),
        before=("UPDATE T SET N = 10 WHERE ID = 1", "UPDATE T SET ID = 20 WHERE ID = 2"),
        ddl=(called("TXT", "BODY"),),
        after=("UPDATE T SET N = 11 WHERE ID = 1", "UPDATE T SET N = 22 WHERE ID = 20"),
        columns="ID N BODY=TXT",
        rows=({"ID": 1, "N": 11, "BODY": "one"}, {"ID": 20, "N": 22, "BODY": "two"}),
    ),
    "dates-get-fractions": DdlStory(  # rows from before it have a DATE's seven bytes
        table=("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, D DATE, S TIMESTAMP(0), N DATE)",
               "INSERT INTO T VALUES (1, DATE '2026-01-01' + 1/86400, TIMESTAMP '2026-01-01 00:00:01', DATE '2026-01-01')"),
        before=("INSERT INTO T VALUES (2, DATE '1582-10-04' + 1/2, NULL, DATE '2026-01-02')", "UPDATE T SET D = D + 1 WHERE ID = 1"),
        ddl=("MODIFY (D TIMESTAMP(6), S TIMESTAMP(3))", "MODIFY (N TIMESTAMP(9), S TIMESTAMP(9))"),
        between=("UPDATE T SET S = TIMESTAMP '2026-01-01 00:00:01.125' WHERE ID = 2",),
        after=("INSERT INTO T (ID, D) VALUES (3, TIMESTAMP '2026-03-03 03:03:03.000003')",
               "UPDATE T SET N = N + INTERVAL '0.000000001' SECOND(2,9) WHERE ID = 2"),
        columns="ID D S N",
        rows=(
            {"D": datetime(2026, 1, 2, 0, 0, 1), "S": "2026-01-01 00:00:01.000000000", "N": "2026-01-01 00:00:00.000000000"},
            {"D": datetime(1582, 10, 4, 12), "S": "2026-01-01 00:00:01.125000000", "N": "2026-01-02 00:00:00.000000001"},
            {"D": datetime(2026, 3, 3, 3, 3, 3, 3), "S": None},
        ),
        cuts=("", "everywhere"),
    ),
}  # fmt: skip

STORIES: dict[str, DdlStory] = {
    **{name: identity(ddl, columns) for name, (ddl, columns) in IDENTITY.items()},
    **{
        f"{name}-by-rowid": identity(
            IDENTITY[name][0], IDENTITY[name][1].replace(" D E", ""), has_lobs=False
        )
        for name in BY_ROWID
    },
    **WIDER,
    **KEYS,
    **OTHERS,
    **OWN,
}
NORMAL = {
    **{name: OFTEN.get(name, ()) for name in IDENTITY},
    **{f"{name}-by-rowid": cuts for name, cuts in BY_ROWID.items()},
}


@pytest.mark.parametrize(
    ("story", "cut"),
    [
        pytest.param(
            story,
            cut,
            id=f"{name}-{cut or 'one-window'}",
            marks=() if cut in NORMAL.get(name, story.cuts) else pytest.mark.slow,
        )
        for name, story in STORIES.items()
        for cut in CUTS
        if cut not in story.never
    ],
)
def test_columns_and_rows_are_what_oracle_has(tmp_path: Path, story: DdlStory, cut: str) -> None:
    with running_story(tmp_path, story) as (oracle, source):
        tell(oracle, source, story, cut)
        check(source, story)


@pytest.mark.parametrize("name", ["added-again-twice", "replaced", "swapped"])
def test_a_table_that_is_read_again_goes_on_with_the_columns_that_it_has(
    tmp_path: Path, name: str
) -> None:
    """A snapshot behind the DDL knows the names alone; the windows said which columns they are. One
    that was dropped is NULL in all rows then."""
    story = STORIES[name]
    with running_story(tmp_path, story) as (oracle, source):
        tell(oracle, source, story, "")
        source.pipeline.resnapshot_tables([source.record("T").table])
        source.run()
        oracle.run("UPDATE T SET A = NULL WHERE ID = 8", "DELETE FROM T WHERE ID = 7")
        source.windows()
        source.check_followed("T")
        schema = source.lake.tables[source.record("T").table].schema
        assert schema is not None
        assert schema.stored_names == story.stored_names


@pytest.mark.parametrize("cut", ["", "everywhere"])
def test_columns_of_the_key_change_names_with_others(tmp_path: Path, cut: str) -> None:
    with running_story(tmp_path, identity((), "ID A B C D E")) as (oracle, source):
        oracle.run("UPDATE T SET ID = 30 WHERE ID = 3")
        for number, clause in enumerate(swapped("ID", "C")):
            oracle.run(f"ALTER TABLE T {clause}")
            oracle.run(f"UPDATE T SET A = 'step {number}' WHERE B = 'b4'")
            oracle.run(f"DELETE FROM T WHERE B = 'b{number + 5}'")
            if cut:
                source.windows()
        oracle.run("UPDATE T SET C = 60, ID = 6 WHERE B = 'b3'")
        source.windows()
        source.check_followed("T")
