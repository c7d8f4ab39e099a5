"""After a long pause Oracle shows the dictionary of then no more: DDL is followed by its text, as far as that says all, or the table stops."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cdc_core.schema.ddl_text import version_after
from cdc_core.schema.table import TableSchema
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id

oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY)",
)


def no_undo(oracle: Oracle) -> None:
    oracle.server.faults.arm(Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0))


def test_several_ddls_are_followed_by_their_texts(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')", "INSERT INTO TWO VALUES (1)")
        oracle.run("ALTER TABLE ONE ADD A NUMBER(5,2) /* MODIFY */")
        oracle.run("INSERT INTO ONE VALUES (2, 'second', 2.25)")
        oracle.run("ALTER TABLE ONE ADD (B VARCHAR2(9) CHECK (B > 'A'), CHECK (A < 100))")
        oracle.run("INSERT INTO ONE (ID, V, A) VALUES (3, 'third', 3)")
        oracle.run("COMMENT ON TABLE ONE IS 'DROP COLUMN V'", "GRANT SELECT ON ONE TO PUBLIC")
        oracle.run("ALTER TABLE ONE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
        oracle.run("UPDATE ONE SET V = 'changed', B = 'Other' WHERE ID = 2")
        oracle.run("ALTER TABLE ONE ADD Z TIMESTAMP(3)")
        oracle.run("INSERT INTO ONE (ID, Z) VALUES (4, TIMESTAMP '2024-02-29 12:00:00.125')")
        oracle.clock.ahead += 4 * 24 * 3600
        no_undo(oracle)
        source.windows()
        oracle.server.faults.disarm_all()
        one = source.status("ONE")
        assert one.state == "ready", one.reason
        source.check_current("ONE")
        source.check_current("TWO")


@pytest.mark.parametrize("is_shown", [True, False], ids=["dictionary", "texts-alone"])
def test_extended_statistics_come_and_go_by_ddl_that_changes_no_column(
    oracle: Oracle, tmp_path: Path, is_shown: bool
) -> None:
    """Also those that were there before the table was captured."""
    statistics = "BEGIN DBMS_STATS.{}(USER, 'ONE', {}); END;"
    oracle.run(statistics.format("GATHER_TABLE_STATS", "METHOD_OPT => 'FOR COLUMNS (V, ID)'"))
    with source_of(oracle, tmp_path, "ONE") as source:
        source.run()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')")
        oracle.run(statistics.format("GATHER_TABLE_STATS", "METHOD_OPT => 'FOR COLUMNS (ID, V)'"))
        oracle.run("INSERT INTO ONE VALUES (2, 'second')", "ALTER TABLE ONE ADD (A NUMBER(5))")
        oracle.run("INSERT INTO ONE VALUES (3, 'third', 3)")
        for group in ("(V, ID)", "(ID, V)"):
            oracle.run(statistics.format("DROP_EXTENDED_STATS", f"'{group}'"))
        oracle.run("UPDATE ONE SET V = 'changed' WHERE ID = 2")
        if not is_shown:
            oracle.clock.ahead += 4 * 24 * 3600
            no_undo(oracle)
        source.windows()
        oracle.server.faults.disarm_all()
        one = source.status("ONE")
        assert one.state == "ready", one.reason
        source.check_current("ONE")


def test_columns_that_change_after_they_came_are_known_by_the_chain_of_texts(
    oracle: Oracle, tmp_path: Path
) -> None:
    """In two windows: of the first, the present definition shows hardly anything."""
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')")
        oracle.run("ALTER TABLE ONE ADD (A NUMBER(5), B DATE, GONE VARCHAR2(9))")
        oracle.run("INSERT INTO ONE VALUES (2, 'second', 22222, DATE '2026-02-02', 'gone')")
        oracle.run("ALTER TABLE ONE MODIFY (A NUMBER(12) DEFAULT 8, V VARCHAR2(40) NOT NULL)")
        oracle.run("INSERT INTO ONE (ID, V) VALUES (3, 'a text that is longer than before')")
        source.pipeline.plan_windows()
        oracle.run("ALTER TABLE ONE MODIFY A NUMBER(14,2)", "ALTER TABLE ONE MODIFY V NULL")
        oracle.run("INSERT INTO ONE VALUES (4, NULL, 4.25, NULL, NULL)")
        oracle.run("ALTER TABLE ONE RENAME COLUMN B TO DAY")
        oracle.run("ALTER TABLE ONE DROP COLUMN GONE")
        oracle.run("INSERT INTO ONE VALUES (5, 'fifth', 5.5, DATE '2026-05-05')")
        oracle.run("ALTER TABLE ONE SET UNUSED COLUMN V")
        oracle.run("UPDATE ONE SET A = 44.44 WHERE ID = 4", "INSERT INTO ONE (ID) VALUES (6)")
        oracle.clock.ahead += 4 * 24 * 3600
        no_undo(oracle)
        source.windows()
        oracle.server.faults.disarm_all()
        one = source.status("ONE")
        assert one.state == "ready", one.reason
        source.check_current("ONE")
        rows = source.lake.rows_by_name(table_id("ONE"))
        assert {row["ID"]: (row["A"], row["V"]) for row in rows} == {
            1: (None, "first"),
            2: (22222, "second"),
            3: (8, "a text that is longer than before"),
            4: (Decimal("44.44"), None),
            5: (Decimal("5.5"), "fifth"),
            6: (8, None),
        }


def test_a_table_that_has_another_name_now_is_read_up_to_there(
    oracle: Oracle, tmp_path: Path
) -> None:
    """No definition of the present is the table's; DDL of the other name is another table's, which joins with a snapshot."""
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        oracle.run("ALTER TABLE ONE ADD A NUMBER(5)", "INSERT INTO ONE VALUES (1, 'first', 1)")
        oracle.run("RENAME ONE TO THREE", "ALTER TABLE THREE MODIFY A NUMBER(9)")
        oracle.run("INSERT INTO THREE VALUES (2, 'second', 222222)")
        oracle.clock.ahead += 4 * 24 * 3600
        no_undo(oracle)
        source.windows()
        oracle.server.faults.disarm_all()
        assert source.record("ONE").trouble == "drop"
        assert source.lake.image(table_id("ONE")) == [(1, "first", 1)]
        oracle.run("RENAME THREE TO ONE")
        source.pipeline.resnapshot_tables([table_id("ONE")])
        source.run()
        source.check_current("ONE")


def test_texts_that_the_dictionary_contradicts_are_not_believed(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Oracle shows as of the last DDL is what its text and those before it have to lead to."""

    def misread(*given: Any) -> TableSchema | None:
        found = version_after(*given)
        return found and found.lacking(["A"])

    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        oracle.run("ALTER TABLE ONE ADD A NUMBER(5)", "INSERT INTO ONE VALUES (1, 'first', 1)")
        oracle.run("ALTER TABLE ONE ADD B NUMBER(5)", "INSERT INTO TWO VALUES (1)")
        oracle.clock.ahead += 4 * 24 * 3600
        no_undo(oracle)
        monkeypatch.setattr("cdc_core.capture.stream_ends.ddl_rows.version_after", misread)
        source.windows()
        oracle.server.faults.disarm_all()
        status = source.status("ONE")
        assert status.state == "failed"
        assert "is not what Oracle shows" in (status.reason or "")
        source.check_current("TWO")


