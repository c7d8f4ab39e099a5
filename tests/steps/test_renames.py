"""Tables that get other names, go, and come again, while changes are captured: each row reaches the table whose it was, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import NotYetError
from cdc_core.model.identifiers import TableId
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

ONE, TWO = table_id("ONE"), table_id("TWO")


NAMES = ("ONE", "TWO")
oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))" for name in NAMES),
    *(f"INSERT INTO {name} VALUES (1, '{name}')" for name in NAMES),
)


source = capturing("*", policies={"on_drop": "resnapshot"})
"""All tables of the owner, by a pattern; one that goes and comes is read again."""


def states(source: Source) -> dict[str, str]:
    return {one.table.name: one.state for one in source.pipeline.records.tables()}


def logged(source: Source, name: str) -> list[tuple[str, Any]]:
    """The changes of the change log, without snapshots: what was done, and the key."""
    changes = source.lake.tables[table_id(name)].changes
    return [
        (change["_cdc_op"], (change["after"] or change["before"])["ID"])
        for change in changes
        if change["_cdc_op"] != "r"
    ]


def test_a_renamed_table_takes_its_rows_under_each_name(oracle: Oracle, source: Source) -> None:
    """The pattern takes in the new name. What committed before is in the change log of the old one, since an object is one table's at
    a time: both would ask for the same rows, and one would not get them."""
    oracle.run("INSERT INTO ONE VALUES (2, 'before')")
    oracle.run("RENAME ONE TO ONE_NEW")
    oracle.run("INSERT INTO ONE_NEW VALUES (3, 'after')")
    source.run()
    assert states(source) == {"ONE": "failed", "TWO": "ready"}
    oracle.run("INSERT INTO ONE_NEW VALUES (4, 'later')")
    source.run()
    oracle.run("UPDATE ONE_NEW SET V = 'x' WHERE ID = 1")
    source.run()
    assert states(source) == {"ONE": "failed", "ONE_NEW": "ready", "TWO": "ready"}
    assert source.lake.image(ONE) == [(1, "ONE"), (2, "before")]
    assert logged(source, "ONE") == [("c", 2)]
    assert logged(source, "ONE_NEW") == [("u", 1)]
    source.check_current("ONE_NEW", "TWO")
    status = source.status("ONE")
    assert "as soon as there is a table of that name" in (status.way_out or "")


def test_a_command_says_that_a_table_is_captured_under_its_old_name(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'of one')", "INSERT INTO TWO VALUES (3, 'of two')")
    for old, new in (("ONE", "OTHER"), ("TWO", "ONE"), ("OTHER", "TWO")):
        oracle.run(f"ALTER TABLE {old} RENAME TO {new}")
    with pytest.raises(NotYetError, match="under its old name") as raised:
        source.pipeline.resnapshot_tables([ONE], fresh=True)
    assert raised.value.facts["captured_as"] == TWO
    assert states(source) == {"ONE": "ready", "TWO": "ready"}
    source.windows()
    assert source.lake.image(ONE) == [(1, "ONE"), (2, "of one")]
    assert source.lake.image(TWO) == [(1, "TWO"), (3, "of two")]
    source.pipeline.resnapshot_tables([ONE, TWO])
    source.run()
    source.check_current("ONE", "TWO")


@pytest.mark.parametrize(
    ("statements", "rows", "generation"),
    [
        pytest.param(
            ["DROP TABLE ONE PURGE", "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))"],
            [(9, "new")],
            2,
            id="dropped-and-created",
        ),
        pytest.param(
            ["DROP TABLE ONE PURGE", "CREATE TABLE ONE (ID NUMBER(9), V VARCHAR2(9) PRIMARY KEY)"],
            [(9, "new")],
            2,
            id="with-another-key",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["RENAME ONE TO ONE_OLD", "RENAME TWO TO ONE", "RENAME ONE_OLD TO TWO"],
            [(1, "TWO"), (3, "of two"), (9, "new")],
            2,
            id="swapped",
        ),
        pytest.param(
            ["RENAME ONE TO ELSEWHERE", "RENAME ELSEWHERE TO ONE"],
            [(1, "ONE"), (2, "of one"), (9, "new")],
            1,
            id="away-and-back",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_table_that_is_there_again_is_read_again(
    oracle: Oracle,
    source: Source,
    statements: list[str],
    rows: list[tuple[object, ...]],
    generation: int,
) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 'of one')", "INSERT INTO TWO VALUES (3, 'of two')")
    for statement in statements:
        oracle.run(statement)
    oracle.run("INSERT INTO ONE VALUES (9, 'new')")
    for _ in range(3):
        source.run()
    assert states(source) == {"ONE": "ready", "TWO": "ready"}
    source.check_current("ONE", "TWO")
    assert source.lake.image(ONE) == rows
    assert source.record("ONE").generation == generation
    oracle.run("DELETE FROM ONE WHERE ID = 9", "INSERT INTO TWO VALUES (10, 'on')")
    source.run()
    source.check_current("ONE", "TWO")


@pytest.mark.parametrize("policy", ["stop", "remove"])
def test_a_table_that_goes_with_its_owner_is_noticed(
    oracle: Oracle, tmp_path: Path, policy: str
) -> None:
    """DROP USER … CASCADE: the redo names the user alone. What committed before is applied; the others go on."""
    oracle.run(
        "CREATE USER SHOP IDENTIFIED BY pw",
        "CREATE TABLE SHOP.GOES (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
        "INSERT INTO SHOP.GOES VALUES (1, 'first')",
        user=ADMIN,
    )
    goes = TableId("SHOP", "GOES")
    with source_of(oracle, tmp_path, "ONE", policies={"on_drop": policy}) as source:
        source.tables.append({"name": "SHOP.GOES"})
        source.run()
        oracle.run("INSERT INTO SHOP.GOES VALUES (2, 'last')", user=ADMIN)
        [*_, window] = source.pipeline.plan_windows()
        oracle.run("DROP USER SHOP CASCADE", user=ADMIN)
        source.pipeline.capture_window(window)
        found = source.pipeline.store.tables.get(goes)
        assert found is not None
        assert found.is_captured, "it was there as of the window's end"
        oracle.run("INSERT INTO ONE VALUES (2, 'on')")
        source.windows()
        found = source.pipeline.store.tables.get(goes)
        assert found is not None
        assert found.state == ("removed" if policy == "remove" else "failed")
        assert "the redo has no DDL of it" in (found.reason or "")
        assert source.lake.image(goes) == [(1, "first"), (2, "last")]
        source.check_current("ONE")
