"""Rules of the source over OWNER.TABLE.COLUMN hold in tables with entries and in those of
patterns, in snapshots and windows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.patterns import ColumnPattern
from cdc_core.steps import Pipeline
from redolake.reader import open as open_lake
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.reader.test_reader import _window

RULES: dict[str, Any] = {
    "columns_exclude": ["*.*.SECRET", "SHOP.*.*"],
    "columns_mask": {f"{OWNER}.*.re:NA.E": "stars(3)", "*.T.NAME": "truncate(1)"},
    "columns_as": {"*.*.AMOUNT": "text"},
}


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        for name in ("T", "U"):
            running.run(
                f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(9), NAME VARCHAR2(9), AMOUNT NUMBER)",
                f"INSERT INTO {name} VALUES (1, 'first', 'Ann', 1.5)",
            )
        yield running


def test_rules_hold_in_every_table(oracle: Oracle, tmp_path: Path) -> None:
    own = {"name": f"{OWNER}.T", "columns_mask": {"NAME": "truncate(2)"}}
    config = oracle.config(tmp_path, tables=[own, {"name": f"{OWNER}.*"}], **RULES)
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        _window(
            oracle,
            pipeline,
            *(f"INSERT INTO {one} VALUES (2, 'second', 'Bob', 2.25)" for one in ("T", "U")),
        )
        assert pipeline.config.table(TableId(OWNER, "U")).excludes("SECRET")
    cut = open_lake(tmp_path / "lake").at()
    found = {
        name: sorted(
            (row["ID"], row["NAME"], row["AMOUNT"], "SECRET" in row)
            for row in cut.table(f"{OWNER}.{name}").to_arrow().to_pylist()
        )
        for name in ("T", "U")
    }
    assert found["T"] == [(1, "An", "1.5", False), (2, "Bo", "2.25", False)], "its own mask"
    assert found["U"] == [(1, "***", "1.5", False), (2, "***", "2.25", False)]


@pytest.mark.parametrize(
    ("text", "table", "column"),
    [
        pytest.param("shop.*.password", "SHOP.A", "PASSWORD", id="folds"),
        pytest.param('SHOP.A."Pass.Word"', "SHOP.A", "Pass.Word", id="quoted"),
        pytest.param("*.?.re:[a-z]+\\d", "SHOP.A", "re:[a-z]+\\d", id="expression"),
    ],
)
def test_a_pattern_of_columns_is_read(text: str, table: str, column: str) -> None:
    pattern = ColumnPattern.parse(text)
    assert pattern.tables.matches(TableId.parse(table))
    assert pattern.column == column


@pytest.mark.parametrize("text", ["SECRET", "SHOP.SECRET", "A.B.C.D", "A.B.re:("])
def test_what_is_no_pattern_of_columns_is_refused(
    oracle: Oracle, tmp_path: Path, text: str
) -> None:
    with pytest.raises(ConfigError):
        ColumnPattern.parse(text)
    with pytest.raises(ValidationError, match="columns_exclude"):
        oracle.config(tmp_path, "T", columns_exclude=[text])


@pytest.mark.parametrize(
    ("own", "rules", "masked"),
    [
        pytest.param({"columns_exclude": ["NAME"]}, {"columns_mask": {"*.*.NAME": "stars(3)"}}, {}, id="excluded-by-the-entry"),
        pytest.param({"columns_include": ["ID", "AMOUNT"]}, {"columns_mask": {"*.*.NAME": "stars(3)"}}, {}, id="not-included"),
        pytest.param({"columns_mask": {"NAME": "stars(3)"}}, {"columns_exclude": ["*.*.NAME"]}, {}, id="excluded-by-the-source"),
        pytest.param(
            {"columns_include": ["ID", "NAME"]}, {"columns_mask": {"*.*.NA*": "stars(3)"}}, {"NA*": "stars(3)"}, id="a-pattern-may-fit-others"
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["T", "*"])
def test_what_is_left_out_needs_no_mask(
    oracle: Oracle, tmp_path: Path, own: Any, rules: Any, masked: Any, name: str
) -> None:
    entry = {"name": f"{OWNER}.{name}", **own}
    with Pipeline(oracle.config(tmp_path, tables=[entry], **rules)) as pipeline:
        pipeline.find_tables()
        found = pipeline.config.table(TableId(OWNER, "T"))
        assert dict(found.columns_mask) == masked
        assert found.excludes("NAME") == (not masked)
