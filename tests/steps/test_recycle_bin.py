"""A captured table that goes into the recycle bin and comes back, whose rows are flashed back, or that is redefined online."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))" for name in ("ONE", "TWO")),
    "INSERT INTO ONE VALUES (1, 'first')",
    "INSERT INTO ONE VALUES (2, 'second')",
)
source = capturing("ONE", "TWO")


def test_what_committed_before_a_drop_is_in_the_mirror(oracle: Oracle, source: Source) -> None:
    """LogMiner shows the rows under the name in the bin by then."""
    oracle.run("INSERT INTO ONE VALUES (3, 'third')", "UPDATE ONE SET V = 'x' WHERE ID = 1")
    oracle.run("DROP TABLE ONE", "INSERT INTO TWO VALUES (1, 'goes on')")
    source.windows()
    one = source.record("ONE")
    assert (one.state, one.mirror_scn) == ("failed", one.stopped_scn)
    assert 'RENAME TO "BIN$' in (one.reason or "")
    assert one.trouble == "drop"
    assert source.lake.image(table_id("ONE")) == [(1, "x"), (2, "second"), (3, "third")]
    source.check_current("TWO")


@pytest.mark.parametrize("purged", [False, True], ids=["in-the-bin", "purged"])
def test_a_drop_is_followed_by_a_table_of_that_name(
    oracle: Oracle, source: Source, purged: bool
) -> None:
    oracle.run("INSERT INTO ONE VALUES (3, 'third')", "DROP TABLE ONE")
    oracle.run(
        "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
        "INSERT INTO ONE VALUES (50, 'another')",
    )
    if purged:
        oracle.run("PURGE RECYCLEBIN")
    source.windows()
    assert source.record("ONE").state == "failed"
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "second"), (3, "third")]


@pytest.mark.parametrize("apart", [False, True], ids=["in-one-window", "in-two-windows"])
def test_a_table_that_comes_back_from_the_bin_is_read_again(
    oracle: Oracle, tmp_path: Path, apart: bool
) -> None:
    """Both kinds of statement in one window, or a window between them; changes after them are taken once."""
    with source_of(oracle, tmp_path, "ONE", "TWO", policies={"on_drop": "resnapshot"}) as source:
        source.begin()
        oracle.run("INSERT INTO ONE VALUES (3, 'third')", "DROP TABLE ONE")
        if apart:
            source.windows()
        oracle.run("FLASHBACK TABLE ONE TO BEFORE DROP")
        oracle.run("INSERT INTO ONE VALUES (4, 'fourth')", "DELETE FROM ONE WHERE ID = 1")
        source.windows()
        oracle.run("UPDATE ONE SET V = 'again' WHERE ID = 2", "INSERT INTO TWO VALUES (1, 'x')")
        source.run()
        oracle.run("INSERT INTO ONE VALUES (5, 'fifth')")
        source.run()
        source.check_current("ONE", "TWO")
        assert source.record("ONE").state == "ready"


@pytest.mark.parametrize("identity", ["key", "rowid"])
def test_rows_that_are_flashed_back_are_followed(
    oracle: Oracle, tmp_path: Path, identity: str
) -> None:
    """FLASHBACK TABLE … TO SCN deletes and inserts rows."""
    oracle.run("ALTER TABLE ONE ENABLE ROW MOVEMENT")
    with source_of(oracle, tmp_path, "TWO") as source:
        source.configure({"name": "ONE", "identity": identity}, "TWO")
        source.run()
        with oracle.owner() as connection:
            [(scn,)] = connection.cursor().execute(
                "SELECT DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER FROM DUAL"
            )
        oracle.run(
            "INSERT INTO ONE VALUES (3, 'third')",
            "UPDATE ONE SET V = 'x' WHERE ID = 1",
            "DELETE FROM ONE WHERE ID = 2",
        )
        source.windows()
        oracle.run(f"FLASHBACK TABLE ONE TO SCN {scn}", "INSERT INTO ONE VALUES (4, 'after')")
        source.windows()
        source.check_current("ONE")


def test_a_table_that_is_redefined_online_stops_and_comes_back(
    oracle: Oracle, source: Source
) -> None:
    """FINISH_REDEF_TABLE lets two objects change names without a DDL; the interim table's rows are not the table's."""
    oracle.run("CREATE TABLE ONE_NEW (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))")
    call = f"BEGIN DBMS_REDEFINITION.{{}}('{OWNER}', 'ONE', 'ONE_NEW'); END;"
    oracle.run("INSERT INTO ONE VALUES (3, 'third')")
    oracle.run(call.format("START_REDEF_TABLE"), "UPDATE ONE SET V = 'x' WHERE ID = 1")
    source.windows()
    source.check_current("ONE")
    oracle.run(call.format("SYNC_INTERIM_TABLE"), "DELETE FROM ONE WHERE ID = 2")
    oracle.run(call.format("FINISH_REDEF_TABLE"))
    oracle.run("INSERT INTO ONE VALUES (4, 'of the new object')", "INSERT INTO TWO VALUES (1, 'x')")
    source.windows()
    one = source.record("ONE")
    assert (one.state, one.mirror_scn) == ("failed", one.stopped_scn)
    assert "another name" in (one.reason or "")
    assert source.lake.image(table_id("ONE")) == [(1, "x"), (2, "second"), (3, "third")]
    source.check_current("TWO")
    source.pipeline.resnapshot_tables([table_id("ONE")])
    source.run()
    source.check_current("ONE")


def test_a_redefinition_behind_a_window_changes_nothing_in_it(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("CREATE TABLE ONE_NEW (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))")
    call = f"BEGIN DBMS_REDEFINITION.{{}}('{OWNER}', 'ONE', 'ONE_NEW'); END;"
    oracle.run("INSERT INTO ONE VALUES (3, 'third')", call.format("START_REDEF_TABLE"))
    [*_, window] = source.pipeline.plan_windows()
    oracle.run(call.format("FINISH_REDEF_TABLE"))
    source.pipeline.capture_window(window)
    source.pipeline.apply_window(window)
    one = source.record("ONE")
    assert (one.state, one.mirror_scn) == ("ready", window.scn_high)
    assert source.lake.image(table_id("ONE")) == [(1, "first"), (2, "second"), (3, "third")]
