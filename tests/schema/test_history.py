"""Versions of tables by SCN."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.errors import SchemaMismatchError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.history import SchemaHistory
from cdc_core.schema.table import Column, TableSchema

FIRST = TableSchema(
    TableId("HR", "EMP"), Scn(10), (Column("ID", "NUMBER", 22, 0, 10, 0, False),), ("ID",), 7
)
SECOND = replace(FIRST, scn_from=Scn(20))


def test_the_version_at_an_scn_is_the_last_one_that_began() -> None:
    history = SchemaHistory([SECOND, FIRST])
    assert [history.at(FIRST.table, Scn(scn)) for scn in (9, 10, 19, 20, 99)] == [
        None, FIRST, FIRST, SECOND, SECOND,
    ]  # fmt: skip
    assert history.latest(FIRST.table) == SECOND
    assert history.tables == (FIRST.table,)
    assert history.at(TableId("HR", "X"), Scn(10)) is None


def test_a_version_of_the_same_scn_replaces_and_an_older_one_is_refused() -> None:
    history = SchemaHistory([FIRST, SECOND])
    again = replace(SECOND, object_id=8)
    history.add(again)
    assert history.latest(FIRST.table) == again
    with pytest.raises(SchemaMismatchError, match="newer definition"):
        history.add(FIRST)
