"""Which changes of a table are followed, and which stop the pipeline?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.scn import Scn
from cdc_core.schema.evolution import (
    AddColumn,
    DropColumn,
    RedefineColumn,
    RenameColumn,
    held_by,
    identified,
    judge,
    key_after,
)
from cdc_core.schema.table import Column, TableSchema

ID = Column("ID", "NUMBER", 22, 0, 10, 0, False)
NAME = Column("NAME", "VARCHAR2", 40, 10, None, None, True)
NOTE = Column("NOTE", "VARCHAR2", 40, 10, None, None, True)
OLD = TableSchema(TableId("HR", "EMP"), Scn(1), (ID, NAME), ("ID",), 7)


def changed(**parts: object) -> TableSchema:
    return replace(OLD, scn_from=Scn(2), **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(changed(), id="nothing-captured-changed"),
        pytest.param(changed(columns=(ID, replace(NAME, nullable=False))), id="became-not-null"),
        pytest.param(changed(columns=(ID, replace(NAME, default="'x'"))), id="new-default"),
        pytest.param(changed(object_id=0), id="object-id-unknown"),
    ],
)
def test_what_leaves_the_captured_columns_alone_is_no_change(new: TableSchema) -> None:
    evolution = judge(OLD, new)
    assert (evolution.steps, evolution.refusal, evolution.is_new_version) == ((), None, False)


def test_appended_columns_are_followed() -> None:
    new = changed(columns=(ID, NAME, NOTE, replace(NOTE, name="N2", default="'x'")))
    evolution = judge(OLD, new)
    assert list(evolution.steps) == [AddColumn(column) for column in new.columns[2:]]
    assert evolution.is_new_version


def test_a_longer_text_column_is_a_new_version_without_work_for_the_lake() -> None:
    longer = replace(NAME, char_length=20, length=80)
    evolution = judge(OLD, changed(columns=(ID, longer)))
    assert evolution.steps == (RedefineColumn(NAME, longer),)
    assert evolution.is_new_version
    assert not evolution.added


def test_a_dropped_column_is_kept_by_the_lake_and_its_name_stays_taken() -> None:
    new = changed(columns=(ID,), stored=("ID",))
    evolution = judge(OLD, new)
    assert evolution.steps == (DropColumn(NAME),)
    followed = evolution.followed(OLD, new)
    assert (followed.column_names, followed.dropped) == (("ID",), ("NAME",))
    held = followed.keeping(OLD)
    assert held.column_names == ("ID", "NAME")
    assert held.in_oracle().column_names == ("ID",)
    assert from_json(TableSchema, as_json(followed)).dropped == ("NAME",)
    later = replace(followed, scn_from=Scn(3), columns=(ID, NOTE))
    assert judge(followed, later).followed(followed, replace(later, dropped=())).dropped == ("NAME",)  # fmt: skip
    assert later.keeping(held).column_names == ("ID", "NAME", "NOTE")
    assert held_by([OLD, followed, later]) == later.keeping(held)


RENAME = "ALTER TABLE EMP RENAME COLUMN NAME TO TITLE"
TITLE = replace(NAME, name="TITLE")


def test_a_renamed_column_keeps_its_place_and_what_it_is_stored_as() -> None:
    old = replace(OLD, columns=(ID, NAME, NOTE), stored=("ID", "NAME", "NOTE"))
    new = replace(old, scn_from=Scn(2), columns=(ID, TITLE, NOTE), stored=("ID", "TITLE", "NOTE"))
    new = identified(old, new, RENAME)
    evolution = judge(old, new)
    assert evolution.steps == (RenameColumn("NAME", "TITLE"),)
    followed = evolution.followed(old, new)
    assert followed.stored_names == {"ID": "ID", "TITLE": "NAME", "NOTE": "NOTE"}
    assert followed.keeping(old) == followed
    assert old.keeping(followed) == replace(old, columns=new.columns)
    assert from_json(TableSchema, as_json(followed)).columns == followed.columns

    again = replace(followed, scn_from=Scn(3), columns=(ID, replace(NAME, name="T2"), NOTE))
    again = identified(followed, again, "alter table emp rename column title to t2 -- x")
    third = judge(followed, again).followed(followed, again)
    assert third.stored_names == {"ID": "ID", "T2": "NAME", "NOTE": "NOTE"}
    assert judge(old, third.keeping(old)).steps[0] == RenameColumn("NAME", "T2")
    assert third.keeping(old).column_names == ("ID", "T2", "NOTE")
    assert held_by([old, followed, third]) == third


@pytest.mark.parametrize(
    ("columns", "ddl"),
    [
        pytest.param((ID, TITLE), "ALTER TABLE EMP DROP COLUMN NAME", id="another-ddl"),
        pytest.param((ID, TITLE), RENAME.replace("TITLE", "OTHER"), id="another-name"),
        pytest.param((ID, TITLE), "COMMENT ON TABLE EMP IS 'RENAME COLUMN NAME TO TITLE'", id="a-text"),
        pytest.param((TITLE, ID), RENAME, id="another-place"),
        pytest.param((ID, replace(TITLE, data_type="DATE")), RENAME, id="another-type"),
        pytest.param((replace(ID, name="N"), NAME), RENAME.replace("NAME TO TITLE", "ID TO M"), id="the-key"),
    ],
)  # fmt: skip
def test_a_rename_that_dictionary_and_text_do_not_agree_on_is_refused(
    columns: tuple[Column, ...], ddl: str
) -> None:
    key = ("N",) if columns[0].name == "N" else ("ID",)
    new = identified(OLD, changed(columns=columns, key=key), ddl)
    evolution = judge(OLD, new)
    assert (evolution.refusal is not None, evolution.trouble) == (True, "unsupported_ddl")


def test_a_column_of_the_key_that_is_renamed_is_the_key_still() -> None:
    """A key of other columns is another key, whatever they are called."""
    ddl = RENAME.replace("NAME TO TITLE", "ID TO N")
    renamed = changed(columns=(replace(ID, name="N"), NAME), key=("N",))
    evolution = judge(OLD, identified(OLD, renamed, ddl))
    assert evolution.steps == (RenameColumn("ID", "N"),)
    renamed = identified(OLD, renamed, ddl)
    assert held_by([OLD, evolution.followed(OLD, renamed)]).key == ("N",)  # type: ignore[union-attr]
    assert key_after(("ID", "NAME"), ddl) == ("N", "NAME")
    other = identified(OLD, replace(renamed, key=("NAME",)), ddl)
    assert judge(OLD, other).refusal == "the key changed from (ID) to (NAME)"


@pytest.mark.parametrize(
    ("old", "new", "is_followed"),
    [
        pytest.param(("CHAR", 4, 4), ("CHAR", 8, 8), False, id="longer"),
        pytest.param(("CHAR", 4, 4), ("CHAR", 16, 4), False, id="characters-in-place-of-bytes"),
        pytest.param(("VARCHAR2", 4, 4), ("CHAR", 4, 4), False, id="gets-blanks"),
        pytest.param(("CHAR", 4, 4), ("VARCHAR2", 4, 4), True, id="keeps-its-blanks"),
        pytest.param(("NCHAR", 8, 4), ("NCHAR", 16, 8), False, id="national"),
    ],
)
def test_a_char_of_another_length_has_other_values(
    old: tuple[str, int, int], new: tuple[str, int, int], *, is_followed: bool
) -> None:
    """Database Administrator's Guide, "Modifying an Existing Column Definition": the value in each row is padded to the new length."""
    before, after = (
        replace(OLD, columns=(ID, Column("NAME", *one, None, None, nullable=True)))
        for one in (old, new)
    )
    refusal = judge(before, after).refusal
    assert (refusal is None) == is_followed
    assert is_followed or "other blanks" in (refusal or "")


