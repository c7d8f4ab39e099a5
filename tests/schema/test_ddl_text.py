"""What the text of a DDL says by itself, held against the present definition; where it does not suffice, nothing is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.config import TableConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.scn import Scn
from cdc_core.schema.ddl_text import differing, version_after
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


CONFIG = TableConfig(name="HR.EMP")
PLAIN = TableConfig(name="HR.EMP", columns_mask={"B": "stars(3)"})


def after(ddl: str, old: TableSchema = OLD, present: TableSchema | None = PRESENT, config: TableConfig = PLAIN) -> TableSchema | None:  # fmt: skip
    return version_after(old, ddl, present, config)


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
        'ALTER TABLE "HR"."EMP" ADD FOREIGN KEY (V) REFERENCES OTHER (V) ON DELETE SET NULL',
        "ALTER TABLE EMP MOVE TABLESPACE USERS",
        "ALTER TABLE EMP ADD PARTITION P VALUES LESS THAN (5)",
        "ALTER TABLE EMP MODIFY V DEFAULT 'a' || LOWER('B')",
        "ALTER TABLE EMP MODIFY (V CONSTRAINT C CHECK (V <> 'x') ENABLE NOVALIDATE, ID DROP IDENTITY)",
    ],
)
def test_statements_beside_the_columns_leave_the_version_as_it_is(ddl: str) -> None:
    assert after(ddl) == OLD


def test_added_columns_are_those_of_the_text() -> None:
    found = after("ALTER TABLE EMP ADD (A NUMBER(5), B VARCHAR2(22) DEFAULT 'it''s')")
    assert found == replace(
        OLD, columns=PRESENT.columns[:4], stored=("ID", "V", "A", "B"), masked=(("B", "stars(3)"),)
    )
    assert found.masked == (("B", "stars(3)"),)
    assert found.scn_from == OLD.scn_from


def test_an_added_column_that_is_left_out_is_in_the_rows_all_the_same() -> None:
    leaving = PLAIN.model_copy(update={"columns_exclude": ("C",)})
    found = after("alter table emp add (c date, a integer)", config=leaving)
    assert found is not None
    assert (found.column_names, found.excluded, found.stored) == (
        ("ID", "V", "A"),
        ("C",),
        ("ID", "V", "C", "A"),
    )
    found = after("ALTER TABLE EMP ADD (A AS (ID + 1), C DATE)")
    assert found is not None
    assert (found.column_names, found.excluded, found.stored) == (("ID", "V", "C"), ("A",), ("ID", "V", "C"))  # fmt: skip


GUARD = "SYS_NC00003$"


@pytest.mark.parametrize(
    ("ddls", "present", "stored"),
    [
        pytest.param(["ADD (B VARCHAR2(22) DEFAULT 'x')"], ("ID", "V", GUARD, "B"), ("ID", "V", GUARD, "B"), id="with-a-hidden-column"),
        pytest.param(["ADD (B VARCHAR2(22) DEFAULT 'x')"], ("ID", "V", "B"), ("ID", "V", "B"), id="without"),
        pytest.param(["ADD (B VARCHAR2(22) DEFAULT 'x')", "ADD (C DATE)"], ("ID", "V", GUARD, "B", "C"), ("ID", "V", GUARD, "B", "C"), id="and-another"),
        pytest.param(["ADD (C DATE)", "ADD (B VARCHAR2(22) DEFAULT 'x')"], ("ID", "V", "C", GUARD, "B"), ("ID", "V", "C", GUARD, "B"), id="behind-another"),
        pytest.param(["ADD (A NUMBER(5) DEFAULT 1, B VARCHAR2(22) DEFAULT 'x')"], ("ID", "V", GUARD, "A", "B"), ("ID", "V", GUARD, "A", "B"), id="once"),
        pytest.param(["ADD (A NUMBER(5) DEFAULT 1 NOT NULL, B VARCHAR2(22) DEFAULT 'x')"], ("ID", "V", "A", GUARD, "B"), ("ID", "V", "A", GUARD, "B"), id="not-of-a-column-that-is-not-null"),
        pytest.param(["ADD (B VARCHAR2(22) DEFAULT NULL)"], ("ID", "V", "B"), ("ID", "V", "B"), id="no-default"),
        pytest.param(["ADD (B VARCHAR2(22) DEFAULT 'x')"], ("ID", "V"), (), id="gone-since"),
    ],
)  # fmt: skip
def test_the_hidden_column_beside_a_default_is_where_the_present_has_it(
    ddls: list[str], present: tuple[str, ...], stored: tuple[str, ...]
) -> None:
    """Whether Oracle made one, no text says; COL 3 is it, or the column that was added."""
    found: TableSchema | None = OLD
    for ddl in ddls:
        assert found is not None
        found = after(f"ALTER TABLE EMP {ddl}", found, replace(PRESENT, stored=present), CONFIG)
    assert found is not None
    assert found.stored == stored


def types(schema: TableSchema | None) -> list[str]:
    """Columns with their types, as short as can be; the length of texts."""
    if schema is None:
        return ["?"]
    return [
        f"{one.name} {one.data_type} {one.precision or one.char_length or ''}{'' if one.nullable else '!'}"
        for one in schema.columns
        if one.name != "ID"
    ]


@pytest.mark.parametrize(
    ("ddls", "columns"),
    [
        pytest.param(["MODIFY V VARCHAR2(30)"], ["V VARCHAR2 30"], id="longer"),
        pytest.param(["MODIFY (V CHAR(3) DEFAULT 'a' NOT NULL)"], ["V CHAR 3!"], id="all-of-it"),
        pytest.param(["MODIFY (V NOT NULL)"], ["V VARCHAR2 22!"], id="no-type"),
        pytest.param(["MODIFY (V NOT NULL)", "MODIFY V NULL"], ["V VARCHAR2 22"], id="null-again"),
        pytest.param(["MODIFY V NOT NULL DISABLE"], ["V VARCHAR2 22"], id="disabled"),
        pytest.param(["MODIFY V DEFAULT ON NULL 'a'"], ["V VARCHAR2 22"], id="default-on-null"),
        pytest.param(
            ["MODIFY (V VARCHAR2(30 BYTE) CONSTRAINT C CHECK (V IS NOT NULL), ID NUMBER(12))"],
            ["V VARCHAR2 30"],
            id="several",
        ),
        pytest.param(["ADD X NUMBER(5)", "MODIFY X NUMBER(9)"], ["V VARCHAR2 22", "X NUMBER 9"], id="of-a-new-one"),
        pytest.param(["ADD X NUMBER(5) MODIFY V VARCHAR2(90)"], ["V VARCHAR2 90", "X NUMBER 5"], id="in-one-statement"),
        pytest.param(["MODIFY V DATE", "MODIFY V TIMESTAMP(9)"], ["V TIMESTAMP(9) "], id="moments"),
        pytest.param(["ADD X NUMBER(5)", "DROP COLUMN X"], ["V VARCHAR2 22"], id="comes-and-goes"),
        pytest.param(["DROP (V) CASCADE CONSTRAINTS"], [], id="goes"),
        pytest.param(["SET UNUSED COLUMN V", "ADD V DATE", "DROP UNUSED COLUMNS"], ["V DATE "], id="unused"),
        pytest.param(["RENAME COLUMN V TO W", 'MODIFY "W" VARCHAR2(9)'], ["W VARCHAR2 9"], id="renamed"),
        pytest.param(["ADD X VARCHAR2(2000)"], ["?"], id="may-be-a-lob"),
        pytest.param(["ADD X VARCHAR2(4000 BYTE)"], ["V VARCHAR2 22", "X VARCHAR2 4000"], id="bytes"),
        pytest.param(["ADD X VARCHAR2(900 CHAR)"], ["V VARCHAR2 22", "X VARCHAR2 900"], id="characters"),
        pytest.param(["ADD B VARCHAR2(2000)"], ["V VARCHAR2 22", "B VARCHAR2 2000"], id="is-no-lob-now"),
        pytest.param(["MODIFY V VARCHAR2(2000)"], ["V VARCHAR2 2000"], id="gets-longer-and-is-no-lob-now"),
    ],
)  # fmt: skip
def test_texts_one_after_the_other_say_what_the_table_was_in_between(
    ddls: list[str], columns: list[str]
) -> None:
    version: TableSchema | None = OLD
    for ddl in ddls:
        version = after(f"ALTER TABLE OTHER_NAME {ddl}", version) if version else None
    assert types(version) == columns
    if version is not None:
        names = [one for one in version.stored if not one.startswith("SYS_")]
        assert names == list(version.column_names)


def test_unused_columns_stay_in_the_rows_until_a_column_is_dropped() -> None:
    unused = after("ALTER TABLE EMP SET UNUSED (V)")
    assert unused is not None
    assert unused.stored == ("ID", "SYS_C_V$")
    more = after("ALTER TABLE EMP ADD (A NUMBER(5), C DATE)", unused)
    assert more is not None
    gone = after("ALTER TABLE EMP DROP COLUMN A", more)
    assert gone is not None
    assert gone.stored == ("ID", "C")


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("ADD A NUMBER(5) DEFAULT SYSDATE - 1", id="a-computed-default"),
        pytest.param("ADD A NUMBER(5) DEFAULT (1)", id="a-default-in-parentheses"),
        pytest.param("ADD V VARCHAR2(5)", id="was-there-before"),
        pytest.param("ADD A NUMBER(5) PRIMARY KEY", id="a-key"),
        pytest.param("ADD UNIQUE (V)", id="a-unique-constraint"),
        pytest.param("MODIFY V UNIQUE", id="a-unique-constraint-of-a-column"),
        pytest.param("ADD A NUMBER GENERATED ALWAYS AS IDENTITY", id="an-identity-column"),
        pytest.param("ADD PERIOD FOR LIFE", id="a-period"),
        pytest.param("ADD (A NUMBER(5)", id="cut-off"),
        pytest.param("ADD A VARCHAR2(5) DEFAULT 'x", id="cut-off-in-a-text"),
        pytest.param("MODIFY Z NUMBER(5)", id="modifies-an-unknown-one"),
        pytest.param("MODIFY ID NULL", id="opens-the-key"),
        pytest.param("DROP COLUMN ID", id="drops-the-key"),
        pytest.param("DROP COLUMN Z", id="drops-an-unknown-one"),
        pytest.param("DROP COLUMNS CONTINUE", id="goes-on-dropping"),
        pytest.param("RENAME COLUMN V TO B", id="renames-to-a-configured-one"),
        pytest.param("RENAME COLUMN Z TO W", id="renames-an-unknown-one"),
        pytest.param("RENAME COLUMN V TO ID", id="renames-to-a-known-one"),
        pytest.param("DROP CONSTRAINT C", id="drops-a-constraint"),
        pytest.param("DROP PRIMARY KEY", id="drops-the-primary-key"),
        pytest.param("MODIFY CONSTRAINT C DISABLE", id="disables-a-constraint"),
        pytest.param("ROW ARCHIVAL", id="row-archival"),
        pytest.param("RENAME TO OTHER", id="another-name"),
        pytest.param("ADD B DATE", id="masks-what-is-no-text"),
    ],
)
def test_what_the_text_does_not_say_is_not_guessed(ddl: str) -> None:
    assert after(f"ALTER TABLE EMP {ddl}") is None


@pytest.mark.parametrize("ddl", ["CREATE UNIQUE INDEX U ON EMP (V)", "DROP INDEX U"])
def test_an_index_may_be_the_key(ddl: str) -> None:
    assert after(ddl) is None


@pytest.mark.parametrize(
    ("text", "default"),
    [("1", "1"), ("-1.5", "-1.5"), ("+2", "2"), ("'a- b'", "'a- b'"), ("DATE '2026-01-01' NOT NULL", "DATE '2026-01-01'"), ("NULL", None)],
)  # fmt: skip
def test_the_default_of_an_added_column_is_that_of_its_text(text: str, default: str | None) -> None:
    found = after(f"ALTER TABLE EMP ADD X NUMBER(5) DEFAULT {text}")
    assert found is not None
    assert found.columns[-1].default == default


def test_a_table_of_another_object_or_key_is_another_table() -> None:
    ddl = "ALTER TABLE EMP ADD A NUMBER(5)"
    assert after(ddl, present=replace(PRESENT, object_id=78)) is None
    assert after(ddl, present=replace(PRESENT, key=("V",))) is None
    assert after(ddl, present=None) is not None


@pytest.mark.parametrize(
    ("shown", "differs"),
    [
        pytest.param(OLD, (), id="the-same"),
        pytest.param(replace(OLD, columns=(OLD.columns[0], replace(OLD.columns[1], length=9))), (), id="other-bytes"),
        pytest.param(replace(OLD, columns=(OLD.columns[0], replace(OLD.columns[1], char_length=9))), ("V",), id="another-length"),
        pytest.param(replace(OLD, columns=OLD.columns[:1]), ("V",), id="fewer-columns"),
        pytest.param(PRESENT, ("A", "B", "C"), id="more-columns"),
        pytest.param(replace(OLD, columns=OLD.columns[::-1]), ("ID", "V"), id="another-order"),
        pytest.param(replace(OLD, columns=(replace(OLD.columns[0], precision=5), OLD.columns[1])), ("ID",), id="another-type"),
        pytest.param(replace(OLD, stored=("ID", "SYS_NC00002$", "V")), ("SYS_NC00002$",), id="a-hidden-column"),
        pytest.param(replace(OLD, stored=()), (), id="not-known-what-rows-hold"),
    ],
)  # fmt: skip
def test_the_dictionary_checks_what_texts_say(shown: TableSchema, differs: tuple[str, ...]) -> None:
    assert differing(OLD, shown) == differs


def test_what_an_unread_text_names_may_have_become_anything() -> None:
    """All other columns are held against the dictionary still."""
    ddl = "ALTER TABLE EMP ADD (A NUMBER(5) UNIQUE, b VARCHAR2(9) UNIQUE, C DATE)"
    assert after(ddl) is None
    assert differing(OLD, PRESENT, ddl) == ()
    assert differing(OLD, PRESENT, ddl.replace("C DATE", "D DATE")) == ("C",)
    narrow = replace(OLD, columns=(replace(OLD.columns[0], precision=5), OLD.columns[1]))
    assert differing(narrow, PRESENT, ddl) == ("ID",)


LOCAL = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
KEEPING = replace(OLD, columns=(*OLD.columns, column("L", LOCAL)), time_zone="+02:00")


@pytest.mark.parametrize(
    ("ddl", "old", "present", "zone"),
    [
        pytest.param("ALTER TABLE EMP ADD A NUMBER(5)", KEEPING, None, "+02:00", id="kept"),
        pytest.param("ALTER TABLE EMP ADD M " + LOCAL, KEEPING, None, "+02:00", id="another"),
        pytest.param("ALTER TABLE EMP RENAME COLUMN L TO M", KEEPING, None, "+02:00", id="renamed"),
        pytest.param("ALTER TABLE EMP DROP COLUMN L", KEEPING, None, "", id="dropped"),
        pytest.param(
            "ALTER TABLE EMP ADD L " + LOCAL, replace(OLD, time_zone="+02:00"), None, "", id="added"
        ),
        pytest.param(
            "ALTER TABLE EMP ADD L " + LOCAL,
            OLD,
            replace(KEEPING, time_zone="-01:00"),
            "-01:00",
            id="added-and-still-there",
        ),
        pytest.param(
            "ALTER TABLE EMP ADD M " + LOCAL, OLD, KEEPING, "", id="added-and-another-is-there"
        ),
    ],
)
def test_the_zone_of_local_times_is_that_of_versions_with_a_column_in_common(
    ddl: str, old: TableSchema, present: TableSchema | None, zone: str
) -> None:
    """Oracle changes DBTIMEZONE only while there is no such column."""
    found = after(ddl, old, present, TableConfig(name="HR.EMP"))
    assert found is not None
    assert found.time_zone == zone
    assert from_json(TableSchema, as_json(found)) == found
