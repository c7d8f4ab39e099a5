"""What becomes of a table one of whose redo rows cannot be decoded, where its policy is quarantine?"""

from __future__ import annotations

import logging
from decimal import Decimal
from types import SimpleNamespace

import pytest

from cdc_core.lake.comparison.sides import Differences, Suspects
from cdc_core.model.identifiers import TableId
from cdc_core.stage.quarantine import FOLLOWS
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

ONE, TWO = table_id("ONE"), table_id("TWO")
BAD = "unreadable"


class Killed(BaseException):
    """The process ends here."""


oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40), DOC CLOB)",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    "INSERT INTO ONE VALUES (1, 'first', 'a document')",
    "INSERT INTO ONE VALUES (2, 'second', 'another')",
    "INSERT INTO TWO VALUES (1, 'first')",
    "INSERT INTO TWO VALUES (2, 'second')",
)
"""ONE has a LOB, which an update does not carry; TWO has none."""
begun = capturing("ONE", "TWO", policies={"on_undecodable": "quarantine", "quarantine_rows_max": 4})


@pytest.fixture
def source(oracle: Oracle, begun: Source) -> Source:
    translates(oracle, not_these=(BAD,))
    return begun


def translates(oracle: Oracle, *, not_these: tuple[str, ...] = ()) -> None:
    """LogMiner translates all rows but those whose statement holds one of the texts."""
    oracle.run("BEGIN DBMS_REDOLAKE_FAULTS.LEAVE_UNTRANSLATED(); END;", user=ADMIN)
    for text in not_these:
        call = f"BEGIN DBMS_REDOLAKE_FAULTS.LEAVE_UNTRANSLATED('{text}'); END;"
        oracle.run(call, user=ADMIN)


def quarantine(source: Source, table: TableId = TWO) -> list[str]:
    """The operations in quarantine that count still."""
    rows = source.lake.tables[table].in_quarantine.to_pylist()
    return [row["operation"] for row in rows]


def mirror(source: Source, name: str = "TWO") -> dict[int, str]:
    """The mirror's rows: V by ID."""
    return {row[0]: row[1] for row in source.lake.image(table_id(name))}


