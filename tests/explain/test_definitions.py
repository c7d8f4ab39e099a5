"""What `redolake explain` makes of DDL in an export: each row by the definition of its time, and a reason where no definition can be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.model.identifiers import TableId
from diagnosis.explain.outcomes import Outcome
from tests.explain.exports import Rows, exported
from tests.explain.test_explain import Found, number_of
from tests.oracle.embedded import OWNER, running_oracle

_TABLE = f"CREATE TABLE {OWNER}.ITEMS (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), PRICE NUMBER(9), SECRET VARCHAR2(9))"


@pytest.fixture(scope="module")
def altered() -> Rows:
    """Rows of six definitions: columns are added, renamed, changed and dropped, and the table is emptied."""
    with running_oracle() as oracle:
        oracle.run(_TABLE)
        oracle.run("INSERT INTO ITEMS VALUES (1, 'one', 10, 'x')")
        oracle.run("ALTER TABLE ITEMS ADD (NOTE VARCHAR2(2000))")
        oracle.run("INSERT INTO ITEMS VALUES (2, 'two', 20, 'y', 'note')")
        oracle.run("ALTER TABLE ITEMS RENAME COLUMN NAME TO TITLE")
        oracle.run("UPDATE ITEMS SET TITLE = 'TWO' WHERE ID = 2")
        oracle.run("ALTER TABLE ITEMS MODIFY (PRICE NUMBER(11,2))")
        oracle.run("UPDATE ITEMS SET PRICE = 20.5 WHERE ID = 2")
        oracle.run("ALTER TABLE ITEMS DROP COLUMN SECRET")
        oracle.run("UPDATE ITEMS SET NOTE = NULL WHERE ID = 2")
        oracle.run("TRUNCATE TABLE ITEMS")
        oracle.run("INSERT INTO ITEMS VALUES (3, 'three', 30, NULL)")
        return exported(oracle, ["ITEMS"])


@pytest.fixture
def description(tmp_path: Path) -> Path:
    path = tmp_path / "items.sql"
    path.write_text(_TABLE)
    return path


def _changes(found: Found) -> list[object]:
    return [row.after or row.before for row in found.rows if row.op is not None]


def test_each_row_is_read_by_the_definition_of_its_time(
    altered: Rows, description: Path, tmp_path: Path
) -> None:
    found = Found(altered.write(tmp_path / "export.csv"), description)
    assert _changes(found) == [
        {"ID": 1, "NAME": "one", "PRICE": 10, "SECRET": "x"},
        {"ID": 2, "NAME": "two", "PRICE": 20, "SECRET": "y", "NOTE": "note"},
        {"ID": 2, "TITLE": "TWO", "PRICE": 20, "SECRET": "y", "NOTE": "note"},
        {"ID": 2, "TITLE": "TWO", "PRICE": "20.50", "SECRET": "y", "NOTE": "note"},
        {"ID": 2, "TITLE": "TWO", "PRICE": "20.50", "NOTE": None},
        {"ID": 3, "TITLE": "three", "PRICE": "30.00", "NOTE": None},
    ]
    assert Outcome.UNDECODABLE not in found.counts
    ddl = [row.why for row in found.rows if row.outcome is Outcome.DDL]
    assert ddl[:-1] == [
        "it creates the table: the rows behind it are read by the description",
        "rows behind it have NOTE",
        "NAME is TITLE behind it",
        "PRICE has a wider type behind it",
        "rows behind it have no SECRET",
    ]
    assert "with on_truncate: follow it removes them from the mirror" in (ddl[-1] or "")
    texts = altered.select("SQL_REDO").rows
    assert any('"COL 2"' in (sql or "") for (sql,) in texts), "rows without names"


def test_a_change_that_waited_for_a_ddl_is_read_by_what_the_ddl_made(
    altered: Rows, description: Path, tmp_path: Path
) -> None:
    """It can have the very SCN at which the DDL committed."""
    scn, sql = altered.columns.index("SCN"), altered.columns.index("SQL_REDO")
    renaming, *_ = (row[scn] for row in altered.rows if "RENAME COLUMN" in (row[sql] or ""))
    waited = next(at for at, row in enumerate(altered.rows, 1) if 'set "COL 2"' in (row[sql] or ""))
    rows = altered.changed(waited, SCN=renaming)
    found = Found(rows.write(tmp_path / "export.csv"), description)
    assert {"ID": 2, "TITLE": "TWO", "PRICE": 20, "SECRET": "y", "NOTE": "note"} in _changes(found)
    assert Outcome.UNDECODABLE not in found.counts


def test_a_description_from_behind_a_ddl_is_recognized(altered: Rows, tmp_path: Path) -> None:
    """Rows from before are read by it too, as far as it has their columns."""
    script = tmp_path / "items.sql"
    script.write_text(f"CREATE TABLE {OWNER}.ITEMS (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), PRICE NUMBER(9), SECRET VARCHAR2(9), NOTE VARCHAR2(2000))")  # fmt: skip
    found = Found(altered.write(tmp_path / "export.csv"), script)
    [added] = [row for row in found.rows if "ADD" in (row.sql_redo or "")]
    assert (added.way_out, (added.why or "")[:36]) == (None, "the description has what it does, so")
    assert _changes(found)[0] == {"ID": 1, "NAME": "one", "PRICE": 10, "SECRET": "x"}
    assert _changes(found)[-1] == {"ID": 3, "TITLE": "three", "PRICE": "30.00", "NOTE": None}
    assert Outcome.UNDECODABLE not in found.counts


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "its text does not say what it makes of the columns", id="no text"),
        pytest.param("ALTER TABLE ITEMS ADD (NOTE VARCH", "its text does not say", id="half a text"),
        pytest.param("ALTER TABLE ITEMS ADD (NOTE CLOB) MODIFY (ID NUMBER(9,", "its text does not say", id="cut in its second clause"),
        pytest.param("ALTER TABLE ITEMS ADD (NOTE BFILE)", "BFILE", id="a type that is not captured"),
        pytest.param("ALTER TABLE ITEMS ADD (NOTE DATE DEFAULT SYSDATE)", "DEFAULT", id="a default that no redo has"),
        pytest.param("ALTER TABLE ITEMS MODIFY (NAME NUMBER(9))", "columns changed their type: NAME", id="another type"),
        pytest.param("DROP TABLE ITEMS PURGE", "the table is dropped or renamed", id="dropped"),
        pytest.param("ALTER TABLE ITEMS RENAME TO GOODS", "the table is dropped or renamed", id="renamed"),
    ],
)  # fmt: skip
def test_rows_behind_a_ddl_that_nobody_follows_say_why(
    text: str, reason: str, altered: Rows, description: Path, tmp_path: Path
) -> None:
    """Those before it are read as ever."""
    number = number_of(altered, "ADD (NOTE")
    found = Found(
        altered.changed(number, SQL_REDO=text).write(tmp_path / "export.csv"), description
    )
    ddl = found.at(number)
    assert ddl.outcome is Outcome.DDL
    assert reason in (ddl.why or ""), ddl.why
    assert (ddl.why or "").startswith("a source ends the table's stream here")
    assert ddl.way_out
    assert _changes(found) == [{"ID": 1, "NAME": "one", "PRICE": 10, "SECRET": "x"}]
    behind = [row for row in found.rows if row.outcome is Outcome.UNDECODABLE]
    assert len(behind) == 5
    assert {row.why for row in behind} == {f"it comes after the DDL at row {number}: {ddl.why}"}
    assert all(row.sql_redo and row.way_out for row in behind)


def test_a_ddl_that_the_export_lacks_leaves_its_rows_undecodable(
    altered: Rows, description: Path, tmp_path: Path
) -> None:
    """What came with it is named; no column is guessed."""
    number = number_of(altered, "RENAME COLUMN")
    others = [one for one in range(1, len(altered.rows) + 1) if one != number]
    found = Found(altered.only(*others).write(tmp_path / "export.csv"), description)
    reasons = [row.why or "" for row in found.rows if row.outcome is Outcome.UNDECODABLE]
    assert reasons
    assert all("TITLE" in one for one in reasons)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("ALTER TABLE ITEMS ADD CONSTRAINT POSITIVE CHECK (PRICE > 0)", "leaves the columns as they are", id="a check"),
        pytest.param("ALTER TABLE ITEMS DROP PRIMARY KEY", "about keys or constraints", id="a key"),
        pytest.param("CREATE UNIQUE INDEX I ON ITEMS (NAME)", "leaves the columns as they are", id="an index"),
        pytest.param("GRANT SELECT ON ITEMS TO PUBLIC", "leaves the columns as they are", id="a grant"),
        pytest.param("ALTER TABLE ITEMS MOVE", "leaves the columns as they are", id="rows move"),
    ],
)  # fmt: skip
def test_ddl_that_is_not_about_columns_ends_nothing(
    text: str, why: str, altered: Rows, description: Path, tmp_path: Path
) -> None:
    number = number_of(altered, "TRUNCATE")
    redo = altered.changed(number, SQL_REDO=text).write(tmp_path / "export.csv")
    found = Found(redo, description)
    assert why in (found.at(number).why or "")
    assert found.at(number).way_out is None
    assert _changes(found)[-1] == {"ID": 3, "TITLE": "three", "PRICE": "30.00", "NOTE": None}
    if "MOVE" in text:
        keys = {TableId(OWNER, "ITEMS"): ["ROWID"]}
        found = Found(redo, description, keys=keys)
        assert "changes ROWIDs" in (found.at(number).why or "")
        assert found.rows[-2].outcome is Outcome.UNDECODABLE