@pytest.mark.parametrize(
    ("last", "differs"),
    [
        pytest.param("ALTER TABLE ONE ADD B NUMBER(5)", True, id="its-text-is-read"),
        pytest.param("ALTER TABLE ONE ADD B NUMBER(5) UNIQUE", True, id="its-text-is-not-read"),
        pytest.param("ALTER TABLE ONE MODIFY (V UNIQUE, A NOT NULL)", False, id="its-text-may-have-made-it"),
        pytest.param("ALTER TABLE ONE ADD B NUMBER(5)", False, id="the-texts-are-right"),
    ],
)  # fmt: skip
def test_the_end_of_a_chain_over_windows_is_held_against_the_dictionary(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, last: str, differs: bool
) -> None:
    """The first window has nothing but a text, which is misread; the last DDL, which the dictionary shows, is in another window: no row of
    that one is decoded by the text."""
    is_right = last.endswith("ADD B NUMBER(5)") and not differs

    def misread(old: TableSchema, ddl: str, *given: Any) -> TableSchema | None:
        found = version_after(old, ddl, *given)
        if found is None or is_right or "ADD A" not in ddl:
            return found
        *others, column = found.columns
        return replace(found, columns=(*others, replace(column, precision=7)))

    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        oracle.run("ALTER TABLE ONE ADD A NUMBER(5)", "INSERT INTO ONE VALUES (1, 'first', 1)")
        source.pipeline.plan_windows()
        oracle.run("INSERT INTO ONE VALUES (2, 'second', 2)", last, "INSERT INTO TWO VALUES (1)")
        oracle.clock.ahead += 4 * 24 * 3600
        no_undo(oracle)
        monkeypatch.setattr("cdc_core.capture.stream_ends.ddl_rows.version_after", misread)
        source.windows()
        oracle.server.faults.disarm_all()
        record = source.record("ONE")
        source.check_current("TWO")
        if not differs:
            assert record.state == "ready", record.reason
            source.check_current("ONE")
            return
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert "Oracle shows other columns than the texts of DDL say" in (record.reason or "")
        assert "did not show the dictionary: A (" in (record.reason or "")
        assert source.lake.image(table_id("ONE")) == [(1, "first", 1)]
        source.pipeline.resnapshot_tables([table_id("ONE")])
        source.run()
        source.check_current("ONE")
        [*_, newest] = source.pipeline.store.schemas.versions(table_id("ONE"))
        assert not newest.schema.is_by_text


@pytest.mark.parametrize(
    "ddls",
    [
        pytest.param(
            ["ALTER TABLE ONE ADD A NUMBER(5) DEFAULT (1)", "ALTER TABLE ONE MODIFY A DEFAULT 2"],
            id="a-default-that-is-computed",
        ),
        pytest.param(
            ["ALTER TABLE ONE ADD A VARCHAR2(2000)", "ALTER TABLE ONE DROP COLUMN A"],
            id="may-have-been-a-lob",
        ),
        pytest.param(
            ["ALTER TABLE ONE ADD A NUMBER(5) UNIQUE", "ALTER TABLE ONE ADD B NUMBER(5)"],
            id="does-more-than-columns",
        ),
    ],
)
def test_what_the_text_does_not_say_stops_that_table(
    oracle: Oracle, tmp_path: Path, ddls: list[str]
) -> None:
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')", "INSERT INTO TWO VALUES (1)")
        for ddl in ddls:
            oracle.run(ddl)
        oracle.clock.ahead += 4 * 24 * 3600
        no_undo(oracle)
        source.windows()
        oracle.server.faults.disarm_all()
        status = source.status("ONE")
        assert status.state == "failed"
        assert "altered after this SCN" in (status.reason or "")
        source.check_current("TWO")
        source.pipeline.resnapshot_tables([source.record("ONE").table], fresh=True)
        source.run()
        source.check_current("ONE")