def test_the_other_rows_of_the_table_go_on(
    oracle: Oracle, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    """The row is missing in the mirror, and what says so counts it; its values are in the quarantine alone."""
    caplog.set_level(logging.DEBUG)
    oracle.run(
        f"INSERT INTO TWO VALUES (3, '{BAD}')",
        "INSERT INTO TWO VALUES (4, 'fine')",
        "INSERT INTO ONE VALUES (4, 'fine', 'a document')",
    )
    reports = source.run()
    assert mirror(source) == {1: "first", 2: "second", 4: "fine"}
    [row] = source.lake.tables[TWO].in_quarantine.to_pylist()
    assert (row["operation"], row["status"], row["_cdc_thread"]) == ("INSERT", 2, 1)
    assert f"'{BAD}'" in row["sql_redo"]
    status = source.status("TWO")
    assert (status.state, status.in_quarantine, source.status("ONE").in_quarantine) == (
        "ready",
        1,
        0,
    )
    [applied] = [one for report in reports for one in report.tables if one.quarantined]
    assert (applied.table, applied.quarantined, applied.in_quarantine) == (TWO, 1, 1)
    [counts] = [
        one for found in source.pipeline.store.windows.table_counts(range(9)).values() for one in found
        if one.table == TWO
    ]  # fmt: skip
    assert (counts.changes, counts.quarantined) == (1, 1)
    assert "in quarantine table=DEMO.TWO" in caplog.text
    assert BAD not in caplog.text
    assert BAD not in repr(reports) + repr(source.record("TWO")) + repr(status)
    assert mirror(source, "ONE")[4] == "fine"


@pytest.mark.parametrize(
    ("bad", "later", "rows"),
    [
        pytest.param(
            f"INSERT INTO TWO VALUES (3, '{BAD}')",
            "UPDATE TWO SET V = 'whole' WHERE ID = 3",
            {1: "first", 2: "second", 3: "whole"},
            id="an-insert-then-an-update",
        ),
        pytest.param(
            f"INSERT INTO TWO VALUES (3, '{BAD}')",
            "DELETE FROM TWO WHERE ID = 3",
            {1: "first", 2: "second"},
            id="an-insert-then-a-delete",
        ),
        pytest.param(
            f"UPDATE TWO SET V = '{BAD}' WHERE ID = 2",
            "UPDATE TWO SET V = 'whole' WHERE ID = 2",
            {1: "first", 2: "whole"},
            id="an-update-then-an-update",
        ),
        pytest.param(
            "DELETE FROM TWO WHERE ID = 2 AND V = 'second'",
            "INSERT INTO TWO VALUES (2, 'new')",
            {1: "first", 2: "new"},
            id="a-delete-then-an-insert",
        ),
    ],
)
def test_a_whole_change_needs_nothing_of_what_is_in_quarantine(
    oracle: Oracle, source: Source, bad: str, later: str, rows: dict[int, str]
) -> None:
    """It puts its row right, whatever the mirror has of it."""
    translates(oracle, not_these=(BAD, 'delete from "DEMO"."TWO" where "ID" = \'\'2\'\''))
    oracle.run(bad)
    source.run()
    assert len(quarantine(source)) == 1
    translates(oracle)
    oracle.run(later)
    source.run()
    assert mirror(source) == rows
    source.check_current("TWO")
    assert source.status("TWO").in_quarantine == 1


def test_a_partial_update_never_makes_a_row_of_parts(oracle: Oracle, source: Source) -> None:
    """An update does not carry the LOB of its row: behind a change in quarantine that may be of its row it goes there as well."""
    oracle.run(f"INSERT INTO ONE (ID, V, DOC) VALUES (3, '{BAD}', 'its document')")
    source.run()
    before = mirror(source, "ONE")
    translates(oracle)
    oracle.run("UPDATE ONE SET V = 'partial' WHERE ID = 3")
    source.run()
    assert mirror(source, "ONE") == before
    rows = source.lake.tables[ONE].in_quarantine.to_pylist()
    assert rows[-1]["reason"] == FOLLOWS
    assert (source.record("ONE").state, source.status("ONE").in_quarantine) == ("ready", len(rows))


def test_a_partial_update_of_another_row_goes_on(oracle: Oracle, source: Source) -> None:
    """The addresses of the rows say that it is another."""
    oracle.run(f"UPDATE ONE SET V = '{BAD}' WHERE ID = 1")
    translates(oracle)
    oracle.run("UPDATE ONE SET V = 'other' WHERE ID = 2")
    translates(oracle, not_these=(BAD,))
    source.run()
    assert mirror(source, "ONE") == {1: "first", 2: "other"}
    assert quarantine(source, ONE) == ["UPDATE"]


@pytest.mark.parametrize("changed", [1, 2], ids=["the-same-row", "another-row"])
def test_a_row_that_was_moved_since_may_be_any_row(
    oracle: Oracle, source: Source, changed: int
) -> None:
    """ALTER TABLE MOVE gives every row another address: which of them the quarantined one was, nobody knows."""
    oracle.run(f"UPDATE ONE SET V = '{BAD}' WHERE ID = 1")
    source.run()
    translates(oracle)
    oracle.run("ALTER TABLE ONE MOVE", f"UPDATE ONE SET V = 'whole' WHERE ID = {changed}")
    source.run()
    oracle.run("UPDATE ONE SET V = 'again' WHERE ID = 1")
    source.run()
    assert mirror(source, "ONE") == {1: "first", 2: "second"}
    reasons = [row["reason"] for row in source.lake.tables[ONE].in_quarantine.to_pylist()]
    assert reasons[1:] == [FOLLOWS, FOLLOWS]


def test_a_row_that_was_moved_and_changed_as_a_whole_is_right(
    oracle: Oracle, source: Source
) -> None:
    oracle.run(f"UPDATE TWO SET V = '{BAD}' WHERE ID = 1")
    source.run()
    translates(oracle)
    oracle.run("ALTER TABLE TWO MOVE", "UPDATE TWO SET V = 'whole' WHERE ID = 1")
    source.run()
    assert mirror(source) == {1: "whole", 2: "second"}
    assert quarantine(source) == ["UPDATE"], "and it stays until the table is read"


def differs(source: Source, monkeypatch: pytest.MonkeyPatch, *keys: int) -> None:
    """Let the comparison, which needs Spark, find these keys."""
    real = source.pipeline.table_record

    def compared(_ctx: object, table: TableId, at: int, **_options: object) -> object:
        assert real(table).mirror_scn == at
        schema = source.lake.tables[table].schema
        found = Differences(len(keys), tuple((Decimal(key),) for key in keys))
        return SimpleNamespace(schema=schema, differences=found, wanted=Suspects((), 0))

    monkeypatch.setattr("cdc_core.steps.reconciliation._compare", compared)


def test_a_repair_reads_the_row_and_settles_it(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other rows of the table are not read again."""
    oracle.run(f"INSERT INTO TWO VALUES (3, '{BAD}')", f"UPDATE ONE SET V = '{BAD}' WHERE ID = 1")
    source.run()
    assert [source.status(name).in_quarantine for name in ("ONE", "TWO")] == [1, 1]
    differs(source, monkeypatch, 3)
    reports = list(source.pipeline.repair([TWO]))
    assert [one.rows for one in reports if one.kind == "chunk-applied"] == [1]
    assert mirror(source) == {1: "first", 2: "second", 3: BAD}
    source.check_current("TWO")
    assert [source.status(name).in_quarantine for name in ("ONE", "TWO")] == [1, 0]
    [row] = source.lake.tables[TWO].quarantine.popitem()[1].to_pylist()
    assert row["resolved_scn"] >= row["_cdc_commit_scn"], "the text stays, and counts no more"


def test_a_repair_that_finds_nothing_settles_what_a_later_change_put_right(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle.run(f"UPDATE TWO SET V = '{BAD}' WHERE ID = 2")
    source.run()
    translates(oracle)
    oracle.run("UPDATE TWO SET V = 'whole' WHERE ID = 2")
    source.run()
    assert source.status("TWO").in_quarantine == 1
    differs(source, monkeypatch)
    assert list(source.pipeline.repair([TWO])) == []
    source.check_current("TWO")
    assert source.status("TWO").in_quarantine == 0


def test_a_store_made_anew_knows_what_is_in_quarantine(oracle: Oracle, source: Source) -> None:
    oracle.run(f"INSERT INTO TWO VALUES (3, '{BAD}')", "INSERT INTO TWO VALUES (4, 'fine')")
    oracle.run(f"UPDATE ONE SET V = '{BAD}' WHERE ID = 1")
    source.run()
    before = [source.record(name) for name in ("ONE", "TWO")]
    assert [one.in_quarantine for one in before] == [1, 1]
    source.close()
    for file in source.path.glob("state.db*"):
        file.unlink()
    assert source.pipeline.rebuild_state().is_written
    assert [source.record(name).in_quarantine for name in ("ONE", "TWO")] == [1, 1]
    translates(oracle, not_these=("another text",))
    oracle.run(
        "UPDATE ONE SET V = 'partial' WHERE ID = 1", "INSERT INTO TWO VALUES (5, 'another text')"
    )
    source.run()
    assert [source.status(name).in_quarantine for name in ("ONE", "TWO")] == [2, 2]
    assert mirror(source, "ONE")[1] == "first", "no row is made of parts"


def test_a_new_snapshot_settles_it(oracle: Oracle, source: Source) -> None:
    oracle.run(f"INSERT INTO TWO VALUES (3, '{BAD}')")
    source.run()
    source.pipeline.resnapshot_tables([TWO])
    source.run()
    assert source.status("TWO").in_quarantine == 0
    source.check_current("TWO")
    oracle.run(f"UPDATE TWO SET V = '{BAD} still' WHERE ID = 3")
    source.run()
    assert source.status("TWO").in_quarantine == 1


def test_what_a_transaction_took_back_is_not_in_quarantine(oracle: Oracle, source: Source) -> None:
    oracle.run(
        "INSERT INTO TWO VALUES (3, 'kept')",
        "SAVEPOINT before_it",
        f"INSERT INTO TWO VALUES (4, '{BAD}')",
        "ROLLBACK TO SAVEPOINT before_it",
    )
    source.run()
    source.check_current("TWO")
    assert quarantine(source) == []


def test_a_repeated_window_puts_it_there_once(oracle: Oracle, source: Source) -> None:
    """The process ends between the quarantine and the change log, and the better redo of the next attempt counts."""
    oracle.run(f"INSERT INTO TWO VALUES (3, '{BAD}')", "INSERT INTO TWO VALUES (4, 'fine')")

    def killed(call: str, table: TableId) -> None:
        if (call, table) == ("quarantined", TWO):
            raise Killed

    source.lake.before = killed
    with pytest.raises(Killed):
        source.run()
    source.lake.before = lambda _call, _table: None
    source.close()
    source.run()
    assert (quarantine(source), mirror(source)[4]) == (["INSERT"], "fine")
    assert source.status("TWO").in_quarantine == 1


def test_a_quarantine_that_is_lost_stops_its_table(oracle: Oracle, source: Source) -> None:
    """Nobody knows any more which rows of the mirror are not certain, before they are read again."""
    oracle.run(f"INSERT INTO TWO VALUES (3, '{BAD}')")
    source.windows()
    source.lake.tables[TWO].quarantine.clear()
    oracle.run("INSERT INTO TWO VALUES (4, 'fine')")
    source.run()
    assert source.record("TWO").state == "failed"
    assert "the quarantine, which records" in (source.record("TWO").reason or "")
    source.pipeline.resnapshot_tables([TWO])
    source.run()
    source.check_current("TWO")
    assert source.status("TWO").in_quarantine == 0


def test_too_many_rows_stop_the_table(oracle: Oracle, source: Source) -> None:
    """Nothing of the window is applied; the others go on."""
    oracle.run(*(f"INSERT INTO TWO VALUES ({number}, '{BAD}')" for number in range(3, 8)))
    oracle.run("INSERT INTO ONE VALUES (3, 'fine', 'a document')")
    source.run()
    one = source.record("TWO")
    assert (one.state, one.trouble, one.in_quarantine) == ("failed", "undecodable", 0)
    assert "quarantine_rows_max" in (one.way_out or "")
    assert mirror(source, "ONE")[3] == "fine"


def test_a_column_that_is_left_out_is_not_in_the_quarantines_text(
    oracle: Oracle, source: Source
) -> None:
    """Also where the row landed with its value."""
    oracle.run(f"INSERT INTO TWO VALUES (3, 'hidden {BAD}')")
    source.capture()
    source.configure("ONE", {"name": "TWO", "columns_exclude": ["V"]})
    source.run()
    [row] = source.lake.tables[TWO].in_quarantine.to_pylist()
    assert "hidden" not in (row["sql_redo"] or "")
    assert row["operation"] == "INSERT"


def test_a_truncate_is_no_matter_of_one_row(oracle: Oracle, source: Source) -> None:
    oracle.run("TRUNCATE TABLE TWO")
    source.run()
    assert (source.record("TWO").state, source.record("TWO").trouble) == ("failed", "truncate")
    assert quarantine(source) == []
