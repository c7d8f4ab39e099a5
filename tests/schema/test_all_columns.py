"""Tables whose rows the values of all columns identify: what they may not lack, and what of their definition may change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError
from cdc_core.model.scn import Scn
from cdc_core.schema.all_columns import refuse_all_columns
from cdc_core.schema.dictionary_rows import TableKeys, schema_from_rows
from cdc_core.schema.evolution import judge
from cdc_core.schema.table import ROW_DIGEST, ROW_DIGEST_COLUMN, Column, TableSchema

NUMBER = Column("N", "NUMBER", 22, 0, 9, 0, nullable=True)
LOOSE = Column("L", "NUMBER", 22, 0, None, None, nullable=True)
TEXT = Column("T", "VARCHAR2", 40, 40, None, None, nullable=True)
FIXED = Column("F", "CHAR", 4, 4, None, None, nullable=True)


def counted(**options: Any) -> TableConfig:
    return TableConfig(name="HR.LOG", identity="all_columns", **options)


def a(data_type: str, length: int = 10) -> Column:
    return Column("C", data_type, length, length, None, None, nullable=True)


@pytest.mark.parametrize(
    ("options", "column", "why"),
    [
        pytest.param({"columns_exclude": ("T",)}, NUMBER, "T (excluded)", id="excluded"),
        pytest.param({"columns_mask": {"T": "stars(3)"}}, NUMBER, "T (masked)", id="masked"),
        pytest.param({"columns_as": {"L": "double"}}, NUMBER, "L (held as double, which rounds)", id="rounded"),
        pytest.param({"types_as": {"NUMBER": "double"}}, a("CHAR"), "N (held as double, which rounds), L (held as double, which rounds)", id="rounded-by-type"),
        *(
            pytest.param({}, a(kind), f"C ({kind}, stored as a LOB)", id=kind)
            for kind in ("CLOB", "NCLOB", "BLOB", "XMLTYPE", "JSON")
        ),
        pytest.param({}, a("VARCHAR2", 32767), "C (VARCHAR2, stored as a LOB)", id="extended"),
        pytest.param({"types_as": {"LONG": "snapshot"}}, a("LONG"), "C (LONG, which is not captured)", id="snapshots-alone"),
        *(
            pytest.param({}, a(kind), f"C ({kind}, which is not captured)", id=kind)
            for kind in ("LONG", "LONG RAW", "BFILE", "UROWID", "SDO_GEOMETRY")
        ),
    ],
)  # fmt: skip
def test_what_keeps_a_value_from_the_lake_is_refused_with_its_column(
    options: dict[str, Any], column: Column, why: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        refuse_all_columns(
            counted(**options), [NUMBER, LOOSE, TEXT, column], is_index_organized=False
        )
    assert raised.value.facts["columns"] == why
    assert "identity: rowid" in raised.value.hint


def test_all_that_is_wrong_is_said_at_once() -> None:
    config = counted(columns_exclude=("N",), columns_mask={"T": "stars(3)"})
    with pytest.raises(ConfigError) as raised:
        refuse_all_columns(config, [NUMBER, TEXT, a("CLOB")], is_index_organized=False)
    assert str(raised.value.facts["columns"]).count("(") == 3


def test_exact_forms_are_taken() -> None:
    config = counted(columns_as={"L": "text", "N": "decimal(20,2)"})
    refuse_all_columns(config, [NUMBER, LOOSE, TEXT, FIXED], is_index_organized=False)


def test_an_index_organized_table_has_a_key() -> None:
    with pytest.raises(ConfigError, match="has a primary key") as raised:
        refuse_all_columns(counted(), [NUMBER], is_index_organized=True)
    assert "Leave identity out" in raised.value.hint


def test_a_table_from_the_dictionary_is_refused_before_anything_is_read_of_it() -> None:
    columns = [("N", "NUMBER", 22, 0, 9, 0, "Y", None, "NO", "NO", 1)]
    for index, config in ((False, counted(columns_exclude=("N",))), (True, counted())):
        with pytest.raises(ConfigError, match=r"not have them all|not for an index-organized"):
            schema_from_rows(
                config, columns, TableKeys(), object_id=7, scn=Scn(5), is_index_organized=index
            )


@pytest.mark.parametrize("given", [{"name": "HR.*"}, {"name": "HR.LOG", "key": ("N",)}])
def test_the_identity_is_for_one_table_without_a_key(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="identity"):
        TableConfig(**given, identity="all_columns")


def version(*columns: Column) -> TableSchema:
    table = counted().table
    return TableSchema(table, Scn(1), (ROW_DIGEST_COLUMN, *columns), key=(ROW_DIGEST,))


BEFORE = version(NUMBER, TEXT, FIXED)


@pytest.mark.parametrize(
    ("after", "named"),
    [
        pytest.param(version(NUMBER, TEXT, FIXED, LOOSE), "L", id="added"),
        pytest.param(version(NUMBER, FIXED), "T", id="dropped"),
        pytest.param(version(NUMBER, TEXT, replace(FIXED, length=8, char_length=8)), "F", id="padded"),
        pytest.param(version(NUMBER, TEXT, replace(FIXED, data_type="VARCHAR2")), "F", id="no longer padded"),
        pytest.param(version(NUMBER, replace(TEXT, name="U"), FIXED), "T", id="renamed"),
        pytest.param(version(replace(NUMBER, precision=30), TEXT, FIXED), "N", id="retyped"),
    ],
)  # fmt: skip
def test_what_changes_the_columns_is_not_followed(after: TableSchema, named: str) -> None:
    evolution = judge(BEFORE, after)
    assert evolution.trouble == "unsupported_ddl"
    assert evolution.refusal is not None
    assert evolution.refusal.endswith(f": {named}")
    assert not evolution.steps


def test_what_leaves_all_values_as_they_are_is_followed() -> None:
    longer = replace(TEXT, length=80, char_length=80)
    assert judge(BEFORE, version(replace(NUMBER, precision=12), longer, FIXED)).refusal is None
    assert judge(BEFORE, replace(BEFORE, excluded=("V",))).refusal is None
    assert judge(BEFORE, BEFORE).steps == ()
