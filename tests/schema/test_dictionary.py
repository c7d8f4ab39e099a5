"""Dictionary rows to schemas, without a database."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError, PreflightError
from cdc_core.model.scn import Scn
from cdc_core.schema.dictionary import schema_from_rows
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
    return schema_from_rows(config, columns, primary, unique, object_id=7, scn=Scn(5))


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
        pytest.param(EMP, (), PreflightError, r"ALTER TABLE \"HR\"\.\"EMP\" ADD PRIMARY KEY", id="no-key"),
        pytest.param(
            TableConfig(name="hr.emp", key=("N",)), (), ConfigError, "may be NULL", id="nullable-key"
        ),
        pytest.param(
            TableConfig(name="hr.emp", key=("X",)), (), ConfigError, "does not have", id="unknown-key"
        ),
        pytest.param(
            TableConfig(name="hr.emp", columns_exclude=("a",)), ("A",), ConfigError,
            "Near names: A", id="unknown-exclude",
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
