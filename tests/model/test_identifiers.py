"""The text of a table's name is what people type to name it."""

from __future__ import annotations

import shlex

import pytest

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, split_container
from cdc_core.model.patterns import TablePattern
from cdc_core.signals.data_collections import table_from_collection

TABLES = [
    pytest.param(TableId("HR", "EMP"), "HR.EMP", "hr.emp", id="plain"),
    pytest.param(TableId("HR", "Dept"), 'HR."Dept"', "hr._Dept", id="mixed case"),
    pytest.param(TableId("hr", "emp"), '"hr"."emp"', "_hr._emp", id="lower case"),
    pytest.param(TableId("HR", "ORDER LINES"), 'HR."ORDER LINES"', "hr._ORDER_20LINES", id="blank"),
    pytest.param(TableId("A.B", "C"), '"A.B".C', "_A_2eB.c", id="a dot in the owner"),
    pytest.param(TableId("A", "B.C"), 'A."B.C"', "a._B_2eC", id="a dot in the name"),
    pytest.param(TableId("SYS", "A$B#_1"), "SYS.A$B#_1", "sys._A_24B_23_5f1", id="signs"),
    pytest.param(TableId("HR", "1ST"), 'HR."1ST"', "hr._1ST", id="a digit first"),
    pytest.param(TableId("HR", "É'T"), 'HR."É\'T"', "hr.__c9_27T", id="accent and quote"),
    pytest.param(TableId("HR", "T€"), 'HR."T€"', "hr._T_u0020ac", id="euro sign"),
    pytest.param(TableId("HR", "T ac"), 'HR."T ac"', "hr._T_20ac", id="the euro sign's digits"),
    pytest.param(TableId("HR", "a/b"), 'HR."a/b"', "hr._a_2fb", id="slash"),
    pytest.param(TableId("HR", "SELECT"), "HR.SELECT", "hr.select", id="reserved word"),
]


@pytest.mark.parametrize(("table", "text", "path"), TABLES)
def test_a_name_is_printed_as_it_is_read(table: TableId, text: str, path: str) -> None:
    assert str(table) == text
    assert TableId.parse(text) == TableId.parse(table.sql) == table
    assert TableConfig(name=text).table == table
    assert table_from_collection(text) == table_from_collection(f"PDB1.{text}") == table
    assert table.path == path, "folders and asset keys keep their form"


@pytest.mark.parametrize(("table", "text", "path"), TABLES)
def test_a_name_in_a_hint_survives_the_shell(table: TableId, text: str, path: str) -> None:
    hint = f"redolake table resnapshot {table.argument} --fresh"
    assert TableId.parse(shlex.split(hint)[3]) == table


def test_plain_names_are_printed_as_before() -> None:
    assert TableId("HR", "EMP").argument == "HR.EMP"
    assert TableId("HR", "Dept").argument == "'HR.\"Dept\"'"


@pytest.mark.parametrize(
    "text", ["HR", "HR.", ".EMP", "A.B.C", 'HR."', 'HR.""', 'H"R.EMP', "HR.A B", 'HR."A\udcc3"']
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        TableId.parse(text)


@pytest.mark.parametrize("name", ["ORCLPDB1.HR.EMP", 'ORCLPDB1.HR."Emp"'])
def test_a_name_with_a_container_is_refused_with_the_way_to_configure_it(name: str) -> None:
    """Equal names, object numbers and XIDs in two containers would be one table's."""
    with pytest.raises(
        ConfigError,
        match=r"one source captures the tables of one pluggable .*oracle\.pdbs",
    ):
        TableId.parse(name)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        pytest.param("SALES.SHOP.T", ("SALES", "SHOP.T"), id="in-full"),
        pytest.param("sales.shop.t", ("SALES", "shop.t"), id="in-lower-case"),
        pytest.param('"SALES"."SHOP"."a.b"', ("SALES", '"SHOP"."a.b"'), id="in-quotes"),
        pytest.param('"sales"."SHOP"."a"', ("sales", '"SHOP"."a"'), id="in-lower-case-in-quotes"),
        pytest.param('"sales".SHOP.*', ("sales", "SHOP.*"), id="pattern-beside-quotes"),
        pytest.param("SALES.SHOP.*", ("SALES", "SHOP.*"), id="pattern"),
        pytest.param("SHOP.T", (None, "SHOP.T"), id="without-one"),
        pytest.param('SHOP."a.b"', (None, 'SHOP."a.b"'), id="dot-in-quotes"),
        pytest.param("A.B.C.D", (None, "A.B.C.D"), id="no-name"),
    ],
)
def test_a_container_is_what_stands_before_owner_and_name(
    text: str, split: tuple[str | None, str]
) -> None:
    assert split_container(text) == split


def test_a_pattern_finds_names_in_quotes() -> None:
    assert TablePattern.parse('HR."Dept*"').matches(TableId("HR", "Dept"))


@pytest.mark.parametrize(
    "names", [("A" * 128, "A" * 127), (" " * 128, " " * 127), ("€" * 42, "€" * 41)]
)
def test_folders_of_long_names_fit_a_file_system_and_differ(names: tuple[str, str]) -> None:
    paths = {TableId(name, names[0]).path for name in names} | {TableId(names[0], names[1]).path}
    assert len(paths) == 3
    assert max(map(len, paths)) <= 255 - len(".before-g999")
