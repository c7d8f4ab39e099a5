"""A template gives each table its own folder below the lake, or is refused."""

from __future__ import annotations

import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.templates import DEFAULT_PATHS, PathTemplates, check_path, filled

ORDERS, DEPT = TableId("SHOP", "ORDERS"), TableId("HR", "Dept")


@pytest.mark.parametrize(
    ("template", "table", "text"),
    [
        pytest.param("{source}/{owner}/{table}", ORDERS, "erp/SHOP/ORDERS", id="as in Oracle"),
        pytest.param("{owner_lower}.{table_lower}", ORDERS, "shop.orders", id="lower case"),
        pytest.param("{table}-{digest}", DEPT, "_Dept-54797c8b", id="in double quotes"),
        pytest.param("{table}", TableId("A", "../B"), "__2e_2e_2fB", id="a name like a path"),
    ],
)
def test_a_template_is_filled(template: str, table: TableId, text: str) -> None:
    assert filled(template, "erp", table) == text


def test_the_default_is_the_folder_of_a_table() -> None:
    for table in (ORDERS, DEPT):
        assert DEFAULT_PATHS.below("mirror", "erp", table) == f"erp/mirror/{table.path}"


@pytest.mark.parametrize(
    ("template", "says"),
    [
        pytest.param("{schema}/{table}", "no field {schema}", id="unknown field"),
        pytest.param("{owner.name}/{table}", "no field {owner.name}", id="attribute"),
        pytest.param("{table:>9}", "no format", id="format"),
        pytest.param("{table", "no template", id="open brace"),
        pytest.param("bronze/{owner}", "all tables alike", id="no table"),
        pytest.param("../{table}", "not a path below", id="above the lake"),
        pytest.param("/{table}", "not a path below", id="absolute"),
        pytest.param("a//{table}", "not a path below", id="empty step"),
        pytest.param("{table}/", "not a path below", id="ends with a slash"),
        pytest.param("s3://b/{table}", "not a path below", id="URI"),
        pytest.param("a b/{table}", "not a path below", id="space"),
    ],
)
def test_what_is_no_path_of_a_table_is_refused(template: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_path(template)


TWINS = (TableId("SHOP", "Orders"), TableId("SHOP", "orders"))


@pytest.mark.parametrize(
    ("mirror", "tables", "says"),
    [
        pytest.param("{table_lower}", (ORDERS, TableId("HR", "ORDERS")), "SHOP.ORDERS", id="same"),
        pytest.param("{owner}/{table}", TWINS, 'mirror of SHOP."Orders"', id="case alone"),
        pytest.param("erp/staging/{table}", (ORDERS,), "erp/staging", id="reserved"),
        pytest.param("erp/changelog/shop.orders/{table}", (ORDERS, DEPT), "mirror", id="inside"),
        pytest.param("{table}", (TableId("ERP", "ERP"),), "folder of the source", id="around"),
    ],
)
def test_tables_that_would_meet_are_found(
    mirror: str, tables: tuple[TableId, ...], says: str
) -> None:
    found = PathTemplates(mirror=mirror).collisions("erp", tables)
    assert set(found) <= {tables[-1], tables[0]}
    assert says in next(iter(found.values()))
    with_digest = PathTemplates("m/{digest}", "c/{digest}", "h/{digest}")
    assert with_digest.collisions("erp", tables) == {}
