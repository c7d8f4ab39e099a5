"""Dictionary rows to schemas, without a database."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError, PreflightError
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.scn import Scn
from cdc_core.schema.dictionary_queries import LIST_MAX, tables_condition
from cdc_core.schema.dictionary_rows import TableKeys, schema_from_rows
from cdc_core.schema.table import TableSchema


def row(name: str, nullable: str = "N", hidden: str = "NO", virtual: str = "NO", default: str | None = None) -> tuple[Any, ...]:  # fmt: skip
    return (
        name,
        "NUMBER",
        22,
        0,
        10,
        0,
        nullable,
        default,
        hidden,
        virtual,
        None if virtual == "YES" else 1,
    )


def build(
    config: TableConfig,
    *columns: tuple[Any, ...],
    primary: tuple[str, ...] = (),
    unique: tuple[tuple[str, ...], ...] = (),
) -> TableSchema:
    return schema_from_rows(config, columns, TableKeys(primary, unique), object_id=7, scn=Scn(5))


EMP = TableConfig(name="hr.emp")


def test_hidden_and_virtual_columns_are_left_out_and_remembered() -> None:
    schema = build(
        EMP,
        row("ID"),
        row("V", virtual="YES"),
        row("H", hidden="YES"),
        row("N", "Y"),
        primary=("ID",),
    )
    assert schema.column_names == ("ID", "N")
    assert schema.excluded == ("V", "H")
    assert (schema.key, schema.object_id, schema.scn_from) == (("ID",), 7, 5)


@pytest.mark.parametrize("config", [EMP, TableConfig(name="hr.emp", key=("ID", "V"))])
def test_a_key_with_a_virtual_column_is_refused(config: TableConfig) -> None:
    columns = (row("ID"), row("V", virtual="YES"))
    with pytest.raises(
        PreflightError, match="virtual columns, which are not in the redo"
    ) as raised:
        build(config, *columns, primary=("ID", "V"), unique=(("ID", "V"),))
    assert raised.value.facts["columns"] == "V"
    assert build(EMP, *columns, primary=("ID", "V"), unique=(("ID",),)).key == ("ID",)


def test_a_table_without_a_key_that_has_documents_is_not_told_to_use_rowids() -> None:
    for kind, told in (("XMLTYPE", False), ("CLOB", True)):
        column = ("BODY", kind, 4000, 0, None, None, "Y", None, "NO", "NO", 2)
        with pytest.raises(PreflightError, match="no primary key") as raised:
            build(EMP, row("ID", "Y"), column)
        assert ("identity: rowid" in raised.value.hint) == told
        assert raised.value.hint.endswith("BODY.") != told


def derived(name: str, of: str, kind: str = "RAW", length: int = 34) -> tuple[Any, ...]:
    """A column that Oracle made for an index, or for statistics."""
    return (name, kind, length, 0, None, None, "Y", of, "YES", "YES", None)


def test_an_index_in_descending_order_is_a_key_and_one_on_an_expression_is_not() -> None:
    columns = (row("A"), row("B"), derived("SYS_NC00003$", '"B" '), derived("SYS_NC00004$", 'UPPER("A")'))  # fmt: skip
    assert build(EMP, *columns, unique=(("SYS_NC00004$",), ("A", "SYS_NC00003$"))).key == ("A", "B")
    with pytest.raises(PreflightError, match="no primary key"):
        build(EMP, *columns, unique=(("SYS_NC00004$",), ("A", "SYS_NC00004$")))


def test_what_oracle_derives_for_indexes_and_statistics_is_no_column_of_the_table() -> None:
    stored = (row("A"), ("N", "NUMBER", 22, 0, 9, 0, "Y", None, "NO", "NO", 2))
    more = (
        derived("SYS_NC00003$", '"N"', length=2251),
        derived("SYS_NC00004$", "JSON_QUERY(\"N\", '$')", "CLOB", 4000),
        derived("SYS_STSXYZ", 'SYS_OP_COMBINED_HASH("A","N")', "NUMBER", 22),
    )
    for identity in ("key", "rowid"):
        config = TableConfig(name="hr.emp", identity=identity)
        assert build(config, *stored, *more, primary=("A",)) == build(config, *stored, primary=("A",))  # fmt: skip


def test_excluded_columns_are_left_out() -> None:
    config = TableConfig(name="hr.emp", columns_exclude=("B",))
    assert build(config, row("ID"), row("B"), primary=("ID",)).column_names == ("ID",)


@pytest.mark.parametrize(
    ("text", "default"),
    [("1 ", "1"), (" NULL", None), ("null\n", None), (None, None), ("''", "''")],
)
def test_defaults_are_trimmed_and_null_is_none(text: str | None, default: str | None) -> None:
    schema = build(EMP, row("ID", default=text), primary=("ID",))
    assert schema.column("ID").default == default


@pytest.mark.parametrize(
    ("config", "primary", "unique", "key"),
    [
        pytest.param(EMP, ("A", "B"), (("C",),), ("A", "B"), id="primary-key-first"),
        pytest.param(EMP, (), (("A", "B"), ("C",)), ("C",), id="else-the-shortest-unique-index"),
        pytest.param(EMP, (), (("N",), ("A", "B")), ("A", "B"), id="not-over-nullable-columns"),
        pytest.param(EMP, (), (("SYS_NC01$",), ("C",)), ("C",), id="not-over-expressions"),
        pytest.param(
            TableConfig(name="hr.emp", key=("B",)), ("A",), (), ("B",), id="the-configured-key-wins"
        ),
    ],
)
def test_the_key_is_chosen(
    config: TableConfig, primary: tuple[str, ...], unique: tuple[tuple[str, ...], ...], key: object
) -> None:
    columns = [row("A"), row("B"), row("C"), row("N", "Y")]
    assert build(config, *columns, primary=primary, unique=unique).key == key


@pytest.mark.parametrize(
    ("config", "primary", "kind", "message"),
    [
        pytest.param(EMP, (), PreflightError, "set identity: rowid in the table", id="no-key"),
        pytest.param(
            TableConfig(name="hr.emp", key=("N",)), (), ConfigError, "may be NULL", id="nullable-key"
        ),
        pytest.param(
            TableConfig(name="hr.emp", key=("X",)), (), ConfigError, "does not have", id="unknown-key"
        ),
        pytest.param(
            TableConfig(name="hr.emp", columns_exclude=("A",)), ("A",), ConfigError,
            "primary key", id="key-excluded",
        ),
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_trusted_is_refused(
    config: TableConfig, primary: tuple[str, ...], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        build(config, row("A"), row("N", "Y"), primary=primary)


BY_ROW_ID = TableConfig(name="hr.emp", identity="rowid")


def test_the_rowid_is_a_column_of_its_own_and_the_key() -> None:
    """Whatever key the table has besides."""
    schema = build(BY_ROW_ID, row("A"), row("N", "Y"), primary=("A",))
    assert schema.column_names == ("_cdc_row_id", "A", "N")
    assert (schema.key, schema.is_by_row_id) == (("_cdc_row_id",), True)
    assert schema.as_in_rows().column_names == ("A", "N")
    assert from_json(TableSchema, as_json(schema)) == schema


@pytest.mark.parametrize(
    "config",
    [BY_ROW_ID, TableConfig(name="hr.emp", identity="rowid", columns_exclude=("X",))],
    ids=["captured", "left-out"],
)
def test_a_table_with_documents_is_not_known_by_rowids(config: TableConfig) -> None:
    column = ("X", "XMLTYPE", 2000, *row("X")[3:])
    with pytest.raises(ConfigError, match="does not always show the ROWIDs"):
        build(config, row("A"), column)


@pytest.mark.parametrize(
    ("kind", "length", "excluded", "placeholders"),
    [
        pytest.param("CLOB", 4000, (), True, id="lob"),
        pytest.param("VARCHAR2", 32767, (), True, id="extended-text"),
        pytest.param("BLOB", 4000, ("X",), True, id="lob-left-out"),
        pytest.param("VARCHAR2", 4000, (), False, id="text"),
    ],
)
def test_rows_of_tables_with_lobs_have_placeholders_for_the_rowids_that_identify_them(
    kind: str, length: int, excluded: tuple[str, ...], placeholders: bool
) -> None:
    column = ("X", kind, length, *row("X")[3:])
    config = TableConfig(name="hr.emp", identity="rowid", columns_exclude=excluded)
    schema = build(config, row("A"), column)
    assert schema.has_placeholders is placeholders
    assert from_json(TableSchema, as_json(schema)).has_placeholders is placeholders
    assert not build(EMP, row("A"), column, primary=("A",)).has_placeholders


def test_an_index_organized_table_is_not_known_by_rowids() -> None:
    with pytest.raises(ConfigError, match="index-organized"):
        schema_from_rows(
            BY_ROW_ID,
            [row("A")],
            TableKeys(["A"]),
            object_id=7,
            scn=Scn(5),
            is_index_organized=True,
        )


@pytest.mark.parametrize("config", [EMP, TableConfig(name="hr.emp", columns_exclude=("X",))])
def test_an_index_organized_table_with_lobs_is_refused(config: TableConfig) -> None:
    columns = [row("A"), ("X", "CLOB", 4000, *row("X")[3:])]
    with pytest.raises(PreflightError, match="no addresses"):
        schema_from_rows(
            config, columns, TableKeys(["A"]), object_id=7, scn=Scn(5), is_index_organized=True
        )


@pytest.mark.parametrize(
    "given", [{"name": "hr.emp", "key": ("A",)}, {"name": "hr.*"}], ids=["key", "pattern"]
)
def test_identity_is_for_one_table_without_a_key(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="identity"):
        TableConfig(**given, identity="rowid")


def test_a_predicate_of_many_tables_has_one_term_per_owner_and_lists_that_oracle_takes() -> None:
    tables = [TableId("HR", f"T{n}") for n in range(2500)] + [TableId("SALES", "T1")]
    condition, binds = tables_condition([*tables, tables[0]], "OWNER", "TABLE_NAME", "p_")
    lists = re.findall(r"TABLE_NAME IN \(([^)]*)\)", condition)
    assert [len(one.split(", ")) for one in lists] == [LIST_MAX, LIST_MAX, 500, 1]
    assert condition.count("OWNER = ") == 2
    named = [name.removeprefix(":") for one in lists for name in one.split(", ")]
    assert sorted([*named, "p_o0", "p_o1"]) == sorted(binds)
    assert sorted(binds.values()) == sorted(["HR", "SALES", *(one.name for one in tables)])


def test_a_predicate_keeps_tables_of_one_name_apart_by_their_owners() -> None:
    condition, binds = tables_condition(
        [TableId("SALES", "T2"), TableId("HR", "T1"), TableId("SALES", "T1")], "OWNER", "TABLE_NAME"
    )
    assert condition == (
        "(OWNER = :o0 AND (TABLE_NAME IN (:n0)) OR OWNER = :o1 AND (TABLE_NAME IN (:n1, :n2)))"
    )
    assert binds == {"o0": "HR", "n0": "T1", "o1": "SALES", "n1": "T1", "n2": "T2"}
