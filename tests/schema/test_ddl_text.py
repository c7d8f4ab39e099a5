"""What the text of a DDL says by itself, held against the present definition; where it does not suffice, nothing is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.ddl_text import version_after
from cdc_core.schema.table import Column, TableSchema


def column(
    name: str,
    kind: str = "NUMBER",
    *,
    length: int = 22,
    default: str | None = None,
    precision: int | None = None,
) -> Column:
    scale = None if precision is None else 0
    return Column(name, kind, length, length, precision, scale, True, default)


OLD = TableSchema(
    TableId("HR", "EMP"),
    Scn(5),
    (column("ID", precision=9), column("V", "VARCHAR2")),
    ("ID",),
    77,
    stored=("ID", "V"),
)
PRESENT = replace(
    OLD,
    columns=(
        *OLD.columns,
        column("A", precision=5),
        column("B", "VARCHAR2", default="'it''s'"),
        column("C", "DATE"),
    ),
    stored=(*OLD.stored, "A", "B", "C"),
    masked=(("B", "stars"),),
)


@pytest.mark.parametrize(
    "ddl",
    [
        "COMMENT ON TABLE EMP IS 'ADD X NUMBER'",
        "grant select, update on emp to public",
        "CREATE INDEX I ON EMP (V)",
        "/* DROP */ ALTER INDEX I REBUILD",
        "ALTER TABLE EMP ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
        "ALTER TABLE HR.EMP ADD SUPPLEMENTAL LOG GROUP G (ID) ALWAYS",
        "ALTER TABLE EMP ADD CONSTRAINT C CHECK (V <> 'MODIFY')",
        'ALTER TABLE "HR"."EMP" ADD FOREIGN KEY (V) REFERENCES OTHER (V)',
    ],
)
def test_statements_beside_the_columns_leave_the_version_as_it_is(ddl: str) -> None:
    assert version_after(OLD, ddl, PRESENT, ()) == OLD


def test_added_columns_are_those_of_the_present_definition() -> None:
    found = version_after(
        OLD, "ALTER TABLE EMP ADD (A NUMBER(5), B VARCHAR2(5) DEFAULT 'it''s')", PRESENT, ()
    )
    assert found == replace(
        OLD, columns=PRESENT.columns[:4], stored=("ID", "V", "A", "B"), masked=(("B", "stars"),)
    )
    assert found.masked == (("B", "stars"),)
    assert found.scn_from == OLD.scn_from


def test_an_added_column_that_is_left_out_is_in_the_rows_all_the_same() -> None:
    found = version_after(OLD, "alter table emp add (c date, a integer)", PRESENT, ("C",))
    assert found is None, "A is another number"
    found = version_after(OLD, "alter table emp add (c date, a number(5))", PRESENT, ("C",))
    assert found is not None
    assert (found.column_names, found.excluded, found.stored) == (
        ("ID", "V", "A"),
        ("C",),
        ("ID", "V", "C", "A"),
    )


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("ALTER TABLE EMP ADD A NUMBER(4)", id="another-precision"),
        pytest.param("ALTER TABLE EMP ADD A VARCHAR2(5)", id="another-type"),
        pytest.param("ALTER TABLE EMP ADD B VARCHAR2(5)", id="no-default"),
        pytest.param("ALTER TABLE EMP ADD B VARCHAR2(5) DEFAULT 'its'", id="another-default"),
        pytest.param("ALTER TABLE EMP ADD A NUMBER(5) DEFAULT 1", id="a-default"),
        pytest.param("ALTER TABLE EMP ADD Z NUMBER(5)", id="is-not-there-now"),
        pytest.param("ALTER TABLE EMP ADD V VARCHAR2(5)", id="was-there-before"),
        pytest.param("ALTER TABLE EMP ADD A NUMBER(5) PRIMARY KEY", id="a-key"),
        pytest.param("ALTER TABLE EMP ADD UNIQUE (V)", id="a-unique-constraint"),
        pytest.param("ALTER TABLE EMP ADD A NUMBER(5) DROP COLUMN V", id="drops-as-well"),
        pytest.param(
            "ALTER TABLE EMP ADD (A NUMBER(5)) MODIFY V VARCHAR2(90)", id="modifies-as-well"
        ),
        pytest.param("ALTER TABLE EMP ADD A NUMBER(5) INVISIBLE", id="invisible"),
        pytest.param("ALTER TABLE EMP ADD A AS (ID + 1)", id="virtual"),
        pytest.param("ALTER TABLE EMP ADD PARTITION P VALUES LESS THAN (5)", id="a-partition"),
        pytest.param("ALTER TABLE EMP RENAME COLUMN V TO W", id="renames"),
        pytest.param("ALTER TABLE EMP ADD (A NUMBER(5)", id="cut-off"),
        pytest.param("CREATE UNIQUE INDEX U ON EMP (V)", id="a-unique-index"),
        pytest.param("DROP INDEX U", id="drops-an-index"),
    ],
)
def test_what_the_text_does_not_say_is_not_guessed(ddl: str) -> None:
    assert version_after(OLD, ddl, PRESENT, ()) is None


def test_a_table_of_another_object_or_key_is_another_table() -> None:
    ddl = "ALTER TABLE EMP ADD A NUMBER(5)"
    assert version_after(OLD, ddl, replace(PRESENT, object_id=78), ()) is None
    assert version_after(OLD, ddl, replace(PRESENT, key=("V",)), ()) is None
