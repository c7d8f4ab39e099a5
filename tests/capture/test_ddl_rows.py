"""DDL rows as LogMiner may show them of a captured table: none stops the window, and none stops a table that it does not change."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.capture.stream_ends import ddl_rows
from cdc_core.capture.stream_ends.ddl_rows import DdlRow, follow_ddl
from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError
from cdc_core.model.scn import Scn
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.table import ROW_ID, ROW_ID_COLUMN, Column, TableSchema
from tests.schema.ddl_catalog import CASES

CONFIG = TableConfig(name="HR.EMP")
RULES = CaptureRules(tables=(CONFIG,), rewrites_wider=frozenset({CONFIG.table}))
ID = Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False)
EMP = TableSchema(CONFIG.table, Scn(10), (ID,), ("ID",), object_id=7, stored=("ID",))


def ends(text: str, known: TableSchema = EMP) -> list[tuple[str | None, int]]:
    row = DdlRow(table=CONFIG.table, ordinal=1, row_scn=20, scn=Scn(21), text=text)
    session = cast("Any", None)
    followed = follow_ddl(session, [row], SchemaHistory([known]), RULES, lambda *_: False)
    assert not followed.changes
    assert all(len(end.reason) < 700 and str(CONFIG.table) in end.reason for end in followed.ends)
    return [(end.trouble, end.scn) for end in followed.ends]


def test_no_statement_of_the_catalogue_stops_a_table_that_it_leaves_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The dictionary shows the table as it was; what went without redo, only the text tells."""
    monkeypatch.setattr(ddl_rows, "read_table_schema", lambda *_args, **_options: EMP)
    for case in CASES:
        expected = [("truncate", 20)] if "rows removed" in case.effects else []
        assert ends(case.statement) == expected, case.statement
    by_row_id = TableSchema(CONFIG.table, Scn(10), (ROW_ID_COLUMN, ID), (ROW_ID,), object_id=7)
    monkeypatch.setattr(ddl_rows, "read_table_schema", lambda *_args, **_options: by_row_id)
    for case in CASES:
        if "rows moved" in case.effects and "rows removed" not in case.effects:
            assert ends(case.statement, by_row_id) == [("unsupported_ddl", 20)], case.statement


def test_a_table_that_the_dictionary_does_not_show_was_dropped_only_if_the_text_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hidden(*_args: object, **_options: object) -> None:
        raise ConfigError("there is no such table, or the capture user may not read it")

    monkeypatch.setattr(ddl_rows, "read_table_schema", hidden)
    for case in CASES:
        if "rows removed" not in case.effects:
            trouble = "drop" if "table gone" in case.effects else "unsupported_ddl"
            assert ends(case.statement) == [(trouble, 20)], case.statement