def test_a_masked_column_under_another_name_has_no_mask() -> None:
    """A pattern's configuration may name the old name still, and no value may land."""
    old = replace(OLD, masked=(("NAME", "hash"),))
    evolution = judge(old, identified(old, changed(columns=(ID, TITLE)), RENAME))
    assert evolution.refusal == "masked columns were renamed: NAME"
    assert evolution.trouble == "unsupported_ddl"


@pytest.mark.parametrize(
    ("ddl", "names"),
    [
        (RENAME, ("NAME", "TITLE")),
        ('alter table "HR"."EMP" rename /* c */ column "NAME" to "a b"', ("NAME", "a b")),
        ("ALTER TABLE emp RENAME COLUMN\n name\tTO title$1#;", ("NAME", "TITLE$1#")),
    ],
)
def test_names_are_read_as_oracle_reads_them(ddl: str, names: tuple[str, str]) -> None:
    named = replace(NAME, name=names[1])
    new = identified(OLD, changed(columns=(ID, named)), ddl)
    assert new.stored_names == {"ID": "ID", names[1]: names[0]}


def test_an_excluded_column_stays_excluded_under_another_name() -> None:
    old = OLD.without(["NAME"])
    new = identified(old, changed(columns=(ID, TITLE), excluded=("NAME",)), RENAME)
    assert (new.column_names, judge(old, new).steps) == (("ID",), ())


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(changed(excluded=("V",)), id="another-column-is-passed-over"),
        pytest.param(changed(stored=("ID", "V", "NAME")), id="rows-hold-another-column"),
    ],
)
def test_what_rows_hold_is_a_new_version_even_if_no_captured_column_changed(
    new: TableSchema,
) -> None:
    evolution = judge(OLD, new)
    assert (evolution.steps, evolution.refusal, evolution.is_new_version) == ((), None, True)


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        pytest.param(
            changed(columns=(ID,), excluded=("NAME",)), "virtual or excluded", id="left-out"
        ),
        pytest.param(
            changed(columns=(ID, NOTE)), "nothing says which is which: NAME", id="one-for-another"
        ),
        pytest.param(
            changed(columns=(ID, NOTE, replace(NAME, name="N2"))), "others came", id="two-for-one"
        ),
        pytest.param(
            changed(columns=(replace(ID, data_type="DATE"), NAME)), "type: ID", id="other-type"
        ),
        pytest.param(changed(columns=(ID, NOTE, NAME)), "order", id="insert-in-the-middle"),
        pytest.param(changed(key=("ID", "NAME")), "key changed", id="other-key"),
        pytest.param(changed(object_id=8), "created again", id="dropped-and-created"),
    ],
)
def test_everything_else_is_refused_with_its_reason(new: TableSchema, reason: str) -> None:
    evolution = judge(OLD, identified(OLD, new))
    assert not evolution.steps
    assert reason in (evolution.refusal or "")
    assert evolution.trouble == ("drop" if new.object_id == 8 else "unsupported_ddl")


def test_delta_tables_keep_what_was_left_out_until_they_begin_anew() -> None:
    without = changed().without(["NAME"])
    retyped = replace(changed(columns=(ID, replace(NAME, data_type="NUMBER"))), scn_from=Scn(3))
    assert held_by([]) is None
    assert held_by([OLD, without]) == replace(OLD, scn_from=Scn(2))
    assert held_by([OLD, without, retyped]) == retyped
